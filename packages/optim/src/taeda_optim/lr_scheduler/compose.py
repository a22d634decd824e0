"""Schedules made of schedules: one after another, or all at once."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import Any

from taeda_optim.lr_scheduler.base import LRScheduler, set_rate
from taeda_optim.lr_scheduler.plateau import ReduceLROnPlateau
from taeda_optim.optimizer import Optimizer


class _Composed(LRScheduler):
    """What both share: the parts' states, and rates read from the optimizer."""

    _unsaved = LRScheduler._unsaved | {"_schedulers"}
    _schedulers: list[LRScheduler]

    def get_lr(self) -> list[float]:
        """The learning rates in use."""
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def _check(self, optimizer: Optimizer | None) -> Optimizer:
        kind = type(self).__name__
        if not self._schedulers:
            raise ValueError(f"{kind}: argument 'schedulers' is empty")
        for i, part in enumerate(self._schedulers):
            if not isinstance(part, LRScheduler):
                raise TypeError(f"{kind}: schedulers[{i}] must be a schedule, found {type(part).__name__}")
            if isinstance(part, ReduceLROnPlateau):
                raise ValueError(
                    f"{kind}: schedulers[{i}] is a ReduceLROnPlateau, whose step needs a metric that {kind} has not"
                )
        first = optimizer if optimizer is not None else self._schedulers[0].optimizer
        for i, part in enumerate(self._schedulers):
            if part.optimizer is not first:
                raise ValueError(f"{kind}: schedulers[{i}] belongs to another optimizer")
        return first

    def state_dict(self) -> dict[str, Any]:
        """The step, and the states of the parts."""
        return {**self._saved(), "_schedulers": [part.state_dict() for part in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over a state of `state_dict`; on an error nothing has changed."""
        parts, kind = state_dict.get("_schedulers"), type(self).__name__
        if parts is None or len(parts) != len(self._schedulers):
            found = 0 if parts is None else len(parts)
            raise ValueError(
                f"{kind}.load_state_dict: expected states of {len(self._schedulers)} schedulers, found {found}"
            )
        before = [part.state_dict() for part in self._schedulers]
        rates = self.get_lr()
        try:
            for part, state in zip(self._schedulers, parts, strict=True):
                part.load_state_dict(state)
            self._load_own({k: v for k, v in state_dict.items() if k != "_schedulers"})
        except BaseException:
            for part, state in zip(self._schedulers, before, strict=True):
                part.load_state_dict(state)
            self._set(rates)
            raise

    def _load_own(self, state: dict[str, Any]) -> None:
        self._take(state)
        self._set(list(state.get("_last_lr", self.get_lr())))


class SequentialLR(_Composed):
    """Schedules one after another, changing at ``milestones``; each counts its own steps from 0.

    Args:
        optimizer: whose rates are set.
        schedulers: schedules of that optimizer.
        milestones: steps at which the second, third ... takes over.
        last_epoch: see `LRScheduler`.

    Raises:
        TypeError: a part that is no schedule.
        ValueError: a number of milestones other than one less than schedulers, another optimizer, or a part whose step
            needs more than the number of the step.

    Example:
        >>> warmup = LinearLR(optimizer, total_iters=10)
        >>> schedule = SequentialLR(optimizer, [warmup, CosineAnnealingLR(optimizer, 90)], milestones=[10])
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        self._schedulers, self._milestones = list(schedulers), list(milestones)
        self.optimizer = self._check(optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"SequentialLR: argument 'milestones' has {len(milestones)} steps, expected {len(schedulers) - 1}"
            )
        self.last_epoch = last_epoch
        # The parts have set their own first rates when they were made; only the active one's counts.
        for group in optimizer.param_groups:
            set_rate(group, group["initial_lr"])
        first = self._schedulers[bisect.bisect_right(self._milestones, 0)]
        for part in self._schedulers:
            for simple in _simple(part) if part is not first else ():
                simple.last_epoch -= 1  # waits where it was before its constructor's step
        if last_epoch == -1 and type(first).step is LRScheduler.step and not first._sets_anew:
            self.last_epoch = 0
            first._begin_again()
            self._last_lr = list(first._last_lr)
            return
        self.step()
        first._step_count = 1  # of the step that was its own, once more

    def step(self, epoch: int | None = None) -> None:
        """Goes on to the next step; with ``epoch``, goes to that step."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        which = bisect.bisect_right(self._milestones, self.last_epoch)
        start = max(self._milestones[which - 1], 0) if which else 0
        part, at = self._schedulers[which], self.last_epoch - start
        if at == 0 and isinstance(part, ChainedScheduler):
            part._begin_again()
        elif at == 0 or part.last_epoch != at - 1:
            part._step_count = at  # schedules may count by it
            (part._go if type(part).step is LRScheduler.step else part.step)(at)
            part._step_count = at + 1
        else:
            part.step()
        self._last_lr = [float(rate) for rate in part.get_last_lr()]


def _simple(part: LRScheduler) -> list[LRScheduler]:
    """A schedule, or those that it is made of."""
    if not isinstance(part, _Composed):
        return [part]
    return [simple for inner in part._schedulers for simple in _simple(inner)]


class ChainedScheduler(_Composed):
    """Schedules all at once: each step takes a step of every one, and their factors multiply.

    Args:
        schedulers: schedules of one optimizer.
        optimizer: that optimizer; by default the first schedule's.

    Raises:
        TypeError, ValueError: parts that are no schedules, of different optimizers, or that follow a metric.

    Example:
        >>> optimizer = optim.SGD([torch.zeros(1)], lr=1.0)
        >>> parts = [optim.lr_scheduler.ConstantLR(optimizer, 0.5, 2), optim.lr_scheduler.ExponentialLR(optimizer, 0.5)]
        >>> schedule = optim.lr_scheduler.ChainedScheduler(parts)
        >>> schedule.get_last_lr()
        [0.5]
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        self._schedulers = list(schedulers)
        self.optimizer = self._check(optimizer)
        self._last_lr = self.get_lr()

    def _begin_again(self) -> None:
        """The first step of every schedule once more, from the groups' first rates."""
        for group in self.optimizer.param_groups:
            set_rate(group, group["initial_lr"])
        for part in _simple(self):
            part.last_epoch, part._step_count = -1, 0
        self.step()

    @property
    def last_epoch(self) -> int:  # type: ignore[override]
        """The step that the parts are at."""
        return self._schedulers[-1].last_epoch

    def step(self, epoch: int | None = None) -> None:
        """Takes a step of every schedule."""
        for part in self._schedulers:
            part.step()
        self._last_lr = self.get_lr()
