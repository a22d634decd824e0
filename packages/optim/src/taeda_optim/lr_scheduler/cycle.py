"""Schedules that raise and lower the rate, and momentum against it (Smith, WACV 2017; Smith and Topin, 2018)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from taeda_optim.lr_scheduler.base import LRScheduler, attributes_of, per_group, set_rate, take_attributes
from taeda_optim.optimizer import Optimizer


class _Cycle(LRScheduler):
    """What both cycles share: absolute rates, and momentum (or Adam's first beta) that goes the other way."""

    cycle_momentum: bool

    def _begin_momentum(self, optimizer: Optimizer, low: Any, high: Any, last_epoch: int) -> None:
        """Notes the range of momentum in the groups, where either library looks for it after loading."""
        kind = type(self).__name__
        if not {"momentum", "betas"} & set(optimizer.defaults):
            raise ValueError(
                f"{kind}: argument 'cycle_momentum' needs an optimizer with 'momentum' or 'betas', "
                f"found {type(optimizer).__name__}"
            )
        self.use_beta1 = "betas" in optimizer.defaults
        lows = per_group(kind, "base_momentum", low, optimizer)
        highs = per_group(kind, "max_momentum", high, optimizer)
        for group, least, most in zip(optimizer.param_groups, lows, highs, strict=True):
            _begin(group, last_epoch, max_momentum=most, base_momentum=least)

    def momentum(self, step: int, group: int) -> float:
        """The momentum of a group at ``step``."""
        raise NotImplementedError

    def _relative(self, i: int, rate: float) -> float:
        return rate

    def _set(self, rates: list[float]) -> None:
        super()._set(rates)
        if not self.cycle_momentum:
            return
        for i, group in enumerate(self.optimizer.param_groups):
            momentum = self.momentum(self.last_epoch, i)
            if self.use_beta1:
                group["betas"] = (momentum, *group["betas"][1:])
            else:
                group["momentum"] = momentum


class CyclicLR(_Cycle):
    """Up from ``base_lr`` to ``max_lr`` in ``step_size_up`` steps and down again, over and over.

    Args:
        optimizer: whose rates are set.
        base_lr, max_lr: lowest and highest rate; for all groups, or one for each.
        step_size_up, step_size_down: steps of the rising and of the falling half; by default the same.
        mode: ``triangular``, ``triangular2`` (half the height each cycle) or ``exp_range`` (``gamma`` each step).
        gamma: for ``exp_range``.
        scale_fn, scale_mode: own height as a function of the cycle or of the iteration; replaces mode.
        cycle_momentum, base_momentum, max_momentum: momentum goes down while the rate goes up.
        last_epoch: see `LRScheduler`.

    Raises:
        ValueError: an unknown mode, or lists of another length than groups.

    Example:
        >>> optimizer = optim.SGD([torch.zeros(1)], lr=1.0)
        >>> schedule = optim.lr_scheduler.CyclicLR(optimizer, base_lr=0.5, max_lr=1.0, step_size_up=2)
        >>> for _ in range(4):
        ...     print(schedule.get_last_lr())
        ...     optimizer.step()
        ...     schedule.step()
        [0.5]
        [0.75]
        [1.0]
        [0.75]
    """

    _unsaved = _Cycle._unsaved | {"_scale_fn_custom", "_scale_fn_ref"}

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | Sequence[float],
        max_lr: float | Sequence[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.8,
        max_momentum: float | Sequence[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError(f"CyclicLR: unknown argument 'mode': {mode!r}")
        self.max_lrs = per_group("CyclicLR", "max_lr", max_lr, optimizer)
        low = per_group("CyclicLR", "base_lr", base_lr, optimizer)
        up, down = float(step_size_up), float(step_size_up if step_size_down is None else step_size_down)
        self.total_size, self.step_ratio = up + down, up / (up + down)
        self.mode, self.gamma = mode, gamma
        self._scale_fn_custom, self.scale_mode = scale_fn, scale_mode
        self._init_scale_fn()
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._begin_momentum(optimizer, base_momentum, max_momentum, last_epoch)
            self.base_momentums = per_group("CyclicLR", "base_momentum", base_momentum, optimizer)
            self.max_momentums = per_group("CyclicLR", "max_momentum", max_momentum, optimizer)
        for group, rate in zip(optimizer.param_groups, low, strict=True):
            if last_epoch == -1:
                set_rate(group, float(rate))
        super().__init__(optimizer, last_epoch)
        self.base_lrs = [float(rate) for rate in low]  # whatever rate another schedule found at first

    def _share(self, step: int) -> float:
        """How far from the low end, between 0 and 1 times the scale."""
        cycle = math.floor(1 + step / self.total_size)
        at = 1 + step / self.total_size - cycle
        up = self.step_ratio
        return (at / up if at <= up else (at - 1) / (up - 1)) * self._scale(cycle, step)

    def _scale(self, cycle: int, step: int) -> float:
        return self.scale_fn(cycle if self.scale_mode == "cycle" else step)

    def _init_scale_fn(self) -> None:
        """Finds the function of the mode, which pickles name."""
        if self._scale_fn_custom is not None:
            return
        self.scale_mode = "iterations" if self.mode == "exp_range" else "cycle"
        self._scale_fn_ref: Callable[[float], float]
        if self.mode == "triangular":
            self._scale_fn_ref = self._triangular_scale_fn
        elif self.mode == "triangular2":
            self._scale_fn_ref = self._triangular2_scale_fn
        else:
            self._scale_fn_ref = partial(self._exp_range_scale_fn, self.gamma)

    @staticmethod
    def _triangular_scale_fn(x: float) -> float:
        return 1.0

    @staticmethod
    def _triangular2_scale_fn(x: float) -> float:
        return 1 / 2 ** (x - 1)

    @staticmethod
    def _exp_range_scale_fn(gamma: float, x: float) -> float:
        return gamma**x

    def scale_fn(self, x: float) -> float:
        """The height of cycle, or step, ``x`` by the mode or by the function given."""
        return self._scale_fn_ref(x) if self._scale_fn_custom is None else self._scale_fn_custom(x)

    def rates(self, step: int) -> list[float]:
        share = self._share(max(step, 0))
        return [low + (high - low) * share for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def momentum(self, step: int, group: int) -> float:
        low, high = self.base_momentums[group], self.max_momentums[group]
        return high - (high - low) * self._share(max(step, 0))

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "_scale_fn_custom": attributes_of(self._scale_fn_custom)}

    def _take(self, state: dict[str, Any]) -> None:
        super()._take(state)
        take_attributes(self._scale_fn_custom, state.get("_scale_fn_custom"))
        self._init_scale_fn()


class OneCycleLR(_Cycle):
    """Up to ``max_lr`` in the first ``pct_start`` of the steps, then far down.

    Args:
        optimizer: whose rates are set.
        max_lr: highest rate; for all groups, or one for each.
        total_steps: steps of the whole; or ``epochs`` times ``steps_per_epoch``.
        pct_start: share of the steps in which the rate rises.
        anneal_strategy: ``cos`` or ``linear``.
        cycle_momentum, base_momentum, max_momentum: momentum goes down while the rate goes up.
        div_factor: the first rate is ``max_lr / div_factor``.
        final_div_factor: the last rate is the first divided by this.
        three_phase: down to the first rate as fast as up, then on to the last.
        last_epoch: see `LRScheduler`.

    Raises:
        ValueError: no number of steps, options out of range, or a step beyond the last.

    Example:
        >>> optimizer = optim.SGD([torch.zeros(1)], lr=1.0)
        >>> schedule = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=3, anneal_strategy="linear")
        >>> for _ in range(3):
        ...     print(schedule.get_last_lr())
        ...     optimizer.step()
        ...     schedule.step()
        [0.9523811428571428]
        [0.4761925714285714]
        [4.000000000004e-06]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.85,
        max_momentum: float | Sequence[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        self.total_steps = _total(total_steps, epochs, steps_per_epoch)
        if not 0 <= pct_start <= 1:
            raise ValueError(f"OneCycleLR: argument 'pct_start' must be between 0 and 1, found {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"OneCycleLR: argument 'anneal_strategy' must be 'cos' or 'linear', found {anneal_strategy!r}"
            )
        self._schedule_phases = _phases(pct_start, self.total_steps, three_phase)
        self._anneal_func_type, self.cycle_momentum = anneal_strategy, cycle_momentum
        highs = per_group("OneCycleLR", "max_lr", max_lr, optimizer)
        if cycle_momentum:
            self._begin_momentum(optimizer, base_momentum, max_momentum, last_epoch)
        for group, high in zip(optimizer.param_groups, highs, strict=True):
            first = high / div_factor
            if last_epoch == -1:
                group["initial_lr"] = first
            _begin(group, last_epoch, max_lr=high, min_lr=first / final_div_factor)
        super().__init__(optimizer, last_epoch)

    def _along(self, step: int, group: dict[str, Any], what: str) -> float:
        """``lr`` or ``momentum`` of a group at a step: between the marks of the phase that the step is in."""
        if step > self.total_steps:
            raise ValueError(f"OneCycleLR: step {step} is beyond the {self.total_steps} steps of the cycle")
        begin, last = 0.0, self._schedule_phases[-1]
        phase = last
        for phase in self._schedule_phases:
            if step <= phase["end_step"] or phase is last:
                break
            begin = phase["end_step"]
        end = phase["end_step"]
        done = (step - begin) / (end - begin) if end != begin else 1.0
        return self._between(group[phase[f"start_{what}"]], group[phase[f"end_{what}"]], done)

    def _between(self, first: float, last: float, done: float) -> float:
        if self._anneal_func_type == "linear":
            return first + (last - first) * done
        return last + (first - last) * (1 + math.cos(math.pi * done)) / 2

    def rates(self, step: int) -> list[float]:
        return [self._along(max(step, 0), group, "lr") for group in self.optimizer.param_groups]

    def momentum(self, step: int, group: int) -> float:
        return self._along(max(step, 0), self.optimizer.param_groups[group], "momentum")


def _begin(group: dict[str, Any], last_epoch: int, **marks: float) -> None:
    """Notes marks of a schedule in a group; one that goes on keeps those it finds."""
    for name, value in marks.items():
        if last_epoch == -1 or name not in group:
            group[name] = value


def _phases(share: float, steps: int, three: bool) -> list[dict[str, Any]]:
    """The last step of each phase and the marks at its ends, by their names in the groups."""
    low, first, high = "min_lr", "initial_lr", "max_lr"
    least, most = "base_momentum", "max_momentum"
    rise = _phase(share * steps - 1, first, high, most, least)
    if not three:
        return [rise, _phase(steps - 1, high, low, least, most)]
    fall = _phase(2 * share * steps - 2, high, first, least, most)
    return [rise, fall, _phase(steps - 1, first, low, most, most)]


def _phase(end: float, *marks: str) -> dict[str, Any]:
    names = ("start_lr", "end_lr", "start_momentum", "end_momentum")
    return {"end_step": end, **dict(zip(names, marks, strict=True))}


def _total(total_steps: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    given: dict[str, Any] = {"total_steps": total_steps}
    if total_steps is None:
        given = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
    for name, value in given.items():
        if not isinstance(value, int) or value <= 0:
            raise ValueError(
                f"OneCycleLR: argument '{name}' must be a positive int, found {value!r}; "
                "give total_steps, or epochs and steps_per_epoch"
            )
    return math.prod(given.values())
