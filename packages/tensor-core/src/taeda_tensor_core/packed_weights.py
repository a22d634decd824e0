"""Products with weights of 4 and 8 bits, as programs that quantize linear layers call them: private elsewhere.

Codes of 4 bits lie two in a byte, in blocks of rows: of a whole block a byte holds those of one column and of two rows
that are half a block apart, of what is left over those of two rows that follow each other. This is the order of
PyTorch on processors with vectors of 512 bits, so that files of such weights go between both.
"""

from __future__ import annotations

from typing import Any

from taeda_tensor_core import _C
from taeda_tensor_core._C import Tensor

_BLOCK = 64
_GROUPS = (32, 64, 128, 256)
_FLOATS = (_C.float32, _C.float16, _C.bfloat16)
#: Taken off a code before it is multiplied.
_MIDDLE = 8


def _expect(name: str, fits: bool, argument: str, found: Any, expected: str) -> None:
    if not fits:
        raise RuntimeError(f"{name}: argument '{argument}' {found}, expected {expected}")


def _check_activations(name: str, self: Tensor) -> None:
    _expect(name, self.dtype in _FLOATS, "self", f"has dtype {self.dtype}", "float32, float16 or bfloat16")
    _expect(name, self.dim() == 2, "self", f"has shape {tuple(self.shape)}", "two dimensions")


