"""Records of layers of codes.

Scales are powers of two and zero points even, so that every reference is exact, halves that are rounded too: the zero
point may be added before or after.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from taeda_testing.record import OpRecord, Sample
from taeda_testing.records.conv import convolution
from taeda_testing.wrong import misfit, zeros

CODES = ("int8", "uint8")


def _codes(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max + 1, shape).astype(dtype)


def _powers(rng: np.random.Generator, count: int) -> np.ndarray:
    return (2.0 ** -rng.integers(3, 7, count)).astype("float32")


def _bias(rng: np.random.Generator, count: int) -> np.ndarray:
    return (rng.integers(-2000, 2000, count) / 1024).astype("float32")


def _finished(made: np.ndarray, relu: bool, scale: float | None, zero_point: int, dtype: Any) -> np.ndarray:
    made = np.maximum(made, 0) if relu else made
    if scale is None:
        return made.astype("float32")
    limits = np.iinfo(dtype)
    return np.clip(np.round(made / scale) + zero_point, limits.min, limits.max).astype(dtype)


def _numbers(codes, scale, zero_point):
    return ((codes.astype("float32") - np.float32(zero_point)) * np.float32(scale)).astype("float32")


def _numbers_samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((3, 4), (), (0,), (5000,), (2, 3, 4, 5)):
        yield Sample((_codes(rng, shape, dtype), 0.0371, 17))
    yield Sample((_codes(rng, (3, 4), dtype), 2.0, 0))


def _to_codes(x, scale, zero_point, least, largest, dtype):
    made = np.round(x * np.float32(1 / scale)) + np.float32(zero_point)
    return np.clip(made, least, largest).astype(dtype)


def _to_codes_samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((3, 4), (), (0,), (5000,), (2, 3, 4, 5)):
        x = np.asarray(rng.standard_normal(shape) * 20, dtype)
        yield Sample((x, 0.25, 3, 0, 255, np.dtype("uint8")))
        yield Sample((x, 0.37, -7, -128, 127, np.dtype("int8")))
        yield Sample((x, 0.11, 64, 0, 127, np.dtype("uint8")))
    halves = (np.arange(-600, 600) / 2).astype(dtype)
    yield Sample((halves, 1.0, 5, -128, 127, np.dtype("int8")))
    yield Sample(
        (np.array([np.inf, -np.inf, 1e30, -1e30, 0.0, -0.0], dtype), 0.5, 9, 0, 255, np.dtype("uint8"))
    )


def _mm(a, b):
    return (a.astype("int64") @ b.astype("int64")).astype("int32")


def _matrices(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for m, k, n in ((3, 4, 5), (1, 70, 33), (20, 600, 17), (2, 0, 3), (0, 3, 2)):
        yield Sample((_codes(rng, (m, k), dtype), _codes(rng, (k, n), "int8")))
    ends = np.full((2, 1200), np.iinfo(dtype).min or 255, dtype)
    yield Sample((ends, np.full((1200, 2), -128, "int8")), note="the largest sums")
    yield Sample(
        (_codes(rng, (4, 6), dtype), _codes(rng, (8, 6), "int8").T), note="a weight as it lies in layers"
    )


def _linear(x, weight, bias, scales, scale, zero_point, relu, output_scale=None, output_zero_point=0):
    numbers = (x.astype("float64") - zero_point) * scale
    made = numbers @ (weight.astype("float64") * scales[:, None]).T + (0 if bias is None else bias)
    return _finished(made, relu, output_scale, output_zero_point, x.dtype)


def _linear_samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    zero = 6 if dtype == "int8" else 130
    for lead, k, n in (((3,), 4, 5), ((), 70, 33), ((2, 3), 200, 17), ((1,), 64, 128), ((0,), 3, 2)):
        x, weight = _codes(rng, (*lead, k), dtype), _codes(rng, (n, k), "int8")
        yield Sample((x, weight, _bias(rng, n), _powers(rng, n), 2.0**-4, zero, False))
        yield Sample((x, weight, None, _powers(rng, 1), 2.0**-5, 0, True))
        yield Sample((x, weight, _bias(rng, n), _powers(rng, n), 2.0**-6, zero, True, 0.5, zero))
        yield Sample((x, weight, None, _powers(rng, 1), 2.0**-6, zero, False, 0.25, 8))


def _conv(
    x, weight, bias, scales, scale, zero_point, stride, padding, dilation, groups, relu, output_scale=None,
    output_zero_point=0,
):  # fmt: skip
    numbers = (x.astype("float64") - zero_point) * scale
    made = convolution(
        numbers,
        weight.astype("float64") * scales[:, None, None, None],
        bias,
        stride,
        padding,
        dilation,
        groups,
    )
    return _finished(made, relu, output_scale, output_zero_point, x.dtype)


def _conv_samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    zero = -4 if dtype == "int8" else 120
    for n, c, size, o, kernel, stride, padding, dilation, groups in (
        (2, 3, (7, 8), 5, (3, 3), (1, 1), (1, 1), (1, 1), 1),
        (1, 4, (9, 6), 8, (3, 2), (2, 1), (0, 1), (1, 2), 2),
        (2, 6, (5, 5), 6, (3, 3), (1, 1), (1, 1), (1, 1), 6),
        (3, 16, (6, 6), 20, (1, 1), (2, 2), (0, 0), (1, 1), 1),
        (0, 2, (4, 4), 3, (2, 2), (1, 1), (0, 0), (1, 1), 1),
    ):
        x, weight = _codes(rng, (n, c, *size), dtype), _codes(rng, (o, c // groups, *kernel), "int8")
        windows = stride, padding, dilation, groups
        yield Sample((x, weight, _bias(rng, o), _powers(rng, o), 2.0**-5, zero, *windows, False))
        yield Sample((x, weight, None, _powers(rng, 1), 2.0**-6, zero, *windows, True, 0.5, 10))
        yield Sample((x, weight, _bias(rng, o), _powers(rng, o), 2.0**-6, 0, *windows, False, 1.0, zero))
    yield Sample((x[0:0].sum(0).astype(dtype), weight, None, _powers(rng, 1), 1.0, zero, *windows, False))


_X, _W, _S = zeros(2, 3, dtype="uint8"), zeros(4, 3, dtype="int8"), zeros(4)
_IMAGE, _KERNEL = zeros(1, 2, 3, 3, dtype="uint8"), zeros(4, 2, 3, 3, dtype="int8")
_WINDOWS = [1], [0], [1], 1

RECORDS = [
    OpRecord(
        "dequantize_codes",
        _numbers,
        _numbers_samples,
        CODES,
        namespace="ops",
        errors=(
            *misfit("dequantize_codes", (2,), 1.0, 0, words=("self", "float32")),
            *misfit("dequantize_codes", _X, 0.0, 0, words=("scale", "0")),
            *misfit("dequantize_codes", _X, 1.0, -1, words=("zero_point", "-1")),
        ),
    ),
    OpRecord(
        "quantize_codes",
        _to_codes,
        _to_codes_samples,
        ("float32",),
        half="",
        namespace="ops",
        errors=(
            *misfit("quantize_codes", _X, 1.0, 0, 0, 255, np.dtype("uint8"), words=("self", "uint8")),
            *misfit("quantize_codes", (2,), 1.0, 0, 0, 256, np.dtype("uint8"), words=("largest", "256")),
            *misfit("quantize_codes", (2,), 1.0, 9, 0, 8, np.dtype("uint8"), words=("zero_point", "9")),
            *misfit("quantize_codes", (2,), 1.0, 0, 0, 255, np.dtype("int16"), words=("dtype", "int16")),
        ),
    ),
    OpRecord(
        "int8_mm",
        _mm,
        _matrices,
        CODES,
        namespace="ops",
        errors=(
            *misfit("int8_mm", _X, _W, words=("(2, 3)", "(4, 3)")),
            *misfit("int8_mm", (2, 3), _W.T, words=("self", "float32")),
            *misfit("int8_mm", _X, (3, 4), words=("mat2", "float32")),
        ),
    ),
    OpRecord(
        "quantized_conv2d",
        _conv,
        _conv_samples,
        CODES,
        namespace="ops",
        errors=(
            *misfit("quantized_conv2d", _X, _KERNEL, None, _S, 1.0, 0, *_WINDOWS, False, words=("input", "(2, 3)")),
            *misfit(
                "quantized_conv2d", _IMAGE, _KERNEL, None, zeros(3), 1.0, 0, *_WINDOWS, False,
                words=("weight_scales", "(3,)", "(4,)"),
            ),
            *misfit(
                "quantized_conv2d", _IMAGE, _KERNEL, None, _S, 0.0, 0, *_WINDOWS, False, words=("input_scale", "0")
            ),
        ),
    ),
    OpRecord(
        "quantized_linear",
        _linear,
        _linear_samples,
        CODES,
        namespace="ops",
        errors=(
            *misfit("quantized_linear", (2, 3), _W, None, _S, 1.0, 0, False, words=("input", "float32")),
            *misfit("quantized_linear", _X, (4, 3), None, _S, 1.0, 0, False, words=("weight", "float32")),
            *misfit("quantized_linear", _X, _W, zeros(3), _S, 1.0, 0, False, words=("bias", "(3,)", "(4,)")),
            *misfit("quantized_linear", _X, _W.T, None, _S, 1.0, 0, False, words=("input", "4")),
            *misfit("quantized_linear", _X, _W, None, _S, 1.0, 300, False, words=("input_zero_point", "300")),
            *misfit("quantized_linear", _X, _W, None, _S, 1.0, 0, False, -1.0, words=("output_scale", "-1")),
        ),
    ),
]  # fmt: skip
