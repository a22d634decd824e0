"""Normalisation against NumPy formulas in float64."""

import numpy as np
import pytest

import taeda_tensor_core as taeda

ops = taeda.ops
EPS = 1e-5


def tensor(array, dtype="float64", channels_last=False):
    t = taeda.from_numpy(np.array(array, dtype=dtype))
    return t.contiguous(memory_format=taeda.channels_last) if channels_last else t


def close(got, expected, dtype):
    tolerance = (5e-5 if dtype == "float32" else 1e-10) * max(1.0, float(np.abs(expected).max()))
    assert tuple(got.shape) == expected.shape
    np.testing.assert_allclose(got.numpy(), expected, rtol=tolerance, atol=tolerance)


def channel(values, ndim):
    return values.reshape(1, -1, *(1,) * (ndim - 2))


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "shape, channels_last",
    [((8, 5), False), ((4, 3, 6, 7), False), ((4, 3, 6, 7), True), ((3, 70, 5, 5), True), ((3, 4, 9), False)],
)
def test_batch_norm_and_gradients(shape, channels_last, dtype, training, affine):
    rng = np.random.default_rng(31)
    c, axes, nd = shape[1], (0, *range(2, len(shape))), len(shape)
    x, grad = rng.standard_normal(shape) * 2 + 5, rng.standard_normal(shape)
    weight, bias = (rng.standard_normal(c), rng.standard_normal(c)) if affine else (np.ones(c), np.zeros(c))
    running_mean, running_var = rng.standard_normal(c), rng.random(c) + 0.5
    mean, var = (x.mean(axes), x.var(axes)) if training else (running_mean, running_var)
    invstd = 1 / np.sqrt(var + EPS)
    normal = (x - channel(mean, nd)) * channel(invstd, nd)
    rm, rv = tensor(running_mean, dtype), tensor(running_var, dtype)
    w, b = (tensor(weight, dtype), tensor(bias, dtype)) if affine else (None, None)
    tx = tensor(x, dtype, channels_last)
    got, save_mean, save_invstd = ops.native_batch_norm(tx, w, b, rm, rv, training, 0.1, EPS)
    close(got, normal * channel(weight, nd) + channel(bias, nd), dtype)
    close(save_mean, mean, dtype)
    close(save_invstd, invstd, dtype)
    if training:
        close(rm, 0.9 * running_mean + 0.1 * mean, dtype)
        close(rv, 0.9 * running_var + 0.1 * x.var(axes, ddof=1), dtype)
    else:
        close(rm, running_mean, dtype)
    grad_x, grad_w, grad_b = ops.batch_norm_backward(
        tensor(grad, dtype), tx, w, save_mean, save_invstd, training, 7
    )
    dot, total, count = (grad * normal).sum(axes), grad.sum(axes), x.size / c
    inner = grad - channel(total / count, nd) - normal * channel(dot / count, nd) if training else grad
    close(grad_x, inner * channel(weight * invstd, nd), dtype)
    close(grad_w, dot, dtype)
    close(grad_b, total, dtype)
    assert not channels_last or got.is_contiguous(memory_format=taeda.channels_last)


