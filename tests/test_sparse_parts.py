"""Sparse tensors against dense ones: masked reductions, growth in place, and the dtype of their indices."""

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
