"""Random tensors for tests."""

from __future__ import annotations

import math
from typing import Any

from taeda_tensor_core import _C
from taeda_tensor_core._C import Tensor
from taeda_tensor_core._info import finfo, iinfo


def make_tensor(
    *shape: Any,
    dtype: Any,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of uniform random elements of ``[low, high)``.

    Args:
        *shape: Sizes, or one sequence of them.
        dtype: Of the elements.
        device: Where they are.
        low: By default -9, for uint8 and bool 0; at least the dtype's smallest number.
        high: By default 9 (10 for integers, 2 for bool); at most the dtype's largest number.
        requires_grad: Record operations on the result.
        noncontiguous: Leave a gap behind every element.
        exclude_zero: Put the dtype's smallest positive number in the place of zeros.
        memory_format: The order of the elements in memory; not with `noncontiguous`.

    Raises:
        ValueError: Limits that are NaN, in the wrong order or out of the dtype's range; `requires_grad` for integers;
            both `noncontiguous` and `memory_format`.

    Example:
        >>> taeda.testing.make_tensor((2, 3), dtype=taeda.float32, device="cpu").shape
        Size([2, 3])
    """
    if len(shape) == 1 and not isinstance(shape[0], int):
        shape = tuple(shape[0])
    if requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(
            f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=}"
        )
    if noncontiguous and memory_format is not None:
        raise ValueError(
            f"The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got {noncontiguous=} and "
            f"{memory_format=}"
        )
    with_gaps = noncontiguous and math.prod(shape) > 1
    made = _filled((*shape[:-1], 2 * shape[-1]) if with_gaps else shape, dtype, device, low, high)
    if with_gaps:
        made = made[..., ::2]
    elif memory_format is not None:
        made = made.clone(memory_format=memory_format)
    if exclude_zero:
        made[made == 0] = finfo(dtype).tiny if dtype.is_floating_point or dtype.is_complex else 1
    return made.requires_grad_() if requires_grad else made


def _filled(shape: tuple, dtype: Any, device: Any, low: float | None, high: float | None) -> Tensor:
    if dtype is _C.bool:
        low, high = _limits(low, high, 0, 2, 0, 2)
        return _C.randint(math.ceil(low), math.ceil(high), shape, device=device).to(dtype)
    if dtype.is_floating_point or dtype.is_complex:
        real = dtype.to_real() if dtype.is_complex else dtype
        limits = finfo(real)
        low, high = _limits(low, high, -9, 9, limits.min, limits.max)
        parts = [_uniform(shape, real, device, low, high) for _ in range(2 if dtype.is_complex else 1)]
        return _C.complex(*parts).to(dtype) if dtype.is_complex else parts[0]
    info = iinfo(dtype)
    low, high = _limits(low, high, -9 if info.min < 0 else 0, 10, info.min, info.max + 1)
    return _C.randint(math.ceil(low), math.ceil(high), shape, device=device).to(dtype)


def _uniform(shape: tuple, dtype: Any, device: Any, low: float, high: float) -> Tensor:
    made = _C.rand(shape, dtype=dtype, device=device)
    # Each summand is finite also where the difference of the limits is not; rounding may reach `high`.
    made = made * high + (1 - made) * low
    if low == high:
        return _C.full_like(made, low)
    ends = [_C.tensor(end, dtype=made.dtype, device="cpu") for end in (high, low)]
    below = _C.nextafter(*ends)
    return made.clamp(low, below.item())


def _limits(
    low: float | None, high: float | None, default_low: float, default_high: float, least: float, most: float
) -> tuple[float, float]:
    for name, value in (("low", low), ("high", high)):
        if value is not None and math.isnan(value):
            raise ValueError(f"`low` and `high` cannot be NaN, but got {name}={value}")
    bottom = default_low if low is None else low
    top = default_high if high is None else high
    if bottom > top or (bottom == top and (low is None or high is None)):
        raise ValueError(f"`low` must be less than `high`, but got low={bottom} and high={top}")
    if bottom > most or top < least:
        raise ValueError(
            f"The value interval specified by low={bottom} and high={top} is out of the dtype's range [{least}, {most}]"
        )
    return max(bottom, least), min(top, most)
