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
