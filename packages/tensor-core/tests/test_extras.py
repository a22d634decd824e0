"""Functions and methods written in Python."""

import numpy as np
import pytest

import taeda_tensor_core as taeda


@pytest.mark.parametrize("dim", [None, 0, 1, -1])
def test_unique(dim):
    array = np.random.default_rng(1).integers(0, 2, (6, 3))
    values, inverse, counts = taeda.unique(
        taeda.from_numpy(array), return_inverse=True, return_counts=True, dim=dim
    )
    expected = np.unique(array, return_inverse=True, return_counts=True, axis=dim)
    assert np.array_equal(values.numpy(), expected[0])
    assert np.array_equal(inverse.numpy().reshape(-1), expected[1].reshape(-1)) and np.array_equal(
        counts.numpy(), expected[2]
    )
    assert taeda.from_numpy(array).unique(dim=dim).tolist() == expected[0].tolist()


def test_unique_consecutive():
    t = taeda.tensor([1, 1, 2, 2, 1])
    values, inverse, counts = taeda.unique_consecutive(t, return_inverse=True, return_counts=True)
    assert (
        values.tolist() == [1, 2, 1] and inverse.tolist() == [0, 0, 1, 1, 2] and counts.tolist() == [2, 2, 1]
    )
    rows = taeda.tensor([[1, 2], [1, 2], [3, 4]])
    assert rows.unique_consecutive(dim=0).tolist() == [[1, 2], [3, 4]]
    assert taeda.unique_consecutive(taeda.zeros(0)).shape == (0,)


def test_small_functions():
    t = taeda.tensor([1, 4, 9])
    assert taeda.diff(t).tolist() == [3, 5] and t.diff(n=2).tolist() == [2]
    assert taeda.diff(taeda.tensor([True, True, False])).tolist() == [False, True]
    padded = taeda.diff(t, prepend=taeda.tensor([0]), append=taeda.tensor([9, 16]))
    assert padded.tolist() == np.diff([1, 4, 9], prepend=[0], append=[9, 16]).tolist()
    assert taeda.broadcast_shapes((2, 1), (3,), 1) == (2, 3)
    assert taeda.diagflat(taeda.tensor([[1, 2]])).tolist() == [[1, 0], [0, 2]]
    assert taeda.is_nonzero(taeda.tensor([2])) and taeda.is_same_size(t, t + 1) and taeda.is_tensor(t)
    with pytest.raises(RuntimeError, match="broadcast"):
        taeda.broadcast_shapes((2,), (3,))


def test_further_forms_of_operators():
    t = taeda.arange(10.0).reshape(5, 2)
    for cut in (taeda.tensor([1, 4]), taeda.tensor(2)):
        expected = np.array_split(t.numpy(), cut.tolist())
        assert [part.tolist() for part in t.tensor_split(cut)] == [part.tolist() for part in expected]
    with pytest.raises(RuntimeError, match=r"tensor_split.*int64"):
        t.tensor_split(taeda.tensor([1.0]))
    for n in (1, 2, 3):
        found = getattr(taeda, f"atleast_{n}d")([taeda.tensor(3.0), taeda.ones(4), t])
        expected = getattr(np, f"atleast_{n}d")(np.array(3.0), np.ones(4), t.numpy())
        assert [part.tolist() for part in found] == [part.tolist() for part in expected]
    counts = taeda.tensor([1, 0, 2, 0, 1])
    assert t.repeat_interleave(counts, 0, output_size=4).shape == (4, 2)
    with pytest.raises(RuntimeError, match=r"repeat_interleave.*output_size.*5.*expected 4"):
        t.repeat_interleave(counts, 0, output_size=5)
    for found, power in ((taeda.var_mean(t, False), 1), (taeda.std_mean(t, False), 0.5)):
        assert found[0].item() == pytest.approx(t.numpy().var() ** power) and found[1].item() == 4.5


def test_small_methods():
    t = taeda.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert t.where(t > 2, 0).tolist() == [[0, 0], [3, 4]]
    assert (
        t.sum_to_size(1, 2).tolist() == [[4, 6]]
        and t.sum_to_size((2,)).tolist() == [4, 6]
        and t.sum_to_size(2, 2) is t
    )
    assert t.clone().apply_(lambda v: v + 1).tolist() == [[2, 3], [4, 5]]
    assert t.clone().fill_diagonal_(0).tolist() == [[0, 2], [3, 0]]
    tall = np.zeros((7, 3))
    np.fill_diagonal(tall, 5, wrap=True)
    assert taeda.zeros(7, 3).fill_diagonal_(5, wrap=True).tolist() == tall.tolist()
    with pytest.raises(RuntimeError, match="sum_to_size"):
        t.sum_to_size(3)
    with pytest.raises(RuntimeError, match="fill_diagonal_"):
        taeda.zeros(3).fill_diagonal_(1)


def test_storage():
    t = taeda.zeros(4)
    assert t[1:].untyped_storage() == t.untyped_storage() and t.untyped_storage().nbytes() == 16
    assert t[2:].untyped_storage().data_ptr() == t.data_ptr()


def test_functions_of_numbers_have_no_gradients():
    x, y = taeda.ones(2), taeda.ones(2, requires_grad=True)
    assert x.clone().map_(y.detach(), lambda a, b: a + b).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match=r"map_: Can't call map_\(\) on a tensor that requires grad"):
        x.map_(y, lambda a, b: a + b)
    with pytest.raises(RuntimeError, match=r"map2_: Can't call map2_\(\) on a tensor that requires grad"):
        x.map2_(x, y, lambda a, b, c: a + b + c)