def _convert_weight_to_int4pack_for_cpu(self: Tensor, innerKTiles: int) -> Tensor:
    """A matrix of codes from 0 to 15, two of them in a byte.

    Args:
        self: (n, k), int32; `n` is a multiple of 16, `k` of 2.
        innerKTiles: Not read.

    Returns: (n, k / 2), uint8, for `_weight_int4pack_mm_for_cpu`.

    Raises:
        RuntimeError: Another dtype or other sizes.

    Example:
        >>> taeda._convert_weight_to_int4pack_for_cpu(taeda.ones(16, 2, dtype=taeda.int32), 1)[0]
        tensor([17], dtype=taeda.uint8)
    """
    name = "_convert_weight_to_int4pack_for_cpu"
    _expect(name, self.dtype == _C.int32, "self", f"has dtype {self.dtype}", "int32")
    shape = tuple(self.shape)
    fits = len(shape) == 2 and shape[0] % 16 == 0 and shape[1] % 2 == 0
    _expect(name, fits, "self", f"has shape {shape}", "(n, k) with n a multiple of 16 and k of 2")
    n, k = shape
    whole = n // _BLOCK * _BLOCK
    halves = self[:whole].reshape(whole // _BLOCK, 2, _BLOCK // 2, k)
    pairs = self[whole:].reshape(1, (n - whole) // 2, 2, k)
    parts = [
        (low | high << 4).transpose(-1, -2).reshape(-1)
        for low, high in ((halves[:, 0], halves[:, 1]), (pairs[:, :, 0], pairs[:, :, 1]))
    ]
    return _C.cat(parts).to(_C.uint8).reshape(n, k // 2)


def _unpacked(packed: Tensor) -> Tensor:
    """The codes of `_convert_weight_to_int4pack_for_cpu`, (n, k)."""
    n, k = packed.shape[0], packed.shape[1] * 2
    whole = n // _BLOCK * _BLOCK
    flat = packed.reshape(-1)
    halves = flat[: whole * k // 2].reshape(whole // _BLOCK, k, _BLOCK // 2).transpose(-1, -2)
    pairs = flat[whole * k // 2 :].reshape(k, (n - whole) // 2).transpose(0, 1)
    parts = (
        _C.stack([halves & 15, halves >> 4], 1).reshape(whole, k),
        _C.stack([pairs & 15, pairs >> 4], 1).reshape(n - whole, k),
    )
    return _C.cat(parts)


def _weight_int4pack_mm_for_cpu(
    self: Tensor, mat2: Tensor, qGroupSize: int, qScaleAndZeros: Tensor
) -> Tensor:
    """The product of a matrix with the transpose of weights of 4 bits; sums in float32.

    Args:
        self: (m, k), float32, float16 or bfloat16.
        mat2: (n, k / 2), of `_convert_weight_to_int4pack_for_cpu`.
        qGroupSize: How many columns share a scale: 32, 64, 128 or 256.
        qScaleAndZeros: (k / qGroupSize, n, 2), of `self`'s dtype: what a code less 8 is multiplied by, and what is
            added then.

    Returns: (m, n), of `self`'s dtype.

    Raises:
        RuntimeError: Dtypes or sizes that do not fit.

    Example:
        >>> packed = taeda._convert_weight_to_int4pack_for_cpu(taeda.full((16, 32), 9, dtype=taeda.int32), 1)
        >>> one = taeda.tensor([1.0, 0.0]).expand(1, 16, 2)
        >>> taeda._weight_int4pack_mm_for_cpu(taeda.ones(1, 32), packed, 32, one)[0, 0]
        tensor(32.)
    """
    name = "_weight_int4pack_mm_for_cpu"
    _check_activations(name, self)
    k = self.shape[1]
    _expect(name, mat2.dtype == _C.uint8, "mat2", f"has dtype {mat2.dtype}", "uint8")
    fits = mat2.dim() == 2 and mat2.shape[1] * 2 == k and mat2.shape[0] % 16 == 0
    _expect(name, fits, "mat2", f"has shape {tuple(mat2.shape)}", f"(n, {k // 2}) with n a multiple of 16")
    fits = qGroupSize in _GROUPS and k % qGroupSize == 0
    _expect(name, fits, "qGroupSize", f"is {qGroupSize}", f"32, 64, 128 or 256, and a divisor of {k}")
    given, expected = qScaleAndZeros, (k // qGroupSize, mat2.shape[0], 2)
    _expect(name, given.dtype == self.dtype, "qScaleAndZeros", f"has dtype {given.dtype}", str(self.dtype))
    shape = tuple(given.shape)
    _expect(name, shape == expected, "qScaleAndZeros", f"has shape {shape}", str(expected))
    scales, zeros = (given[..., i].t().float().unsqueeze(-1) for i in (0, 1))
    groups = (_unpacked(mat2).to(_C.float32) - _MIDDLE).reshape(mat2.shape[0], -1, qGroupSize)
    weight = (groups * scales + zeros).reshape(-1, k)
    return (self.float() @ weight.t()).to(self.dtype)


def _weight_int8pack_mm(self: Tensor, mat2: Tensor, scales: Tensor) -> Tensor:
    """The product of a matrix with the transpose of weights of 8 bits; sums in float32.

    Args:
        self: (m, k), float32, float16 or bfloat16.
        mat2: (n, k), int8.
        scales: (n,), of `self`'s dtype: what each column of the product is multiplied by.

    Returns: (m, n), of `self`'s dtype.

    Raises:
        RuntimeError: Dtypes or sizes that do not fit.

    Example:
        >>> codes = taeda.ones(2, 3, dtype=taeda.int8)
        >>> taeda._weight_int8pack_mm(taeda.ones(1, 3), codes, taeda.tensor([1.0, 2.0]))
        tensor([[3., 6.]])
    """
    name = "_weight_int8pack_mm"
    _check_activations(name, self)
    _expect(name, mat2.dtype == _C.int8, "mat2", f"has dtype {mat2.dtype}", "int8")
    k = self.shape[1]
    fits = mat2.dim() == 2 and mat2.shape[1] == k
    _expect(name, fits, "mat2", f"has shape {tuple(mat2.shape)}", f"(n, {k})")
    _expect(name, scales.dtype == self.dtype, "scales", f"has dtype {scales.dtype}", str(self.dtype))
    shape, expected = tuple(scales.shape), (mat2.shape[0],)
    _expect(name, shape == expected, "scales", f"has shape {shape}", str(expected))
    return (self.float() @ mat2.t().float() * scales.float()).to(self.dtype)
