"""Operators that give a list of tensors or an argument, made by `custom_op` or by a library's `define` and `impl`.

The table's operators have a fixed number of results. So the function runs first, and its results go through an operator
of the table with as many of them, which is what gradients are recorded of. What gives an argument back is a function.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any

from taeda_tensor_core._C import Tensor
from taeda_tensor_core.library import _custom
from taeda_tensor_core.library._operators import NewOperator, publish, unpublish
from taeda_tensor_core.library._schemas import translated
from taeda_tensor_core.library._table import Plain

_LIST = "-> Tensor[]"
_ARGUMENT = re.compile(r"Tensor\((\w+)!\).*->\s*Tensor\(\1!\)\s*$", re.DOTALL)
#: By "package::operator".
_known: dict[str, ListOpDef] = {}


def gives_list(schema: str) -> bool:
    """Whether the result of a schema is one list of tensors."""
    return schema.rstrip().endswith(_LIST)


def gives_argument(schema: str) -> bool:
    """Whether the result of a schema is one of the arguments, written into: `-> Tensor(a!)`."""
    return _ARGUMENT.search(schema) is not None


def known(target: Any) -> ListOpDef | None:
    """The operator of this kind that an object or a name means."""
    if isinstance(target, ListOpDef):
        return target
    name = target if isinstance(target, str) else target.name() if isinstance(target, Named) else ""
    return _known.get(name)


class Named(Plain):
    """A function as `ops.<package>.<operator>`, which is no operator of the table."""

    __slots__ = ("_full",)

    def __init__(self, full: str, function: Any) -> None:
        super().__init__(full.partition("::")[2], function)
        self._full = full

    def name(self) -> str:
        """ "package::operator" """
        return self._full

    @property
    def namespace(self) -> str:  # type: ignore[override]
        """The package."""
        return self._full.partition("::")[0]


class ListOpDef:
    """An operator whose result is a list: callable, with decorators as others.

    Without `function` the first one that is registered says which arguments there are.
    """

    def __init__(self, name: str, schema: str, function: Callable | None = None) -> None:
        self._qualname, self._schema = name, schema
        self._signature = None if function is None else inspect.signature(function)
        self._functions: dict[str | None, Callable] = {}
        self._of_others: Callable | None = None
        self._gradient: tuple[Callable, Callable | None] | None = None
        self._of_count: dict[int, NewOperator] = {}
        self._made: list[Tensor] = []  # on their way through the table's operator
        self.__name__, self.__doc__ = name.partition("::")[2], function.__doc__
        self._opoverload = Named(name, self)
        publish(name, self._opoverload)
        _known[name] = self

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if self._of_others is not None:
            found = self._of_others(*args, **kwargs)
            return list(found) if gives_list(self._schema) else found
        if self._signature is None:
            raise NotImplementedError(f"{self._qualname}: no function has been registered")
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        tensors = _custom._tensors([*bound.args, *bound.kwargs.values()])
        function = self._function_for(tensors[0].device.type if tensors else "cpu")
        if not gives_list(self._schema):
            return function(*args, **kwargs)
        shown = [_custom._unrecorded(item) for item in bound.args]
        made = function(*shown, **{k: _custom._unrecorded(v) for k, v in bound.kwargs.items()})
        if not isinstance(made, list | tuple) or not all(isinstance(item, Tensor) for item in made):
            raise RuntimeError(f"{self._qualname}: expected a list of tensors as result, found {made!r:.60}")
        given = {id(tensor) for tensor in (*tensors, *_custom._tensors(shown))}
        if any(id(tensor) in given for tensor in made):
            raise RuntimeError(
                f"{self._qualname}: a result is one of the arguments itself; return a clone() of it"
            )
        if not made:
            return []
        found = self._operator(len(made)).op
        self._made = list(made)
        passed = found(*bound.args, **bound.kwargs)
        return [passed] if len(made) == 1 else list(passed)

    def _function_for(self, device: str) -> Callable:
        found = self._functions.get(device) or self._functions.get(None)
        if found is None:
            there = sorted(map(str, self._functions))
            raise NotImplementedError(
                f"{self._qualname}: no function for device {device!r}; there are some for {there}"
            )
        return found

    def _operator(self, count: int) -> NewOperator:
        """The operator of the table with this number of results, which hands on what the function has made."""
        found = self._of_count.get(count)
        if found is not None:
            return found
        results = "Tensor" if count == 1 else f"({', '.join(['Tensor'] * count)})"
        schema = f"{self._schema.rstrip().removesuffix(_LIST)}-> {results}"
        space = self._qualname.partition("::")[0]
        made = _custom._library(space).define(f"{self._qualname}__{count}{translated(schema)}")

        def hand_on(*_: Any) -> Any:
            results, self._made = self._made, []
            return results[0] if count == 1 else tuple(results)

        made.composite(hand_on)
        made.derivative(self._derivative(made))
        self._of_count[count] = made
        return made

    def _derivative(self, made: NewOperator) -> Callable:
        if self._gradient is None:
            return _custom._no_derivative(self._qualname)
        backward, setup = self._gradient

        def listed(ctx: Any, inputs: Any, output: Any, **named: Any) -> None:
            if setup is not None:
                setup(ctx, inputs, output=[output] if isinstance(output, Tensor) else list(output), **named)

        return _custom._as_derivative(made.op, lambda ctx, *grads: backward(ctx, list(grads)), listed)

    def give(self, key: str, function: Callable) -> None:
        """The function for a device, or one of PyTorch's dispatch keys."""
        if key == "CompositeImplicitAutograd" or key.startswith("Autograd"):
            self._of_others = function
        elif not key.startswith("Autocast"):
            self.register_kernel(None if key.startswith("Composite") or not key else key.lower(), function)

    def register_kernel(
        self, device_types: str | Iterable[str] | None, fn: Callable | None = None, /
    ) -> Callable:
        """Give the function for these device types; None for every device without one."""

        def take(function: Callable) -> Callable:
            self._signature = self._signature or inspect.signature(function)
            for device in _custom._listed(device_types) or [None]:
                self._functions[device] = function
            return function

        return take if fn is None else take(fn)

    def register_fake(self, fn: Callable, /) -> Callable:
        """Give the function for tensors without elements: it returns tensors of the right shape and dtype."""
        return self.register_kernel("meta", fn)

    def register_autograd(self, backward: Callable, /, *, setup_context: Callable | None = None) -> None:
        """Give the gradient: `backward(ctx, grads)` gets a list, and returns one gradient for each argument.

        Args:
            setup_context: `(ctx, inputs, output)` puts what backward needs into `ctx`; `output` is the list.
        """
        self._gradient = backward, setup_context
        for made in self._of_count.values():
            made.derivative(self._derivative(made))

    def register_vmap(self, func: Callable | None = None, /) -> Callable:
        """Refused: a batch is read one by one.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError(f"{self._qualname}: operators that give lists have no rules for vmap")

    def remove(self) -> None:
        """Take the operator away."""
        while self._of_count:
            self._of_count.popitem()[1].remove()
        unpublish(self._qualname)
        _known.pop(self._qualname, None)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"
