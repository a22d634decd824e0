"""Sparse tensors against dense ones: masked reductions, growth, blocks, what is made after them, comparisons."""

import copy
import pickle

import numpy as np
import pytest

import taeda


@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin", "mean"])
@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
@pytest.mark.parametrize("dim", [0, 1, (0, 1)])
def test_masked_reductions_are_those_of_the_named_elements(name, layout, dim):
    dense = taeda.tensor([[0.0, 1.0, 4.0], [3.0, 0.0, 2.0], [0.0, 0.0, 0.0]])
    mask = taeda.tensor([[False, True, True], [True, False, False], [False, False, False]])
    x, m = dense.to_sparse(layout=getattr(taeda, layout)), mask.to_sparse(layout=getattr(taeda, layout))
    function = getattr(taeda.masked, name)
    if name == "mean" and layout == "sparse_coo":
        with pytest.raises(ValueError, match="has layout"):
            function(x, dim, mask=m)
        return
    result = function(x, dim, keepdim=True, mask=m)
    there = mask.any(dim=dim, keepdim=True)
    expected = function(dense, dim, keepdim=True, mask=mask)
    assert result.layout is x.layout
    assert taeda.equal(result.to_dense(), taeda.where(there, expected, 0.0))
    plain, by_sparse = function(dense, dim, mask=mask), function(dense, dim, mask=m)
    assert taeda.allclose(by_sparse, plain, equal_nan=True)
    if layout == "sparse_csr":
        with pytest.raises(RuntimeError, match="keepdim=True"):
            function(x, dim, mask=m)
    if name == "sum":
        assert taeda.equal(function(x, dim, keepdim=True).to_dense(), dense.sum(dim, keepdim=True))
    else:
        with pytest.raises(ValueError, match="'mask' is missing"):
            function(x, dim, keepdim=True)


def test_masked_functions_without_a_sparse_form_are_refused():
    x = taeda.eye(3).to_sparse()
    with pytest.raises(ValueError, match=r"masked\.softmax: argument 'input' has layout"):
        taeda.masked.softmax(x, 1, mask=x)
    assert taeda.masked.cumsum(taeda.ones(3, 3), 1, mask=x.to(taeda.bool))[2].tolist() == [0, 0, 1]


def test_sparse_tensors_grow_in_place():
    x = taeda.sparse_coo_tensor([[0, 1]], [[1.0, 2.0], [3.0, 4.0]], (2, 2))
    assert x.sparse_resize_((4, 3), 1, 1) is x
    expected = taeda.zeros(4, 3)
    expected[:2, :2] = taeda.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.shape == (4, 3) and taeda.equal(x.to_dense(), expected)
    for shape, dims, text in (
        ((2, 3), (1, 1), "shrink"),
        ((4, 3), (2, 0), "number of sparse"),
        ((4,), (1, 1), "must be"),
    ):
        with pytest.raises(RuntimeError, match=text):
            x.sparse_resize_(shape, *dims)
    assert x.shape == (4, 3) and taeda.equal(x.to_dense(), expected)
    x.sparse_resize_and_clear_((2, 5, 6), 2, 1)
    assert x.shape == (2, 5, 6) and x._nnz() == 0 and (x.sparse_dim(), x.dense_dim()) == (2, 1)
    assert x.sparse_resize_((2,), 1, 0).to_dense().tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="layout sparse_coo"):
        taeda.eye(2).to_sparse_csr().sparse_resize_((3, 3), 2, 0)


