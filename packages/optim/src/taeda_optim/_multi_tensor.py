"""Optimizers that step many parameters in one call without being asked to: `foreach=True` is their default."""

from __future__ import annotations

import taeda_optim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "ASGD",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "NAdam",
    "RAdam",
    "RMSprop",
    "Rprop",
    "partialclass",
]  # fmt: skip


def partialclass(cls: type, *args: Any, **kwargs: Any) -> Any:
    """A class derived from `cls` whose instances are made with these arguments too."""

    def __init__(self: Any, *given: Any, **named: Any) -> None:
        cls.__init__(self, *args, *given, **(kwargs | named))  # type: ignore[misc]

    return type(cls.__name__, (cls,), {"__init__": __init__, "__module__": __name__, "__doc__": cls.__doc__})


ASGD = partialclass(taeda_optim.ASGD, foreach=True)
Adadelta = partialclass(taeda_optim.Adadelta, foreach=True)
Adagrad = partialclass(taeda_optim.Adagrad, foreach=True)
Adam = partialclass(taeda_optim.Adam, foreach=True)
AdamW = partialclass(taeda_optim.AdamW, foreach=True)
Adamax = partialclass(taeda_optim.Adamax, foreach=True)
NAdam = partialclass(taeda_optim.NAdam, foreach=True)
RAdam = partialclass(taeda_optim.RAdam, foreach=True)
RMSprop = partialclass(taeda_optim.RMSprop, foreach=True)
Rprop = partialclass(taeda_optim.Rprop, foreach=True)
SGD = partialclass(taeda_optim.SGD, foreach=True)
