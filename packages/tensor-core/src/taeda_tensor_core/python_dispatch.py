"""`__torch_dispatch__`: modes and classes that stand between operators and their computation.

Where `__torch_function__` answers for public functions, this answers for the operators they consist of: no composite
arrives, those of a backward pass do. A mode sees all calls of the thread that entered it; a class sees those that are
given one of its instances. Modes nest: inside the method the next outer mode is in force.

There are two kinds of modes. `TorchDispatchMode` stands below autograd: gradients have been recorded when it is asked,
what its method calls is not recorded, and it sees what autograd itself calls. It meets layers and convolutions in
PyTorch's operators for them, `addmm` and `aten.convolution`, which programs that count costs look for. Modes and
classes meet a change of dtype as `aten._to_copy`, which nearly every wrapping class of PyTorch's programs answers.
Calls have the form that they have in PyTorch: its overloads ("add.Tensor", "sum.dim_IntList"), Python's numbers as
numbers, sizes as lists (library/_aten_forms.py).
Classes of programs stand there too, as in PyTorch: a tensor of such a class is recorded like any other, and what its
method calls is not. `PreDispatchMode` stands above autograd: what it calls is recorded. So do the library's own classes
(sparse, nested, masked and quantized tensors), through which gradients flow.

Example:
    >>> class Names(TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func.name())
    ...         return func(*args, **(kwargs or {}))
    >>> with Names():
    ...     x = taeda.ones(2) + 1
    aten::ones
    aten::add.Tensor
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from taeda_registry.forks import held_at_fork
from taeda_tensor_core import _C
from taeda_tensor_core._C import Tensor
from taeda_tensor_core.library import POSITIONS, Layer, Operator, Overload, operators
from taeda_tensor_core.library import op as find_op
from taeda_tensor_core.library._aten_calls import convolution
from taeda_tensor_core.library._aten_forms import as_aten, renamed
from taeda_tensor_core.library._aten_names import define
from taeda_tensor_core.library._class_forms import as_theirs, linear, taken_apart
from taeda_tensor_core.library._operators import defined
from taeda_tensor_core.library._table import overload

__all__ = [
    "PreDispatchMode",
    "TorchDispatchMode",
    "is_traceable_wrapper_subclass",
    "return_and_correct_aliasing",
]


_ABOVE, _BELOW = "dispatch", "below_autograd"


class _Thread(threading.local):
    """The modes of a thread by their position, the innermost last."""

    def __init__(self) -> None:
        self.modes: dict[str, list[TorchDispatchMode]] = {_ABOVE: [], _BELOW: []}
        self.before: list[tuple[bool, bool]] = []  # whether the layer was on, and held off, before each mode


_thread = _Thread()


class _Again:
    """Context in which a layer is on again, for calls inside a method that it has called."""

    def __init__(self, position: str) -> None:
        self._position = POSITIONS[position]

    def __enter__(self) -> None:
        self._before = _C._exclude_layer(self._position, False)

    def __exit__(self, *_: object) -> None:
        _C._exclude_layer(self._position, self._before)


def _given(op: Operator, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """Arguments without those at the end, or by name, that are as the schema's defaults."""
    facts = op.arguments
    count = len(args)
    while count and facts[count - 1].has_default and _same(args[count - 1], facts[count - 1].default):
        count -= 1
    by_name = {a.name: a for a in facts if a.keyword_only}
    named = {name: value for name, value in kwargs.items() if not _same(value, by_name[name].default)}
    return args[:count], named


def _same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and not isinstance(value, Tensor) and value == default


def _tensors(items: Any) -> Iterator[Tensor]:
    for item in items:
        if isinstance(item, Tensor):
            yield item
        elif isinstance(item, list | tuple):
            yield from _tensors(item)


def _dispatches(cls: type) -> bool:
    found = getattr(cls, "__torch_dispatch__", None)
    return cls is not Tensor and found is not None and found is not _C._disabled_torch_dispatch_impl


def _position_of(cls: type) -> str:
    """Where a class is asked: those of the library, which record what they compute, above autograd."""
    return _ABOVE if getattr(cls, "_asks_for_own_form", False) else _BELOW


