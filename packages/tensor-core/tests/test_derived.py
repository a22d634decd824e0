"""Functions and methods that are programs of operators, against NumPy."""

import numpy as np
import pytest

import taeda_tensor_core as taeda


def values(*shape, seed=3):
    return np.random.default_rng(seed).standard_normal(shape)


def pair(*shape, seed=3):
    array = values(*shape, seed=seed)
    return taeda.tensor(array), array


def same(found, expected):
    assert np.array_equal(found.numpy(), expected) and found.shape == np.shape(expected)


def test_views_in_place():
    x, a = pair(2, 3)
    assert x.t_() is x and x.shape == (3, 2)
    same(x, a.T)
    same(x.swapaxes_(0, 1), a)
    same(x.swapdims_(0, -1), a.T)
    assert taeda.ones(3).t_().shape == (3,)
    same(x.as_strided_((2, 2), (3, 1), 1), a[:, 1:])
    with pytest.raises(RuntimeError, match="t_: expected at most 2 dimensions"):
        taeda.ones(2, 2, 2).t_()


@pytest.mark.parametrize("cut", [2, [1], [1, 3], [0, 9]])
@pytest.mark.parametrize("name", ["hsplit", "vsplit", "dsplit"])
def test_splits(name, cut):
    x, a = pair(4, 4, 2)
    for found in (getattr(taeda, name)(x, cut), getattr(x, name)(cut)):
        expected = getattr(np, name)(a, cut)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other)


def test_splits_of_wrong_arguments():
    same(taeda.hsplit(taeda.arange(4), 2)[1], np.array([2, 3]))
    for wrong in (3, 0, -1):
        with pytest.raises(RuntimeError, match="vsplit: argument 'indices_or_sections' is"):
            taeda.ones(4, 2).vsplit(wrong)
    with pytest.raises(RuntimeError, match=r"dsplit: argument 'input' has shape \(2, 2\)"):
        taeda.dsplit(taeda.ones(2, 2), 2)


def test_copies_of_views_and_adjoint():
    x, a = pair(3, 4)
    copy = x.narrow_copy(1, 1, 2)
    same(copy, a[:, 1:3])
    assert copy._base is None
    turned = taeda.view_copy(x.t(), (2, 6))
    same(turned, a.T.reshape(2, 6))
    assert turned._base is None and turned.data_ptr() != x.data_ptr()
    z = values(2, 3, 2) + 1j * values(2, 3, 2, seed=4)
    same(taeda.adjoint(taeda.tensor(z)), z.conj().swapaxes(-1, -2))
    same(x.adjoint(), a.T)


def test_scatters_into_views():
    x, a = pair(3, 4)
    b = a.copy()
    b[:, 1:4:2] = 7
    same(taeda.slice_scatter(x, taeda.full((3, 2), 7.0, dtype=x.dtype), 1, 1, 4, 2), b)
    b = a.copy()
    b[-1] = 5
    same(x.select_scatter(taeda.full((4,), 5.0, dtype=x.dtype), 0, -1), b)
    b = a.copy()
    b[[0, 1, 2], [1, 2, 3]] = 3
    same(x.diagonal_scatter(taeda.full((3,), 3.0, dtype=x.dtype), 1), b)
    same(x, a)
    with pytest.raises(RuntimeError, match="select_scatter: argument 'src' has shape"):
        x.select_scatter(taeda.ones(1, dtype=x.dtype), 0, 0)
    with pytest.raises(IndexError, match="slice_scatter: argument 'dim': Dimension out of range"):
        x.slice_scatter(x, 2)
    with pytest.raises(ValueError, match="slice_scatter: argument 'step' is 0"):
        x.slice_scatter(x, 0, step=0)


@pytest.mark.parametrize("turned", [False, True])
def test_put(turned):
    x, a = pair(3, 4)
    if turned:
        x, a = x.T, a.T.copy()
    index = np.array([[0, -1], [5, 5]])
    b, source = a.copy(), values(2, 2, seed=9)
    np.add.at(b.reshape(-1), index, source)
    found = x.put(taeda.tensor(index), taeda.tensor(source), accumulate=True)
    same(found, b)
    same(x, a)
    assert x.put_(taeda.tensor([1, 2]), taeda.tensor([8.0, 9.0], dtype=x.dtype)) is x
    np.put(a, [1, 2], [8.0, 9.0])
    same(x, a)
    with pytest.raises(IndexError):
        x.put_(taeda.tensor([12]), taeda.ones(1, dtype=x.dtype))
    with pytest.raises(RuntimeError, match="put_: argument 'source'"):
        x.put_(taeda.tensor([1]), taeda.ones(2, dtype=x.dtype))
    same(x, a)


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize(
    ("reduce", "function"), [("prod", np.prod), ("amax", np.max), ("amin", np.min), ("mean", np.mean)]
)
def test_index_reduce(reduce, function, include_self):
    x, a = pair(2, 4)
    source = values(2, 3, seed=5)
    index = [3, 0, 3]
    expected = a.copy()
    for place in set(index):
        terms = [source[:, k] for k in range(3) if index[k] == place] + (
            [a[:, place]] if include_self else []
        )
        expected[:, place] = function(terms, axis=0)
    arguments = (1, taeda.tensor(index), taeda.tensor(source), reduce)
    found = taeda.index_reduce(x, *arguments, include_self=include_self)
    assert np.allclose(found.numpy(), expected, rtol=1e-12)
    same(x, a)
    assert x.index_reduce_(*arguments, include_self=include_self) is x
    assert np.array_equal(x.numpy(), found.numpy())