def test_batch_norm_of_large_offsets():
    """The variance survives a mean a thousand times larger."""
    x = np.random.default_rng(32).standard_normal((64, 3, 8, 8)) + 1000
    got = ops.batch_norm(tensor(x, "float32"), None, None, None, None, True, 0.1, EPS)
    x32 = x.astype("float32").astype("float64")
    expected = (x32 - x32.mean((0, 2, 3), keepdims=True)) / np.sqrt(x32.var((0, 2, 3), keepdims=True) + EPS)
    np.testing.assert_allclose(got.numpy(), expected, atol=2e-3)


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "shape, trailing", [((4, 10), 1), ((2, 3, 40), 2), ((5, 7, 130), 1), ((6,), 1), ((0, 4), 1)]
)
def test_layer_norm_and_gradients(shape, trailing, dtype, affine):
    rng = np.random.default_rng(33)
    x, grad = rng.standard_normal(shape) + 3, rng.standard_normal(shape)
    size, axes = shape[-trailing:], tuple(range(-trailing, 0))
    weight, bias = (
        (rng.standard_normal(size), rng.standard_normal(size)) if affine else (np.ones(size), np.zeros(size))
    )
    rstd = 1 / np.sqrt(x.var(axes, keepdims=True) + EPS)
    normal = (x - x.mean(axes, keepdims=True)) * rstd
    w, b = (tensor(weight, dtype), tensor(bias, dtype)) if affine else (None, None)
    got, mean, got_rstd = ops.native_layer_norm(tensor(x, dtype), list(size), w, b, EPS)
    if x.size == 0:
        assert tuple(got.shape) == shape
        return
    close(got, normal * weight + bias, dtype)
    grads = ops.layer_norm_backward(tensor(grad, dtype), tensor(x, dtype), list(size), mean, got_rstd, w, 7)
    g = grad * weight
    close(
        grads[0],
        rstd * (g - g.mean(axes, keepdims=True) - normal * (g * normal).mean(axes, keepdims=True)),
        dtype,
    )
    lead = tuple(range(x.ndim - trailing))
    close(grads[1], (grad * normal).sum(lead), dtype)
    close(grads[2], grad.sum(lead), dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape, groups", [((4, 6, 5, 5), 3), ((2, 8, 3), 2), ((3, 4), 2), ((2, 9000), 3)])
def test_group_norm_and_gradients(shape, groups, dtype):
    rng = np.random.default_rng(34)
    x, grad = rng.standard_normal(shape) + 3, rng.standard_normal(shape)
    weight, bias = rng.standard_normal(shape[1]), rng.standard_normal(shape[1])
    nd = len(shape)

    def rows(a):
        return a.reshape(shape[0], groups, -1)

    rstd = 1 / np.sqrt(rows(x).var(-1, keepdims=True) + EPS)
    normal = (rows(x) - rows(x).mean(-1, keepdims=True)) * rstd
    scaled = normal.reshape(shape) * channel(weight, nd) + channel(bias, nd)
    w, b = tensor(weight, dtype), tensor(bias, dtype)
    got, mean, got_rstd = ops.native_group_norm(tensor(x, dtype), groups, w, b, EPS)
    close(got, scaled, dtype)
    grads = ops.group_norm_backward(tensor(grad, dtype), tensor(x, dtype), groups, mean, got_rstd, w, 7)
    g = rows(grad * channel(weight, nd))
    inner = rstd * (g - g.mean(-1, keepdims=True) - normal * (g * normal).mean(-1, keepdims=True))
    axes = (0, *range(2, nd))
    close(grads[0], inner.reshape(shape), dtype)
    close(grads[1], (grad * normal.reshape(shape)).sum(axes), dtype)
    close(grads[2], grad.sum(axes), dtype)


def test_instance_and_rms_norm():
    rng = np.random.default_rng(35)
    x, weight = rng.standard_normal((2, 3, 4, 5)), rng.standard_normal(5)
    expected = (x - x.mean((2, 3), keepdims=True)) / np.sqrt(x.var((2, 3), keepdims=True) + EPS)
    close(ops.instance_norm(tensor(x)), expected, "float64")
    assert ops.instance_norm(tensor(x[:, :0])).shape == (2, 0, 4, 5)
    expected = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-3) * weight
    close(ops.rms_norm(tensor(x), [5], tensor(weight), 1e-3), expected, "float64")


