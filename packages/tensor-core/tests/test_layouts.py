"""Operators on tensors that lie anyhow in memory give what they give on row-major copies, and NumPy's values."""

import numpy as np
import pytest

import taeda_tensor_core as tc

SEED = 20261130
DTYPES = ["float32", "float64", "bfloat16", "float16", "int64", "int32", "uint8", "bool"]
LAYOUTS = {
    "row-major": lambda t: t,
    "turned": lambda t: t.transpose(-1, -2).contiguous().transpose(-1, -2),
    "every second": lambda t: t.repeat_interleave(2, -1)[..., ::2],
    "every third": lambda t: t.repeat_interleave(3, -1)[..., ::3],
    "rows apart": lambda t: t.repeat_interleave(2, -2)[..., ::2, :],
    "one row": lambda t: t[..., :1, :].expand(t.shape),
    "one column": lambda t: t[..., :1].expand(t.shape),
    "outer last": lambda t: t.movedim(0, -1).contiguous().movedim(-1, 0),
}
SHAPES = [(3, 5, 7), (4, 33, 66), (70, 2, 129), (2, 300, 17), (5, 1, 1)]


def laid(shape, dtype, layout, seed=SEED):
    values = np.random.default_rng(seed).integers(-9, 10, shape) / (1 if "int" in dtype else 4)
    if dtype == "uint8":
        values = abs(values)
    t = LAYOUTS[layout](tc.from_numpy(values).to(getattr(tc, dtype)))
    return t, t.contiguous()


def same(a, b):
    """To the bit: shapes, dtypes and values, NaN included."""
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(same, a, b))
    return a.shape == b.shape and a.dtype == b.dtype and tc.equal(a, b)


def exact(got, expected):
    """Equal, but for the rounding of halves."""
    step = {tc.bfloat16: 2**-8, tc.float16: 2**-11}.get(got.dtype, 0)
    np.testing.assert_allclose(got.to(tc.float64).numpy(), expected, rtol=step, atol=0)


every_layout = pytest.mark.parametrize("layout", LAYOUTS)
every_dtype = pytest.mark.parametrize("dtype", DTYPES)


@every_layout
@every_dtype
@pytest.mark.parametrize(
    "name", ["neg", "abs", "relu", "exp", "square", "maximum", "add", "mul", "where", "clamp", "lt", "lerp"]
)
def test_element_by_element(name, dtype, layout):
    calls = {
        "where": lambda x, y: tc.where(x > y, x, y),
        "clamp": lambda x, y: x.clamp(0, 1),
        "lerp": lambda x, y: tc.lerp(x, y, 0.25),
        "relu": lambda x, y: tc.relu(x),
    }
    call = calls.get(name) or (
        (lambda x, y: getattr(tc, name)(x, y))
        if name in ("maximum", "add", "mul", "lt")
        else (lambda x, y: getattr(tc, name)(x))
    )
    for shape in SHAPES:
        (x, plain_x), (y, plain_y) = laid(shape, dtype, layout), laid(shape, dtype, layout, SEED + 1)
        try:
            expected = call(plain_x, plain_y)
        except (RuntimeError, NotImplementedError) as error:  # not for this dtype, whatever the layout
            with pytest.raises(type(error)):
                call(x, y)
            return
        for pair in ((x, y), (x, plain_y), (plain_x, y), (x, y[:1]), (x[..., :1], y)):
            plain = call(*(t.contiguous() for t in pair))
            assert same(call(*pair), plain), (shape, SEED)
        assert same(call(x, y), expected), (shape, SEED)


def reductions(x, dim):
    """Results whose values are exact, so that no order of additions shows."""
    yield "sum", x.sum(dim)
    yield "amax", x.amax(dim)
    yield "amin", x.amin(dim)
    yield "max", x.max(dim)
    yield "argmin", x.argmin(dim)
    yield "any", x.bool().any(dim)
    yield "cumsum", x.cumsum(dim)
    yield "cummax", x.cummax(dim)
    yield "cumprod", x.sign().cumprod(dim) if x.dtype not in (tc.bool, tc.uint8) else x.cumsum(dim)
    yield "sort", x.sort(dim, stable=True)


