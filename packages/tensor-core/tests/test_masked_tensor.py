"""Tensors that carry a mask."""

from __future__ import annotations

import copy
import pickle

import pytest

import taeda_tensor_core as tc


def _x(requires_grad: bool = False) -> tc.masked.MaskedTensor:
    data = tc.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, 6.0]])
    mask = tc.tensor([[True, False, True], [False, False, False]])
    return tc.masked.masked_tensor(data, mask, requires_grad)


def test_elements_that_are_not_there_have_no_value() -> None:
    """They are filled, printed and compared as such."""
    assert _x().to_tensor(0.0).tolist() == [[1.0, 0.0, 3.0], [0.0, 0.0, 0.0]]
    assert "--" in repr(_x())
    assert tc.masked.is_masked_tensor(_x())
    assert not tc.masked.is_masked_tensor(tc.ones(2))
    assert (_x() > 2).to_tensor(False).tolist() == [[False, False, True], [False] * 3]
    assert _x().shape == (2, 3)


def test_reductions_take_what_is_there() -> None:
    """Rows without elements have no result."""
    total = _x().sum(1)
    assert (total.get_data()[0].item(), total.get_mask().tolist()) == (4.0, [True, False])
    assert _x().mean().get_data().item() == 2.0
    assert _x().amax(1).get_data()[0].item() == 3.0
    assert tc.sum(_x()).get_data().item() == 4.0
    assert tc.softmax(_x(), 1).to_tensor(0.0).sum(1)[0].item() == pytest.approx(1.0)


def test_shapes_and_arithmetic_keep_the_mask() -> None:
    """Numbers and tensors of the same mask combine; others do not."""
    x = _x()
    assert (x * 2 + 1).to_tensor(0.0)[0].tolist() == [3.0, 0.0, 7.0]
    assert (x + x).to_tensor(0.0)[0, 2].item() == 6.0
    assert x.t().get_mask().tolist() == x.get_mask().t().tolist()
    assert x[0].get_mask().tolist() == [True, False, True]
    assert tc.cat([x, x]).get_mask().shape == (4, 3)
    other = tc.masked.masked_tensor(tc.ones(2, 3), tc.ones(2, 3, dtype=tc.bool))
    with pytest.raises(ValueError, match="masks must match"):
        x + other
    again = pickle.loads(pickle.dumps(x))
    assert again.to_tensor(0.0).tolist() == x.to_tensor(0.0).tolist()


def test_wrong_masks_are_refused() -> None:
    """By dtype and shape; what is not defined says so."""
    with pytest.raises(TypeError, match="bool"):
        tc.masked.masked_tensor(tc.ones(2), tc.ones(2))
    with pytest.raises(ValueError, match="shape"):
        tc.masked.as_masked_tensor(tc.ones(2), tc.ones(3, dtype=tc.bool))
    with pytest.raises(NotImplementedError, match="to_tensor"):
        tc.linalg.inv(_x())


def test_hashes_are_the_exclusive_or_of_bits() -> None:
    """Of float64 numbers and int64 ones, whatever their number, over dimensions too."""
    import numpy as np

    for count in range(6):
        x = tc.linspace(-1, 2, count) if count else tc.zeros(0)
        bits = x.double().numpy().view(np.uint64)
        assert tc.hash_tensor(x).item() == int(np.bitwise_xor.reduce(bits, initial=np.uint64(0)))
    single = tc.tensor(3)
    assert tc.hash_tensor(single).fill_(0).item() == 0 and tc.hash_tensor(single).item() == 3
    x = tc.arange(12).reshape(3, 4)
    assert x.hash_tensor(1).tolist() == np.bitwise_xor.reduce(x.numpy(), 1).tolist()
    for wrong in (x.dim(), -x.dim() - 1, [0, 7]):
        with pytest.raises(IndexError, match="argument 'dim': Dimension out of range"):
            x.hash_tensor(wrong)
    assert tc.hash_tensor(x, 0, keepdim=True).shape == (1, 4)
    with pytest.raises(RuntimeError, match="mode"):
        tc.hash_tensor(x, mode=1)
    with pytest.raises(TypeError, match="real"):
        tc.hash_tensor(tc.ones(2, dtype=tc.complex64))


