"""Schedules that multiply the first learning rate with a factor."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from taeda_optim.lr_scheduler.base import LRScheduler, per_group
from taeda_optim.optimizer import Optimizer


class LambdaLR(LRScheduler):
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


class MultiplicativeLR(LRScheduler):
    """The last rate times ``lr_lambda(step)``; one function, or one for each group."""

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        self.lr_lambdas = per_group("MultiplicativeLR", "lr_lambda", lr_lambda, optimizer)
        self._products: list[list[float]] = [[1.0] * len(optimizer.param_groups)]  # by step
        super().__init__(optimizer, last_epoch)

    def rates(self, step: int) -> list[float]:
        products = self._products
        while len(products) <= step:
            at = len(products)
            products.append([p * factor(at) for p, factor in zip(products[-1], self.lr_lambdas, strict=True)])
        return [base * product for base, product in zip(self.base_lrs, products[max(step, 0)], strict=True)]

    def state_dict(self) -> dict[str, Any]:
        return {key: value for key, value in super().state_dict().items() if key != "_products"}


class StepLR(LRScheduler):
    """Times ``gamma`` every ``step_size`` steps."""

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, step: int, base: float) -> float:
        return base * self.gamma ** (step // self.step_size)


class MultiStepLR(LRScheduler):
    """Times ``gamma`` at each of the ``milestones``."""

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, step: int, base: float) -> float:
        return base * self.gamma ** bisect.bisect_right(self.milestones, step)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        # PyTorch keeps how often each milestone occurs.
        given = state_dict.get("milestones")
        if isinstance(given, dict):
            counted = sorted(int(at) for at, count in given.items() for _ in range(count))
            state_dict = {**state_dict, "milestones": counted}
        super().load_state_dict(state_dict)


class ExponentialLR(LRScheduler):
    """Times ``gamma`` every step."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, step: int, base: float) -> float:
        return base * self.gamma**step


class ConstantLR(LRScheduler):
    """Times ``factor`` for the first ``total_iters`` steps."""

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
    """Times a factor that goes linearly from ``start_factor`` to ``end_factor`` over ``total_iters`` steps."""

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
