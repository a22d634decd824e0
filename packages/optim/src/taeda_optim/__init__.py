"""Optimizers and learning-rate schedules for any tensor provider."""

from taeda_optim import lr_scheduler
from taeda_optim.adam import Adam, AdamW
from taeda_optim.adam_family import Adamax, NAdam, RAdam
from taeda_optim.adaptive import Adadelta, Adagrad, RMSprop, Rprop
from taeda_optim.optimizer import Optimizer
from taeda_optim.sgd import SGD

__version__ = "0.1.0"
__taeda_interface__ = {"optim": "1.0"}

__all__ = [
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "lr_scheduler",
]