def test_index_reduce_of_wrong_arguments():
    x = taeda.ones(2, 3)
    with pytest.raises(RuntimeError, match="argument 'reduce' must be"):
        x.index_reduce(0, taeda.tensor([0]), taeda.ones(1, 3), "sum")
    with pytest.raises(RuntimeError, match="argument 'source' has shape"):
        x.index_reduce(0, taeda.tensor([0, 1]), taeda.ones(1, 3), "amax")
    with pytest.raises(IndexError, match="index_reduce: expected a 1-dimensional 'index'"):
        x.index_reduce(2, taeda.tensor([0]), taeda.ones(1, 3), "amax")


def test_products_in_place():
    x, a = pair(2, 4)
    b, c = values(3, 2, 5, seed=6), values(3, 5, 4, seed=7)
    expected = 0.5 * a + 2 * (b @ c).sum(0)
    assert x.addbmm_(taeda.tensor(b), taeda.tensor(c), beta=0.5, alpha=2) is x
    assert np.allclose(x.numpy(), expected)
    assert x.addr_(taeda.tensor(a[:, 0]), taeda.tensor(a[0]), alpha=3) is x
    assert np.allclose(x.numpy(), expected + 3 * np.outer(a[:, 0], a[0]))
    same(taeda.tensor([1, 2]).diagflat(1), np.diagflat([1, 2], 1))


@pytest.mark.parametrize("tests", [[], [3], [1, 5, 3, 3], [2.5, 1.0, np.nan], [[0, 4], [1, 9]]])
@pytest.mark.parametrize("invert", [False, True])
def test_isin(tests, invert):
    for array in (np.arange(6).reshape(2, 3), np.array([1.0, np.nan, 2.5])):
        found = taeda.isin(taeda.tensor(array), taeda.tensor(tests), invert=invert)
        same(found, np.isin(array, tests, invert=invert))
    assert taeda.isin(taeda.tensor([1, 2]), 2).tolist() == [False, True]
    assert (
        taeda.isin(2, taeda.tensor([1, 2])).item()
        and taeda.isin(taeda.tensor([True]), taeda.tensor([True])).all()
    )


def test_joins():
    found = taeda.block_diag(taeda.ones(2, 1), taeda.tensor([2, 3]), taeda.tensor(4))
    assert (
        found.tolist() == [[1, 0, 0, 0], [1, 0, 0, 0], [0, 2, 3, 0], [0, 0, 0, 4]]
        and found.dtype is taeda.float32
    )
    assert taeda.block_diag().shape == (1, 0)
    with pytest.raises(ValueError, match="block_diag: argument 1 has shape"):
        taeda.block_diag(taeda.ones(1), taeda.ones(1, 1, 1))
    assert taeda.cartesian_prod(taeda.tensor([1, 2]), taeda.tensor([3, 4])).tolist() == [
        [1, 3],
        [1, 4],
        [2, 3],
        [2, 4],
    ]
    assert taeda.cartesian_prod(taeda.tensor([1, 2])).tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="cartesian_prod: argument 0 has shape"):
        taeda.cartesian_prod(taeda.ones(2, 2))


def test_unravel_index():
    index = np.array([[0, 5], [23, 7]])
    for found, expected in zip(
        taeda.unravel_index(taeda.tensor(index), (2, 3, 4)), np.unravel_index(index, (2, 3, 4)), strict=True
    ):
        same(found, expected)
    assert taeda.unravel_index(taeda.tensor(3), 5)[0].item() == 3
    with pytest.raises(TypeError, match="unravel_index: argument 'indices'"):
        taeda.unravel_index(taeda.ones(1), (2,))
    with pytest.raises(ValueError, match="unravel_index: argument 'shape'"):
        taeda.unravel_index(taeda.tensor([1]), (2, -1))


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_trapezoid(dim):
    x, a = pair(4, 4)
    places, at = pair(4, seed=8)
    grid, points = pair(4, 4, seed=9)
    integrate = getattr(np, "trapezoid" if hasattr(np, "trapezoid") else "trapz")
    for function in (taeda.trapezoid, taeda.trapz):
        assert np.allclose(function(x, dim=dim).numpy(), integrate(a, axis=dim))
        assert np.allclose(function(x, dx=0.5, dim=dim).numpy(), integrate(a, dx=0.5, axis=dim))
        assert np.allclose(function(x, places, dim=dim).numpy(), integrate(a, at, axis=dim))
        assert np.allclose(function(x, grid, dim=dim).numpy(), integrate(a, points, axis=dim))
        few, some = pair(4, 3, seed=10)
        stack, rows = pair(2, 4, 3, seed=11)
        # Fewer dimensions stand to the right, as operands do.
        assert np.allclose(function(stack, few, dim=1).numpy(), integrate(rows, some[None], axis=1))
    assert taeda.trapezoid(taeda.tensor([1, 2])).item() == 1.5 and taeda.trapezoid(
        taeda.ones(3, 1)
    ).tolist() == [0, 0, 0]
    with pytest.raises(RuntimeError, match="'x' and 'dx' exclude"):
        taeda.trapezoid(x, places, dx=1)
    with pytest.raises(RuntimeError, match="trapezoid: argument 'x' has shape"):
        taeda.trapezoid(x, taeda.ones(3))
