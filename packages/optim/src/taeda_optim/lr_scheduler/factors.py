"""Schedules that multiply the first learning rate with a factor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from taeda_optim.lr_scheduler.base import LRScheduler, attributes_of, per_group, take_attributes
from taeda_optim.optimizer import Optimizer


class _Functions(LRScheduler):
    """Schedules of functions that the caller gives, one for each group."""

    _unsaved = LRScheduler._unsaved | {"lr_lambdas", "_products"}
    lr_lambdas: list[Callable[[int], float]]

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "lr_lambdas": [attributes_of(f) for f in self.lr_lambdas]}

    def _take(self, state: dict[str, Any]) -> None:
        super()._take(state)
        for function, attributes in zip(self.lr_lambdas, state.get("lr_lambdas", ()), strict=False):
            take_attributes(function, attributes)


class LambdaLR(_Functions):
    """Base rate times ``lr_lambda(step)``; one function, or one for each group.

    Example:
        >>> schedule = LambdaLR(optimizer, lambda step: 0.95**step)
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        self.lr_lambdas = per_group("LambdaLR", "lr_lambda", lr_lambda, optimizer)
        super().__init__(optimizer, last_epoch)

    def rates(self, step: int) -> list[float]:
        return [base * factor(step) for base, factor in zip(self.base_lrs, self.lr_lambdas, strict=True)]

    def _relative(self, i: int, rate: float) -> float:
        return rate


class MultiplicativeLR(_Functions):
    """The last rate times ``lr_lambda(step)``; one function, or one for each group.

    Example:
        >>> optimizer = optim.SGD([torch.zeros(1)], lr=1.0)
        >>> schedule = optim.lr_scheduler.MultiplicativeLR(optimizer, lambda step: 0.5)
        >>> for _ in range(3):
        ...     print(schedule.get_last_lr())
        ...     optimizer.step()
        ...     schedule.step()
        [1.0]
        [0.5]
        [0.25]
    """

    _takes_found = True

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        self.lr_lambdas = per_group("MultiplicativeLR", "lr_lambda", lr_lambda, optimizer)
        self._products: list[list[float]] = [[1.0] * len(optimizer.param_groups)]  # by step
        super().__init__(optimizer, last_epoch)

    def _go(self, epoch: int | None = None) -> None:
        if epoch is None:
            super()._go()
            return
        self._meet_groups()
        self.last_epoch, self._step_count = epoch, self._step_count + 1
        self._pure, self._pure_at = self.rates(epoch), epoch
        groups = self.optimizer.param_groups
        self._set([float(g["lr"]) * factor(epoch) for g, factor in zip(groups, self.lr_lambdas, strict=True)])

    def rates(self, step: int) -> list[float]:
        products = self._products
        while len(products) <= step:
            at = len(products)
            products.append([p * factor(at) for p, factor in zip(products[-1], self.lr_lambdas, strict=True)])
        return [base * product for base, product in zip(self.base_lrs, products[max(step, 0)], strict=True)]

    def _take(self, state: dict[str, Any]) -> None:
        super()._take(state)
        self._products = self._products[:1]  # the functions may have changed


class StepLR(LRScheduler):
    """Times ``gamma`` every ``step_size`` steps.

    Example:
        >>> optimizer = optim.SGD([torch.zeros(1)], lr=1.0)
        >>> schedule = optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
        >>> for _ in range(4):
        ...     print(schedule.get_last_lr())
        ...     optimizer.step()
        ...     schedule.step()
        [1.0]
        [1.0]
        [0.5]
        [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, step: int, base: float) -> float:
        return base * self.gamma ** (step // self.step_size)


class MultiStepLR(LRScheduler):
    """Times ``gamma`` at each of the ``milestones``.

    Example:
        >>> optimizer = optim.SGD([torch.zeros(1)], lr=1.0)
        >>> schedule = optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3], gamma=0.5)
        >>> for _ in range(4):
        ...     print(schedule.get_last_lr())
        ...     optimizer.step()
        ...     schedule.step()
        [1.0]
        [0.5]
        [0.5]
        [0.25]
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, step: int, base: float) -> float:
        return base * self.gamma ** sum(count for at, count in self.milestones.items() if at <= step)

    def _take(self, state: dict[str, Any]) -> None:
        super()._take(state)
        saved = state.get("milestones", self.milestones)
        # A mapping of counts may have gone through a format whose keys are text; earlier states hold a list.
        pairs = saved.items() if isinstance(saved, Mapping) else Counter(saved).items()
        self.milestones = Counter({int(at): count for at, count in pairs})


class ExponentialLR(LRScheduler):
    """Times ``gamma`` every step.

    Example:
        >>> optimizer = optim.SGD([torch.zeros(1)], lr=1.0)
        >>> schedule = optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> for _ in range(3):
        ...     print(schedule.get_last_lr())
        ...     optimizer.step()
        ...     schedule.step()
        [1.0]
        [0.5]
        [0.25]
    """

    _takes_found = True

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, step: int, base: float) -> float:
        return base * self.gamma**step


class ConstantLR(LRScheduler):
    """Times ``factor`` for the first ``total_iters`` steps.

    Example:
        >>> optimizer = optim.SGD([torch.zeros(1)], lr=1.0)
        >>> schedule = optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
        >>> for _ in range(4):
        ...     print(schedule.get_last_lr())
        ...     optimizer.step()
        ...     schedule.step()
        [0.5]
        [0.5]
        [1.0]
        [1.0]
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if not 0 <= factor <= 1:
            raise ValueError(f"ConstantLR: argument 'factor' must be between 0 and 1, found {factor}")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, step: int, base: float) -> float:
        return base * (self.factor if step < self.total_iters else 1.0)


class LinearLR(LRScheduler):
    """Times a factor that goes linearly from ``start_factor`` to ``end_factor`` over ``total_iters`` steps.

    Example:
        >>> optimizer = optim.SGD([torch.zeros(1)], lr=1.0)
        >>> schedule = optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2)
        >>> for _ in range(4):
        ...     print(schedule.get_last_lr())
        ...     optimizer.step()
        ...     schedule.step()
        [0.5]
        [0.75]
        [1.0]
        [1.0]
    """

    _takes_found = True

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1:
            raise ValueError(
                f"LinearLR: argument 'start_factor' must be above 0 and at most 1, found {start_factor}"
            )
        if not 0 <= end_factor <= 1:
            raise ValueError(f"LinearLR: argument 'end_factor' must be between 0 and 1, found {end_factor}")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, step: int, base: float) -> float:
        done = min(step, self.total_iters) / self.total_iters if self.total_iters else 1.0
        return base * (self.start_factor + (self.end_factor - self.start_factor) * done)
