"""The optimizer's own behaviour: groups, gradients, hooks, closures, errors that leave everything as it was."""

import copy
import pickle

import numpy as np
import pytest

import taeda_optim as optim
from taeda_optim.optimizer import required
from taeda_registry.slots import tensor as tt


def test_groups_have_options_of_their_own(make):
    parameter, give_grad, values = make
    a, b = parameter([1.0]), parameter([1.0])
    optimizer = optim.SGD([{"params": a}, {"params": [b], "lr": 0.5}], lr=0.1)
    give_grad(a, [1.0])
    give_grad(b, [1.0])
    optimizer.step()
    assert values(a).tolist() == [0.9]
    assert values(b).tolist() == [0.5]


def test_handles_of_hooks_can_be_stored_and_copied(make):
    parameter, give_grad, _ = make
    p = parameter([1.0])
    give_grad(p, [1.0])
    optimizer = optim.SGD([p], lr=0.1)
    handle = optimizer.register_step_post_hook(print)
    state = pickle.dumps(handle)
    again = pickle.loads(state)
    assert type(again) is type(handle) and again.id == handle.id
    again.remove()  # one of hooks of its own
    assert list(optimizer._optimizer_step_post_hooks) == [handle.id]
    copy.copy(handle).remove()
    assert not optimizer._optimizer_step_post_hooks
    later = pickle.loads(state)
    later.id += 5
    stored = pickle.loads(pickle.dumps(later))
    assert optimizer.register_step_post_hook(print).id > stored.id


def test_zero_grad_drops_or_clears(make):
    parameter, give_grad, values = make
    p = parameter([1.0])
    optimizer = optim.SGD([p])
    give_grad(p, [3.0])
    optimizer.zero_grad(set_to_none=False)
    assert values(p.grad).tolist() == [0.0]
    optimizer.zero_grad()
    assert p.grad is None


def test_closure_runs_with_recording_and_its_loss_comes_back(make):
    parameter, _, values = make
    p = parameter([2.0])
    optimizer = optim.SGD([p], lr=0.25)

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 4.0
    assert values(p).tolist() == [1.0]


def test_step_leaves_no_history(make):
    parameter, give_grad, _ = make
    p = parameter([2.0])
    give_grad(p, [1.0])
    optim.Adam([p]).step()
    assert p.is_leaf
    assert p.requires_grad


def test_hooks_run_in_order_and_can_be_removed(make):
    parameter, give_grad, _ = make
    p = parameter([2.0])
    give_grad(p, [1.0])
    optimizer = optim.SGD([p])
    seen = []
    before = optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append(("pre", o is optimizer)))
    optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append(("post", o is optimizer)))
    optimizer.step()
    before.remove()
    optimizer.step()
    assert seen == [("pre", True), ("post", True), ("post", True)]


def test_hooks_see_and_change_the_arguments_of_a_step(make):
    optimizer = optim.SGD([make[0]([1.0])], lr=0.1)
    seen = []

    def instead(o, args, kwargs):
        assert args == (optimizer, None) and kwargs == {}
        return (o, lambda: 7.0), {}

    optimizer.register_step_pre_hook(instead)
    optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append((args[0] is o, args[1]())))
    assert optimizer.step(None) == 7.0
    assert seen == [(True, 7.0)]


def test_subclass_with_its_own_step_has_hooks_too(make):
    parameter, give_grad, values = make

    class Plain(optim.Optimizer):
        def step(self, closure=None):
            with tt.no_grad():
                for group in self.param_groups:
                    for param in group["params"]:
                        param.add_(param.grad, alpha=-group["lr"])
                        self.state[param]["n"] = self.state[param].get("n", 0) + 1

    p = parameter([1.0])
    give_grad(p, [1.0])
    optimizer = Plain([p], {"lr": 0.5})
    seen = []
    optimizer.register_step_post_hook(lambda *_: seen.append(1))
    optimizer.step()
    assert values(p).tolist() == [0.5]
    assert seen == [1]
    assert optimizer.state_dict()["state"] == {0: {"n": 1}}


