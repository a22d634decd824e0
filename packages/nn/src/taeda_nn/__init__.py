"""Neural-network modules, functions and initialisers on any tensor provider."""

from taeda_nn import functional, init, modules, utils
from taeda_nn import parameter as parameter
from taeda_nn.modules import *
from taeda_nn.parameter import Buffer, Parameter

__version__ = "0.1.0"
__taeda_interface__ = {"nn": "1.0"}

__all__ = ["Buffer", "Parameter", "functional", "init", "modules", "utils"]
__all__ += modules.__all__
