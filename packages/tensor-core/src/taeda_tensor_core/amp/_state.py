"""State of autocast on each thread, and the layer that casts."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

from taeda_registry.forks import held_at_fork
from taeda_tensor_core import _C
from taeda_tensor_core._C import Tensor
from taeda_tensor_core.amp import policies
from taeda_tensor_core.library import _autocast
from taeda_tensor_core.library._layers import POSITIONS, Layer, split
from taeda_tensor_core.library._table import Operator, operators

_POSITION = POSITIONS["autocast"]


def accelerator_kind() -> str:
    """The kind of device that programs mean when they name none: the first reserved one."""
    return _C._reserved_devices()[0]


class _Thread(threading.local):
    """What one thread has switched on."""

    def __init__(self) -> None:
        self.enabled: dict[str, bool] = {}
        self.dtypes: dict[str, Any] = {}
        self.nesting = 0
        self.caching = True
        #: By the tensor, the dtype and whether a graph is recorded: the tensor, its version, the cast.
        self.casts: dict[tuple[int, Any, bool], tuple[Tensor, int, Tensor]] = {}


_thread = _Thread()


def _kind(device_type: str) -> str:
    if not isinstance(device_type, str):
        raise TypeError(f"autocast: argument 'device_type' must be a str, found {type(device_type).__name__}")
    return device_type.partition(":")[0]


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast knows a kind of device: the cpu, reserved kinds, and those that are there."""
    kind = _kind(device_type)
    return kind != "meta" and (kind in _C._reserved_devices() or kind in _C._backend_names())


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Whether autocast is on for a kind of device on this thread; by default for the first reserved kind."""
    return _thread.enabled.get(accelerator_kind() if device_type is None else _kind(device_type), False)


def set_autocast_enabled(*args: Any) -> None:
    """Switch autocast for a kind of device on this thread: (device_type, enabled).

    Or (enabled) for the first reserved kind.
    """
    kind, enabled = args if len(args) == 2 else (accelerator_kind(), *args)
    _thread.enabled[_kind(kind)] = bool(enabled)
    on = any(_thread.enabled.values())
    if on:
        _install()
    if _layer is not None:
        _C._include_layer(_POSITION, on)


def get_autocast_dtype(device_type: str) -> Any:
    """The lower precision for a kind of device: bfloat16 on the cpu, else float16, unless another was set."""
    kind = _kind(device_type)
    return _thread.dtypes.get(kind, _C.bfloat16 if kind == "cpu" else _C.float16)


def set_autocast_dtype(device_type: str, dtype: Any) -> None:
    """Choose the lower precision for a kind of device on this thread."""
    if not isinstance(dtype, _C.dtype):
        raise TypeError(f"set_autocast_dtype: argument 'dtype' must be a dtype, found {type(dtype).__name__}")
    _thread.dtypes[_kind(device_type)] = dtype


def is_autocast_cache_enabled() -> bool:
    """Whether casts of parameters are kept until the outermost block ends."""
    return _thread.caching


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Keep casts of parameters, or make them anew each time."""
    _thread.caching = bool(enabled)


def clear_autocast_cache() -> None:
    """Forget casts of parameters."""
    _thread.casts.clear()


def nesting() -> int:
    """In how many blocks this thread is."""
    return _thread.nesting


def set_nesting(depth: int) -> None:
    """Say in how many blocks this thread is."""
    _thread.nesting = depth


def autocast_increment_nesting() -> int:
    """Say that a block begins; how deep it is."""
    _thread.nesting += 1
    return _thread.nesting


def autocast_decrement_nesting() -> int:
    """Say that a block ends; how deep the one around it is."""
    _thread.nesting -= 1
    return _thread.nesting


# --- casting ---


def _eligible(tensor: Tensor) -> bool:
    """Whether autocast touches a tensor: real floating but float64, and of a kind that it is on for."""
    dtype = tensor.dtype
    return (
        dtype.is_floating_point and dtype is not _C.float64 and _thread.enabled.get(tensor.device.type, False)
    )


