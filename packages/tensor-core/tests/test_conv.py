"""Convolutions against direct loops in NumPy."""

import numpy as np
import pytest

import taeda_tensor_core as taeda

CASES = [  # n, c, h, w, out, kh, kw, stride, padding, dilation, groups
    (2, 3, 8, 9, 4, 3, 3, 1, 1, 1, 1),
    (1, 1, 5, 5, 1, 2, 3, 2, 0, 1, 1),
    (2, 8, 7, 7, 8, 3, 3, 1, 1, 1, 8),
    (2, 6, 9, 9, 12, 3, 1, 2, 1, 2, 3),
    (3, 16, 6, 6, 32, 1, 1, 1, 0, 1, 1),
    (2, 5, 6, 6, 7, 3, 3, 1, 2, 1, 1),
    (2, 32, 7, 7, 32, 3, 3, 2, 1, 1, 32),
    (1, 3, 16, 16, 8, 7, 7, 2, 3, 1, 1),
    # Windows of one channel each: borders wider than the image, taps that lie apart, several results of a channel.
    (2, 19, 9, 11, 19, 5, 4, 1, 6, 3, 19),
    (2, 37, 12, 9, 37, 4, 2, 3, 1, 2, 37),
    (3, 16, 7, 30, 16, 1, 9, 1, 4, 1, 16),
    (2, 33, 8, 13, 66, 3, 3, 1, 2, 2, 33),
    (2, 6, 20, 17, 24, 4, 5, 2, 3, 1, 6),
]


def taps(x, kh, kw, s, p, d):
    """Yields (i, j, window of x seen by kernel element (i, j)) for padded x."""
    n, c, h, w = x.shape
    padded = np.zeros((n, c, h + 2 * p, w + 2 * p), x.dtype)
    padded[:, :, p : p + h, p : p + w] = x
    oh, ow = (h + 2 * p - d * (kh - 1) - 1) // s + 1, (w + 2 * p - d * (kw - 1) - 1) // s + 1
    for i in range(kh):
        for j in range(kw):
            yield (
                i,
                j,
                padded[:, :, i * d : i * d + s * (oh - 1) + 1 : s, j * d : j * d + s * (ow - 1) + 1 : s],
            )


