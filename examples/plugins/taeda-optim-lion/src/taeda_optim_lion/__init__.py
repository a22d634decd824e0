"""The Lion optimizer (Chen et al., 2023), and a provider of slot ``optim`` that has it beside the usual ones.

As an addition: ``from taeda_optim_lion import Lion``. As the provider: ``TAEDA_OPTIM=lion``, then ``taeda.optim.Lion``.
"""

import taeda_optim
from taeda_optim_lion.lion import Lion

__version__ = "0.1.0"
__taeda_interface__ = {"optim": "1.0"}

__all__ = ["Lion"]
__all__ += taeda_optim.__all__


def __getattr__(name: str) -> object:
    """Everything else, submodules too, is that of the package it adds to."""
    return getattr(taeda_optim, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
