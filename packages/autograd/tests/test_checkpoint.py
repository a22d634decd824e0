"""Parts that are computed again in the backward pass: the same gradients, less memory, clear errors."""

import pytest

import taeda_tensor_core as tc
from taeda_autograd import checkpoint as cp
from taeda_autograd import grad
from taeda_tensor_core import amp
from taeda_testing.settling import without_collector


@pytest.fixture
def weights():
    tc.manual_seed(0)
    return [tc.randn(4, 4).requires_grad_() for _ in range(3)]


def block(x, *weights):
    for weight in weights:
        x = tc.ops.dropout((x @ weight).tanh(), 0.5, True)
    return x


def gradients(function, weights, x):
    tc.manual_seed(5)
    found = grad(function(x).sum(), [x, *weights])
    return found, tc.rand(1)


@pytest.mark.parametrize("reentrant", [False, True])
def test_gradients_and_random_numbers_are_those_without(weights, reentrant):
    x = tc.randn(3, 4).requires_grad_()
    tc.manual_seed(5)
    block(x, *weights).sum().backward()
    expected, after = [t.grad.clone() for t in (x, *weights)], tc.rand(1)
    for t in (x, *weights):
        t.grad = None
    tc.manual_seed(5)
    cp.checkpoint(lambda y: block(y, *weights), x, use_reentrant=reentrant).sum().backward()
    assert all((a == t.grad).all() for a, t in zip(expected, (x, *weights), strict=True))
    assert (after == tc.rand(1)).all()


def test_nested_sequential_and_autocast(weights):
    x = tc.randn(3, 4).requires_grad_()
    expected, after = gradients(lambda y: block(y, *weights), weights, x)

    def nested(y):
        inner = cp.checkpoint(block, y, weights[0], use_reentrant=False)
        return block(inner, *weights[1:])

    ways = [
        lambda y: cp.checkpoint(nested, y, use_reentrant=False),
        lambda y: cp.checkpoint_sequential(
            [lambda z, w=w: block(z, w) for w in weights], 2, y, use_reentrant=False
        ),
    ]
    for way in ways:
        found, then = gradients(way, weights, x)
        assert all((a == b).all() for a, b in zip(expected, found, strict=True)) and (after == then).all()
    with amp.autocast("cpu"):
        low, _ = gradients(lambda y: block(y, *weights), weights, x)
        again, _ = gradients(lambda y: cp.checkpoint(block, y, *weights, use_reentrant=False), weights, x)
    assert all((a == b).all() for a, b in zip(low, again, strict=True))


def test_memory_is_kept_for_inputs_only():
    x = tc.ones(1000, 100).requires_grad_()

    def deep(y):
        for _ in range(10):
            y = y.sin()
        return y

    def live(function):
        with without_collector():
            before = tc._C._live_bytes()
            kept = function(x)
            return tc._C._live_bytes() - before, kept

    whole, _ = live(deep)
    part, _ = live(lambda y: cp.checkpoint(deep, y, use_reentrant=False))
    assert part <= whole / 4


def test_backward_twice_and_keyword_arguments(weights):
    x = tc.randn(2, 4).requires_grad_()
    y = cp.checkpoint(lambda a, *, w: (a @ w).sin(), x, w=weights[0], use_reentrant=False).sum()
    y.backward(retain_graph=True)
    first = weights[0].grad.clone()
    y.backward()
    assert (weights[0].grad == 2 * first).all()


def test_early_stop_leaves_out_what_is_not_needed():
    x = tc.ones(3).requires_grad_()
    calls = []

    def function(y):
        y = y.exp()
        calls.append("after")
        return y

    for stop, expected in ((True, 1), (False, 2)):
        calls.clear()
        with cp.set_checkpoint_early_stop(stop):
            out = cp.checkpoint(function, x, use_reentrant=False)
        out.sum().backward()
        assert len(calls) == expected


def test_a_part_that_does_something_else_is_found_out():
    x = tc.ones(3).requires_grad_()
    shapes = iter((3, 2))

    def other(y):
        return (y[: next(shapes)] * 1.5).sin()

    with pytest.raises(cp.CheckpointError, match="different metadata"):
        cp.checkpoint(other, x, use_reentrant=False).sum().backward()
    turns = iter((True, False))

    def fewer(y):
        return (y * y).sin() if next(turns) else y.sin()

    with pytest.raises(
        cp.CheckpointError, match=r"different number of tensors(.|\n)*Operators of the forward: .*mul"
    ):
        cp.checkpoint(fewer, x, use_reentrant=False, debug=True).sum().backward()


def test_selected_operators_are_not_computed_again(weights):
    x = tc.randn(2, 4).requires_grad_()
    seen = []

    def policy(context, op, *args, **kwargs):
        seen.append((context.is_recompute, op.name()))
        save = op.name().endswith("::mm")
        return cp.CheckpointPolicy.MUST_SAVE if save else cp.CheckpointPolicy.PREFER_RECOMPUTE

    expected = grad((x @ weights[0]).sin().sum(), weights[:1])
    out = cp.checkpoint(
        lambda y: (y @ weights[0]).sin(),
        x,
        use_reentrant=False,
        context_fn=lambda: cp.create_selective_checkpoint_contexts(policy),
    )
    assert (grad(out.sum(), weights[:1])[0] == expected[0]).all()
    assert {flag for flag, _ in seen} == {True, False}


def test_wrong_calls():
    x = tc.ones(1).requires_grad_()
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        cp.checkpoint(lambda y: y * 1, x)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: other"):
        cp.checkpoint(lambda y: y, x, use_reentrant=True, other=1)
    with pytest.raises(ValueError, match="determinism_check should be one of"):
        cp.checkpoint(lambda y: y, x, use_reentrant=False, determinism_check="hard")
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        cp.checkpoint(lambda y: y * 1, tc.ones(1), use_reentrant=True)