def test_jagged_tensors_say_their_sizes() -> None:
    """One that differs between parts is equal to itself alone; strided ones have none."""
    x = tc.nested.nested_tensor([tc.ones(2, 3), tc.ones(4, 3)], layout=tc.jagged)
    count, length, width = x.shape
    assert (count, width) == (2, 3)
    assert length == x.shape[1]
    assert length != 2
    with pytest.raises(RuntimeError, match="sizes of their own"):
        _ = tc.nested.nested_tensor([tc.ones(2, 3), tc.ones(4, 3)]).shape


def _three() -> tc.masked.MaskedTensor:
    return tc.masked.masked_tensor(tc.tensor([1.0, -2.0, 3.0]), tc.tensor([True, False, True]))


def test_masked_tensors_are_written_in_place() -> None:
    x = _three()
    same = x
    x += 1
    x.mul_(x)
    assert (
        x is same
        and x.get_data().tolist() == [4.0, 1.0, 16.0]
        and x.clamp_(0, 5).to_tensor(-1.0).tolist() == [4, -1, 5]
    )
    tc.ops.aten.neg_(x)
    assert x.to_tensor(9.0).tolist() == [-4, 9, -5] and tc.signbit(x).to_tensor(False).tolist() == [
        True,
        False,
        True,
    ]
    other = tc.masked.MaskedTensor(tc.ones(3), tc.tensor([True, True, True]))
    with pytest.raises(ValueError, match="add_: Input masks must match"):
        x.add_(other)
    with pytest.raises(TypeError, match="without a mask"):
        tc.ones(3).add_(x)


def test_operators_under_their_own_names() -> None:
    x = _three()
    assert tc.ops.aten.add(x, x).to_tensor(0.0).tolist() == [2, 0, 6]
    assert tc.ops.aten.div.Tensor_mode(x, 2, rounding_mode="floor").to_tensor(0.0).tolist() == [0, 0, 1]
    assert tc.less(x, 2).to_tensor(False).tolist() == [True, False, False]


@pytest.mark.parametrize("form", ["to_sparse", "to_sparse_coo", "to_sparse_csr"])
def test_sparse_masked_tensors(form: str) -> None:
    whole = tc.masked.MaskedTensor(
        tc.tensor([[0.0, 1.0], [2.0, 0.0]]), tc.tensor([[False, True], [True, True]])
    )
    x = getattr(whole, form)()
    assert x.layout is x.get_mask().layout is not tc.strided and x.get_mask().values().tolist() == [True] * 3
    assert (x + x).to_dense().to_tensor(9.0).tolist() == [[9, 2], [4, 0]]
    assert tc.maximum(x, x.neg()).to_dense().to_tensor(9.0).tolist() == [[9, 1], [2, 0]]
    assert tc.div(x, x + 2, rounding_mode="floor").to_dense().to_tensor(9.0).tolist() == [[9, 0], [0, 0]]
    assert (x < 1).to_dense().to_tensor(True).tolist() == [[True, False], [False, True]]
    written = (x * 2).sub_(x)
    assert written.layout is x.layout and written.to_dense().to_tensor(9.0).tolist() == [[9, 1], [2, 0]]
    assert x.sum().item() == 3 and x.mean(1).to_tensor(9.0).tolist() == [1, 1] and "--" in repr(x)
    with pytest.raises(ValueError, match="masks must match"):
        x + whole


def test_copies_facts_and_refusals():
    x = tc.masked.masked_tensor(tc.arange(4.0), tc.tensor([True, False, True, True]))
    for made in (copy.copy(x), copy.deepcopy(x)):
        assert made.is_leaf and tc.equal(made.get_mask(), x.get_mask())
        assert tc.equal(made.get_data(), x.get_data())
    assert copy.deepcopy(x).get_data() is not x.get_data()
    assert x.stride() == (1,) and x.is_cpu and x.itemsize == 4
    assert tc.equal(tc.ones_like(x.detach()).get_data(), tc.ones(4)) and x.cpu().shape == (4,)
    for call in (lambda: x.cumsum(0), lambda: tc.zeros_like(x), lambda: x @ x):
        with pytest.raises(TypeError, match="not defined for masked tensors"):
            call()
    with pytest.raises(TypeError, match="argument 'data' is a list"):
        tc.masked.masked_tensor([1.0], tc.tensor([True]))


