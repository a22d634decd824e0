"""Sparse tensors against the dense tensors and SciPy's matrices that they stand for, values and gradients."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse

import taeda as t

SEED = 13
SHAPE = (5, 7)


def numbers():
    random = np.random.default_rng(SEED)
    return random.integers(0, [[5], [7]], (2, 12)), random.normal(size=12)


def pair(requires_grad=False):
    """A sparse tensor of coordinates, some of them named twice, with its values; and the dense one."""
    places, elements = numbers()
    values = t.tensor(elements, requires_grad=requires_grad)
    dense = t.tensor(scipy.sparse.coo_array((elements, places), SHAPE).toarray())
    return t.sparse_coo_tensor(t.tensor(places), values, SHAPE), values, dense


def weights(shape):
    return t.tensor(np.random.default_rng(SEED + 1).normal(size=tuple(shape)))


RIGHT, LEFT, LIKE = weights((7, 3)), weights((4, 5)), weights(SHAPE)


def dense(x):
    return x.to_dense() if x.layout != t.strided else x


PROGRAMS = {
    "to_dense": lambda x: x,
    "coalesce": lambda x: x.coalesce() if x.layout != t.strided else x,
    "mm": lambda x: t.mm(x, RIGHT),
    "sparse.mm": lambda x: t.sparse.mm(x, RIGHT) if x.layout != t.strided else x @ RIGHT,
    "matmul": lambda x: x @ RIGHT,
    "from the left": lambda x: LEFT @ x,
    "mv": lambda x: x @ RIGHT[:, 0],
    "addmm": lambda x: t.addmm(t.ones(5, 3, dtype=t.float64), x, RIGHT, beta=2, alpha=3),
    "sparse @ sparse": lambda x: x @ x.t(),
    "add": lambda x: x + x,
    "add alpha": lambda x: t.add(x, x, alpha=3),
    "add dense": lambda x: LIKE + x,
    "sub": lambda x: x - x * 2,
    "mul": lambda x: x * 2.5,
    "mul sparse": lambda x: x * x,
    "mul dense": lambda x: x * LIKE,
    "div": lambda x: x / 3,
    "pow": lambda x: x**2,
    "neg": lambda x: -x,
    "sin": t.sin,
    "sqrt": lambda x: x.abs().sqrt() if not x.requires_grad else x.sin(),
    "t": lambda x: x.t(),
    "transpose": lambda x: x.transpose(-1, 0),
    "sum": lambda x: x.sum(),
    "sum of a dimension": lambda x: t.sparse.sum(x, 1) if x.layout != t.strided else x.sum(1),
    "select": lambda x: x[2],
    "index_select": lambda x: x.index_select(0, t.tensor([1, 1, 4])),
    "cat": lambda x: t.cat([x, x], 1),
    "csr": lambda x: x.to_sparse_csr() @ RIGHT if x.layout != t.strided else x @ RIGHT,
    "csc": lambda x: x.to_sparse_csc() @ RIGHT if x.layout != t.strided else x @ RIGHT,
    "csr and back": lambda x: x.to_sparse_csr().to_sparse_coo() if x.layout != t.strided else x,
    "sum of csr": lambda x: x.to_sparse_csr() + x.to_sparse_csr() if x.layout != t.strided else x + x,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_those_of_dense_tensors(name):
    sparse, _, whole = pair()
    found, expected = dense(PROGRAMS[name](sparse)), PROGRAMS[name](whole)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_those_of_dense_tensors(name):
    sparse, values, whole = pair(requires_grad=True)
    whole.requires_grad_()
    found, expected = dense(PROGRAMS[name](sparse)), PROGRAMS[name](whole)
    weight = weights(expected.shape)
    (found * weight).sum().backward()
    (expected * weight).sum().backward()
    places, _ = numbers()
    np.testing.assert_allclose(values.grad.numpy(), whole.grad.numpy()[tuple(places)], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("logarithm", [False, True])
@pytest.mark.parametrize("dim", [0, 1])
def test_softmax_counts_what_is_there(logarithm, dim):
    sparse, _, whole = pair()
    change = t.sparse.log_softmax if logarithm else t.sparse.softmax
    there = whole != 0
    exact = t.softmax(t.where(there, whole, -t.inf), dim)
    found = change(sparse, dim).coalesce().values()
    expected = exact.log()[there] if logarithm else exact[there]
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-12)


@pytest.mark.parametrize("dtype", [t.float32, t.float64, t.int16, t.bool])
def test_coordinates_of_other_dtypes_are_cut_to_integers(dtype):
    places = t.tensor([[0.0, 1.0, 1.75], [1.0, 0.0, 1.25]]).to(dtype)
    sparse = t.sparse_coo_tensor(places, [1.0, 2.0, 3.0], (2, 2))
    assert sparse._indices().dtype == t.int64
    assert sparse.to_dense().tolist() == [[0, 1], [2, 3]]


def test_compressed_parts_are_those_of_scipy():
    places, elements = numbers()
    sparse, _, _ = pair()
    for way, reference in (("csr", scipy.sparse.csr_array), ("csc", scipy.sparse.csc_array)):
        expected = reference((elements, places), SHAPE)
        expected.sum_duplicates()
        found = getattr(sparse, f"to_sparse_{way}")()
        outer, inner = ("crow", "col") if way == "csr" else ("ccol", "row")
        assert getattr(found, f"{outer}_indices")().tolist() == expected.indptr.tolist()
        assert getattr(found, f"{inner}_indices")().tolist() == expected.indices.tolist()
        np.testing.assert_allclose(found.values().numpy(), expected.data)
        again = t.sparse_compressed_tensor(
            expected.indptr, expected.indices, expected.data, SHAPE, layout=found.layout
        )
        np.testing.assert_allclose(again.to_dense().numpy(), expected.toarray())


def test_facts():
    sparse, _, whole = pair()
    assert (
        sparse.is_sparse
        and not sparse.is_sparse_csr
        and not whole.is_sparse
        and sparse.layout == t.sparse_coo
    )
    assert (sparse.shape, sparse.dtype, sparse.dim(), sparse.size(1)) == (SHAPE, t.float64, 2, 7)
    assert (sparse._nnz(), sparse.sparse_dim(), sparse.dense_dim()) == (12, 2, 0)
    assert not sparse.is_coalesced() and sparse.coalesce().is_coalesced()
    assert isinstance(sparse, t.Tensor) and sparse.to(t.float32).dtype == sparse.float().dtype == t.float32
    back = whole.to_sparse()
    assert back.is_coalesced() and back.to_dense().equal(whole)
    np.testing.assert_array_equal(back.indices().numpy(), np.stack(np.nonzero(whole.numpy())))
    assert "layout=taeda.sparse_coo" in repr(sparse) and "nnz=12" in repr(sparse)
    for other in (pickle.loads(pickle.dumps(sparse)), copy.deepcopy(sparse), sparse.clone(), sparse.detach()):
        assert other.to_dense().equal(sparse.to_dense())


def test_dense_dimensions():
    values = t.arange(6.0).reshape(3, 2)
    sparse = t.sparse_coo_tensor([[0, 2, 0]], values)
    assert sparse.to_dense().tolist() == [[4.0, 6.0], [0.0, 0.0], [2.0, 3.0]]
    assert t.sparse.sum(sparse, 0).tolist() == [6.0, 9.0] and t.sparse.sum(sparse, 1).to_dense().tolist() == [
        10.0,
        0.0,
        5.0,
    ]
    assert sparse.to_dense().to_sparse(1).indices().tolist() == [[0, 2]]


def test_batches_of_products():
    sparse = t.sparse_coo_tensor([[0, 1, 1], [0, 1, 0], [1, 2, 0]], [1.0, 2.0, 3.0], (2, 2, 3))
    right = weights((2, 3, 4)).float()
    np.testing.assert_allclose(t.bmm(sparse, right).numpy(), (sparse.to_dense() @ right).numpy(), rtol=1e-6)


@pytest.mark.parametrize("layout", [t.sparse_coo, t.sparse_csr])
@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin", "max", "min"])
def test_products_reduce_what_meets_in_an_element(reduce, layout):
    sparse, values, matrix = pair(requires_grad=True)
    right = RIGHT.detach().requires_grad_()
    places = matrix != 0
    products = np.ma.array(
        (matrix.unsqueeze(2) * RIGHT).numpy(), mask=~places.unsqueeze(2).expand(5, 7, 3).numpy()
    )
    named = {"sum": products.sum, "mean": products.mean, "max": products.max, "min": products.min}[
        reduce.lstrip("a")
    ]
    found = t.sparse.mm(sparse.coalesce().to_sparse(layout=layout), right, reduce)
    np.testing.assert_allclose(found.detach().numpy(), named(axis=1).filled(0), rtol=1e-12)
    found.sum().backward()
    shares = places.sum(1, keepdim=True).clamp(1) if reduce == "mean" else 1
    if reduce in ("sum", "mean"):
        np.testing.assert_allclose(
            right.grad.numpy(), (matrix / shares).T.sum(1, keepdim=True).expand(7, 3).numpy()
        )
    else:  # one product of each element gives its number on
        assert (right.grad != 0).sum() <= found.numel()
    assert values.grad is not None


def test_products_name_the_reductions_that_they_have():
    sparse = pair()[0]
    with pytest.raises(ValueError, match="expected 'sum', 'mean', 'amax' or 'amin'"):
        t.sparse.mm(sparse, RIGHT, "prod")
    with pytest.raises(NotImplementedError, match="unless only 'mat1' is sparse"):
        t.sparse.mm(sparse, sparse.t(), "mean")


def test_data_of_a_sparse_tensor_shares_its_values():
    sparse = pair(requires_grad=True)[0]
    assert sparse.requires_grad and not sparse.data.requires_grad
    assert sparse.data._values().data_ptr() == sparse._values().data_ptr()


def test_a_sparse_leaf_takes_a_sparse_gradient():
    leaf = t.sparse_coo_tensor([[0, 1], [1, 0]], [2.0, 3.0], (2, 2), requires_grad=True)
    (leaf @ t.tensor([[1.0], [10.0]])).sum().backward()
    assert leaf.grad.layout == t.sparse_coo and leaf.grad.to_dense().tolist() == [[0.0, 10.0], [1.0, 0.0]]


def _rows_and_columns(x):
    return t.sparse_coo_tensor([[0, 0, 1], [1, 1, 0]], x, (2, 2))  # one place is named twice


@pytest.mark.parametrize("way", [lambda g: g, lambda g: g.to_sparse()])
def test_the_engine_sends_gradients_back_through_sparse_results(way):
    weight = t.tensor([[1.0, 10.0], [100.0, 1000.0]])
    x = t.ones(3, requires_grad=True)
    assert t.autograd.grad(_rows_and_columns(x), x, way(weight))[0].tolist() == [10.0, 10.0, 100.0]
    t.autograd.backward([_rows_and_columns(x), x.sum()], [way(weight), None])
    assert x.grad.tolist() == [11.0, 11.0, 101.0]
    _rows_and_columns(x).backward(way(weight))
    assert x.grad.tolist() == [21.0, 21.0, 201.0]
    with pytest.raises(RuntimeError, match=r"shape \(3,\), expected that of the result, \(2, 2\)"):
        t.autograd.grad(_rows_and_columns(x), x, t.ones(3))


@pytest.mark.parametrize("layout", ["to_sparse_csr", "to_sparse_csc"])
def test_the_engine_sends_gradients_back_through_lines(layout):
    x = t.tensor([[1.0, 0.0], [2.0, 3.0]], requires_grad=True)
    weight = t.tensor([[1.0, 10.0], [100.0, 1000.0]])
    (found,) = t.autograd.grad(getattr(x, layout)(), x, weight)
    assert found.tolist() == [[1.0, 0.0], [100.0, 1000.0]]


# What depends on all of a dense tensor by way of a sparse one, and the same of the dense one.
OF_SOURCES = {
    "@": lambda x, y: x @ y,
    "mm": lambda x, y: t.mm(x, y),
    "mv": lambda x, y: t.mv(x, y[:, 0]),
    "addmm": lambda x, y: t.addmm(t.ones(3, 2, dtype=t.float64), x, y, alpha=2),
    "transposed": lambda x, y: x.t() @ y[:3],
    "on the right": lambda x, y: y[:3].t() @ x,
    "linear": lambda x, y: t.nn.functional.linear(x, y.t()),
    "dense +": lambda x, y: t.ones(3, 4, dtype=t.float64) + x,
}


@pytest.mark.parametrize("form", ["to_sparse", "to_sparse_csr", "to_sparse_csc"])
@pytest.mark.parametrize("name", OF_SOURCES)
def test_what_a_sparse_tensor_was_made_of_has_gradients_at_all_places(name, form):
    generator = np.random.default_rng(5)
    source = np.where(generator.random((3, 4)) < 0.5, generator.standard_normal((3, 4)), 0)
    grads = []
    for made in (lambda x: getattr(x, form)(), lambda x: x):
        x, y = (
            t.tensor(source, requires_grad=True),
            t.arange(8.0, dtype=t.float64).reshape(4, 2).requires_grad_(),
        )
        result = OF_SOURCES[name](made(x), y)
        loss = (result * t.arange(result.numel(), dtype=t.float64).reshape(result.shape)).sum()
        first = t.autograd.grad(loss, (x, y), create_graph=True, allow_unused=True)
        second = (
            t.autograd.grad(first[0].square().sum(), y, allow_unused=True) if first[0].requires_grad else ()
        )
        grads.append([g for g in (result, *first, *second) if g is not None])
    assert len(grads[0]) == len(grads[1])
    for mine, expected in zip(*grads, strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), expected.detach().numpy(), rtol=1e-12)


def test_products_of_the_module_sparse_have_gradients_of_places_alone():
    x = t.tensor([[1.0, 0.0], [0.0, 3.0]], requires_grad=True)
    y = t.tensor([[1.0, 2.0], [3.0, 4.0]])
    t.sparse.mm(x.to_sparse(), y).sum().backward()
    t.sparse.addmm(t.zeros(2, 2), x.to_sparse(), y).sum().backward()
    assert x.grad.tolist() == [[6.0, 0.0], [0.0, 14.0]]
    made, x.grad = x.to_sparse(), None
    with t.no_grad():
        x.mul_(2)  # no longer what the sparse tensor was made of
    (made @ y).sum().backward()
    assert x.grad.tolist() == [[3.0, 0.0], [0.0, 7.0]]


def test_the_engine_gives_gradients_of_sparse_inputs():
    leaf = t.sparse_coo_tensor([[0, 1], [1, 0]], [2.0, 3.0], (2, 2), requires_grad=True)
    other = t.ones(2, requires_grad=True)
    made = (leaf @ t.tensor([[1.0], [10.0]])).sum() + 3 * other.sum()
    of_leaf, of_other = t.autograd.grad(made, [leaf, other])
    assert of_leaf.layout == t.sparse_coo and of_leaf.to_dense().tolist() == [[0.0, 10.0], [1.0, 0.0]]
    assert of_other.tolist() == [3.0, 3.0] and leaf.grad is None
    assert t.autograd.grad(other.sum(), leaf, allow_unused=True) == (None,)


def test_the_engine_gives_gradients_of_nested_and_masked_tensors():
    parts = [t.ones(2, requires_grad=True), t.ones(3, requires_grad=True)]
    nested = t.nested.as_nested_tensor(parts, layout=t.jagged)
    made = nested * 2
    of_first, of_second = t.autograd.grad(made, parts, made * 3, retain_graph=True)
    assert of_first.tolist() == [12.0, 12.0] and of_second.tolist() == [12.0, 12.0, 12.0]
    (of_nested,) = t.autograd.grad(made, nested, made)
    assert [part.tolist() for part in of_nested.unbind()] == [[4.0, 4.0], [4.0, 4.0, 4.0]]
    with pytest.raises(RuntimeError, match="must be nested"):
        t.autograd.grad(nested * 2, parts, t.ones(2))
    masked = t.masked.masked_tensor(t.ones(3), t.tensor([True, False, True]), requires_grad=True)
    (found,) = t.autograd.grad((masked * 2).sum(), masked)
    assert found.to_tensor(0.0).tolist() == [2.0, 0.0, 2.0]


def test_samples_of_a_product():
    mask = (weights(SHAPE) > 0).to(t.float64).to_sparse_csr()
    a, b = weights((5, 3)), weights((3, 7))
    found = t.sparse.sampled_addmm(mask, a, b, beta=0.5, alpha=2.0).to_dense()
    expected = (0.5 + 2 * (a @ b)) * mask.to_dense()
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-12)


def test_diagonals():
    rows = np.arange(9.0).reshape(3, 3)
    found = t.sparse.spdiags(t.tensor(rows), t.tensor([0, 1, -2]), (3, 4)).to_dense()
    np.testing.assert_array_equal(found.numpy(), scipy.sparse.spdiags(rows, [0, 1, -2], 3, 4).toarray())


def test_masks():
    sparse, _, _ = pair()
    there = sparse.coalesce().to_dense() != 0
    np.testing.assert_array_equal(
        LIKE.sparse_mask(sparse.coalesce()).to_dense().numpy(), (LIKE * there).numpy()
    )


def test_training_a_graph_network():
    """Two graph convolutions (Kipf, Welling 2017) learn the two halves of a ring."""
    t.manual_seed(SEED)
    n = 12
    ring = t.stack([t.arange(n).repeat(2), t.cat([(t.arange(n) + 1) % n, (t.arange(n) - 1) % n])])
    graph = t.sparse_coo_tensor(ring, t.full((2 * n,), 0.5), (n, n)).coalesce()
    first, second = t.nn.Linear(n, 8), t.nn.Linear(8, 2)
    labels = (t.arange(n) >= n // 2).long()
    optimizer = t.optim.Adam([*first.parameters(), *second.parameters()], lr=0.05)
    for _ in range(60):
        optimizer.zero_grad()
        loss = t.nn.functional.cross_entropy(graph @ second(t.relu(graph @ first(t.eye(n)))), labels)
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.2


@pytest.mark.parametrize("layout", [t.sparse_coo, t.sparse_csr])
@pytest.mark.parametrize("shape", [(40, 12), (12, 40)])
@pytest.mark.parametrize("dtype", [t.float64, t.complex128])
def test_low_rank_decompositions_multiply_alone(layout, shape, dtype):
    t.manual_seed(5)
    rng = np.random.default_rng(5)
    rows, columns = (rng.standard_normal((n, 3)) * (rng.random((n, 3)) < 0.5) for n in shape)
    dense = rows @ columns.T * (1 if dtype == t.float64 else 1 - 2j)
    given = t.tensor(dense).to_sparse(layout=layout)
    for found, wanted in (
        (t.svd_lowrank(given, 5), dense),
        (t.svd_lowrank(given, 5, M=t.ones(1, shape[1], dtype=dtype)), dense - 1),
        (t.svd_lowrank(given, 5, M=t.ones(shape, dtype=dtype)), dense - 1),
        (t.pca_lowrank(given, 4), dense - dense.mean(0)),
        (t.pca_lowrank(given, 4, center=False), dense),
    ):
        u, s, v = found
        assert u.shape == (shape[0], len(s)) and v.shape == (shape[1], len(s))
        np.testing.assert_allclose((u * s @ v.mH).numpy(), wanted, atol=1e-9)
        np.testing.assert_allclose(s.numpy(), np.linalg.svd(wanted)[1][: len(s)], atol=1e-9)
    with pytest.raises(ValueError, match="argument 'q' is 13"):
        t.pca_lowrank(given, 13)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: t.exp(pair()[0]), NotImplementedError, "exp: not defined for sparse tensors; use to_dense"),
        (lambda: pair()[0] + 1, TypeError, "would fill it"),
        (lambda: pair()[0].indices(), RuntimeError, "call coalesce"),
        (lambda: pair()[0] @ t.ones(3, 2, dtype=t.float64), RuntimeError, "cannot be multiplied"),
        (lambda: pair()[0] @ t.ones(7, 2), RuntimeError, "expected one"),
        (
            lambda: t.sparse_coo_tensor([[0, 9]], [1.0, 2.0], (3,)),
            RuntimeError,
            "found index 9 in dimension 0 of size 3",
        ),
        (lambda: t.sparse_coo_tensor([[0, -1]], [1.0, 2.0], (3,)), RuntimeError, "negative index, -1"),
        (lambda: t.sparse_coo_tensor([[0]], [1.0, 2.0]), RuntimeError, r"indices of shape \(1, 1\)"),
        (lambda: t.sparse_coo_tensor([[0.5j]], [1.0]), TypeError, "expected a real one"),
        (lambda: t.sparse_csr_tensor([0.0, 1.0], [0], [1.0]), TypeError, "expected an integer one"),
        (lambda: t.sparse_coo_tensor([[0]], [1.0], (3, 2)), RuntimeError, "argument 'size'"),
        (lambda: t.sparse_csr_tensor([0, 2, 1], [0, 1], [1.0, 2.0]), ValueError, "must rise from 0"),
        (
            lambda: t.sparse_csr_tensor([0, 1, 2], [0, 5], [1.0, 2.0], (2, 3)),
            IndexError,
            "col_indices up to 5",
        ),
        (lambda: pair()[0].to_sparse_csr().indices(), RuntimeError, "indices"),
        (lambda: t.ones(2).to_sparse_csr(), RuntimeError, "expected a matrix"),
    ],
)
def test_wrong_calls(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_sparse_tensors_change_in_place():
    """Places and elements are those of the result; a dense result is refused."""
    x = t.eye(3).to_sparse()
    same = x
    x.mul_(4).div_(2)
    x += t.eye(3).to_sparse()
    x -= 2 * t.eye(3).to_sparse()
    assert same is x
    assert x.to_dense().tolist() == t.eye(3).tolist()
    with pytest.raises(RuntimeError, match="in place"):
        x.add_(t.ones(3, 3))
    assert x.to_dense().tolist() == t.eye(3).tolist()


@t.sparse.check_sparse_tensor_invariants()
def test_checks_of_sparse_tensors_decorate_functions():
    """What is made in them is checked."""
    with pytest.raises(RuntimeError):
        t.sparse_coo_tensor(t.tensor([[5]]), t.ones(1), (3,))


BLOCKS = t.tensor([[0.0, 0, 1, 2, 0, 0], [0, 0, 3, 0, 0, 0], [0, 0, 0, 0, 5, 6], [0, 0, 0, 0, 0, 7]])


@pytest.mark.parametrize("way", ["sparse_bsr", "sparse_bsc"])
def test_matrices_of_blocks(way):
    made = getattr(BLOCKS, f"to_{way}")((2, 2))
    assert (
        made.layout == getattr(t, way) and made.shape == (4, 6) and made._nnz() == 2 and made.dense_dim() == 0
    )
    expected = scipy.sparse.bsr_array(
        BLOCKS.numpy() if way == "sparse_bsr" else BLOCKS.numpy().T, blocksize=(2, 2)
    )
    starts, inner = (
        (made.crow_indices(), made.col_indices())
        if way == "sparse_bsr"
        else (made.ccol_indices(), made.row_indices())
    )
    assert starts.tolist() == expected.indptr.tolist() and inner.tolist() == expected.indices.tolist()
    assert t.equal(made.to_dense(), BLOCKS) and t.equal((made * 2).to_dense(), BLOCKS * 2)
    assert t.allclose(made @ RIGHT.float()[:6], BLOCKS @ RIGHT.float()[:6])
    assert t.equal(made.to_sparse().to_dense(), BLOCKS) and made.to_sparse().layout == t.sparse_coo
    again = made.to_sparse_csr().to_sparse(layout=getattr(t, way), blocksize=(1, 3))
    assert again.values().shape[1:] == (1, 3) and t.equal(again.to_dense(), BLOCKS)
    maker = getattr(t, f"{way}_tensor")
    parts = maker(starts, inner, made.values(), (4, 6))
    assert t.equal(parts.to_dense(), BLOCKS) and t.equal(pickle.loads(pickle.dumps(parts)).to_dense(), BLOCKS)
    assert repr(parts).count("indices=") == 2


def test_blocks_have_gradients():
    values = t.ones(2, 1, 2, dtype=t.float64, requires_grad=True)
    made = t.sparse_bsr_tensor([0, 1, 2], [1, 0], values, (2, 4))
    (made @ t.arange(4.0, dtype=t.float64).unsqueeze(1)).sum().backward()
    assert values.grad.tolist() == [[[2.0, 3.0]], [[0.0, 1.0]]]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: BLOCKS.to_sparse_bsr((3, 2)), "divisible"),
        (lambda: BLOCKS.to_sparse_bsr((0, 2)), "positive"),
        (lambda: BLOCKS.to_sparse(layout=t.sparse_bsr), "missing"),
        (lambda: BLOCKS[0].to_sparse_bsr((1, 1)), "matrix"),
        (lambda: t.sparse_bsr_tensor([0, 1], [0], [1.0]), "expected"),
        (lambda: t.sparse_bsr_tensor([0, 2], [0], [[[1.0]]]), "rise"),
        (lambda: t.sparse_bsr_tensor([0, 1], [3], [[[1.0]]], (1, 2)), "expected 0 to 1"),
        (lambda: t.sparse_bsr_tensor([0, 1], [0], [[[1.0, 2.0]]], (1, 3)), "multiples"),
    ],
)
def test_wrong_blocks_are_refused(make, text):
    with pytest.raises((ValueError, RuntimeError, IndexError), match=text):
        make()


@pytest.mark.parametrize(
    ("way", "turned"),
    [("csr", "sparse_csc"), ("csc", "sparse_csr"), ("bsr", "sparse_bsc"), ("bsc", "sparse_bsr")],
)
def test_transposed_layouts_are_those_of_the_other_direction(way, turned):
    whole = weights((4, 6)) * (weights((4, 6)) > 0)
    x = getattr(whole, f"to_sparse_{way}")(*[(2, 3)] * way.startswith("b"))
    for y in (x.t(), x.transpose(0, 1), x.permute(1, 0), x.T):
        assert str(y.layout).endswith(turned) and (y.to_dense() == whole.t()).all()
        assert (y.t().to_dense() == whole).all()


@pytest.mark.parametrize("way", ["csr", "csc"])
@pytest.mark.parametrize("dim", [0, 1, (0, 1)])
def test_sums_that_keep_dimensions_keep_the_layout(way, dim):
    whole = weights((4, 6)) * (weights((4, 6)) > 0)
    x = getattr(whole, f"to_sparse_{way}")()
    for name in ("sum", "mean"):
        kept = getattr(x, name)(dim, keepdim=True)
        expected = getattr(whole, name)(dim, keepdim=True)
        assert kept.layout == x.layout and t.allclose(kept.to_dense(), expected)
        assert t.allclose(dense(getattr(x, name)(dim)), getattr(whole, name)(dim))


def test_masks_zeros_and_new_dimensions():
    x, _, whole = pair()
    mask = whole.to_sparse_csr()
    found = LIKE.sparse_mask(mask)
    assert found.layout == t.sparse_csr and t.equal(found.to_dense(), LIKE * (whole != 0))
    assert t.equal(t.zeros_like(mask).to_dense(), t.zeros_like(whole)) and mask.values().numel()
    for dim in (0, 1, 2, -1):
        assert t.equal(x.unsqueeze(dim).to_dense(), whole.unsqueeze(dim))
    with pytest.raises(IndexError, match="Dimension out of range"):
        x.unsqueeze(3)


@pytest.mark.parametrize("sparse_first", [True, False])
def test_dense_and_sparse_gradients_of_one_table_are_added(sparse_first):
    table = t.ones(4, 2, requires_grad=True)
    looked_up = t.nn.functional.embedding(t.tensor([1, 2, 1]), table, sparse=True).sum()
    parts = [looked_up, (table * 3).sum()]
    sum(parts if sparse_first else parts[::-1]).backward()
    expected = [[3.0, 3.0], [5.0, 5.0], [4.0, 4.0], [3.0, 3.0]]
    assert table.grad.layout == t.strided and table.grad.tolist() == expected
    table.grad = None
    looked_up = t.nn.functional.embedding(t.tensor([1, 2, 1]), table, sparse=True).sum()
    for part in (looked_up, (table * 3).sum())[:: 1 if sparse_first else -1]:
        part.backward()
    assert table.grad.tolist() == expected


@pytest.mark.parametrize(
    "options",
    [{}, {"momentum": 0.9}, {"momentum": 0.9, "dampening": 0.5}, {"momentum": 0.9, "nesterov": True},
     {"momentum": 0.9, "maximize": True}],
    ids=str,
)  # fmt: skip
def test_steps_with_sparse_gradients_are_those_with_dense_ones(options):
    def trained(sparse):
        table, other = t.ones(4, 2, requires_grad=True), t.ones(3, requires_grad=True)
        optimizer = t.optim.SGD([table, other], lr=0.1, **options)
        for places in ([1, 2, 1], [0, 2, 2], [3, 3, 1]):
            optimizer.zero_grad()
            rows = t.nn.functional.embedding(t.tensor(places), table, sparse=sparse)
            ((rows**2).sum() + (other**3).sum()).backward()
            optimizer.step()
        return t.cat([table.detach().flatten(), other.detach()])

    assert t.allclose(trained(True), trained(False), atol=1e-6)


def test_weight_decay_does_not_go_with_sparse_gradients():
    table = t.ones(4, 2, requires_grad=True)
    t.nn.functional.embedding(t.tensor([1]), table, sparse=True).sum().backward()
    with pytest.raises(RuntimeError, match="weight_decay"):
        t.optim.SGD([table], lr=0.1, weight_decay=0.1).step()


@pytest.mark.parametrize("way", ["csr", "csc"])
def test_several_matrices_of_compressed_lines(way):
    """All have as many elements; what is computed is what each gives alone."""
    random = np.random.default_rng(SEED)
    whole = t.zeros(2, 3, 4, 5, dtype=t.float64)
    for one in whole.reshape(6, 20):
        one[t.tensor(random.choice(20, 7, replace=False))] = t.tensor(random.normal(size=7))
    x = getattr(whole, f"to_sparse_{way}")()
    lines = whole.shape[2 if way == "csr" else 3]
    assert x._places[0].shape == (2, 3, lines + 1) and x.values().shape == (2, 3, 7)
    assert (x.sparse_dim(), x.dense_dim(), x._nnz()) == (2, 0, 7) and "nnz=7" in repr(x)
    assert t.equal(x.to_dense(), whole) and t.equal(x.to_sparse_coo().to_dense(), whole)
    alone = getattr(whole[1, 2], f"to_sparse_{way}")()
    for found, expected in zip(
        (*x[1][2]._places, x[1][2].values()), (*alone._places, alone.values()), strict=True
    ):
        assert t.equal(found, expected)
    other = x.transpose(2, 3)
    assert str(other.layout).endswith("csc" if way == "csr" else "csr")
    assert t.equal(other.to_dense(), whole.transpose(2, 3))
    assert t.equal((x * 2).to_dense(), whole * 2) and t.allclose(x.sum(), whole.sum())
    assert t.allclose((x[0] @ weights((3, 5, 2))), whole[0] @ weights((3, 5, 2)))
    make = getattr(t, f"sparse_{way}_tensor")
    again = make(*x._places, x.values(), whole.shape)
    assert t.equal(again.to_dense(), whole) and t.equal(t.zeros_like(again).to_dense(), whole * 0)
    whole[0, 0] = 1
    with pytest.raises(RuntimeError, match="same number of specified elements per batch"):
        getattr(whole, f"to_sparse_{way}")()
    with pytest.raises(ValueError, match="expected"):
        make(x._places[0][0], x._places[1], x.values())


@pytest.mark.parametrize("way", ["csr", "csc", "bsr", "bsc"])
def test_turned_rows_are_columns(way):
    """As in PyTorch: a matrix of compressed rows turns into one of compressed columns in the same memory."""
    full = np.array([[1.0, 0, 2, 0], [0, 3, 0, 4]])
    blocks = ((2, 1),) if way.startswith("bs") else ()
    x = getattr(t.tensor(full), f"to_sparse_{way}")(*blocks)
    turned = {"r": "c", "c": "r"}[way[-1]]
    for y in (x.t(), x.transpose(-1, -2), x.mT):
        assert y.layout == getattr(t, f"sparse_{way[:-1]}{turned}") and y.shape == (4, 2)
        assert y.to_dense().tolist() == full.T.tolist()
    assert x.t().t().layout == x.layout and x.t().t().to_dense().tolist() == full.tolist()
    product = x.t() @ t.ones(2, 1, dtype=t.float64)
    assert product.flatten().tolist() == full.sum(0).tolist()


def test_linear_layers_of_sparse_rows():
    sparse, values, full = pair(requires_grad=True)
    weight, bias = weights((3, 7)), weights((3,))
    for x in (sparse, sparse.coalesce().to_sparse_csr()):
        t.testing.assert_close(t.nn.functional.linear(x, weight, bias), full @ weight.t() + bias)
        t.testing.assert_close(t.nn.functional.linear(x, weight), full @ weight.t())
    t.nn.functional.linear(sparse, weight, bias).sum().backward()
    t.testing.assert_close(values.grad, weight.sum(0)[sparse._indices()[1]])


@pytest.mark.parametrize("shape", [(7,), (4, 7), (2, 3, 7)])
def test_linear_layers_with_sparse_weights(shape):
    sparse, values, full = pair(requires_grad=True)
    x, bias = weights(shape), weights(full.shape[:1])
    assert full.shape[1] == 7
    for weight in (sparse, sparse.coalesce().to_sparse_csr()):
        t.testing.assert_close(t.nn.functional.linear(x, weight, bias), t.nn.functional.linear(x, full, bias))
        t.testing.assert_close(t.nn.functional.linear(x, weight), t.nn.functional.linear(x, full))
    t.nn.functional.linear(x, sparse).sum().backward()
    t.testing.assert_close(values.grad, x.reshape(-1, 7).sum(0)[sparse._indices()[1]])


def test_rows_columns_and_slices():
    dense = t.tensor([[0.0, 0, 3, 0], [4, 0, 5, 1], [0, 0, 0, 2]])
    x = dense.to_sparse()
    for index in (
        (1, 2), (slice(None), 2), (slice(0, 2), slice(1, None)), slice(1, 3), (Ellipsis, 0), (0, Ellipsis),
        (slice(None, None, 2), slice(-2, None)), (slice(2, 1), 0),
    ):  # fmt: skip
        found = x[index]
        assert (found.to_dense() if found.is_sparse else found).equal(dense[index])
    with pytest.raises(NotImplementedError, match="expected ints and slices, found list"):
        x[[0, 1]]


def test_stacks_masks_and_empty_ones():
    dense = t.tensor([[0.0, 0, 3], [4, 0, 5]])
    x = dense.to_sparse()
    for dim in (0, 1, 2, -1):
        assert t.stack([x, x * 2], dim).to_dense().equal(t.stack([dense, dense * 2], dim))
    assert t.empty_like(x).to_dense().equal(t.zeros(2, 3))
    mask = t.tensor([[1.0, 0, 0], [1, 0, 1]]).to_sparse()
    assert x.sparse_mask(mask).to_dense().equal(t.tensor([[0.0, 0, 0], [4, 0, 5]]))
    with pytest.raises(RuntimeError, match="stack: found shapes"):
        t.stack([x, x.t()])


def test_layouts_say_their_whole_name():
    assert str(t.strided) == f"{t.strided}" == repr(t.strided) == "taeda.strided"
    assert t.strided == "strided" and str(t.channels_last) == "taeda.channels_last"
    assert "layout=taeda.sparse_csr" in repr(t.eye(2).to_sparse_csr())


def test_dimensions_that_are_not_there_are_refused():
    x = t.ones(2, 3).to_sparse()
    index = t.tensor([0])
    for call in (
        lambda: x.sum(5),
        lambda: t.sparse.sum(x, [0, -3]),
        lambda: x.select(2, 0),
        lambda: x.index_select(4, index),
        lambda: t.cat([x, x], 2),
        lambda: t.softmax(x, -3),
        lambda: x.permute(0, 2),
        lambda: x.unsqueeze(4),
    ):
        with pytest.raises(IndexError, match="Dimension out of range"):
            call()
    with pytest.raises(RuntimeError, match="each of 2 dimensions once"):
        x.permute(0, 0)


def test_sums_take_a_dtype_by_position():
    x = t.ones(2, 3).to_sparse()
    assert t.sparse.sum(x, 0, t.float64).dtype == t.float64
    assert t.sparse.sum(x, 0, t.float64).shape == (3,)
    assert t.softmax(x, 1, t.float64).dtype == t.float64


def test_text_shows_the_parts_each_with_its_indentation():
    at = t.tensor([[0, 1], [1, 0]])
    x = t.sparse_coo_tensor(at, t.tensor([1.0, 2.0], dtype=t.float64), (2, 2), requires_grad=True)
    places = "tensor(indices=tensor([[0, 1],\n                       [1, 0]]),\n"
    facts = "size=(2, 2), nnz=2, dtype=taeda.float64, layout=taeda.sparse_coo"
    assert repr(x) == f"{places}       values=tensor([1., 2.]),\n       {facts}, requires_grad=True)".replace(
        "layout=taeda.sparse_coo, ", "layout=taeda.sparse_coo,\n       "
    )
    assert "indices=tensor([], size=(2, 0))" in repr(t.sparse_coo_tensor(size=(2, 3)))
    rows = "tensor(crow_indices=tensor([0, 1, 2]),\n       col_indices=tensor([0, 1]),\n       "
    assert repr(t.eye(2).to_sparse_csr()) == (
        rows + "values=tensor([1., 1.]), size=(2, 2), nnz=2, layout=taeda.sparse_csr)"
    )


ZERO_AT_ZERO = {
    "abs": np.abs, "arcsin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan, "ceil": np.ceil,
    "conj_physical": np.conj, "deg2rad": np.deg2rad, "expm1": np.expm1, "floor": np.floor, "fix": np.trunc,
    "nan_to_num": np.nan_to_num, "neg": np.negative, "rad2deg": np.rad2deg, "round": np.round, "sgn": np.sign,
    "sin": np.sin, "sinh": np.sinh, "square": np.square, "tan": np.tan, "tanh": np.tanh, "trunc": np.trunc,
}  # fmt: skip


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc"])
@pytest.mark.parametrize("name", ZERO_AT_ZERO)
def test_functions_of_each_element_have_all_their_forms(name, layout):
    matrix = np.array([[0.0, 0.5, 0.0], [-0.25, 0.0, 0.75]])
    expected = ZERO_AT_ZERO[name](matrix)

    def made():
        return t.tensor(matrix).to_sparse(layout=getattr(t, layout))

    x, target = made(), made()
    assert getattr(t, name)(x, out=target) is target
    for result in (getattr(t, name)(made()), getattr(made(), name)(), target, getattr(x, f"{name}_")(), x):
        assert result.layout == getattr(t, layout)
        np.testing.assert_allclose(result.to_dense().numpy(), expected, rtol=1e-14, atol=0)


def test_questions_about_each_element_keep_the_places():
    x = t.tensor([[0.0, -np.inf], [2.0, np.inf]]).to_sparse()
    assert t.isposinf(x).to_dense().tolist() == [[False, False], [False, True]]
    assert t.isneginf(x).to_dense().tolist() == [[False, True], [False, False]]
    assert t.signbit(x).to_dense().tolist() == [[False, True], [False, False]]
    turned = t.tensor([[0, 1 + 2j]]).to_sparse()
    assert turned.conj().to_dense().tolist() == [[0, 1 - 2j]] and t.real(turned).to_dense().tolist() == [
        [0, 1]
    ]
    assert turned.angle().values().item() == pytest.approx(np.angle(1 + 2j))
    whole = t.tensor([[0, 4]]).to_sparse()
    with pytest.raises(RuntimeError, match=r"sin_: result type .*float32"):
        whole.sin_()
    assert (whole // 3).to_dense().tolist() == [[0, 1]]


def test_targets_of_products_and_sums():
    a, _, dense = pair()
    b = weights((7, 2))
    target = t.empty(0, dtype=t.float64)
    assert t.mm(a, b, out=target) is target
    np.testing.assert_allclose(target.numpy(), dense.numpy() @ b.numpy(), rtol=1e-12)
    vector, start = weights((7,)), weights((5,))
    moved = t.addmv(start, a.to_sparse_csr(), vector, beta=2, alpha=3)
    np.testing.assert_allclose(
        moved.numpy(), 2 * start.numpy() + 3 * dense.numpy() @ vector.numpy(), rtol=1e-12
    )
    for wrong in (t.empty(5, 7, dtype=t.float64), dense.to_sparse_csr()):
        with pytest.raises(RuntimeError, match="mul: argument 'out' has layout"):
            t.mul(a, 2, out=wrong)
    with pytest.raises(RuntimeError, match=r"mul: argument 'out' has shape \(1, 1\)"):
        t.mul(a, 2, out=t.zeros(1, 1, dtype=t.float64).to_sparse())


def test_copies_and_what_only_one_layout_has():
    source = t.tensor([[0.0, 2.0], [3.0, 0.0]])
    for layout in ("sparse_coo", "sparse_csr"):
        target = t.zeros(2, 2, dtype=t.float64).to_sparse(layout=getattr(t, layout))
        copied = source.to_sparse(layout=getattr(t, layout))
        assert target.copy_(copied) is target and target.dtype == t.float64
        copied.mul_(0)
        assert t.equal(target.to_dense(), source.double())
    with pytest.raises(RuntimeError, match="copy_: found layouts strided and sparse_coo"):
        source.to_sparse().copy_(source)
    x = source.to_sparse()
    assert not x.is_contiguous() and x.is_same_size(source) and x.t_().to_dense().tolist() == [[0, 3], [2, 0]]
    assert x.narrow_copy(0, 1, 1).to_dense().tolist() == [[2, 0]]
    assert t.select_copy(x, 0, 0).to_dense().tolist() == [0, 3]
    assert x._coalesced_(False) is x and not x.is_coalesced()
    dense = t.zeros_like(x, layout=t.strided)
    assert dense.layout == t.strided and dense.tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("way", ["sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"])
def test_lines_of_compressed_matrices_are_in_order(way):
    matrix = t.arange(1.0, 17).reshape(4, 4)
    blocks = (2, 2) if way.startswith("sparse_bs") else None
    x = matrix.to_sparse(layout=getattr(t, way), blocksize=blocks)
    for dim in (0, 1):
        assert x.select(dim, 1).values().tolist() == matrix.select(dim, 1).tolist()
        assert t.select_copy(x, dim, 2).indices().tolist() == [[0, 1, 2, 3]]


def test_names_of_types():
    x = t.eye(2).to_sparse()
    assert x.type() == "torch.sparse.FloatTensor" and x.char().type() == "torch.sparse.CharTensor"
    made = x.type(t.float64)
    assert made.is_sparse and made.dtype == t.float64 and made.to_dense().tolist() == t.eye(2).tolist()


@pytest.mark.parametrize("dtype", [t.int16, t.uint8, t.bool])
def test_single_elements_keep_the_dtype(dtype):
    x = t.sparse_coo_tensor(t.tensor([[0, 0, 1], [0, 0, 1]]), t.ones(3, dtype=dtype), (3, 3))
    assert x[0, 0].dtype == x[0, 2].dtype == dtype
    assert x[0, 0].item() == (1 if dtype == t.bool else 2)


@pytest.mark.parametrize("way", ["sparse_coo", "sparse_csr", "sparse_csc"])
def test_factories_of_nothing_in_a_sparse_layout(way):
    layout, like = getattr(t, way), t.ones(2, 3, dtype=t.float64)
    made = [
        t.zeros(2, 3, dtype=t.float64, layout=layout), t.empty((2, 3), dtype=t.float64, layout=layout),
        t.zeros_like(like, layout=layout), t.empty_like(like, layout=layout), like.new_zeros((2, 3), layout=layout),
        like.new_empty(2, 3, layout=layout),
    ]  # fmt: skip
    for x in made:
        assert x.layout == layout and x.dtype is t.float64 and tuple(x.shape) == (2, 3) and x._nnz() == 0
        assert x.to_dense().tolist() == [[0, 0, 0], [0, 0, 0]]
    assert t.zeros(2, 3, layout=layout, requires_grad=True).requires_grad
    assert t.zeros(10**6, 10**6, layout=t.sparse_coo)._nnz() == 0  # and no room for that many elements
    assert t.zeros_like(like, layout=layout, dtype=t.int64, device="cpu").dtype is t.int64


def test_factories_refuse_sparse_layouts_that_they_cannot_give():
    with pytest.raises(NotImplementedError, match="size of blocks"):
        t.zeros(2, 2, layout=t.sparse_bsr)
    with pytest.raises(RuntimeError, match="expected a matrix"):
        t.zeros(2, layout=t.sparse_csr)
    for call in (lambda: t.ones(2, layout=t.sparse_coo), lambda: t.full((2,), 1.0, layout=t.sparse_coo)):
        with pytest.raises(TypeError, match="layout"):
            call()


def test_products_of_matrices_that_happen_to_be_dense():
    a, b = t.arange(6.0).reshape(2, 3), t.arange(12.0).reshape(3, 4)
    expected = [[20.0, 23.0, 26.0, 29.0], [56.0, 68.0, 80.0, 92.0]]
    assert t.sparse.mm(a, b).tolist() == expected
    assert t.sparse.addmm(t.ones(2, 4), a, b).tolist() == [[v + 1 for v in row] for row in expected]
    with pytest.raises(NotImplementedError, match="reduce"):
        t.sparse.mm(a, b, "mean")
    with pytest.raises(NotImplementedError, match="softmax"):
        t.sparse.softmax(a, 1)


def test_products_see_changes_of_places():
    matrix = t.eye(3).to_sparse().coalesce()
    rows = t.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert t.sparse.mm(matrix, rows).tolist() == rows.tolist()
    matrix.indices()[0, 2] = 1  # the last element goes up a row
    assert (matrix @ rows).tolist() == [[1.0, 2.0], [8.0, 10.0], [0.0, 0.0]]
    matrix.mul_(2)
    assert (matrix @ rows).tolist() == [[2.0, 4.0], [16.0, 20.0], [0.0, 0.0]]
    matrix.zero_()
    assert (matrix @ rows).tolist() == [[0.0, 0.0]] * 3


def test_facts_of_sparse_tensors():
    matrix = t.zeros(3, 2, dtype=t.float64).to_sparse()
    assert matrix.shape == matrix.size() == (3, 2) and isinstance(matrix.shape, t.Size)
    assert matrix.dim() == matrix.ndim == 2 and matrix.dtype is t.float64
    assert matrix.device == t.device("cpu") and t.Tensor.shape.__get__(matrix) == (3, 2)
    with pytest.raises(AttributeError):
        matrix.shape = (2, 3)
