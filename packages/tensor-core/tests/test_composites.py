"""Composite operators that no family's file covers: each against NumPy, or against its definition."""

from __future__ import annotations

import numpy as np
import pytest

import taeda_tensor_core as taeda
from taeda_tensor_core import ops


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def same(actual: taeda.Tensor, expected: np.ndarray) -> None:
    expected = np.asarray(expected)
    assert tuple(actual.shape) == expected.shape
    assert actual.numpy().dtype == expected.dtype
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-12, atol=1e-12)


A = rng(1).standard_normal((3, 4))
B = rng(2).standard_normal((3, 4))


@pytest.mark.parametrize(
    ("name", "function", "shape"),
    [
        ("fliplr", np.fliplr, (3, 4)),
        ("flipud", np.flipud, (3, 4)),
        ("atleast_2d", np.atleast_2d, (4,)),
        ("atleast_2d", np.atleast_2d, ()),
        ("atleast_3d", np.atleast_3d, (4,)),
        ("atleast_3d", np.atleast_3d, (3, 4)),
    ],
)
def test_rearranging(name: str, function: object, shape: tuple[int, ...]) -> None:
    array = rng(3).standard_normal(shape)
    same(getattr(taeda, name)(taeda.from_numpy(np.asarray(array))), function(array))


@pytest.mark.parametrize(("name", "function"), [("column_stack", np.column_stack), ("dstack", np.dstack)])
@pytest.mark.parametrize("shape", [(3,), (3, 2), (3, 2, 2)])
def test_stacking(name: str, function: object, shape: tuple[int, ...]) -> None:
    if name == "column_stack" and len(shape) == 3:
        shape = (3, 2)
    parts = [rng(seed).standard_normal(shape) for seed in (4, 5)]
    same(getattr(taeda, name)([taeda.from_numpy(part) for part in parts]), function(parts))


def test_shapes_of_others() -> None:
    a, row = taeda.from_numpy(A), taeda.from_numpy(A[:1])
    same(row.expand_as(a), np.broadcast_to(A[:1], A.shape))
    other = taeda.zeros(2, 6)
    same(a.reshape_as(other), A.reshape(2, 6))
    viewed = a.view_as(other)
    same(viewed, A.reshape(2, 6))
    assert viewed.data_ptr() == a.data_ptr()


def test_triangle_indices() -> None:
    for offset in (-1, 0, 2):
        same(taeda.tril_indices(3, 4, offset), np.stack(np.tril_indices(3, offset, 4)))
        same(taeda.triu_indices(3, 4, offset), np.stack(np.triu_indices(3, offset, 4)))


def test_triangle_indices_that_require_gradients() -> None:
    pytest.importorskip("taeda_autograd", reason="what requires gradients needs their package")
    for offset in (-1, 0, 2):
        assert taeda.tril_indices(3, 4, offset, dtype=taeda.float32, requires_grad=True).requires_grad


def test_products() -> None:
    m, v, w = (rng(seed).standard_normal(size) for seed, size in ((6, (3, 4)), (7, 3), (8, 4)))
    result = taeda.addr(*(taeda.from_numpy(x) for x in (m, v, w)), beta=0.5, alpha=2)
    same(result, 0.5 * m + 2 * np.outer(v, w))
    batches = [rng(seed).standard_normal(size) for seed, size in ((9, (5, 3, 2)), (10, (5, 2, 4)))]
    result = taeda.addbmm(taeda.from_numpy(m), *(taeda.from_numpy(x) for x in batches), beta=2, alpha=0.5)
    same(result, 2 * m + 0.5 * np.einsum("bij,bjk->ik", *batches))
    chain = [rng(seed).standard_normal(size) for seed, size in ((11, (2, 3)), (12, (3, 4)), (13, (4, 5)))]
    same(taeda.chain_matmul(*(taeda.from_numpy(x) for x in chain)), chain[0] @ chain[1] @ chain[2])
    same(taeda.vecdot(taeda.from_numpy(A), taeda.from_numpy(B)), (A * B).sum(-1))


