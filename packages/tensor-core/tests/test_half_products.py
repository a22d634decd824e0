"""Products, convolutions and attention of bfloat16, which some processors multiply without float32 copies.

The reference is NumPy in float64 on the same rounded numbers: a result may miss it by its own rounding to eight digits
and by what sums of float32 lose.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import taeda_tensor_core as taeda
from taeda_tensor_core import ops
from taeda_tensor_core._processor import get_capabilities

ROUNDING = 2.0**-8


def numbers(shape, seed):
    """bfloat16 numbers, and the same in float64."""
    made = taeda.tensor(np.random.default_rng(seed).standard_normal(shape).astype("float32")).bfloat16()
    return made, made.double().numpy()


def near(found, expected, inner):
    """Within a rounding of bfloat16 and the errors of a float32 sum of `inner` terms."""
    assert found.dtype == taeda.bfloat16
    difference = np.abs(found.double().numpy() - expected)
    slack = 4 * np.sqrt(inner) * 2.0**-24 * np.abs(expected).max()
    assert (difference <= np.abs(expected) * ROUNDING + slack).all(), difference.max()


SIZES = [
    (70, 80, 90),
    (33, 300, 65),
    (513, 257, 129),
    (128, 128, 5000),
    (1, 768, 768),
    (300, 1, 900),
    (8, 8, 8),
]


@pytest.mark.parametrize("dtype, rounding", [("bfloat16", 2.0**-8), ("float16", 2.0**-11)])
@pytest.mark.parametrize("rows", [1, 3, 8, 9])
@pytest.mark.parametrize("n, k", [(300, 4096), (4096, 300), (513, 777), (20_000, 16), (129, 8193)])
def test_few_rows_by_a_large_matrix(dtype, rounding, rows, n, k):
    """The weight as it stands, turned, and as a part of a larger one; rows of matrices, of layers, and vectors."""
    kind = getattr(taeda, dtype)
    rng = np.random.default_rng(k)
    x, weight, bias = (taeda.tensor(rng.standard_normal(s)).to(kind) for s in ((rows, k), (n, k), (n,)))
    exact = x.double().numpy() @ weight.double().numpy().T
    part = taeda.zeros(n + 3, k + 5, dtype=kind)
    part[:n, :k] = weight

    def check(found, expected=exact):
        assert found.dtype == kind
        slack = 4 * np.sqrt(k) * 2.0**-24 * np.abs(expected).max()
        difference = np.abs(found.double().numpy() - expected)
        assert (difference <= np.abs(expected) * rounding + slack).all(), difference.max()

    for w in (weight, weight.t().contiguous().t(), part[:n, :k]):
        check(x @ w.t())
        check((w @ x.t()).t())
        check(taeda.stack([w @ row for row in x]))
        check(ops.linear(x, w, None))
        check(ops.linear(x[None], w, bias)[0], exact + bias.double().numpy())
        check(taeda.addmm(bias, x, w.t()), exact + bias.double().numpy())


@pytest.mark.parametrize("m, n, k", SIZES)
@pytest.mark.parametrize("left", ["plain", "turned"])
@pytest.mark.parametrize("right", ["plain", "turned"])
def test_products(m, n, k, left, right):
    a, a_64 = numbers((m, k) if left == "plain" else (k, m), 1)
    b, b_64 = numbers((k, n) if right == "plain" else (n, k), 2)
    row, row_64 = numbers((n,), 3)
    if left == "turned":
        a, a_64 = a.t(), a_64.T
    if right == "turned":
        b, b_64 = b.t(), b_64.T
    near(a @ b, a_64 @ b_64, k)
    near(taeda.addmm(row, a, b), row_64 + a_64 @ b_64, k)
    near(taeda.addmm(row, a, b, beta=0.5, alpha=2), 0.5 * row_64 + 2 * (a_64 @ b_64), k)
    near(ops.linear(a, b.t(), row), row_64 + a_64 @ b_64, k)
    wide = taeda.zeros(m, 2 * n, dtype=taeda.bfloat16)
    taeda.mm(a, b, out=wide[:, ::2])
    near(wide[:, ::2], a_64 @ b_64, k)
    assert not wide[:, 1::2].any()


@pytest.mark.parametrize("batch", [1, 3, 40, 101])
@pytest.mark.parametrize("m, n, k", [(70, 80, 90), (20, 17, 24), (1, 200, 64), (3, 2, 1)])
def test_batches(batch, m, n, k):
    a, a_64 = numbers((batch, m, k), 4)
    b, b_64 = numbers((batch, n, k), 5)
    c, c_64 = numbers((batch, m, n), 6)
    near(a @ b.transpose(1, 2), a_64 @ b_64.transpose(0, 2, 1), k)
    near(a.transpose(1, 2) @ a, a_64.transpose(0, 2, 1) @ a_64, m)
    near(taeda.baddbmm(c, a, b.transpose(1, 2)), c_64 + a_64 @ b_64.transpose(0, 2, 1), k)
    near(taeda.bmm(a, b[:1].expand(batch, n, k).transpose(1, 2)), a_64 @ b_64[0].T, k)
    apart, apart_64 = numbers((batch, 2, m, k), 7)
    near(apart[:, 1] @ b.transpose(1, 2), apart_64[:, 1] @ b_64.transpose(0, 2, 1), k)


@pytest.mark.parametrize("beta, alpha", [(1, 1), (0, 0.125), (1, 0.125), (0.5, 1), (0.5, -2)])
@pytest.mark.parametrize("batch, m, n, k", [(40, 20, 17, 24), (3, 70, 80, 90), (2, 3, 2, 1)])
def test_scaled_sums(batch, m, n, k, beta, alpha):
    """beta * self + alpha * products: by batches, `self` of all shapes, in place, and into places that lie apart."""
    a, x = numbers((batch, m, k), 1)
    b, y = numbers((batch, n, k), 2)
    right = b.transpose(1, 2)
    slack = 2.0**-22 * k

    def close(found, expected):
        assert found.dtype == taeda.bfloat16
        difference = np.abs(found.double().numpy() - expected)
        assert (difference <= np.abs(expected) * ROUNDING + slack * np.abs(x).max() * np.abs(y).max()).all()

    for shape in ((batch, m, n), (m, 1), (n,), ()):
        c, z = numbers(shape, 3)
        expected = beta * z + alpha * (x @ y.transpose(0, 2, 1))
        close(taeda.baddbmm(c, a, right, beta=beta, alpha=alpha), expected)
        if len(shape) < 3:
            close(taeda.addmm(c, a[0], right[0], beta=beta, alpha=alpha), expected[0])
    c, z = numbers((batch, m, n), 3)
    expected = beta * z + alpha * (x @ y.transpose(0, 2, 1))
    apart = taeda.zeros(m, batch, 2 * n, dtype=taeda.bfloat16)[:, :, ::2].transpose(0, 1)
    close(taeda.baddbmm(c, a, right, beta=beta, alpha=alpha, out=apart), expected)
    close(c.baddbmm_(a, right, beta=beta, alpha=alpha), expected)


@pytest.mark.parametrize("dtype, rounding", [("bfloat16", 2.0**-8), ("float16", 2.0**-11)])
def test_distances_by_products(dtype, rounding):
    """Euclidean distances of many rows, which a product of matrices gives."""
    kind = getattr(taeda, dtype)
    rng = np.random.default_rng(5)
    a, b = (taeda.tensor(rng.standard_normal((2, rows, 6))).to(kind) for rows in (30, 40))
    x, y = a.double().numpy(), b.double().numpy()
    exact = np.sqrt(((x[:, :, None] - y[:, None]) ** 2).sum(-1))
    found = taeda.cdist(a, b)
    assert found.dtype == kind
    assert (np.abs(found.double().numpy() - exact) <= exact * rounding + 1e-3).all()


@pytest.mark.parametrize("rows, inputs, outputs", [(70, 90, 130), (3, 5, 7), (600, 64, 300)])
def test_gradients_of_linear(rows, inputs, outputs):
    x, x_64 = numbers((2, rows, inputs), 6)
    w, w_64 = numbers((outputs, inputs), 7)
    g, g_64 = numbers((2, rows, outputs), 8)
    to_x, to_w, to_b = ops.linear_backward(g, x, w, 7)
    near(to_x, g_64 @ w_64, outputs)
    near(to_w, np.einsum("nro,nri->oi", g_64, x_64), 2 * rows)
    near(to_b, g_64.sum((0, 1)), 2 * rows)


def windows(x, size):
    return np.lib.stride_tricks.sliding_window_view(x, (size, size), (2, 3))


@pytest.mark.parametrize("groups, channels, outputs", [(1, 33, 48), (4, 32, 16), (24, 24, 24), (1, 3, 64)])
@pytest.mark.parametrize("deterministic", [False, True])
def test_convolutions(groups, channels, outputs, deterministic):
    x, x_64 = numbers((3, channels, 20, 21), 9)
    w, w_64 = numbers((outputs, channels // groups, 3, 3), 10)
    b, b_64 = numbers((outputs,), 11)
    g, g_64 = numbers((3, outputs, 18, 19), 12)
    views = windows(x_64, 3).reshape(3, groups, channels // groups, 18, 19, 3, 3)
    kernels = w_64.reshape(groups, outputs // groups, channels // groups, 3, 3)
    slopes = g_64.reshape(3, groups, outputs // groups, 18, 19)
    y_64 = np.einsum("ngchwij,gocij->ngohw", views, kernels).reshape(3, outputs, 18, 19)
    w_slope = np.einsum("ngchwij,ngohw->gocij", views, slopes)
    around = np.pad(slopes, [(0, 0)] * 3 + [(2, 2)] * 2)
    turned = np.lib.stride_tricks.sliding_window_view(around, (3, 3), (3, 4))[..., ::-1, ::-1]
    x_slope = np.einsum("ngohwij,gocij->ngchw", turned, kernels)
    before = taeda.are_deterministic_algorithms_enabled()
    taeda.use_deterministic_algorithms(deterministic)
    try:
        for layout in (taeda.contiguous_format, taeda.channels_last):
            given = x.contiguous(memory_format=layout)
            y = ops.conv2d(given, w, b, [1, 1], [0, 0], [1, 1], groups)
            near(y, y_64 + b_64[:, None, None], 9 * channels // groups)
            to_x, to_w, to_b = ops.conv2d_backward(g, given, w, [1, 1], [0, 0], [1, 1], groups, 7)
            near(to_x, x_slope.reshape(x_64.shape), 9 * outputs // groups)
            near(to_w, w_slope.reshape(w_64.shape), 3 * 18 * 19)
            near(to_b, g_64.sum((0, 2, 3)), 3 * 18 * 19)
    finally:
        taeda.use_deterministic_algorithms(before)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize(
    "heads, group, length, places, features",
    [(2, 1, 70, 70, 64), (12, 1, 130, 90, 80), (1, 1, 1, 500, 64), (12, 3, 130, 90, 80), (8, 8, 70, 70, 64)],
)
@pytest.mark.parametrize("seen", ["all", "past", "chosen", "weighed"])
@pytest.mark.parametrize("layout", ["heads first", "places first"])
def test_attention(heads, group, length, places, features, seen, layout):
    own = heads // group
    shapes = [
        (2, h, n, features) for h, n in ((heads, length), (own, places), (own, places), (heads, length))
    ]
    pairs = [numbers(shape, 13 + i) for i, shape in enumerate(shapes)]
    if layout == "places first":
        pairs = [(t.transpose(1, 2).contiguous().transpose(1, 2), n) for t, n in pairs]
    (q, q_64), (k, k_64), (v, v_64), (g, g_64) = pairs
    k_64, v_64 = (x.repeat(group, 1) for x in (k_64, v_64))
    rng = np.random.default_rng(17)
    add, mask = np.zeros((length, places)), None
    if seen == "past":
        add = np.where(np.tri(length, places, dtype=bool), 0, -np.inf)
    elif seen == "chosen":
        allowed = rng.random((length, places)) < 0.7
        allowed[:, 0] = True
        mask, add = taeda.tensor(allowed), np.where(allowed, 0, -np.inf)
    elif seen == "weighed":
        mask, add = numbers((length, places), 18)
    full = None if mask is None else mask.expand(2, heads, length, places)
    scale = features**-0.5
    result, lse = ops.fused_attention(q, k, v, full, seen == "past", scale)
    p = softmax(q_64 @ k_64.swapaxes(-1, -2) * scale + add)
    expected = p @ v_64
    slopes = p * (g_64 @ v_64.swapaxes(-1, -2) - (g_64 * expected).sum(-1, keepdims=True)) * scale
    shared = [
        x.reshape(2, own, group, places, features).sum(2)
        for x in (slopes.swapaxes(-1, -2) @ q_64, p.swapaxes(-1, -2) @ g_64)
    ]
    wanted = [slopes @ k_64, *shared]
    found = ops.fused_attention_backward(g, q, k, v, full, result, lse, seen == "past", scale, 7)
    # Weights are rounded before they are multiplied, each on its own: the errors of a sum grow with its root.
    for one, other in zip((result, *found), (expected, *wanted), strict=True):
        assert one.dtype == taeda.bfloat16
        difference = np.abs(one.double().numpy() - other)
        assert difference.max() <= 2 * ROUNDING * np.abs(other).max() + 1e-6


def test_instructions_are_used():
    """Where the processor has instructions for them, bfloat16 operands of products are not copied to float32."""
    has = get_capabilities()
    vendor = (
        Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace") if sys.platform == "linux" else ""
    )
    if not (has.get("amx_bf16") or (has.get("avx512_bf16") and "AuthenticAMD" in vendor)):
        pytest.skip("the processor multiplies bfloat16 no faster than float32")
    if not taeda.backends.mkldnn.is_available():
        pytest.skip("oneDNN, which has the kernels, is not built in")
    program = (
        "import taeda_tensor_core as t; from taeda_tensor_core import ops\n"
        "x = t.randn(12, 256).bfloat16(); w = t.randn(160, 256).bfloat16()\n"
        "x @ w.t(); ops.linear_backward(t.randn(12, 160).bfloat16(), x, w, 3)\n"
        "ops.conv2d(t.randn(2, 32, 20, 20).bfloat16(), t.randn(32, 32, 3, 3).bfloat16())\n"
    )
    environment = {**os.environ, "ONEDNN_VERBOSE": "1", "ONEDNN_MAX_CPU_ISA": "DEFAULT"}
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
        check=True,
    )
    lines = [line for line in result.stdout.splitlines() if ",exec," in line]
    products = [line for line in lines if ",matmul," in line or ",convolution," in line]
    # With more rows, as in the gradient of the weight, tile registers are used without oneDNN.
    assert len(products) >= (3 if has.get("amx_bf16") else 4)
    assert all("src_bf16" in line and ("amx" in line or "bf16" in line.split(",")[4]) for line in products), (
        products
    )


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_one_contraction_is_one_product(dtype):
    kind = getattr(taeda, dtype)
    rng = np.random.default_rng(5)
    q, k = (taeda.tensor(rng.standard_normal((2, 3, n, 64))).to(kind) for n in (70, 90))
    assert taeda.equal(ops.einsum("bhqd,bhkd->bhqk", [q, k]), q @ k.transpose(-1, -2))
    # Two of them round once, at the end.
    w = taeda.tensor(rng.standard_normal((90, 5))).to(kind)
    exact = np.einsum("bhqd,bhkd,kf->bhqf", *(t.double().numpy() for t in (q, k, w)))
    found = ops.einsum("bhqd,bhkd,kf->bhqf", [q, k, w]).double().numpy()
    rounding = 2.0**-8 if dtype == "bfloat16" else 2.0**-11
    assert (np.abs(found - exact) <= np.abs(exact) * rounding + 2.0**-18 * np.abs(exact).max()).all()