@every_layout
@every_dtype
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_along_a_dimension(dim, dtype, layout):
    for shape in SHAPES:
        x, plain = laid(shape, dtype, layout)
        for (name, got), (_, expected) in zip(reductions(x, dim), reductions(plain, dim), strict=True):
            assert same(got, expected), (name, shape, SEED)
        values = plain.to(tc.float64).numpy()
        exact(x.sum(dim), values.sum(dim))
        np.testing.assert_array_equal(x.amax(dim).to(tc.float64).numpy(), values.max(dim))
        if dtype in ("float32", "float64", "int64", "int32"):
            np.testing.assert_array_equal(x.cumsum(dim).to(tc.float64).numpy(), values.cumsum(dim))
            np.testing.assert_array_equal(
                x.cummax(dim)[0].to(tc.float64).numpy(), np.maximum.accumulate(values, dim)
            )


@every_layout
@every_dtype
def test_over_several_dimensions(dtype, layout):
    for shape in SHAPES:
        x, plain = laid(shape, dtype, layout)
        values = plain.to(tc.float64).numpy()
        for dims in ((0, 1), (1, 2), (0, 2), (0, 1, 2)):
            exact(x.sum(dims), values.sum(dims))
            np.testing.assert_array_equal(x.amin(dims).to(tc.float64).numpy(), values.min(dims))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64"])
@pytest.mark.parametrize("name", ["sum", "mean", "amax", "amin", "norm", "prod"])
def test_rows_together_are_rows_alone(name, dtype):
    """A row's result does not depend on what is computed beside it, to the last bit."""
    if dtype == "int64" and name in ("mean", "norm"):
        return
    calls = {"norm": lambda t, d: tc.linalg.vector_norm(t, dim=d), "prod": lambda t, d: (t / 2).prod(d)}
    call = calls.get(name) or (lambda t, d: getattr(t, name)(d))
    rng = np.random.default_rng(SEED)
    for n in (1, 3, 15, 16, 17, 40, 63, 64, 65, 100, 129, 500, 1025):
        x = tc.from_numpy(rng.standard_normal((37, n)) * 9).to(getattr(tc, dtype))
        if name == "amax" and dtype != "int64":
            x[5, n // 2] = float("nan")
        alone = tc.stack([call(row, 0) for row in x.unbind(0)])
        together = call(x, -1)
        assert tc.equal(together.nan_to_num(77), alone.nan_to_num(77)), (n, SEED)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("n", [16, 30, 64, 100, 256, 300, 600])
def test_normalised_rows_together_are_rows_alone(n, dtype):
    rng = np.random.default_rng(SEED)
    x, up = (tc.from_numpy(rng.standard_normal((37, n)) * 9).to(getattr(tc, dtype)) for _ in range(2))
    calls = {
        "softmax": lambda x, up: tc.softmax(x, -1),
        "log_softmax": lambda x, up: tc.log_softmax(x, -1),
        "softmax_backward": lambda x, up: tc.ops.softmax_backward(up, tc.softmax(x, -1), -1),
        "log_softmax_backward": lambda x, up: tc.ops.log_softmax_backward(up, tc.log_softmax(x, -1), -1),
        "layer_norm": lambda x, up: tc.ops.native_layer_norm(x, [n], None, None, 1e-5)[0],
    }
    for name, call in calls.items():
        alone = tc.cat([call(x[i : i + 1], up[i : i + 1]) for i in range(len(x))])
        assert tc.equal(call(x, up), alone), (name, SEED)


@every_layout
@every_dtype
def test_picked_and_cleared_elements(dtype, layout):
    for shape in SHAPES:
        x, plain = laid(shape, dtype, layout)
        for dim, size in enumerate(shape):
            index = tc.arange(2 * size) * 3 % size
            assert same(x.index_select(dim, index), plain.index_select(dim, index)), (shape, SEED)
            at = tuple(index if d == dim else slice(None) for d in range(3))
            assert same(x[at].contiguous(), plain[at].contiguous()), (shape, SEED)
        for k in (-1, 0, 2):
            assert same(x.tril(k).contiguous(), plain.tril(k)) and same(x.triu(k).contiguous(), plain.triu(k))
        assert tc.equal(x, plain) and not tc.equal(x, plain.logical_not().to(x.dtype))


@every_layout
@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_losses(name, reduction, layout):
    for shape in SHAPES:
        (x, plain_x), (y, plain_y) = laid(shape, "float64", layout), laid(shape, "float64", layout, SEED + 1)
        loss = getattr(tc.ops, name)
        more = () if name in ("mse_loss", "l1_loss") else (1.0,)
        got, expected = loss(x, y, reduction, *more), loss(plain_x, plain_y, reduction, *more)
        np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-14)
