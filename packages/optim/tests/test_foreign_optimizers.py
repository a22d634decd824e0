"""Optimizers as others write them against PyTorch's base class: own steps, options, states, old idioms."""

import copy
import math

import numpy as np
import pytest

import taeda_optim as optim
from taeda_optim.optimizer import Optimizer, required
from taeda_registry.slots import tensor as torch


class Lion(Optimizer):
    """In the manner of Chen et al., 2023, as many repositories have it."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        if lr < 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        defaults = {"lr": lr, "betas": betas, "weight_decay": weight_decay}
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.data.mul_(1 - group["lr"] * group["weight_decay"])
                grad = p.grad
                state = self.state[p]
                if len(state) == 0:
                    state["exp_avg"] = torch.zeros_like(p)
                exp_avg = state["exp_avg"]
                beta1, beta2 = group["betas"]
                update = exp_avg * beta1 + grad * (1 - beta1)
                p.add_(update.sign_(), alpha=-group["lr"])
                exp_avg.mul_(beta2).add_(grad, alpha=1 - beta2)
        return loss


class OldBelief(Optimizer):
    """In the manner of AdaBelief's first releases: ``required``, ``__setstate__``, steps counted in tensors."""

    def __init__(self, params, lr=required, betas=(0.9, 0.999), eps=1e-16):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("amsgrad", False)

    def reset(self):
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["step"] = torch.tensor(0.0)

    def step(self, closure=None):
        loss = None if closure is None else closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                grad = p.grad.data
                state = self.state[p]
                if len(state) == 0:
                    state["step"] = torch.tensor(0.0)
                    state["exp_avg"] = torch.zeros_like(p.data)
                    state["exp_avg_var"] = torch.zeros_like(p.data)
                exp_avg, exp_avg_var = state["exp_avg"], state["exp_avg_var"]
                beta1, beta2 = group["betas"]
                state["step"] += 1
                exp_avg.mul_(beta1).add_(grad, alpha=1 - beta1)
                residual = grad - exp_avg
                exp_avg_var.mul_(beta2).addcmul_(residual, residual, value=1 - beta2)
                denom = exp_avg_var.add_(group["eps"]).sqrt().add_(group["eps"])
                step_size = group["lr"] / (1 - beta1 ** state["step"].item())
                p.data.addcdiv_(exp_avg, denom, value=-step_size / math.sqrt(1))
        return loss


class Lookahead(Optimizer):
    """Wraps another optimizer and shares its groups, in the manner of timm."""

    def __init__(self, base_optimizer, alpha=0.5, k=2):
        self._base_optimizer = base_optimizer
        defaults = {"lookahead_alpha": alpha, "lookahead_k": k, "lookahead_step": 0}
        self.param_groups = base_optimizer.param_groups
        self.defaults = {**base_optimizer.defaults, **defaults}
        self.state = base_optimizer.state
        self._init_hooks()
        for name, default in defaults.items():
            for group in self._base_optimizer.param_groups:
                group.setdefault(name, default)

    @torch.no_grad()
    def step(self, closure=None):
        loss = self._base_optimizer.step(closure)
        for group in self._base_optimizer.param_groups:
            group["lookahead_step"] += 1
            if group["lookahead_step"] % group["lookahead_k"] == 0:
                for p in group["params"]:
                    state = self._base_optimizer.state[p]
                    if "lookahead_slow_buff" not in state:
                        state["lookahead_slow_buff"] = p.clone()
                    slow = state["lookahead_slow_buff"]
                    slow.add_(p - slow, alpha=group["lookahead_alpha"])
                    p.copy_(slow)
        return loss

    def state_dict(self):
        return self._base_optimizer.state_dict()


MAKERS = {
    "lion": lambda params: Lion(params, lr=0.05, weight_decay=0.01),
    "belief": lambda params: OldBelief(params, lr=0.05),
    "lookahead": lambda params: Lookahead(optim.SGD(params, lr=0.1, momentum=0.9)),
}


def train(optimizer, param, steps):
    def closure():
        optimizer.zero_grad()
        loss = ((param - 3.0) ** 2).sum()
        loss.backward()
        return loss

    return [float(optimizer.step(closure)) for _ in range(steps)]


@pytest.mark.parametrize("name", MAKERS)
def test_they_train(name, make):
    param = make[0]([0.0, 6.0])
    losses = train(MAKERS[name]([param]), param, 60)
    assert losses[-1] < 0.2 * losses[0]