def _classes(args: tuple, kwargs: dict[str, Any]) -> list[type]:
    """Classes of the arguments that answer, subclasses before their bases."""
    found: list[type] = []
    for tensor in _tensors((*args, *kwargs.values())):
        cls = type(tensor)
        if not _dispatches(cls) or cls in found:
            continue
        place = next((i for i, other in enumerate(found) if issubclass(cls, other)), len(found))
        found.insert(place, cls)
    return found


#: Operators that PyTorch knows as one, and what they change.
_COPIES = {"cast": "dtype", "to_device": "device"}
#: Composites that are met whole: what makes tensors, and what has no gradient and decides by elements. What wraps
#: tensors of a device has no memory there to be copied.
_MAKER_NAMES = (
    "arange empty empty_like empty_strided eye full full_like linspace logspace new_empty new_full new_ones "
    "new_zeros ones ones_like rand rand_like randint randint.low randint_like randint_like.low randn randn_like "
    "randperm scalar_tensor tril_indices triu_indices zeros zeros_like"
)
_MAKERS = frozenset(_MAKER_NAMES.split())
_WHOLE = _MAKERS | {
    "allclose", "copy_", "count_nonzero", "equal", "histogramdd", "histogramdd.edges",
    "nonzero_static", "one_hot", "repeat_interleave.counts", "to_device", "zero_",
}  # fmt: skip


class _Dispatch(Layer):
    """The layer that asks, at one of the two positions."""

    asks_at: str | None = None
    _numbers: list[int] = []

    def __init__(self, position: str, fresh: list[Operator]) -> None:
        self.asks_at = position
        super().__init__("__torch_dispatch__", position, fresh)

    def covers(self) -> list[str]:
        """The operators before which it stands: none where its making was interrupted."""
        return [operator.name for operator in self._operators] if self._numbers else []

    def __call__(self, op: Operator, args: tuple, kwargs: dict[str, Any]) -> Any:
        below = self.asks_at == _BELOW
        if (made := defined(op.name)) is not None and made.parts is not None:
            with _Again(self.asks_at):
                return made.parts(*args, **kwargs)
        if below and op.name == "linear":
            with _Again(_BELOW):
                return linear(*args)
        if below:
            op, args, kwargs = _as_one_there(op, args, kwargs)
        types = tuple(_classes(args, kwargs))
        classes = [cls for cls in types if _position_of(cls) == self.asks_at]
        if below and (classes or _of_programs()) and (parts := taken_apart(op, bool(classes))) is not None:
            with _Again(_BELOW):
                return parts(*args, **kwargs)
        theirs = as_theirs(op.name, args, kwargs) if below and (classes or _of_programs()) else None
        if op.name == "to_device" and args[0].device == args[1]:
            return args[0]
        op, args, kwargs = _as_copied_there(op, args, kwargs)
        if kwargs.get("requires_grad") and op.name in _MAKERS:
            return self(op, args, kwargs | {"requires_grad": False}).requires_grad_()
        args, kwargs = _given(op, args, kwargs)
        return self._answer(_Call(op, args, kwargs, self.asks_at, types, theirs), classes)

    def _answer(self, call: _Call, classes: list[type]) -> Any:
        """What the modes say, or the classes after them; those below autograd are asked with classes above it too."""
        for position in (_ABOVE, _BELOW) if classes and self.asks_at == _ABOVE else (self.asks_at,):
            if (result := call.ask_mode(_thread.modes[position])) is not NotImplemented:
                return result
        for cls in classes:
            if (result := call.ask(cls, cls.__name__, True)) is not NotImplemented:
                return result
        if not call.asked or len(classes) < len(call.types):
            return call.op(*call.args, **call.kwargs)
        raise TypeError(
            f"{call.op.default.name()}: __torch_dispatch__ of all of them returned NotImplemented: "
            f"{', '.join(call.asked)}"
        )


def _of_programs() -> bool:
    """Whether the mode that is asked next knows PyTorch's operators alone."""
    modes = _thread.modes[_BELOW]
    return bool(modes) and not getattr(modes[-1], "_asks_for_own_form", False)