def test_creation_like() -> None:
    base = taeda.from_numpy(A)
    assert base.new_empty(2, 3).shape == (2, 3)
    same(base.new_full((2,), 7.0), np.full(2, 7.0))
    same(base.new_zeros(2, 2), np.zeros((2, 2)))
    assert base.new_zeros(2, dtype=taeda.int32).dtype is taeda.int32
    same(taeda.scalar_tensor(3.5, dtype=taeda.float64), np.array(3.5))
    same(taeda.logspace(-1, 2, 7, dtype=taeda.float64), np.logspace(-1, 2, 7))
    same(taeda.logspace(0, 3, 4, base=2.0, dtype=taeda.float64), np.logspace(0, 3, 4, base=2.0))


def test_random_like() -> None:
    base = taeda.zeros(20_000, dtype=taeda.float64)
    taeda.manual_seed(11)
    drawn = taeda.randn_like(base).numpy()
    # Five standard errors of mean and variance.
    assert abs(drawn.mean()) < 5 / np.sqrt(drawn.size)
    assert abs(drawn.var() - 1) < 5 * np.sqrt(2 / drawn.size)
    for arguments, low in (((5,), 0), ((-3, 5), -3)):
        whole = taeda.randint_like(base, *arguments).numpy()
        assert set(np.unique(whole)) == set(range(low, 5))
    logs = np.log(taeda.empty(20_000, dtype=taeda.float64).log_normal_(0.5, 0.25).numpy())
    assert abs(logs.mean() - 0.5) < 5 * 0.25 / np.sqrt(logs.size)
    assert abs(logs.std() - 0.25) < 5 * 0.25 / np.sqrt(2 * logs.size)


def test_random_leaky_relu() -> None:
    x = taeda.from_numpy(A)
    middle = (1 / 8 + 1 / 3) / 2
    same(ops.rrelu(x), np.where(A < 0, A * middle, A))
    taeda.manual_seed(5)
    trained = ops.rrelu(x, 1 / 8, 1 / 3, True).numpy()
    np.testing.assert_array_equal(trained[A >= 0], A[A >= 0])
    slopes = trained[A < 0] / A[A < 0]
    assert ((slopes >= 1 / 8) & (slopes <= 1 / 3)).all()
    assert np.unique(slopes).size > 1


def test_complex_views() -> None:
    c = A + 1j * B
    z = taeda.from_numpy(c)
    same(taeda.view_as_real(z), np.stack([A, B], -1))
    assert taeda.view_as_real(z).data_ptr() == z.data_ptr()
    same(taeda.isreal(taeda.from_numpy(np.array([1 + 0j, 2 + 1j]))), np.array([True, False]))
    same(taeda.polar(taeda.from_numpy(np.abs(A)), taeda.from_numpy(B)), np.abs(A) * np.exp(1j * B))


@pytest.mark.parametrize("correction", [0, 1])
def test_variance_and_mean(correction: int) -> None:
    variance, mean = taeda.var_mean(taeda.from_numpy(A), 1, correction=correction)
    same(variance, A.var(1, ddof=correction))
    same(mean, A.mean(1))


@pytest.mark.parametrize("right", [False, True])
def test_buckets(right: bool) -> None:
    edges, values = np.array([-1.0, 0.0, 0.5, 2.0]), np.array([[-2.0, -1.0, 0.25], [0.5, 2.0, 3.0]])
    found = taeda.bucketize(taeda.from_numpy(values), taeda.from_numpy(edges), right=right)
    same(found, np.searchsorted(edges, values, side="right" if right else "left"))


