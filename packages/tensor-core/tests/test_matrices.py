"""Functions of matrices beyond their records: modules, errors, sizes, threads, and what LAPACK must not be given."""

import importlib
import pickle

import numpy as np
import pytest

import taeda_tensor_core as tc

linalg = tc.linalg
SEED = 20261122
NAMES = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "householder_product",
    "inv",
    "inv_ex",
    "ldl_factor",
    "ldl_factor_ex",
    "ldl_solve",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vander",
    "vecdot",
    "vector_norm",
]


def random(*shape, dtype="float64"):
    rng = np.random.default_rng([SEED, *shape])
    values = rng.standard_normal(shape)
    return tc.tensor(
        (values + 1j * rng.standard_normal(shape) if dtype.startswith("c") else values).astype(dtype)
    )


def test_the_module_has_every_name():
    module = importlib.import_module("taeda_tensor_core.linalg")
    assert [name for name in NAMES if not hasattr(module, name)] == []


def test_the_error_is_a_runtime_error_of_its_own_class():
    assert issubclass(linalg.LinAlgError, RuntimeError)
    with pytest.raises(
        linalg.LinAlgError, match=r"linalg_inv: \(Batch element 1\): The diagonal element 1 is zero"
    ):
        linalg.inv(tc.stack([tc.eye(2), tc.zeros(2, 2)]))
    assert pickle.loads(pickle.dumps(linalg.LinAlgError("text"))).args == ("text",)


@pytest.mark.parametrize("name", ["cholesky", "inv", "solve", "lu_factor"])
def test_the_ex_form_tells_by_number(name):
    singular = tc.tensor([[1.0, 1.0], [1.0, 1.0]])
    rest = (tc.ones(2),) if name == "solve" else ()
    assert getattr(linalg, f"{name}_ex")(singular, *rest).info.item() == 2
    with pytest.raises(linalg.LinAlgError):
        getattr(linalg, name)(singular, *rest)
    with pytest.raises(linalg.LinAlgError):
        getattr(linalg, f"{name}_ex")(singular, *rest, check_errors=True)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("call", ["eigh", "eigvalsh", "eig", "eigvals", "svd", "svdvals", "lstsq", "pinv"])
def test_infinities_and_nan_end_in_an_error(call, dtype, value):
    a = random(30, 30, dtype=dtype)
    a[7, 7] = value
    rest = (tc.ones(30, 1, dtype=a.dtype),) if call == "lstsq" else ()
    with pytest.raises(RuntimeError, match=r"finite|infinities"):
        getattr(linalg, call)(a, *rest)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("n", [4, 40])
def test_other_functions_take_them(n, value):
    a = random(n, n)
    a[1, 1] = value
    (
        linalg.lu(a),
        linalg.qr(a),
        linalg.det(a),
        linalg.cholesky_ex(a @ a.mT),
        linalg.inv_ex(a),
        linalg.matrix_exp(a),
    )
    linalg.ldl_factor_ex(a), linalg.solve_triangular(a, a, upper=True), linalg.slogdet(a), tc.geqrf(a)


NEAR = {"float32": 2e-3, "complex64": 2e-3, "float64": 1e-8, "complex128": 1e-8}


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (130, 130), (3, 70, 70), (100, 5, 5), (2, 1, 4, 4)])
@pytest.mark.parametrize("dtype", list(NEAR))
@pytest.mark.parametrize("turned", [False, True])
def test_parts_make_the_matrix_again(shape, dtype, turned):
    a = random(*shape, dtype=dtype) + 3 * tc.eye(shape[-1]).to(getattr(tc, dtype))
    a = a.mT.contiguous().mT if turned else a
    size = NEAR[dtype] * shape[-1] ** 0.5

    def same(found, expected):
        np.testing.assert_allclose(
            found.numpy(), np.broadcast_to(expected.numpy(), found.shape), rtol=size, atol=size
        )

    eye = tc.eye(shape[-1], dtype=a.dtype)
    same(a @ linalg.inv(a), eye)
    same(a @ linalg.solve(a, a), a)
    u, s, vh = linalg.svd(a)
    same(u * s.unsqueeze(-2) @ vh, a)
    same(u.mH @ u, eye)
    same(vh @ vh.mH, eye)
    q, r = linalg.qr(a)
    same(q @ r, a)
    same(q.mH @ q, eye)
    h = a @ a.mH + eye
    lower = linalg.cholesky(h)
    same((lower @ lower.mH) / shape[-1], h / shape[-1])
    values, vectors = linalg.eigh(h)
    same((vectors * values.unsqueeze(-2) @ vectors.mH) / shape[-1], h / shape[-1])
    same(vectors.mH @ vectors, eye)
    values, vectors = linalg.eig(a)
    same(a.to(vectors.dtype) @ vectors, vectors * values.unsqueeze(-2))
    same((vectors.abs() ** 2).sum(-2), tc.ones(1, dtype=values.abs().dtype))
    p, lower, upper = linalg.lu(a)
    same(p @ lower @ upper, a)