@pytest.mark.parametrize("name", ["lion", "belief"])
def test_states_schedules_and_copies_serve_them(name, make):
    param = make[0]([0.0, 6.0])
    optimizer = MAKERS[name]([param])
    schedule = optim.lr_scheduler.StepLR(optimizer, 2)
    train(optimizer, param, 3)
    schedule.step()
    other_param = make[0](param.detach().tolist())
    other = MAKERS[name]([other_param])
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert type(next(iter(other.state.values())).get("step", 0)) is type(
        next(iter(optimizer.state.values())).get("step", 0)
    )
    train(optimizer, param, 4)
    train(other, other_param, 4)
    np.testing.assert_allclose(param.detach().tolist(), other_param.detach().tolist(), rtol=1e-12)
    assert optim.lr_scheduler.ExponentialLR(copy.deepcopy(optimizer), 0.9)


def test_hooks_run_once_around_steps_of_subclasses(make):
    class Noisy(Lion):
        def step(self, closure=None):
            return super().step(closure)

    param = make[0]([1.0])
    optimizer, seen = Noisy([param]), []
    optimizer.register_step_pre_hook(lambda *args: seen.append("pre"))
    handle = optim.optimizer.register_optimizer_step_post_hook(lambda *args: seen.append("all"))
    try:
        train(optimizer, param, 1)
    finally:
        handle.remove()
    train(optimizer, param, 1)
    assert seen == ["pre", "all", "pre"]


def test_hooks_see_states_come_and_go(make):
    optimizer = optim.SGD([make[0]([1.0])], lr=0.1)
    seen = []
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("before"))
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "note": 1})
    optimizer.register_load_state_dict_pre_hook(lambda o, state: {**state, "seen": True})
    optimizer.register_load_state_dict_post_hook(lambda o: seen.append("after"))
    state = optimizer.state_dict()
    assert state["note"] == 1
    optimizer.load_state_dict(state)
    assert seen == ["before", "after"]


def test_a_hook_changes_its_own_copy_of_a_loaded_state(make):
    optimizer = optim.SGD([make[0]([1.0])], lr=0.1)
    state = {**optimizer.state_dict(), "note": 1}
    optimizer.register_load_state_dict_pre_hook(lambda o, state: seen.append(state.pop("note")))
    seen = []
    for _ in range(2):
        optimizer.load_state_dict(state)
    assert seen == [1, 1] and state["note"] == 1


def test_what_a_program_keeps_by_name_among_the_states_stays(make):
    def made():
        param = make[0]([1.0, 2.0])
        return param, optim.SGD([param], lr=1.0, momentum=0.5)

    param, optimizer = made()
    param.grad = torch.ones_like(param)
    optimizer.step()
    optimizer.state["count"] = 3
    optimizer.state["means"] = {"slow": torch.ones(1)}
    state = optimizer.state_dict()
    assert sorted(state["state"], key=str) == [0, "count", "means"]
    param, optimizer = made()
    optimizer.load_state_dict(state)
    assert optimizer.state["count"] == 3 and optimizer.state["means"]["slow"].tolist() == [1]
    param.grad = torch.ones_like(param)
    optimizer.step()
    assert param.tolist() == [-0.5, 0.5]  # 1.5 times the gradient


@pytest.mark.parametrize(
    "name",
    ["SGD", "Adam", "AdamW", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "ASGD"],
)
def test_recorded_steps_can_be_differentiated(name, make):
    """The gradient of a loss after two steps by the parameters before them, against differences."""

    def after(start):
        param = start * 1.0
        optimizer = getattr(optim, name)([param], lr=0.1, differentiable=True)
        for k in (1.0, -2.0):
            param.grad = (param * k) ** 3 + 0.5
            optimizer.step()
        return (param**2).sum()

    start = make[0]([0.7, -1.3])
    after(start).backward()
    for i in range(2):
        ends = []
        for sign in (1, -1):
            moved = start.detach().clone()
            moved[i] += sign * 1e-5
            ends.append(float(after(moved.requires_grad_(True)).detach()))
        assert float(start.grad[i]) == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-4, abs=1e-6)


def test_sparse_adam_moves_only_what_gradients_hold(make):
    """Sparse gradients are given to the update itself: a leaf's ``grad`` takes dense tensors alone."""
    param, dense = make[0](np.ones((4, 2))), make[0](np.ones((2, 2)))
    # Adam adds eps at another place.
    optimizer, adam = optim.SparseAdam([param], lr=0.1, eps=0), optim.Adam([dense], lr=0.1, eps=0)
    for k in (1.0, -0.5, 2.0):
        rows = torch.tensor([[1.0, 2.0], [3.0, -4.0]], dtype=torch.float64) * k
        gradient = torch.sparse_coo_tensor(torch.tensor([[0, 2]]), rows, (4, 2))
        with torch.no_grad():
            optimizer._update(optimizer.param_groups[0], [param], [gradient])
        dense.grad = rows
        adam.step()
    np.testing.assert_allclose(param.detach()[[0, 2]].tolist(), dense.detach().tolist(), rtol=1e-12)
    assert param.detach()[[1, 3]].tolist() == [[1, 1], [1, 1]]
    param.grad = torch.ones_like(param)
    with pytest.raises(RuntimeError, match="does not support dense gradients"):
        optimizer.step()