def test_triangles_beyond_the_matrix() -> None:
    x = taeda.ones(2, 3)
    for far in (2**63 - 1, 2**40):
        assert taeda.tril(x, far).tolist() == taeda.triu(x, -far).tolist() == [[1.0] * 3] * 2
        assert taeda.triu(x, far).sum().item() == taeda.tril(x, -far).sum().item() == 0
    assert taeda.triu(x, -(2**63)).sum().item() == 6


def test_nothing_is_left_to_resolve() -> None:
    z = taeda.tensor([1 + 2j])
    assert z.resolve_conj().tolist() == z.conj().resolve_conj().conj().tolist() == [1 + 2j]
    assert taeda.resolve_neg(-z).tolist() == [-1 - 2j]


def test_bucket_of_a_number() -> None:
    edges = taeda.tensor([1.0, 2.0, 3.0])
    assert taeda.bucketize(2.0, edges).item() == 1
    found = taeda.bucketize(2, edges, right=True, out_int32=True)
    assert found.item() == 2 and found.dtype is taeda.int32


@pytest.mark.parametrize("out_int32", [False, True])
@pytest.mark.parametrize("side", ["left", "right"])
def test_search_of_unsorted_rows(side: str, out_int32: bool) -> None:
    rows, wanted = rng(15).integers(0, 9, (3, 7)), rng(16).integers(-1, 10, (3, 4))
    order = np.argsort(rows, 1)
    found = taeda.searchsorted(
        taeda.from_numpy(rows),
        taeda.from_numpy(wanted),
        side=side,
        sorter=taeda.from_numpy(order),
        out_int32=out_int32,
    )
    one = [np.searchsorted(r, w, side, sorter=o) for r, w, o in zip(rows, wanted, order, strict=True)]
    same(found, np.stack(one).astype("int32" if out_int32 else "int64"))


def test_contraction_of_named_dimensions() -> None:
    a, b = rng(17).standard_normal((2, 3, 4)), rng(18).standard_normal((4, 3, 5))
    x, y = taeda.from_numpy(a), taeda.from_numpy(b)
    for dims in (([1, 2], [1, 0]), ((-2,), (1,)), (2, 0)):
        same(taeda.tensordot(x, y, dims), np.tensordot(a, b, dims))
    same(taeda.tensordot(x, y, dims=taeda.tensor([[1, 2], [1, 0]])), np.tensordot(a, b, ([1, 2], [1, 0])))


@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (2, 0, 3)])
def test_places_by_dimension(shape: tuple[int, ...]) -> None:
    values = np.asarray(rng(19).integers(0, 2, shape))
    t = taeda.from_numpy(values)
    for found in (taeda.nonzero(t, as_tuple=True), t.nonzero(as_tuple=True), taeda.where(t != 0)):
        assert isinstance(found, tuple)
        for ours, theirs in zip(found, np.atleast_1d(values).nonzero(), strict=True):
            same(ours, theirs)
    same(taeda.nonzero(t, as_tuple=False), np.argwhere(values))


def test_histogram() -> None:
    values = rng(14).uniform(-3, 3, 500)
    found = taeda.histc(taeda.from_numpy(values), bins=10, min=-2, max=2)
    same(found, np.histogram(values, bins=10, range=(-2, 2))[0].astype(np.float64))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_histogram_of_numbers_between_bounds(dtype: str) -> None:
    x = rng(5).integers(-9, 10, 3000).astype(dtype)
    for low, high in ((0, 0), (-4, 6)):
        found = taeda.histc(taeda.tensor(x).to(taeda.float32), 7, low, high)
        bounds = (x.min(), x.max()) if low == high else (low, high)
        np.testing.assert_array_equal(found.numpy(), np.histogram(x, 7, bounds)[0])


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64])
def test_whole_numbers_fall_into_bins_of_their_own(dtype: taeda.dtype) -> None:
    for bins in (49, 200):
        x = taeda.arange(bins, dtype=dtype)
        np.testing.assert_array_equal(taeda.histc(x, bins, 0, bins).numpy(), np.ones(bins))
        large = taeda.histc(x * 1e36, bins, 0, bins * 1e36)
        assert large.sum().item() == bins and large.max().item() < 4


