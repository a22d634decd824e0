"""Variances, norms, losses, triangles, searches and draws that take a launch or two: against NumPy."""

from __future__ import annotations

import device_programs as programs
import pytest

HEAD = """
import numpy as np
import taeda_tensor_core as tc
rng = np.random.default_rng(SEED)
kind = tc.get_device_module("cuda")
tc.manual_seed(SEED)
tried = 0

def there(value):
    return tc.from_numpy(np.array(value)).to("cuda") if isinstance(value, (np.ndarray, np.generic)) else value

def near(found, expected, tolerance=1e-12):
    global tried
    tried += 1
    found, expected = found.cpu().numpy(), np.asarray(expected)
    assert found.shape == expected.shape, (found.shape, expected.shape)
    assert np.allclose(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True), (found, expected)
"""
HEAD += programs.launches(warm=True)
HEAD += """
def ways(x):
    yield there(x)
    yield there(np.ascontiguousarray(x.T)).permute(*reversed(range(x.ndim)))
    yield there(np.stack([x, x], -1))[..., 1]
"""


def run(program: str, least: int, seed: int = 1) -> None:
    programs.check(program, HEAD, least, seed)


def test_variances() -> None:
    run(
        """
for shape in ((7,), (3, 40), (40, 3), (33, 1, 65), (5000,), (2, 9000), (300, 70), (9000, 2)):
    x = rng.standard_normal(shape) * 3 + 1000
    for t in ways(x):
        for dim in (None, *range(len(shape)), *([(0, 1)] if len(shape) > 1 else [])):
            for off in (0, 1, 2):
                count = x.size if dim is None else np.prod([shape[d] for d in np.atleast_1d(dim)])
                if count <= off:
                    continue
                near(tc.var(t, dim, correction=off), x.var(dim, ddof=off), 1e-9)
    near(tc.var(there(x), 0, keepdim=True, correction=0), x.var(0, keepdims=True), 1e-9)
    z = x + 1j * rng.standard_normal(shape)
    near(tc.var(there(z), 0, correction=0), z.var(0), 1e-9)
    near(tc.var(there(z), correction=1), z.var(ddof=1), 1e-9)
near(tc.var(there(np.float32(x))), np.float64(np.float32(x)).var(ddof=1), 1e-6)
near(tc.var(tc.tensor(3 + 4j, dtype=tc.complex128, device="cuda"), correction=0), 0.0)
for odd in ([np.inf, 1, 2], [1, np.nan], [1, 2, -np.inf], [np.inf]):
    near(tc.var(there(np.array(odd)), correction=0), np.nan)
near(tc.var(there(np.ones(3)), correction=3), np.nan)
near(tc.var(there(np.array([1.0, 2, 3])), correction=3), np.inf)
near(tc.var(there(np.zeros((0, 3))), 1, correction=0), np.zeros(0))
near(tc.var(there(np.zeros((0, 3))), 0, correction=0), [np.nan] * 3)
# Far from 0, and with one element far from the others.
x = rng.standard_normal(10001) + 1e8
near(tc.var(there(x)) / x.var(ddof=1), 1.0, 1e-7)
x[0] = -1e8
near(tc.var(there(x)) / x.var(ddof=1), 1.0, 1e-9)
rows = there(rng.standard_normal((9, 30)))
assert launches(lambda: tc.var(rows, 1)) == 1
""",
        250,
    )


