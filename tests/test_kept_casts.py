"""Casts of parameters that autocast keeps: made once, with and without a graph, until the parameter changes."""

import pytest

import taeda
from taeda.utils._python_dispatch import TorchDispatchMode


class Casts(TorchDispatchMode):
    """Counts casts."""

    made = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.made += "_to_copy" in str(function)
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("graph", [True, False])
def test_a_parameter_is_cast_once_until_it_changes(graph):
    weight, x = taeda.rand(4, 4).requires_grad_(), taeda.rand(4, 4).bfloat16()
    with taeda.set_grad_enabled(graph), taeda.autocast("cpu"), Casts() as casts:
        first = x @ weight
        assert taeda.equal(x @ weight, first) and casts.made == 1
        with taeda.no_grad():
            weight.mul_(2)
        assert taeda.equal(x @ weight, 2 * first) and casts.made == 2


def test_a_cast_without_a_graph_is_not_taken_for_one_with():
    weight, x = taeda.rand(4, 4).requires_grad_(), taeda.rand(4, 4)
    with taeda.autocast("cpu"):
        with taeda.no_grad():
            x @ weight
        (x @ weight).sum().backward()
    assert weight.grad is not None and weight.grad.shape == (4, 4)


def test_nothing_is_kept_where_that_is_not_wanted():
    weight, x = taeda.rand(4, 4).requires_grad_(), taeda.rand(4, 4).bfloat16()
    with taeda.autocast("cpu", cache_enabled=False), Casts() as casts:
        x @ weight
        x @ weight
    assert casts.made == 2
