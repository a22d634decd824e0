"""Windows of filters and spectra, of which the largest number is 1.

A window of M numbers is symmetric, fit for filters, or with ``sym=False`` periodic, fit for spectra: the first M of
a symmetric window of one number more. Definitions: Harris, "On the use of windows for harmonic analysis with the
discrete Fourier transform", 1978. Numbers are computed in float64 and rounded once.

All functions take

* M: how many numbers, an int or what stands for one, such as an integer tensor of one element;
* sym: symmetric or periodic;
* dtype: float32 or float64, the default dtype unless given;
* layout, device, requires_grad: of the result. The only layout is strided.

They raise ValueError for a negative M, another dtype or layout.

Example:
    >>> taeda.signal.windows.hann(4, sym=False)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
import sys
from collections.abc import Callable, Iterable
from typing import Any

from taeda_tensor_core import _C
from taeda_tensor_core._C import Tensor

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming",
    "hann", "kaiser", "nuttall",
]  # fmt: skip


def _window(shape: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The public function of `shape(k, n, **own)`: the places k = 0, ..., M - 1 of a window symmetric about n / 2."""
    name = shape.__name__
    own = [p for p in inspect.signature(shape).parameters.values() if p.kind is p.KEYWORD_ONLY]
    wants_sym = any(p.name == "sym" for p in own)

    @functools.wraps(shape)
    def window(
        M: int,
        *,
        sym: bool = True,
        dtype: _C.dtype | None = None,
        layout: object = None,
        device: object = None,
        requires_grad: bool = False,
        **options: Any,
    ) -> Tensor:
        try:
            M = operator.index(M)
        except TypeError:
            raise TypeError(f"{name}: argument 'M' must be an int, found {type(M).__name__}") from None
        if M < 0:
            raise ValueError(f"{name}: argument 'M' must not be negative, got {M}")
        if layout is not None and not str(layout).endswith("strided"):
            raise ValueError(f"{name}: argument 'layout' is {layout}, expected strided")
        dtype = _C.get_default_dtype() if dtype is None else dtype
        if dtype not in (_C.float32, _C.float64):
            raise ValueError(f"{name}: argument 'dtype' is {dtype}, expected float32 or float64")
        if wants_sym:
            options["sym"] = sym
        # A single number is the middle of its window.
        n = 0.0 if M < 2 else float(M - 1 if sym else M)
        # The second half is the first one backwards, unless the middle is elsewhere.
        half = int(n) // 2 + 1 if M > 1 and options.get("center") is None else M
        values = shape(_C.arange(half, dtype=_C.float64, device=device), n, **options).to(dtype).detach()
        if half < M:
            values = _C.cat([values, values[int(n) + 1 - M : int(n) + 1 - half].flip(0)])
        return values.requires_grad_(requires_grad)

    common = list(inspect.signature(window, follow_wrapped=False).parameters.values())[:-1]
    own = [p for p in own if p.name != "sym"]
    window.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [common[0], *own, *common[1:]], return_annotation="Tensor"
    )
    return window


def _from_middle(k: Tensor, n: float) -> Tensor:
    """-1 at the window's beginning, 0 in its middle, 1 at its end."""
    return k * (2 / n) - 1 if n else k


def _positive(name: str, argument: str, value: float) -> None:
    if not value > 0:
        raise ValueError(f"{name}: argument {argument!r} must be positive, got {value}")


def _cosines(k: Tensor, n: float, *amplitudes: float) -> Tensor:
    """a[0] - a[1] cos(2 pi k / n) + a[2] cos(4 pi k / n) - ..."""
    if not n:
        return _C.ones_like(k)
    # Of one cosine the others are Chebyshev's polynomials: Clenshaw's recurrence.
    once = (k * (2 * math.pi / n)).cos() if len(amplitudes) > 1 else k
    signed = [-a if i % 2 else a for i, a in enumerate(amplitudes)]
    if len(signed) < 3:
        return once * signed[1] + signed[0] if len(signed) == 2 else _C.full_like(k, signed[0])
    above, total = signed[-1], once * (2 * signed[-1]) + signed[-2]
    for a in signed[-3:0:-1]:
        above, total = total, once * total * 2 + (a - above)
    return once * total + (signed[0] - above)


