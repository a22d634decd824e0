"""The layer of autocast: it casts the arguments of the operators that have a policy."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

from taeda_registry.forks import held_at_fork
from taeda_tensor_core import _C
from taeda_tensor_core._C import Tensor
from taeda_tensor_core.amp import _state, policies
from taeda_tensor_core.library import _autocast
from taeda_tensor_core.library._layers import POSITIONS, Layer, split
from taeda_tensor_core.library._table import Operator, operators


def _each(value: Any, change: Any) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)(_each(item, change) for item in value)
    return value


def _to_lower(tensor: Tensor) -> Tensor:
    return (
        _state.cast(tensor, _state.get_autocast_dtype(tensor.device.type))
        if _state.eligible(tensor)
        else tensor
    )


def _to_float32(tensor: Tensor) -> Tensor:
    lower = tensor.dtype is _C.float16 or tensor.dtype is _C.bfloat16
    return _state.cast(tensor, _C.float32) if lower and _state.eligible(tensor) else tensor


def tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return [t for item in value for t in tensors(item)] if isinstance(value, list | tuple) else []


def _to_widest(arguments: tuple) -> tuple:
    found = [t for t in tensors(arguments) if _state.eligible(t)]
    if len({t.dtype for t in found}) < 2:
        return arguments
    widest = found[0].dtype
    for tensor in found:
        widest = _C.promote_types(widest, tensor.dtype)
    return tuple(_each(a, lambda t: _state.cast(t, widest) if _state.eligible(t) else t) for a in arguments)


def _like(place: int, arguments: tuple) -> tuple:
    """The arguments in the dtype of the one at `place`."""
    dtype = arguments[place].dtype
    return tuple(_each(a, lambda t: _state.cast(t, dtype) if _state.eligible(t) else t) for a in arguments)


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


def include(on: bool) -> None:
    """Switch the layer on this thread; it is put into the operator table first, where it stays."""
    global _layer
    if _layer is None:
        with _lock:
            if _layer is None:
                _layer = _Casting("autocast", "autocast", filter(casts, operators()))
    _C._include_layer(POSITIONS["autocast"], on)
