"""Overloads of PyTorch whose arguments stand in another order, or are others, than those of the operator they go to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taeda_tensor_core import _C
from taeda_tensor_core.library._aten_forms import written


def write(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A form that writes to what it is given by name: the operator takes that first."""
    outputs = written(operator)
    given = {outputs.get(key, key): value for key, value in kwargs.items()}
    if not given.keys() & set(outputs.values()):
        return _C._call_operator(operator, args, kwargs)
    places = [a.name for a in operator.arguments if not a.written and not a.keyword_only]
    given |= dict(zip(places, args, strict=False))
    return _C._call_operator(operator, (), given)


def _native_dropout(operator: Any, input: Any, p: float, train: bool | None = None) -> Any:
    if isinstance(train, _C.Generator):  # the operator's own argument
        return _C._call_operator(operator, (input, p, train), {})
    if train is None or train:
        return _C._call_operator(operator, (input, p), {})
    return input.clone(), _C.ones_like(input, dtype=_C.bool)


def _native_group_norm(operator: Any, *args: Any, **kwargs: Any) -> Any:
    from taeda_tensor_core._functions import native_group_norm

    return native_group_norm(*args, **kwargs)


def _batch_norm_no_stats(
    operator: Any, input: Any, weight: Any, bias: Any, training: bool, momentum: float, eps: float
) -> Any:
    return _C.native_batch_norm(input, weight, bias, None, None, training, momentum, eps)


def _polygamma(operator: Any, n: int, self: Any) -> Any:
    return _C._call_operator(operator, (), {"n": n, "self": self})  # the method has them in the other order


def _resized(operator: Any, input: Any, output_size: Any, *rest: Any, **named: Any) -> Any:
    """`upsample_...` of a size or of factors, which is the last argument."""
    *corners, factors = [*rest, *(named[key] for key in ("align_corners", "scale_factors") if key in named)]
    if output_size is None:
        output_size = [int(size * factor) for size, factor in zip(input.shape[2:], factors, strict=True)]
    return _C._call_operator(operator, (input, output_size, *corners, *(factors or ())), {})


_CALLS: dict[str, Callable[..., Any]] = {
    "aten.native_dropout.default": _native_dropout,
    "aten.native_group_norm.default": _native_group_norm,
    "aten.polygamma.default": _polygamma,
    "aten._native_batch_norm_legit.no_stats": _batch_norm_no_stats,
}


def call_of(overload: Any) -> Callable[..., Any] | None:
    """What an overload's call does instead of the operator's, with the operator before its arguments."""
    name = str(overload)
    if name.endswith(".vec") and "upsample_" in name:
        return _resized
    return _CALLS.get(name)
