"""Learning-rate schedules as functions of the step: resuming at step k equals never having stopped."""

from taeda_optim.lr_scheduler.annealing import CosineAnnealingLR, CosineAnnealingWarmRestarts, PolynomialLR
from taeda_optim.lr_scheduler.base import (  # noqa: F401
    EPOCH_DEPRECATION_WARNING,
    LRScheduler,
    _enable_get_lr_call,
    _warn_get_lr_called_within_step,
)
from taeda_optim.lr_scheduler.compose import ChainedScheduler, SequentialLR
from taeda_optim.lr_scheduler.cycle import CyclicLR, OneCycleLR
from taeda_optim.lr_scheduler.factors import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    StepLR,
)
from taeda_optim.lr_scheduler.plateau import ReduceLROnPlateau

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]


class _LRScheduler(LRScheduler):
    """The base of schedules written for older programs; the schedules here do not derive from it."""
