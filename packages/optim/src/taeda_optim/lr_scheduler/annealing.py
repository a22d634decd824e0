"""Schedules that anneal to a low rate: polynomials and cosines."""

from __future__ import annotations

import math
from typing import Any

from taeda_optim.lr_scheduler.base import LRScheduler
from taeda_optim.optimizer import Optimizer


class PolynomialLR(LRScheduler):
    """Base rate times ``(1 - step / total_iters) ** power``, then 0.

    Example:
        >>> optimizer = optim.SGD([torch.zeros(1)], lr=1.0)
        >>> schedule = optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4)
        >>> for _ in range(4):
        ...     print(schedule.get_last_lr())
        ...     optimizer.step()
        ...     schedule.step()
        [1.0]
        [0.75]
        [0.5]
        [0.25]
    """

    _takes_found = True

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def rate(self, step: int, base: float) -> float:
        return base * (1 - min(step, self.total_iters) / self.total_iters) ** self.power


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the base rate to ``eta_min`` in ``T_max`` steps, and back again.

    Example:
        >>> optimizer = optim.SGD([torch.zeros(1)], lr=1.0)
        >>> schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
        >>> for _ in range(3):
        ...     print(schedule.get_last_lr())
        ...     optimizer.step()
        ...     schedule.step()
        [1.0]
        [0.5]
        [0.0]

    Source:
        Loshchilov and Hutter, SGDR: stochastic gradient descent with warm restarts (ICLR 2017).
    """

    _takes_found = True

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, step: int, base: float) -> float:
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * step / self.T_max)) / 2


class CosineAnnealingWarmRestarts(LRScheduler):
    """Cosine annealing that starts again after ``T_0`` steps, each period ``T_mult`` times as long as the last.

    ``step(epoch)`` takes fractions of an epoch too.

    Example:
        >>> optimizer = optim.SGD([torch.zeros(1)], lr=1.0)
        >>> schedule = optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
        >>> for _ in range(3):
        ...     print(schedule.get_last_lr())
        ...     optimizer.step()
        ...     schedule.step()
        [1.0]
        [0.5]
        [1.0]

    Source:
        Loshchilov and Hutter, SGDR: stochastic gradient descent with warm restarts (ICLR 2017).
    """

    _sets_anew = _takes_epochs = True

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        for name, value in (("T_0", T_0), ("T_mult", T_mult)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(
                    f"CosineAnnealingWarmRestarts: argument '{name}' must be a positive int, found {value!r}"
                )
        self.T_0, self.T_i, self.T_mult, self.eta_min = T_0, T_0, T_mult, eta_min
        # Steps since the last restart, and the length of the period under way.
        self.T_cur, self.T_i = self._place(last_epoch)
        super().__init__(optimizer, last_epoch)

    def _go(self, epoch: float | None = None) -> None:  # type: ignore[override]
        if epoch is not None:
            self.T_cur, self.T_i = self._place(epoch)
        else:
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        super()._go(epoch)  # type: ignore[arg-type]
        self.last_epoch = math.floor(self.last_epoch)  # the fraction stands in T_cur
        self._step_count = 0  # steps may go back: nothing is told by how many there were

    def _place(self, step: float) -> tuple[float, int]:
        if step < 0:
            return step, self.T_0
        if self.T_mult == 1:
            return step % self.T_0, self.T_0
        period, at = self.T_0, step
        while at >= period:
            at -= period
            period *= self.T_mult
        return at, period

    def rate(self, step: float, base: float) -> float:
        at, period = (self.T_cur, self.T_i) if step == self.last_epoch else self._place(step)
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * at / period)) / 2

    def _take(self, state: dict[str, Any]) -> None:
        super()._take(state)
        if "T_cur" not in state:
            self.T_cur, self.T_i = self._place(self.last_epoch)