def test_norms() -> None:
    run(
        """
def norm(x, order, axis, keep=False):
    a = np.abs(x)
    if order == np.inf:
        return a.max(axis, keepdims=keep)
    if order == -np.inf:
        return a.min(axis, keepdims=keep)
    if order == 0:
        return (a != 0).sum(axis, keepdims=keep).astype("float64")
    return (a ** float(order)).sum(axis, keepdims=keep) ** (1 / order)
for shape in ((5,), (3, 40), (40, 3), (9000,), (300, 70), (2, 3, 50)):
    x = rng.standard_normal(shape) + 0.5
    x.flat[0] = 0
    for t in ways(x):
        for order in (0, 1, 2, 3, 0.5, -1.5, np.inf, -np.inf):
            for axis in (None, 0, len(shape) - 1):
                with np.errstate(divide="ignore"):
                    near(tc.ops.vector_norm(t, order, axis), norm(x, order, axis), 1e-10)
    z = x + 1j * rng.standard_normal(shape)
    narrow = z.astype("complex64")
    near(tc.ops.vector_norm(there(narrow), 2, 0, dtype=tc.complex128), norm(narrow.astype("complex128"), 2, 0), 1e-12)
    for order in (1, 2, 2.5, np.inf):
        near(tc.ops.vector_norm(there(z), order, 0, True), norm(z, order, 0, True), 1e-10)
x[:] = np.nan
for order in (1, 2, np.inf, -np.inf):
    near(tc.ops.vector_norm(there(x), order), np.nan)
near(tc.ops.vector_norm(there(np.zeros(0)), 2), 0.0)
half = tc.ones(70000, device="cuda", dtype=tc.float16) * 2
near(tc.ops.vector_norm(half, 2, dtype=tc.float32), np.sqrt(280000), 1e-6)
near(tc.ops.vector_norm(half * 1e-4, 2).float(), np.float32(np.float16(2e-4)) * np.sqrt(70000), 2e-3)
""",
        150,
    )


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_losses_of_pairs_and_their_gradients(dtype: str) -> None:
    run(
        f"""
dtype = {dtype!r}
tolerance = 1e-12 if dtype == "float64" else 2e-6
sign = np.sign
def entropy(x, t):
    return -(t * np.maximum(np.log(x), -100) + (1 - t) * np.maximum(np.log1p(-x), -100))
def huber(x, t, p):
    d = np.abs(x - t)
    return np.where(d <= p, d * d / 2, p * (d - p / 2))
def smooth(x, t, p):
    d = np.abs(x - t)
    return np.where(d < p, d * d / 2 / p, d - p / 2) if p else d
losses = {{
    "mse_loss": (lambda x, t: (x - t) ** 2, lambda x, t: 2 * (x - t), ()),
    "l1_loss": (lambda x, t: abs(x - t), lambda x, t: sign(x - t), ()),
    "huber_loss": (huber, lambda x, t, p: np.clip(x - t, -p, p), (0.7,)),
    "smooth_l1_loss": (smooth, lambda x, t, p: np.clip((x - t) / p, -1, 1) if p else sign(x - t), (0.4,)),
    "bce_with_logits_loss": (lambda x, t: np.logaddexp(0, x) - x * t, lambda x, t: 1 / (1 + np.exp(-x)) - t, ()),
    "bce_loss": (entropy, lambda x, t: (x - t) / np.maximum(x * (1 - x), 1e-12), ()),
}}
for name, (value, slope, more) in losses.items():
    work, back = getattr(tc.ops, name), getattr(tc.ops, name + "_backward")
    for shape in ((), (3,), (5, 7), (4099,), (300, 70), (0, 3)):
        x, t = rng.standard_normal(shape) * 2, rng.random(shape)
        if name == "bce_loss":
            x = rng.random(shape) * 0.9 + 0.05
        x, t = np.asarray(x).astype(dtype), np.asarray(t).astype(dtype)
        wide = value(x.astype("float64"), t.astype("float64"), *more)
        near(work(there(x), there(t), 0, *more), wide, tolerance)
        slopes = slope(x.astype("float64"), t.astype("float64"), *more)
        up = np.asarray(rng.standard_normal(shape)).astype(dtype)
        near(back(there(up), there(x), there(t), 0, *more), up * slopes, 10 * tolerance)
        one = tc.tensor(3.0, dtype=getattr(tc, dtype), device="cuda")
        near(back(one, there(x), there(t), 2, *more), 3 * slopes, 10 * tolerance)
        if x.size == 0:
            continue
        near(work(there(x), there(t), 1, *more), wide.mean(), tolerance)
        near(work(there(x), there(t), 2, *more), wide.sum(), tolerance * 10)
        near(back(one, there(x), there(t), 1, *more), 3 * slopes / x.size, 10 * tolerance)
        pair = there(x), there(t)
        assert launches(lambda: work(*pair, 1, *more)) == 2
if dtype == "float64":
    x, t = rng.standard_normal((6, 8)), rng.standard_normal((8,))
    near(tc.ops.mse_loss(there(x), there(t), 0), (x - t) ** 2)
    near(tc.ops.mse_loss(there(x).t(), there(x.T.copy()), 2), 0.0)
    near(tc.ops.mse_loss(there(x).t(), there(t[:1]), 1), ((x - t[0]) ** 2).mean())
    near(tc.ops.smooth_l1_loss_backward(there(x), there(x), there(t), 0, 0.0), x * sign(x - t))
    near(tc.ops.mse_loss(there(x.astype("float32")), there(t), 1), ((x.astype("float32") - t) ** 2).mean())
    near(tc.ops.mse_loss(there(x), tc.tensor(2.0), 1), ((x - 2) ** 2).mean())
    near(tc.ops.mse_loss(there(np.zeros(0)), there(np.zeros(0)), 1), np.nan)
    half = there(x).bfloat16()
    near(tc.ops.mse_loss(half, half * 0, 2).float(), (half.float().cpu().numpy() ** 2).sum(), 1e-2)
""",
        150 if dtype == "float32" else 155,
    )