@pytest.mark.parametrize("edges", [0, 1, 2, 3, 8, 100])
def test_places_among_many_edges(edges: int) -> None:
    drawn = rng(6)
    row, wanted = np.sort(drawn.integers(0, 30, edges)).astype("float32"), drawn.uniform(-2, 32, 500).round()
    for side in ("left", "right"):
        found = taeda.searchsorted(taeda.tensor(row), taeda.tensor(wanted.astype("float32")), side=side)
        np.testing.assert_array_equal(found.numpy(), np.searchsorted(row, wanted, side))


def test_runs_of_many_elements() -> None:
    x = np.repeat(rng(7).integers(0, 3, 900), 3).astype("float32")
    x[[4, 5, 6]] = np.nan  # none equals another
    starts = np.append(True, x[1:] != x[:-1])
    np.testing.assert_array_equal(taeda.unique_consecutive(taeda.tensor(x)).numpy(), x[starts])
    values, counts = taeda.unique_consecutive(taeda.tensor(x), return_counts=True)
    np.testing.assert_array_equal(values.numpy(), x[starts])
    np.testing.assert_array_equal(counts.numpy(), np.diff(np.append(np.nonzero(starts)[0], x.size)))


def test_many_classes_with_many_labels() -> None:
    # As pairs these would be 7 GB.
    drawn = rng(8)
    scores, labels = drawn.normal(size=(200, 3000)), drawn.integers(-1, 3000, (200, 3000))
    labels[0] = drawn.permutation(3000)  # no other class is left
    labels[1] = -1
    exact = []
    for s, row in zip(scores, labels, strict=True):
        chosen = row[: np.argmax(row < 0)] if (row < 0).any() else row
        others = np.delete(s, chosen)
        gaps = np.maximum(0, 1 - s[chosen][:, None] + others)
        exact.append(gaps.sum() / 3000)
    found = ops.multilabel_margin_loss(taeda.tensor(scores), taeda.tensor(labels), 0)
    np.testing.assert_allclose(found.numpy(), exact, rtol=1e-12)


def test_pooling_in_one_dimension() -> None:
    x = rng(15).standard_normal((2, 3, 8))
    windows = x.reshape(2, 3, 4, 2)
    values, indices = ops.max_pool1d_with_indices(taeda.from_numpy(x), 2, 2)
    same(values, windows.max(-1))
    same(indices, windows.argmax(-1) + 2 * np.arange(4))
    values, indices = ops.adaptive_max_pool1d(taeda.from_numpy(x), 4)
    same(values, windows.max(-1))
    same(indices, windows.argmax(-1) + 2 * np.arange(4))


def test_recurrent_cell() -> None:
    shapes = ((2, 3), (2, 4), (4, 3), (4, 4), (4,), (4,))
    x, h, w_x, w_h, b_x, b_h = (rng(20 + i).standard_normal(shape) for i, shape in enumerate(shapes))
    result = ops.rnn_relu_cell(*(taeda.from_numpy(part) for part in (x, h, w_x, w_h, b_x, b_h)))
    same(result, np.maximum(x @ w_x.T + b_x + h @ w_h.T + b_h, 0))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: taeda.tile(taeda.ones(2), (-1,)), "tile: argument 'dims' "),
        (lambda: taeda.zeros(2**50), "zeros: a tensor of shape "),
        (lambda: taeda.ones(1).expand(2**50).unbind(), "unbind: not enough memory"),
        (lambda: taeda.ones(1).expand(2**50).split(1), "split: not enough memory"),
        (lambda: taeda.combinations(taeda.arange(1000), 5), "combinations: "),
    ],
)
def test_errors_from_inside_are_told_in_terms_of_what_was_called(call, text):
    with pytest.raises((RuntimeError, MemoryError), match=f"^{text}"):
        call()