def test_compressed_tensors_keep_indices_of_32_bits():
    places = [taeda.tensor(p, dtype=taeda.int32) for p in ([0, 1, 3], [1, 0, 2])]
    x = taeda.sparse_csr_tensor(*places, taeda.tensor([1.0, 2.0, 3.0]), (2, 3))
    dense = taeda.tensor([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]])
    results = {
        "x": (x, dense), "sum": (x + x, dense + dense), "product": (x * 2, dense * 2), "sin": (x.sin(), dense.sin()),
        "copy": (copy.deepcopy(x), dense), "pickle": (pickle.loads(pickle.dumps(x)), dense),
        "double": (x.double(), dense.double()), "turned": (x.t(), dense.t()), "columns": (x.to_sparse_csc(), dense),
        "blocks": (x.to_sparse_bsr((1, 3)), dense), "matrix": (x @ x.t().to_sparse_csr(), dense @ dense.t()),
        "spread": (x * taeda.ones(3), dense),
    }  # fmt: skip
    for name, (made, expected) in results.items():
        parts = (
            (made.ccol_indices(), made.row_indices())
            if "csc" in str(made.layout)
            else (made.crow_indices(), made.col_indices())
        )
        assert {p.dtype for p in parts} == {taeda.int32}, name
        assert taeda.equal(made.to_dense(), expected), name
    assert taeda.equal(x @ taeda.ones(3, 2), dense @ taeda.ones(3, 2))
    assert x.to_sparse_coo().indices().dtype is taeda.int64
    assert (
        taeda.sparse_csr_tensor(places[0], places[1].long(), [1.0, 2.0, 3.0]).crow_indices().dtype
        is taeda.int64
    )


def test_hooks_of_sparse_leaves_get_and_give_sparse_gradients():
    leaf = taeda.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse().requires_grad_()
    seen = []

    def halved(grad):
        seen.append(grad.layout)
        return grad * 0.5

    handle = leaf.register_hook(halved)
    (leaf.to_dense() * 4).sum().backward()
    assert seen == [taeda.sparse_coo] and leaf.grad.to_dense().tolist() == [[0, 2], [2, 0]]
    handle.remove()
    leaf.register_hook(lambda grad: seen.append("only looks"))
    (leaf.to_dense() * 4).sum().backward()
    assert seen[1:] == ["only looks"] and leaf.grad.to_dense().tolist() == [[0, 6], [6, 0]]
    with pytest.raises(TypeError, match="'hook' must be callable, found int"):
        leaf.register_hook(3)


def test_products_of_sparse_tensors_broadcast():
    a, row = (
        taeda.tensor([[0.0, 2.0, 0.0], [3.0, 0.0, 4.0]]).to_sparse(),
        taeda.tensor([[1.0, 0.0, 5.0]]).to_sparse(),
    )
    column = taeda.tensor([[1.0], [2.0]]).to_sparse()
    assert (a * row).to_dense().tolist() == (row * a).to_dense().tolist() == [[0, 0, 0], [3, 0, 20]]
    assert (column * row).to_dense().tolist() == [[1, 0, 5], [2, 0, 10]]
    assert (a * taeda.tensor(3.0).to_sparse()).to_dense().tolist() == [[0, 6, 0], [9, 0, 12]]


def test_sparse_tensors_of_one_place_and_dimensions_by_name():
    one = taeda.sparse_coo_tensor(([0], [2]), 7.0)
    assert one.is_coalesced() and one.to_dense().tolist() == [[0, 0, 7]]
    assert taeda.sparse_coo_tensor([[], []], [], (2, 2)).is_coalesced()
    assert not taeda.sparse_coo_tensor([[0, 1], [0, 1]], [1, 2], (2, 2)).is_coalesced()
    assert one.permute(dims=(1, 0)).to_dense().tolist() == [[0], [0], [7]]
    for place in ([5], [-1]):
        with pytest.raises(RuntimeError, match=r"found (index 5|a negative index)"):
            taeda.sparse_coo_tensor(([0], place), [1.0], (3, 3))


@pytest.mark.parametrize("values", [[], [3.0], [3.0, 4.0], [[3.0, 4.0], [1.0, 2.0]]])
def test_sparse_tensors_may_have_no_sparse_dimension(values):
    whole = taeda.tensor(values, requires_grad=True)
    places = taeda.empty(0, len(values), dtype=taeda.int64)
    made = taeda.sparse_coo_tensor(places, whole, whole.shape[1:])
    total = np.array(values).sum(0)
    assert made.to_dense().tolist() == total.tolist()
    assert (made * made).to_dense().tolist() == (total * total).tolist()
    mask = made.detach().coalesce()
    other = taeda.full(mask.shape, 5.0)
    assert other.sparse_mask(mask).to_dense().tolist() == np.full_like(total, 5.0 * bool(values)).tolist()
    made.to_dense().sum().backward()
    assert whole.grad.tolist() == np.ones_like(np.array(values)).tolist()


