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
