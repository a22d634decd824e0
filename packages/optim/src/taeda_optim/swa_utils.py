"""Averages of a model's parameters along training: stochastic weight averaging, and exponential moving averages.

Sources: Izmailov et al., "Averaging Weights Leads to Wider Optima and Better Generalization", 2018; Polyak and
Juditsky, "Acceleration of Stochastic Approximation by Averaging", 1992.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any

from taeda_optim.lr_scheduler.base import LRScheduler, per_group
from taeda_optim.optimizer import _group_tensors_by_device_and_dtype as _group_tensors_by_device_and_dtype
from taeda_registry.interrupts import Late
from taeda_registry.slots import nn, tensor

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

Average = Callable[[Any, Any, Any], Any]
MultiAverage = Callable[[Any, Any, Any], None]


def _check_decay(decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_multi_avg_fn(decay: float = 0.999) -> MultiAverage:
    """The function that keeps ``decay`` of averages and takes the rest from the model, for lists of tensors."""
    _check_decay(decay)

    @tensor.no_grad()
    def ema_update(ema_param_list: Any, current_param_list: Any, _: Any) -> None:
        _check_dtypes(ema_param_list, current_param_list)
        for average, current in zip(ema_param_list, current_param_list, strict=True):
            if average.is_floating_point() or average.is_complex():
                average.lerp_(current, 1 - decay)
            else:
                average.copy_(average * decay + current * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> MultiAverage:
    """The function that keeps the mean of all models so far, for lists of tensors."""

    @tensor.no_grad()
    def swa_update(averaged_param_list: Any, current_param_list: Any, num_averaged: Any) -> None:
        share = 1 / (float(num_averaged) + 1)
        _check_dtypes(averaged_param_list, current_param_list)
        for average, current in zip(averaged_param_list, current_param_list, strict=True):
            if average.is_floating_point() or average.is_complex():
                average.lerp_(current, share)
            else:
                average.add_(((current - average) * share).to(average.dtype))

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """The function that keeps ``decay`` of an average and takes the rest from the model."""
    _check_decay(decay)

    @tensor.no_grad()
    def ema_update(ema_param: Any, current_param: Any, num_averaged: Any) -> Any:
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Average:
    """The function that keeps the mean of all models so far."""

    @tensor.no_grad()
    def swa_update(averaged_param: Any, current_param: Any, num_averaged: Any) -> Any:
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


def _check_pairs(pairs: Iterable[tuple[Any, Any]]) -> None:
    """Refuses what could not be written into an average, before anything is."""
    for place, (average, value) in enumerate(pairs):
        own, given = average.shape, value.shape
        fits = len(given) <= len(own) and all(
            b in (1, a) for a, b in zip(reversed(own), reversed(given), strict=False)
        )
        if not fits:
            raise RuntimeError(
                f"update_parameters: value {place} of argument 'model' has shape {tuple(value.shape)}, expected "
                f"{tuple(average.shape)} as its average has"
            )


def _check_dtypes(averages: Any, current: Any) -> None:
    """Refuses values that averages cannot be moved towards, before one is moved."""
    for place, (average, value) in enumerate(zip(averages, current, strict=True)):
        if average.dtype != value.dtype and (average.is_floating_point() or average.is_complex()):
            raise RuntimeError(
                f"update_parameters: value {place} of argument 'model' has dtype {value.dtype}, expected "
                f"{average.dtype} as its average has"
            )


class AveragedModel(nn.Module):
    """A copy of a model whose parameters are averages of the model's along training.

    Args:
        model: The model; it is copied.
        device: Where the averages are kept.
        avg_fn: The new average from the old one, the model's parameter and the number of models so far; by default
            the mean of all.
        multi_avg_fn: The same for lists of tensors, in place.
        use_buffers: Whether buffers are averaged too; else they are copied.

    Attributes:
        module: The averaged copy.
        n_averaged: Number of models so far.

    Raises:
        AssertionError: Both functions given.

    Example:
        >>> ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.999))
        >>> optimizer.step()
        >>> ema.update_parameters(model)
    """

    n_averaged: Any

    def __init__(
        self,
        model: Any,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: MultiAverage | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor.tensor(0, dtype=tensor.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the averaged model gives."""
        return self.module(*args, **kwargs)

    def _averaged(self, model: Any) -> list[Any]:
        buffers = model.buffers() if self.use_buffers else ()
        return [value.detach() for value in chain(model.parameters(), buffers)]

    def update_parameters(self, model: Any) -> None:
        """Takes the present parameters of ``model`` into the averages; the first ones are copied."""
        averages = self._averaged(self.module)
        given = self._averaged(model)
        buffers = [] if self.use_buffers else list(zip(self.module.buffers(), model.buffers(), strict=True))
        _check_pairs(chain(zip(averages, given, strict=True), buffers))
        current = [value.to(average.device) for value, average in zip(given, averages, strict=True)]
        with Late():  # averages and their count go together
            if int(self.n_averaged) == 0:
                for average, value in zip(averages, current, strict=True):
                    average.copy_(value)
            elif self.avg_fn is not None:
                pairs = zip(averages, current, strict=True)
                # All of them before one is written: the function may raise.
                moved = [self.avg_fn(old, new, self.n_averaged.to(old.device)) for old, new in pairs]
                _check_pairs(zip(averages, moved, strict=True))
                for average, value in zip(averages, moved, strict=True):
                    average.copy_(value)
            elif self.multi_avg_fn is not None:
                self.multi_avg_fn(averages, current, self.n_averaged)
            else:
                same = [value.to(average.dtype) for value, average in zip(current, averages, strict=True)]
                get_swa_multi_avg_fn()(averages, same, self.n_averaged)
            for kept, value in buffers:
                kept.detach().copy_(value.detach().to(kept.device))
            self.n_averaged += 1


