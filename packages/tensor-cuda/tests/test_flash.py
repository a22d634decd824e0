"""Attention of halves on tensor cores, as the simulated driver emulates them: against NumPy in float64."""

from __future__ import annotations

import ctypes

import device_programs as programs
import numpy as np
import pytest
from numpy.typing import NDArray

HEAD = (
    programs.launches()
    + """
import numpy as np
import taeda_tensor_core as tc
kind = tc.get_device_module("cuda")
tc.manual_seed(SEED)
tried = 0

def numbers(t):
    return t.cpu().to(tc.float64).numpy()

def reference(q, k, v, g, mask, causal, scale):
    "Result, logarithms of sums, gradients; and how far each may be off when factors are rounded by 1."
    scores = q @ k.swapaxes(-1, -2) * scale
    seen = np.ones(scores.shape, bool)
    if causal:
        seen = np.tril(seen)
    if mask is not None and mask.dtype == bool:
        seen = seen & mask
    elif mask is not None:
        scores = scores + mask
    scores = np.where(seen, scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    top[top == -np.inf] = 0
    p = np.exp(scores - top)
    total = p.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = (np.log(total) + top)[..., 0]
    p = p / np.where(total == 0, 1, total)
    out = p @ v
    up = g @ v.swapaxes(-1, -2)
    slope = p * (up - (g * out).sum(-1, keepdims=True)) * scale
    turned = lambda a: a.swapaxes(-1, -2)
    # A share is off as results are, a weight by its own rounding and that of the score.
    off = abs(slope) + p * abs(scale) * (abs(g) * (p @ abs(v))).sum(-1, keepdims=True)
    found = (out, lse, slope @ k, turned(slope) @ q, turned(p) @ g)
    bounds = (p @ abs(v), None, off @ abs(k), turned(off) @ abs(q), turned(p) @ abs(g))
    return found, bounds

STEP = {tc.bfloat16: 2.0**-8, tc.float16: 2.0**-11}

def near(found, expected, bounds, dtype, what):
    for place, (a, b, bound) in enumerate(zip(found, expected, bounds)):
        a = numbers(a)
        assert a.shape == b.shape, (what, place, a.shape, b.shape)
        far = 1e-5 * (1 + abs(b)) if bound is None else 2 * STEP[dtype] * (bound + abs(b)) + 1e-6
        with np.errstate(invalid="ignore"):  # -inf - -inf
            alike = (a == b) | (abs(a - b) <= far)
        assert alike.all(), (what, place, abs(a - b)[~alike].max(), np.argwhere(~alike)[:5])

def check(q, k, v, mask, causal, scale, what, flash=True):
    "Result and gradients on the device, of what lies as it lies; heads of keys may be shared by several of queries."
    global tried
    tried += 1
    g = tc.randn(q.shape[0], q.shape[2], q.shape[1], v.shape[3]).to(q.dtype).transpose(1, 2)
    q, k, v, g = (t.to("cuda") for t in (q, k, v, g))
    there = None if mask is None else mask.to("cuda")
    (out, lse), forward = counted(lambda: tc.ops.fused_attention(q, k, v, there, causal, scale))
    slopes, backward = counted(
        lambda: tc.ops.fused_attention_backward(g, q, k, v, there, out, lse, causal, scale, 7))
    assert not flash or (forward, backward) == (1, 3), (forward, backward)
    of_mask = None if mask is None else mask.numpy() if mask.dtype == tc.bool else numbers(mask)
    group = q.shape[1] // k.shape[1]
    shared = [numbers(t).repeat(group, 1) for t in (k, v)]
    expected, bounds = reference(numbers(q), *shared, numbers(g), of_mask, causal, scale)
    added = lambda a: a.reshape(a.shape[0], -1, group, *a.shape[2:]).sum(2)
    expected, bounds = ((*a[:3], *map(added, a[3:])) for a in (expected, bounds))
    near((out, lse, *slopes), expected, bounds, q.dtype, what)
    return out, lse, *slopes

def heads(n, h, rows, width, dtype):
    "As layers make them: heads lie beside each other."
    return tc.randn(n, rows, h, width).to(dtype).transpose(1, 2)
"""
)


def run(program: str, least: int, **environment: str) -> None:
    programs.check(program, HEAD, least, **environment)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    ("queries", "keys", "width", "value_width"),
    [
        (1, 40, 64, 64),
        (70, 65, 64, 64),
        (150, 140, 40, 24),
        (33, 130, 128, 128),
        (140, 33, 128, 128),
        (129, 129, 96, 128),
        (5, 3, 7, 9),
    ],
)
def test_every_shape(dtype: str, queries: int, keys: int, width: int, value_width: int) -> None:
    run(
        f"""
        dtype = tc.{dtype}
        for causal in (False, True):
            q, k = heads(1, 2, {queries}, {width}, dtype), heads(1, 2, {keys}, {width}, dtype)
            v = heads(1, 2, {keys}, {value_width}, dtype)
            check(q, k, v, None, causal, {width} ** -0.5, causal)
        """,
        least=2,
    )


