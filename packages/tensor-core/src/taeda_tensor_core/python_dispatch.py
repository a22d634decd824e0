"""`__torch_dispatch__`: modes and classes that stand between operators and their computation.

Where `__torch_function__` answers for public functions, this answers for the operators they consist of: no composite
arrives, those of a backward pass do. A mode sees all calls of the thread that entered it; a class sees those that are
given one of its instances. Modes nest: inside the method the next outer mode is in force. Gradients are recorded by
what the method calls.

Example:
    >>> class Names(TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func.name())
    ...         return func(*args, **(kwargs or {}))
    >>> with Names():
    ...     x = taeda.ones(2) + 1
    taeda::ones
    taeda::add
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from taeda_tensor_core import _C
from taeda_tensor_core._C import Tensor
from taeda_tensor_core.library._layers import POSITIONS, Layer
from taeda_tensor_core.library._table import Operator, Overload, operators

__all__ = ["TorchDispatchMode", "is_traceable_wrapper_subclass", "return_and_correct_aliasing"]


class _Thread(threading.local):
    """The modes of a thread, the innermost last."""

    def __init__(self) -> None:
        self.modes: list[TorchDispatchMode] = []


_thread = _Thread()


class _Again:
    """Context in which the layer is on again, for calls inside a method that it has called."""

    def __enter__(self) -> None:
        self._before = _C._exclude_layer(POSITIONS["dispatch"], False)

    def __exit__(self, *_: object) -> None:
        _C._exclude_layer(POSITIONS["dispatch"], self._before)


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


class _Dispatch(Layer):
    """The layer that asks."""

    def __call__(self, op: Operator, args: tuple, kwargs: dict[str, Any]) -> Any:
        args, kwargs = _given(op, args, kwargs)
        func, types = op.default, _classes(args, kwargs)
        asked = []
        if _thread.modes:
            mode = _thread.modes.pop()
            try:
                result = _asked(mode, bool(_thread.modes or types), func, types, args, kwargs)
            finally:
                _thread.modes.append(mode)
            if result is not NotImplemented:
                return result
            asked.append(f"mode {type(mode).__name__}")
        for cls in types:
            result = _asked(cls, True, func, types, args, kwargs)
            if result is not NotImplemented:
                return result
            asked.append(cls.__name__)
        if not asked:
            return func(*args, **kwargs)
        raise TypeError(
            f"{func.name()}: __torch_dispatch__ of all of them returned NotImplemented: {', '.join(asked)}"
        )


def _asked(
    who: Any, again: bool, func: Overload, types: list[type], args: tuple, kwargs: dict[str, Any]
) -> Any:
    if not again:
        return who.__torch_dispatch__(func, tuple(types), args, kwargs)
    with _Again():
        return who.__torch_dispatch__(func, tuple(types), args, kwargs)


_layers: list[_Dispatch] = []
_seen: set[str] = set()
_lock = threading.Lock()


def start() -> None:
    """Put the layer before every operator that there is by now; composites are met in what they consist of."""
    with _lock:
        fresh = [o for o in operators() if o.name not in _seen and o.kind != "composite"]
        if fresh:
            _layers.append(_Dispatch("__torch_dispatch__", "dispatch", fresh))
            _seen.update(o.name for o in fresh)


class TorchDispatchMode:
    """Context in which this object's `__torch_dispatch__(func, types, args, kwargs)` stands in operators' place.

    `func` is an operator of `taeda.ops` (`taeda.library.Overload`); calling it goes on below.
    """

    def __torch_dispatch__(
        self, func: Overload, types: tuple, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define __torch_dispatch__")

    def __enter__(self) -> TorchDispatchMode:
        start()
        if not _thread.modes:
            _thread.before = _C._include_layer(POSITIONS["dispatch"], True)
        _thread.modes.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _thread.modes.pop()
        if not _thread.modes:
            _C._include_layer(POSITIONS["dispatch"], _thread.before)

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> TorchDispatchMode:
        """A new mode; enter it with `with`."""
        return cls(*args, **kwargs)


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    return _thread.modes[-1] if _thread.modes else None


def _get_current_dispatch_mode_stack() -> list[TorchDispatchMode]:
    return list(_thread.modes)


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether a tensor says what it wraps: `__tensor_flatten__` and `__tensor_unflatten__`."""
    wraps = hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")
    return isinstance(t, Tensor) and type(t) is not Tensor and wraps


def return_and_correct_aliasing(func: Overload, args: tuple, kwargs: dict[str, Any], out: Any) -> Any:
    """The result as the operator gives it: the argument itself where the operator writes into its first one."""
    return args[0] if func.overloadpacket.form == "inplace" else out


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
    options = {"dtype": dtype, "device": "meta"}
    empty = (
        _C.empty(tuple(size), **options)
        if strides is None
        else _C.empty_strided(tuple(size), tuple(strides), **options)
    )
    made = Tensor._make_subclass(cls, empty, requires_grad)
    made.__dict__["_wrapped_device"] = _C.device("cpu" if device is None else device)
    return made
