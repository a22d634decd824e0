"""How codes are mapped to numbers, and what integers hold them."""

from __future__ import annotations

from typing import Any

import taeda_tensor_core as core
from taeda_tensor_core import _C, _named_dtypes


class qscheme:
    """A way to map codes to numbers.

    Attributes:
        name: Such as 'per_tensor_affine'.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"{repr(_C.float32).partition('.')[0]}.{self.name}"

    def __reduce__(self) -> str:
        return self.name

    def __copy__(self) -> qscheme:
        return self

    def __deepcopy__(self, memo: Any) -> qscheme:
        return self


per_tensor_affine = qscheme("per_tensor_affine")
per_channel_affine = qscheme("per_channel_affine")
per_tensor_symmetric = qscheme("per_tensor_symmetric")
per_channel_symmetric = qscheme("per_channel_symmetric")
per_channel_affine_float_qparams = qscheme("per_channel_affine_float_qparams")

#: The dtype of the codes, and the least and the largest one, by the name of the quantized dtype.
_CODES = {
    "qint8": (_C.int8, -128, 127),
    "quint8": (_C.uint8, 0, 255),
    "qint32": (_C.int32, -(2**31), 2**31 - 1),
}


def codes_of(name: str, dtype: Any) -> tuple[Any, int, int]:
    """The dtype of the codes, the least and the largest one.

    Raises:
        RuntimeError: `dtype` is no quantized one that tensors have.
    """
    if not isinstance(dtype, _named_dtypes.NamedDtype) or dtype.name not in _CODES:
        raise RuntimeError(
            f"{name}: argument 'dtype' is {dtype}, expected a quantized one: qint8, quint8 or qint32"
        )
    return _CODES[dtype.name]


def quantized_dtype(codes: Any) -> Any:
    """The quantized dtype whose codes have a dtype."""
    for name, (kind, _, _) in _CODES.items():
        if kind == codes:
            return getattr(core, name)
    raise RuntimeError(f"argument 'input' has dtype {codes}, expected int8, uint8 or int32 codes")


#: The least scale that kernels choose, so that 1 / scale stays in range.
_SMALLEST = 6.1e-5


def kernel_scale(low: Any, high: Any, least: int, largest: int, symmetric: bool = False) -> tuple[Any, Any]:
    """The scales, float64, and zero points, int64, that kernels choose for limits, which observers choose otherwise.

    Codes from `least` to `largest` cover the limits and 0. Symmetric ones reach one step further down than up, and the
    limit that is further from 0 in these steps decides; where one of the limits is 0 they are not symmetric.
    """
    low, high = low.to(_C.float64), high.to(_C.float64)
    steps, half = largest - least, (largest - least) // 2
    even = (low < 0) & (high > 0) if symmetric else _C.zeros_like(low, dtype=_C.bool)
    peak = _C.maximum((low / (half + 1)).abs(), (high / max(half, 1)).abs())
    low = _C.where(even, -peak * (half + 1), low).clamp(max=0.0)
    high = _C.where(even, peak * half, high).clamp(min=0.0)
    scale = (high - low) / steps
    short = scale.to(_C.float32)
    scale = _C.where((short == 0) | (1 / short).isinf(), _C.full_like(scale, 0.1), scale)
    wider = (_SMALLEST / scale).clamp(min=1.0)
    scale = scale * wider
    one_sided = (low == 0) | (high == 0)
    low = _C.where(one_sided & (wider > 1) & (low != 0), -scale * steps, low * wider)
    high = _C.where(one_sided & (wider > 1) & (high != 0), scale * steps, high * wider)
    from_low, from_high = least - low / scale, largest - high / scale
    nearer = abs(least) - (low / scale).abs() < abs(largest) - (high / scale).abs()
    zero = _C.where(nearer, from_low, from_high)
    zero = _C.where(even, _C.full_like(zero, (least + largest) / 2), zero)
    return scale, zero.clamp(least, largest).round().to(_C.int64)