def reference(x, weight, bias, s, p, d, groups):
    o, cg, kh, kw = weight.shape
    out = 0
    for i, j, window in taps(x, kh, kw, s, p, d):
        n, _c, oh, ow = window.shape
        grouped = window.reshape(n, groups, cg, oh, ow)
        kernel = weight[:, :, i, j].reshape(groups, o // groups, cg)
        out = out + np.einsum("ngchw,goc->ngohw", grouped, kernel).reshape(n, o, oh, ow)
    return out + bias[None, :, None, None]


def reference_gradients(grad, x, weight, s, p, d, groups):
    o, cg, kh, kw = weight.shape
    n, c, h, w = x.shape
    g = grad.reshape(n, groups, o // groups, *grad.shape[2:])
    grad_x = np.zeros((n, c, h + 2 * p, w + 2 * p))
    grad_w = np.zeros_like(weight)
    oh, ow = grad.shape[2:]
    for i, j, window in taps(x, kh, kw, s, p, d):
        grouped = window.reshape(n, groups, cg, oh, ow)
        grad_w[:, :, i, j] = np.einsum("ngchw,ngohw->goc", grouped, g).reshape(o, cg)
        kernel = weight[:, :, i, j].reshape(groups, o // groups, cg)
        part = np.einsum("ngohw,goc->ngchw", g, kernel).reshape(n, c, oh, ow)
        grad_x[:, :, i * d : i * d + s * (oh - 1) + 1 : s, j * d : j * d + s * (ow - 1) + 1 : s] += part
    return grad_x[:, :, p : p + h, p : p + w], grad_w, grad.sum((0, 2, 3))


def close(got, expected, dtype="float32"):
    tolerance = {"float32": 2e-5, "bfloat16": 8e-3}.get(dtype, 1e-11) * max(
        1.0, float(np.abs(expected).max(initial=0))
    )
    assert tuple(got.shape) == expected.shape
    np.testing.assert_allclose(got.double().numpy(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", CASES)
def test_conv2d_and_gradients(case, dtype, channels_last):
    n, c, h, w, o, kh, kw, s, p, d, groups = case
    rng = np.random.default_rng(11)
    x, weight, bias = (rng.standard_normal(shape) for shape in ((n, c, h, w), (o, c // groups, kh, kw), (o,)))
    expected = reference(x, weight, bias, s, p, d, groups)
    tx, tw, tb = (taeda.from_numpy(a.astype(dtype)) for a in (x, weight, bias))
    if channels_last:
        tx = tx.contiguous(memory_format=taeda.channels_last)
    close(taeda.conv2d(tx, tw, tb, s, p, d, groups), expected, dtype)
    grad = rng.standard_normal(expected.shape)
    got = taeda.ops.conv2d_backward(taeda.from_numpy(grad.astype(dtype)), tx, tw, [s], [p], [d], groups, 7)
    for value, want in zip(got, reference_gradients(grad, x, weight, s, p, d, groups), strict=True):
        close(value, want, dtype)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    "shape, outputs", [((2, 3, 32, 48), 16), ((1, 16, 12, 12), 5), ((2, 24, 8, 20), 1), ((16, 8, 24), 3)]
)
def test_images_cut_into_patches(shape, outputs, dtype, channels_last):
    """Windows side by side that fill the image, with its gradients; a single image too."""
    rng = np.random.default_rng(16)
    kind, images = getattr(taeda, dtype), shape if len(shape) == 4 else (1, *shape)
    x, weight, bias = (
        rng.integers(-4, 5, s).astype("float64") for s in (shape, (outputs, images[1], 4, 4), (outputs,))
    )
    tx, tw, tb = (taeda.from_numpy(a).to(kind) for a in (x, weight, bias))
    if channels_last and len(shape) == 4:
        tx = tx.contiguous(memory_format=taeda.channels_last)
    expected = reference(x.reshape(images), weight, bias, 4, 0, 1, 1)
    got = taeda.conv2d(tx, tw, tb, 4)
    close(got.reshape(expected.shape), expected, dtype)
    grad = rng.integers(-2, 3, tuple(got.shape)).astype("float64")
    parts = taeda.ops.conv2d_backward(taeda.from_numpy(grad).to(kind), tx, tw, [4], [0], [1], 1, 7)
    wanted = reference_gradients(grad.reshape(expected.shape), x.reshape(images), weight, 4, 0, 1, 1)
    for value, want, of in zip(parts, wanted, (tx, tw, tb), strict=True):
        assert value.shape == of.shape
        close(value.reshape(want.shape), want, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("step", [1, 2, 4])
def test_volumes_of_one_slice_with_borders(step, dtype):
    """Of which the first window sees the border alone."""
    rng = np.random.default_rng(step)
    x, weight = (rng.integers(-3, 4, s).astype("float64") for s in ((2, 8, 1, 5, 4), (3, 8, 1, 3, 1)))
    tx, tw = (taeda.from_numpy(a).to(getattr(taeda, dtype)) for a in (x, weight))
    got = taeda.conv3d(tx, tw, None, [step, 1, 1], [1, 0, 0]).double().numpy()
    image = taeda.conv2d(taeda.from_numpy(x[:, :, 0]), taeda.from_numpy(weight[:, :, 0])).numpy()
    exact = np.zeros((2, 3, 3, *image.shape[2:]))
    exact[:, :, 1] = image
    np.testing.assert_array_equal(got, exact[:, :, ::step])


def any_case(rng):
    """A convolution of any sizes that there can be; most kernels and steps are the same in both dimensions."""
    while True:
        kernel, step = rng.choice([1, 2, 3, 4, 5, 7], 2), rng.choice([1, 1, 2, 2, 3, 4, 5], 2)
        if rng.random() < 0.5:
            kernel[1] = kernel[0]
        step[1] = rng.choice([step[0], step[1], kernel[1]])
        border, apart = rng.integers(0, kernel + 1), rng.choice([1, 1, 1, 2, 3])
        size, groups = rng.integers(1, 25, 2), rng.choice([1, 1, 1, 2])
        channels, outputs = rng.choice([1, 2, 3, 8, 16, 24], 2) * groups
        if (size + 2 * border > apart * (kernel - 1)).all():
            break
    shapes = (rng.integers(1, 4), channels, *size), (outputs, channels // groups, *kernel)
    options = step, border, [apart, apart], groups
    return [tuple(map(int, s)) for s in shapes], [np.array(o).tolist() for o in options]


def padded_reference(x, weight, step, border, apart, groups):
    """By einsum over the taps of an image with its borders, which autograd differentiates."""
    (n, _, h, w), (o, c, kh, kw) = x.shape, weight.shape
    high, wide = (size + 2 * b for size, b in zip((h, w), border, strict=True))
    image = taeda.zeros(n, x.shape[1], high, wide, dtype=taeda.float64)
    image[:, :, border[0] : border[0] + h, border[1] : border[1] + w] = x
    image, out = image.numpy(), 0
    oh, ow = (
        (size - a * (k - 1) - 1) // s + 1
        for size, k, s, a in zip((high, wide), (kh, kw), step, apart, strict=True)
    )
    for i in range(kh):
        for j in range(kw):
            rows = slice(i * apart[0], i * apart[0] + step[0] * (oh - 1) + 1, step[0])
            columns = slice(j * apart[1], j * apart[1] + step[1] * (ow - 1) + 1, step[1])
            window = image[:, :, rows, columns].reshape(n, groups, c, oh, ow)
            taps = weight[:, :, i, j].reshape(groups, o // groups, c)
            out = out + np.einsum("ngchw,goc->ngohw", window, taps).reshape(n, o, oh, ow)
    return out


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("seed", range(8))
def test_convolutions_of_any_sizes(seed, dtype):
    """Results against NumPy; gradients by the identities that make them adjoint to the convolution."""
    print("seed", seed)
    rng = np.random.default_rng(seed)
    kind, error = getattr(taeda, dtype), {"float32": 1e-5, "float64": 1e-12}.get(dtype, 1e-2)
    for _ in range(60):
        shapes, options = any_case(rng)
        x, weight = (taeda.from_numpy(rng.integers(-8, 9, s).astype("float64")).to(kind) for s in shapes)
        if rng.random() < 0.5:
            x = x.contiguous(memory_format=taeda.channels_last)
        case = (shapes, options, x.stride())
        exact = padded_reference(x.double(), weight.double().numpy(), *options)
        got = taeda.conv2d(x, weight, None, *options)
        np.testing.assert_allclose(
            got.double().numpy(), exact, rtol=error, atol=error * np.abs(exact).max(), err_msg=str(case)
        )
        # <grad, conv(x, w)> is linear in each: it is <grad_x, x'> for any other image x', and so for weights.
        grad = taeda.from_numpy(rng.integers(-8, 9, exact.shape).astype("float64")).to(kind)
        parts = taeda.ops.conv2d_backward(grad, x, weight, *options, 3)[:2]
        for found, (where, other) in zip(parts, ((0, x), (1, weight)), strict=True):
            probe = taeda.from_numpy(rng.integers(-1, 2, other.shape).astype("float64"))
            operands = [x.double(), weight.double()]
            operands[where] = probe
            wanted = (
                grad.double().numpy() * padded_reference(*operands[:1], operands[1].numpy(), *options)
            ).sum()
            scale = float((found.double().abs() * probe.abs()).sum()) + 1
            assert abs(float((found.double() * probe).sum()) - wanted) <= error * scale, (case, where)


def volume_reference(x, weight, step, border):
    """Volumes, by an einsum for each tap."""
    image = np.pad(x, [(0, 0), (0, 0), *((b, b) for b in border)])
    kernel, out = weight.shape[2:], 0
    size = [(n - k) // s + 1 for n, k, s in zip(image.shape[2:], kernel, step, strict=True)]
    for tap in np.ndindex(*kernel):
        window = tuple(slice(t, t + s * (n - 1) + 1, s) for t, s, n in zip(tap, step, size, strict=True))
        out = out + np.einsum("ncxyz,oc->noxyz", image[(..., *window)], weight[(..., *tap)])
    return out


VOLUMES = [  # size, kernel, step, border: narrow ones, borders beyond half of the kernel, slices without a window
    ((6, 11, 11), (5, 5, 5), (3, 3, 3), (4, 0, 4)),
    ((4, 6, 13), (4, 4, 4), (2, 2, 2), (3, 1, 2)),
    ((8, 6, 17), (5, 5, 5), (4, 4, 4), (0, 0, 0)),
    ((7, 5, 20), (3, 3, 3), (3, 3, 3), (0, 2, 1)),
    ((1, 8, 9), (3, 3, 3), (1, 2, 2), (1, 1, 1)),
    ((8, 8, 8), (2, 2, 2), (2, 2, 2), (0, 0, 0)),
    ((5, 7, 6), (1, 1, 1), (3, 3, 3), (0, 0, 0)),
    ((9, 6, 7), (3, 3, 3), (2, 2, 2), (1, 1, 1)),
    ((11, 8, 9), (1, 3, 5), (3, 2, 1), (0, 1, 0)),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize(("size", "kernel", "step", "border"), VOLUMES)
@pytest.mark.parametrize(("channels", "outputs"), [(2, 1), (16, 8), (3, 16)])
def test_volumes_of_any_sizes(size, kernel, step, border, channels, outputs, dtype):
    rng = np.random.default_rng(25)
    kind, error = getattr(taeda, dtype), {"float32": 1e-5, "float64": 1e-12}.get(dtype, 1e-2)
    x, weight = (
        rng.integers(-4, 5, s).astype("float64") for s in ((2, channels, *size), (outputs, channels, *kernel))
    )
    tx, tw = (taeda.from_numpy(a).to(kind) for a in (x, weight))
    exact = volume_reference(x, weight, step, border)
    got = taeda.conv3d(tx, tw, None, step, border)
    close(got, exact, dtype)
    grad = rng.integers(-4, 5, exact.shape).astype("float64")
    parts = taeda.ops.conv3d_backward(taeda.from_numpy(grad).to(kind), tx, tw, step, border, [1] * 3, 1, 3)
    for _ in range(3):
        for place, found in enumerate(parts[:2]):  # the identities of the test above
            probe = rng.integers(-1, 2, tuple(found.shape)).astype("float64")
            operands = (probe, weight) if place == 0 else (x, probe)
            wanted = (grad * volume_reference(*operands, step, border)).sum()
            inner = found.double().numpy() * probe
            assert abs(inner.sum() - wanted) <= error * (np.abs(inner).sum() + 1), place


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(20, 20, 3, 1, 2), (18, 36, 2, 2, 1), (5, 5, 4, 1, 3)])
def test_volumes_of_windows_of_one_channel_each(shape, dtype):
    c, o, k, s, p = shape
    rng = np.random.default_rng(23)
    x, weight, bias = (rng.standard_normal(z) for z in ((2, c, 7, 6, 9), (o, 1, k, k, k), (o,)))
    padded = np.pad(x, [(0, 0), (0, 0), (p, p), (p, p), (p, p)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (k, k, k), axis=(2, 3, 4))[:, :, ::s, ::s, ::s]
    windows = windows.repeat(o // c, axis=1)
    expected = np.einsum("ncdhwijk,cijk->ncdhw", windows, weight[:, 0]) + bias[:, None, None, None]
    tx, tw, tb = (taeda.from_numpy(a.astype(dtype)) for a in (x, weight, bias))
    close(taeda.conv3d(tx, tw, tb, s, p, 1, c), expected, dtype)
    grad = rng.standard_normal(expected.shape)
    got = taeda.ops.conv3d_backward(taeda.from_numpy(grad.astype(dtype)), tx, tw, [s], [p], [1], c, 7)
    grad_x = np.zeros_like(padded)
    od, oh, ow = expected.shape[2:]
    for i, j, l in np.ndindex(k, k, k):
        part = (grad * weight[:, 0, i, j, l][:, None, None, None]).reshape(2, c, o // c, od, oh, ow).sum(2)
        grad_x[:, :, i : i + s * od : s, j : j + s * oh : s, l : l + s * ow : s][:, :, :od, :oh, :ow] += part
    close(got[0], grad_x[:, :, p:-p, p:-p, p:-p], dtype)
    close(got[1], np.einsum("ncdhwijk,ncdhw->cijk", windows, grad)[:, None], dtype)
    close(got[2], grad.sum((0, 2, 3, 4)), dtype)


@pytest.mark.parametrize("groups", [1, 20])
def test_images_of_no_rows_within_their_padding(groups):
    x, weight, bias = taeda.ones(2, 20, 0, 50), taeda.ones(40, 20 // groups, 3, 3), taeda.arange(40.0)
    y = taeda.conv2d(x, weight, bias, 1, 2, 1, groups)
    assert tuple(y.shape) == (2, 40, 2, 52)
    assert taeda.equal(y, bias[:, None, None].expand(2, 40, 2, 52).contiguous())
    got = taeda.ops.conv2d_backward(taeda.ones_like(y), x, weight, [1], [2], [1], groups, 7)
    assert tuple(got[0].shape) == (2, 20, 0, 50)
    assert not got[1].any() and got[2].tolist() == [2 * 2 * 52.0] * 40


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize(
    ("shape", "outputs", "stride", "padding"),
    [
        ((3, 24, 9, 11), 1, 1, 0),
        ((2, 24, 8, 8), 24, 1, 0),
        ((1, 70, 30, 50), 21, 1, 0),
        ((2, 24, 20, 30), 7, 2, 0),
        ((2, 24, 20, 30), 7, 3, 0),
        ((2, 3, 11, 8), 4, 5, 0),
        ((2, 24, 2, 40), 5, 2, 1),  # of the sizes of the images, but with other places
        ((2, 3, 20, 30), 8, 1, 0),
        ((0, 8, 10, 10), 4, 1, 0),
    ],
)
def test_1x1_convolutions_of_planes(shape, outputs, stride, padding, dtype):
    rng = np.random.default_rng(16)
    print("seed 16")
    x, weight = rng.integers(-4, 5, shape) / 4, rng.integers(-4, 5, (outputs, shape[1])) / 4
    bias = rng.integers(-4, 5, outputs) / 4
    padded = np.pad(x, [(0, 0), (0, 0), (padding, padding), (padding, padding)])[:, :, ::stride, ::stride]
    tx, tw, tb = (taeda.from_numpy(a).to(getattr(taeda, dtype)) for a in (x, weight[:, :, None, None], bias))
    expected = np.einsum("nchw,oc->nohw", padded, weight)
    grad = rng.integers(-4, 5, expected.shape) / 4
    for given in (tx, tx.contiguous(memory_format=taeda.channels_last)):
        close(taeda.conv2d(given, tw, tb, stride, padding), expected + bias[:, None, None], dtype)
        close(taeda.conv2d(given, tw, None, stride, padding), expected, dtype)
        tg = taeda.from_numpy(grad).to(tx.dtype)
        got = taeda.ops.conv2d_backward(tg, given, tw, [stride], [padding], [1], 1, 7)
        back = np.zeros_like(np.pad(x, [(0, 0), (0, 0), (padding, padding), (padding, padding)]))
        back[:, :, ::stride, ::stride] = np.einsum("nohw,oc->nchw", grad, weight)
        rows, columns = (slice(padding, padding + n) for n in shape[2:])
        close(got[0], back[:, :, rows, columns], dtype)
        close(got[1], np.einsum("nohw,nchw->oc", grad, padded)[:, :, None, None], dtype)
        close(got[2], grad.sum((0, 2, 3)), dtype)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("channels", [1, 3, 4, 8, 15])
def test_strided_1x1_convolutions_of_few_channels(channels, threads):
    # A routine of oneDNN's wrote behind its room here, into other threads' numbers and what else lies on the heap: see
    # Note [Strided 1x1 convolutions of few channels] in onednn/conv.cpp.
    rng = np.random.default_rng(15)
    x, grad = rng.standard_normal((2, channels, 64, 64)), rng.standard_normal((2, 20, 32, 32))
    weight = taeda.zeros(20, channels, 1, 1)
    images = taeda.from_numpy(x.astype("float32")).contiguous(memory_format=taeda.channels_last)
    expected = np.einsum("nohw,nchw->oc", grad, x[:, :, ::2, ::2])[:, :, None, None]
    neighbours = [taeda.full((size,), 7.0) for size in range(64, 20_000, 500)]
    before = taeda.get_num_threads()
    taeda.set_num_threads(threads)
    try:
        for _ in range(20):
            got = taeda.ops.conv2d_backward(
                taeda.from_numpy(grad.astype("float32")), images, weight, [2], [0], [1], 1, 2
            )
            close(got[1], expected)
    finally:
        taeda.set_num_threads(before)
    assert all(bool((values == 7.0).all()) for values in neighbours)


def test_only_the_gradients_asked_for():
    x, weight, grad = taeda.ones(1, 2, 4, 4), taeda.ones(3, 2, 3, 3), taeda.ones(1, 3, 2, 2)
    for mask in range(8):
        got = taeda.ops.conv2d_backward(grad, x, weight, [1], [0], [1], 1, mask)
        assert [g is not None for g in got] == [bool(mask & bit) for bit in (1, 2, 4)]


def test_result_can_be_flattened_in_logical_order():
    rng = np.random.default_rng(12)
    x, weight = (rng.standard_normal(s).astype("float32") for s in ((2, 3, 6, 6), (4, 3, 3, 3)))
    y = taeda.conv2d(taeda.from_numpy(x), taeda.from_numpy(weight))
    flat = y.view(y.size(0), -1)
    close(flat, reference(x, weight, np.zeros(4), 1, 1 - 1, 1, 1).reshape(2, -1))
    flat.zero_()
    assert float(y.abs().sum()) == 0.0


def test_batch_may_be_absent_or_empty():
    rng = np.random.default_rng(13)
    x, weight = rng.standard_normal((3, 6, 6)), rng.standard_normal((4, 3, 3, 3))
    got = taeda.conv2d(taeda.from_numpy(x), taeda.from_numpy(weight))
    close(got, reference(x[None], weight, np.zeros(4), 1, 0, 1, 1)[0], "float64")
    assert tuple(taeda.conv2d(taeda.ones(0, 3, 6, 6), taeda.ones(4, 3, 3, 3)).shape) == (0, 4, 4, 4)


def test_conv1d_is_conv2d_of_height_one():
    rng = np.random.default_rng(14)
    x, weight, bias = rng.standard_normal((2, 4, 11)), rng.standard_normal((6, 2, 3)), rng.standard_normal(6)
    args = [taeda.from_numpy(a) for a in (x, weight, bias)]
    padded = np.pad(x, ((0, 0), (0, 0), (2, 2)))
    expected = np.stack(
        [
            sum(
                np.einsum(
                    "nc,oc->no", padded[:, g * 2 : g * 2 + 2, t * 2 + k], weight[g * 3 : g * 3 + 3, :, k]
                )
                for k in range(3)
            )
            for g in range(2)
            for t in range(7)
        ]
    )
    expected = expected.reshape(2, 7, 2, 3).transpose(2, 0, 3, 1).reshape(2, 6, 7) + bias[None, :, None]
    close(taeda.conv1d(*args, 2, 2, 1, 2), expected, "float64")


@pytest.mark.parametrize("kernel", [3, 4])
def test_padding_same_and_valid(kernel):
    rng = np.random.default_rng(15)
    x, weight = rng.standard_normal((1, 2, 9, 9)), rng.standard_normal((3, 2, kernel, kernel))
    low = (kernel - 1) // 2
    padded = np.pad(x, ((0, 0), (0, 0), (low, kernel - 1 - low), (low, kernel - 1 - low)))
    tx, tw = taeda.from_numpy(x), taeda.from_numpy(weight)
    close(taeda.conv2d(tx, tw, padding="same"), reference(padded, weight, np.zeros(3), 1, 0, 1, 1), "float64")
    close(taeda.conv2d(tx, tw, padding="valid"), reference(x, weight, np.zeros(3), 1, 0, 1, 1), "float64")


def test_conv_transpose_is_the_adjoint():
    """<conv(x), y> = <x, conv_transpose(y)> for any x and y."""
    rng = np.random.default_rng(16)
    weight = rng.standard_normal((6, 2, 3, 3))
    x = rng.standard_normal((2, 4, 9, 9))
    tw = taeda.from_numpy(weight)
    forward = taeda.conv2d(taeda.from_numpy(x), tw, None, 2, 1, 1, 2)
    y = rng.standard_normal(tuple(forward.shape))
    back = taeda.conv_transpose2d(taeda.from_numpy(y), tw, None, 2, 1, 0, 2)
    assert tuple(back.shape) == x.shape
    np.testing.assert_allclose((forward.numpy() * y).sum(), (x * back.numpy()).sum(), rtol=1e-10)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision(dtype):
    rng = np.random.default_rng(17)
    x, weight = (
        rng.standard_normal((1, 2, 6, 6)).astype("float32"),
        rng.standard_normal((3, 2, 3, 3)).astype("float32"),
    )
    half = getattr(taeda, dtype)
    got = taeda.conv2d(taeda.from_numpy(x).to(half), taeda.from_numpy(weight).to(half))
    assert got.dtype == half
    np.testing.assert_allclose(
        got.to(taeda.float32).numpy(), reference(x, weight, np.zeros(3), 1, 0, 1, 1), atol=0.2
    )


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (
            lambda t: t.conv2d(t.ones(1, 2, 4, 4), t.ones(3, 5, 3, 3)),
            RuntimeError,
            ["conv2d", "input", "(1, 2, 4, 4)", "5 channels"],
        ),
        (lambda t: t.conv2d(t.ones(4, 4), t.ones(3, 5, 3, 3)), RuntimeError, ["conv2d", "input", "(4, 4)"]),
        (
            lambda t: t.conv2d(t.ones(1, 2, 4, 4), t.ones(3, 2, 5, 5)),
            RuntimeError,
            ["conv2d", "smaller", "(3, 2, 5, 5)"],
        ),
        (
            lambda t: t.conv2d(t.ones(1, 2, 4, 4), t.ones(3, 2, 3, 3), t.ones(4)),
            RuntimeError,
            ["conv2d", "bias", "(4,)", "(3,)"],
        ),
        (
            lambda t: t.conv2d(t.ones(1, 2, 4, 4), t.ones(3, 2, 3, 3), None, 0),
            RuntimeError,
            ["conv2d", "stride", "at least 1"],
        ),
        (
            lambda t: t.conv2d(t.ones(1, 2, 4, 4), t.ones(3, 1, 3, 3), None, 1, 0, 1, 2),
            RuntimeError,
            ["conv2d", "groups", "divisor"],
        ),
        (
            lambda t: t.conv2d(t.ones(1, 2, 4, 4), t.ones(3, 2, 3, 3).double()),
            RuntimeError,
            ["conv2d", "weight", "float64", "float32"],
        ),
        (
            lambda t: t.conv2d(t.ones(1, 2, 4, 4, dtype=t.bool), t.ones(3, 2, 3, 3, dtype=t.bool)),
            NotImplementedError,
            ["conv2d", "bool"],
        ),
        (
            lambda t: t.conv2d(t.ones(1, 2, 4, 4), t.ones(3, 2, 3, 3), padding="full"),
            RuntimeError,
            ["conv2d", "padding", "full"],
        ),
    ],
)
def test_errors_name_what_is_wrong(call, kind, words):
    with pytest.raises(kind) as caught:
        call(taeda)
    for word in words:
        assert word in str(caught.value)


#: n, c, h, w, out, kernel, stride, padding, dilation, groups: cut by images, by rows, and not at all.
SHAPES = [
    (33, 16, 20, 20, 24, 3, 1, 1, 1, 1),
    (1, 16, 80, 60, 24, 3, 1, 1, 1, 1),
    (3, 16, 61, 47, 24, 5, 2, 2, 1, 1),
    (1, 16, 90, 33, 32, 3, 3, 0, 2, 1),
    (2, 32, 64, 40, 32, 1, 2, 0, 1, 1),
    (1, 32, 70, 70, 32, 3, 2, 1, 1, 32),
    (1, 8, 40, 40, 16, 3, 1, 4, 1, 2),
    (1, 3, 150, 150, 16, 7, 2, 3, 1, 1),
    (2, 40, 50, 40, 40, 5, 1, 4, 2, 40),
    (2, 24, 33, 40, 48, 4, 2, 3, 1, 24),
]


@pytest.mark.parametrize("shape", SHAPES)
def test_deterministic_convolutions_are_the_same_bits_with_any_number_of_threads(shape):
    n, c, h, w, o, k, s, p, d, groups = shape
    rng = np.random.default_rng(17)
    x, weight, bias = (rng.standard_normal(z) for z in ((n, c, h, w), (o, c // groups, k, k), (o,)))
    expected = reference(x, weight, bias, s, p, d, groups)
    grad = rng.standard_normal(expected.shape)
    wanted = [expected, *reference_gradients(grad, x, weight, s, p, d, groups)]
    threads = taeda.get_num_threads()
    taeda.use_deterministic_algorithms(True)
    try:
        for dtype in ("float32", "bfloat16"):
            tx, tw, tb, tg = (taeda.tensor(a).to(getattr(taeda, dtype)) for a in (x, weight, bias, grad))
            found = {}
            for count in (1, 2, 3, 4):
                taeda.set_num_threads(count)
                y = taeda.conv2d(tx, tw, tb, s, p, d, groups)
                found[count] = [y, *taeda.ops.conv2d_backward(tg, tx, tw, [s], [p], [d], groups, 7)]
            for count in (2, 3, 4):
                for one, many in zip(found[1], found[count], strict=True):
                    assert taeda.equal(one, many), (dtype, count)
            if dtype == "float32":
                for value, want in zip(found[1], wanted, strict=True):
                    close(value, want)
    finally:
        taeda.use_deterministic_algorithms(False)
        taeda.set_num_threads(threads)