@pytest.mark.parametrize("dtype", list(NEAR))
@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (2, 5, 3)])
@pytest.mark.parametrize("full", [False, True])
def test_singular_vectors_of_rectangles(shape, dtype, full):
    a = random(*shape, dtype=dtype)
    u, s, vh = linalg.svd(a, full_matrices=full)
    k = min(shape[-2:])
    made = u[..., :k] * s.unsqueeze(-2) @ vh[..., :k, :]
    np.testing.assert_allclose(made.numpy(), a.numpy(), atol=NEAR[dtype])
    np.testing.assert_allclose(
        (u.mH @ u).numpy(), np.broadcast_to(np.eye(u.shape[-1]), (u.mH @ u).shape), atol=NEAR[dtype]
    )
    np.testing.assert_allclose(
        (vh @ vh.mH).numpy(), np.broadcast_to(np.eye(vh.shape[-2]), (vh @ vh.mH).shape), atol=NEAR[dtype]
    )
    old = tc.svd(a, some=not full)
    np.testing.assert_allclose(
        (old.U[..., :k] * old.S.unsqueeze(-2) @ old.V[..., :k].mH).numpy(), a.numpy(), atol=NEAR[dtype]
    )


@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (2, 5, 3), (3, 0), (20, 3)])
@pytest.mark.parametrize("dtype", list(NEAR))
def test_modes_of_qr(shape, dtype):
    a = random(*shape, dtype=dtype)
    q, r = linalg.qr(a, "complete")
    np.testing.assert_allclose((q @ r).numpy(), a.numpy(), atol=NEAR[dtype])
    assert q.shape[-1] == q.shape[-2] == r.shape[-2] == shape[-2]
    eye = np.broadcast_to(np.eye(shape[-2]), q.shape)
    np.testing.assert_allclose((q.mH @ q).numpy(), eye, atol=NEAR[dtype])
    none, alone = linalg.qr(a, "r")
    assert tuple(none.shape) == (0,)
    np.testing.assert_allclose(alone.numpy(), linalg.qr(a).R.numpy(), atol=NEAR[dtype])


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1e30, 1e200])
def test_sizes_whose_squares_leave_the_range(scale):
    a = random(5, 4) * scale
    q, r = linalg.qr(a)
    np.testing.assert_allclose((q @ (r / scale)).numpy(), (a / scale).numpy(), rtol=1e-12)
    np.testing.assert_allclose((q.mT @ q).numpy(), np.eye(4), atol=1e-14)


def test_batches_have_the_same_bits_with_any_number_of_threads():
    a = random(64, 24, 24)
    before = tc.get_num_threads()
    found = []
    try:
        for count in (1, 2, 4):
            tc.set_num_threads(count)
            found.append(
                [linalg.inv(a), *linalg.svd(a), *linalg.eigh(a + a.mT), *linalg.qr(a), linalg.matrix_exp(a)]
            )
    finally:
        tc.set_num_threads(before)
    for other in found[1:]:
        assert all(np.array_equal(x.numpy(), y.numpy()) for x, y in zip(found[0], other, strict=True))


def test_pivots_are_held_to_their_range():
    a = random(3, 3)
    for pivots in ([0, 1, 2], [1, 2, 4]):
        wrong = tc.tensor(pivots, dtype=tc.int32)
        with pytest.raises(RuntimeError, match="pivots"):
            linalg.lu_solve(a, wrong, a)
        with pytest.raises(RuntimeError, match="pivots"):
            tc.lu_unpack(a, wrong)
    for pivots in ([1, 2, -9], [1, 2, -3], [-1, 2, 3], [0, 1, 2]):
        with pytest.raises(RuntimeError, match="pivots"):
            linalg.ldl_solve(a, tc.tensor(pivots, dtype=tc.int32), a)


