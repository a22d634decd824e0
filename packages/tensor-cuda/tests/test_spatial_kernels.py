"""Images and volumes of another size, or sampled at points, with their gradients: against NumPy."""

from __future__ import annotations

import device_programs as programs
import pytest

HEAD = programs.compared(1e-12)
HEAD += programs.launches(warm=True)
HEAD += """
import itertools

def keys(x, a):
    x = abs(x)
    near_ones = (a + 2) * x**3 - (a + 3) * x**2 + 1
    return np.where(x < 1, near_ones, np.where(x < 2, a * (x**3 - 5 * x**2 + 8 * x - 4), 0))
"""

RESIZE = (
    HEAD
    + """
def matrix(mode, n, m, align, antialias, scale):
    "Weights (results, elements) of one dimension."
    step = (n - 1) / (m - 1) if align and m > 1 else 0 if align else 1 / scale if scale else n / m
    i, weights = np.arange(m), np.zeros((m, n))
    if mode.startswith("nearest"):
        # Kernels count in float32; these steps are exact there.
        at = np.floor((i + 0.5) * step if mode == "nearest-exact" else i * step)
        weights[i, np.clip(at.astype(int), 0, n - 1)] = 1
        return weights
    if antialias:
        wide, shrink = {"linear": 1, "cubic": 2, "lanczos": 3}[mode], max(step, 1)
        for k in range(m):
            centre = step * (k + 0.5)
            low, high = max(int(centre - wide * shrink + 0.5), 0), min(int(centre + wide * shrink + 0.5), n)
            x = (np.arange(low, high) + 0.5 - centre) / shrink
            kernel = {"linear": np.maximum(0, 1 - abs(x)), "cubic": keys(x, -0.5),
                      "lanczos": np.where(abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0)}[mode]
            weights[k, low:high] = kernel / kernel.sum()
        return weights
    at = i * step if align else (i + 0.5) * step - 0.5
    if mode == "linear":
        at = np.clip(at, 0, n - 1)
    for k in range(m):
        left = int(np.floor(at[k]))
        for e in range(left - 1, left + 3):
            w = keys(at[k] - e, -0.75) if mode == "cubic" else max(0, 1 - abs(at[k] - e))
            weights[k, min(max(e, 0), n - 1)] += w
    return weights

def along(x, matrices):
    for d, m in enumerate(matrices):
        x = np.moveaxis(np.tensordot(m, x, (1, d + 2)), 0, d + 2)
    return x

def check(x, sizes, mode, align=False, antialias=False, scales=(), tolerance=1e-12, like=lambda t: t):
    given = scales or [0] * len(sizes)
    matrices = [matrix(mode, n, m, align, antialias, s) for n, m, s in zip(x.shape[2:], sizes, given)]
    g = rng.standard_normal((*x.shape[:2], *sizes))
    ops, scales = tc.ops, list(scales)
    near(ops.resample(like(there(x)), sizes, mode, align, antialias, scales), along(x, matrices), tolerance)
    slope = ops.resample_backward(like(there(g)), list(x.shape[2:]), mode, align, antialias, scales)
    near(slope, along(g, [m.T for m in matrices]), tolerance)
"""
)