def test_complex_parameters(make):
    for name in ("SGD", "Adam", "RMSprop"):
        start, grad = np.array([1 + 2j, -3j]), np.array([0.5 - 1j, 2 + 0j])
        p = tt.tensor(start.tolist(), dtype=tt.complex128).requires_grad_(True)
        pair = tt.tensor([[1.0, 2.0], [0.0, -3.0]], dtype=tt.float64).requires_grad_(True)
        one, two = getattr(optim, name)([p], lr=0.1), getattr(optim, name)([pair], lr=0.1)
        for _ in range(3):
            p.grad = tt.tensor(grad.tolist(), dtype=tt.complex128)
            pair.grad = tt.tensor([[0.5, -1.0], [2.0, 0.0]], dtype=tt.float64)
            one.step()
            two.step()
        got, expected = np.array(p.detach().tolist()), np.array(pair.detach().tolist())
        np.testing.assert_allclose(np.stack([got.real, got.imag], -1), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("error", "text", "build"),
    [
        (TypeError, "found one Tensor", lambda p: optim.SGD(p)),
        (TypeError, "must hold Tensors, found int", lambda p: optim.SGD([p, 3])),
        (TypeError, "must have an order", lambda p: optim.SGD([{"params": {p}}])),
        (ValueError, "is empty", lambda p: optim.SGD([])),
        (ValueError, "more than once", lambda p: optim.SGD([{"params": [p]}, {"params": [p]}])),
        (ValueError, "leaf", lambda p: optim.SGD([p * 2])),
        (ValueError, "'lr' must be at least 0", lambda p: optim.SGD([p], lr=-1)),
        (TypeError, "'lr' must be a number, found '0.1'", lambda p: optim.SGD([p], lr="0.1")),
        (ValueError, "'nesterov' needs", lambda p: optim.SGD([p], nesterov=True)),
        (ValueError, r"'betas\[1\]'", lambda p: optim.Adam([p], betas=(0.9, 1.0))),
        (TypeError, "beta", lambda p: optim.Adam([p], beta=1)),
        (RuntimeError, "differentiable", lambda p: optim.Adam([p], differentiable=True, fused=True)),
        (RuntimeError, "foreach", lambda p: optim.SGD([p], foreach=True, fused=True)),
        (ValueError, "1-element", lambda p: optim.SGD([p], lr=tt.zeros(2))),
        (ValueError, "only supports 2D", lambda p: optim.Muon([p])),
        (ValueError, "adjust_lr_fn", lambda p: optim.Muon([tt.zeros(2, 2)], adjust_lr_fn="other")),
        (ValueError, "beta2_decay", lambda p: optim.Adafactor([p], beta2_decay=1)),
        (ValueError, "parameter groups", lambda p: optim.LBFGS([{"params": [p]}, {"params": [tt.zeros(1)]}])),
        (ValueError, "required option", lambda p: optim.Optimizer([p], {"lr": required})),
        (ValueError, "names some parameters", lambda p: optim.SGD([("a", p), tt.zeros(1)])),
    ],
)
def test_wrong_arguments(error, text, build, make):
    with pytest.raises(error, match=text):
        build(make[0]([1.0]))


@pytest.mark.parametrize("cls", [optim.SGD, optim.Adam])
def test_a_parameter_that_stands_twice_in_a_group_is_updated_twice(cls, make):
    p, q = make[0]([1.0, 2.0]), make[0]([3.0])
    with pytest.warns(UserWarning, match="more than once in one group"):
        optimizer = cls([p, q, p], lr=0.5)
    alone = make[0]([1.0, 2.0])
    reference = cls([alone], lr=0.5)
    (p.sum() + q.sum()).backward()
    alone.sum().backward()
    optimizer.step()
    reference.step()
    reference.step()
    assert tt.equal(p, alone) and q.item() < 3.0
    optimizer.load_state_dict(optimizer.state_dict())
    optimizer.step()
    reference.step()
    reference.step()
    assert tt.equal(p, alone)