@pytest.mark.parametrize("width", [64, 128])
def test_masks(width: int) -> None:
    run(
        f"""
        L, S, dtype = 70, 100, tc.bfloat16
        q, k, v = (heads(2, 2, n, {width}, dtype) for n in (L, S, S))
        seen = tc.rand(2, 2, L, S) > 0.3
        seen[0, 0, 0] = False
        seen[1, :, 64:, :] = False
        padding = (tc.arange(S) < 37).reshape(1, 1, 1, S).expand(2, 2, L, S)
        added = tc.randn(2, 2, L, S).to(dtype)
        added[:, :, :, 0] = -float("inf")
        added[:, :, 5] = -float("inf")
        turned = tc.randn(2, 2, S, L).to(dtype).transpose(2, 3)
        for name, mask in dict(seen=seen, padding=padding, added=added, turned=turned).items():
            check(q, k, v, mask, False, 0.2, name)
        check(q, k, v, seen, True, 0.2, "both")
        for scale in (-0.2, 0.0, 3.0):
            check(q, k, v, None, True, scale, scale)
        # Many programs write the smallest number there is where nothing may be attended to, in whole rows too.
        least = tc.where(padding, tc.zeros((), dtype=dtype), tc.tensor(-3.38e38).to(dtype)).clone()
        least[:, :, 3] = -3.38e38
        there = [t.to("cuda") for t in (q, k, v, least)]
        out, lse = tc.ops.fused_attention(*there, False, 0.2)
        expected, bounds = reference(*(numbers(t) for t in (q, k, v, q)), numbers(least), False, 0.2)
        near((out,), expected, bounds, dtype, "least")
        slopes = tc.ops.fused_attention_backward(there[0], *there, out, lse, False, 0.2, 7)
        assert all(np.isfinite(numbers(t)).all() for t in slopes)
        """,
        least=8,
    )


@pytest.mark.parametrize("width", [64, 128])
@pytest.mark.parametrize(("heads", "shared"), [(4, 2), (3, 1)])
def test_several_heads_of_queries_share_one_of_keys(width: int, heads: int, shared: int) -> None:
    run(
        f"""
        dtype = tc.bfloat16
        for L, S in ((70, 100), (150, 40), (1, 33)):
            q, k, v = heads(2, {heads}, L, {width}, dtype), *(heads(2, {shared}, S, {width}, dtype) for _ in range(2))
            for causal in (False, True):
                check(q, k, v, None, causal, 0.125, (L, S, causal))
            check(q, k, v, tc.rand(2, {heads}, L, S) > 0.3, False, 0.125, "mask")
            rows = tc.randn(2, {shared}, S, {width}).to(dtype)
            check(q, rows, v, None, True, 0.125, "rows")
        # By the operator for programs, without a launch that repeats.
        k = k.to("cuda")
        given = (q.to("cuda"), k, k)
        found, count = counted(lambda: tc.ops.scaled_dot_product_attention(*given, enable_gqa=True))
        assert count == 1, count
        repeated = k.repeat_interleave({heads // shared}, 1)
        assert tc.equal(found.cpu(), tc.ops.scaled_dot_product_attention(given[0], repeated, repeated).cpu())
        """,
        least=12,
    )


def test_operands_lie_as_they_like() -> None:
    run(
        """
        dtype = tc.float16
        def some(n, width):
            yield "rows", tc.randn(2, 3, n, width).to(dtype)
            yield "heads beside each other", heads(2, 3, n, width, dtype)
            yield "elements apart", tc.randn(2, 3, n, 2 * width).to(dtype)[..., ::2]
            yield "no multiples of 16 bytes", tc.randn(2, 3, n, width + 1).to(dtype)[..., 1:]
            yield "the same for all heads", tc.randn(2, 1, n, width).to(dtype).expand(2, 3, n, width)
            yield "turned", tc.randn(2, 3, width, n).to(dtype).transpose(2, 3)
            whole = tc.randn(2, n, 3, 3, width).to(dtype)
            yield "of one product", whole[:, :, 1].transpose(1, 2)
        for (name, q), (_, k), (_, v) in zip(some(20, 16), some(37, 16), some(37, 24)):
            check(q, k, v, None, False, 0.25, name)
        """,
        least=7,
    )


