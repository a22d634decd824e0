"""Schedules that raise and lower the rate, and momentum against it (Smith, WACV 2017; Smith and Topin, 2018)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from taeda_optim.lr_scheduler.base import LRScheduler, per_group
from taeda_optim.optimizer import Optimizer


class _Cycle(LRScheduler):
    """What both cycles share: absolute rates, and momentum (or Adam's first beta) that goes the other way."""

    cycle_momentum: bool

    def _check_momentum(self, optimizer: Optimizer) -> None:
        if self.cycle_momentum and not {"momentum", "betas"} & set(optimizer.defaults):
            raise ValueError(
                f"{type(self).__name__}: argument 'cycle_momentum' needs an optimizer with 'momentum' or 'betas', "
                f"found {type(optimizer).__name__}"
            )

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
            if "betas" in group:
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
    """

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
        self.step_size_up, self.total_size = step_size_up, step_size_up + (step_size_down or step_size_up)
        self.mode, self.gamma, self.cycle_momentum = mode, gamma, cycle_momentum
        self._scale_fn, self.scale_mode = scale_fn, scale_mode
        self._check_momentum(optimizer)
        self.base_momentums = per_group("CyclicLR", "base_momentum", base_momentum, optimizer)
        self.max_momentums = per_group("CyclicLR", "max_momentum", max_momentum, optimizer)
        for group, rate in zip(optimizer.param_groups, low, strict=True):
            if last_epoch == -1:
                group["lr"] = group["initial_lr"] = float(rate)
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        """How far from the low end, between 0 and 1 times the scale."""
        cycle = math.floor(1 + step / self.total_size)
        at = 1 + step / self.total_size - cycle
        up = self.step_size_up / self.total_size
        return (at / up if at <= up else (at - 1) / (up - 1)) * self._scale(cycle, step)

    def _scale(self, cycle: int, step: int) -> float:
        if self._scale_fn is not None:
            return self._scale_fn(cycle if self.scale_mode == "cycle" else step)
        if self.mode == "triangular":
            return 1.0
        return 1 / 2 ** (cycle - 1) if self.mode == "triangular2" else self.gamma**step

    def rates(self, step: int) -> list[float]:
        share = self._share(max(step, 0))
        return [low + (high - low) * share for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def momentum(self, step: int, group: int) -> float:
        low, high = self.base_momentums[group], self.max_momentums[group]
        return high - (high - low) * self._share(max(step, 0))


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
        self.anneal, self.cycle_momentum = anneal_strategy, cycle_momentum
        self._check_momentum(optimizer)
        self.max_lrs = per_group("OneCycleLR", "max_lr", max_lr, optimizer)
        self.base_momentums = per_group("OneCycleLR", "base_momentum", base_momentum, optimizer)
        self.max_momentums = per_group("OneCycleLR", "max_momentum", max_momentum, optimizer)
        self.final_div_factor = final_div_factor
        peak, last = pct_start * self.total_steps - 1, self.total_steps - 1
        self.ends = [peak, 2 * pct_start * self.total_steps - 2, last] if three_phase else [peak, last]
        if last_epoch == -1:
            for group, high in zip(optimizer.param_groups, self.max_lrs, strict=True):
                group["initial_lr"], group["max_lr"] = high / div_factor, high
                group["min_lr"] = group["initial_lr"] / final_div_factor
        super().__init__(optimizer, last_epoch)

    def _along(self, step: int, marks: list[float]) -> float:
        """The value at a step of a curve through ``marks``, one for the start and each end of a phase."""
        if step > self.total_steps:
            raise ValueError(f"OneCycleLR: step {step} is beyond the {self.total_steps} steps of the cycle")
        begin = 0.0
        for phase, end in enumerate(self.ends):
            if step <= end or phase == len(self.ends) - 1:
                done = (step - begin) / (end - begin) if end != begin else 1.0
                return self._between(marks[phase], marks[phase + 1], done)
            begin = end
        raise AssertionError("the last phase ends the loop")

    def _between(self, first: float, last: float, done: float) -> float:
        if self.anneal == "linear":
            return first + (last - first) * done
        return last + (first - last) * (1 + math.cos(math.pi * done)) / 2

    def rates(self, step: int) -> list[float]:
        out = []
        for first, high in zip(self.base_lrs, self.max_lrs, strict=True):
            low = first / self.final_div_factor
            out.append(
                self._along(
                    max(step, 0), [first, high, first, low] if len(self.ends) == 3 else [first, high, low]
                )
            )
        return out

    def momentum(self, step: int, group: int) -> float:
        low, high = self.base_momentums[group], self.max_momentums[group]
        return self._along(max(step, 0), [high, low, high, high][: len(self.ends) + 1])


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