def _cast(tensor: Tensor, dtype: Any) -> Tensor:
    if tensor.dtype is dtype:
        return tensor
    # A parameter is used many times in a step; its cast is a node of the graph like any, where one is recorded.
    keep = (
        _thread.caching and _thread.nesting > 0 and tensor.requires_grad and tensor.is_leaf
        and dtype is not _C.float32
    )  # fmt: skip
    if not keep:
        return tensor.to(dtype)
    key = id(tensor), dtype, _C.is_grad_enabled()
    found = _thread.casts.get(key)
    if found is None or found[1] != tensor._version:
        found = _thread.casts[key] = tensor, tensor._version, tensor.to(dtype)
    return found[2]


def _each(value: Any, change: Any) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)(_each(item, change) for item in value)
    return value


def _to_lower(tensor: Tensor) -> Tensor:
    return _cast(tensor, get_autocast_dtype(tensor.device.type)) if _eligible(tensor) else tensor


def _to_float32(tensor: Tensor) -> Tensor:
    lower = tensor.dtype is _C.float16 or tensor.dtype is _C.bfloat16
    return _cast(tensor, _C.float32) if lower and _eligible(tensor) else tensor


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return [t for item in value for t in _tensors(item)] if isinstance(value, list | tuple) else []


def _to_widest(arguments: tuple) -> tuple:
    found = [t for t in _tensors(arguments) if _eligible(t)]
    if len({t.dtype for t in found}) < 2:
        return arguments
    widest = found[0].dtype
    for tensor in found:
        widest = _C.promote_types(widest, tensor.dtype)
    return tuple(_each(a, lambda t: _cast(t, widest) if _eligible(t) else t) for a in arguments)


def _like(place: int, arguments: tuple) -> tuple:
    """The arguments in the dtype of the one at `place`."""
    dtype = arguments[place].dtype
    return tuple(_each(a, lambda t: _cast(t, dtype) if _eligible(t) else t) for a in arguments)


def _padded(arguments: tuple) -> tuple:
    """The arguments of `pad`, whose mode and number of dimensions decide."""
    input, amounts, mode, *_ = arguments
    name = f"{policies.PADDINGS.get(mode)}{len(amounts) // 2}d"
    return (_to_float32(input), *arguments[1:]) if name in policies.FLOAT32 else arguments


class _Casting(Layer):
    """Casts the arguments of the operators that have a policy."""

    def _entry(self, target: Operator) -> Any:
        family = target.name.partition(".")[0]
        if family in policies.WIDEST:
            change = _to_widest
        elif family == "pad":
            change = _padded
        elif family in policies.OF_STATE:
            names = [argument.name for argument in target.arguments]
            change = partial(_like, names.index(policies.OF_STATE[family]))
        else:
            one = _to_lower if family in policies.LOWER else _to_float32

            def change(arguments: tuple) -> tuple:
                return tuple([_each(a, one) for a in arguments])

        def cast(*arguments: Any) -> Any:
            args, kwargs = split(target, change(arguments))
            return target(*args, **kwargs)

        return _autocast.entry(target, cast)


_NAMED = policies.LOWER | policies.FLOAT32 | policies.WIDEST | policies.OF_STATE.keys() | {"pad"}


def casts(operator: Operator) -> bool:
    """Whether autocast has a policy for an operator."""
    return operator.name.partition(".")[0] in _NAMED and not _writes(operator.name)


def _writes(name: str) -> bool:
    family, _, overload = name.partition(".")
    return overload.endswith("out") or family.endswith("_")


_layer: _Casting | None = None
_lock = held_at_fork(threading.Lock())


def _install() -> None:
    """Put the layer into the operator table; it stays there."""
    global _layer
    if _layer is not None:
        return
    with _lock:
        if _layer is None:
            _layer = _Casting("autocast", "autocast", filter(casts, operators()))