_Told = tuple[Operator, tuple, dict[str, Any]]


def _as_one_there(op: Operator, args: tuple, kwargs: dict[str, Any]) -> _Told:
    """A call below autograd as PyTorch's operator for several of ours, or for a case of it."""
    if (found := convolution(op.name, args)) is not None:
        define("convolution")
        return find_op("aten::convolution"), found, kwargs
    if (other := renamed(op.name, args, kwargs)) is not None:
        name, args, kwargs = other
        define(name.removeprefix("aten::"))
        return find_op(name), args, kwargs
    return op, args, kwargs


def _as_copied_there(op: Operator, args: tuple, kwargs: dict[str, Any]) -> _Told:
    """Changes of dtype and device, and parts that go backwards, as PyTorch's operators for them."""
    if op.name == "slice" and args[2:] == (None, None, -1):
        return find_op("flip"), (args[0], [args[1]]), kwargs
    if op.name in _COPIES:
        define("_to_copy")
        return find_op("aten::_to_copy"), args[:1], {_COPIES[op.name]: args[1], **kwargs}
    return op, args, kwargs


def as_told(op: Operator, args: tuple, kwargs: dict[str, Any]) -> tuple[Any, tuple, dict[str, Any]]:
    """A call of an operator that nothing has been taken apart of, as PyTorch's overload and its arguments."""
    if op.name in ("cast", "to_dtype"):
        return overload("to", "dtype"), args[:2], {}
    if op.name == "sub" and (other := renamed(op.name, args, kwargs)) is not None:
        name, args, kwargs = other
        op = find_op(name)
    op, args, kwargs = _as_copied_there(op, args, kwargs)
    args, kwargs = _given(op, args, kwargs)
    while args and _repeats(args[-1], op.arguments[len(args) - 1]):
        args = args[:-1]
    if op.default.namespace != "aten":
        return op.default, args, kwargs
    name, args, kwargs = as_aten(op, args, kwargs)
    return overload(op.name, name), args, kwargs


def _repeats(value: Any, argument: Any) -> bool:
    """Whether a size is the schema's default for each dimension."""
    default = argument.default if argument.has_default else None
    sizes = isinstance(value, list | tuple) and isinstance(default, list | tuple) and len(default) == 1
    return sizes and len(value) > 0 and all(_same(item, default[0]) for item in value)


class _Call:
    """One call, on its way from one who may answer to the next."""

    def __init__(
        self, op: Operator, args: tuple, kwargs: dict[str, Any], position: str, types: tuple, theirs: Any
    ) -> None:
        self.op, self.args, self.kwargs, self.position = op, args, kwargs, position
        self.types, self.theirs = types, theirs
        self.asked: list[str] = []

    def ask_mode(self, modes: list[TorchDispatchMode]) -> Any:
        """The innermost mode, which is off meanwhile."""
        if not modes:
            return NotImplemented
        mode = modes[-1]
        try:
            modes.pop()
            return self.ask(mode, f"mode {type(mode).__name__}", bool(modes or self.types))
        finally:
            modes.append(mode)

    def ask(self, who: Any, text: str, again: bool) -> Any:
        """`again`: there are others who may answer for what the method calls."""
        self.asked.append(text)
        with _Again(self.position) if again else contextlib.nullcontext():
            return who.__torch_dispatch__(*self.told(who))

    def told(self, who: Any) -> tuple[Overload, tuple, tuple, dict[str, Any]]:
        """What is handed over: to most in PyTorch's form, to what belongs to the operator table in its own."""
        if self.theirs is not None:
            return self.theirs[0], self.types, self.theirs[1], {}
        if getattr(who, "_asks_for_own_form", False) or self.op.default.namespace != "aten":
            return self.op.default, self.types, self.args, self.kwargs
        name, args, kwargs = as_aten(self.op, self.args, self.kwargs)
        return overload(self.op.name, name), self.types, args, kwargs


_layers: list[_Dispatch] = []
#: How many operators had been in the core's table when a position's layer was put before them.
_covered = {_ABOVE: 0, _BELOW: 0}
_lock = held_at_fork(threading.Lock())