def test_a_zero_without_dimensions_has_no_sparse_elements():
    for value, count in ((0.0, 0), (2.0, 1)):
        made = taeda.tensor(value).to_sparse()
        assert made._nnz() == count and made._values().shape == (count,) and made.to_dense().item() == value
    assert taeda.zeros(2).to_sparse(0)._nnz() == 0 and taeda.tensor([0.0, 1.0]).to_sparse(0)._nnz() == 1
    dense = taeda.tensor(2.0, requires_grad=True)
    dense.to_sparse().to_dense().mul(3).backward()
    assert dense.grad.item() == 3


def test_masked_reductions_of_sparse_tensors_without_dimensions():
    for name in ("amax", "sum", "prod"):
        made = getattr(taeda.masked, name)(taeda.tensor(2.0).to_sparse(), mask=taeda.tensor(True).to_sparse())
        assert made._nnz() == 1 and made.to_dense().item() == 2.0
    assert (
        taeda.masked.sum(taeda.tensor(2.0).to_sparse(), mask=taeda.tensor(False).to_sparse()).to_dense()
        == 0.0
    )


@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr"])
@pytest.mark.parametrize("convert", [taeda.Tensor.numpy, np.asarray])
def test_there_is_no_array_of_a_sparse_tensor(layout, convert):
    with pytest.raises(TypeError, match="can't convert Sparse layout tensor to numpy"):
        convert(getattr(taeda.eye(2), layout)())


@pytest.mark.parametrize("way", ["bsr", "bsc"])
@pytest.mark.parametrize("start", ["to_dense", "to_sparse", "to_sparse_csr"])
def test_one_number_says_the_size_of_square_blocks(start, way):
    dense = taeda.arange(16.0).reshape(4, 4)
    x = getattr(dense, start)()
    blocks = getattr(x, f"to_sparse_{way}")(2)
    assert blocks.values().shape == (4, 2, 2)
    assert taeda.equal(blocks.to_dense(), dense)
    assert taeda.equal(getattr(blocks, f"to_sparse_{way}")(2).to_dense(), dense)