def test_half_precision_inputs():
    x = np.random.default_rng(36).standard_normal((4, 3, 5, 5))
    got = ops.batch_norm(tensor(x).to(taeda.bfloat16), None, None, None, None, True, 0.1, EPS)
    assert got.dtype == taeda.bfloat16
    expected = (x - x.mean((0, 2, 3), keepdims=True)) / np.sqrt(x.var((0, 2, 3), keepdims=True) + EPS)
    np.testing.assert_allclose(got.to(taeda.float64).numpy(), expected, atol=0.05)


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (
            lambda t: ops.batch_norm(t.ones(4), None, None, None, None, True, 0.1, EPS),
            RuntimeError,
            ["batch_norm", "input", "(4,)"],
        ),
        (
            lambda t: ops.batch_norm(t.ones(4, 3), t.ones(2), None, None, None, True, 0.1, EPS),
            RuntimeError,
            ["batch_norm", "weight", "(2,)", "(3,)"],
        ),
        (
            lambda t: ops.batch_norm(t.ones(4, 3), None, None, None, None, False, 0.1, EPS),
            RuntimeError,
            ["batch_norm", "running_mean"],
        ),
        (
            lambda t: ops.batch_norm(t.ones(1, 3), None, None, None, None, True, 0.1, EPS),
            ValueError,
            ["batch_norm", "input", "(1, 3)"],
        ),
        (lambda t: t.layer_norm(t.ones(4, 3), [4]), RuntimeError, ["layer_norm", "input", "(4, 3)", "(4,)"]),
        (lambda t: t.layer_norm(t.ones(4, 3).int(), [3]), NotImplementedError, ["layer_norm", "int32"]),
        (lambda t: t.group_norm(t.ones(4, 3), 2), RuntimeError, ["group_norm", "num_groups", "2", "(4, 3)"]),
    ],
)
def test_errors_name_what_is_wrong(call, kind, words):
    with pytest.raises(kind) as caught:
        call(taeda)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 0), (2, 3, 0)])
def test_layer_norm_of_rows_without_elements(shape):
    x = taeda.ones(*shape)
    assert tuple(ops.layer_norm(x, [0]).shape) == shape
    result, mean, rstd = ops.native_layer_norm(x, [0], taeda.ones(0), taeda.ones(0), EPS)
    assert tuple(result.shape) == shape and tuple(mean.shape) == tuple(rstd.shape) == (*shape[:-1], 1)
    grad_input, grad_weight, grad_bias = ops.layer_norm_backward(x, x, [0], mean, rstd, None)
    assert tuple(grad_input.shape) == shape and tuple(grad_weight.shape) == tuple(grad_bias.shape) == (0,)


@pytest.mark.parametrize(
    "own, other", [("float16", "float32"), ("bfloat16", "float64"), ("float32", "float64")]
)
def test_rms_norm_has_the_dtype_of_its_input(own, other):
    values, weight = np.array([[300.0, -250.0, 30000.0], [1.0, 2.0, -4.0]]), np.array([1.0, 0.25, 3.0])
    dtype = getattr(taeda, own)
    x = tensor(values).to(dtype)
    got = ops.rms_norm(x, [3], tensor(weight, other), 1e-6)
    assert got.dtype is dtype
    held = x.to(taeda.float64).numpy()
    expected = held / np.sqrt((held**2).mean(-1, keepdims=True) + 1e-6) * weight
    step = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-21}[own]
    np.testing.assert_allclose(got.to(taeda.float64).numpy(), expected, rtol=step)