@pytest.mark.parametrize(
    ("mode", "antialias"),
    [
        ("nearest", False),
        ("nearest-exact", False),
        ("linear", False),
        ("cubic", False),
        ("linear", True),
        ("cubic", True),
        ("lanczos", True),
    ],
)
def test_images_of_another_size(mode: str, antialias: bool) -> None:
    """Larger, smaller, by given factors, with channels beside each other, cut out and in other types."""
    interpolates = mode in ("linear", "cubic")
    programs.check(
        f"""
mode, antialias = {mode!r}, {antialias}
last = lambda t: t.contiguous(memory_format=tc.channels_last)
for size, to in itertools.product([(8, 4), (1, 16), (5, 2)], [(16, 8), (4, 4), (1, 1), (8, 4), (2, 40)]):
    if any(n % m and m % n for n, m in zip(size, to)) and mode.startswith("nearest"):
        continue
    x = rng.standard_normal((2, 3, *size))
    for align in (False, True)[: 1 + {interpolates}]:
        check(x, to, mode, align, antialias)
    check(x, to, mode, False, antialias, like=last)
x = rng.standard_normal((2, 5, 8, 4))
check(x, (16, 4), mode, False, antialias, (2.0, 1.0))
check(x.astype(np.float32), (24, 2), mode, False, antialias, tolerance=1e-4)
wide = np.stack([x, x], -1)
near(tc.ops.resample(there(wide)[..., 1], (16, 8), mode, False, antialias, []),
     along(x, [matrix(mode, n, m, False, antialias, 0) for n, m in ((8, 16), (4, 8))]))
half = there(x).to(tc.bfloat16)
near(tc.ops.resample(half, (16, 8), mode, False, antialias, []),
     along(half.cpu().to(tc.float64).numpy(),
           [matrix(mode, n, m, False, antialias, 0) for n, m in ((8, 16), (4, 8))]), 2e-2)
# Bytes are rounded after each dimension, and clipped.
b = rng.integers(0, 256, (2, 3, 8, 4)).astype(np.uint8)
found = tc.ops.resample(there(b), (16, 2), mode, False, antialias, []).cpu().numpy()
assert found.dtype == np.uint8
smooth = lambda x, d, n, m: np.moveaxis(np.tensordot(matrix(mode, n, m, False, antialias, 0), x, (1, d)), 0, d)
rows = np.clip(np.rint(smooth(b.astype(float), 3, 4, 2)), 0, 255)
expected = np.clip(smooth(rows, 2, 8, 16), 0, 255)
assert abs(found - expected).max() <= 1.6, abs(found - expected).max()
assert tc.ops.resample(there(x[:0]), (16, 8), mode, False, antialias, []).shape == (0, 5, 16, 8)
few = 1 if mode.startswith("nearest") else 3 if antialias else 2
assert launches(lambda: tc.ops.resample(half, (16, 8), mode, False, antialias, [])) == few
""",
        RESIZE,
        20,
    )


def test_rows_and_volumes_of_another_size() -> None:
    programs.check(
        """
for mode in ("nearest", "nearest-exact", "linear"):
    for align in (False, True)[: 1 + (mode == "linear")]:
        for size, to in (((6,), (12,)), ((6,), (3,)), ((4, 3, 5), (8, 3, 10)), ((4, 6, 2), (2, 12, 1))):
            check(rng.standard_normal((2, 3, *size)), to, mode, align)
""",
        RESIZE,
        32,
    )


