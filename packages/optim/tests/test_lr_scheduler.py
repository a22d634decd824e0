"""Schedules: values against formulas, resuming at every step, chaining, momentum."""

import math
import pickle
import warnings

import numpy as np
import pytest

import taeda_optim as optim
from taeda_optim import lr_scheduler as lrs
from taeda_optim.swa_utils import SWALR
from taeda_registry.slots import tensor

STEPS = 25
# Schedules are looked at by themselves here, whatever their optimizer does.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step"),
    pytest.mark.filterwarnings("ignore:The epoch parameter in `scheduler.step"),
]


def optimizer_of(make, rates=(0.5, 0.05)):
    groups = [{"params": [make[0]([0.0])], "lr": rate} for rate in rates]
    return optim.SGD(groups, lr=0.1, momentum=0.9)


def cosine(k, base, total, low):
    return low + (base - low) * (1 + math.cos(math.pi * k / total)) / 2


SCHEDULES = {
    "LambdaLR": (lambda o: lrs.LambdaLR(o, lambda k: 1 / (k + 1)), lambda k, b: b / (k + 1)),
    "MultiplicativeLR": (lambda o: lrs.MultiplicativeLR(o, lambda k: 0.9), lambda k, b: b * 0.9**k),
    "StepLR": (lambda o: lrs.StepLR(o, 4, 0.5), lambda k, b: b * 0.5 ** (k // 4)),
    "MultiStepLR": (
        lambda o: lrs.MultiStepLR(o, [3, 8, 8], 0.5),
        lambda k, b: b * 0.5 ** ((k >= 3) + 2 * (k >= 8)),
    ),
    "ExponentialLR": (lambda o: lrs.ExponentialLR(o, 0.8), lambda k, b: b * 0.8**k),
    "ConstantLR": (lambda o: lrs.ConstantLR(o, 0.25, 6), lambda k, b: b * (0.25 if k < 6 else 1)),
    "LinearLR": (lambda o: lrs.LinearLR(o, 0.25, 0.75, 6), lambda k, b: b * (0.25 + 0.5 * min(k, 6) / 6)),
    "PolynomialLR": (lambda o: lrs.PolynomialLR(o, 10, 2.0), lambda k, b: b * (1 - min(k, 10) / 10) ** 2),
    "CosineAnnealingLR": (lambda o: lrs.CosineAnnealingLR(o, 8, 0.01), lambda k, b: cosine(k, b, 8, 0.01)),
    "CosineAnnealingWarmRestarts": (
        lambda o: lrs.CosineAnnealingWarmRestarts(o, 4, 2, 0.01),
        lambda k, b: next(cosine(k - at, b, n, 0.01) for at, n in ((12, 16), (4, 8), (0, 4)) if k >= at),
    ),
    "SequentialLR": (
        lambda o: lrs.SequentialLR(o, [lrs.LinearLR(o, 0.1, 1.0, 5), lrs.ExponentialLR(o, 0.9)], [5]),
        lambda k, b: b * (0.1 + 0.9 * k / 5) if k < 5 else b * 0.9 ** (k - 5),
    ),
    "ChainedScheduler": (
        lambda o: lrs.ChainedScheduler([lrs.ConstantLR(o, 0.1, 3), lrs.ExponentialLR(o, 0.9)]),
        lambda k, b: b * (0.1 if k < 3 else 1) * 0.9**k,
    ),
    "CyclicLR": (
        lambda o: lrs.CyclicLR(o, [0.5, 0.05], 1.0, step_size_up=3),
        lambda k, b: b + (1 - b) * (1 - abs(k % 6 - 3) / 3),
    ),
    "OneCycleLR": (
        lambda o: lrs.OneCycleLR(o, [0.5, 0.05], 30, None, None, 0.3, "linear", True, 0.85, 0.95, 10, 10),
        lambda k, b: b * (0.1 + 0.9 * k / 8) if k <= 8 else b + (b / 100 - b) * (k - 8) / 21,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SCHEDULES)
def test_values(name, make):
    build, formula = SCHEDULES[name]
    optimizer = optimizer_of(make)
    schedule = build(optimizer)
    for k in range(STEPS):
        expected = [formula(k, 0.5), formula(k, 0.05)]
        found = [group["lr"] for group in optimizer.param_groups]
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-15, err_msg=f"step {k}")
        assert schedule.get_last_lr() == found
        np.testing.assert_allclose(schedule.get_lr(), found, rtol=1e-12)
        schedule.step()


@pytest.mark.parametrize("name", SCHEDULES)
def test_resuming_at_any_step_equals_never_having_stopped(name, make):
    build, _ = SCHEDULES[name]
    optimizer = optimizer_of(make)
    schedule = build(optimizer)
    rates, states = [], []
    for _ in range(STEPS):
        rates.append([group["lr"] for group in optimizer.param_groups])
        states.append((optimizer.state_dict(), schedule.state_dict()))
        schedule.step()
    for k in (0, 1, 4, 5, 7, 12, STEPS - 3):
        resumed = optimizer_of(make)
        again = build(resumed)
        resumed.load_state_dict(states[k][0])
        again.load_state_dict(states[k][1])
        for later in range(k, STEPS):
            assert [group["lr"] for group in resumed.param_groups] == rates[later]
            again.step()


def test_schedules_on_one_optimizer_multiply(make):
    optimizer = optimizer_of(make)
    one, two = lrs.ExponentialLR(optimizer, 0.9), lrs.StepLR(optimizer, 3, 0.5)
    for k in range(10):
        assert optimizer.param_groups[0]["lr"] == pytest.approx(0.5 * 0.9**k * 0.5 ** (k // 3))
        one.step()
        two.step()


def test_a_rate_set_by_hand_is_kept(make):
    optimizer = optimizer_of(make)
    schedule = lrs.ExponentialLR(optimizer, 0.5)
    schedule.step()
    optimizer.param_groups[0]["lr"] = 8.0
    schedule.step()
    assert optimizer.param_groups[0]["lr"] == 4.0
    assert optimizer.param_groups[1]["lr"] == 0.0125


@pytest.mark.parametrize(
    ("build", "rates"),
    [
        (lambda o: lrs.MultiStepLR(o, [1, 2], gamma=2.0), [8, 16, 16, 8, 16, 16]),
        (lambda o: lrs.ExponentialLR(o, 0.5), [2, 1, 0.5, 2, 1, 0.5]),
        (lambda o: lrs.CosineAnnealingLR(o, 2), [2, 0, 2, 2, 0, 2]),
        (lambda o: lrs.PolynomialLR(o, 4), [3, 2, 1, 3, 2, 1]),
        (lambda o: lrs.LambdaLR(o, lambda epoch: 1 / (epoch + 1)), [2, 4 / 3, 1, 2, 4 / 3, 1]),
        # These begin below the first rate, which programs that begin again set as it is.
        (lambda o: lrs.ConstantLR(o, 0.5, 2), [2, 4, 4, 4, 8, 8]),
        (lambda o: lrs.LinearLR(o, 0.5, total_iters=2), [3, 4, 4, 6, 8, 8]),
    ],
)
def test_programs_begin_again_by_setting_the_step(build, rates, make):
    optimizer = optimizer_of(make, rates=(4.0,))
    schedule = build(optimizer)
    seen = []
    for step in range(6):
        if step == 3:
            schedule.last_epoch = 0
            optimizer.param_groups[0]["lr"] = schedule.base_lrs[0]
        schedule.step()
        seen.append(optimizer.param_groups[0]["lr"])
    assert seen == pytest.approx(rates, abs=1e-12)


def test_own_schedule_by_get_lr(make):
    class Halving(lrs.LRScheduler):
        def get_lr(self):
            return [base / 2**self.last_epoch for base in self.base_lrs]

    optimizer = optimizer_of(make)
    schedule = Halving(optimizer)
    schedule.step()
    assert schedule.get_last_lr() == [0.25, 0.025]


def test_the_base_of_older_programs_is_no_base_of_the_schedules(make):
    class Halving(lrs._LRScheduler):
        def get_lr(self):
            return [base / 2**self.last_epoch for base in self.base_lrs]

    schedule = Halving(optimizer_of(make))
    schedule.step()
    assert schedule.get_last_lr() == [0.25, 0.025] and isinstance(schedule, lrs.LRScheduler)
    assert not isinstance(lrs.StepLR(optimizer_of(make), 2), lrs._LRScheduler)


def test_own_schedules_are_told_who_asks(make):
    asked = []

    class Halving(lrs.LRScheduler):
        def get_lr(self):
            asked.append((self._get_lr_called_within_step, self._is_initial))
            return [group["lr"] / 2 for group in self.optimizer.param_groups]

        def _get_closed_form_lr(self):
            return [base / 2 ** (self.last_epoch + 1) for base in self.base_lrs]

    schedule = Halving(optimizer_of(make))
    schedule.step()
    schedule.get_lr()
    assert asked == [(True, True), (True, False), (False, False)]
    schedule.step(4)
    assert schedule.get_last_lr() == [0.5 / 32, 0.05 / 32] and len(asked) == 3
    other = Halving(optimizer_of(make))
    other.load_state_dict(schedule.state_dict())
    assert other.get_last_lr() == schedule.get_last_lr()


def test_own_schedules_warn_of_calls_from_outside(make):
    class Halving(lrs.LRScheduler):
        def get_lr(self):
            lrs._warn_get_lr_called_within_step(self)
            return [base / 2**self.last_epoch for base in self.base_lrs]

    schedule = Halving(optimizer_of(make))
    schedule.step()
    with pytest.warns(UserWarning, match=r"please use `get_last_lr\(\)`"):
        assert schedule.get_lr() == schedule.get_last_lr()


def test_own_schedules_may_begin_otherwise(make):
    class Late(lrs.LRScheduler):
        def _initial_step(self):
            self._step_count = 0

        def get_lr(self):
            return [0.0 for _ in self.base_lrs]

    optimizer = optimizer_of(make)
    schedule = Late(optimizer)
    assert optimizer.param_groups[0]["lr"] == 0.5 and schedule.last_epoch == -1
    schedule.step()
    assert optimizer.param_groups[0]["lr"] == 0.0


def test_own_plateaus(make):
    lowered = []

    class Watched(lrs.ReduceLROnPlateau):
        def _is_better(self, a, best):
            return False

        def _reduce_lr(self, epoch):
            lowered.append(epoch)
            super()._reduce_lr(epoch)

    optimizer = optimizer_of(make)
    schedule = Watched(optimizer, factor=0.5, patience=1)
    for _ in range(4):
        schedule.step(1.0)
    assert lowered == [2, 4] and optimizer.param_groups[0]["lr"] == 0.125


def test_cycles_move_momentum(make):
    optimizer = optimizer_of(make)
    schedule = lrs.CyclicLR(optimizer, 0.1, 1.0, step_size_up=2, base_momentum=0.8, max_momentum=0.9)
    found = []
    for _ in range(5):
        found.append(optimizer.param_groups[0]["momentum"])
        schedule.step()
    np.testing.assert_allclose(found, [0.9, 0.85, 0.8, 0.85, 0.9])
    adam = optim.Adam([make[0]([0.0])])
    lrs.OneCycleLR(adam, 0.1, total_steps=10)
    assert adam.param_groups[0]["betas"] == (0.95, 0.999)


def test_sequences_begin_at_the_rate_that_the_last_of_the_parts_left(make):
    optimizer = optimizer_of(make, [1.0])
    parts = [lrs.LinearLR(optimizer, 0.5, 1.0, 2), lrs.OneCycleLR(optimizer, 2.0, total_steps=5)]
    schedule = lrs.SequentialLR(optimizer, parts, [2])
    assert optimizer.param_groups[0]["initial_lr"] == 2.0 / 25
    found = []
    for _ in range(3):
        found.append(optimizer.param_groups[0]["lr"])
        schedule.step()
    np.testing.assert_allclose(found, [0.04, 0.06, 0.08])


def rates_of(optimizer, schedule, steps):
    found = []
    for _ in range(steps):
        found.append(optimizer.param_groups[0]["lr"])
        schedule.step()
    return found


def test_parts_of_a_sequence_wait_until_it_is_their_turn(make):
    optimizer = optimizer_of(make, [1.0])
    parts = [
        lrs.LinearLR(optimizer, 0.5, 1.0, 2),
        lrs.StepLR(optimizer, 2),
        lrs.ConstantLR(optimizer, 0.5, 2),
    ]
    schedule = lrs.SequentialLR(optimizer, parts, [2, 4])
    found = []
    for _ in range(6):
        found.append([(part.last_epoch, part._step_count) for part in parts])
        schedule.step()
    assert found == [
        [(0, 1), (-1, 1), (-1, 1)],
        [(1, 2), (-1, 1), (-1, 1)],
        [(1, 2), (0, 1), (-1, 1)],
        [(1, 2), (1, 2), (-1, 1)],
        [(1, 2), (1, 2), (0, 1)],
        [(1, 2), (1, 2), (1, 2)],
    ]


@pytest.mark.parametrize("milestone", [0, -1])
def test_parts_whose_turn_is_over_before_the_first_step_set_no_rate(milestone, make):
    optimizer = optimizer_of(make, [1.0])
    parts = [lrs.ConstantLR(optimizer, 0.1, 2), lrs.ExponentialLR(optimizer, 0.5)]
    schedule = lrs.SequentialLR(optimizer, parts, [milestone])
    np.testing.assert_allclose(rates_of(optimizer, schedule, 4), [1.0, 0.5, 0.25, 0.125])


def test_chains_begin_at_their_first_step_in_a_sequence(make):
    optimizer = optimizer_of(make, [1.0])

    def chain():
        return lrs.ChainedScheduler([lrs.LinearLR(optimizer, 0.25, 1.0, 3), lrs.StepLR(optimizer, 2, 0.1)])

    schedule = lrs.SequentialLR(optimizer, [chain(), lrs.ConstantLR(optimizer, 0.5, 9), chain()], [3, 4])
    expected = [0.25, 0.5, 0.075, 0.5, 0.25, 0.5, 0.075]
    np.testing.assert_allclose(rates_of(optimizer, schedule, 7), expected)


def test_factors_go_on_from_the_rate_that_they_find(make):
    optimizer = optimizer_of(make, [1.0])
    parts = [lrs.StepLR(optimizer, 1, 0.5), lrs.MultiplicativeLR(optimizer, lambda k: 0.8)]
    schedule = lrs.SequentialLR(optimizer, parts, [2])
    np.testing.assert_allclose(rates_of(optimizer, schedule, 4), [1.0, 0.5, 0.4, 0.32])
    optimizer = optimizer_of(make, [1.0])
    schedule = lrs.MultiplicativeLR(optimizer, lambda k: 0.5 + k / 10)
    schedule.step(4)
    assert optimizer.param_groups[0]["lr"] == 0.9
    schedule.step()
    np.testing.assert_allclose(optimizer.param_groups[0]["lr"], 0.9)  # times 1.0


def test_cycles_keep_the_first_rate_of_another_schedule(make):
    optimizer = optimizer_of(make, [1.0])
    lrs.StepLR(optimizer, 1)
    cycle = lrs.CyclicLR(optimizer, 0.1, 0.5, step_size_up=2)
    assert optimizer.param_groups[0]["initial_lr"] == 1.0 and cycle.base_lrs == [0.1]
    cycle.step()
    np.testing.assert_allclose(optimizer.param_groups[0]["lr"], 0.3)


def test_plateau(make):
    optimizer = optimizer_of(make)
    schedule = lrs.ReduceLROnPlateau(optimizer, factor=0.5, patience=1, cooldown=1, min_lr=[0.1, 0.0])
    rates = []
    for value in [3.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]:
        schedule.step(value)
        rates.append(optimizer.param_groups[0]["lr"])
    assert rates == [0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125, 0.125, 0.125, 0.1, 0.1, 0.1, 0.1]
    again = optimizer_of(make)
    other = lrs.ReduceLROnPlateau(again, factor=0.5, patience=1, cooldown=1, min_lr=[0.1, 0.0])
    other.load_state_dict(schedule.state_dict())
    assert other.state_dict() == schedule.state_dict()
    assert other.get_last_lr() == schedule.get_last_lr()


def test_chains_go_on_from_the_low_end(make):
    """Where a curve ends its factors end too: what the other schedules leave is kept, and the next rise is added."""
    for schedules, expected in (
        (lambda o: [lrs.ConstantLR(o, 0.5, 4), lrs.CosineAnnealingLR(o, 2)], [0.25, 0.0, 0.5, 2.0]),
        (
            lambda o: [lrs.LambdaLR(o, lambda step: 0.5**step), lrs.PolynomialLR(o, 2)],
            [0.25, 0.0, 0.125, 0.0625],
        ),
    ):
        optimizer = optimizer_of(make, [1.0])
        chain, rates = lrs.ChainedScheduler(schedules(optimizer)), []
        for _ in range(4):
            optimizer.step()
            chain.step()
            rates.append(optimizer.param_groups[0]["lr"])
        np.testing.assert_allclose(rates, expected, atol=1e-12)


def test_swalr_begins_in_a_sequence_with_the_rate_found(make):
    optimizer = optimizer_of(make, [1.0])
    parts = [lrs.ConstantLR(optimizer, 1.0, 1), SWALR(optimizer, 0.2, 2, "linear")]
    schedule, rates = lrs.SequentialLR(optimizer, parts, milestones=[2]), []
    for _ in range(5):
        optimizer.step()
        schedule.step()
        rates.append(optimizer.param_groups[0]["lr"])
    np.testing.assert_allclose(rates, [1.0, 1.0, 0.6, 0.2, 0.2], atol=1e-12)


def test_resumed_cycles_take_the_range_of_momentum_that_is_given(make):
    optimizer = optimizer_of(make, [1.0])
    optimizer.param_groups[0].update(initial_lr=0.1, base_momentum=0.1, max_momentum=0.2)
    cycle = lrs.CyclicLR(optimizer, 0.1, 0.5, 2, base_momentum=0.7, max_momentum=0.9, last_epoch=1)
    assert (cycle.base_momentums, cycle.max_momentums) == ([0.7], [0.9])


def test_cycles_note_their_ranges_in_the_groups(make):
    optimizer = optimizer_of(make)
    lrs.OneCycleLR(optimizer, [1.0, 0.5], total_steps=10, base_momentum=[0.7, 0.8])
    noted = [
        {k: group[k] for k in ("max_lr", "min_lr", "base_momentum", "max_momentum")}
        for group in optimizer.state_dict()["param_groups"]
    ]
    assert noted == [
        {"max_lr": 1.0, "min_lr": 4e-6, "base_momentum": 0.7, "max_momentum": 0.95},
        {"max_lr": 0.5, "min_lr": 2e-6, "base_momentum": 0.8, "max_momentum": 0.95},
    ]


@pytest.mark.parametrize("kind", ["LambdaLR", "MultiplicativeLR"])
def test_attributes_of_callable_objects_are_saved_and_functions_left_out(kind, make):
    class Factor:
        def __init__(self, value):
            self.value = value

        def __call__(self, step):
            return self.value

    def build(value):
        return getattr(lrs, kind)(optimizer_of(make), [Factor(value), lambda k: 1.0])

    saved = build(0.5).state_dict()
    assert saved["lr_lambdas"] == [{"value": 0.5}, None]
    later = build(0.25)
    later.load_state_dict(saved)
    later.step()
    assert later.get_last_lr() == [0.25, 0.05]


def test_restarts_go_on_from_a_fraction_of_an_epoch(make):
    one, other = (lrs.CosineAnnealingWarmRestarts(optimizer_of(make), 4, 2) for _ in range(2))
    one.step(5.5)
    saved = one.state_dict()
    assert (saved["last_epoch"], saved["T_cur"], saved["T_i"]) == (5, 1.5, 8)
    other.load_state_dict(saved)
    one.step()
    other.step()
    assert one.get_last_lr() == other.get_last_lr()
    assert one.T_cur == other.T_cur == 2.5


def test_the_place_between_restarts_can_be_set(make):
    scheduler = lrs.CosineAnnealingWarmRestarts(optimizer_of(make), 4, 2)
    base = scheduler.base_lrs[0]
    scheduler.T_cur, scheduler.T_i = 6, 8
    scheduler.last_epoch = 10
    assert (scheduler.T_cur, scheduler.T_i) == (6, 8)
    assert scheduler.get_lr()[0] == pytest.approx(base * (1 + math.cos(math.pi * 6 / 8)) / 2)
    scheduler.step()
    assert (scheduler.T_cur, scheduler.T_i, scheduler.last_epoch) == (7, 8, 11)
    scheduler.step()
    assert (scheduler.T_cur, scheduler.T_i) == (0, 16) and scheduler.get_last_lr()[0] == base
    scheduler.step(5.5)
    assert (scheduler.T_cur, scheduler.T_i, scheduler.last_epoch) == (1.5, 8, 5)


@pytest.mark.parametrize(
    "again",
    [
        lambda o, e: lrs.ExponentialLR(o, 0.9, last_epoch=e),
        lambda o, e: lrs.CosineAnnealingLR(o, 10, 0.01, last_epoch=e),
        lambda o, e: lrs.LinearLR(o, 0.3, total_iters=8, last_epoch=e),
        lambda o, e: lrs.PolynomialLR(o, 8, 2, last_epoch=e),
        lambda o, e: lrs.MultiplicativeLR(o, lambda k: 0.9, last_epoch=e),
        lambda o, e: lrs.LambdaLR(o, lambda k: 0.9**k, last_epoch=e),
    ],
)
def test_a_schedule_made_anew_goes_on_from_the_rates_that_it_finds(again, make):
    """As in programs that load an optimizer's state and give the last epoch."""
    optimizer = optimizer_of(make)
    schedule = again(optimizer, -1)
    for _ in range(5):
        schedule.step()
    found = [group["lr"] for group in optimizer.param_groups]
    alike = optimizer_of(make)
    alike.load_state_dict(optimizer.state_dict())
    resumed = again(alike, 4)
    assert resumed.last_epoch == 5
    assert resumed.get_last_lr() == pytest.approx(found)
    for _ in range(3):
        schedule.step()
        resumed.step()
        assert resumed.get_last_lr() == pytest.approx(schedule.get_last_lr())


@pytest.mark.parametrize(
    ("error", "text", "build"),
    [
        (TypeError, "must be an Optimizer", lambda o: lrs.StepLR(3, 1)),
        (KeyError, "initial_lr", lambda o: lrs.StepLR(o, 1, last_epoch=3)),
        (ValueError, "expected 2, one for each group", lambda o: lrs.LambdaLR(o, [abs])),
        (ValueError, "pct_start", lambda o: lrs.OneCycleLR(o, 1.0, total_steps=3, pct_start=2)),
        (ValueError, "total_steps", lambda o: lrs.OneCycleLR(o, 1.0)),
        (ValueError, "mode", lambda o: lrs.CyclicLR(o, 0.1, 1.0, mode="square")),
        (ValueError, "factor", lambda o: lrs.ReduceLROnPlateau(o, factor=1.0)),
        (ValueError, "milestones", lambda o: lrs.SequentialLR(o, [lrs.StepLR(o, 1)], [1])),
        (ValueError, "is empty", lambda o: lrs.ChainedScheduler([])),
        (ValueError, "metric", lambda o: lrs.ChainedScheduler([lrs.ReduceLROnPlateau(o)])),
        (
            ValueError,
            "metric",
            lambda o: lrs.SequentialLR(o, [lrs.StepLR(o, 1), lrs.ReduceLROnPlateau(o)], [1]),
        ),
        (ValueError, "last_epoch", lambda o: lrs.StepLR(o, 1).load_state_dict({})),
    ],
)
def test_wrong_arguments(error, text, build, make):
    with pytest.raises(error, match=text):
        build(optimizer_of(make))


def test_swalr_begins_at_any_epoch():
    """Trainers give it the last epoch of their training."""
    rates = []
    for last_epoch in (-1, 7):
        optimizer = optim.SGD([tensor.ones(1, requires_grad=True)], lr=1.0)
        optimizer.param_groups[0]["initial_lr"] = 1.0
        schedule = SWALR(optimizer, swa_lr=0.1, anneal_epochs=3, last_epoch=last_epoch)
        found = []
        for _ in range(4):
            optimizer.step()
            schedule.step()
            found.append(optimizer.param_groups[0]["lr"])
        rates.append(found)
    assert rates[0] == pytest.approx([0.775, 0.325, 0.1, 0.1]) and rates[1] == pytest.approx(rates[0])
    assert schedule.anneal_func(0.5) == pytest.approx(0.5) and schedule.anneal_func(0.25) < 0.25


def stepped(make, schedule, first="optimizer"):
    """What is warned of by three steps of an optimizer and its schedule."""
    optimizer = optimizer_of(make)
    scheduler = schedule(optimizer)
    pickle.loads(pickle.dumps(optimizer))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(3):
            for part in (optimizer, scheduler) if first == "optimizer" else (scheduler, optimizer):
                part.step()
    assert not optimizer._optimizer_step_post_hooks
    return [str(item.message) for item in seen if item.category is UserWarning]


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_that_step_before_their_optimizer_say_so_once(make, name):
    assert stepped(make, SCHEDULES[name][0]) == []
    early = stepped(make, SCHEDULES[name][0], first="schedule")
    # One that counts no steps has nothing to tell by.
    assert bool(early) == (name != "CosineAnnealingWarmRestarts") and all(
        "before `optimizer.step()`" in text for text in early
    )


def test_rates_that_are_tensors_are_told_as_tensors(make):
    groups = [{"params": [make[0]([0.0])], "lr": tensor.tensor(0.5)}, {"params": [make[0]([0.0])], "lr": 0.5}]
    optimizer = optim.SGD(groups)
    for schedule in (
        lrs.StepLR(optimizer, 1, 0.5),
        lrs.ChainedScheduler([lrs.ConstantLR(optimizer, 1.0)]),
        lrs.SequentialLR(optimizer, [lrs.ConstantLR(optimizer, 1.0), lrs.StepLR(optimizer, 1)], [3]),
    ):
        schedule.step()
        first, second = schedule.get_last_lr()
        assert isinstance(first, tensor.Tensor) and isinstance(second, float)
        assert first.item() == optimizer.param_groups[0]["lr"].item() == second
        assert first is not optimizer.param_groups[0]["lr"]


def test_steps_to_an_epoch_are_old(make):
    with pytest.warns(UserWarning, match="epoch parameter"):
        lrs.ReduceLROnPlateau(optimizer_of(make)).step(1.0, epoch=2)
    scheduler = lrs.StepLR(optimizer_of(make), 2)
    scheduler.optimizer.step()
    with pytest.warns(UserWarning, match="epoch parameter"):
        scheduler.step(3)
    assert scheduler.last_epoch == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        restarts = lrs.CosineAnnealingWarmRestarts(optimizer_of(make), 3)
        restarts.optimizer.step()
        restarts.step(0.5)


@pytest.mark.parametrize(
    "build",
    [
        lambda o: lrs.StepLR(o, 2),
        lambda o: lrs.MultiStepLR(o, [1, 3]),
        lambda o: lrs.ConstantLR(o, total_iters=3),
        lambda o: lrs.LinearLR(o, total_iters=4),
        lambda o: lrs.ExponentialLR(o, 0.9),
        lambda o: lrs.PolynomialLR(o, 6),
        lambda o: lrs.CosineAnnealingLR(o, 5),
    ],
)
def test_groups_that_come_later_go_on_from_their_rates(build, make):
    """They change in the proportion in which a group that was there from the beginning changes."""
    optimizer = optim.SGD([make[0]([1.0])], lr=0.5)
    schedule = build(optimizer)
    schedule.step()
    before = optimizer.param_groups[0]["lr"]
    optimizer.add_param_group({"params": [make[0]([1.0])], "lr": 0.3})
    for _ in range(3):
        schedule.step()
        first, second = (group["lr"] for group in optimizer.param_groups)
        assert second == pytest.approx(0.3 * first / before)
        assert schedule.get_last_lr() == [first, second]
    state = schedule.state_dict()
    state["base_lrs"] = state["base_lrs"][:1]  # as schedules are saved that keep nothing of such groups
    again = build(optimizer)
    again.load_state_dict(state)
    rates = [group["lr"] for group in optimizer.param_groups]
    assert again.get_last_lr() == rates
    again.step()
    assert len(again.get_last_lr()) == 2


def test_a_plateau_reduces_groups_that_come_later(make):
    for low, expected in ((0.0, [0.05, 0.03]), ([0.01], None)):
        optimizer = optim.SGD([make[0]([1.0])], lr=0.5)
        schedule = lrs.ReduceLROnPlateau(optimizer, patience=0, min_lr=low)
        optimizer.add_param_group({"params": [make[0]([1.0])], "lr": 0.3})
        schedule.step(1.0)
        if expected is None:
            with pytest.raises(RuntimeError, match="min_lrs"):
                schedule.step(1.0)
            continue
        schedule.step(1.0)
        assert [group["lr"] for group in optimizer.param_groups] == pytest.approx(expected)


def test_schedules_of_optimizers_that_wrap_others():
    class Around(optim.Optimizer):
        """Hands everything on, and has not called `__init__`."""

        def __init__(self, inner):
            self.optimizer = inner

        param_groups = property(lambda self: self.optimizer.param_groups)
        defaults = property(lambda self: self.optimizer.defaults)

        def step(self, closure=None):
            return self.optimizer.step(closure)

    around = Around(optim.SGD([tensor.zeros(2, requires_grad=True)], lr=1.0))
    schedule = lrs.LambdaLR(around, lambda epoch: 0.5**epoch)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        around.step()
        schedule.step()
    assert around.param_groups[0]["lr"] == 0.5


@pytest.mark.parametrize(
    "make",
    [
        lambda o, low, high: lrs.CyclicLR(o, low, high, base_momentum=low, max_momentum=high),
        lambda o, low, high: lrs.OneCycleLR(o, high, total_steps=9, base_momentum=low, max_momentum=high),
    ],
)
def test_cycles_read_tensors_once(make):
    def course(low, high, change):
        optimizer = optim.SGD([tensor.zeros(1).requires_grad_()], lr=0.1, momentum=0.9)
        schedule = make(optimizer, low, high)
        found = []
        for _ in range(4):
            change()
            optimizer.step()
            schedule.step()
            found.append(
                [float(optimizer.param_groups[0][name]) for name in ("lr", "momentum", "max_momentum")]
            )
        return found

    low, high = tensor.tensor(0.25), tensor.tensor(0.5)
    assert course(low, high, lambda: (low.mul_(0.5), high.mul_(0.5))) == course(0.25, 0.5, lambda: None)


def test_a_function_that_raises_makes_no_step(make):
    calls = []

    def rate(step):
        calls.append(step)
        if len(calls) == 6:  # of the second group, at the second step
            raise LookupError("no rate")
        return 0.5**step

    optimizer = optimizer_of(make, (1.0, 2.0))
    schedule = lrs.LambdaLR(optimizer, [rate, rate])
    schedule.step()
    before = schedule.state_dict() | {"lr_lambdas": None}
    with pytest.raises(LookupError):
        schedule.step()
    assert schedule.state_dict() | {"lr_lambdas": None} == before
    assert [group["lr"] for group in optimizer.param_groups] == [0.5, 1.0]
    schedule.step()
    assert [group["lr"] for group in optimizer.param_groups] == [0.25, 0.5] and schedule.last_epoch == 2


def test_warm_restarts_count_no_steps(make):
    optimizer = optimizer_of(make)
    schedule = lrs.CosineAnnealingWarmRestarts(optimizer, 3)
    assert schedule._step_count == 0
    optimizer.step()
    schedule.step()
    schedule.step(1.5)
    assert schedule._step_count == 0 and schedule.last_epoch == 1 and schedule.T_cur == 1.5


BASE = ["base_lrs", "last_epoch", "_step_count", "_is_initial", "_get_lr_called_within_step", "_last_lr"]
KEYS = {
    "StepLR": (lambda o: lrs.StepLR(o, 2), ["step_size", "gamma", *BASE]),
    "LambdaLR": (lambda o: lrs.LambdaLR(o, lambda e: 0.9), [*BASE, "lr_lambdas"]),
    "LinearLR": (lrs.LinearLR, ["start_factor", "end_factor", "total_iters", *BASE]),
    "CosineAnnealingLR": (lambda o: lrs.CosineAnnealingLR(o, 3), ["T_max", "eta_min", *BASE]),
    "CosineAnnealingWarmRestarts": (
        lambda o: lrs.CosineAnnealingWarmRestarts(o, 3),
        ["T_0", "T_i", "T_mult", "eta_min", "T_cur", *BASE],
    ),
    "OneCycleLR": (
        lambda o: lrs.OneCycleLR(o, 0.1, total_steps=5),
        ["total_steps", "_schedule_phases", "_anneal_func_type", "cycle_momentum", "use_beta1", *BASE],
    ),
    "CyclicLR": (
        lambda o: lrs.CyclicLR(o, 0.1, 0.2),
        [
            *(
                "max_lrs",
                "total_size",
                "step_ratio",
                "mode",
                "gamma",
                "scale_mode",
                "cycle_momentum",
                "use_beta1",
            ),
            *("base_momentums", "max_momentums", *BASE, "_scale_fn_custom"),
        ],
    ),
    "ReduceLROnPlateau": (
        lrs.ReduceLROnPlateau,
        [
            *("factor", "default_min_lr", "min_lrs", "patience", "cooldown", "eps", "last_epoch", "_last_lr"),
            *(
                "mode_worse",
                "mode",
                "threshold",
                "threshold_mode",
                "best",
                "cooldown_counter",
                "num_bad_epochs",
            ),
        ],
    ),
}


@pytest.mark.parametrize("name", KEYS)
def test_states_have_their_keys_in_the_order_of_pytorchs(name, make):
    schedule, expected = KEYS[name][0](optimizer_of(make)), KEYS[name][1]
    assert list(schedule.state_dict()) == expected
