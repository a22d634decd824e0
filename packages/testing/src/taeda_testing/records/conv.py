"""Records of convolutions, transposed ones and their gradients, written as loops in NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from taeda_testing.arrays import random_array
from taeda_testing.record import NUMBERS, ErrorSample, OpRecord, Sample
from taeda_testing.sampling import sized
from taeda_testing.wrong import REFUSED, zeros


def _several(n: int, value: Any) -> tuple[int, ...]:
    items = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    return items * n if len(items) == 1 else items


def _same(kernel: tuple[int, ...], dilation: tuple[int, ...]) -> list[tuple[int, int]]:
    totals = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
    return [(total // 2, total - total // 2) for total in totals]


def _met(outer, kernel, inner, stride, padding, dilation) -> Iterator[tuple[Any, Any, Any]]:
    """Indices (position of the window, element of the kernel, position inside) of channels in front of them."""
    for at in np.ndindex(*outer):
        for k in np.ndindex(*kernel):
            steps = zip(at, k, stride, padding, dilation, strict=True)
            place = tuple(a * s - p + e * d for a, e, s, p, d in steps)
            if all(0 <= i < size for i, size in zip(place, inner, strict=True)):
                yield (..., *at), (..., *k), (..., *place)


def _groups(n: int, *channels: int) -> list[tuple[slice, ...]]:
    """The channels of each group, for several numbers of channels."""
    return [tuple(slice(g * c // n, (g + 1) * c // n) for c in channels) for g in range(n)]


def _wide(array: np.ndarray) -> np.ndarray:
    """In the dtype to compute in: whole numbers wrap around there as they do in their own."""
    return array.astype({"f": np.float64, "c": np.complex128}.get(array.dtype.kind, np.int64))


def _batched(function: Any) -> Any:
    """A call whose input may lack the batch; in a wide dtype, rounded to the input's."""

    def call(
        x: np.ndarray, w: np.ndarray, bias: np.ndarray | None = None, *args: Any, **kwargs: Any
    ) -> np.ndarray:
        single = x.ndim < w.ndim
        out = function(_wide(x[None] if single else x), _wide(w), *args, **kwargs)
        if bias is not None:
            out += _wide(bias).reshape(-1, *[1] * (w.ndim - 2))
        return (out[0] if single else out).astype(x.dtype)

    return call