def test_bits_do_not_change_and_only_what_is_asked_for_is_made() -> None:
    run(
        """
        q, k, v = (heads(1, 2, n, 64, tc.bfloat16) for n in (150, 90, 90))
        there = [t.to("cuda") for t in (q, k, v)]
        made = [tc.ops.fused_attention(*there, None, True, 0.125) for _ in range(2)]
        assert all(tc.equal(a.cpu(), b.cpu()) for a, b in zip(*made))
        out, lse = made[0]
        all_three = tc.ops.fused_attention_backward(there[0], *there, None, out, lse, True, 0.125, 7)
        for wanted in range(8):
            found = tc.ops.fused_attention_backward(there[0], *there, None, out, lse, True, 0.125, wanted)
            for bit, (a, b) in enumerate(zip(found, all_three)):
                assert (a is not None) == bool(wanted & 1 << bit)
                assert a is None or tc.equal(a.cpu(), b.cpu()), (wanted, bit)
            tried += 1
        """,
        least=8,
    )


def test_keys_that_nobody_sees_have_no_part_whatever_they_hold() -> None:
    run(
        """
        q, k, v = (heads(1, 1, n, 64, tc.bfloat16) for n in (5, 80, 80))
        clean = check(q, k, v, None, True, 0.125, "clean")
        k[:, :, 5:] = float("nan")
        v[:, :, 5:] = float("inf")
        moved = [t.to("cuda") for t in (q, k, v)]
        out, lse = tc.ops.fused_attention(*moved, None, True, 0.125)
        slopes = tc.ops.fused_attention_backward(moved[0], *moved, None, out, lse, True, 0.125, 7)
        assert tc.equal(out.cpu(), clean[0].cpu())
        for slope in slopes:
            assert np.isfinite(numbers(slope)).all()
        assert not numbers(slopes[1])[:, :, 5:].any() and not numbers(slopes[2])[:, :, 5:].any()
        """,
        least=1,
    )


def test_wide_rows_go_by_other_kernels() -> None:
    run(
        """
        for library in (40, 70):
            q, k, v = (heads(1, 2, library, 130, tc.bfloat16) for _ in range(3))
            check(q, k, v, None, True, 0.1, "wide", flash=False)
        """,
        least=2,
    )


# --- the instructions, by what the PTX ISA says of their fragments ---


def library() -> ctypes.CDLL:
    from taeda_tensor_cuda._library import library as found

    return found()


def halves(values: NDArray[np.float32], bfloat16: bool) -> NDArray[np.uint16]:
    """Bits of numbers that have few digits."""
    if bfloat16:
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return values.astype(np.float16).view(np.uint16)


@pytest.mark.parametrize("bfloat16", [False, True])
def test_products_of_fragments(bfloat16: bool) -> None:
    random = np.random.default_rng(3)
    a, b, c = (random.integers(-8, 9, shape).astype(np.float32) for shape in ((16, 16), (16, 8), (16, 8)))
    left = np.zeros((32, 8), np.uint16)
    right, sums = np.zeros((32, 4), np.uint16), np.zeros((32, 4), np.float32)
    for lane in range(32):
        group, inside = divmod(lane, 4)
        for i in range(8):
            row = group if i in (0, 1, 4, 5) else group + 8
            left[lane, i] = halves(a, bfloat16)[row, inside * 2 + i % 2 + (8 if i >= 4 else 0)]
        for i in range(4):
            right[lane, i] = halves(b, bfloat16)[inside * 2 + i % 2 + (8 if i >= 2 else 0), group]
            sums[lane, i] = c[group + (8 if i >= 2 else 0), inside * 2 + i % 2]
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (left, right, sums)]
    library().taeda_cuda_warp_multiply(ctypes.c_int(bfloat16), *pointers)
    expected = a @ b + c
    for lane in range(32):
        for i in range(4):
            assert sums[lane, i] == expected[lane // 4 + (8 if i >= 2 else 0), lane % 4 * 2 + i % 2]


@pytest.mark.parametrize("turned", [False, True])
def test_reads_of_matrices(turned: bool) -> None:
    rows = np.arange(32 * 8, dtype=np.uint16).reshape(32, 8)
    found = np.zeros((32, 4, 2), np.uint16)
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (rows, found)]
    library().taeda_cuda_warp_read(pointers[0], ctypes.c_int(turned), pointers[1])
    for matrix in range(4):
        part = rows[matrix * 8 : matrix * 8 + 8]
        expected = (part.T if turned else part).reshape(32, 2)
        assert np.array_equal(found[:, matrix], expected)
