"""Views made while nothing is recorded: they require gradients as their base does, and lead to none."""

import pytest

import taeda_autograd as autograd
from taeda_registry.slots import tensor as tt

WAYS = {
    "slice": lambda t: t[:2],
    "view": lambda t: t.view(1, 4),
    "expand": lambda t: t.expand(2, 4),
    "unbind": lambda t: t.view(2, 2).unbind()[0],
    "view of a view": lambda t: t[1:][:2],
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
@pytest.mark.parametrize("kind", ["leaf", "result"])
def test_a_view_requires_gradients_as_its_base_does(way, kind):
    w = tt.ones(4, requires_grad=True)
    base = w if kind == "leaf" else w * 2
    with tt.no_grad():
        shown = way(base)
        assert not (shown + 1).requires_grad
    assert shown.requires_grad and shown.is_leaf and shown.grad_fn is None


def test_what_is_computed_from_it_is_recorded_and_ends_there():
    w = tt.ones(4, requires_grad=True)
    with tt.no_grad():
        shown = w[:2]
    total = (shown * 3).sum()
    assert total.requires_grad
    assert total.grad_fn.next_functions[0][0].next_functions[0] == (None, 0)
    total.backward()
    assert w.grad is None and shown.grad is None


def test_it_is_unreachable_for_grad():
    w = tt.ones(4, requires_grad=True)
    with tt.no_grad():
        shown = w[:2]
    total = (shown * w[:2]).sum()
    first, second = autograd.grad(total, (shown, w), allow_unused=True)
    assert first is None and second.tolist() == [1.0, 1.0, 0.0, 0.0]


def test_what_shows_other_numbers_does_not():
    w = tt.ones(4, requires_grad=True)
    with tt.no_grad():
        assert not w.view(tt.int32).requires_grad
        assert not w.detach()[:1].requires_grad
        assert not w.data[:1].requires_grad


def test_a_view_made_before_its_base_required_gradients():
    w = tt.ones(4)
    shown = w[:2]
    assert not shown.requires_grad
    w.requires_grad_()
    assert shown.requires_grad and shown.grad_fn is None


def test_a_write_that_would_be_recorded_is_refused():
    w = tt.ones(4, requires_grad=True)
    with tt.no_grad():
        shown = w[:2]
        shown.add_(1)
    with pytest.raises(RuntimeError, match="view"):
        shown.add_(1)
    assert w.tolist() == [2.0, 2.0, 1.0, 1.0]


def test_views_inside_of_a_function():
    """They are not saved as intermediates that a second derivative would miss silently."""

    class Part(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            part = x[:2]
            assert part.requires_grad
            return part * 2

        @staticmethod
        def backward(ctx, grad):
            return tt.cat([grad * 2, tt.zeros(2)])

    w = tt.ones(4, requires_grad=True)
    Part.apply(w).sum().backward()
    assert w.grad.tolist() == [2.0, 2.0, 0.0, 0.0]