def test_old_names_give_what_the_new_ones_do():
    a = random(4, 4)
    factors, pivots = tc.lu(a)
    assert a.lu()[0].equal(factors)
    assert len(tc.lu(a, get_infos=True)) == 3
    expected = linalg.lu_factor(a)
    assert factors.equal(expected.LU) and pivots.equal(expected.pivots)
    assert tc.svd(a).S.equal(linalg.svdvals(a)) or tc.allclose(tc.svd(a).S, linalg.svdvals(a))
    assert tc.norm(a, "nuc").allclose(linalg.matrix_norm(a, "nuc"))
    assert tc.matrix_power(a, -2).allclose(linalg.inv(a @ a))


def test_low_rank_decompositions():
    tc.manual_seed(SEED)
    a = random(20, 4) @ random(4, 9)
    for given in (a, a.mT, a.expand(2, 20, 9)):
        u, s, v = tc.svd_lowrank(given, 4)
        np.testing.assert_allclose((u * s.unsqueeze(-2) @ v.mH).numpy(), given.numpy(), atol=1e-9)
        np.testing.assert_allclose(s.numpy(), linalg.svdvals(given)[..., :4].numpy(), rtol=1e-9)
    centred = a - a.mean(-2, keepdim=True)
    np.testing.assert_allclose(
        tc.pca_lowrank(a, 4)[1].numpy(), linalg.svdvals(centred)[:4].numpy(), rtol=1e-9
    )
    with pytest.raises(ValueError, match="'q' is 10"):
        tc.pca_lowrank(a, 10)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("general", [False, True])
def test_lobpcg(largest, general):
    tc.manual_seed(SEED)
    a = random(30, 30)
    a = a + a.mT
    b = random(30, 30) / 10
    b = b @ b.mT + tc.eye(30, dtype=b.dtype)
    values, vectors = tc.lobpcg(a, 3, b if general else None, largest=largest, tol=1e-9)
    root = linalg.cholesky(b) if general else tc.eye(30, dtype=a.dtype)
    inner = linalg.inv(root) @ a @ linalg.inv(root).mT
    exact = linalg.eigvalsh(inner)
    np.testing.assert_allclose(
        values.numpy(), (exact.flip(0)[:3] if largest else exact[:3]).numpy(), rtol=1e-7
    )
    weighted = b @ vectors if general else vectors
    np.testing.assert_allclose((a @ vectors).numpy(), (weighted * values).numpy(), atol=1e-5)
    with pytest.raises(ValueError, match="30 rows"):
        tc.lobpcg(a, 11)


@pytest.mark.parametrize("own", [(), (1,), (2, 1), (1, 3), (2, 3)])
def test_ranks_and_singular_values_of_least_squares_are_those_of_the_matrices(own):
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((*own, 4, 3)), rng.standard_normal((2, 3, 4, 2))
    a[..., 2] = a[..., 1]
    for driver in ("gelsy", "gelsd", "gelss"):
        found = tc.linalg.lstsq(
            tc.tensor(a.tolist(), dtype=tc.float64), tc.tensor(b.tolist(), dtype=tc.float64), driver=driver
        )
        np.testing.assert_allclose(found.solution.numpy(), np.linalg.pinv(a) @ b, atol=1e-12)
        assert found.rank.shape == own and (found.rank.numpy() == 2).all()
        if driver != "gelsy":
            np.testing.assert_allclose(found.singular_values.numpy(), np.linalg.svd(a)[1], atol=1e-12)
    meta = tc.linalg.lstsq(
        tc.empty(*own, 4, 3, device="meta"), tc.empty(2, 3, 4, 2, device="meta"), driver="gelsd"
    )
    assert (meta.rank.shape, meta.singular_values.shape) == (own, (*own, 3))


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "complex64", "int64"])
def test_triangular_systems_take_the_right_side_in_their_dtype(left, dtype):
    triangle = np.triu(np.arange(1.0, 10).reshape(3, 3))
    right = np.arange(9).reshape(3, 3)
    of = "complex128" if dtype == "complex64" else "float64"
    given = tc.tensor(triangle).to(getattr(tc, of)), tc.tensor(right).to(getattr(tc, dtype))
    found = tc.linalg.solve_triangular(*given, upper=True, left=left)
    expected = np.linalg.solve(triangle, right) if left else np.linalg.solve(triangle.T, right.T).T
    assert found.dtype is getattr(tc, of)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)
