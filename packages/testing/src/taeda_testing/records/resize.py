"""Records of resampling: every dimension as a product with a matrix of weights, in float64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from taeda_testing.arrays import random_array
from taeda_testing.record import FLOATS, ErrorSample, OpRecord, Sample
from taeda_testing.wrong import misfit, zeros


def _keys(x: float, a: float) -> float:
    x = abs(x)
    if x < 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * (x**3 - 5 * x**2 + 8 * x - 4) if x < 2 else 0.0


def _widened(mode: str, x: float) -> float:
    if mode == "linear":
        return max(0.0, 1 - abs(x))
    return _keys(x, -0.5) if mode == "cubic" else float(np.sinc(x) * np.sinc(x / 3)) * (abs(x) < 3)


_REACH = {"linear": 1, "cubic": 2, "lanczos": 3}


def _weights(n: int, out: int, mode: str, align: bool, antialias: bool, scale: float) -> np.ndarray:
    """(out, n): how much of each element is in each result."""
    if n == out and mode == "linear" and not antialias:
        return np.eye(n)  # whatever the factor was, as in PyTorch
    matrix = np.zeros((out, n))
    step = 1 / scale if scale > 0 else n / out
    if align:
        step = (n - 1) / (out - 1) if out > 1 else 0.0
    half = 0.0 if align else 0.5
    for i in range(out):
        if mode.startswith("nearest"):
            at = i + 0.5 if mode == "nearest-exact" else i
            matrix[i, min(int(at * step), n - 1)] = 1
        elif antialias:
            widening = max(step, 1.0)
            center, reach = step * (i + 0.5), _REACH[mode] * widening
            near = range(max(int(center - reach + 0.5), 0), min(int(center + reach + 0.5), n))
            own = [_widened(mode, (j - center + 0.5) / widening) for j in near]
            matrix[i, near.start : near.stop] = np.array(own) / sum(own)
        else:
            at = step * (i + half) - half
            if mode == "linear":
                at = max(at, 0.0)
                pairs = [(int(at), 1 - at % 1), (int(at) + 1, at % 1)]
            else:
                left = int(np.floor(at))
                pairs = [(left + k, _keys(at - left - k, -0.75)) for k in range(-1, 3)]
            for j, weight in pairs:
                matrix[i, min(max(j, 0), n - 1)] += weight
    return matrix


def _along(matrix: np.ndarray, x: np.ndarray, axis: int) -> np.ndarray:
    return np.moveaxis(np.moveaxis(x, axis, -1) @ matrix.T, -1, axis)


def _bytes_along(matrix: np.ndarray, x: np.ndarray, axis: int) -> np.ndarray:
    """In fixed point of as many bits as leave every weight within 16, rounded and cut to a byte."""
    bits = max(b for b in range(1, 23) if b == 1 or int(0.5 + matrix.max() * 2**b) < 2**15)
    whole = np.sign(matrix) * np.floor(np.abs(matrix) * 2**bits + 0.5)
    return np.clip(np.floor(_along(whole, x, axis) / 2**bits + 0.5), 0, 255)


def _matrices(sizes: tuple[int, ...], out: Any, mode: str, align: bool, antialias: bool, scales: Any) -> Any:
    factors = scales or (0.0,) * len(out)
    for axis, (n, m, scale) in reversed(list(enumerate(zip(sizes, out, factors, strict=True), 2))):
        yield axis, _weights(n, m, mode, align, antialias, scale)


def _resampled(
    x: np.ndarray, out: Any, mode: str, align: bool = False, antialias: bool = False, scales: Any = ()
) -> np.ndarray:
    along = _bytes_along if x.dtype == np.uint8 and not mode.startswith("nearest") else _along
    y = x.astype(np.float64)
    for axis, matrix in _matrices(x.shape[2:], out, mode, align, antialias, scales):
        y = along(matrix, y, axis)
    return y.astype(x.dtype)


def _backward(
    grad: np.ndarray, sizes: Any, mode: str, align: bool, antialias: bool, scales: Any
) -> np.ndarray:
    y = grad.astype(np.float64)
    for axis, matrix in _matrices(sizes, grad.shape[2:], mode, align, antialias, scales):
        y = _along(matrix.T, y, axis)
    return y.astype(grad.dtype)


# Shape, sizes of the result, mode, aligned corners, antialiasing, factors.
_CASES = (
    *(((2, 3, 5), (8,), mode, False, False, ()) for mode in ("nearest", "nearest-exact", "linear")),
    ((1, 2, 7), (3,), "linear", True, False, ()),
    ((1, 1, 6), (6,), "linear", False, False, (1.25,)),
    ((1, 2, 4), (1,), "linear", True, False, ()),
    *(
        ((2, 2, 4, 6), (7, 3), mode, False, False, ())
        for mode in ("nearest", "nearest-exact", "linear", "cubic")
    ),
    *(((1, 5, 3, 4), (6, 8), mode, True, False, ()) for mode in ("linear", "cubic")),
    *(((1, 3, 9, 7), (4, 12), mode, False, True, ()) for mode in ("linear", "cubic", "lanczos")),
    *(((1, 1, 8, 5), (3, 5), mode, True, True, ()) for mode in ("linear", "cubic")),
    ((1, 2, 3, 5), (5, 8), "linear", False, False, (1.7, 1.7)),
    ((1, 2, 40, 3), (2, 3), "linear", False, True, ()),
    ((0, 2, 3, 3), (4, 4), "linear", False, False, ()),
    *(
        ((1, 2, 3, 4, 2), (5, 2, 4), mode, False, False, ())
        for mode in ("nearest", "nearest-exact", "linear")
    ),
    ((2, 1, 4, 3, 3), (2, 5, 3), "linear", True, False, ()),
)


def _inputs(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, *rest in _CASES:
        if dtype != "uint8" or len(shape) == 4 or rest[1].startswith("nearest"):
            yield Sample((random_array(rng, shape, dtype, 0, 255 if dtype == "uint8" else 4), *rest))


def _gradients(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, out, *rest in _CASES:
        yield Sample((random_array(rng, (*shape[:2], *out), dtype), shape[2:], *rest))


def _errors(name: str) -> tuple[ErrorSample, ...]:
    rest = ("linear", False, False, ())
    return (
        *misfit(name, (1, 2, 4), np.zeros(0), *rest, error=(TypeError, RuntimeError)),
        ErrorSample((zeros(1, 2, 4), (2, 2), *rest), {}, RuntimeError, (name, "(1, 2, 4)", "2")),
        ErrorSample((zeros(1, 2, 4), (0,), *rest), {}, RuntimeError, (name, "greater than 0")),
        ErrorSample((zeros(2, 4), (2,), *rest), {}, RuntimeError, (name, "(2, 4)")),
        ErrorSample(
            (zeros(1, 2, 4), (2,), "square", False, False, ()), {}, ValueError, (name, "mode", "square")
        ),
        ErrorSample((zeros(1, 2, 4), (2,), "cubic", False, False, ()), {}, RuntimeError, (name, "cubic")),
        ErrorSample((zeros(1, 2, 4), (2,), "linear", False, True, ()), {}, ValueError, (name, "antialias")),
        ErrorSample(
            (zeros(1, 2, 4, 4), (2, 2), "lanczos", False, False, ()), {}, ValueError, (name, "lanczos")
        ),
        ErrorSample(
            (zeros(1, 2, 4), (2,), "linear", False, False, (1.0, 2.0)), {}, RuntimeError, (name, "scales")
        ),
    )


def _record(name: str, reference: Any, samples: Any, dtypes: tuple[str, ...]) -> OpRecord:
    return OpRecord(
        name,
        reference,
        samples,
        dtypes,
        differentiable=True,
        namespace="ops",
        rtol={"float32": 1e-4},
        atol={"float32": 1e-4},
        half="largest",
        errors=_errors(name),
    )


RECORDS = [
    _record("resample", _resampled, _inputs, (*FLOATS, "uint8")),
    _record("resample_backward", _backward, _gradients, FLOATS),
]
