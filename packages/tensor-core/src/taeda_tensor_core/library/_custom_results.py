"""Operators that give lists, numbers, None or an argument, made by `custom_op` or by a library's `define` and `impl`.

The table's operators give a fixed number of tensors. So the function runs first, and its tensors go through an operator
of the table for results of that form, which is what gradients are recorded of; a number goes through it as a tensor, so
that a gradient finds it again. What gives an argument back is a function.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from taeda_tensor_core import _C
from taeda_tensor_core._C import Tensor
from taeda_tensor_core._overridable import stand_ins
from taeda_tensor_core.library import _custom
from taeda_tensor_core.library._aten_schemas import parsed
from taeda_tensor_core.library._operators import NewOperator, publish, unpublish
from taeda_tensor_core.library._schemas import translated
from taeda_tensor_core.library._table import Argument, OperatorSchema, Plain

_OTHERS = {"Tensor?", "Tensor[]", "Tensor?[]", "int", "SymInt", "float", "bool", "Scalar"}
_ARGUMENT = re.compile(r"Tensor\((\w+)!\).*->\s*Tensor\(\1!\)\s*$", re.DOTALL)
#: By "package::operator".
_known: dict[str, ResultsOpDef] = {}
#: What calls such an operator for batches.
_of_batches: list[Callable[[Any, tuple, dict[str, Any]], Any]] = []


def use_batches(function: Callable[[Any, tuple, dict[str, Any]], Any]) -> None:
    """Let calls of batches go to `function(operator, args, kwargs)`, which gives NotImplemented for others."""
    _of_batches.append(function)


def _kinds(schema: str) -> list[str]:
    """The types of the results, without their names."""
    results = schema.rpartition("->")[2] if "->" in schema else ""
    return [part.split()[0] for part in results.strip(" ()").split(",") if part.strip()]


def gives_others(schema: str) -> bool:
    """Whether a schema has results that the table's operators lack: lists of tensors, None, numbers."""
    return not _OTHERS.isdisjoint(_kinds(schema))


def gives_argument(schema: str) -> bool:
    """Whether the result of a schema is one of the arguments, written into: `-> Tensor(a!)`."""
    return _ARGUMENT.search(schema) is not None


def known(target: Any) -> ResultsOpDef | None:
    """The operator of this kind that an object or a name means, None for others."""
    if isinstance(target, ResultsOpDef):
        return target
    name = target if isinstance(target, str) else target.name() if isinstance(target, Named) else ""
    return _known.get(name)


def _find(full: str) -> Any:
    """The function that stands under a name."""
    package, _, short = full.partition("::")
    return getattr(getattr(_C.ops, package), short)


class Named(Plain):
    """A function as `ops.<package>.<operator>`, which is no operator of the table."""

    __slots__ = ("_full",)

    def __init__(self, full: str, function: Any) -> None:
        super().__init__(full.partition("::")[2], function)
        self._full = full

    def name(self) -> str:
        """ "package::operator" """
        return self._full

    def __getattr__(self, name: str) -> Named:
        super().__getattr__(name)  # AttributeError for what is no overload
        return self

    @property
    def namespace(self) -> str:  # type: ignore[override]
        """The package."""
        return self._full.partition("::")[0]

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """Arguments in calling order; none where the operator does not tell them."""
        return getattr(self._function, "arguments", ())

    @property
    def _schema(self) -> OperatorSchema:
        """Its schema, of an operator that tells it."""
        text = getattr(self._function, "schema", None)
        if text is None:
            raise AttributeError(f"{self!r} has no attribute '_schema'")
        return OperatorSchema(self._full, "", lambda: parsed(text))

    def __str__(self) -> str:
        return self._full.replace("::", ".")

    def __reduce__(self) -> tuple:
        return _find, (self._full,)


#: What stands for a result in the form of all: a tensor, a number, the count of a list's tensors, None for itself.
_TENSOR, _NUMBER = "tensor", "number"


def _form(kind: str, item: Any) -> Any:
    """The form of a result that suits its type in the schema; TypeError for another."""
    if isinstance(item, Tensor) and kind in ("Tensor", "Tensor?"):
        return _TENSOR
    if kind == "Tensor[]" and isinstance(item, list | tuple) and all(isinstance(one, Tensor) for one in item):
        return len(item)
    if kind == "Tensor?" and item is None:
        return None
    if not kind.startswith("Tensor") and _is_number(item):
        return _NUMBER
    raise TypeError


