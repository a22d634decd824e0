"""Records of Fourier transforms, held against NumPy's in float64, and of short-time ones, held against their sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from taeda_testing.arrays import random_array
from taeda_testing.record import COMPLEX, FLOATS, ErrorSample, OpRecord, Sample
from taeda_testing.records.creation import _DEFAULT, _made
from taeda_testing.sampling import Sampler, calls
from taeda_testing.wrong import REFUSED, misfit, wrong_call, zeros

_NUMBERS = ("int64", "uint8", *FLOATS, *COMPLEX)
_REAL = ("int64", "uint8", *FLOATS)
_CLOSE = {
    "rtol": {"float32": 1e-4, "complex64": 1e-4},
    "atol": {"float32": 2e-5, "complex64": 2e-5, "float64": 1e-11, "complex128": 1e-11},
}


def _precision(x: np.ndarray) -> np.dtype:
    """float32 or float64, in which the transform of `x` is given."""
    return np.result_type(x.dtype if x.dtype.kind in "fc" else np.float32, np.float32).type(0).real.dtype


def _as_given(found: Any, x: np.ndarray) -> np.ndarray:
    """The result in the precision of the input."""
    found = np.asarray(found)
    wanted = np.result_type(_precision(x), np.complex64) if found.dtype.kind == "c" else _precision(x)
    return found.astype(wanted)


def _one(name: str) -> Callable[..., Any]:
    def call(x: np.ndarray, n: Any = None, dim: int = -1, norm: Any = None) -> np.ndarray:
        return _as_given(getattr(np.fft, name)(x.astype(np.result_type(x, np.float64)), n, dim, norm), x)

    return call


def _several(name: str, last_two: bool) -> Callable[..., Any]:
    """Over several dimensions, by the transforms of one."""

    def call(
        x: np.ndarray, s: Any = None, dim: Any = (-2, -1) if last_two else None, norm: Any = None
    ) -> Any:
        if dim is None:
            dim = range(-len(s), 0) if s is not None else range(x.ndim)
        axes = [d % x.ndim for d in ((dim,) if isinstance(dim, int) else dim)]
        points = list(s) if s is not None else [-1] * len(axes)
        points = [None if n == -1 else n for n in points]
        wide = x.astype(np.result_type(x, np.float64))
        others = [axes[:-1], points[:-1]]
        other = {"r": "fft", "h": "fft", "i": "ifft", "f": "fft"}[name[0]]
        if name.startswith(("irfft", "hfft")):
            for d, n in zip(*others, strict=True):
                wide = getattr(np.fft, other)(wide, n, d, norm)
            return _as_given(getattr(np.fft, name)(wide, points[-1], axes[-1], norm), x)
        if axes:
            wide = getattr(np.fft, name)(wide, points[-1], axes[-1], norm)
        for d, n in zip(*others, strict=True):
            wide = getattr(np.fft, other)(wide, n, d, norm)
        return _as_given(wide if axes else wide.astype(np.complex128), x)

    return call


_LINES = calls(
    ((5,),), ((1,),), ((8,),), ((3, 6),), ((2, 3, 4), None, 1), ((6, 2), None, 0, "ortho"), ((7,), 5), ((4,), 9),
    ((3, 4), 6, -2, "forward"), ((2, 16), 16, -1, "backward"), ((0, 4),), ((40, 3), None, 0), ((35, 31),),
    ((37,), 37), ((2, 59),),
)  # fmt: skip
_PLANES = calls(
    ((3, 4),), ((2, 5, 3),), ((4, 3), (2, 5)), ((3, 2, 4), (-1, 3), (0, -1)), ((5, 4), None, (1, 0), "ortho"),
    ((2, 3, 4), None, (0, 2), "forward"), ((1, 2),), ((0, 3, 2),), ((34, 5), None, (0, 1)),
)  # fmt: skip
_VOLUMES = calls(
    ((6,),), ((3, 4),), ((2, 3, 4),), ((2, 3, 4), (3, 5)), ((2, 3, 4), None, (0, 2)), ((4, 3, 2), (2, -1), (1, 0)),
    ((3, 2, 4), None, None, "ortho"), ((3, 4), None, (-1,), "forward"), ((2, 3, 2, 3), None, (1, 2, 3)),
)  # fmt: skip


def _hermitian(samples: Sampler) -> Sampler:
    """For transforms to real numbers: at least two points in the last dimension, so that a default n is not 0."""

    def more(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for sample in samples(dtype, rng):
            x, (n, dim) = sample.args[0], (*sample.args[1:3], None, None)[:2]
            axes = dim if isinstance(dim, tuple) else (-1 if dim is None else dim,)
            sized = n is not None and n != -1 and not (isinstance(n, tuple) and n[-1] == -1)
            if sized or x.shape[axes[-1]] > 1:
                yield sample

    return more


def _errors(name: str) -> tuple[ErrorSample, ...]:
    return (
        *misfit(name, (2, 3), 0, words=("0",)),
        wrong_call(REFUSED, f"{name} norm backwards", zeros(3), norm="backwards"),
        wrong_call(IndexError, "2", zeros(2, 3), dim=2),
        wrong_call(REFUSED, f"{name} float16", zeros(4, dtype=np.float16)),
    )


def _errors_of_several(name: str) -> tuple[ErrorSample, ...]:
    return (
        wrong_call(REFUSED, f"{name} s 2 1", zeros(3, 4), (2, 2), (0,)),
        wrong_call(REFUSED, f"{name} dim twice", zeros(3, 4), None, (0, 0)),
        wrong_call(REFUSED, f"{name} 0 points", zeros(3, 4), (3, 0)),
        wrong_call(REFUSED, f"{name} norm x", zeros(3, 4), norm="x"),
        wrong_call(IndexError, "5", zeros(3, 4), None, (0, 5)),
    )


def _record(name: str, reference: Any, samples: Any, dtypes: Any = FLOATS, **more: Any) -> OpRecord:
    facts = {
        "differentiable": True,
        "out": True,
        "namespace": "ops",
        "half": "",
        "cancels": True,
        "needs": ("complex",),
        **_CLOSE,
        **more,
    }
    return OpRecord(name, reference, samples, dtypes, **facts)


def _transform(
    name: str, dtypes: Any, wrap: Callable[[Sampler], Sampler] = lambda samples: samples
) -> OpRecord:
    """A function of `fft`, of one dimension, of two or of any number."""
    plain = name.removeprefix("fft_")
    base = plain.removesuffix("2").removesuffix("n")
    complex_error = wrong_call(REFUSED, "complex64", zeros(4, 4, dtype=np.complex64))
    errors = (complex_error,) if dtypes is _REAL else ()
    if plain == base:
        return _record(name, _one(base), wrap(_LINES), dtypes, errors=(*_errors(plain), *errors))
    errors = (
        *errors,
        *_errors_of_several(plain),
        wrong_call(REFUSED, f"{plain} s 3 2", zeros(3, 4), (2, 2, 2)),
    )
    samples = _PLANES if plain.endswith("2") else _VOLUMES
    return _record(name, _several(base, plain.endswith("2")), wrap(samples), dtypes, errors=errors)


# --- the operators that they are made of ---


def _scale(count: int, normalization: int) -> float:
    return (1, count**-0.5, 1 / count)[normalization]


def _c2c(x: np.ndarray, dim: tuple, normalization: int, forward: bool) -> np.ndarray:
    wide = x.astype(np.complex128)
    found = np.fft.fftn(wide, axes=dim) if forward else np.fft.ifftn(wide, axes=dim, norm="forward")
    return _as_given(found * _scale(np.prod([x.shape[d] for d in dim]), normalization), x)


def _r2c(x: np.ndarray, dim: tuple, normalization: int, onesided: bool) -> np.ndarray:
    found = (np.fft.rfftn if onesided else np.fft.fftn)(x.astype(np.float64), axes=dim)
    return _as_given(found * _scale(np.prod([x.shape[d] for d in dim]), normalization), x)


def _c2r(x: np.ndarray, dim: tuple, normalization: int, last_dim_size: int) -> np.ndarray:
    wide = x.astype(np.complex128)
    for d in dim[:-1]:
        wide = np.fft.ifft(wide, axis=d, norm="forward")
    found = np.fft.irfft(wide, last_dim_size, dim[-1], norm="forward")
    return _as_given(
        found * _scale(np.prod([x.shape[d] for d in dim[:-1]]) * last_dim_size, normalization), x
    )


# --- short-time transforms ---


def _frames(x: np.ndarray, n_fft: int, hop: int, window: np.ndarray, center: bool, mode: str) -> np.ndarray:
    """Of (batch, samples): frames, (batch, count, n_fft), weighed by the window."""
    if center:
        numpy_mode = {"reflect": "reflect", "constant": "constant", "replicate": "edge"}[mode]
        x = np.pad(x, ((0, 0), (n_fft // 2, n_fft // 2)), numpy_mode)
    starts = range(0, x.shape[1] - n_fft + 1, hop)
    return np.stack([x[:, k : k + n_fft] for k in starts], 1) * window


def _in_frame(window: np.ndarray | None, win: int, n_fft: int) -> np.ndarray:
    left = (n_fft - win) // 2
    return np.pad(np.ones(win) if window is None else window, (left, n_fft - win - left))


def _stft(
    x: np.ndarray,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: np.ndarray | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
) -> np.ndarray:
    w = _in_frame(window, win_length or n_fft, n_fft)
    wide = np.atleast_2d(x).astype(np.result_type(x, np.float64))
    frames = _frames(wide, n_fft, hop_length or n_fft // 4, w, center, pad_mode)
    half = np.isrealobj(frames) if onesided is None else onesided
    found = np.swapaxes((np.fft.rfft if half else np.fft.fft)(frames), 1, 2)
    found = found / np.sqrt(n_fft) if normalized else found
    found = found[0] if x.ndim == 1 else found
    return _as_given(found if return_complex is not False else np.stack([found.real, found.imag], -1), x)


def _istft(
    x: np.ndarray,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: np.ndarray | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> np.ndarray:
    hop, w = hop_length or n_fft // 4, _in_frame(window, win_length or n_fft, n_fft)
    frames = np.swapaxes(x.reshape(-1, *x.shape[-2:]).astype(np.complex128), 1, 2)
    frames = np.fft.ifft(frames) if return_complex else np.fft.irfft(frames[..., : n_fft // 2 + 1], n_fft)
    frames = (frames * np.sqrt(n_fft) if normalized else frames) * w
    total = n_fft + hop * (frames.shape[1] - 1)
    sums, weights = np.zeros((frames.shape[0], total), frames.dtype), np.zeros(total)
    for k in range(frames.shape[1]):
        sums[:, k * hop : k * hop + n_fft] += frames[:, k]
        weights[k * hop : k * hop + n_fft] += w**2
    start = n_fft // 2 if center else 0
    end = start + length if length else total - n_fft // 2 if center else total
    found = (sums[:, start:end] / weights[start:end]).copy()
    found = np.pad(found, ((0, 0), (0, max(0, end - total))))
    return _as_given(found[0] if x.ndim == 2 else found, x)


def _window(count: int, dtype: str) -> np.ndarray:
    return (0.6 + 0.4 * np.cos(np.arange(count))).astype(np.dtype(dtype).type(0).real.dtype)


def _signals(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    def signal(*shape: int) -> np.ndarray:
        return random_array(rng, shape, dtype)

    said = {} if np.dtype(dtype).kind == "c" else {"return_complex": True}
    yield Sample((signal(12), 4), dict(said))
    yield Sample((signal(2, 9), 5, 2, 3, _window(3, dtype)), dict(said))
    yield Sample((signal(2, 9), 4), {"center": False, "onesided": False, "hop_length": 3, **said})
    yield Sample(
        (signal(7), 6), {"pad_mode": "constant", "normalized": True, "window": _window(6, dtype), **said}
    )
    yield Sample((signal(8), 4), {"pad_mode": "replicate", "return_complex": False})


def _spectra(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    def spectrum(*shape: int) -> np.ndarray:
        return random_array(rng, shape, dtype)

    yield Sample((spectrum(3, 4), 4))
    yield Sample((spectrum(2, 3, 4), 5, 2, 3), {"window": _window(3, dtype), "length": 5})
    yield Sample((spectrum(6, 3), 6), {"center": False, "normalized": True, "hop_length": 4})
    yield Sample((spectrum(4, 3), 4), {"return_complex": True, "length": 9})


def _frequencies(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(n: int, d: float = 1.0, dtype: Any = _DEFAULT) -> np.ndarray:
        return np.asarray(function(n, d)).astype(dtype)

    return call


def _shift(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, dim=None: function(x, dim) if x.ndim else x


_SHIFTS = calls(((5,),), ((4,),), ((2, 3),), ((3, 4), (0,)), ((2, 3, 4), (-1, 0)), ((),), ((0, 2),))
_COUNTED = ((1,), (2,), (5,), (8, 0.5))

RECORDS = [
    _record("_fft_c2c", _c2c, calls(((5,), (0,), 0, True), ((3, 4), (1, 0), 1, False), ((2, 33), (-1,), 2, True),
            ((33, 2), (0,), 0, False), ((3,), (), 0, True)), COMPLEX,
            errors=(wrong_call(REFUSED, "_fft_c2c float32", zeros(3), (0,), 0, True),
                    wrong_call(REFUSED, "normalization 3", zeros(3, dtype=np.complex64), (0,), 3, True))),
    _record("_fft_r2c", _r2c, calls(((5,), (0,), 0, True), ((3, 4), (1, 0), 1, False), ((2, 33), (0, -1), 2, True),
            ((4, 2), (0,), 0, False)),
            errors=(wrong_call(REFUSED, "_fft_r2c complex64", zeros(3, dtype=np.complex64), (0,), 0, True),
                    wrong_call(REFUSED, "_fft_r2c dim", zeros(3), (), 0, True))),
    _record("_fft_c2r", _c2r, calls(((3,), (0,), 0, 5), ((3, 4), (0, 1), 1, 6), ((3, 2), (1, 0), 2, 4)), COMPLEX,
            errors=(wrong_call(REFUSED, "_fft_c2r 4 3", zeros(4, dtype=np.complex64), (0,), 0, 5),
                    wrong_call(REFUSED, "last_dim_size 0", zeros(4, dtype=np.complex64), (0,), 0, 0))),
    *(_transform(*case) for case in (
        ("fft_fft", _NUMBERS), ("fft_fft2", _NUMBERS), ("fft_fftn", _NUMBERS),
        ("fft_ifft", _NUMBERS), ("fft_ifft2", _NUMBERS), ("fft_ifftn", _NUMBERS),
        ("fft_rfft", _REAL), ("fft_rfft2", _REAL), ("fft_rfftn", _REAL),
        ("fft_ihfft", _REAL), ("fft_ihfft2", _REAL), ("fft_ihfftn", _REAL),
        ("fft_irfft", _NUMBERS, _hermitian), ("fft_irfft2", _NUMBERS, _hermitian), ("fft_irfftn", _NUMBERS, _hermitian),
        ("fft_hfft", _NUMBERS, _hermitian), ("fft_hfft2", _NUMBERS, _hermitian), ("fft_hfftn", _NUMBERS, _hermitian),
    )),
    OpRecord("fft_fftfreq", _frequencies(np.fft.fftfreq), _made(*_COUNTED), FLOATS, creates=True, namespace="ops",
             half="", errors=(wrong_call(REFUSED, "fftfreq int64", 4, dtype=np.dtype("int64")),
                              wrong_call(REFUSED, "fftfreq n -1", -1))),
    OpRecord("fft_rfftfreq", _frequencies(np.fft.rfftfreq), _made(*_COUNTED), FLOATS, creates=True, namespace="ops",
             half="", errors=(wrong_call(REFUSED, "rfftfreq int64", 4, dtype=np.dtype("int64")),
                              wrong_call(REFUSED, "rfftfreq n -1", -1))),
    OpRecord("fft_fftshift", _shift(np.fft.fftshift), _SHIFTS, ("int64", *FLOATS, *COMPLEX), differentiable=True,
             namespace="ops", errors=(wrong_call(IndexError, "3", zeros(2), 3),)),
    OpRecord("fft_ifftshift", _shift(np.fft.ifftshift), _SHIFTS, ("int64", *FLOATS, *COMPLEX), differentiable=True,
             namespace="ops", errors=(wrong_call(IndexError, "3", zeros(2), 3),)),
    _record("stft", _stft, _signals, (*FLOATS, *COMPLEX), out=False, namespace="",
            errors=(wrong_call(REFUSED, "stft return_complex", zeros(9), 4),
                    wrong_call(REFUSED, "stft n_fft 0", zeros(9), 0, return_complex=True),
                    wrong_call(REFUSED, "stft n_fft 10 9", zeros(9), 10, center=False, return_complex=True),
                    wrong_call(REFUSED, "stft window 3 4", zeros(9), 4, window=zeros(3), return_complex=True),
                    wrong_call(REFUSED, "stft win_length 5 4", zeros(9), 4, win_length=5, return_complex=True),
                    wrong_call(REFUSED, "stft hop_length 0", zeros(9), 4, hop_length=0, return_complex=True),
                    wrong_call(REFUSED, "stft int64", zeros(9, dtype=np.int64), 4, return_complex=True),
                    wrong_call(REFUSED, "stft align_to_window center", zeros(9), 4, align_to_window=True,
                               return_complex=True))),
    _record("istft", _istft, _spectra, COMPLEX, out=False, namespace="",
            errors=(wrong_call(REFUSED, "istft float32", zeros(3, 4), 4),
                    wrong_call(REFUSED, "istft 5 4", zeros(5, 4, dtype=np.complex64), 4),
                    wrong_call(REFUSED, "istft window", zeros(3, 4, dtype=np.complex64), 4, window=zeros(4)),
                    wrong_call(REFUSED, "istft hop_length 4 2", zeros(3, 4, dtype=np.complex64), 4, 4, 2),
                    wrong_call(REFUSED, "istft length 0", zeros(3, 4, dtype=np.complex64), 4, length=0))),
]  # fmt: skip