def update_bn(loader: Iterable[Any], model: Any, device: Any = None) -> None:
    """Finds the running statistics of a model's batch normalisations anew, from one pass over data.

    Args:
        loader: Batches, tensors or sequences whose first element is one.
        model: The model; it is called in training mode, and gets its mode back.
        device: Where batches are moved to first.
    """
    norms = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
    training = model.training
    model.train()
    for norm in norms:
        norm.momentum = None
    try:
        with tensor.no_grad():
            for batch in loader:
                batch = batch[0] if isinstance(batch, (list, tuple)) else batch
                model(batch if device is None else batch.to(device))
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
        model.train(training)


class SWALR(LRScheduler):
    """From the rate found to a constant one in ``anneal_epochs`` steps.

    Args:
        optimizer: whose rates are set.
        swa_lr: the constant rate; for all groups, or one for each.
        anneal_epochs: steps of the change.
        anneal_strategy: ``cos`` or ``linear``.
        last_epoch: see `LRScheduler`.

    Raises:
        ValueError: an unknown strategy, or a negative number of steps.
    """

    def __init__(
        self,
        optimizer: Any,
        swa_lr: float,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        rates = per_group("SWALR", "swa_lr", swa_lr, optimizer)
        for rate, group in zip(rates, optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"SWALR: argument 'anneal_strategy' must be 'cos' or 'linear', found {anneal_strategy!r}"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(
                f"SWALR: argument 'anneal_epochs' must be an int of at least 0, found {anneal_epochs!r}"
            )
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def anneal_func(self, t: float) -> float:
        """How far the rates have come at a share ``t`` of the way in time, by the strategy."""
        return t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def _share(self, step: int) -> float:
        """How far the change has come after ``step`` steps."""
        return self.anneal_func(max(0.0, min(1.0, step / max(1, self.anneal_epochs))))

    def rates(self, step: int) -> list[float]:
        """The rates that are there: where the optimizer stands says nothing of them."""
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def get_lr(self) -> list[float]:
        """The rates of this step; what others did to the rates since the last one is kept."""
        groups = self.optimizer.param_groups
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(max(0, step - 1)), self._share(max(0, step))
        rates = []
        for group in groups:
            goal, found = float(group["swa_lr"]), float(group["lr"])
            start = goal if before == 1 else (found - before * goal) / (1 - before)
            rates.append(goal * now + start * (1 - now))
        return rates