def test_failed_group_is_not_added(make):
    parameter, _, _ = make
    p = parameter([1.0])
    optimizer = optim.SGD([p])
    with pytest.raises(ValueError, match="more than once"):
        optimizer.add_param_group({"params": [parameter([1.0]), p]})
    assert len(optimizer.param_groups) == 1


def test_given_dicts_become_the_groups(make):
    """Programs keep them, and change or copy what the optimizer made of them."""
    parameter, give_grad, values = make
    a, b = parameter([1.0]), parameter([1.0])
    first, second = {"params": filter(lambda p: True, iter([a])), "lr": 0.5}, {"params": b}
    groups = [first]
    optimizer = optim.SGD(groups, lr=0.1)
    optimizer.add_param_group(second)
    assert optimizer.param_groups is not groups
    assert optimizer.param_groups[0] is first
    assert optimizer.param_groups[1] is second
    assert first["params"] == [a]
    assert second["params"] == [b]
    assert (first["lr"], second["lr"], second["momentum"]) == (0.5, 0.1, 0)
    copy.deepcopy(groups)
    second["lr"] = 0.25
    give_grad(b, [1.0])
    optimizer.step()
    assert values(b).tolist() == [0.75]
    refused = {"params": [parameter([1.0]), a]}
    with pytest.raises(ValueError, match="more than once"):
        optimizer.add_param_group(refused)
    assert list(refused) == ["params"]


def test_text_lists_groups_and_options(make):
    text = repr(optim.SGD([make[0]([1.0])], lr=0.1))
    assert text.startswith("SGD (\nParameter Group 0\n")
    assert "    lr: 0.1" in text


def test_copies_are_independent(make):
    parameter, give_grad, values = make
    p = parameter([1.0])
    give_grad(p, [1.0])
    optimizer = optim.Adam([p], lr=0.1)
    optimizer.step()
    twin = copy.deepcopy(optimizer)
    q = twin.param_groups[0]["params"][0]
    give_grad(q, [1.0])
    twin.step()
    assert twin.state[q]["step"] == 2
    assert next(iter(optimizer.state.values()))["step"] == 1
    assert values(q)[0] < values(p)[0]


def test_a_line_search_keeps_to_the_evaluations_that_are_left(make):
    param = make[0]([1.0])
    optimizer = optim.LBFGS([param], lr=0.1, max_iter=4, max_eval=6, line_search_fn="strong_wolfe")
    calls = []

    def closure():
        optimizer.zero_grad()
        # A gradient that does not belong to its loss: no step along it lowers the loss.
        ((param - 3.0) ** 2).sum().backward()
        calls.append(1)
        return 1.0 + len(calls)

    optimizer.step(closure)
    assert len(calls) <= 7


def test_the_state_of_a_search_has_a_place_for_every_remembered_step(make):
    param = make[0]([3.0, -2.0])
    optimizer = optim.LBFGS([param], max_iter=3, history_size=7)

    def closure():
        param.grad = tt.tensor([2.0, 20.0], dtype=param.dtype) * param.detach()
        return float((tt.tensor([1.0, 10.0], dtype=param.dtype) * param.detach() ** 2).sum())

    optimizer.step(closure)
    kept = optimizer.state[param]["al"]
    known = len(optimizer.state[param]["old_dirs"])
    assert len(kept) == 7 and 0 < known < 7
    assert [each is None for each in kept] == [False] * known + [True] * (7 - known)


@pytest.mark.parametrize("slopes", [(0.0, 0.0), (-1.0, -1.0)])
def test_a_cubic_without_curvature_has_its_minimum_in_the_middle(slopes):
    from taeda_optim.lbfgs import cubic_minimum

    losses = (1.0, 1.0 + slopes[0])
    assert cubic_minimum(0.0, losses[0], slopes[0], 1.0, losses[1], slopes[1]) == 0.5
    assert cubic_minimum(1.0, 1.0, -1.0, 1.0, 1.0, -1.0) == 1.0