def _is_number(item: Any) -> bool:
    return isinstance(item, int | float)


def _parts(made: Any, form: Any) -> list[Tensor]:
    """The tensors of results of a form, those of numbers too."""
    if form == _TENSOR:
        return [made]
    if form == _NUMBER:
        return [_C.tensor(made)]
    if isinstance(form, int):
        return list(made)
    return [part for item, of in zip(made or (), form or (), strict=True) for part in _parts(item, of)]


def _whole(parts: Iterator[Any], form: Any, number: Callable[[Any], Any]) -> Any:
    """Results of a form; `number` makes those of the tensors that went in their place."""
    if form == _TENSOR:
        return next(parts)
    if form == _NUMBER:
        return number(next(parts))
    if isinstance(form, int):
        return list(itertools.islice(parts, form))
    return None if form is None else tuple(_whole(parts, of, number) for of in form)


def _parameter(argument: Argument) -> inspect.Parameter:
    kind = (
        inspect.Parameter.KEYWORD_ONLY if argument.keyword_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
    )
    default = argument.default if argument.has_default else inspect.Parameter.empty
    return inspect.Parameter(argument.name, kind, default=default)


class ResultsOpDef:
    """An operator whose results are not so many tensors: callable, with decorators as others.

    Without `function` those that are registered may return arguments.
    """

    def __init__(self, name: str, schema: str, function: Callable | None = None) -> None:
        self._qualname, self._schema = name, schema
        self._kinds = _kinds(schema)
        self._gives_list = self._kinds == ["Tensor[]"]
        self._may_return_arguments = function is None
        self._functions: dict[str | None, Callable] = {}
        self._of_others: Callable | None = None
        self._gradient: tuple[Callable, Callable | None] | None = None
        self.batching_rule: Callable | None = None
        self._of_form: dict[Any, NewOperator] = {}
        self._made: list[Tensor] = []  # on their way through the table's operator
        self.__name__, self.__doc__ = name.partition("::")[2], function.__doc__
        self._opoverload = Named(name, self)
        publish(name, self._opoverload)
        _known[name] = self

    @property
    def name(self) -> str:
        """ "package::operator" """
        return self._qualname

    @property
    def schema(self) -> str:
        """Arguments, defaults and results as text."""
        return f"{self._qualname}{self._schema}"

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """Arguments in calling order."""
        some = next(iter(self._of_form.values()), None) or self._operator(_TENSOR, 1)
        return some.op.arguments

    @functools.cached_property
    def _signature(self) -> inspect.Signature:
        """Its arguments as a Python function has them."""
        return inspect.Signature([_parameter(a) for a in self.arguments])

    @property
    def results(self) -> tuple[str, ...]:
        """The types of its results."""
        return tuple(self._kinds)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if (found := stand_ins(args, kwargs)) or _C._function_mode_stack():
            return _C._handle_override(self._opoverload, found, args, kwargs)
        if self._of_others is not None:
            found = self._of_others(*args, **kwargs)
            return list(found) if self._gives_list else found
        if not self._functions:
            raise NotImplementedError(f"{self._qualname}: no function has been registered")
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        for of_batches in _of_batches:
            if (batched := of_batches(self, bound.args, bound.kwargs)) is not NotImplemented:
                return batched
        tensors = _custom._tensors([*bound.args, *bound.kwargs.values()])
        function = self._function_for(tensors[0].device.type if tensors else "cpu")
        if gives_argument(self._schema):
            return function(*args, **kwargs)
        shown = [_custom._unrecorded(item) for item in bound.args]
        made = function(*shown, **{k: _custom._unrecorded(v) for k, v in bound.kwargs.items()})
        form = self._form_of(made)
        parts = _parts(made, form)
        given = [*tensors, *_custom._tensors(shown)]
        if self._may_return_arguments:
            parts = _custom.other_than(given, parts, plain=True)
        elif _custom.among(given, parts):
            raise RuntimeError(
                f"{self._qualname}: a result is one of the arguments itself; return a clone() of it"
            )
        if not parts:
            return [] if self._gives_list else made
        found = self._operator(form, len(parts)).op
        self._made = parts
        numbers = iter([item for item in (made if isinstance(made, tuple) else [made]) if _is_number(item)])
        passed = found(*bound.args, **bound.kwargs)
        return _whole(iter([passed] if len(parts) == 1 else passed), form, lambda _: next(numbers))

    def _form_of(self, made: Any) -> Any:
        """The form of results, which says all but their values."""
        try:
            if len(self._kinds) == 1:
                return _form(self._kinds[0], made)
            return tuple(_form(kind, item) for kind, item in zip(self._kinds, made, strict=True))
        except (TypeError, ValueError):
            wanted = "a list of tensors" if self._gives_list else f"({', '.join(self._kinds)})"
            raise RuntimeError(f"{self._qualname}: expected {wanted} as result, found {made!r:.60}") from None

    def _function_for(self, device: str) -> Callable:
        found = self._functions.get(device) or self._functions.get(None)
        if found is None:
            there = sorted(map(str, self._functions))
            raise NotImplementedError(
                f"{self._qualname}: no function for device {device!r}; there are some for {there}"
            )
        return found

    def _operator(self, form: Any, count: int) -> NewOperator:
        """The operator of the table for results of this form, which hands on what the function has made."""
        found = self._of_form.get(form)
        if found is not None:
            return found
        results = "Tensor" if count == 1 else f"({', '.join(['Tensor'] * count)})"
        schema = f"{self._schema.rpartition('->')[0]}-> {results}"
        space = self._qualname.partition("::")[0]
        made = _custom._library(space).define(f"{self._qualname}__{len(self._of_form)}{translated(schema)}")

        def hand_on(*_: Any) -> Any:
            results, self._made = self._made, []
            return results[0] if count == 1 else tuple(results)

        made.composite(hand_on)
        made.derivative(self._derivative(made, form))
        self._of_form[form] = made
        return made

    def _derivative(self, made: NewOperator, form: Any) -> Callable:
        if self._gradient is None:
            return _custom._no_derivative(self._qualname)
        backward, setup = self._gradient

        def prepare(ctx: Any, inputs: Any, output: Any, **named: Any) -> None:
            if setup is not None:
                parts = iter([output] if isinstance(output, Tensor) else output)
                setup(ctx, inputs, output=_whole(parts, form, Tensor.item), **named)

        def differentiate(ctx: Any, *grads: Any) -> Any:
            whole = _whole(iter(grads), form, lambda _: None)
            return backward(ctx, *whole) if isinstance(whole, tuple) else backward(ctx, whole)

        return _custom._as_derivative(made.op, differentiate, prepare)

    def give(self, key: str, function: Callable) -> None:
        """The function for a device, or one of PyTorch's dispatch keys."""
        if key == "CompositeImplicitAutograd" or key.startswith("Autograd"):
            self._of_others = function
        elif not key.startswith("Autocast"):
            self.register_kernel(None if key.startswith("Composite") or not key else key.lower(), function)

    def register_kernel(
        self, device_types: str | Iterable[str] | None, fn: Callable | None = None, /
    ) -> Callable:
        """Give the function for these device types; None and "default" for every device without one."""

        def take(function: Callable) -> Callable:
            for device in _custom._listed(device_types) or [None]:
                self._functions[None if device == "default" else device] = function
            return function

        return take if fn is None else take(fn)

    def register_fake(self, fn: Callable, /) -> Callable:
        """Give the function for tensors without elements: it returns tensors of the right shape and dtype."""
        return self.register_kernel("meta", fn)

    def register_autograd(self, backward: Callable, /, *, setup_context: Callable | None = None) -> None:
        """Give the gradient: `backward(ctx, *grads)` returns one for each argument.

        For a list it gets a list, for what is no tensor None.

        Args:
            setup_context: `(ctx, inputs, output)` puts what backward needs into `ctx`.
        """
        self._gradient = backward, setup_context
        for form, made in self._of_form.items():
            made.derivative(self._derivative(made, form))

    def register_vmap(self, func: Callable | None = None, /) -> Callable:
        """Give the rule for vmap: `func(info, in_dims, *args)` returns (results, their batch dimensions)."""

        def take(function: Callable) -> Callable:
            self.batching_rule = function
            return function

        return take if func is None else take(func)

    def remove(self) -> None:
        """Take the operator away."""
        while self._of_form:
            self._of_form.popitem()[1].remove()
        unpublish(self._qualname)
        _known.pop(self._qualname, None)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"