@pytest.mark.parametrize(
    "options", [{}, {"maximize": True, "lr_decay": 0.1}, {"initial_accumulator_value": 0.5}]
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_adagrad_moves_only_what_sparse_gradients_hold(options, dtype):
    param, dense = (torch.ones(size, 2, dtype=dtype, requires_grad=True) for size in (4, 2))
    optimizer, whole = optim.Adagrad([param], lr=0.1, **options), optim.Adagrad([dense], lr=0.1, **options)
    for k in (1.0, -0.5, 2.0):
        turn = k if dtype == torch.float64 else k + 1j
        rows = torch.tensor([[1.0, 2.0], [3.0, -4.0], [0.5, 1.0]], dtype=dtype) * turn
        gradient = torch.sparse_coo_tensor(torch.tensor([[0, 2, 0]]), rows, (4, 2))
        with torch.no_grad():
            optimizer._update(optimizer.param_groups[0], [param], [gradient])
        dense.grad = torch.stack([rows[0] + rows[2], rows[1]])
        whole.step()
    np.testing.assert_allclose(param.detach()[[0, 2]].tolist(), dense.detach().tolist(), rtol=1e-12)
    assert param.detach()[[1, 3]].tolist() == [[1, 1], [1, 1]]
    assert optimizer.state[param]["step"] == 3


@pytest.mark.parametrize(
    "name",
    [
        "ASGD",
        "Adadelta",
        "Adafactor",
        "Adam",
        "AdamW",
        "Adamax",
        "Muon",
        "NAdam",
        "RAdam",
        "RMSprop",
        "Rprop",
    ],
)
def test_sparse_gradients_are_refused_before_anything_moves(name):
    params = [torch.ones(2, 2, requires_grad=True), torch.ones(4, 2, requires_grad=True)]
    optimizer = getattr(optim, name)(params, lr=0.1)
    params[0].grad = torch.ones(2, 2)
    params[1].grad = torch.sparse_coo_tensor(torch.tensor([[0]]), torch.ones(1, 2), (4, 2))
    with pytest.raises(RuntimeError, match=rf"{name} does not support sparse gradients.*\(4, 2\)"):
        optimizer.step()
    assert not optimizer.state
    assert all(p.tolist() == torch.ones(p.shape).tolist() for p in params)


def test_adagrad_has_no_weight_decay_beside_sparse_gradients():
    param = torch.ones(4, 2, requires_grad=True)
    optimizer = optim.Adagrad([param], weight_decay=0.1)
    gradient = torch.sparse_coo_tensor(torch.tensor([[0]]), torch.ones(1, 2), (4, 2))
    with pytest.raises(RuntimeError, match="weight_decay"):
        optimizer._update(optimizer.param_groups[0], [param], [gradient])


def test_tensors_by_device_and_dtype():
    group = Optimizer._group_tensors_by_device_and_dtype
    a, b, c = torch.ones(1), torch.ones(2, dtype=torch.float64), torch.ones(3)
    found = group([[a, b, c], [None, b, c]], with_indices=True)
    place = torch.device("cpu")
    assert list(found) == [(place, torch.float32), (place, torch.float64)]
    lists, indices = found[place, torch.float32]
    assert lists[0][0] is a and lists[0][1] is c and lists[1] == [None, c] and indices == [0, 2]
    assert group([[a]])[place, torch.float32][1] == []
    with pytest.raises(RuntimeError, match="as many"):
        group([[a], []])


def test_steps_that_check_for_graphs_of_calls():
    class Checked(Optimizer):
        def step(self, closure=None):
            self._cuda_graph_capture_health_check()
            self._accelerator_graph_capture_health_check()
            with torch.no_grad():
                for p in self.param_groups[0]["params"]:
                    p.sub_(p.grad)

    p = torch.ones(1, requires_grad=True)
    (p * 3).backward()
    Checked([p], {}).step()
    assert p.item() == -2


LISTS = {
    "Adadelta": ["square_avg", "acc_delta", "step"],
    "Adagrad": ["sum", "step"],
    "Adam": ["exp_avg", "exp_avg_sq", "", "step"],
    "AdamW": ["exp_avg", "exp_avg_sq", "", "step"],
    "Adamax": ["exp_avg", "exp_inf", "step"],
    "ASGD": ["mu", "ax", "eta", "step"],
    "NAdam": ["exp_avg", "exp_avg_sq", "mu_product", "step"],
    "RAdam": ["exp_avg", "exp_avg_sq", "step"],
    "RMSprop": ["square_avg", "", "", "step"],
    "Rprop": ["prev", "step_size", "step"],
    "SGD": [""],
}


def one_parameter():
    param = torch.ones(3).requires_grad_()
    param.grad = torch.ones(3)
    return param


@pytest.mark.parametrize("name", LISTS)
def test_lists_of_a_group_hold_its_states(name):
    param = one_parameter()
    optimizer = getattr(optim, name)([param, torch.ones(1).requires_grad_()], lr=0.1)
    params, grads, *lists = [[] for _ in range(2 + len(LISTS[name]))]
    has_complex = optimizer._init_group(optimizer.param_groups[0], params, grads, *lists)
    assert has_complex == ((False, False) if name == "Adagrad" else False)
    assert len(params) == 1 and params[0] is param and grads == [param.grad]
    for state, listed in zip(LISTS[name], lists, strict=True):
        assert listed == ([optimizer.state[param][state]] if state else [])


@pytest.mark.parametrize("name", LISTS)
def test_a_step_goes_over_the_lists_of_an_overriding_class(name):
    kind = getattr(optim, name)

    class Doubled(kind):
        def _init_group(self, group, params, grads, *lists):
            found = super()._init_group(group, params, grads, *lists)
            grads[:] = [grad * 2 for grad in grads]
            return found

    options = {"lr": 0.1, **({"momentum": 0.9} if name == "SGD" else {})}
    mine, plain = one_parameter(), one_parameter()
    plain.grad = plain.grad * 2
    overriding, usual = Doubled([mine], **options), kind([plain], **options)
    for _ in range(3):
        overriding.step()
        usual.step()
    np.testing.assert_allclose(mine.detach().numpy(), plain.detach().numpy(), rtol=1e-6)
    assert overriding.state[mine].keys() == usual.state[plain].keys()


def test_a_step_of_a_program_over_lists():
    class Own(optim.AdamW):
        @torch.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                lists = [[] for _ in range(6)]
                self._init_group(group, *lists)
                beta1, beta2 = group["betas"]
                optim.adamw.adamw(
                    *lists, amsgrad=group["amsgrad"], beta1=beta1, beta2=beta2, lr=group["lr"],
                    weight_decay=group["weight_decay"], eps=group["eps"], maximize=group["maximize"],
                )  # fmt: skip

    mine, plain = one_parameter(), one_parameter()
    own, usual = Own([mine]), optim.AdamW([plain])
    for _ in range(3):
        own.step()
        usual.step()
    np.testing.assert_array_equal(mine.detach().numpy(), plain.detach().numpy())
    assert own.state[mine]["step"].item() == 3


def test_optimizers_of_many_parameters_at_once():
    from taeda_optim import _multi_tensor

    for name in (
        "ASGD",
        "Adadelta",
        "Adagrad",
        "Adam",
        "AdamW",
        "Adamax",
        "NAdam",
        "RAdam",
        "RMSprop",
        "Rprop",
        "SGD",
    ):
        made, plain = (
            kind([torch.ones(2, requires_grad=True), torch.zeros(1, requires_grad=True)], lr=0.1)
            for kind in (getattr(_multi_tensor, name), getattr(optim, name))
        )
        assert made.defaults["foreach"] is True and isinstance(made, getattr(optim, name))
        for optimizer in (made, plain):
            for p in optimizer.param_groups[0]["params"]:
                p.grad = torch.full_like(p, 0.5)
            optimizer.step()
        for mine, theirs in zip(made.param_groups[0]["params"], plain.param_groups[0]["params"], strict=True):
            assert torch.allclose(mine, theirs)
    assert (
        _multi_tensor.SGD([torch.ones(1, requires_grad=True)], lr=0.1, foreach=False).defaults["foreach"]
        is False
    )


class Newer(Lion):
    """Fills in an option that states of its earlier version lack, as many do."""

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("nesterov", True)


def test_a_class_completes_older_states_when_they_are_loaded():
    weight = torch.ones(2, requires_grad=True)
    older, newer = Lion([weight], lr=0.5), Newer([weight], lr=0.1)
    assert "nesterov" not in newer.param_groups[0]
    newer.load_state_dict(older.state_dict())
    assert newer.param_groups[0]["nesterov"] and newer.param_groups[0]["lr"] == 0.5


def test_an_optimizer_is_copied_with_what_a_program_keeps_in_its_state():
    weight = torch.ones(2, requires_grad=True)
    optimizer = optim.Adam([weight])
    optimizer.state["seen"] = 3
    weight.sum().backward()
    optimizer.step()
    again = copy.deepcopy(optimizer)
    assert again.state["seen"] == 3
    again.load_state_dict(optimizer.state_dict())
    assert again.state["seen"] == 3
