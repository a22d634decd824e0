"""Losses against NumPy and SciPy formulas; gradients against differences."""

import numpy as np
import pytest

import taeda_tensor_core as taeda

INF, NAN = float("inf"), float("nan")
ops = taeda.ops
REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def tensor(array):
    return taeda.from_numpy(np.array(array, order="C"))


def reduce(values, reduction, total=None):
    if reduction == "none":
        return values
    return values.sum() / (values.size if total is None else total) if reduction == "mean" else values.sum()


def differences(f, x, grad, step=1e-6):
    """Gradient of sum(f(x) * grad) by central differences."""
    out = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        high, low = x.copy(), x.copy()
        high[i] += step
        low[i] -= step
        out[i] = ((f(high) - f(low)) * grad).sum() / (2 * step)
    return out


def classes_last(x):
    return x if x.ndim == 1 else np.moveaxis(x, 1, -1)


def cross_entropy(x, target, weight, reduction, smoothing):
    """Losses of all positions, then reduced; -100 is ignored."""
    x = classes_last(x)
    c = x.shape[-1]
    log_p = x - np.log(np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True)) - x.max(-1, keepdims=True)
    kept = target != -100
    safe = np.where(kept, target, 0)
    w = np.where(kept, weight[safe], 0)
    hit = -np.take_along_axis(log_p, safe[..., None], -1)[..., 0] * w
    smooth = -(log_p * weight).sum(-1) * kept
    return reduce((1 - smoothing) * hit + smoothing / c * smooth, reduction, w.sum())


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(5, 4), (3, 4, 2), (2, 3, 2, 3), (4,)])
def test_cross_entropy(shape, weighted, smoothing, reduction):
    rng = np.random.default_rng(41)
    c = shape[1] if len(shape) > 1 else shape[0]
    x = rng.standard_normal(shape) * 3
    target = np.array(rng.integers(0, c, (shape[0], *shape[2:]) if len(shape) > 1 else ()))
    if target.ndim:
        target.flat[0] = -100
    weight = rng.random(c) + 0.1 if weighted else np.ones(c)
    tw = tensor(weight) if weighted else None
    expected = cross_entropy(x, target, weight, reduction, smoothing)
    code = REDUCTIONS[reduction]
    got = ops.cross_entropy_loss(tensor(x), tensor(target), tw, code, -100, smoothing)
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-10)
    got, lse, total = ops.cross_entropy_forward(tensor(x), tensor(target), tw, code, -100, smoothing)
    grad = rng.standard_normal(np.shape(expected))
    back = ops.cross_entropy_backward(
        tensor(grad), tensor(x), tensor(target), tw, code, -100, smoothing, lse, total
    )
    numeric = differences(lambda v: cross_entropy(v, target, weight, reduction, smoothing), x, grad)
    np.testing.assert_allclose(back.numpy(), numeric, atol=1e-7)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", [(5, 4), (3, 4, 2), (2, 3, 2, 3), (4,)])
def test_nll_loss(shape, reduction):
    rng = np.random.default_rng(42)
    c = shape[1] if len(shape) > 1 else shape[0]
    x, weight = rng.standard_normal(shape), rng.random(c) + 0.1
    target = np.array(rng.integers(0, c, (shape[0], *shape[2:]) if len(shape) > 1 else ()))
    ignored = int(target.flat[0]) if target.ndim else -100
    w = np.where(target == ignored, 0, weight[target])

    def loss(v):
        return reduce(
            -np.take_along_axis(classes_last(v), target[..., None], -1)[..., 0] * w, reduction, w.sum()
        )

    code = REDUCTIONS[reduction]
    args = (tensor(x), tensor(target), tensor(weight), code, ignored)
    np.testing.assert_allclose(ops.nll_loss(*args).numpy(), loss(x), rtol=1e-12)
    total = ops.nll_loss_forward(*args)[1]
    grad = rng.standard_normal(np.shape(loss(x)))
    back = ops.nll_loss_backward(tensor(grad), *args, total)
    np.testing.assert_allclose(back.numpy(), differences(loss, x, grad), atol=1e-8)


