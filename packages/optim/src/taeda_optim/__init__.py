"""Optimizers and learning-rate schedules for any tensor provider."""

from typing import Any

from taeda_optim import lr_scheduler
from taeda_optim.adafactor import Adafactor
from taeda_optim.adam import Adam, AdamW
from taeda_optim.adam_family import Adamax, NAdam, RAdam
from taeda_optim.adaptive import Adadelta, Adagrad, RMSprop, Rprop
from taeda_optim.asgd import ASGD
from taeda_optim.lbfgs import LBFGS
from taeda_optim.muon import Muon
from taeda_optim.optimizer import Optimizer
from taeda_optim.sgd import SGD
from taeda_optim.sparse_adam import SparseAdam

__version__ = "0.1.0"
__taeda_interface__ = {"optim": "1.0"}

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SparseAdam",
    "lr_scheduler",
    "swa_utils",
]

# Modules that stand under the names that PyTorch has for them. Classes are all there from the beginning: programs go
# through the variables of this module to find them.
_MODULES = {
    "adadelta": "adaptive",
    "adagrad": "adaptive",
    "adamax": "adam_family",
    "adamw": "adam",
    "nadam": "adam_family",
    "radam": "adam_family",
    "rmsprop": "adaptive",
    "rprop": "adaptive",
    "_adafactor": "adafactor",
    "_muon": "muon",
    "swa_utils": "swa_utils",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "swap_in_optimizer_params_and_state":
        return import_module(f"{__name__}.swap_in").swap_in_optimizer_params_and_state
    if name in _MODULES:
        return import_module(f"{__name__}.{_MODULES[name]}")
    raise AttributeError(f"module {__name__!r}, the provider of slot 'optim', has no attribute {name!r}")