@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_negative_log_likelihood(reduction: int) -> None:
    run(
        f"""
for shape in ((9,), (5, 9), (2, 9, 3), (2, 3, 4, 5), (40000, 2)):
    classes = shape[0] if len(shape) == 1 else shape[1]
    x = rng.standard_normal(shape)
    places = shape[:1] * (len(shape) > 1) + shape[2:]
    t = np.asarray(rng.integers(0, classes, places))
    for weight in (None, rng.random(classes) + 0.1):
        for ignored in (-100, int(t.flat[0])):
            w = np.ones(classes) if weight is None else weight
            w = np.where(t == ignored, 0.0, w[t])
            rows = x[None] if len(shape) == 1 else x
            at = t.reshape((1,) if len(shape) == 1 else t.shape)
            picked = np.take_along_axis(rows, np.expand_dims(at, 1), 1).reshape(t.shape)
            each, total = -w * picked, w.sum()
            with np.errstate(invalid="ignore"):
                expected = (each, each.sum() / total, each.sum())[{reduction}]
            given = [there(x), there(t), there(weight), {reduction}, ignored]
            out, found = tc.ops.nll_loss_forward(*given)
            near(out, expected), near(found, total)
            up = np.asarray(rng.standard_normal(np.shape(expected)))
            slopes = np.zeros(rows.shape)
            above = -w * (up / total if {reduction} == 1 else up) if total else w
            np.put_along_axis(slopes, np.expand_dims(at, 1), np.expand_dims(above.reshape(at.shape), 1), 1)
            back = tc.ops.nll_loss_backward(there(up), *given, found)
            near(back, slopes.reshape(shape))
try:
    tc.ops.nll_loss_forward(there(x), there(t + 1), None, 1, -100)[0].cpu()
except IndexError as error:
    assert "nll_loss_forward: index 2 is out of range for size 2" in str(error), error
else:
    raise AssertionError
""",
        60,
    )


def test_triangles() -> None:
    run(
        """
for dtype in ("float32", "float64", "int8", "bool", "complex128", "float16"):
    for shape in ((4, 4), (3, 7), (7, 3), (2, 5, 6), (1, 1), (0, 3), (2, 2, 40, 33)):
        x = (rng.standard_normal(shape) * 9).astype(dtype)
        for t in ways(x):
            for off in (-8, -2, -1, 0, 1, 3, 50):
                near(tc.tril(t, off), np.tril(x, off))
                near(tc.triu(t, off), np.triu(x, off))
        t = there(x)
        t.tril_(1)
        near(t, np.tril(x, 1))
assert launches(lambda: tc.tril(t)) == 1
""",
        1700,
    )


def test_scattered_values_are_reduced() -> None:
    run(
        """
joins = {"sum": np.add, "prod": np.multiply, "mean": np.add, "amax": np.maximum, "amin": np.minimum}
def reduced(x, dim, index, src, how, with_self):
    out, count = x.copy(), np.zeros(x.shape, "int64") + with_self
    for at in np.ndindex(index.shape):
        to = list(at)
        to[dim] = index[at]
        to = tuple(to)
        out[to] = joins[how](out[to], src[at]) if count[to] else src[at]
        count[to] += 1
    if how == "mean":
        out = out // np.maximum(count, 1) if out.dtype.kind == "i" else out / np.maximum(count, 1)
    return out
for dtype in ("float64", "int64"):
    for shape, length in (((9,), 7), ((9,), 300), ((4, 5), 64), ((4, 5), 65), ((3, 2, 4), 90)):
        for dim in range(len(shape)):
            x = (rng.standard_normal(shape) * 9).astype(dtype)
            sizes = list(shape)
            sizes[dim] = length
            index = rng.integers(0, shape[dim], sizes)
            src = (rng.standard_normal(sizes) * 3 + (2 if dtype == "int64" else 0)).astype(dtype)
            for how in joins:
                for with_self in (True, False):
                    found = tc.scatter_reduce(there(x), dim, there(index), there(src), how, include_self=with_self)
                    near(found, reduced(x, dim, index, src, how, with_self), 1e-9)
x = there(np.array([1.0, np.nan, 3.0]))
index, src = there(np.array([0, 1, 2, 2])), there(np.array([np.nan, 1.0, 9.0, 2.0]))
near(tc.scatter_reduce(x, 0, index, src, "amax"), [np.nan, np.nan, 9.0])
near(tc.scatter_reduce(x, 0, index, src, "amin", include_self=False), [np.nan, 1.0, 2.0])
""",
        150,
    )