def test_parts_that_do_not_go_together():
    data, mask = tc.tensor([[1.0, 0.0], [0.0, 2.0]]), tc.tensor([[True, False], [False, True]])
    x = tc.masked.masked_tensor(data, mask)
    for make in (tc.masked.masked_tensor, tc.masked.as_masked_tensor):
        for one, other in ((x, mask), (data, x), (0, mask), (data.to_sparse(), mask)):
            with pytest.raises(TypeError, match="must"):
                make(one, other)
        with pytest.raises(TypeError, match="is not supported"):
            make(data.to_sparse_csc(), mask.to_sparse_csc())
        for layout in (tc.sparse_coo, tc.sparse_csr):
            there = make(data.to_sparse(layout=layout), mask.to_sparse(layout=layout))
            assert there.layout is layout and there.sum().get_data().item() == 3
            with pytest.raises(ValueError, match="do not share the same indices"):
                make(data.to_sparse(layout=layout), mask.flip(0).to_sparse(layout=layout))
            fewer = make((data + 1).to_sparse(layout=layout), mask.to_sparse(layout=layout))
            assert fewer.get_data().to_dense().tolist() == [[2, 0], [0, 3]]
            with pytest.raises(ValueError, match="do not have is_contiguous"):
                there.is_contiguous()
            with pytest.raises(ValueError, match="do not have is_contiguous"):
                there.contiguous()
    turned = tc.masked.masked_tensor(data, mask).t()
    assert not turned.is_contiguous() and turned.contiguous().is_contiguous()
    with pytest.raises(ValueError, match="Input masks must match"):
        x + tc.masked.masked_tensor(data, ~mask)


@pytest.mark.parametrize(
    "data, text",
    [
        ([True, False, False], "[True,       --, False]"),
        ([1, 2, 3], "[1,       --, 3]"),
        ([1.5, 2.0, 1e10], "[  1.5000,               --, 10000000000.0000]"),
    ],
)
def test_text_is_as_wide_as_the_widest_element(data, text):
    x, mask = tc.tensor(data), tc.tensor([True, False, True])
    assert repr(tc.masked.MaskedTensor(x, mask)) == f"MaskedTensor(\n  {text}\n)"
    assert repr(tc.masked.MaskedTensor(x[0], mask[1])) == "MaskedTensor(--, False)"


def test_a_masked_tensor_is_a_copy_without_history() -> None:
    """What is written to its parts afterwards does not reach it, and its parts have PyTorch's names."""
    data, mask = tc.ones(2), tc.tensor([True, False])
    made = tc.masked.MaskedTensor(data, mask), tc.masked.as_masked_tensor(data, mask)
    data[0], mask[1] = 5.0, True
    for x in made:
        assert (x._masked_data.tolist(), x._masked_mask.tolist()) == ([1.0, 1.0], [True, False])
    with pytest.raises(TypeError, match="layout"):
        tc.masked.MaskedTensor(tc.ones(2), tc.ones(2, dtype=tc.bool).to_sparse())


def test_one_element_is_read_where_it_is_there() -> None:
    """As a number, truth or index."""
    here = tc.masked.masked_tensor(tc.tensor(2), tc.tensor(True))
    absent = tc.masked.masked_tensor(tc.tensor(2), tc.tensor(False))
    assert [float(here), int(here), complex(here), [0, 1, 2][here], here.item()] == [2.0, 2, 2 + 0j, 2, 2]
    assert (_x() > 2).sum() > 0
    for read in (float, int, complex, bool, lambda x: x.item()):
        with pytest.raises(ValueError, match="not there"):
            read(absent)
    with pytest.raises(RuntimeError, match="ambiguous"):
        bool(_x())


def test_dtypes_turned_forms_and_writing_keep_the_mask() -> None:
    """Only a tensor without a mask that is written to has none afterwards."""
    x = _x()
    assert x.type() == tc.ones(1).type()
    for made in (x.type(tc.int64), x.type_as(tc.ones(1, dtype=tc.int64))):
        assert made.dtype is tc.int64
        assert made.get_mask().tolist() == x.get_mask().tolist()
    assert tc.ones(1).type_as(x.long()).dtype is tc.int64
    assert x.mT.get_mask().tolist() == x.get_mask().t().tolist()
    assert x.roll(1, 1).to_tensor(0.0)[0].tolist() == [3.0, 1.0, 0.0]
    x.copy_(x * 2)
    x[0, 2] = 7.0
    assert x.to_tensor(0.0)[0].tolist() == [2.0, 0.0, 7.0]
    plain = tc.zeros(2)
    plain[:] = x.sum(1)
    assert plain[0].item() == 9.0
    with pytest.raises(ValueError, match="masks must match"):
        x[0] = x[1]