def start_for(cls: type) -> None:
    """Put the layer before every operator where a class is asked."""
    start(_position_of(cls))


def start(position: str) -> None:
    """Put the layer before every operator that there is by now; composites are met in what they consist of."""
    count = _C._operator_count()
    if count == _covered[position]:
        return
    with _lock:
        seen = {name for layer in _layers if layer.asks_at == position for name in layer.covers()}
        fresh = [o for o in operators() if o.name not in seen and (o.kind != "composite" or o.name in _WHOLE)]
        if fresh:
            layer = _Dispatch.__new__(_Dispatch)
            _layers.append(layer)  # before it is in the table, so that whatever Ctrl-C leaves there is known
            layer.__init__(position, fresh)
        _covered[position] = count


class TorchDispatchMode:
    """Context in which this object's `__torch_dispatch__(func, types, args, kwargs)` computes in operators' place.

    `func` is an operator of `taeda.ops` (`taeda.library.Overload`); calling it goes on below. The mode stands below
    autograd: it sees what is left when gradients have been recorded, and the operators of a backward pass. What its
    method calls is not recorded; what the method returns takes the operator's place in the graph.
    """

    _position = _BELOW

    def __torch_dispatch__(
        self, func: Overload, types: tuple, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define __torch_dispatch__")

    def __enter__(self) -> TorchDispatchMode:
        at = self._position
        start(at)
        place = POSITIONS[at]  # held off while a method runs, which may enter modes for what it calls
        modes, before = _thread.modes[at], _thread.before
        depths = len(modes), len(before)
        try:
            before.append((_C._include_layer(place, True), _C._exclude_layer(place, False)))
            modes.append(self)
        except BaseException:  # Ctrl-C
            del modes[depths[0] :], before[depths[1] :]
            raise
        return self

    def __exit__(self, *_: object) -> None:
        at = self._position
        included, excluded = _thread.before[-1]
        del _thread.modes[at][-1], _thread.before[-1]  # no calls: Ctrl-C comes between calls
        _C._include_layer(POSITIONS[at], included)
        _C._exclude_layer(POSITIONS[at], excluded)

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> TorchDispatchMode:
        """A new mode; enter it with `with`."""
        return cls(*args, **kwargs)


class BaseTorchDispatchMode(TorchDispatchMode):
    """The mode that changes nothing."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class PreDispatchMode(TorchDispatchMode):
    """A mode above autograd: it sees operators before gradients are recorded, and what its method calls is recorded.

    For programs that put other tensors or other operators into the place of those of the program.
    """

    _position = _ABOVE


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    modes = _get_current_dispatch_mode_stack()
    return modes[-1] if modes else None


def _get_current_dispatch_mode_stack() -> list[TorchDispatchMode]:
    return list(_thread.modes[_BELOW])


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether a mode is in force."""
    return any(_thread.modes.values())


any_torch_dispatch_mode_on_stack = is_in_torch_dispatch_mode


def is_in_any_mode_without_ignore_compile_internals() -> bool:
    """Whether a mode that answers for operators is in force."""
    return bool(_get_current_dispatch_mode_stack())


def _push_mode(mode: TorchDispatchMode) -> None:
    """Enter a mode."""
    mode.__enter__()


def _pop_mode(k: Any = None) -> TorchDispatchMode:
    """Leave the innermost mode, and give it."""
    mode = _get_current_dispatch_mode()
    if mode is None:
        raise AssertionError("_pop_mode: no mode is in force")
    mode.__exit__(None, None, None)
    return mode


@contextlib.contextmanager
def _pop_mode_temporarily(k: Any = None) -> Iterator[TorchDispatchMode]:
    """Context without the innermost mode, which it gives."""
    mode = _pop_mode()
    try:
        yield mode
    finally:
        _push_mode(mode)


@contextlib.contextmanager
def _disable_current_modes() -> Iterator[list[TorchDispatchMode]]:
    """Context in which no mode is in force, those outside of it."""
    if not any(_thread.modes.values()):
        yield []
        return
    held = {position: list(modes) for position, modes in _thread.modes.items()}
    flat = [mode for modes in held.values() for mode in modes]
    for mode in reversed(flat):
        TorchDispatchMode.__exit__(mode)
    try:
        yield flat
    finally:
        for mode in flat:
            TorchDispatchMode.__enter__(mode)


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether tensors of a class say what they wrap."""
    wraps = hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")
    return issubclass(t, Tensor) and t is not Tensor and wraps


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether a tensor says what it wraps: `__tensor_flatten__` and `__tensor_unflatten__`."""
    return is_traceable_wrapper_subclass_type(type(t))


def transform_subclass(t: Any, callback: Any, outer_size: Any = None, outer_stride: Any = None) -> Tensor:
    """A wrapper like `t` of what `callback(name, tensor)` gives for each tensor that it wraps.

    Args:
        t: A tensor of a class with `__tensor_flatten__` and `__tensor_unflatten__`.
        callback: Gets the name of an attribute and its tensor; gives the tensor in its place.
        outer_size: Sizes of the result; those of `t` by default.
        outer_stride: Its strides, likewise.
    """
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    size = t.size() if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    return type(t).__tensor_unflatten__(inner, context, size, stride)


def return_and_correct_aliasing(func: Overload, args: tuple, kwargs: dict[str, Any], out: Any) -> Any:
    """The result as the operator gives it: the argument itself where the operator writes into its first one."""
    operator = getattr(func, "operator", None)  # functions of several outputs by a mask have none
    return args[0] if operator is not None and operator.form == "inplace" else out


def wrapped_number(tensor: Tensor) -> Any:
    """The element of a wrapping tensor as Python's number, which its class is asked for as `aten._local_scalar_dense`.

    NotImplemented for classes of this package, whose tensors are brought to the host instead.

    Raises:
        TypeError: The class does not answer.
    """
    from taeda_tensor_core import ops

    cls = type(tensor)
    if not _dispatches(cls) or getattr(cls, "_asks_for_own_form", False):
        return NotImplemented
    func = ops.aten._local_scalar_dense.default
    found = cls.__torch_dispatch__(func, (cls,), (tensor,), {})
    if found is NotImplemented:
        raise TypeError(f"{func.name()}: __torch_dispatch__ of {cls.__name__} returned NotImplemented")
    return found


def _beginning_at(shape: Tensor, offset: int) -> Tensor:
    """A tensor of this shape and these strides, whose first element is that one of its storage."""
    reach = (
        1 + offset + sum((size - 1) * step for size, step in zip(shape.shape, shape.stride(), strict=True))
    )
    whole = _C.empty((max(reach, offset),), dtype=shape.dtype, device="meta")
    return whole.as_strided(shape.shape, shape.stride(), offset).detach()


def _shape_alone(size: Any, strides: Any, offset: Any, dtype: Any) -> Tensor:
    if strides is None:
        empty = _C.empty(tuple(size), dtype=dtype, device="meta")
    else:
        empty = _C.empty_strided(tuple(size), tuple(strides), dtype=dtype, device="meta")
    return _beginning_at(empty, offset) if offset else empty


def make_wrapper_subclass(
    cls: type,
    size: Any,
    strides: Any = None,
    storage_offset: Any = None,
    memory_format: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    **_others: Any,
) -> Tensor:
    """An instance of `cls` that has a shape and a dtype but no memory: what it is, its attributes say.

    Raises:
        RuntimeError: `cls` has no `__torch_dispatch__`, so that nobody could compute with it.
    """
    if not _dispatches(cls):
        raise RuntimeError(f"_make_wrapper_subclass: {cls.__name__} must define __torch_dispatch__")
    if any(_thread.modes.values()):
        with _disable_current_modes():  # it has no elements of its own
            empty = _shape_alone(size, strides, storage_offset, dtype)
    else:
        empty = _shape_alone(size, strides, storage_offset, dtype)
    made = Tensor._make_subclass(cls, empty, requires_grad)
    made.__dict__["_wrapped_device"] = _C.device("cpu" if device is None else device)
    return made