PARAMETERS = {
    "layer_norm": lambda x, w, b: ops.layer_norm(x, [3], w, b),
    "group_norm": lambda x, w, b: ops.group_norm(x, 3, w, b),
    "batch_norm": lambda x, w, b: ops.batch_norm(x, w, b, None, None, True, 0.1, EPS),
    "instance_norm": lambda x, w, b: ops.instance_norm(
        x[..., None].expand(2, 3, 4), w, b, None, None, True, 0.1, EPS
    ),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_have_the_dtype_of_the_input_or_float32_beside_halves(name):
    norm, x = PARAMETERS[name], taeda.ones(2, 3)
    for own, other in [("float32", "float64"), ("float64", "float32"), ("float32", "float16"), ("float32", "int64"),
                       ("float32", "complex64"), ("float16", "bfloat16"), ("bfloat16", "float64")]:  # fmt: skip
        values, parameter = x.to(getattr(taeda, own)), taeda.ones(3, dtype=getattr(taeda, other))
        for place, pair in (("weight", (parameter, None)), ("bias", (None, parameter))):
            with pytest.raises(RuntimeError, match=f"'{place}' has dtype {other}, expected {own}"):
                norm(values, *pair)
    for half in (taeda.float16, taeda.bfloat16):
        assert norm(x.to(half), taeda.ones(3), taeda.ones(3)).dtype is half


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("order", [(0, 2, 3, 1), (2, 0, 3, 1), (3, 2, 1, 0)])
@pytest.mark.parametrize("sizes", [(3, 6, 5, 7), (2, 70, 40, 20), (1, 4, 1, 1), (2, 1024, 3, 3)])
def test_group_norm_in_every_order_of_memory(sizes, order, dtype):
    """Against NumPy: channels innermost, more samples than one outermost or not; a mean far from 0."""
    rng = np.random.default_rng(17)
    print("seed 17")
    cast = lambda a: taeda.from_numpy(np.array(a)).to(getattr(taeda, dtype))  # noqa: E731
    back = np.argsort(order).tolist()
    plain = lambda t: t.to(taeda.float64).numpy()  # noqa: E731
    kept = [sizes[d] for d in order]
    x = cast(rng.normal(size=kept) + (300 if dtype != "bfloat16" else 1)).permute(back)
    up = cast(rng.normal(size=kept)).permute(back)
    w, b = cast(rng.normal(size=sizes[1])), cast(rng.normal(size=sizes[1]))
    y, mean, rstd = taeda.ops.native_group_norm(x, 2, w, b, 1e-5)
    a, g = plain(x).reshape(sizes[0], 2, -1), plain(up)
    wide = lambda v: v[:, None, None]  # noqa: E731
    middle, scale = a.mean(2, keepdims=True), 1 / np.sqrt(a.var(2, keepdims=True) + 1e-5)
    standard = ((a - middle) * scale).reshape(sizes)
    unit = {"float32": 1e-4, "float64": 1e-9, "bfloat16": 3e-2}[dtype]

    def close(found, expected):
        np.testing.assert_allclose(plain(found), expected, rtol=unit, atol=unit * 4)

    close(y, standard * wide(plain(w)) + wide(plain(b)))
    close(mean, middle[..., 0])
    close(rstd, scale[..., 0])
    found = taeda.ops.group_norm_backward(up, x, 2, mean, rstd, w, 7)
    above = (g * wide(plain(w))).reshape(a.shape)
    flat = standard.reshape(a.shape)
    expected = scale * (above - above.mean(2, keepdims=True) - flat * (above * flat).mean(2, keepdims=True))
    close(found[0], expected.reshape(sizes))
    size = np.sqrt(g.size / sizes[1])
    close(found[1] / size, (g * standard).sum((0, 2, 3)) / size)
    close(found[2] / size, g.sum((0, 2, 3)) / size)
    if order == (0, 2, 3, 1) and sizes[2] > 1:
        assert y.stride() == found[0].stride() == x.stride()


@pytest.mark.parametrize("sizes", [(2, 0, 3, 3), (2, 0), (0, 4, 3), (2, 4, 0), (0, 0), (2, 4, 0, 3)])
def test_group_norm_without_elements(sizes):
    x, w = taeda.zeros(sizes), taeda.ones(sizes[1])
    y, mean, rstd = ops.native_group_norm(x, 1, w, w, EPS)
    found = ops.group_norm_backward(y, x, 1, mean, rstd, w, 7)
    assert y.shape == found[0].shape == sizes
    assert found[1].tolist() == found[2].tolist() == [0] * sizes[1]
