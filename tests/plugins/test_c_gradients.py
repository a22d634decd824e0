"""Derivatives of operators that C defines, checked against central differences; views that C makes, in graphs."""

from __future__ import annotations

import numpy as np
import pytest
from strangers import compile_plugin

import taeda
from taeda.autograd import gradcheck, gradgradcheck


@pytest.fixture(scope="module", autouse=True)
def operators(tmp_path_factory):
    # Names of their own: in one process with the core's tests those of the sources are taken.
    for name in ("operators", "probe"):
        package = f'-DPACKAGE="c{name}"'
        taeda.backends.load(compile_plugin(name, tmp_path_factory.mktemp(name), package))


def tracked(*shape, seed=0):
    numbers = np.random.default_rng(seed).uniform(-2, 2, shape)
    return taeda.from_numpy(numbers).requires_grad_()


def test_a_derivative_in_c():
    cube = taeda.ops.coperators.cube
    x = tracked(2, 3)
    assert gradcheck(lambda x: cube(x, 1.5), (x,))
    assert gradgradcheck(lambda x: cube(x, 1.5), (x,))
    y = cube(x.T[::-1], 2.0)
    assert y.grad_fn.name() == "coperators::cubeBackward"
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 6 * x.detach().numpy() ** 2)


def test_gradients_of_a_list_of_arguments():
    totals = taeda.ops.coperators.totals
    items = [tracked(3, seed=i) for i in range(3)]
    assert gradcheck(lambda *items: totals(items, by=-2.5), items)
    assert gradcheck(lambda *items: totals(items, by=-2.5)[1], items)
    total, scaled = totals([items[0], taeda.ones(3, dtype=taeda.float64)])
    assert scaled.requires_grad
    total.sum().backward()
    assert items[0].grad.tolist() == [1, 1, 1]


def test_a_form_in_terms_of_others_is_differentiated_by_what_it_calls():
    x, weight = tracked(2, 3), tracked(3, seed=1)
    assert gradcheck(taeda.ops.coperators.weighed, (x, weight))
    assert gradgradcheck(taeda.ops.coperators.weighed, (x, weight))


def test_an_error_in_a_derivative_comes_out_of_backward():
    x = tracked(2)
    y = taeda.ops.coperators.halved(x)
    with pytest.raises(ZeroDivisionError, match="poly::halved: nobody can divide here"):
        y.sum().backward()
    assert x.grad is None


def test_an_operator_without_derivative_says_so():
    x = tracked(2)
    y = taeda.ops.coperators.odd(x, 9)
    with pytest.raises(NotImplementedError, match="coperators::odd: this operator has no derivative"):
        y.sum().backward()


def test_no_grad_records_nothing():
    with taeda.no_grad():
        assert not taeda.ops.coperators.cube(tracked(2)).requires_grad


def test_a_view_from_c_stands_in_the_graph():
    x = tracked(6)
    assert gradcheck(lambda x: taeda.ops.cprobe.view(x * 2, [2, 2], [3, 1], 1), (x,))
    base = x * 1
    taeda.ops.cprobe.view(base, [2], [1], 0).mul_(10)
    base.sum().backward()
    assert x.grad.tolist() == [10, 10, 1, 1, 1, 1]


def test_writing_from_c_is_noticed_by_backward():
    x = tracked(3)
    y = x * 1
    z = y.exp()
    with taeda.no_grad():
        taeda.ops.cprobe.scribble(z)
    with pytest.raises(RuntimeError, match=r"exp.*version|version.*exp"):
        z.sum().backward()
    with pytest.raises(RuntimeError, match="leaf"):
        taeda.ops.cprobe.scribble(x)


def test_lists_that_c_takes_apart_and_joins_stand_in_the_graph():
    x = tracked(3)
    assert taeda.ops.cprobe.shuffle(x, 2).requires_grad
    taeda.ops.cprobe.shuffle(x, 2).sum().backward()
    assert x.grad.tolist() == [1, 1, 1]


RETAINED, GRADIENT, OUTPUT, ITEMS = range(4)


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("how", [RETAINED, GRADIENT, OUTPUT, ITEMS])
def test_a_derivative_that_stores_what_it_was_lent_crashes_nobody(how, held):
    lender = taeda.ops.coperators.lender
    expected = np.array([1.0, 2.0, 3.0])
    for _ in range(3):
        x, items = tracked(3), [tracked(3, seed=1), tracked(3, seed=2)]
        y = lender(x, items, how)
        seed = taeda.from_numpy(expected.copy())
        # References of others may hide that one is missing: then it is added.
        kept = (y, seed) if held else ()
        try:
            y.backward(seed)
        except TypeError as error:
            assert how != RETAINED and "an argument without a reference of its own" in str(error)
            continue
        finally:
            del y, seed
        del kept
        for item in items:
            np.testing.assert_array_equal(item.grad.numpy(), expected)
        if how != OUTPUT:
            np.testing.assert_array_equal(x.grad.numpy(), expected)