@pytest.mark.parametrize("scale", [1.0, 1e2, 1e4, 1e6])
@pytest.mark.parametrize("shape", [(9, 33), (3, 33, 40)])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy_of_large_scores_loses_no_digits(scale, shape, smoothing):
    """The logarithm of a sum beside large scores has few digits left; losses and gradients are not made of it."""
    print("seed 1129")
    random = np.random.default_rng(1129)
    x = (random.standard_normal(shape) * scale).astype(np.float32)
    target = random.integers(0, 33, (shape[0], *shape[2:]))
    weight = random.random(33).astype(np.float32)
    for weights in (None, weight):
        per_class = None if weights is None else tensor(weights)
        arguments = (tensor(x), tensor(target), per_class, REDUCTIONS["mean"], -100, smoothing)
        loss, sums, total = ops.cross_entropy_forward(*arguments)
        each = np.ones(33) if weights is None else weights.astype(np.float64)
        expected = cross_entropy(x.astype(np.float64), target, each, "mean", smoothing)
        assert abs(loss.item() - expected) <= 4e-7 * abs(expected)
        wide = (
            tensor(x.astype(np.float64)),
            *arguments[1:2],
            None if weights is None else per_class.double(),
            *arguments[3:],
        )
        exact = ops.cross_entropy_backward(
            taeda.tensor(1.0).double(), *wide, *ops.cross_entropy_forward(*wide)[1:]
        )
        found = ops.cross_entropy_backward(taeda.tensor(1.0), *arguments, sums, total)
        assert (found.double() - exact).abs().max() <= 1e-6 * exact.abs().max()


def test_cross_entropy_of_equal_scores_as_large_as_can_be():
    x, target = tensor(np.array([[1e30, 1e30, 1.0]], np.float32)), tensor(np.array([0]))
    loss, sums, total = ops.cross_entropy_forward(x, target, None, 1, -100, 0.0)
    assert loss.item() == pytest.approx(np.log(2))
    back = ops.cross_entropy_backward(taeda.tensor(1.0), x, target, None, 1, -100, 0.0, sums, total)
    np.testing.assert_allclose(back.numpy(), [[-0.5, 0.5, 0.0]], atol=1e-7)


@pytest.mark.parametrize("copies", [1, 11, 40])
@pytest.mark.parametrize(
    "values",
    [[INF, NAN, 1.0], [-INF, NAN, 0.0], [NAN] * 3, [INF, 1.0, 2.0], [-INF, -3.0, 4.0], [1e30, -1e30, 0.0]],
)
def test_cross_entropy_of_rows_with_special_values(values, copies):
    """Short rows and long ones: the sum of exponentials relative to the largest that IEEE arithmetic gives, which is
    NaN beside an infinite score."""
    row = np.array(values * copies)
    for target in range(3):
        with np.errstate(invalid="ignore", over="ignore"):
            top = row.max()  # NaN if there is one
            powers = np.exp(row - top)
            expected = np.log(powers.sum()) + (top - row[target])
            slope = powers / powers.sum() - (np.arange(row.size) == target)
        for dtype in (taeda.float32, taeda.float64):
            x = taeda.tensor([row.tolist()], dtype=dtype)
            planes = x.reshape(1, -1, 1, 1).expand(1, row.size, 2, 1)
            for scores, classes in ((x, [target]), (planes, [[[target], [target]]])):
                arguments = (scores, taeda.tensor(classes), None, 1, -100, 0.0)
                loss, sums, total = ops.cross_entropy_forward(*arguments)
                np.testing.assert_allclose(loss.item(), expected, rtol=1e-6, atol=1e-6)
                back = ops.cross_entropy_backward(taeda.tensor(1.0, dtype=dtype), *arguments, sums, total)
                found = back.reshape(row.size, -1).sum(1).numpy()
                np.testing.assert_allclose(found, slope, rtol=1e-3, atol=1e-6)


def test_losses_of_infinite_logits_and_yes_or_no():
    """log(1 + exp(x)) - t x as a limit; infinity times nothing is no number."""
    x = [INF, INF, INF, -INF, -INF, -INF, 1e30, -1e30]
    t = [0.0, 0.25, 1.0, 0.0, 0.75, 1.0, 0.0, 1.0]
    expected = [INF, INF, NAN, NAN, INF, INF, 1e30, 1e30]
    for dtype in (taeda.float32, taeda.float64):
        logits, wanted = taeda.tensor(x, dtype=dtype), taeda.tensor(t, dtype=dtype)
        np.testing.assert_allclose(ops.bce_with_logits_loss(logits, wanted, 0).numpy(), expected, rtol=1e-6)
        grad = ops.bce_with_logits_loss_backward(taeda.ones(8, dtype=dtype), logits, wanted, 0).numpy()
        np.testing.assert_allclose(grad, [1, 0.75, 0, 0, -0.75, -1, 1, -1])


def test_targets_of_binary_cross_entropy_are_chances():
    for t in (-0.5, 1.5, INF, NAN):
        with pytest.raises(RuntimeError, match=r"argument 'target'.*between 0 and 1"):
            ops.bce_loss(tensor([0.5, 0.5]), tensor([1.0, t]), 1)
        with pytest.raises(RuntimeError, match=r"argument 'input'.*between 0 and 1"):
            ops.bce_loss(tensor([0.5, t]), tensor([1.0, 0.5]), 1)


