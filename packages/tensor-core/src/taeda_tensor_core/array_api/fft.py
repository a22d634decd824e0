"""The extension of Fourier transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import taeda_tensor_core as core
from taeda_tensor_core.array_api._array import Array, as_array
from taeda_tensor_core.array_api._elementwise import _check, array_argument

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft",
    "rfftfreq", "rfftn",
]  # fmt: skip

_COMPLEX, _REAL, _BOTH = frozenset({3}), frozenset({2}), frozenset({2, 3})


def _one(name: str, kinds: frozenset[int], x: Any, n: int | None, axis: int, norm: str) -> Array:
    tensor = array_argument(name, "x", x)
    _check(name, tensor.dtype, kinds)
    return as_array(getattr(core.fft, name)(tensor, n, axis, norm))


def _several(name: str, kinds: frozenset[int], x: Any, s: Any, axes: Any, norm: str) -> Array:
    tensor = array_argument(name, "x", x)
    _check(name, tensor.dtype, kinds)
    return as_array(getattr(core.fft, name)(tensor, s, axes, norm))


def fft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """The discrete Fourier transform along ``axis``, of ``n`` elements."""
    return _one("fft", _BOTH, x, n, axis, norm)


def ifft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """The inverse of `fft`."""
    return _one("ifft", _BOTH, x, n, axis, norm)


def rfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """The half of `fft` that says all of real numbers."""
    return _one("rfft", _REAL, x, n, axis, norm)


def irfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """The inverse of `rfft`."""
    return _one("irfft", _BOTH, x, n, axis, norm)


def hfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """`fft` of numbers that are symmetric, of which one half is given."""
    return _one("hfft", _BOTH, x, n, axis, norm)


def ihfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """The inverse of `hfft`."""
    return _one("ihfft", _REAL, x, n, axis, norm)


def fftn(
    x: Array, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Array:
    """`fft` along several axes, by default all."""
    return _several("fftn", _BOTH, x, s, axes, norm)


def ifftn(
    x: Array, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Array:
    """The inverse of `fftn`."""
    return _several("ifftn", _BOTH, x, s, axes, norm)


def rfftn(
    x: Array, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Array:
    """`rfft` along the last of several axes, `fft` along the others."""
    return _several("rfftn", _REAL, x, s, axes, norm)


def irfftn(
    x: Array, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Array:
    """The inverse of `rfftn`."""
    return _several("irfftn", _BOTH, x, s, axes, norm)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies of `fft` of ``n`` samples at the distance ``d``."""
    return as_array(core.fft.fftfreq(n, d, dtype=dtype, device=device))


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies of `rfft` of ``n`` samples at the distance ``d``."""
    return as_array(core.fft.rfftfreq(n, d, dtype=dtype, device=device))


def fftshift(x: Array, /, *, axes: Any = None) -> Array:
    """Frequencies in order, the zero one in the middle."""
    return as_array(core.fft.fftshift(array_argument("fftshift", "x", x), axes))


def ifftshift(x: Array, /, *, axes: Any = None) -> Array:
    """The inverse of `fftshift`."""
    return as_array(core.fft.ifftshift(array_argument("ifftshift", "x", x), axes))
