"""The schedule that follows a measure instead of the step."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

from taeda_optim.lr_scheduler.base import EPOCH_DEPRECATION_WARNING, LRScheduler, per_group, set_rate
from taeda_optim.optimizer import Optimizer


class ReduceLROnPlateau(LRScheduler):
    """Times ``factor`` when a measure has not improved for ``patience`` steps.

    Args:
        optimizer: whose rates are set.
        mode: whether ``min`` or ``max`` is better.
        factor: below 1.
        patience: steps without improvement that are let pass.
        threshold, threshold_mode: what counts as improvement, relative (``rel``) or absolute (``abs``).
        cooldown: steps after a reduction that do not count.
        min_lr: lowest rate; for all groups, or one for each.
        eps: smaller changes of a rate are left out.

    Raises:
        TypeError: no Optimizer.
        ValueError: options out of range.

    Example:
        >>> optimizer = optim.SGD([torch.zeros(1)], lr=1.0)
        >>> schedule = optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
        >>> for loss in (3.0, 2.0, 2.0, 2.0):
        ...     schedule.step(loss)
        >>> schedule.get_last_lr()
        [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0,
        eps: float = 1e-8,
    ) -> None:
        kind = "ReduceLROnPlateau"
        if not isinstance(optimizer, Optimizer):
            raise TypeError(
                f"{kind}: argument 'optimizer' must be an Optimizer, found {type(optimizer).__name__}"
            )
        if factor >= 1.0:
            raise ValueError(f"{kind}: argument 'factor' must be below 1, found {factor}")
        if mode not in ("min", "max"):
            raise ValueError(f"{kind}: argument 'mode' must be 'min' or 'max', found {mode!r}")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(
                f"{kind}: argument 'threshold_mode' must be 'rel' or 'abs', found {threshold_mode!r}"
            )
        # In the order that states of PyTorch's have.
        self.factor, self.optimizer = factor, optimizer
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.min_lrs = per_group(kind, "min_lr", min_lr, optimizer)
        self.patience, self.cooldown, self.eps = patience, cooldown, eps
        self.last_epoch, self._last_lr = 0, self.get_lr()
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self._reset()

    def _reset(self) -> None:
        self.best = self.mode_worse
        self.cooldown_counter = self.num_bad_epochs = self.last_epoch = 0

    @property
    def in_cooldown(self) -> bool:
        """Whether a reduction was so recent that steps do not count."""
        return self.cooldown_counter > 0

    def step(self, metrics: float, epoch: int | None = None) -> None:  # type: ignore[override]
        """Takes the latest measure into account."""
        value = float(metrics)
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(value, self.best):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(self.last_epoch)
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = [float(group["lr"]) for group in self.optimizer.param_groups]

    def _reduce_lr(self, epoch: int) -> None:
        """Lowers the rates; derived schedules may do more."""
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    "expected `min_lrs` length to match the number of groups, found "
                    f"{len(self.min_lrs)} for {len(groups)}; set `min_lrs` when adding groups"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, low in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, low)
            if old - new > self.eps:
                set_rate(group, new)

    def is_better(self, value: float, best: float) -> bool:
        """Whether a measure improves on the best so far."""
        relative, down = self.threshold_mode == "rel", self.mode == "min"
        if down:
            return value < (best * (1 - self.threshold) if relative else best - self.threshold)
        return value > (best * (1 + self.threshold) if relative else best + self.threshold)

    def _is_better(self, a: float, best: float) -> bool:
        """`is_better`, by the name that derived schedules define anew."""
        return self.is_better(a, best)

    def get_lr(self) -> list[float]:
        """The learning rates in use."""
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """The measure's best value, the counters and the options, under PyTorch's keys."""
        return self._saved()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes to a saved state and sets its learning rates."""
        super().load_state_dict(state_dict)
        del self._pure, self._pure_at