def test_ctc_loss_of_scores_that_are_no_numbers():
    """A label that cannot come makes the loss infinite, one with NaN makes it NaN, which is not taken for infinite."""
    lengths = taeda.tensor([2]), taeda.tensor([1])
    for middle, plain, zeroed in ((NAN, NAN, NAN), (-INF, INF, 0.0)):
        scores = tensor([[[-1.0, middle, -2.0]]] * 2)
        for zero, expected in ((False, plain), (True, zeroed)):
            found = ops.ctc_loss(scores, taeda.tensor([[1]]), *lengths, 0, 2, zero)
            np.testing.assert_equal(found.item(), expected)


def test_cross_entropy_of_probabilities_and_extremes():
    rng = np.random.default_rng(43)
    x, p = rng.standard_normal((3, 5)), rng.dirichlet(np.ones(5), 3)
    log_p = x - np.log(np.exp(x).sum(1, keepdims=True))
    np.testing.assert_allclose(
        ops.cross_entropy_loss(tensor(x), tensor(p)).numpy(), -(p * log_p).sum() / 3, rtol=1e-12
    )
    huge = taeda.tensor([[1000.0, 0.0], [-1000.0, 0.0]])
    got = ops.cross_entropy_loss(huge, taeda.tensor([0, 0]), None, 0)
    np.testing.assert_array_equal(got.numpy(), [0.0, 1000.0])
    assert np.isnan(ops.cross_entropy_loss(taeda.ones(2, 3), taeda.tensor([-100, -100])).numpy())


def softplus(z):
    return np.logaddexp(0, z)


PAIRS = {
    "mse_loss": (lambda x, t: (x - t) ** 2, ()),
    "l1_loss": (lambda x, t: np.abs(x - t), ()),
    "smooth_l1_loss": (
        lambda x, t: np.where(np.abs(x - t) < 0.7, (x - t) ** 2 / 1.4, np.abs(x - t) - 0.35),
        (0.7,),
    ),
    "huber_loss": (
        lambda x, t: np.where(np.abs(x - t) <= 0.7, (x - t) ** 2 / 2, 0.7 * (np.abs(x - t) - 0.35)),
        (0.7,),
    ),
    "bce_loss": (lambda x, t: -(t * np.log(x) + (1 - t) * np.log(1 - x)), ()),
    "bce_with_logits_loss": (lambda x, t: softplus(x) - x * t, ()),
}


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", PAIRS)
def test_element_wise_losses(name, reduction):
    rng = np.random.default_rng(44)
    formula, extra = PAIRS[name]
    x, t = (
        (rng.random((3, 6)) * 0.9 + 0.05 for _ in range(2))
        if "bce" in name
        else rng.standard_normal((2, 3, 6))
    )
    code = REDUCTIONS[reduction]

    def loss(v):
        return reduce(formula(v, t), reduction)

    np.testing.assert_allclose(
        getattr(ops, name)(tensor(x), tensor(t), code, *extra).numpy(), loss(x), rtol=1e-11
    )
    x32, t32 = x.astype("float32"), t.astype("float32")
    np.testing.assert_allclose(
        getattr(ops, name)(tensor(x32), tensor(t32), code, *extra).numpy(), loss(x), rtol=2e-5, atol=1e-6
    )
    grad = rng.standard_normal(np.shape(loss(x)))
    back = getattr(ops, name + "_backward")(tensor(grad), tensor(x), tensor(t), code, *extra)
    np.testing.assert_allclose(back.numpy(), differences(loss, x, grad), atol=1e-7)


