"""Operators of one's own, defined and extended as in PyTorch: `custom_op`, `register_fake` and their like."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from taeda_tensor_core import _C
from taeda_tensor_core._C import Tensor
from taeda_tensor_core.library._dynamic import FakeContext, context
from taeda_tensor_core.library._layers import split
from taeda_tensor_core.library._operators import Library, NewOperator, awaited, defined
from taeda_tensor_core.library._schemas import infer_schema, split_name, translated
from taeda_tensor_core.library._table import Operator, Overload, op
from taeda_tensor_core.library._tags import mark_function

_libraries: dict[str, Library] = {}
#: What `custom_op` has made: a program that is read twice makes it anew.
_from_functions: dict[str, Any] = {}


def _library(space: str) -> Library:
    return _libraries.setdefault(space, Library(space))


def _listed(devices: str | Iterable[str] | None) -> list[str] | None:
    if devices is None:
        return None
    return [devices] if isinstance(devices, str) else list(devices)


def _is_there(device: str) -> bool:
    """Whether a kernel for the device can ever be asked for: not for reserved names without a working plug-in."""
    from taeda_tensor_core.device_module import get_device_module

    reserved = str(device).partition(":")[0] in _C._reserved_devices()
    return not reserved or get_device_module(device).is_available()


def _tensors(items: Any) -> list[Tensor]:
    if isinstance(items, Tensor):
        return [items]
    if isinstance(items, list | tuple):
        return [tensor for item in items for tensor in _tensors(item)]
    return []


def as_kernel(
    operator: Operator, function: Callable, plain: bool = True, may_return_arguments: bool = False
) -> Callable:
    """A kernel from a function that takes the operator's arguments and returns its results.

    Args:
        plain: The function meets tensors without gradients, as a device's kernel does; what it calls is not recorded.
        may_return_arguments: Give tensors of the same memory for arguments that are among the results, instead of
            refusing them.
    """

    def kernel(outputs: tuple, inputs: tuple) -> Any:
        shown = tuple(map(_unrecorded, inputs)) if plain else inputs
        args, kwargs = split(operator, shown)
        made = function(*args, **kwargs)
        given = _tensors([*inputs, *shown])
        if may_return_arguments:
            made = other_than(given, made, plain)
        elif among(given, made):
            raise RuntimeError(
                f"{operator.name}: a result is one of the arguments itself; return a clone() of it"
            )
        return tuple(made) if isinstance(made, list) and len(outputs) > 1 else made

    return kernel


def among(given: list[Tensor], made: Any) -> bool:
    """Whether a result is an argument."""
    known = {id(tensor) for tensor in given}
    return any(id(tensor) in known for tensor in _tensors(made))


def other_than(given: list[Tensor], made: Any, plain: bool) -> Any:
    """The results, with a tensor of the same memory for each that is an argument."""
    if isinstance(made, list | tuple):
        return type(made)([other_than(given, item, plain) for item in made]) if among(given, made) else made
    if not among(given, made):
        return made
    return made.detach() if plain else made.view_as(made)


def _unrecorded(item: Any) -> Any:
    """An argument as a kernel sees it: gradients are no business of its own, and NumPy may have the memory."""
    if isinstance(item, Tensor):
        return item.detach() if item.requires_grad else item
    if isinstance(item, list | tuple) and any(isinstance(part, Tensor) for part in item):
        return [_unrecorded(part) for part in item]
    return item


class Context:
    """What `setup_context` and `backward` share: tensors, any attribute, and which inputs need gradients."""

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self._saved: tuple[Any, ...] = ()
        self._materialize = True

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `backward`, which finds them in `saved_tensors`."""
        self._saved = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What `save_for_backward` kept."""
        return self._saved

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Say that results have no gradients: `backward` gets none for them, or zeros."""
        self.non_differentiable = args

    def mark_dirty(self, *args: Tensor) -> None:
        """Say which arguments are written: here the schema says it."""
        self.dirty_tensors = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether gradients that are absent come as zeros (they do unless this says otherwise)."""
        self._materialize = value


def _as_derivative(operator: Operator, backward: Callable, setup_context: Callable | None) -> Callable:
    positional, names = operator.by_position

    def prepare(arguments: tuple, results: tuple) -> Context:
        args, kwargs = split(operator, arguments)
        needs = tuple(any(t.requires_grad for t in _tensors(item)) for item in args)
        ctx = Context(needs)
        if setup_context is not None:
            output = results[0] if len(operator.results) == 1 else results
            named = {"keyword_only_inputs": kwargs} if names else {}
            setup_context(ctx, args, **named, output=output)
        return ctx

    def derivative(grads: tuple, arguments: tuple, results: tuple) -> tuple:
        ctx = prepare(arguments, results)
        if ctx._materialize:
            grads = tuple(
                _C.zeros_like(r) if g is None and isinstance(r, Tensor) else g
                for g, r in zip(grads, results, strict=True)
            )
        found = backward(ctx, *grads)
        found = found if isinstance(found, tuple) else (found,)
        if len(found) != positional:
            raise RuntimeError(
                f"{operator.name}: backward gave {len(found)} gradients, "
                f"expected one for each of {positional} arguments"
            )
        return (*found, *(None for _ in names))

    return derivative


def _no_derivative(name: str) -> Callable:
    def derivative(grads: tuple, arguments: tuple, results: tuple) -> NoReturn:
        raise RuntimeError(f"{name}: no gradient is registered for this operator; use register_autograd")

    return derivative


class BatchInfo:
    """What a rule for vmap is told of the batch."""

    def __init__(self, batch_size: int, randomness: str = "error") -> None:
        self.batch_size = batch_size
        self.randomness = randomness


def _batch_sizes(value: Any, dims: Any) -> list[int]:
    """The sizes of the batches, of which all are the same."""
    if isinstance(dims, list | tuple):
        return [size for each, dim in zip(value, dims, strict=True) for size in _batch_sizes(each, dim)]
    return [] if dims is None else [value.shape[dims]]


def _as_batching(operator: Operator, function: Callable) -> Callable:
    def batching(arguments: tuple, dims: tuple) -> tuple:
        sizes = _batch_sizes(arguments, dims)
        args, kwargs = split(operator, arguments)
        made, places = function(BatchInfo(sizes[0]), dims, *args, **kwargs)
        return made, list(places) if isinstance(places, tuple | list) else [places]

    return batching


class CustomOpDef:
    """An operator that `custom_op` has made: callable, with decorators for what else it consists of."""

    def __init__(self, made: NewOperator, function: Callable) -> None:
        self._made = made
        self._function = self._init_fn = function
        self._kernels: list[Any] = []
        self._registered: set[str] = set()
        self._off: set[str] = set()  # device types whose own function is not asked
        self.__name__ = made.name.partition("::")[2]
        self.__doc__ = function.__doc__
        made.derivative(_no_derivative(made.name))

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._made.op(*args, **kwargs)

    @property
    def _opoverload(self) -> Overload:
        return self._made.op.default

    @property
    def _qualname(self) -> str:
        return self._made.name

    def register_kernel(
        self, device_types: str | Iterable[str] | None, fn: Callable | None = None, /
    ) -> Callable:
        """Give the function for these device types; None for every device without one."""

        def take(function: Callable) -> Callable:
            devices = _listed(device_types)
            if devices is None:
                self._made.composite(_as_composite(self._made.op, function))
            else:
                for device in filter(_is_there, devices):
                    chosen = self._unless_off(device, function)
                    self._registered.add(device)
                    self._kernels.append(self._made.kernel(device)(as_kernel(self._made.op, chosen)))
            return function

        return take if fn is None else take(fn)

    def _unless_off(self, device: str, function: Callable) -> Callable:
        """The function, or the one that the operator was made of while the device's own is switched off."""

        def chosen(*args: Any, **kwargs: Any) -> Any:
            return (self._init_fn if device in self._off else function)(*args, **kwargs)

        return chosen

    @contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """A block in which the function that was registered for a device is used, or else the operator's first one.

        Args:
            device_type: Of which device; one without a function of its own is left as it is, with a warning.

        Example:
            >>> with double.set_kernel_enabled("cpu", False):
            ...     double(taeda.ones(2))
        """
        if device_type not in self._registered:
            warnings.warn(
                f"set_kernel_enabled: {self._made.name} has no function for device {device_type!r} that could be "
                "switched",
                stacklevel=3,
            )
        before = set(self._off)
        (self._off.discard if enabled else self._off.add)(device_type)
        try:
            yield
        finally:
            self._off = before

    def register_fake(self, fn: Callable, /) -> Callable:
        """Give the function for tensors without elements: it returns tensors of the right shape and dtype."""
        self._kernels.append(self._made.kernel("meta")(as_kernel(self._made.op, fn)))
        return fn

    def register_autograd(self, backward: Callable, /, *, setup_context: Callable | None = None) -> None:
        """Give the gradient: `backward(ctx, *grads)` returns one for each argument.

        Args:
            setup_context: `(ctx, inputs, output)` puts what backward needs into `ctx`.
        """
        self._made.derivative(_as_derivative(self._made.op, backward, setup_context))

    def register_vmap(self, func: Callable | None = None, /) -> Callable:
        """Give the rule for vmap: `func(info, in_dims, *args)` returns (results, their batch dimensions)."""

        def take(function: Callable) -> Callable:
            self._made.batching(_as_batching(self._made.op, function))
            return function

        return take if func is None else take(func)

    def remove(self) -> None:
        """Take the operator out of the table."""
        while self._kernels:
            self._kernels.pop().remove()
        self._made.remove()

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._made.name})>"


