# What type checkers and editors see: the first-party providers.
import taeda_autograd as autograd
import taeda_nn as nn
import taeda_optim as optim
from taeda import utils as utils
from taeda_autograd import *
from taeda_tensor_core import *

__version__: str