def test_mse_broadcasts_and_sums_long_inputs():
    rng = np.random.default_rng(45)
    x, t = rng.standard_normal((3, 4)), rng.standard_normal(4)
    np.testing.assert_allclose(ops.mse_loss(tensor(x), tensor(t)).numpy(), ((x - t) ** 2).mean(), rtol=1e-12)
    long = rng.random(300_000).astype("float32")
    got = ops.mse_loss(tensor(long), taeda.zeros(300_000))
    np.testing.assert_allclose(got.numpy(), (long.astype("float64") ** 2).mean(), rtol=1e-6)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_composed_losses(reduction):
    rng = np.random.default_rng(46)
    code = REDUCTIONS[reduction]
    x, p, t = rng.standard_normal((3, 5)), rng.random((3, 5)) * 0.9 + 0.05, rng.random((3, 5))
    w = rng.random(5)
    bce = -(t * np.log(p) + (1 - t) * np.log(1 - p)) * w
    np.testing.assert_allclose(
        ops.binary_cross_entropy(tensor(p), tensor(t), tensor(w), code).numpy(),
        reduce(bce, reduction),
        rtol=1e-11,
    )
    logits = ((1 - t) * x + (1 + (w - 1) * t) * softplus(-x)) * w
    got = ops.binary_cross_entropy_with_logits(tensor(x), tensor(t), tensor(w), tensor(w), code)
    np.testing.assert_allclose(got.numpy(), reduce(logits, reduction), rtol=1e-11)
    np.testing.assert_allclose(
        ops.kl_div(tensor(x), tensor(t), code).numpy(), reduce(t * (np.log(t) - x), reduction), rtol=1e-11
    )
    got = ops.kl_div(tensor(x), tensor(t), code, log_target=True)
    np.testing.assert_allclose(got.numpy(), reduce(np.exp(t) * (t - x), reduction), rtol=1e-11)


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (
            lambda t: ops.cross_entropy_loss(t.ones(2, 3), t.tensor([0, 3])),
            IndexError,
            ["cross_entropy_loss", "target", "Target 3 is out of bounds", "0 to 2"],
        ),
        (
            lambda t: ops.cross_entropy_loss(t.ones(2, 3), t.tensor([0, 1, 2])),
            ValueError,
            ["cross_entropy_loss", "target", "(3,)", "(2,)"],
        ),
        (
            lambda t: ops.cross_entropy_loss(t.ones(2, 3), t.ones(2)),
            RuntimeError,
            ["cross_entropy_loss", "target", "float32"],
        ),
        (
            lambda t: ops.nll_loss(t.ones(2, 3), t.tensor([0, 1]), t.ones(2)),
            RuntimeError,
            ["nll_loss", "weight", "(2,)", "(3,)"],
        ),
        (lambda t: ops.mse_loss(t.ones(2, 3), t.ones(4)), RuntimeError, ["mse_loss", "(2, 3)", "(4,)"]),
        (lambda t: ops.mse_loss(t.ones(2), t.ones(2), 7), ValueError, ["mse_loss", "reduction", "7"]),
        (
            lambda t: ops.binary_cross_entropy(t.ones(2) * 2, t.ones(2)),
            RuntimeError,
            ["binary_cross_entropy", "input", "2"],
        ),
        (
            lambda t: ops.binary_cross_entropy(t.ones(2), t.ones(3)),
            ValueError,
            ["binary_cross_entropy", "target", "(3,)", "(2,)"],
        ),
        (lambda t: ops.huber_loss(t.ones(2), t.ones(2), 1, 0.0), RuntimeError, ["huber_loss", "delta"]),
    ],
)
def test_errors_name_what_is_wrong(call, kind, words):
    with pytest.raises(kind) as caught:
        call(taeda)
    for word in words:
        assert word in str(caught.value)


def huber(x, t):
    d = np.abs(x - t)
    return np.where(d <= 1, 0.5 * d * d, d - 0.5)


FOLLOWING = {
    "huber_loss": huber,
    "hinge_embedding_loss": lambda x, t: np.where(t == 1, x, np.maximum(0, 1 - x)),
    "soft_margin_loss": lambda x, t: np.log1p(np.exp(-t * x)),
}


@pytest.mark.parametrize("name", FOLLOWING)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(
    "own, other", [("float16", "float32"), ("bfloat16", "float16"), ("float32", "float64")]
)
def test_losses_that_have_the_dtype_of_their_input(name, reduction, own, other):
    dtype, x, t = getattr(taeda, own), np.array([0.5, -3.0, 1.25, 0.75]), np.array([1.0, -1.0, -1.0, 1.0])
    got = getattr(ops, name)(
        tensor(x).to(dtype), tensor(t).to(getattr(taeda, other)), reduction=REDUCTIONS[reduction]
    )
    assert got.dtype is dtype
    step = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-22}[own]
    expected = reduce(FOLLOWING[name](x, t), reduction)
    np.testing.assert_allclose(got.to(taeda.float64).numpy(), expected, rtol=step)


@pytest.mark.parametrize("dtype", ["int64", "complex64"])
def test_kl_div_is_of_floating_numbers(dtype):
    floats, others = taeda.ones(3), taeda.ones(3, dtype=getattr(taeda, dtype))
    with pytest.raises(RuntimeError, match=f"kl_div: argument 'target' has dtype {dtype}"):
        ops.kl_div(floats, others)
    with pytest.raises(RuntimeError, match=f"kl_div: argument 'self' has dtype {dtype}"):
        ops.kl_div(others, floats)