def _blocks_of_zeros(dense, height, width):
    """Which blocks of matrices (..., rows, columns) have an element, by NumPy."""
    *batch, rows, columns = dense.shape
    cut = dense.reshape(*batch, rows // height, height, columns // width, width)
    return (cut != 0).any(axis=(-3, -1))


@pytest.mark.parametrize("layout", ["sparse_bsr", "sparse_bsc"])
def test_batches_of_matrices_of_blocks(layout):
    rng = np.random.default_rng(0)
    dense = rng.standard_normal((2, 3, 4, 6)).astype("float32")
    dense[..., :2, 3:] = 0
    x = getattr(taeda.from_numpy(dense), f"to_{layout}")((2, 3))
    there = _blocks_of_zeros(dense, 2, 3)
    assert x.shape == (2, 3, 4, 6) and x.values().shape == (2, 3, there[0, 0].sum(), 2, 3)
    assert x._nnz() == 3 and (x.sparse_dim(), x.dense_dim()) == (2, 0)
    assert np.array_equal(x.to_dense().numpy(), dense)
    turned = x.transpose(-2, -1)
    assert turned.layout is not x.layout and np.array_equal(turned.to_dense().numpy(), dense.swapaxes(-2, -1))
    assert np.array_equal(x.to_sparse_csr().to_dense().numpy(), dense)
    assert np.array_equal(x[1, 2].to_dense().numpy(), dense[1, 2])
    first, second = x.crow_indices if layout == "sparse_bsr" else x.ccol_indices, x._places[1]
    again = taeda.sparse_compressed_tensor(first().int(), second.int(), x.values(), layout=x.layout)
    assert first().shape == (2, 3, 3) and again._places[0].dtype is taeda.int32
    assert np.array_equal(again.to_dense().numpy(), dense)
    dense[0, 0, :2] = 0
    with pytest.raises(RuntimeError, match="same number of specified elements per batch"):
        getattr(taeda.from_numpy(dense), f"to_{layout}")((2, 3))


def test_compressed_elements_with_dense_dimensions():
    rng = np.random.default_rng(1)
    dense = rng.standard_normal((4, 6, 2)).astype("float32")
    dense[1], dense[:, 4] = 0, 0
    x = taeda.from_numpy(dense)
    for made in (
        x.to_sparse_csr(dense_dim=1), x.to_sparse_csc(1), x.to_sparse_bsr((2, 3), dense_dim=1),
        x.to_sparse_bsc((2, 2), 1), x.to_sparse(layout=taeda.sparse_csr, dense_dim=1),
    ):  # fmt: skip
        assert made.dense_dim() == 1 and np.array_equal(made.to_dense().numpy(), dense), made.layout
    assert x.to_sparse_csr(1).values().shape == ((dense != 0).any(-1).sum(), 2)
    with pytest.raises(RuntimeError, match="'dense_dim' 2"):
        x.to_sparse_csr(2)


def test_tensors_made_after_a_sparse_one():
    x = taeda.tensor([[0.0, 2.0], [3.0, 0.0]])
    coo, csr = x.to_sparse(), x.to_sparse_csr()
    for made in (coo.new_zeros(2, 3), coo.new_empty((2, 3)), coo.new(2, 3), coo.new(taeda.Size([2, 3]))):
        assert made.layout is taeda.sparse_coo and made.shape == (2, 3) and made._nnz() == 0
    assert csr.new_zeros((2, 3)).layout is taeda.sparse_csr
    assert coo.new_zeros(2, layout=taeda.strided).tolist() == [0, 0]
    assert coo.new(taeda.tensor([[0], [1]]), taeda.tensor([5.0]), (2, 2)).to_dense().tolist() == [
        [0, 5],
        [0, 0],
    ]
    assert coo.new_tensor([1, 2]).dtype is taeda.float32
    assert taeda.equal(taeda.ones_like(csr).to_dense(), (x != 0).float())
    assert taeda.full_like(csr, 3, dtype=taeda.float64).values().tolist() == [3, 3]
    assert taeda.ones_like(coo, layout=taeda.strided).tolist() == [[1, 1], [1, 1]]
    assert taeda.empty_like(csr).crow_indices().tolist() == [0, 1, 2]
    with pytest.raises(NotImplementedError, match="would fill"):
        taeda.ones_like(coo)
    assert (csr * csr).layout is taeda.sparse_csr and taeda.equal((csr * coo).to_dense(), x * x)
    dense = x.clone()
    assert dense.mul_(coo) is dense and taeda.equal(dense, x * x)
    assert f"{coo}" == repr(coo) and coo.stride() == (0, 0) and coo.storage_offset() == 0
    with pytest.raises(TypeError, match="format"):
        f"{coo:>3}"
    assert coo[None].shape == (1, 2, 2) and [row.to_dense().tolist() for row in coo.unbind()] == x.tolist()
    assert float(taeda.tensor([2.0]).to_sparse()) == 2 and int(taeda.tensor([[2.0]]).to_sparse()) == 2
    assert taeda.equal(coo.real.to_dense(), x)
    turned = (x * 1j).to_sparse().mH
    assert np.array_equal(turned.to_dense().resolve_conj().numpy(), (x * 1j).numpy().conj().T)


@pytest.mark.parametrize("name", ["hstack", "vstack", "dstack"])
def test_sparse_tensors_are_stacked_as_dense_ones(name):
    stack = getattr(taeda, name)
    for x in (taeda.tensor([0.0, 1.0, 2.0]), taeda.tensor([[0.0, 1.0], [2.0, 0.0]])):
        made = stack([x.to_sparse(), 2 * x.to_sparse()])
        assert made.is_sparse and np.array_equal(
            made.to_dense().numpy(), getattr(np, name)([x.numpy(), 2 * x.numpy()])
        )


def test_sparse_leaves_are_written_under_no_grad_alone():
    x = taeda.eye(3).to_sparse().requires_grad_()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x.mul_(2)
    with taeda.no_grad():
        x.mul_(2)
    assert x.requires_grad and x.is_leaf and taeda.equal(x.to_dense().detach(), 2 * taeda.eye(3))
    taeda.sparse.sum(x * x).backward()
    assert taeda.equal(x.grad.to_dense(), 4 * taeda.eye(3))


def test_dense_times_sparse_lies_row_by_row():
    x, w = taeda.ones(3, 4), taeda.eye(4).to_sparse_csr()
    assert (x @ w).is_contiguous() and taeda.nn.functional.linear(x, w).view(-1).shape == (12,)


def test_lobpcg_of_sparse_matrices():
    rng = np.random.default_rng(2)
    a = rng.standard_normal((9, 9))
    a = a @ a.T
    for layout in (taeda.sparse_coo, taeda.sparse_csr):
        values, vectors = taeda.lobpcg(taeda.from_numpy(a).to_sparse(layout=layout), k=2, largest=False)
        assert np.allclose(values.numpy(), np.linalg.eigvalsh(a)[:2], atol=1e-6)
        assert np.allclose(a @ vectors.numpy(), vectors.numpy() * values.numpy(), atol=1e-4)
    lower = taeda.from_numpy(np.tril(a))
    right = taeda.from_numpy(rng.standard_normal((9, 2)))
    found = taeda.triangular_solve(right, lower.to_sparse_csr(), upper=False)[0]
    assert np.allclose(lower.numpy() @ found.numpy(), right.numpy())


def test_assert_close_of_sparse_tensors():
    close = taeda.testing.assert_close
    x = taeda.tensor([[0.0, 2.0], [3.0, 0.0]])
    for layout in (taeda.sparse_coo, taeda.sparse_csr, taeda.sparse_csc):
        one = x.to_sparse(layout=layout)
        close(one, x.to_sparse(layout=layout))
        with pytest.raises(AssertionError, match=r"Sparse CO?S?[ORC] values are not close!"):
            close(one, one * 2)
        with pytest.raises(AssertionError, match="does not match: 2 != 4"):
            close(one, (x + 1).to_sparse(layout=layout))
        close(one, x, check_layout=False)
        with pytest.raises(AssertionError, match="attribute 'layout'"):
            close(one, x)
    with pytest.raises(AssertionError, match="Sparse CSR col_indices are not equal!"):
        close(x.to_sparse_csr(), x.flip(1).to_sparse_csr())


def test_masks_keep_their_places_and_blocks():
    dense = taeda.arange(24.0).reshape(4, 6)
    twice = taeda.sparse_coo_tensor([[3, 0, 3], [1, 2, 1]], taeda.ones(3), (4, 6))
    found = dense.sparse_mask(twice)
    assert found._indices().tolist() == [[3, 0, 3], [1, 2, 1]] and found._values().tolist() == [19, 2, 19]
    pattern = taeda.zeros(4, 6)
    pattern[:2, 3:] = 1
    for mask in (pattern.to_sparse_bsr((2, 3)), pattern.to_sparse_bsc((2, 3)), pattern.to_sparse_csc()):
        found = dense.sparse_mask(mask)
        assert found.layout is mask.layout and taeda.equal(found.to_dense(), dense * pattern)


def test_products_with_tensors_of_more_dimensions():
    x = taeda.tensor([[0.0, 2.0, 0.0], [3.0, 0.0, 4.0]])
    other = taeda.arange(12.0).reshape(2, 2, 3)
    for made in (x.to_sparse() * other, other * x.to_sparse()):
        assert made.is_sparse and taeda.equal(made.to_dense(), x * other)
    row, column = x[:1].to_sparse(), taeda.tensor([[0.0], [5.0]]).to_sparse()
    assert taeda.equal((row * column).to_dense(), x[:1] * taeda.tensor([[0.0], [5.0]]))
    assert taeda.equal(row.broadcast_to((4, 2, 3)).to_dense(), x[:1].broadcast_to((4, 2, 3)))
    with pytest.raises(RuntimeError):
        row * taeda.ones(2, 4)


def test_zeros_like_tensors_with_dense_dimensions():
    x = taeda.ones(4, 6, 2)
    for made in (x.to_sparse(2), x.to_sparse_csr(1), x.to_sparse_bsr((2, 3), 1)):
        for layout in (None, taeda.sparse_coo, taeda.sparse_csc):
            zeros = taeda.zeros_like(made, layout=layout, dtype=taeda.float64)
            assert zeros.dense_dim() == 1 and zeros._nnz() == 0 and zeros.shape == (4, 6, 2)
            assert zeros.dtype is taeda.float64 and not zeros.to_dense().any()
    assert taeda.zeros_like(made).values().shape == (0, 2, 3, 2)
    with pytest.raises(RuntimeError, match="needs the size of blocks"):
        taeda.zeros_like(x.to_sparse_csr(1), layout=taeda.sparse_bsr)


def test_sums_of_integers_and_numbers_from_the_end():
    x = taeda.tensor([[1, 0], [2, 100]], dtype=taeda.int8)
    s = x.to_sparse()
    assert s.sum(0).dtype is s.sum().dtype is taeda.sparse.sum(s).dtype is taeda.int64
    assert taeda.sparse.sum(s, 0).dtype is taeda.int8 and (s * 2).sum().item() == (x * 2).sum().item()
    with pytest.raises(RuntimeError, match="multiple times"):
        s.sum((0, -2))
    picked = s.index_select(0, taeda.tensor([-1, 0, -2]))
    assert picked.to_dense().tolist() == [[2, 100], [1, 0], [1, 0]]
    with pytest.raises(IndexError, match="expected -2 to 1"):
        s.index_select(1, taeda.tensor([2]))


def test_sparse_tensors_on_meta_hold_no_element():
    x = taeda.eye(3)
    for made in (x.to_sparse(), x.to_sparse_csr(), taeda.eye(4).to_sparse_bsr((2, 2))):
        there = made.to("meta")
        assert there.layout is made.layout and there.shape == made.shape and there._nnz() == 0
        assert "values=tensor(..., size=(0" in repr(there) and "device='meta'" in repr(there)


def test_checks_of_sparse_tensors_are_remembered():
    checks = taeda.sparse.check_sparse_tensor_invariants
    assert not checks.is_enabled()
    with checks():
        assert checks.is_enabled()
        with checks(False):
            assert not checks.is_enabled()
    assert not checks.is_enabled() and checks()(checks.is_enabled)()


def test_data_of_sparse_tensors_is_written_without_the_graph():
    x = taeda.eye(3).to_sparse().requires_grad_()
    y = (x @ taeda.ones(3, 2)).pow(2).sum()
    x.data._values().mul_(3)
    y.backward()
    assert x.grad.to_dense().diagonal().tolist() == [4, 4, 4] and x.to_dense().diagonal().tolist() == [
        3,
        3,
        3,
    ]


def test_elements_of_sparse_tensors_are_not_set():
    for x in (taeda.eye(3).to_sparse(), taeda.eye(3).to_sparse_csr()):
        with pytest.raises(TypeError, match="Cannot assign to a sparse tensor"):
            x[0, 0] = 2.0
    dense = taeda.zeros(2, 3)
    dense[1] = taeda.tensor([0.0, 1.0, 2.0]).to_sparse()
    assert dense.tolist() == [[0, 0, 0], [0, 1, 2]]


def test_dense_dimensions_are_selected_in_the_layout():
    x = taeda.arange(48.0).reshape(4, 6, 2)
    for made in (x.to_sparse_csr(1), x.to_sparse_csc(1), x.to_sparse_bsr((2, 3), 1), x.to_sparse(2)):
        for chosen in (made.select(2, 1), made.select(-1, -1), made.select_copy(2, 1)):
            assert chosen.layout is made.layout and taeda.equal(chosen.to_dense(), x[..., 1])


def test_sampled_products_are_written():
    pattern = taeda.eye(3).to_sparse_csr()
    a, b = taeda.arange(6.0).reshape(3, 2), taeda.arange(6.0).reshape(2, 3)
    out = taeda.zeros(3, 3).to_sparse_csr()
    found = taeda.sparse.sampled_addmm(pattern, a, b, beta=0.0, out=out)
    assert found is out and taeda.equal(out.to_dense(), (a @ b) * taeda.eye(3))


#: Linear functions of the sparse form of a matrix, and the same of the matrix.
LINEAR = {
    "times": (lambda s: s * 2, lambda x: x * 2), "of a number": (lambda s: 2 * s, lambda x: x * 2),
    "over": (lambda s: s / 2, lambda x: x / 2), "negated": (lambda s: -s, lambda x: -x),
    "in a row": (lambda s: -(s * 2) / 3, lambda x: x * 2 / -3), "clone": (lambda s: s.clone(), lambda x: x),
    "no dimension": (lambda s: s * taeda.tensor(2.0), lambda x: x * 2), "sum": (lambda s: s + s * 3, lambda x: x * 4),
    "difference": (lambda s: s - s * 3, lambda x: x * -2), "mul_": (lambda s: s.mul_(2), lambda x: x * 2),
    "div_": (lambda s: s.div_(2), lambda x: x / 2), "neg_": (lambda s: s.neg_(), lambda x: -x),
    "add_": (lambda s: s.add_(s * 2), lambda x: x * 3), "coalesced": (lambda s: s.coalesce() * 2, lambda x: x * 2),
    "with a constant": (lambda s: taeda.eye(3).to_sparse() + s, lambda x: x + taeda.eye(3)),
    "elements of another": (lambda s: s * taeda.arange(9.0).view(3, 3), lambda x: x * taeda.arange(9.0).view(3, 3)),
}  # fmt: skip


@pytest.mark.parametrize("function", LINEAR)
def test_gradients_of_what_linear_functions_of_sparse_forms_were_made_of(function: str) -> None:
    of_sparse, of_dense = LINEAR[function]
    other, weights = taeda.arange(9.0).view(3, 3) + 1, taeda.arange(9.0).view(3, 3) - 4
    found, expected = (
        taeda.tensor([[1.0, 0, 2], [0, 0, 3], [4, 0, 0]], requires_grad=True) for _ in range(2)
    )
    ((of_sparse(found.to_sparse()) @ other) * weights).sum().backward()
    ((of_dense(expected) @ other) * weights).sum().backward()
    np.testing.assert_allclose(found.grad.numpy(), expected.grad.numpy(), rtol=1e-6)


def test_gradients_of_a_sparse_form_that_was_written_to_are_those_of_its_places() -> None:
    dense = taeda.tensor([[1.0, 0], [0, 2]], requires_grad=True)
    for write in (lambda s: s.pow_(2), lambda s: s._values().mul_(3), lambda s: s.sin_()):
        dense.grad, s = None, dense.to_sparse()
        write(s)
        (s @ taeda.ones(2, 2)).sum().backward()
        assert dense.grad[0, 1] == dense.grad[1, 0] == 0 and dense.grad[0, 0] != 0
    dense.grad = None
    dense.to_sparse().sum().backward()
    assert dense.grad.tolist() == [[1, 1], [1, 1]]
    dense.grad = None
    taeda.sparse.sum(dense.to_sparse()).backward()
    assert dense.grad.tolist() == [[1, 0], [0, 1]]


def test_sizes_of_blocks_are_for_layouts_of_blocks() -> None:
    dense = taeda.eye(4)
    for make in (
        lambda: dense.to_sparse(blocksize=(2, 2)),
        lambda: dense.to_sparse(layout=taeda.sparse_csr, blocksize=(2, 2)),
        lambda: dense.to_sparse().to_sparse(layout=taeda.sparse_csc, blocksize=(2, 2)),
    ):
        with pytest.raises(RuntimeError, match=r"to_sparse: argument 'blocksize'.*no blocks"):
            make()
    assert dense.to_sparse(layout=taeda.sparse_bsr, blocksize=(2, 2)).values().shape == (2, 2, 2)
