"""The Lion optimizer (Chen et al., 2023), and a provider of slot ``optim`` that has it beside the usual ones.

As an addition: ``from taeda_optim_lion import Lion``. As the provider: ``TAEDA_OPTIM=lion``, then ``taeda.optim.Lion``.
"""

from taeda_optim import SGD, Adam, AdamW, Optimizer, lr_scheduler
from taeda_optim_lion.lion import Lion

__version__ = "0.1.0"
__taeda_interface__ = {"optim": "1.0"}

__all__ = ["SGD", "Adam", "AdamW", "Lion", "Optimizer", "lr_scheduler"]
