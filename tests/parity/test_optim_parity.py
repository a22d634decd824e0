"""taeda-optim against PyTorch: parameters after 20 steps, learning rates, momentum, defaults, and states both ways."""

import copy
import inspect

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the reference is PyTorch")

import taeda_optim as optim  # noqa: E402
from taeda_registry.resolution import resolve  # noqa: E402
from taeda_registry.slots import tensor as tt  # noqa: E402

resolve("autograd")
SEED = 20240502
STEPS = 20
SHAPES = [(), (3,), (4, 5)]
OPTIMIZERS = [
    ("SGD", {}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"lr": 0.1, "amsgrad": True, "weight_decay": 0.1, "maximize": True}),
    ("Adam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("AdamW", {}),
    ("AdamW", {"lr": 0.1, "amsgrad": True, "betas": (0.5, 0.7)}),
    ("Adamax", {"lr": 0.1, "weight_decay": 0.1, "maximize": True}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    ("RAdam", {"lr": 0.1, "weight_decay": 0.1}),
    ("RAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.1}),
    ("Adadelta", {"weight_decay": 0.1, "maximize": True}),
    ("RMSprop", {"weight_decay": 0.1}),
    ("RMSprop", {"momentum": 0.9, "centered": True}),
    ("Rprop", {"lr": 0.1, "maximize": True}),
]


def ours(array):
    return tt.tensor(array.tolist(), dtype=tt.float64).reshape(array.shape)


def numpy(x):
    return np.array(x.detach().tolist())


class Pair:
    """The same parameters in both libraries, fed the same gradients."""

    def __init__(self, name, options):
        source = np.random.default_rng(SEED)
        self.tolerance = 1e-6 if name == "NAdam" else 1e-9  # PyTorch keeps NAdam's product in float32
        self.grads = source.standard_normal((STEPS, len(SHAPES), 20))
        start = [source.standard_normal(shape) for shape in SHAPES]
        self.mine = [ours(p).requires_grad_(True) for p in start]
        self.theirs = [torch.tensor(p).requires_grad_(True) for p in start]
        self.optimizer = getattr(optim, name)(self.mine, **options)
        self.reference = getattr(torch.optim, name)(self.theirs, **options)

    def feed(self, k):
        for i, shape in enumerate(SHAPES):
            grad = self.grads[k, i, : int(np.prod(shape))].reshape(shape)
            self.mine[i].grad = ours(grad)
            self.theirs[i].grad = torch.tensor(grad)

    def step(self, k):
        self.feed(k)
        self.optimizer.step()
        self.reference.step()

    def compare(self):
        for a, b in zip(self.mine, self.theirs, strict=True):
            np.testing.assert_allclose(numpy(a), numpy(b), rtol=self.tolerance, atol=self.tolerance / 10)


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
def test_parameters_after_every_step(name, options):
    pair = Pair(name, options)
    for k in range(STEPS):
        pair.step(k)
        pair.compare()


@pytest.mark.parametrize("name", sorted({name for name, _ in OPTIMIZERS}))
def test_arguments_and_defaults(name):
    mine = inspect.signature(getattr(optim, name)).parameters
    theirs = inspect.signature(getattr(torch.optim, name)).parameters
    flags = {"foreach", "capturable", "differentiable", "fused"}
    for key, parameter in theirs.items():
        if key not in flags:
            assert mine[key].default == parameter.default, key
    order = [key for key, p in theirs.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert [key for key, p in mine.items() if p.kind is p.POSITIONAL_OR_KEYWORD] == order


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
def test_states_of_pytorch_are_taken_over(name, options):
    pair = Pair(name, options)
    for k in range(5):
        pair.step(k)
    saved = copy.deepcopy(pair.reference.state_dict())
    for state in saved["state"].values():
        for key, value in state.items():
            if isinstance(value, torch.Tensor):
                state[key] = ours(value.numpy())
    fresh = getattr(optim, name)(pair.mine, **options)
    fresh.load_state_dict(saved)
    pair.optimizer = fresh
    for k in range(5, 10):
        pair.step(k)
    pair.compare()


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
def test_pytorch_takes_our_states_over(name, options):
    pair = Pair(name, options)
    for k in range(5):
        pair.step(k)
    saved = pair.optimizer.state_dict()
    for state in saved["state"].values():
        for key, value in state.items():
            if isinstance(value, tt.Tensor):
                state[key] = torch.tensor(numpy(value))
    pair.reference.load_state_dict(saved)
    for k in range(5, 10):
        pair.step(k)
    pair.compare()


SCHEDULES = [
    ("LambdaLR", {"lr_lambda": lambda k: 1 / (k + 1)}),
    ("MultiplicativeLR", {"lr_lambda": lambda k: 0.9 + 0.01 * k}),
    ("StepLR", {"step_size": 3}),
    ("MultiStepLR", {"milestones": [2, 5, 5, 9], "gamma": 0.5}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("ConstantLR", {}),
    ("LinearLR", {"end_factor": 0.8, "total_iters": 7}),
    ("PolynomialLR", {"total_iters": 7, "power": 2.0}),
    ("CosineAnnealingLR", {"T_max": 6, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 4, "T_mult": 2, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 3}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": [1.0, 2.0], "step_size_up": 4, "step_size_down": 2}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 1.0, "step_size_up": 3, "mode": "triangular2"}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 1.0, "step_size_up": 3, "mode": "exp_range", "gamma": 0.9}),
    ("OneCycleLR", {"max_lr": [1.0, 0.5], "total_steps": 40}),
    ("OneCycleLR", {"max_lr": 1.0, "epochs": 5, "steps_per_epoch": 8, "three_phase": True}),
    ("OneCycleLR", {"max_lr": 1.0, "total_steps": 40, "anneal_strategy": "linear", "pct_start": 0.5}),
]


class Schedules:
    """The same two groups in both libraries."""

    def __init__(self, kind="SGD", options=None):
        options = {"lr": 0.5, "momentum": 0.9} if options is None else options
        groups = [
            [{"params": [p]}, {"params": [q], "lr": 0.05}] for p, q in (self.leaves(tt), self.leaves(torch))
        ]
        self.mine = getattr(optim, kind)(groups[0], **options)
        self.theirs = getattr(torch.optim, kind)(groups[1], **options)

    @staticmethod
    def leaves(space):
        return [space.zeros(1).requires_grad_(True) for _ in range(2)]

    def compare(self, k, *schedules):
        for a, b in zip(self.mine.param_groups, self.theirs.param_groups, strict=True):
            for key in ("lr", "momentum", "betas"):
                if key in b:
                    np.testing.assert_allclose(
                        a[key], b[key], rtol=1e-7, atol=1e-12, err_msg=f"{key}, step {k}"
                    )
        if schedules:
            np.testing.assert_allclose(
                schedules[0].get_last_lr(), schedules[1].get_last_lr(), rtol=1e-7, atol=1e-12
            )

    def walk(self, mine, theirs, steps=30):
        for k in range(steps):
            self.compare(k, mine, theirs)
            self.mine.step()
            self.theirs.step()
            mine.step()
            theirs.step()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["SGD", "AdamW"])
@pytest.mark.parametrize(("name", "options"), SCHEDULES)
def test_schedules(name, options, kind):
    both = Schedules(kind, None if kind == "SGD" else {"lr": 0.5})
    mine = getattr(optim.lr_scheduler, name)(both.mine, **options)
    theirs = getattr(torch.optim.lr_scheduler, name)(both.theirs, **options)
    both.walk(mine, theirs)


FIRST = [
    ("ConstantLR", {"factor": 0.5, "total_iters": 3}),
    ("LinearLR", {"start_factor": 0.25, "total_iters": 5}),
    ("StepLR", {"step_size": 2}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("PolynomialLR", {"total_iters": 6}),
    ("CosineAnnealingLR", {"T_max": 6, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 3}),
    ("LambdaLR", {"lr_lambda": lambda k: 0.9**k}),
    ("MultiplicativeLR", {"lr_lambda": lambda k: 0.95}),
    ("OneCycleLR", {"max_lr": 2.0, "total_steps": 40}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 1.0, "step_size_up": 3}),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("later", [FIRST[1], FIRST[5], FIRST[6], FIRST[9], FIRST[10]], ids=lambda x: x[0])
@pytest.mark.parametrize("first", FIRST, ids=lambda x: x[0])
def test_sequences_begin_at_the_rate_that_the_last_of_the_parts_left(first, later):
    both = Schedules()

    def build(space, optimizer):
        parts = [getattr(space.lr_scheduler, name)(optimizer, **options) for name, options in (first, later)]
        return space.lr_scheduler.SequentialLR(optimizer, parts, [4])

    mine, theirs = build(optim, both.mine), build(torch.optim, both.theirs)
    for a, b in zip(both.mine.param_groups, both.theirs.param_groups, strict=True):
        np.testing.assert_allclose(a["initial_lr"], b["initial_lr"], rtol=1e-7)
    both.walk(mine, theirs)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", ["sequential", "chained", "side by side"])
def test_composed_schedules(form):
    both = Schedules()

    def build(space, optimizer):
        s = space.lr_scheduler
        parts = [s.LinearLR(optimizer, 0.1, total_iters=6), s.CosineAnnealingLR(optimizer, 20, 0.001)]
        if form == "sequential":
            return s.SequentialLR(optimizer, parts, [6])
        parts = [s.ConstantLR(optimizer, 0.1, total_iters=6), s.ExponentialLR(optimizer, 0.9)]
        return s.ChainedScheduler(parts) if form == "chained" else parts

    mine, theirs = build(optim, both.mine), build(torch.optim, both.theirs)
    if form != "side by side":
        both.walk(mine, theirs)
        return
    for k in range(20):
        both.compare(k)
        both.mine.step()
        both.theirs.step()
        for part in (*mine, *theirs):
            part.step()


@pytest.mark.parametrize(
    "options",
    [
        {"patience": 1},
        {"mode": "max", "patience": 0, "cooldown": 2},
        {"threshold_mode": "abs", "threshold": 0.5, "patience": 2},
    ],
)
def test_plateau(options):
    both = Schedules()
    mine = optim.lr_scheduler.ReduceLROnPlateau(both.mine, factor=0.5, min_lr=[0.01, 0.001], **options)
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(
        both.theirs, factor=0.5, min_lr=[0.01, 0.001], **options
    )
    for k, value in enumerate(np.random.default_rng(SEED).standard_normal(40)):
        mine.step(value)
        theirs.step(value)
        both.compare(k, mine, theirs)


class Trained:
    """One library's optimizer and schedule over two groups, fed gradients that depend on the step alone."""

    def __init__(self, space, optimizer, options, schedule, how):
        self.space = space
        start = np.random.default_rng(SEED).standard_normal((2, 3))
        self.params = [space.tensor(row.tolist(), dtype=space.float64).requires_grad_(True) for row in start]
        made = optim if space is tt else torch.optim
        groups = [{"params": [self.params[0]]}, {"params": [self.params[1]], "lr": 0.05}]
        self.optimizer = getattr(made, optimizer)(groups, **options)
        self.schedule = scheduled(schedule, how, made.lr_scheduler, self.optimizer)
        self.measured = schedule == "ReduceLROnPlateau"

    def steps(self, first, last):
        for k in range(first, last):
            for i, param in enumerate(self.params):
                grad = np.random.default_rng([SEED, k, i]).standard_normal(3)
                param.grad = self.space.tensor(grad.tolist(), dtype=self.space.float64)
            self.optimizer.step()
            self.schedule.step(*([1.0 + (k == 3)] if self.measured else []))

    def goes_on_from(self, other):
        """Takes over values and states of the other library's."""
        with self.space.no_grad():
            for mine, theirs in zip(self.params, other.params, strict=True):
                mine.copy_(self.turned(theirs))
        self.optimizer.load_state_dict(self.turned(other.optimizer.state_dict()))
        self.schedule.load_state_dict(self.turned(other.schedule.state_dict()))

    def turned(self, value):
        if isinstance(value, dict):
            return type(value)({key: self.turned(item) for key, item in value.items()})
        if isinstance(value, (list, tuple)):
            return type(value)(self.turned(item) for item in value)
        if isinstance(value, (tt.Tensor, torch.Tensor)):
            return self.space.tensor(
                value.tolist(), dtype=getattr(self.space, str(value.dtype).split(".")[-1])
            )
        return copy.deepcopy(value)

    def facts(self):
        groups = [{k: v for k, v in g.items() if k != "params"} for g in self.optimizer.param_groups]
        return groups, [numpy(p) for p in self.params]


def assert_alike(mine, theirs, tolerance):
    """Equal keys, close numbers, at any depth; what either library alone counts (calls made) is left out."""
    if isinstance(theirs, dict):
        assert set(mine) == set(theirs)
        for key in set(theirs) - {"_step_count"}:
            assert_alike(mine[key], theirs[key], tolerance)
    elif isinstance(theirs, (list, tuple)):
        assert len(mine) == len(theirs)
        for a, b in zip(mine, theirs, strict=True):
            assert_alike(a, b, tolerance)
    elif isinstance(theirs, (tt.Tensor, torch.Tensor, np.ndarray, int, float)) and not isinstance(
        theirs, bool
    ):
        a, b = (numpy(v) if hasattr(v, "detach") else v for v in (mine, theirs))
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance / 10)
    else:
        assert mine == theirs


class Decay:
    """A function with attributes, which belong to a schedule's state."""

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, k):
        return self.factor


def composed(name, space, optimizer):
    if name == "SequentialLR":
        parts = [space.LinearLR(optimizer, 0.1, total_iters=4), space.ExponentialLR(optimizer, 0.9)]
        return space.SequentialLR(optimizer, parts, [4])
    return space.ChainedScheduler([space.ConstantLR(optimizer, 0.1, 4), space.ExponentialLR(optimizer, 0.9)])


def scheduled(name, options, space, optimizer):
    if options is None:
        return composed(name, space, optimizer)
    if name in ("CyclicLR", "OneCycleLR") and not {"momentum", "betas"} & set(optimizer.defaults):
        options = {**options, "cycle_momentum": False}
    return getattr(space, name)(optimizer, **options)


STATED = [
    *SCHEDULES,
    ("LambdaLR", {"lr_lambda": Decay(0.5)}),
    ("MultiplicativeLR", {"lr_lambda": [Decay(0.5), lambda k: 0.9]}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 1.0, "step_size_up": 3, "scale_fn": Decay(0.5)}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 1.0, "step_size_up": 3, "cycle_momentum": False}),
    ("OneCycleLR", {"max_lr": 1.0, "total_steps": 40, "cycle_momentum": False}),
    ("ReduceLROnPlateau", {"patience": 1, "factor": 0.5}),
    ("ReduceLROnPlateau", {"patience": 0, "cooldown": 1, "mode": "max", "min_lr": [0.01, 0.001]}),
    ("SequentialLR", None),
    ("ChainedScheduler", None),
]
STEPPED = [
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    *(
        (name, {"lr": 0.1})
        for name in ["Adam", "AdamW", "Adamax", "NAdam", "RAdam", "Adagrad", "Adadelta", "Rprop"]
    ),
    ("RMSprop", {"lr": 0.1, "momentum": 0.5}),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("optimizer", "options"), STEPPED)
@pytest.mark.parametrize(("schedule", "how"), STATED)
def test_states_of_every_schedule_and_optimizer_go_both_ways(optimizer, options, schedule, how):
    made = [Trained(space, optimizer, options, schedule, how) for space in (tt, torch, tt, torch)]
    mine, theirs, mine_later, theirs_later = made
    tolerance = 1e-5 if optimizer == "NAdam" else 1e-8  # PyTorch keeps NAdam's product in float32
    for one in (mine, theirs):
        one.steps(0, 5)
    assert_alike(mine.optimizer.state_dict(), theirs.optimizer.state_dict(), tolerance)
    assert_alike(mine.schedule.state_dict(), theirs.schedule.state_dict(), tolerance)
    mine_later.goes_on_from(theirs)
    theirs_later.goes_on_from(mine)
    for one in made:
        one.steps(5, 12)
    for one in made[:3]:
        assert_alike(one.facts(), theirs_later.facts(), tolerance)
        assert_alike(one.schedule.get_last_lr(), theirs_later.schedule.get_last_lr(), tolerance)