POINTS = (
    HEAD
    + """
def brought_inside(at, size, padding, align):
    if padding == 2:
        low, span = (0, size - 1) if align else (-0.5, size)
        if span == 0:
            return np.zeros_like(at)
        turn = (at - low) % (2 * span)
        at = np.minimum(turn, 2 * span - turn) + low
    return at if padding == 0 else np.clip(at, 0, size - 1)

def axis(x, size, mode, padding, align):
    "Places and weights of what coordinates read."
    at = (x + 1) / 2 * (size - 1) if align else ((x + 1) * size - 1) / 2
    if mode == 2:
        left = np.floor(at)
        return [(brought_inside(left + k, size, padding, align), keys(at - left - k, -0.75)) for k in range(-1, 3)]
    at = brought_inside(at, size, padding, align)
    if mode == 1:
        return [(np.rint(at), np.ones_like(at))]
    left = np.floor(at)
    return [(left, 1 - (at - left)), (left + 1, at - left)]

def sample(x, grid, mode, padding, align):
    rank = x.ndim - 2
    axes = [axis(grid[..., d], x.shape[-1 - d], mode, padding, align) for d in range(rank)]
    out = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for taps in itertools.product(*axes):
        there_too, weight, place = True, 1.0, []
        for d, (at, w) in enumerate(taps):
            size = x.shape[-1 - d]
            inside = (at >= 0) & (at < size)
            there_too, weight = there_too & inside, weight * w
            place.insert(0, np.where(inside, at, 0).astype(int))
        for n in range(x.shape[0]):
            picked = x[n][(slice(None), *(p[n] for p in place))]
            out[n] += np.where(there_too[n], weight[n], 0) * picked
    return out

def check(x, grid, mode, padding, align, tolerance=1e-11):
    "Results, and the gradients along one direction by differences."
    how = (mode, padding, align)
    out = tc.ops.grid_sampler(there(x), there(grid), *how)
    near(out, sample(x.astype(float), grid.astype(float), *how), tolerance)
    g = rng.standard_normal(out.shape).astype(x.dtype)
    of_x, of_grid = tc.ops.grid_sampler_backward(there(g), there(x), there(grid), *how, 3)
    # The result is linear in the image.
    step = rng.standard_normal(x.shape)
    near((of_x.to(tc.float64) * there(step)).sum(), np.array((sample(step, grid.astype(float), *how) * g).sum()),
         tolerance * 100)
    if x.dtype == np.float64 and mode != 1:
        move, h = rng.standard_normal(grid.shape), 1e-6
        change = (sample(x, grid + h * move, *how) - sample(x, grid - h * move, *how)) / (2 * h)
        near((of_grid * there(move)).sum(), np.array((change * g).sum()), 1e-5)
    elif mode == 1:
        near(of_grid, np.zeros(grid.shape))
    assert tc.ops.grid_sampler_backward(there(g), there(x), there(grid), *how, 2)[0] is None
"""
)


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_images_sampled_at_points(mode: int) -> None:
    programs.check(
        f"""
for padding, align in itertools.product(range(3), (False, True)):
    for size, points, channels in (((5, 7), (4, 6), 3), ((1, 4), (3, 1), 9), ((6, 2), (1, 5), 17)):
        x, grid = rng.standard_normal((2, channels, *size)), rng.uniform(-1.7, 1.7, (2, *points, 2))
        check(x, grid, {mode}, padding, align)
    check(x.astype(np.float32), grid.astype(np.float32), {mode}, padding, align, 1e-4)
    turned = there(np.ascontiguousarray(x.transpose(0, 3, 2, 1))).permute(0, 3, 2, 1)
    near(tc.ops.grid_sampler(turned, there(grid), {mode}, padding, align),
         sample(x, grid, {mode}, padding, align))
# All points at one place: what they add to it comes in order, and stays the same from run to run.
x, grid = there(rng.standard_normal((1, 2, 4, 4))), there(np.full((1, 60, 60, 2), 0.1))
g = there(rng.standard_normal((1, 2, 60, 60)))
first, again = (tc.ops.grid_sampler_backward(g, x, grid, {mode}, 0, True, 1)[0].cpu().numpy() for _ in range(2))
assert (first == again).all()
near(there(first.sum((0, 2, 3))), g.cpu().numpy().sum((0, 2, 3)), 1e-9)
empty = tc.ops.grid_sampler_backward(g[:0], x[:0], grid[:0], {mode}, 0, True, 3)
assert empty[0].shape == (0, 2, 4, 4) and empty[1].shape == (0, 60, 60, 2)
no_points = tc.ops.grid_sampler_backward(g[:, :, :0], x, grid[:, :0], {mode}, 0, True, 3)
assert (no_points[0].cpu().numpy() == 0).all() and no_points[1].shape == (1, 0, 60, 2)
assert launches(lambda: tc.ops.grid_sampler(x, grid, {mode}, 0, True)) <= 8
""",
        POINTS,
        60,
    )


@pytest.mark.parametrize("mode", [0, 1])
def test_volumes_sampled_at_points(mode: int) -> None:
    programs.check(
        f"""
for padding, align in itertools.product(range(3), (False, True)):
    x, grid = rng.standard_normal((2, 3, 4, 3, 5)), rng.uniform(-1.4, 1.4, (2, 2, 3, 4, 3))
    check(x, grid, {mode}, padding, align)
""",
        POINTS,
        15,
    )
