"""Calls of programs written for PyTorch: keywords of functions that make tensors."""

import pytest

import taeda


@pytest.mark.parametrize("order", ["contiguous_format", "channels_last"])
def test_the_order_of_fresh_elements(order):
    memory_format = getattr(taeda, order)
    strides = taeda.ones(2, 3, 4, 5).contiguous(memory_format=memory_format).stride()
    source = taeda.ones(2, 3, 5, 4).transpose(2, 3)
    for made in (
        taeda.empty(2, 3, 4, 5, memory_format=memory_format),
        taeda.empty((2, 3, 4, 5), dtype=taeda.float64, memory_format=memory_format),
        taeda.zeros_like(source, memory_format=memory_format),
        taeda.full_like(source, 2.0, memory_format=memory_format, dtype=taeda.int32),
        taeda.randn_like(source, memory_format=memory_format),
    ):
        assert made.stride() == strides and made.shape == (2, 3, 4, 5)
    leaf = taeda.zeros_like(source, memory_format=memory_format, requires_grad=True)
    assert leaf.is_leaf and leaf.requires_grad and leaf.stride() == strides and not leaf.any()
    assert taeda.zeros_like(source, memory_format=taeda.preserve_format).stride() == source.stride()
    with pytest.raises(TypeError, match="memory_format"):
        taeda.zeros(2, memory_format=memory_format)
    with pytest.raises(ValueError, match="memory_format"):
        taeda.empty(2, 3, memory_format="no format")
    assert taeda.empty(2).shape == (2,)  # a refusal leaves nothing behind


def test_asarray_keeps_the_graph_unless_told_otherwise():
    leaf = taeda.tensor([1.0, 2.0], requires_grad=True)
    x = leaf * 2
    shared, copied = taeda.asarray(x), taeda.asarray(x, copy=True)
    assert shared.requires_grad and copied.requires_grad and copied.data_ptr() != x.data_ptr()
    (copied * 3).sum().backward()
    assert leaf.grad.tolist() == [6.0, 6.0]
    plain = taeda.asarray(x, requires_grad=False)
    assert not plain.requires_grad and plain.data_ptr() == x.data_ptr()
    assert not taeda.asarray(x, copy=True, requires_grad=False).requires_grad
    assert taeda.asarray([1.0, 2.0], requires_grad=True).is_leaf
    assert not taeda.asarray([1.0, 2.0]).requires_grad


def test_tensors_without_dimensions_stand_for_the_factors_of_older_calls():
    factor, x, y = taeda.tensor(0.5), taeda.ones(3), taeda.tensor([1.0, 2.0, 3.0])
    m = taeda.tensor([[1.0, 2.0], [3.0, 4.0]])
    with pytest.warns(UserWarning, match="deprecated"):
        assert x.add(factor, y).tolist() == [1.5, 2.0, 2.5]
        assert x.clone().sub_(-factor * 2, y).tolist() == [2.0, 3.0, 4.0]
        assert taeda.add(x, factor, y).tolist() == [1.5, 2.0, 2.5]
        assert x.clone().addcmul_(factor, y, y).tolist() == [1.5, 3.0, 5.5]
        assert taeda.addcdiv(x, factor, y, y).tolist() == [1.5, 1.5, 1.5]
        assert taeda.addmm(factor, m, 2, m, taeda.eye(2)).tolist() == [[2.5, 5.0], [7.5, 10.0]]
        assert taeda.addmm(factor, m, m, taeda.eye(2)).tolist() == [[1.5, 3.0], [4.5, 6.0]]
        assert m.addmm(2, factor, m, taeda.eye(2)).tolist() == [[2.5, 5.0], [7.5, 10.0]]
    for wrong in (taeda.tensor([0.5]), taeda.tensor(0.5, requires_grad=True)):
        with pytest.raises(TypeError):
            x.add(wrong, y)


@pytest.mark.parametrize("make", [taeda.Tensor, taeda.FloatTensor, lambda x: x.new(x)])
def test_tensors_made_of_tensors_pass_gradients_on(make):
    leaf = taeda.tensor([1.0, 2.0], requires_grad=True)
    for source, factor in ((leaf, 1.0), (leaf * 3, 3.0)):
        made = make(source)
        assert made is not source and made.data_ptr() == source.data_ptr() and not made.is_leaf
        made.sum().backward()
        assert leaf.grad.tolist() == [factor, factor]
        leaf.grad = None
    assert make(leaf.detach()).is_leaf and not make(leaf.detach()).requires_grad
