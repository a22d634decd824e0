"""Products of matrices and vectors against NumPy."""

import numpy as np
import pytest

import taeda_tensor_core as taeda

FLOATS = ["float32", "float64", "complex64", "complex128"]
INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
TOLERANCE = {"float32": 1e-5, "complex64": 1e-5, "float64": 1e-12, "complex128": 1e-12}


def make(rng, shape, dtype):
    if dtype in INTS:
        return rng.integers(0, 6, shape).astype(dtype)
    real = rng.standard_normal(shape)
    return (real + 1j * rng.standard_normal(shape) if "complex" in dtype else real).astype(dtype)


def tensor(array):
    return taeda.from_numpy(np.array(array, order="C"))


def close(got, expected, dtype):
    expected = np.asarray(expected)
    assert tuple(got.shape) == expected.shape
    scale = max(1.0, float(np.abs(expected).max())) if expected.size else 1.0
    tolerance = TOLERANCE.get(dtype, 0) * scale
    np.testing.assert_allclose(got.numpy(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", FLOATS + INTS)
@pytest.mark.parametrize(
    "sizes",
    [(1, 1, 1), (3, 4, 5), (33, 65, 17), (130, 70, 257), (8, 5000, 9), (0, 2, 3), (2, 0, 3), (2, 3, 0)],
)
def test_mm(dtype, sizes):
    rng = np.random.default_rng(1)
    m, k, n = sizes
    a, b = make(rng, (m, k), dtype), make(rng, (k, n), dtype)
    close(taeda.mm(tensor(a), tensor(b)), a @ b, dtype)
    close(taeda.mm(tensor(a.T).t(), tensor(b.T).t()), a @ b, dtype)
    close(tensor(a) @ tensor(b.T).t(), a @ b, dtype)


def test_mm_any_strides():
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((12, 14)), rng.standard_normal((14, 10))
    view = taeda.from_numpy(a)[::-2, 1::3]
    close(taeda.mm(view, taeda.from_numpy(b)[:5, ::-1]), a[::-2, 1::3] @ b[:5, ::-1], "float64")
    row = taeda.from_numpy(a)[:1].expand(4, 14)
    close(taeda.mm(row, taeda.from_numpy(b)), np.broadcast_to(a[:1], (4, 14)) @ b, "float64")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("turned", [(False, True), (True, False), (True, True)])
@pytest.mark.parametrize("sizes", [(3, 5, 7), (1, 64, 40), (33, 1, 20), (4, 40, 1)])
def test_batches_of_halves_in_any_layout(dtype, turned, sizes):
    rng = np.random.default_rng(3)
    m, k, n = sizes
    x, y = (rng.standard_normal(s) for s in ((6, m, k), (6, k, n)))
    halves, exact = [], []
    for values, turn in zip((x, y), turned, strict=True):
        whole = tensor(np.concatenate([values, values], 0).astype("float32")).to(getattr(taeda, dtype))
        half = whole.transpose(1, 2).contiguous().transpose(1, 2) if turn else whole
        halves.append(half[::2])
        exact.append(half[::2].to(taeda.float64).numpy())
    got = taeda.bmm(*halves).to(taeda.float64).numpy()
    step = 2**-10 if dtype == "float16" else 2**-7
    np.testing.assert_allclose(got, exact[0] @ exact[1], rtol=step, atol=step * k**0.5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_mm_half(dtype):
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((5, 6)).astype("float32"), rng.standard_normal((6, 7)).astype("float32")
    half = getattr(taeda, dtype)
    got = taeda.mm(tensor(a).to(half), tensor(b).to(half))
    assert got.dtype == half
    np.testing.assert_allclose(got.to(taeda.float32).numpy(), a @ b, atol=0.06)


@pytest.mark.parametrize(
    "sizes", [(65, 70, 80), (300, 130, 270), (8, 5000, 600), (1, 700, 900), (20, 9000, 30)]
)
@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
def test_large_bfloat16_products_are_rounded_once(sizes, layout):
    m, k, n = sizes
    rng = np.random.default_rng(m)
    a, b = (tensor(rng.standard_normal(s).astype("float32")).to(taeda.bfloat16) for s in ((m, k), (k, n)))
    exact = a.to(taeda.float64).numpy() @ b.to(taeda.float64).numpy()
    bias = tensor(rng.standard_normal(n).astype("float32")).to(taeda.bfloat16)
    a = a if layout[0] == "n" else a.t().contiguous().t()
    b = b if layout[1] == "n" else b.t().contiguous().t()
    with_bias = exact + bias.to(taeda.float64).numpy()
    for found, expected in (
        (taeda.mm(a, b), exact),
        (taeda.bmm(a.expand(2, m, k), b.expand(2, k, n))[1], exact),
        (taeda.addmm(bias, a, b), with_bias),
        (taeda.ops.linear(a, b.t(), bias), with_bias),
    ):
        assert found.dtype is taeda.bfloat16
        # half a unit in the last of eight places, and the float32 sum's own error
        bound = 2.0**-8 * np.abs(expected) + 1e-6 * k
        assert (np.abs(found.to(taeda.float64).numpy() - expected) <= bound).all()


@pytest.mark.parametrize(
    "shapes",
    [
        ((4,), (4,)),
        ((4,), (4, 3)),
        ((2, 4), (4,)),
        ((5, 2, 4), (4,)),
        ((5, 2, 4), (4, 3)),
        ((4,), (5, 4, 3)),
        ((5, 2, 4), (5, 4, 3)),
        ((6, 1, 2, 4), (5, 4, 3)),
        ((2, 4), (7, 4, 3)),
        ((0, 2, 4), (4, 3)),
        ((3, 2, 0), (3, 0, 5)),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_matmul_follows_numpy(shapes, dtype):
    rng = np.random.default_rng(4)
    a, b = (make(rng, s, dtype) for s in shapes)
    close(taeda.matmul(tensor(a), tensor(b)), np.matmul(a, b), dtype)


@pytest.mark.parametrize("dtype", FLOATS + ["int64"])
def test_products_with_sums(dtype):
    rng = np.random.default_rng(5)
    c, a, b = make(rng, (3, 6), dtype), make(rng, (3, 4), dtype), make(rng, (4, 6), dtype)
    v, w = make(rng, 4, dtype), make(rng, 3, dtype)
    close(taeda.addmm(tensor(c), tensor(a), tensor(b), beta=2, alpha=3), 2 * c + 3 * (a @ b), dtype)
    close(taeda.addmm(tensor(c[0]), tensor(a), tensor(b)), c[0] + a @ b, dtype)
    x = tensor(c)
    x.addmm_(tensor(a), tensor(b))
    close(x, c + a @ b, dtype)
    close(taeda.addmv(tensor(w), tensor(a), tensor(v), beta=3, alpha=2), 3 * w + 2 * (a @ v), dtype)
    close(taeda.mv(tensor(a), tensor(v)), a @ v, dtype)
    close(taeda.dot(tensor(v), tensor(v)[::-1]), np.dot(v, v[::-1]), dtype)
    close(taeda.outer(tensor(v), tensor(w)), np.outer(v, w), dtype)
    batch, other = make(rng, (2, 3, 4), dtype), make(rng, (2, 4, 6), dtype)
    close(taeda.bmm(tensor(batch), tensor(other)), batch @ other, dtype)
    close(taeda.baddbmm(tensor(c), tensor(batch), tensor(other), beta=2), 2 * c + batch @ other, dtype)


def test_beta_zero_does_not_read_self():
    nan = taeda.full((2, 2), float("nan"))
    one = taeda.ones(2, 2)
    np.testing.assert_array_equal(taeda.addmm(nan, one, one, beta=0).numpy(), np.full((2, 2), 2.0))


@pytest.mark.parametrize(
    "equation, shapes",
    [
        ("ij,jk->ik", [(3, 4), (4, 5)]),
        ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
        ("ii->i", [(3, 3)]),
        ("ii", [(3, 3)]),
        ("ba", [(3, 4)]),
        ("...ij,...jk", [(2, 3, 4), (4, 5)]),
        ("i,j", [(3,), (4,)]),
        ("ijk,ijk->", [(2, 3, 4), (2, 3, 4)]),
        ("bhid,bhjd->bhij", [(2, 3, 4, 5), (2, 3, 6, 5)]),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
        ("iij,j->i", [(3, 3, 4), (4,)]),
        ("i...->...", [(3, 4, 5)]),
        ("...i,...i->...", [(2, 1, 4), (3, 4)]),
        ("ij, ij -> ij", [(2, 3), (2, 3)]),
        ("a,b,a->b", [(3,), (2,), (3,)]),
    ],
)
def test_einsum(equation, shapes):
    rng = np.random.default_rng(6)
    arrays = [rng.standard_normal(s) for s in shapes]
    expected = np.einsum(equation, *arrays)
    close(taeda.einsum(equation, *map(tensor, arrays)), expected, "float64")
    close(taeda.einsum(equation, [tensor(a) for a in arrays]), expected, "float64")


@pytest.mark.parametrize("operands", [3, 4, 5, 6])
def test_einsum_of_several_operands_in_any_order(operands):
    """Random terms over letters of very different sizes, so that orders of contraction differ in what they cost."""
    rng = np.random.default_rng(41 + operands)
    print("seed", 41 + operands)
    sizes = dict(zip("abcdef", [1, 2, 3, 5, 7, 11], strict=True))
    for _ in range(40):
        terms = ["".join(rng.choice(list(sizes), rng.integers(1, 4), replace=False)) for _ in range(operands)]
        known = sorted(set("".join(terms)))
        output = "".join(rng.choice(known, rng.integers(0, min(4, len(known) + 1)), replace=False))
        equation = f"{','.join(terms)}->{output}"
        arrays = [rng.integers(-3, 4, [sizes[label] for label in term]).astype(float) for term in terms]
        found = taeda.einsum(equation, *map(tensor, arrays))
        np.testing.assert_array_equal(found.numpy(), np.einsum(equation, *arrays), err_msg=equation)


def test_einsum_takes_numbers_of_dimensions_from_anything_that_can_be_run_through():
    x, y = np.arange(24.0).reshape(2, 3, 4), np.arange(12.0).reshape(4, 3)
    expected = np.einsum("abc,cb->ab", x, y)
    for dims in ([..., 1, 2], (..., np.int64(1), np.int32(2))):
        found = taeda.einsum(tensor(x), dims, tensor(y), np.array([2, 1]), iter([..., 1]))
        close(found, expected, "float64")
    close(taeda.einsum(tensor(x), range(3), range(2)), x.sum(2), "float64")


def test_other_products():
    rng = np.random.default_rng(7)
    a, b = rng.standard_normal((3, 4, 5)), rng.standard_normal((4, 5, 6))
    close(taeda.tensordot(tensor(a), tensor(b), 2), np.tensordot(a, b, 2), "float64")
    close(taeda.kron(tensor(a[0]), tensor(b[0])), np.kron(a[0], b[0]), "float64")
    close(taeda.trace(tensor(a[0])), np.trace(a[0]), "float64")
    close(taeda.inner(tensor(a), tensor(a)), np.inner(a, a), "float64")
    square = rng.standard_normal((4, 4))
    for n in (0, 1, 2, 5):
        close(taeda.matrix_power(tensor(square), n), np.linalg.matrix_power(square, n), "float64")
    z = (rng.standard_normal(4) + 1j * rng.standard_normal(4)).astype("complex128")
    close(taeda.vdot(tensor(z), tensor(z)), np.vdot(z, z), "complex128")


@pytest.mark.parametrize("lead", [(), (1,), (7,), (2, 3), (0,)])
def test_linear_and_its_gradients(lead):
    rng = np.random.default_rng(8)
    x, w, b = rng.standard_normal((*lead, 4)), rng.standard_normal((5, 4)), rng.standard_normal(5)
    close(taeda.ops.linear(tensor(x), tensor(w), tensor(b)), x @ w.T + b, "float64")
    close(taeda.ops.linear(tensor(x), tensor(w)), x @ w.T, "float64")
    grad = rng.standard_normal((*lead, 5))
    rows, wide = grad.reshape(-1, 5), x.reshape(-1, 4)
    grad_x, grad_w, grad_b = taeda.ops.linear_backward(tensor(grad), tensor(x), tensor(w))
    close(grad_x, grad @ w, "float64")
    close(grad_w, rows.T @ wide, "float64")
    close(grad_b, rows.sum(0), "float64")
    turned = tensor(np.ascontiguousarray(w.T)).t()
    close(taeda.ops.linear(tensor(x), turned, tensor(b)), x @ w.T + b, "float64")
    grad_x, grad_w, _ = taeda.ops.linear_backward(tensor(grad), tensor(x), turned)
    close(grad_x, grad @ w, "float64")
    close(grad_w, rows.T @ wide, "float64")
    assert grad_w.stride() == turned.stride()
    assert taeda.ops.linear_backward(tensor(grad), tensor(x), tensor(w), 2)[0] is None


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("rows", [1, 63, 64, 65, 300])
@pytest.mark.parametrize("columns", [1, 31, 32, 65, 257, 600])
def test_gradient_of_a_bias(rows, columns, dtype):
    rng = np.random.default_rng(16)
    grad, x = make(rng, (rows, columns), dtype), make(rng, (rows, 3), dtype)
    weight, before, found = make(rng, (columns, 3), dtype), taeda.get_num_threads(), []
    try:
        for threads in (1, 3):
            taeda.set_num_threads(threads)
            found.append(taeda.ops.linear_backward(tensor(grad), tensor(x), tensor(weight), 4)[2])
    finally:
        taeda.set_num_threads(before)
    close(found[0], grad.astype("complex128").sum(0), dtype)
    assert np.array_equal(found[0].numpy(), found[1].numpy())


@pytest.mark.parametrize(
    "rows, inner, columns", [(12, 3000, 64), (16, 700, 200), (40, 96, 600), (130, 192, 600), (1030, 96, 193)]
)
def test_linear_in_pieces(rows, inner, columns):
    rng = np.random.default_rng(10)
    x, w, b = (
        rng.standard_normal(s).astype("float32") for s in ((rows, inner), (columns, inner), (columns,))
    )
    exact = x.astype("float64") @ w.T
    close(taeda.ops.linear(tensor(x), tensor(w), tensor(b)), exact + b, "float32")
    close(taeda.ops.linear(tensor(x), tensor(w)), exact, "float32")


def test_thread_count_does_not_change_bits():
    rng = np.random.default_rng(9)
    cases = [((200, 300), (300, 400)), ((16, 20000), (20000, 16)), ((57, 444), (444, 56))]
    before = taeda.get_num_threads()
    try:
        for sa, sb in cases:
            a, b = (tensor(rng.standard_normal(s).astype("float32")) for s in (sa, sb))
            results = []
            for threads in (1, 2, 3):
                taeda.set_num_threads(threads)
                results.append(taeda.mm(a, b).numpy())
            assert all(np.array_equal(results[0], r) for r in results[1:])
    finally:
        taeda.set_num_threads(before)


FEW_ROWS = [
    *(
        (rows, columns, inner)
        for rows in (2, 3, 4, 5, 9, 12, 13)
        for columns, inner in ((90, 110), (300, 250))
    ),
    *(
        (rows, columns, inner)
        for rows in (2, 4, 12)
        for columns, inner in ((1100, 9000), (4200, 1030), (60, 20000))
    ),
]


@pytest.mark.parametrize(
    "rows, columns, inner",
    [(1030, 300, 200), (520, 256, 130), (128, 700, 22500), (330, 420, 17000), *FEW_ROWS],
)
@pytest.mark.parametrize("turned", ["neither", "left", "right", "both"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_of_all_shapes(rows, columns, inner, turned, dtype):
    """Few rows, packed operands, turned ones and sums in parts, by any number of threads."""
    rng = np.random.default_rng(12)
    x, y = (rng.standard_normal(s).astype(dtype) for s in ((rows, inner), (inner, columns)))
    a = tensor(x.T.copy()).t() if turned in ("left", "both") else tensor(x)
    b = tensor(y.T.copy()).t() if turned in ("right", "both") else tensor(y)
    before, found = taeda.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            taeda.set_num_threads(threads)
            found.append(taeda.mm(a, b).numpy())
    finally:
        taeda.set_num_threads(before)
    error = 100 * np.finfo(dtype).eps * inner**0.5
    np.testing.assert_allclose(found[0], x.astype("float64") @ y, rtol=0, atol=error)
    assert all(np.array_equal(found[0], other) for other in found[1:])


@pytest.mark.parametrize(
    "rows, columns, inner",
    [(6, 256, 1200), (37, 300, 700), (300, 1001, 331), (1900, 260, 2300), (31, 1031, 165)],
)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_with_sums_in_tiles(rows, columns, inner, turned, dtype):
    """Factors of both terms, views whose rows lie apart, and tiles at all edges."""
    rng = np.random.default_rng(15)
    x, y, z = (
        rng.standard_normal(s).astype(dtype) for s in ((rows, inner), (inner, columns + 3), (rows, columns))
    )
    a = tensor(x.T.copy()).t() if turned else tensor(x)
    exact = x.astype("float64") @ y[:, :columns]
    for beta, alpha in ((1, 1), (-0.5, 2), (0, 0.25)):
        got = taeda.addmm(tensor(z), a, tensor(y)[:, :columns], beta=beta, alpha=alpha)
        expected = beta * z + alpha * exact
        error = 200 * np.finfo(dtype).eps * inner**0.5
        np.testing.assert_allclose(got.numpy(), expected, rtol=0, atol=error)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_in_tiles_keep_what_is_not_finite_in_its_row(dtype):
    x, y = np.ones((40, 400), dtype), np.ones((400, 300), dtype)
    x[5, 7], x[39, 399] = np.nan, np.inf
    got = taeda.mm(tensor(x), tensor(y)).numpy()
    assert np.isnan(got[5]).all() and np.isposinf(got[39]).all()
    assert (np.delete(got, [5, 39], 0) == 400).all()


def test_a_left_operand_whose_columns_share_lines_of_the_cache():
    rng = np.random.default_rng(13)
    x, y = (rng.standard_normal(s).astype("float32") for s in ((300, 1024), (300, 260)))
    exact = x.T.astype("float64") @ y
    np.testing.assert_allclose(taeda.mm(tensor(x).t(), tensor(y)).numpy(), exact, rtol=0, atol=2e-4)


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (lambda t: t.mm(t.ones(2, 8), t.ones(9, 2)), RuntimeError, ["mm", "mat2", "(9, 2)", "(2, 8)"]),
        (lambda t: t.mm(t.ones(2), t.ones(2, 2)), RuntimeError, ["mm", "self", "(2,)", "2 dimensions"]),
        (
            lambda t: t.mm(t.ones(2, 2), t.ones(2, 2, dtype=t.float64)),
            RuntimeError,
            ["mm", "mat2", "float64", "float32"],
        ),
        (lambda t: t.mm(t.ones(2, 2).bool(), t.ones(2, 2).bool()), NotImplementedError, ["mm", "bool"]),
        (
            lambda t: t.bmm(t.ones(2, 3, 4), t.ones(3, 4, 5)),
            RuntimeError,
            ["bmm", "mat2", "(3, 4, 5)", "(2, 3, 4)"],
        ),
        (
            lambda t: t.matmul(t.ones(2, 3), t.ones(2, 4, 5)),
            RuntimeError,
            ["matmul", "other", "(2, 4, 5)", "(2, 3)"],
        ),
        (lambda t: t.matmul(t.ones(()), t.ones(2)), RuntimeError, ["matmul", "self"]),
        (
            lambda t: t.addmm(t.ones(7), t.ones(2, 3), t.ones(3, 4)),
            RuntimeError,
            ["addmm", "self", "(7,)", "(2, 4)"],
        ),
        (lambda t: t.dot(t.ones(2), t.ones(3)), RuntimeError, ["dot", "tensor", "(3,)", "(2,)"]),
        (
            lambda t: t.ops.linear(t.ones(2, 3), t.ones(4, 5)),
            RuntimeError,
            ["linear", "input", "(2, 3)", "(4, 5)"],
        ),
        (lambda t: t.einsum("ij,jk->iz", t.ones(2, 3), t.ones(3, 4)), RuntimeError, ["einsum", "z"]),
        (lambda t: t.einsum("ij,jk", t.ones(2, 3), t.ones(4, 4)), RuntimeError, ["einsum", "j", "(4, 4)"]),
        (lambda t: t.einsum("ij", t.ones(2, 3), t.ones(4, 4)), RuntimeError, ["einsum", "1 operands", "2"]),
    ],
)
def test_errors_name_what_is_wrong(call, kind, words):
    with pytest.raises(kind) as caught:
        call(taeda)
    for word in words:
        assert word in str(caught.value)


def test_chain_matmul_takes_matrices():
    with pytest.raises(RuntimeError, match=r"chain_matmul: item 0 of 'matrices' has shape \(3,\)"):
        taeda.chain_matmul(taeda.ones(3))
    with pytest.raises(RuntimeError, match="chain_matmul: item 1 of 'matrices' has shape"):
        taeda.chain_matmul(taeda.ones(3, 3), taeda.ones(3))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128", "int64", "float16"])
def test_products_over_nothing_are_zero(dtype):
    """Also of operands that are expanded, whose strides say nothing."""
    dtype = getattr(taeda, dtype)
    right = taeda.ones((), dtype=dtype).expand(0, 3)
    for left in (taeda.ones(2, 0, dtype=dtype), taeda.ones((), dtype=dtype).expand(2, 0)):
        assert taeda.mm(left, right).tolist() == [[0] * 3] * 2
        added = taeda.addmm(taeda.ones(2, 3, dtype=dtype), left, right, beta=2)
        assert added.tolist() == [[2] * 3] * 2


def test_weights_apply_in_the_dtype_of_the_result():
    small = taeda.full((2, 3), 200, dtype=taeda.uint8)
    a, b = taeda.tensor([1, 2], dtype=taeda.int32), taeda.tensor([1, 2, 3], dtype=taeda.int32)
    found = taeda.addr(small, a, b, beta=2)
    assert found.dtype == taeda.int32
    assert found.tolist() == (400 + np.outer([1, 2], [1, 2, 3])).tolist()
    assert taeda.addr(taeda.ones(2, 3, dtype=taeda.complex64), a, b, beta=0).dtype == taeda.complex64


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128", "int64"])
@pytest.mark.parametrize("rows, columns", [(1, 1), (1, 64), (64, 1), (3, 4), (9, 9)])
def test_batches_of_small_products_and_of_vectors(rows, columns, dtype):
    """Each operand row-major and turned; the target's old numbers, NaN among them, do not show with beta 0."""
    rng = np.random.default_rng(32)
    for inner in (1, 5, 16, 17, 400, 3000):
        a, b = rng.integers(-9, 9, (3, rows, inner)), rng.integers(-9, 9, (3, inner, columns))
        expected = (a @ b).astype(dtype)
        left, right = taeda.from_numpy(a.astype(dtype)), taeda.from_numpy(b.astype(dtype))
        for x in (left, left.mT.contiguous().mT):
            for y in (right, right.mT.contiguous().mT):
                out = taeda.full(expected.shape, 7 if dtype == "int64" else float("nan"), dtype=left.dtype)
                np.testing.assert_array_equal(taeda.bmm(x, y, out=out).numpy(), expected)
                added = taeda.baddbmm(taeda.ones(expected.shape, dtype=left.dtype), x, y, beta=2, alpha=3)
                np.testing.assert_array_equal(added.numpy(), 3 * expected + 2)


@pytest.mark.parametrize("name", ["alpha", "beta"])
def test_factors_that_the_dtype_cannot_hold_are_refused(name):
    whole, real = taeda.ones(2, 2, dtype=taeda.int32), taeda.ones(2, 2)
    for matrix, factor in (
        (whole, 2.5),
        (whole, True),
        (real, True),
        (whole, 2j),
        (real, 2j),
        (whole > 0, 1.5),
    ):
        with pytest.raises(RuntimeError, match=f"addr: argument '{name}'"):
            taeda.addr(matrix, matrix[0], matrix[0], **{name: factor})
    with pytest.raises(RuntimeError, match=f"addbmm: argument '{name}' is complex"):
        taeda.addbmm(real, real[None], real[None], **{name: 2j})
    assert taeda.addr(whole, whole[0], whole[0], **{name: 2}).tolist() == [[3, 3], [3, 3]]
    assert taeda.addr(real > 0, real[0] > 0, real[0] > 0, **{name: False}).all()


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize(
    "m, k, n", [(1, 1, 1), (3, 5, 7), (4, 300, 33), (9, 257, 130), (0, 3, 2), (2, 0, 3), (17, 64, 65)]
)
def test_products_of_integers_wrap_in_every_layout(dtype, m, k, n):
    print("seed 3")
    rng = np.random.default_rng(3)
    low = 0 if dtype.startswith("u") else -100
    a, b, c = (rng.integers(low, 100, shape).astype(dtype) for shape in ((m, k), (k, n), (m, n)))
    expected = a @ b
    turned = [taeda.tensor(np.ascontiguousarray(x.T)).t() for x in (a, b)]
    plain = [taeda.tensor(x) for x in (a, b)]
    for left in (plain[0], turned[0]):
        for right in (plain[1], turned[1]):
            assert np.array_equal((left @ right).numpy(), expected)
    added = taeda.addmm(taeda.tensor(c), plain[0], turned[1], beta=3, alpha=2)
    assert np.array_equal(added.numpy(), (3 * c + 2 * expected).astype(dtype))
    assert np.array_equal((turned[0].t() @ plain[0]).numpy(), a.T @ a)