@_window
def bartlett(k: Tensor, n: float) -> Tensor:
    """Triangle: 1 - |2 k / n - 1|."""
    return 1 - _from_middle(k, n).abs()


@_window
def blackman(k: Tensor, n: float) -> Tensor:
    """Blackman's window: general_cosine with 0.42, 0.5, 0.08."""
    return _cosines(k, n, 0.42, 0.5, 0.08)


@_window
def cosine(k: Tensor, n: float) -> Tensor:
    """Half a wave of the sine: sin(pi (k + 1/2) / (n + 1))."""
    return k.add_(0.5).mul_(math.pi / (n + 1)).sin_()


@_window
def exponential(
    k: Tensor, n: float, *, center: float | None = None, tau: float = 1.0, sym: bool = True
) -> Tensor:
    """Poisson's window: exp(-|k - center| / tau).

    Args:
        center: the middle of the window unless given; a symmetric window takes none.
        tau: how far from the centre the window falls to 1 / e; ValueError unless positive.
    """
    _positive("exponential", "tau", tau)
    if sym and center is not None:
        raise ValueError(f"exponential: argument 'center' is {center}, expected None for a symmetric window")
    return ((k - (n / 2 if center is None else center)).abs() * (-1 / tau)).exp()


@_window
def gaussian(k: Tensor, n: float, *, std: float = 1.0) -> Tensor:
    """The normal distribution's bell, exp(-x**2 / 2) of x = (k - n / 2) / std; ValueError unless `std` is positive."""
    _positive("gaussian", "std", std)
    return (((k - n / 2) / std) ** 2 * -0.5).exp()


@_window
def general_cosine(k: Tensor, n: float, *, a: Iterable[float]) -> Tensor:
    """a[0] - a[1] cos(2 pi k / n) + a[2] cos(4 pi k / n) - ...

    Raises:
        TypeError: `a` is no list of numbers.
        ValueError: `a` is empty.
    """
    if not isinstance(a, Iterable):
        raise TypeError(f"general_cosine: argument 'a' must be a list of numbers, found {type(a).__name__}")
    amplitudes = list(a)
    if not amplitudes:
        raise ValueError("general_cosine: argument 'a' is empty, expected at least one number")
    return _cosines(k, n, *amplitudes)


@_window
def general_hamming(k: Tensor, n: float, *, alpha: float = 0.54) -> Tensor:
    """alpha - (1 - alpha) cos(2 pi k / n)."""
    return _cosines(k, n, alpha, 1 - alpha)


@_window
def hamming(k: Tensor, n: float) -> Tensor:
    """Hamming's window: 0.54 - 0.46 cos(2 pi k / n)."""
    return _cosines(k, n, 0.54, 0.46)


@_window
def hann(k: Tensor, n: float) -> Tensor:
    """Hann's window, the raised cosine: (1 - cos(2 pi k / n)) / 2."""
    return _cosines(k, n, 0.5, 0.5)


@_window
def kaiser(k: Tensor, n: float, *, beta: float = 12.0) -> Tensor:
    """Kaiser's window: i0(beta sqrt(1 - (2 k / n - 1)**2)) / i0(beta); ValueError for a negative `beta`."""
    if beta < 0:
        raise ValueError(f"kaiser: argument 'beta' must not be negative, got {beta}")
    root = (1 - _from_middle(k, n) ** 2).clamp(min=0).sqrt()
    # Scaled functions, since i0 itself overflows.
    return _C.i0e(root * beta) / _C.i0e(_C.full_like(k[:1], beta)) * ((root - 1) * beta).exp()


@_window
def nuttall(k: Tensor, n: float) -> Tensor:
    """Nuttall's window with four cosines. "Some windows with very good sidelobe behavior", 1981."""
    return _cosines(k, n, 0.3635819, 0.4891775, 0.1365995, 0.0106411)


#: Where PyTorch keeps them.
windows = sys.modules[__name__]