def test_groups_stand_apart_in_the_text(make):
    first, second = make[0]([1.0]), make[0]([2.0])
    lines = repr(optim.SGD([{"params": [first]}, {"params": [second], "lr": 0.5}], lr=0.1)).splitlines()
    assert (
        lines[lines.index("Parameter Group 1") - 1] == ""
        and "" not in lines[: lines.index("Parameter Group 1") - 1]
    )


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_sgd_goes_on_with_parameters_that_were_given_another_dtype(dtype):
    params = [tt.ones(2, requires_grad=True) for _ in range(2)]
    optimizer = optim.SGD(params, lr=0.5, momentum=0.5)
    for _ in range(2):
        for p in params:
            p.grad = tt.ones(2).to(p.dtype)
        optimizer.step()
        params[1].data = params[1].data.to(getattr(tt, dtype))
    assert params[0].tolist() == params[1].tolist() == [-0.25, -0.25]
    assert optimizer.state[params[1]]["momentum_buffer"].tolist() == [1.5, 1.5]


@pytest.mark.parametrize("kind", ["RMSprop", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop", "SGD"])
def test_rates_that_are_tensors_or_arrays(kind):
    found = []
    for lr in (0.25, tt.tensor(0.25), np.array(0.25), np.float32(0.25)):
        p = tt.ones(2, requires_grad=True)
        optimizer = getattr(optim, kind)([p], lr=lr, foreach=True)
        p.grad = tt.ones(2)
        optimizer.step()
        found.append(p.tolist())
    assert all(each == found[0] for each in found)


@pytest.mark.parametrize("fails", [False, True])
def test_a_step_on_other_parameters_and_states_leaves_the_own_ones(fails):
    def trained(steps):
        params = {"a": tt.ones(2, requires_grad=True), "b": tt.full((3,), 2.0, requires_grad=True)}
        optimizer = optim.Adam([{"params": [params["a"]]}, {"params": [params["b"]], "lr": 0.5}], lr=0.25)
        for step in range(steps):
            for p in params.values():
                p.grad = tt.full_like(p.detach(), step + 1.0)
            optimizer.step()
        return params, optimizer

    params, optimizer = trained(1)
    others, model = trained(2)
    state, before = model.state_dict(), copy.deepcopy(optimizer.state_dict())
    values, lists = (
        [p.tolist() for p in params.values()],
        [group["params"] for group in optimizer.param_groups],
    )
    for p in others.values():
        p.grad = tt.full_like(p.detach(), 3.0)
    try:
        with optim.swap_in_optimizer_params_and_state(optimizer, others, state):
            optimizer.step()
            if fails:
                raise KeyError("in the context")
    except KeyError:
        assert fails
    expected, _ = trained(3)
    assert [p.tolist() for p in others.values()] == [p.tolist() for p in expected.values()]
    assert [p.tolist() for p in params.values()] == values
    assert all(group["params"] is kept for group, kept in zip(optimizer.param_groups, lists, strict=True))
    assert repr(optimizer.state_dict()) == repr(before)


def test_other_parameters_must_be_as_many():
    p = tt.ones(2, requires_grad=True)
    optimizer = optim.SGD([p], lr=0.5)
    with (
        pytest.raises(ValueError, match="'swapin_parameters' has 0 parameters, expected 1"),
        optim.swap_in_optimizer_params_and_state(optimizer, {}, optimizer.state_dict()),
    ):
        pass
    with (
        pytest.raises(ValueError, match="'swapin_optim_state' has 0 groups"),
        optim.swap_in_optimizer_params_and_state(optimizer, {"p": p}, {"state": {}, "param_groups": []}),
    ):
        pass
    assert optimizer.param_groups[0]["params"] == [p]


def test_a_sparse_gradient_is_refused_before_any_group_moves():
    for kind in (optim.Adam, optim.AdamW, optim.RMSprop, optim.NAdam, optim.Adamax):
        dense, sparse = tt.ones(2, 2, requires_grad=True), tt.ones(2, 2, requires_grad=True)
        optimizer = kind([{"params": [dense]}, {"params": [sparse]}])
        dense.grad, sparse.grad = tt.ones(2, 2), tt.ones(2, 2).to_sparse()
        with pytest.raises(RuntimeError, match="sparse gradients"):
            optimizer.step()
        assert (dense == 1).all() and not optimizer.state
