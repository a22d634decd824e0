"""taeda-optim against PyTorch's own database of optimizers: every configuration, 200 steps, states both ways."""

import copy
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the reference is PyTorch")

sys.path.insert(0, str(Path(__file__).parent))
from op_samples import database  # noqa: E402

import taeda  # noqa: E402

SEED = 20261122
STEPS = 200
SHAPES = [(), (3,), (4, 5), (2, 3, 4)]
# Muon rounds its matrices to bfloat16, where products of different libraries may differ in the last place.
TOLERANCE = {"Muon": 2e-2}


OPTIMIZERS = database("common_optimizers", "optim_db")


def configurations():
    """Options of every optimizer in the database; those for groups are dealt out where groups are made."""
    for info in OPTIMIZERS:
        for i, case in enumerate(info.optim_inputs_func(device="cpu")):
            yield pytest.param(
                info.optim_cls.__name__, case.kwargs, id=f"{info.optim_cls.__name__}-{i}-{case.desc}"
            )


def convert(value):
    """An option for taeda."""
    if isinstance(value, torch.Tensor):
        return taeda.tensor(value.tolist(), dtype=getattr(taeda, str(value.dtype)[6:]))
    if isinstance(value, (tuple, list)):
        return type(value)(convert(item) for item in value)
    return value


class Pair:
    """The same parameters in both libraries, pulled towards the same goals, another one at each step.

    With one goal the steps of RMSprop around it would depend on the last place of every number.
    """

    def __init__(self, name, options, dtype="float64"):
        self.dtype = dtype
        rng = np.random.default_rng(SEED)
        shapes = [(4, 5), (6, 3)] if name == "Muon" else SHAPES
        start = [rng.standard_normal(shape) for shape in shapes]
        self.goals = [rng.standard_normal((STEPS, *shape)) for shape in shapes]
        self.moving, self.at = name != "LBFGS", 0
        # Steps that are recorded need parameters that are not leaves; these follow the steps of unrecorded ones.
        self.options = {**options, "differentiable": False} if "differentiable" in options else dict(options)
        self.theirs = [torch.tensor(p, dtype=getattr(torch, dtype)).requires_grad_() for p in start]
        self.mine = [
            taeda.tensor(p.tolist(), dtype=getattr(taeda, dtype)).reshape(p.shape).requires_grad_()
            for p in start
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.reference = getattr(torch.optim, name)(self.theirs, **copy.deepcopy(self.options))
        self.optimizer = getattr(taeda.optim, name)(
            self.mine, **{k: convert(v) for k, v in self.options.items()}
        )

    @staticmethod
    def closure(space, params, goals, optimizer):
        def run():
            optimizer.zero_grad()
            loss = 0.0
            for param, goal in zip(params, goals, strict=True):
                goal = space.tensor(goal.tolist(), dtype=param.dtype).reshape(goal.shape)
                gap = param - goal
                loss = loss + (gap * gap).sum() + 0.1 * (gap.cos()).sum()
            loss.backward()
            return loss

        return run

    def step(self):
        goals = [goal[self.at] for goal in self.goals]
        self.at += self.moving
        self.reference.step(self.closure(torch, self.theirs, goals, self.reference))
        self.optimizer.step(self.closure(taeda, self.mine, goals, self.optimizer))

    def compare(self, tolerance):
        for a, b in zip(self.mine, self.theirs, strict=True):
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("name", "options"), list(configurations()))
def test_two_hundred_steps(name, options):
    if name == "SparseAdam":
        with pytest.raises(RuntimeError, match="SparseAdam does not support dense gradients"):
            Pair(name, options).optimizer.step(lambda: None) or grads_given(name, options)
        return
    pair = Pair(name, options)
    tolerance = TOLERANCE.get(name, 1e-6)
    for k in range(30 if name == "LBFGS" else STEPS):
        pair.step()
        if k in (0, 10, 199):
            pair.compare(tolerance)
    pair.compare(tolerance)


@pytest.mark.parametrize(("name", "options"), list(configurations()))
def test_steps_in_float32(name, options):
    """Fewer than in float64: what rounding does grows from step to step, in PyTorch too."""
    if name == "SparseAdam":
        pytest.skip("no step over dense gradients")
    pair = Pair(name, options, "float32")
    for _ in range(3 if name == "LBFGS" else 10):
        pair.step()
    assert all(p.dtype is taeda.float32 for p in pair.mine)
    pair.compare(TOLERANCE.get(name, 1e-4))


def grads_given(name, options):
    """A step over dense gradients."""
    pair = Pair(name, options)
    for param in pair.mine:
        param.grad = taeda.ones_like(param)
    pair.optimizer.step()


@pytest.mark.parametrize(("name", "options"), list(configurations()))
def test_states_go_both_ways(name, options):
    if name in ("SparseAdam", "LBFGS"):
        pytest.skip(
            "no state over dense gradients" if name == "SparseAdam" else "the state is that of a search"
        )
    first, second = Pair(name, options), Pair(name, options)
    for _ in range(5):
        first.step()
        second.step()
    ours, others = first.optimizer.state_dict(), first.reference.state_dict()
    assert ours["state"].keys() == others["state"].keys()
    for number, state in others["state"].items():
        assert set(ours["state"][number]) == set(state)
        for key, value in state.items():
            mine = ours["state"][number][key]
            assert isinstance(mine, taeda.Tensor) == isinstance(value, torch.Tensor), key
    assert [sorted(g) for g in ours["param_groups"]] == [sorted(g) for g in others["param_groups"]]
    # Each library goes on from the other's state as the other does.
    first.optimizer.load_state_dict(to_taeda(second.reference.state_dict()))
    first.reference.load_state_dict(to_torch(second.optimizer.state_dict()))
    for _ in range(5):
        first.step()
    first.compare(TOLERANCE.get(name, 1e-6))


def to_taeda(value):
    if isinstance(value, dict):
        return {key: to_taeda(item) for key, item in value.items()}
    if isinstance(value, list):
        return [to_taeda(item) for item in value]
    return convert(value)


def to_torch(value):
    if isinstance(value, dict):
        return {key: to_torch(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(to_torch(item) for item in value)
    if isinstance(value, taeda.Tensor):
        return torch.tensor(value.tolist(), dtype=getattr(torch, str(value.dtype)[6:])).reshape(
            tuple(value.shape)
        )
    return value


@pytest.mark.parametrize("info", OPTIMIZERS, ids=lambda info: info.optim_cls.__name__)
def test_wrong_options_are_refused(info):
    """What PyTorch refuses is refused with an error of the same class."""
    for case in info.optim_error_inputs_func(device="cpu", dtype=torch.float32):
        wrong = case.optimizer_error_input
        params = wrong.params
        if not isinstance(params, (list, tuple)) or any(not isinstance(p, torch.Tensor) for p in params):
            continue
        if "differentiable" in wrong.desc or any(p.layout is not torch.strided for p in params):
            continue
        given = [convert(p.detach()).requires_grad_() for p in params]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                getattr(torch.optim, info.optim_cls.__name__)(params, **wrong.kwargs)
            except (ValueError, RuntimeError, TypeError) as error:
                expected = type(error)
            else:
                continue
        with pytest.raises(expected):
            getattr(taeda.optim, info.optim_cls.__name__)(
                given, **{k: convert(v) for k, v in wrong.kwargs.items()}
            )
