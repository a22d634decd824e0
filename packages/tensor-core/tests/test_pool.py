"""Pooling against direct loops in NumPy."""

import numpy as np
import pytest

import taeda_tensor_core as taeda

CASES = [  # n, c, h, w, kernel, stride, padding, dilation, ceil_mode
    (2, 3, 8, 8, (2, 2), (2, 2), (0, 0), (1, 1), False),
    (2, 20, 9, 7, (3, 3), (2, 2), (1, 1), (1, 1), False),
    (1, 4, 9, 9, (3, 3), (2, 2), (1, 1), (1, 1), True),
    (2, 3, 12, 12, (3, 3), (1, 1), (1, 1), (2, 2), False),
    (1, 130, 6, 6, (3, 3), (2, 2), (1, 1), (1, 1), False),
    (3, 2, 7, 7, (3, 2), (2, 1), (1, 0), (1, 1), True),
    # rows of results longer than what is handled at a time, at one, two and three columns apart
    (1, 2, 4, 300, (2, 3), (2, 1), (1, 1), (1, 1), False),
    (1, 2, 5, 299, (3, 3), (1, 2), (1, 1), (2, 1), True),
    (2, 1, 3, 431, (3, 4), (1, 3), (0, 2), (1, 2), False),
]


def out_size(size, k, s, p, d, ceil):
    room = size + 2 * p - d * (k - 1) - 1
    out = (-(-room // s) if ceil else room // s) + 1
    return out - 1 if ceil and (out - 1) * s >= size + p else out


def windows(case):
    """Yields (output row, output column, rows, columns, padded size of the window)."""
    _, _, h, w, k, s, p, d, ceil = case
    for y in range(out_size(h, k[0], s[0], p[0], d[0], ceil)):
        for x in range(out_size(w, k[1], s[1], p[1], d[1], ceil)):
            rows = [r for r in (y * s[0] - p[0] + i * d[0] for i in range(k[0])) if 0 <= r < h]
            columns = [q for q in (x * s[1] - p[1] + i * d[1] for i in range(k[1])) if 0 <= q < w]
            tall = min(y * s[0] - p[0] + k[0], h + p[0]) - (y * s[0] - p[0])
            wide = min(x * s[1] - p[1] + k[1], w + p[1]) - (x * s[1] - p[1])
            yield y, x, rows, columns, tall * wide


def sizes(case):
    _, _, h, w, k, s, p, d, ceil = case
    return out_size(h, k[0], s[0], p[0], d[0], ceil), out_size(w, k[1], s[1], p[1], d[1], ceil)


def tensors(array, channels_last):
    t = taeda.from_numpy(array.copy())
    return t.contiguous(memory_format=taeda.channels_last) if channels_last else t


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", CASES)
def test_max_pool2d_and_gradient(case, dtype, channels_last):
    n, c, h, w, k, s, p, d, ceil = case
    rng = np.random.default_rng(21)
    x = rng.standard_normal((n, c, h, w)).astype(dtype)
    x[0, 0, 1, 1] = np.nan
    grad = rng.standard_normal((n, c, *sizes(case))).astype(dtype)
    value, place, grad_x = np.zeros_like(grad), np.zeros(grad.shape, np.int64), np.zeros_like(x)
    for y, q, rows, columns, _ in windows(case):
        part = x[:, :, rows][:, :, :, columns].reshape(n, c, -1)
        # argmax takes the first maximum, and NaN before all
        best = part.argmax(-1)
        value[:, :, y, q] = np.take_along_axis(part, best[..., None], -1)[..., 0]
        place[:, :, y, q] = np.array(rows)[best // len(columns)] * w + np.array(columns)[best % len(columns)]
        np.add.at(
            grad_x.reshape(n, c, -1),
            (np.arange(n)[:, None], np.arange(c)[None], place[:, :, y, q]),
            grad[:, :, y, q],
        )
    args = (list(k), list(s), list(p), list(d), ceil)
    tx, tg = tensors(x, channels_last), tensors(grad, channels_last)
    np.testing.assert_array_equal(taeda.max_pool2d(tx, *args).numpy(), value)
    got, indices = taeda.max_pool2d_with_indices(tx, *args)
    np.testing.assert_array_equal(got.numpy(), value)
    np.testing.assert_array_equal(indices.numpy(), place)
    ops = taeda.ops
    result, offsets = ops.max_pool2d_with_offsets(tx, *args)
    np.testing.assert_allclose(
        ops.max_pool2d_backward(tg, tx, *args, offsets).numpy(), grad_x, rtol=1e-5, atol=1e-5
    )
    np.testing.assert_allclose(
        ops.max_pool2d_with_indices_backward(tg, tx, *args, indices).numpy(), grad_x, rtol=1e-5, atol=1e-5
    )
    np.testing.assert_array_equal(ops.max_pool2d_pick(tx, *args, offsets).numpy(), value)
    assert result.is_contiguous(memory_format=taeda.channels_last) or not channels_last


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("count_include_pad, divisor", [(True, None), (False, None), (True, 3)])
@pytest.mark.parametrize("case", [c for c in CASES if c[7] == (1, 1)])
def test_avg_pool2d_and_gradient(case, count_include_pad, divisor, channels_last):
    n, c, h, w, k, s, p, _, ceil = case
    rng = np.random.default_rng(22)
    x = rng.standard_normal((n, c, h, w))
    grad = rng.standard_normal((n, c, *sizes(case)))
    value, grad_x = np.zeros_like(grad), np.zeros_like(x)
    for y, q, rows, columns, padded in windows(case):
        count = divisor or (padded if count_include_pad else len(rows) * len(columns))
        value[:, :, y, q] = x[:, :, rows][:, :, :, columns].sum((2, 3)) / count
        grad_x[np.ix_(range(n), range(c), rows, columns)] += (grad[:, :, y, q] / count)[:, :, None, None]
    args = (list(k), list(s), list(p), ceil, count_include_pad, divisor)
    tx, tg = tensors(x, channels_last), tensors(grad, channels_last)
    np.testing.assert_allclose(taeda.avg_pool2d(tx, *args).numpy(), value, atol=1e-12)
    np.testing.assert_allclose(taeda.ops.avg_pool2d_backward(tg, tx, *args).numpy(), grad_x, atol=1e-12)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("kernel", [(3, 3), (1, 7), (5, 5)])
def test_means_of_whole_numbers_are_rounded_once(kernel, channels_last):
    """Their sums are exact, so a mean is the nearest float32, as a division gives it."""
    x = np.random.default_rng(24).integers(-99, 99, (2, 5, 15, 105))
    places = np.lib.stride_tricks.sliding_window_view(x, kernel, (2, 3))[:, :, :: kernel[0], :: kernel[1]]
    expected = places.sum((-1, -2)).astype(np.float32) / np.float32(kernel[0] * kernel[1])
    tx = tensors(x.astype(np.float32), channels_last)
    np.testing.assert_array_equal(taeda.avg_pool2d(tx, list(kernel)).numpy(), expected)
    np.testing.assert_array_equal(
        taeda.ops.adaptive_avg_pool2d(tx, list(expected.shape[2:])).numpy(), expected
    )
    args = (list(kernel), list(kernel), [0, 0], False, True, None)
    grad = taeda.ops.avg_pool2d_backward(taeda.ones(expected.shape), tx, *args)
    np.testing.assert_array_equal(
        grad.numpy(), np.full(x.shape, np.float32(1) / np.float32(kernel[0] * kernel[1]))
    )


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("size", [(1, 1), (3, 2), (9, 10), (11, 12)])
def test_adaptive_pools(size, channels_last):
    rng = np.random.default_rng(23)
    x, grad = rng.standard_normal((2, 6, 9, 10)), rng.standard_normal((2, 6, *size))
    mean, top = np.zeros_like(grad), np.zeros_like(grad)
    grad_mean, grad_top = np.zeros_like(x), np.zeros_like(x)
    for y in range(size[0]):
        for q in range(size[1]):
            rows = slice(y * 9 // size[0], -(-(y + 1) * 9 // size[0]))
            columns = slice(q * 10 // size[1], -(-(q + 1) * 10 // size[1]))
            part = x[:, :, rows, columns]
            mean[:, :, y, q], top[:, :, y, q] = part.mean((2, 3)), part.max((2, 3))
            g = grad[:, :, y, q][:, :, None, None]
            grad_mean[:, :, rows, columns] += g / (part.shape[2] * part.shape[3])
            grad_top[:, :, rows, columns] += g * (part == part.max((2, 3), keepdims=True))
    tx, tg = tensors(x, channels_last), tensors(grad, channels_last)
    ops = taeda.ops
    np.testing.assert_allclose(ops.adaptive_avg_pool2d(tx, list(size)).numpy(), mean, atol=1e-12)
    np.testing.assert_allclose(ops.adaptive_avg_pool2d_backward(tg, tx).numpy(), grad_mean, atol=1e-12)
    got, indices = ops.adaptive_max_pool2d(tx, list(size))
    np.testing.assert_array_equal(got.numpy(), top)
    np.testing.assert_allclose(
        ops.adaptive_max_pool2d_backward(tg, tx, indices).numpy(), grad_top, atol=1e-12
    )


def test_one_dimension():
    x = np.random.default_rng(24).standard_normal((2, 3, 11))
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1)), constant_values=-np.inf)
    zeros = np.pad(x, ((0, 0), (0, 0), (1, 1)))
    top = np.stack([padded[:, :, i : i + 3].max(-1) for i in range(0, 11, 2)], -1)
    mean = np.stack([zeros[:, :, i : i + 3].mean(-1) for i in range(0, 11, 2)], -1)
    t = taeda.from_numpy(x)
    np.testing.assert_array_equal(taeda.max_pool1d(t, 3, 2, 1).numpy(), top)
    np.testing.assert_allclose(taeda.avg_pool1d(t, 3, 2, 1).numpy(), mean, atol=1e-12)
    np.testing.assert_allclose(taeda.adaptive_avg_pool1d(t, 1).numpy(), x.mean(-1, keepdims=True), atol=1e-12)


def test_large_windows_and_missing_batch():
    x = np.random.default_rng(25).standard_normal((3, 40, 40)).astype("float32")
    got = taeda.max_pool2d(taeda.from_numpy(x), 20)
    np.testing.assert_array_equal(got.numpy(), x.reshape(3, 2, 20, 2, 20).max((2, 4)))


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (lambda t: t.max_pool2d(t.ones(4, 4), 2), RuntimeError, ["max_pool2d", "input", "(4, 4)"]),
        (
            lambda t: t.max_pool2d(t.ones(1, 1, 4, 4), 5),
            RuntimeError,
            ["max_pool2d", "(1, 1, 4, 4)", "window"],
        ),
        (
            lambda t: t.max_pool2d(t.ones(1, 1, 4, 4), 2, 2, 2),
            RuntimeError,
            ["max_pool2d", "padding", "half"],
        ),
        (
            lambda t: t.max_pool2d(t.ones(1, 1, 4, 4), 0),
            RuntimeError,
            ["max_pool2d", "kernel_size", "at least 1"],
        ),
        (
            lambda t: t.max_pool2d(t.ones(1, 1, 4, 4, dtype=t.bool), 2),
            NotImplementedError,
            ["max_pool2d", "bool"],
        ),
        (
            lambda t: t.avg_pool2d(t.ones(1, 1, 4, 4), 2, divisor_override=0),
            RuntimeError,
            ["avg_pool2d", "divisor_override"],
        ),
        (
            lambda t: t.ops.adaptive_avg_pool2d(t.ones(1, 1, 4, 4), [1, 2, 3]),
            RuntimeError,
            ["adaptive_avg_pool2d", "output_size", "3"],
        ),
    ],
)
def test_errors_name_what_is_wrong(call, kind, words):
    with pytest.raises(kind) as caught:
        call(taeda)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_windows_of_two_elements(dtype):
    """The larger one, the first of equals, and NaN before numbers."""
    x = np.random.default_rng(3).integers(-3, 3, (2, 3, 41)).astype(dtype)
    x[0, 0, [4, 7, 10, 11]] = np.nan
    pairs = x[..., :40].reshape(2, 3, 20, 2)
    values, places = taeda.ops.max_pool1d_with_indices(taeda.from_numpy(x), [2])
    second = (pairs[..., 1] > pairs[..., 0]) | np.isnan(pairs[..., 1])
    assert np.array_equal(values.numpy(), np.where(second, pairs[..., 1], pairs[..., 0]), equal_nan=True)
    assert np.array_equal(places.numpy(), np.arange(0, 40, 2) + second)
    assert np.array_equal(
        taeda.ops.max_pool1d(taeda.from_numpy(x), [2]).numpy(), values.numpy(), equal_nan=True
    )


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int32", "uint8"])
@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize(
    "kernel, stride, padding, dilation", [(2, 2, 0, 1), (3, 2, 1, 1), (3, 1, 1, 1), (2, 3, 0, 2)]
)
def test_maxima_of_rows_of_every_width(kernel, stride, padding, dilation, channels_last, dtype):
    """Rows and channels as long as a register, shorter and longer, with ties; NaN is greater than numbers."""
    rng = np.random.default_rng(23)
    print("seed 23")
    for width in (*range(4, 20), 31, 33, 50, 67):
        a = rng.integers(0, 9, (2, 1 + width % 21, 6, width)).astype(np.float64)
        if "float" in dtype:
            a[rng.random(a.shape) < 0.02] = np.nan
        x = taeda.from_numpy(a).to(getattr(taeda, dtype))
        if channels_last:
            x = x.contiguous(memory_format="channels_last")
        values, places = taeda.ops.max_pool2d_with_indices(x, kernel, stride, padding, dilation)
        bare = taeda.ops.max_pool2d(x, kernel, stride, padding, dilation)
        padded = np.pad(a, [(0, 0), (0, 0), (padding, padding), (padding, padding)], constant_values=-np.inf)
        reach = (kernel - 1) * dilation + 1
        seen = np.lib.stride_tricks.sliding_window_view(padded, (reach, reach), (2, 3))
        windows = seen[:, :, ::stride, ::stride, ::dilation, ::dilation]
        expected = windows.max((4, 5))
        np.testing.assert_array_equal(values.to(taeda.float64).numpy(), expected)
        np.testing.assert_array_equal(bare.to(taeda.float64).numpy(), expected)
        picked = np.take_along_axis(a.reshape(*a.shape[:2], -1), places.numpy().reshape(*a.shape[:2], -1), 2)
        np.testing.assert_array_equal(picked.reshape(expected.shape), expected)
        if not np.isnan(a).any():  # of equals the first
            flat = windows.reshape(*expected.shape, -1).argmax(-1)
            row = np.arange(expected.shape[2])[:, None] * stride + flat // kernel * dilation - padding
            column = np.arange(expected.shape[3]) * stride + flat % kernel * dilation - padding
            np.testing.assert_array_equal(places.numpy(), row * width + column)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize(
    "kernel, stride, padding, dilation",
    [(2, 2, 0, 1), (3, 2, 1, 1), (3, 1, 1, 1), (2, 3, 0, 2), (7, 1, 3, 1)],
)
def test_gradients_of_channels_side_by_side_are_those_of_planes(kernel, stride, padding, dilation, dtype):
    """Of numbers of channels that fill registers and such that do not."""
    rng = np.random.default_rng(29)
    print("seed 29")
    for channels in (*range(1, 10), 16, 17, 33, 64, 130):
        a = rng.integers(0, 5, (2, channels, 9, 11)).astype(np.float32)
        planes = taeda.from_numpy(a).to(getattr(taeda, dtype))
        last = planes.contiguous(memory_format=taeda.channels_last)
        results = []
        for x in (planes, last):
            values, offsets = taeda.ops.max_pool2d_with_offsets(x, kernel, stride, padding, dilation)
            grad = taeda.arange(float(values.numel())).remainder(7).reshape(values.shape).to(x.dtype)
            back = taeda.ops.max_pool2d_backward(
                grad, x, [kernel], [stride], [padding], [dilation], False, offsets
            )
            results.append((values, offsets, back))
        for one, other in zip(*results, strict=True):
            assert taeda.equal(one, other)
        assert float(results[0][2].double().sum()) == float(grad.double().sum())