@_batched
def convolution(x, w, stride=1, padding=0, dilation=1, groups=1):
    n, kernel = x.ndim - 2, w.shape[2:]
    stride, dilation = _several(n, stride), _several(n, dilation)
    if isinstance(padding, str):
        ends = _same(kernel, dilation) if padding == "same" else [(0, 0)] * n
    else:
        ends = [(p, p) for p in _several(n, padding)]
    lists = zip(x.shape[2:], ends, kernel, stride, dilation, strict=True)
    sizes = [(s + sum(p) - (k - 1) * d - 1) // t + 1 for s, p, k, t, d in lists]
    out = np.zeros((x.shape[0], w.shape[0], *sizes), x.dtype)
    for at, k, place in _met(sizes, kernel, x.shape[2:], stride, [p[0] for p in ends], dilation):
        for a, b in _groups(groups, x.shape[1], w.shape[0]):
            out[:, b][at] += x[:, a][place] @ w[b][k].T
    return out


@_batched
def _transposed(x, w, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    n, kernel = x.ndim - 2, w.shape[2:]
    stride, padding, extra, dilation = (_several(n, v) for v in (stride, padding, output_padding, dilation))
    lists = zip(x.shape[2:], stride, padding, kernel, dilation, extra, strict=True)
    sizes = [(s - 1) * t - 2 * p + d * (k - 1) + more + 1 for s, t, p, k, d, more in lists]
    out = np.zeros((x.shape[0], w.shape[1] * groups, *sizes), x.dtype)
    for at, k, place in _met(x.shape[2:], kernel, sizes, stride, padding, dilation):
        for a, b in _groups(groups, x.shape[1], out.shape[1]):
            out[:, b][place] += x[:, a][at] @ w[a][k]
    return out


def _backward(grad, x, w, stride, padding, dilation, groups, output_mask=7):
    n, dtype = w.ndim - 2, x.dtype
    single = x.ndim < w.ndim
    grad, x, w = map(_wide, (grad[None], x[None], w) if single else (grad, x, w))
    lists = (_several(n, stride), _several(n, padding), _several(n, dilation))
    of_x, of_w = np.zeros_like(x), np.zeros_like(w)
    for at, k, place in _met(grad.shape[2:], w.shape[2:], x.shape[2:], *lists):
        for a, b in _groups(groups, x.shape[1], w.shape[0]):
            of_x[:, a][place] += grad[:, b][at] @ w[b][k]
            of_w[b][k] += grad[:, b][at].T @ x[:, a][place]
    found = (of_x[0] if single else of_x, of_w, grad.sum((0, *range(2, grad.ndim))))
    return tuple(array.astype(dtype) for array in found)


def _time_first(x: np.ndarray, w: np.ndarray, bias: np.ndarray, pad: int = 0) -> np.ndarray:
    return convolution(x.transpose(1, 2, 0), w.transpose(2, 1, 0), bias, padding=pad).transpose(2, 0, 1)


_CONV2D = [
    ((1, 1, 4, 4), (1, 1, 3, 3), False, {}),
    ((2, 3, 6, 5), (4, 3, 3, 2), True, {"stride": (2, 1), "padding": (1, 0)}),
    ((2, 4, 7, 7), (6, 2, 3, 3), True, {"padding": 1, "groups": 2}),
    ((1, 4, 7, 6), (4, 1, 3, 3), True, {"padding": (2, 1), "dilation": 2, "groups": 4}),
    ((2, 5, 3, 3), (2, 5, 1, 1), True, {}),
    ((2, 4, 3), (3, 2, 2, 2), True, {"padding": (0, 1)}),
    ((0, 2, 4, 4), (3, 2, 2, 2), True, {}),
    ((2, 3, 7, 8), (2, 3, 1, 1), True, {"stride": 3}),
]

_SAME2D = [
    ((1, 2, 4, 5), (2, 2, 3, 2), True, {"padding": "same"}),
    ((1, 1, 5, 4), (1, 1, 2, 3), False, {"padding": "same", "dilation": (3, 1)}),
    ((2, 2, 4, 3), (2, 1, 3, 2), True, {"padding": "valid", "stride": (1, 2), "groups": 2}),
]

_CONV3D = [
    ((1, 1, 3, 3, 3), (1, 1, 2, 2, 2), False, {}),
    ((2, 3, 4, 5, 3), (4, 3, 3, 2, 1), True, {"stride": (2, 1, 2), "padding": (1, 0, 1)}),
    ((1, 4, 5, 4, 4), (6, 2, 3, 3, 3), True, {"padding": 1, "groups": 2}),
    ((1, 4, 4, 5, 3), (4, 1, 2, 2, 2), True, {"padding": (2, 1, 0), "dilation": (2, 1, 1), "groups": 4}),
    ((2, 3, 2, 2, 2), (2, 3, 1, 1, 1), True, {}),
    ((2, 3, 4, 3), (3, 2, 2, 2, 2), True, {"padding": (0, 1, 0)}),
    ((2, 2, 1, 4, 4), (3, 2, 1, 3, 3), True, {}),
    ((0, 2, 3, 3, 3), (3, 2, 2, 2, 2), True, {}),
    ((1, 2, 4, 5, 7), (3, 2, 1, 1, 1), True, {"stride": 3}),
]

_SAME3D = [
    ((1, 2, 3, 4, 5), (2, 2, 2, 3, 2), True, {"padding": "same"}),
    ((2, 1, 4, 3, 3), (1, 1, 3, 1, 2), False, {"padding": "same", "dilation": (1, 2, 2)}),
    ((1, 2, 3, 4, 3), (2, 1, 2, 2, 2), True, {"padding": "valid", "stride": (1, 2, 1), "groups": 2}),
]

_CONV1D = [
    ((1, 1, 5), (1, 1, 3), False, {}),
    ((2, 4, 8), (6, 2, 3), True, {"stride": 2, "padding": 1, "groups": 2}),
    ((2, 2, 9), (3, 2, 3), True, {"dilation": 2}),
    ((2, 6), (3, 2, 2), True, {}),
    ((2, 3, 8), (2, 3, 1), True, {"stride": 3}),
]

_SAME1D = [
    ((1, 2, 6), (3, 2, 4), True, {"padding": "same"}),
    ((2, 7), (2, 1, 3), True, {"padding": "same", "dilation": 2, "groups": 2}),
    ((1, 2, 6), (3, 2, 3), True, {"padding": "valid", "stride": 2}),
]

_TRANSPOSED1D = [
    ((1, 1, 3), (1, 1, 3), False, {}),
    ((2, 4, 3), (4, 2, 3), True, {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2}),
    ((2, 4), (2, 3, 2), True, {"stride": (1,), "dilation": (3,), "output_padding": (2,)}),
    ((0, 2, 3), (2, 1, 2), True, {}),
    ((2, 3, 3), (3, 2, 1), True, {"stride": 3}),
]

_TRANSPOSED2D = [
    ((1, 1, 2, 3), (1, 1, 2, 2), False, {}),
    (
        (2, 4, 3, 3),
        (4, 3, 3, 2),
        True,
        {"stride": (2, 3), "padding": (1, 0), "output_padding": (1, 2), "groups": 2},
    ),
    ((2, 3, 2), (2, 1, 2, 3), True, {"padding": (1, 2), "dilation": 2}),
    (
        (1, 2, 2, 2),
        (2, 1, 1, 2),
        False,
        {"stride": (1, 2), "dilation": (3, 1), "output_padding": (2, 1), "groups": 2},
    ),
    ((0, 2, 3, 3), (2, 1, 2, 2), True, {}),
    ((2, 3, 2, 3), (3, 2, 1, 1), True, {"stride": (3, 5)}),
]

_TRANSPOSED3D = [
    ((1, 1, 2, 2, 3), (1, 1, 2, 2, 2), False, {}),
    (
        (2, 4, 2, 3, 2),
        (4, 1, 2, 3, 2),
        True,
        {"stride": (2, 1, 3), "padding": (1, 0, 0), "output_padding": (1, 0, 2), "groups": 2},
    ),
    ((2, 3, 2, 2), (2, 1, 2, 2, 1), True, {"dilation": (1, 2, 1)}),
    ((0, 2, 2, 2, 2), (2, 1, 2, 2, 2), True, {}),
    ((1, 2, 2, 3, 2), (2, 2, 1, 1, 1), True, {"stride": 3}),
]

_TIME_FIRST = (((5, 2, 3), (3, 3, 4), (4,)), ((4, 1, 2), (2, 2, 3), (3,), 2))

_BACKWARD3D = [
    ((1, 1, 2, 2, 2), (1, 1, 3, 4, 3), (1, 1, 2, 3, 2), (1, 1, 1), (0, 0, 0), (1, 1, 1), 1),
    ((2, 4, 2, 1, 3), (2, 2, 4, 3, 4), (4, 1, 2, 2, 2), (2,), (0, 0, 1), (1, 2, 1), 2),
    ((2, 1, 2, 3), (1, 2, 3, 3), (2, 1, 2, 2, 1), (1,), (0,), (1,), 1, 7),
    ((0, 2, 2, 2, 2), (0, 1, 3, 3, 3), (2, 1, 2, 2, 2), (1, 1, 1), (0, 0, 0), (1, 1, 1), 1),
]

_BACKWARD = [
    ((1, 1, 2, 2), (1, 1, 4, 3), (1, 1, 3, 2), (1, 1), (0, 0), (1, 1), 1),
    ((2, 4, 1, 3), (2, 2, 4, 4), (4, 1, 2, 2), (2,), (0, 1), (2, 1), 2),
    ((2, 2, 3), (1, 3, 3), (2, 1, 2, 1), (1,), (0,), (1,), 1, 7),
    ((0, 2, 2, 2), (0, 1, 3, 3), (2, 1, 2, 2), (1, 1), (0, 0), (1, 1), 1),
]


def _convs(*calls: tuple[Any, ...], transposed: bool = False) -> Any:
    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for x, w, bias, options in calls:
            outer = w[1] * options.get("groups", 1) if transposed else w[0]
            given = random_array(rng, (outer,), dtype) if bias else None
            yield Sample((random_array(rng, x, dtype), random_array(rng, w, dtype), given), dict(options))

    return samples


def _gradients(cases: list[tuple[Any, ...]]) -> Any:
    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for grad, x, w, *rest in cases:
            yield Sample((*(random_array(rng, shape, dtype) for shape in (grad, x, w)), *rest))

    return samples


def _wrong(*calls: tuple[Any, ...]) -> tuple[ErrorSample, ...]:
    """Calls with shapes of input, weight, bias (None for none), further arguments, and words of the message."""

    def arrays(shapes: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(None if shape is None else np.zeros(shape, np.float32) for shape in shapes)

    return tuple(ErrorSample(arrays(shapes), given, REFUSED, words) for shapes, given, *words in calls)


_X, _W, _X1, _W1 = (1, 2, 4, 4), (3, 2, 3, 3), (1, 2, 4), (3, 2, 3)

_X3, _W3 = (1, 2, 4, 4, 4), (3, 2, 3, 3, 3)

_ERRORS = {
    "conv1d": (
        ((_X1, _W1, (4,)), {}, "bias", "4"),
        (((4,), _W1, None), {}, "input"),
        ((_X1, _W1, None), {"padding": (1, 1)}, "padding", "2"),
        ((_X1, _W1, None), {"padding": "same", "stride": 2}, "stride", "2"),
    ),
    "conv2d": (
        ((_X, _W, (4,)), {}, "bias", "4"),
        ((_X, (3, 2, 5, 5), None), {}, "5"),
        ((_X, _W, None), {"stride": 0}, "stride", "0"),
        ((_X, _W, None), {"groups": 2}, "groups", "2"),
        ((_X, _W, None), {"padding": "full"}, "padding", "full"),
    ),
    "conv3d": (
        ((_X3, _W3, (4,)), {}, "bias", "4"),
        ((_X3, (3, 2, 5, 5, 5), None), {}, "5"),
        ((_X3, (3, 3, 2, 2, 2), None), {}, "input", "3"),
        ((_X, _W, None), {}, "conv3d", "weight"),
        ((_X3, _W3, None), {"stride": 0}, "stride", "0"),
        ((_X3, _W3, None), {"padding": (1, 1)}, "padding", "2"),
        ((_X3, _W3, None), {"groups": 2}, "groups", "2"),
        ((_X3, _W3, None), {"padding": "full"}, "padding", "full"),
    ),
    "conv_tbc": (((_X1, _X, (4,)), {}, "weight"), ((_X1, (3, 4, 2), (3,)), {}, "bias", "3")),
    "conv_transpose3d": (
        ((_X3, _W3, None), {}, "input", "3"),
        ((_X3, (2, 3, 2, 2, 2), (4,)), {}, "conv_transpose3d", "bias", "4"),
        ((_X3, (2, 1, 2, 2, 2), None), {"output_padding": 1}, "output_padding", "1"),
        ((_X3, (2, 1, 2, 2, 2), None), {"padding": 5}, "input"),
    ),
    "conv_transpose1d": (
        ((_X1, (3, 1, 2), None), {}, "input", "3"),
        (((4,), (3, 1, 2), None), {}, "input"),
        ((_X1, (2, 1, 2), None), {"output_padding": (1,)}, "output_padding", "1"),
    ),
    "conv_transpose2d": (
        ((_X, _W, None), {}, "input", "3"),
        ((_X, (2, 3, 2, 2), (4,)), {}, "conv_transpose2d", "bias", "4"),
        ((_X, (2, 3, 2, 2), (1,)), {}, "conv_transpose2d", "bias", "(1,)"),
        ((_X, (2, 3, 2, 2), (3, 1)), {}, "conv_transpose2d", "bias", "(3, 1)"),
        ((_X, (2, 3, 2, 2), None), {"groups": 3}, "groups", "3"),
        ((_X, (2, 1, 2, 2), None), {"output_padding": 1}, "output_padding", "1"),
        ((_X, (2, 1, 2, 2), None), {"padding": 5}, "input"),
    ),
}  # fmt: skip


def _record(
    name: str, reference: Any, samples: Any, dtypes: Any = NUMBERS, errors: Any = (), **more: Any
) -> OpRecord:
    return OpRecord(
        name,
        reference,
        samples,
        dtypes,
        differentiable=True,
        rtol={"float32": 1e-4, "complex64": 1e-4},
        atol={"float32": 1e-4, "complex64": 1e-4},
        errors=(*_wrong(*_ERRORS.get(name, ())), *errors),
        **more,
    )


RECORDS = [
    _record(
        "conv1d",
        convolution,
        _convs(*_CONV1D, *_SAME1D),
        errors=(ErrorSample((zeros(1, 3, 5), zeros(2, 4, 3)), {}, REFUSED, ("conv", "3", "4")),),
    ),
    _record(
        "conv2d",
        convolution,
        _convs(*_CONV2D),
        out=True,
        errors=(ErrorSample((zeros(1, 3, 5, 5), zeros(2, 4, 3, 3)), {}, REFUSED, ("conv", "3", "4")),),
    ),
    _record("conv2d", convolution, _convs(*_SAME2D)),
    _record("conv2d_backward", _backward, _gradients(_BACKWARD), namespace="ops", half="largest"),
    _record("conv3d", convolution, _convs(*_CONV3D)),
    _record("conv3d", convolution, _convs(*_SAME3D)),
    _record("conv3d_backward", _backward, _gradients(_BACKWARD3D), namespace="ops", half="largest"),
    _record("conv_tbc", _time_first, sized(*_TIME_FIRST), half="largest"),
    _record("conv_transpose1d", _transposed, _convs(*_TRANSPOSED1D, transposed=True), half="largest"),
    _record("conv_transpose2d", _transposed, _convs(*_TRANSPOSED2D, transposed=True), half="largest"),
    _record("conv_transpose3d", _transposed, _convs(*_TRANSPOSED3D, transposed=True), half="largest"),
]