def _as_composite(operator: Operator, function: Callable) -> Callable:
    kernel = as_kernel(operator, function)

    def composite(*arguments: Any) -> Any:
        return kernel((), arguments)

    return composite


def custom_op(
    name: str,
    fn: Callable | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Iterable[str] | None = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Decorator that makes an operator of a function.

    Args:
        name: "package::operator".
        mutates_args: Names of the arguments that the function writes into; `()` for none.
        device_types: Devices the function is for; None for all.
        schema: "(Tensor x, int n) -> Tensor"; read from the type hints when it is None.
        tags: What `Overload.tags` tells of the operator besides.

    Raises:
        ValueError: The schema or a type hint cannot be read, or `mutates_args` says other than the schema.
        RuntimeError: The name is taken, not by an operator made in this way, which is replaced; both owners are named.

    Example:
        >>> @taeda.library.custom_op("mypkg::double", mutates_args=())
        ... def double(x: taeda.Tensor) -> taeda.Tensor:
        ...     return x * 2
        >>> double(taeda.ones(2))
        tensor([2., 2.])
    """
    space, short = split_name(name, "custom_op")

    def make(function: Callable) -> Any:
        from taeda_tensor_core.library import _custom_results

        text = infer_schema(function, mutates_args=mutates_args) if schema is None else schema
        if schema is not None and mutates_args != "unknown":
            _check_written(f"{space}::{short}", schema, set(mutates_args))
        earlier = _from_functions.pop(f"{space}::{short}", None)
        if earlier is not None:
            earlier.remove()
        if _custom_results.gives_others(text):
            listed = _custom_results.ResultsOpDef(f"{space}::{short}", text, function)
            _from_functions[f"{space}::{short}"] = listed
            listed.register_kernel(device_types, function)
            return listed
        text = f"{space}::{short}{translated(text)}"
        made = CustomOpDef(_library(space).define(text, tags=() if tags is None else tags), function)
        mark_function(f"{space}::{short}")
        _from_functions[f"{space}::{short}"] = made
        made.register_kernel(device_types, function)
        return made

    return make if fn is None else make(fn)


_WRITTEN = re.compile(r"Tensor(?:\(\w+)?!\)?\??(?:\[\d*\])?\??\s+(\w+)")


def _check_written(name: str, schema: str, mutates_args: set[str]) -> None:
    found = set(_WRITTEN.findall(schema.partition("->")[0]))
    if found != mutates_args:
        raise ValueError(
            f"custom_op: argument 'mutates_args' of {name} is {sorted(mutates_args)}, but by its schema it writes into "
            f"{sorted(found)}: {schema}"
        )


def _made(operator: Any, function: str) -> NewOperator:
    """The definition of an operator that was made from Python."""
    if isinstance(operator, CustomOpDef):
        return operator._made
    if isinstance(operator, NewOperator):
        return operator
    name = operator if isinstance(operator, str) else _operator(operator).name
    found = defined(name)
    if found is None:
        raise RuntimeError(f"{function}: no operator named {name!r} has been defined from Python")
    return found


def _operator(target: Any) -> Operator:
    if isinstance(target, CustomOpDef):
        return target._made.op
    if isinstance(target, NewOperator):
        return target.op
    if isinstance(target, Overload):
        return target.operator
    return op(target) if isinstance(target, str) else target


def _of_results(target: Any) -> Any:
    """The operator of other results than so many tensors that is meant; None for others."""
    from taeda_tensor_core.library import _custom_results

    return _custom_results.known(target)


def _decorated(take: Callable[[Callable], Any], fn: Callable | None) -> Any:
    if fn is not None:
        take(fn)
        return fn

    def decorate(function: Callable) -> Callable:
        take(function)
        return function

    return decorate


def register_kernel(
    op: Any,
    device_types: str | Iterable[str] | None,
    func: Callable | None = None,
    /,
    *,
    lib: Library | None = None,
) -> Any:
    """Give an operator's function for these device types; with `func` None a decorator.

    None and "default" are every device that has no function of its own; one for a kind of device that is not there is
    never asked.
    """
    if (listed := _of_results(op)) is not None:
        return listed.register_kernel(device_types, func)
    made = _made(op, "register_kernel")

    def take(function: Callable) -> None:
        devices = _listed(device_types)
        if devices is None or "default" in devices:
            made.composite(_as_composite(made.op, function))
        for device in devices or ():
            if device != "default" and _is_there(device):
                made.kernel(device)(as_kernel(made.op, function))

    return _decorated(take, func)


def register_fake(
    op: Any,
    func: Callable | None = None,
    /,
    *,
    lib: Library | None = None,
    _stacklevel: int = 1,
    allow_override: bool = False,
) -> Any:
    """Give an operator's function for tensors without elements; with `func` None a decorator.

    The operator, when given as "package::name", may be defined afterwards. With `allow_override` the function takes
    the place of one that there is already.
    """

    def give(made: NewOperator, function: Callable) -> None:
        made.kernel("meta", replace=allow_override)(as_kernel(made.op, function))

    if isinstance(op, str) and "::" in op and defined(op) is None and _of_results(op) is None:
        return _decorated(
            lambda function: awaited.setdefault(op, []).append(lambda made: give(made, function)), func
        )
    if (listed := _of_results(op)) is not None:
        return _decorated(listed.register_fake, func)
    made = _made(op, "register_fake")
    return _decorated(lambda function: give(made, function), func)


#: The older name of `register_fake`.
impl_abstract = register_fake


def _not_there(name: str, instead: str) -> Callable[..., NoReturn]:
    def absent(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"library.{name} is not there: {instead}")

    absent.__name__ = absent.__qualname__ = name
    absent.__doc__ = f"Raises NotImplementedError: {instead}."
    return absent


register_torch_dispatch = _not_there(
    "register_torch_dispatch", "write __torch_dispatch__ in the class or mode"
)
get_kernel = _not_there("get_kernel", "Operator.kernels() says who registered which; call the operator")
fallthrough_kernel = _not_there("fallthrough_kernel", "a layer goes on by calling the operator it was given")


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Library | None = None) -> None:
    """Let an operator's real floating-point tensors be of a dtype in blocks of autocast for a kind of device.

    Raises:
        ValueError: Autocast knows no such kind of device.
    """
    from taeda_tensor_core.amp import is_autocast_available
    from taeda_tensor_core.library import _autocast

    if not is_autocast_available(device_type):
        raise ValueError(f"Unknown device type: {device_type}")
    operator = _operator(op)
    _autocast.give(operator, device_type, _autocast.casting(operator, cast_inputs))


def register_autograd(
    op: Any, backward: Callable, /, *, setup_context: Callable | None = None, lib: Library | None = None
) -> None:
    """Give an operator's gradient: `backward(ctx, *grads)` returns one for each argument."""
    if (listed := _of_results(op)) is not None:
        listed.register_autograd(backward, setup_context=setup_context)
        return
    made = _made(op, "register_autograd")
    made.derivative(_as_derivative(made.op, backward, setup_context))


def register_vmap(op: Any, func: Callable | None = None, /, *, lib: Library | None = None) -> Any:
    """Give an operator's rule for vmap: `func(info, in_dims, *args)` returns (results, their batch dimensions)."""
    if (listed := _of_results(op)) is not None:
        return listed.register_vmap(func)
    made = _made(op, "register_vmap")
    return _decorated(lambda function: made.batching(_as_batching(made.op, function)), func)


def define(qualname: Any, schema: str, *, lib: Library | None = None, tags: Any = ()) -> Any:
    """Define the operator "package::name" with a schema "(Tensor x) -> Tensor".

    `define(library, "name(...) -> ...")` is a decorator of the function that the operator is made of.

    Raises:
        ValueError: The name has no package, or the schema does not begin with the arguments.
    """
    if isinstance(qualname, Library):
        home = qualname

        def take(function: Callable) -> None:
            home.define(schema, tags=tags)
            home.impl(schema.partition("(")[0].strip(), function)

        return _decorated(take, None)
    space, name = split_name(qualname, "define")
    if not schema.lstrip().startswith("("):
        raise ValueError(f"define: expected a schema like '(Tensor x) -> Tensor', found {schema!r}")
    return (lib or _library(space)).define(f"{space}::{name}{schema.strip()}", tags=tags)


@contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    """A library for a block, at whose end all that it registered is taken away."""
    with Library(*args, **kwargs) as library:
        yield library


def impl(
    qualname: Any, types: str | Sequence[str], func: Callable | None = None, *, lib: Library | None = None
) -> Any:
    """Give an operator's function for device types or one of PyTorch's dispatch keys; with `func` None a decorator.

    Also `impl(library, "name", "CPU")`.
    """
    if isinstance(qualname, Library):
        home, name, key = qualname, types, func if isinstance(func, str) else ""
        return _decorated(lambda function: home.impl(name, function, key), None)
    keys = _listed(types) or []
    space, _ = split_name(qualname, "impl")
    owner = lib or _library(space)

    def take(function: Callable) -> None:
        for key in keys:
            owner.impl(qualname, function, "" if key == "default" else key)

    return _decorated(take, func)


def get_ctx() -> FakeContext:
    """In a function for tensors without elements: what gives sizes that depend on values, `new_dynamic_size()`.

    `opcheck` asks for it; elsewhere tensors without elements have sizes that are numbers.

    Raises:
        NotImplementedError: The function was not called by `opcheck`.
    """
    found = context()
    if found is None:
        raise NotImplementedError(
            "get_ctx: results whose size depends on data cannot be told from tensors without elements"
        )
    return found


def triton_op(
    name: str, fn: Callable | None = None, /, *, mutates_args: Any = (), schema: str | None = None
) -> Any:
    """An operator of a function that calls kernels written for Triton: `custom_op` of it.

    Nothing compiles such kernels here; what the function calls instead, and its checks, run as they are.

    Example:
        >>> @taeda.library.triton_op("mine::twice", mutates_args=())
        ... def twice(x: taeda.Tensor) -> taeda.Tensor:
        ...     return 2 * x
        >>> twice(taeda.ones(2))
        tensor([2., 2.])
    """
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def wrap_triton(kernel: Any, /) -> Any:
    """The kernel itself, which Triton launches."""
    return kernel
