"""Learning-rate schedules: each is a function of the step, so resuming at step k equals never having stopped."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from typing import Any

from taeda_optim.optimizer import Optimizer


class LRScheduler:
    """Base class: subclasses define ``rate(step, base)``, the learning rate at a step from the group's first one.

    Args:
        optimizer: whose groups' ``lr`` is set.
        last_epoch: step to start at, minus one; other than -1, groups must carry ``initial_lr``.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(
                f"{type(self).__name__}: argument 'optimizer' must be an Optimizer, found {type(optimizer).__name__}"
            )
        for group in optimizer.param_groups:
            if last_epoch == -1:
                group.setdefault("initial_lr", float(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"{type(self).__name__}: resuming at {last_epoch} needs 'initial_lr' in every group"
                )
        self.optimizer = optimizer
        self.base_lrs = [float(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self.step()

    def rate(self, step: int, base: float) -> float:
        """The learning rate at ``step`` of a group that began with ``base``."""
        raise NotImplementedError(f"{type(self).__name__}.rate is not defined")

    def rates(self, step: int) -> list[float]:
        """The learning rates of all groups at ``step``."""
        return [self.rate(step, base) for base in self.base_lrs]

    def step(self, epoch: int | None = None) -> None:
        """Goes on to the next step (or to ``epoch``) and sets the groups' learning rates."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._last_lr = self.rates(self.last_epoch)
        for group, lr in zip(self.optimizer.param_groups, self._last_lr, strict=True):
            group["lr"] = lr

    def get_last_lr(self) -> list[float]:
        """The learning rates in use."""
        return list(self._last_lr)

    get_lr = get_last_lr

    def state_dict(self) -> dict[str, Any]:
        """The step, and the first learning rates."""
        return {"last_epoch": self.last_epoch, "base_lrs": list(self.base_lrs)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes to a saved step and sets the learning rates of it."""
        self.base_lrs = list(state_dict.get("base_lrs", self.base_lrs))
        self.step(state_dict["last_epoch"])


class LambdaLR(LRScheduler):
    """Base rate times ``lr_lambda(step)``; one function or one for each group."""

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        count = len(optimizer.param_groups)
        self.lr_lambdas = [lr_lambda] * count if callable(lr_lambda) else list(lr_lambda)
        if len(self.lr_lambdas) != count:
            raise ValueError(
                f"LambdaLR: argument 'lr_lambda' has {len(self.lr_lambdas)} functions, expected {count}"
            )
        super().__init__(optimizer, last_epoch)

    def rates(self, step: int) -> list[float]:
        return [base * f(step) for base, f in zip(self.base_lrs, self.lr_lambdas, strict=True)]


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
        self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, step: int, base: float) -> float:
        return base * self.gamma ** bisect.bisect_right(self.milestones, step)


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
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, step: int, base: float) -> float:
        return base * (self.factor if step < self.total_iters else 1.0)


class LinearLR(LRScheduler):
    """Factor going linearly from ``start_factor`` to ``end_factor`` over ``total_iters`` steps."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, step: int, base: float) -> float:
        done = min(step, self.total_iters) / self.total_iters
        return base * (self.start_factor + (self.end_factor - self.start_factor) * done)


class PolynomialLR(LRScheduler):
    """Base rate times ``(1 - step / total_iters) ** power``, then 0."""

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def rate(self, step: int, base: float) -> float:
        return base * (1 - min(step, self.total_iters) / self.total_iters) ** self.power


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the base rate to ``eta_min`` in ``T_max`` steps, and back (Loshchilov and Hutter, ICLR 2017)."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, step: int, base: float) -> float:
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * step / self.T_max)) / 2


class CosineAnnealingWarmRestarts(LRScheduler):
    """Cosine annealing that starts again after ``T_0`` steps, each period ``T_mult`` times the last."""

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 <= 0 or T_mult < 1:
            raise ValueError(
                f"CosineAnnealingWarmRestarts: expected T_0 > 0 and T_mult >= 1, found {T_0} and {T_mult}"
            )
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, step: int, base: float) -> float:
        period, at = self.T_0, step
        while at >= period:
            at -= period
            period *= self.T_mult
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * at / period)) / 2


class OneCycleLR(LRScheduler):
    """Up to ``max_lr`` in the first ``pct_start`` of the steps, then down (Smith and Topin, 2018)."""

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float,
        total_steps: int,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        last_epoch: int = -1,
    ) -> None:
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"OneCycleLR: argument 'anneal_strategy' must be 'cos' or 'linear', found {anneal_strategy!r}"
            )
        self.max_lr, self.total_steps, self.anneal = max_lr, total_steps, anneal_strategy
        self.peak = pct_start * total_steps - 1
        self.start, self.end = max_lr / div_factor, max_lr / div_factor / final_div_factor
        super().__init__(optimizer, last_epoch)

    def rate(self, step: int, base: float) -> float:
        if step > self.total_steps:
            raise ValueError(f"OneCycleLR: step {step} is beyond the {self.total_steps} steps of the cycle")
        if step <= self.peak:
            return self._between(self.start, self.max_lr, step / self.peak if self.peak else 1.0)
        return self._between(self.max_lr, self.end, (step - self.peak) / (self.total_steps - 1 - self.peak))

    def _between(self, first: float, last: float, done: float) -> float:
        if self.anneal == "linear":
            return first + (last - first) * done
        return last + (first - last) * (1 + math.cos(math.pi * done)) / 2


class ReduceLROnPlateau:
    """Times ``factor`` when a measure has not improved for ``patience`` steps."""

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError(f"ReduceLROnPlateau: argument 'factor' must be below 1, found {factor}")
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(f"ReduceLROnPlateau: unknown mode {mode!r} or threshold_mode {threshold_mode!r}")
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown = threshold, threshold_mode, cooldown
        self.min_lr, self.eps = min_lr, eps
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = self.last_epoch = 0

    def step(self, metrics: float) -> None:
        """Takes the latest measure into account."""
        value = float(metrics)
        self.last_epoch += 1
        if self._better(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group in self.optimizer.param_groups:
                lr = max(float(group["lr"]) * self.factor, self.min_lr)
                if float(group["lr"]) - lr > self.eps:
                    group["lr"] = lr
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0

    def _better(self, value: float) -> bool:
        sign = 1 if self.mode == "min" else -1
        margin = abs(self.best) * self.threshold if self.threshold_mode == "rel" else self.threshold
        return (
            sign * value < sign * self.best - margin
            if math.isfinite(self.best)
            else sign * value < sign * self.best
        )

    def get_last_lr(self) -> list[float]:
        """The learning rates in use."""
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over a state of `state_dict`."""
        self.__dict__.update(state_dict)


class SequentialLR:
    """Schedules one after another, changing at ``milestones``."""

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"SequentialLR: expected {len(schedulers) - 1} milestones, found {len(milestones)}"
            )
        self.optimizer, self.schedulers, self.milestones = optimizer, list(schedulers), list(milestones)
        self.last_epoch = last_epoch
        self.step()

    def step(self) -> None:
        """Goes on to the next step."""
        self.last_epoch += 1
        which = bisect.bisect_right(self.milestones, self.last_epoch)
        self.schedulers[which].step(self.last_epoch - (self.milestones[which - 1] if which else 0))

    def get_last_lr(self) -> list[float]:
        """The learning rates in use."""
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """The step; the schedules are functions of it."""
        return {"last_epoch": self.last_epoch}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes to a saved step."""
        self.last_epoch = state_dict["last_epoch"] - 1
        self.step()


_LRScheduler = LRScheduler