def test_searches() -> None:
    run(
        """
for dtype in ("float32", "float64", "int32", "int64", "uint8"):
    for length in (0, 1, 2, 7, 1000):
        edges = np.sort((rng.standard_normal(length) * 20 + 40).astype(dtype))
        values = np.concatenate([(rng.standard_normal(50) * 20 + 40).astype(dtype), edges[:30]])
        for right in (False, True):
            side = "right" if right else "left"
            near(tc.searchsorted(there(edges), there(values), right=right), np.searchsorted(edges, values, side))
            near(tc.bucketize(there(values.reshape(-1, 1)), there(edges), right=right),
                 np.searchsorted(edges, values.reshape(-1, 1), side))
rows, values = np.sort(rng.random((3, 2, 9)), -1), rng.random((3, 2, 4))
expected = [[np.searchsorted(e, v) for e, v in zip(*pair)] for pair in zip(rows, values)]
near(tc.searchsorted(there(rows), there(values)), expected)
near(tc.searchsorted(there(rows).transpose(0, 1), there(values).transpose(0, 1)), np.swapaxes(expected, 0, 1))
edges = np.array([1.0, 2.0, np.inf, np.nan, np.nan])
for right in (False, True):
    near(tc.searchsorted(there(edges), there(np.array([np.nan, np.inf, -np.inf])), right=right),
         np.searchsorted(edges, [np.nan, np.inf, -np.inf], "right" if right else "left"))
near(tc.searchsorted(there(np.array([1, 2, 3])), 2.5), 2)
near(tc.searchsorted(there(np.array([1, 2, 3], "int32")), there(np.array(1 << 33))), 3)
row = there(edges)
assert launches(lambda: tc.searchsorted(row, row)) == 1
""",
        50,
    )


def test_draws_by_weight() -> None:
    run(
        """
weights = np.array([0.0, 1, 2, 0, 5, 2])
share = weights / weights.sum()
for dtype in ("float64", "float32"):
    many = there(np.tile(weights, (4000, 1)).astype(dtype))
    for count, replacement in ((1, False), (1, True), (4, True)):
        found = tc.multinomial(many, count, replacement)
        assert found.shape == (4000, count) and found.dtype == tc.int64
        counts = np.bincount(found.cpu().numpy().ravel(), minlength=6)
        n = counts.sum()
        # Five standard deviations.
        assert (abs(counts - n * share) <= 5 * np.sqrt(n * share * (1 - share))).all(), counts
        tried += 1
    found = tc.multinomial(many, 4, False).cpu().numpy()
    assert (np.sort(found, 1) == [1, 2, 4, 5]).all()
    first = np.bincount(found[:, 0], minlength=6)
    assert (abs(first - 4000 * share) <= 5 * np.sqrt(4000 * share * (1 - share))).all(), first
one = there(weights)
assert tc.multinomial(one, 3).shape == (3,) and tc.multinomial(one, 30, True).shape == (30,)
tc.manual_seed(8)
a = tc.multinomial(many, 1).cpu()
tc.manual_seed(8)
assert tc.equal(tc.multinomial(many, 1).cpu(), a) and not tc.equal(tc.multinomial(many, 1).cpu(), a)
zero = "has a row whose weights sum up to 0: row 1"
odd = "must hold finite, non-negative weights: those of row 1 are not"
for bad, text in (([0.0, 0.0], zero), ([1.0, -1.0], odd), ([np.nan, 1.0], odd), ([np.inf, 1.0], odd)):
    for more in ((1,), (2, True)):
        try:
            tc.multinomial(there(np.array([[1.0, 1.0], bad])), *more).cpu()
        except RuntimeError as error:
            assert f"multinomial: argument 'self' {text}" in str(error), error
        else:
            raise AssertionError
        tried += 1
# Those without weight come behind all others.
for row in tc.multinomial(many, 6).tolist()[:200]:
    assert sorted(row) == list(range(6)) and set(row[4:]) == {0, 3}, row
    tried += 1
assert sorted(tc.multinomial(one, 5).tolist()[:4]) == [1, 2, 4, 5]
assert launches(lambda: tc.multinomial(many, 1)) == 1
""",
        214,
    )
