# What type checkers and editors see: the first-party providers.
from taeda import autograd as autograd
from taeda import nn as nn
from taeda import optim as optim
from taeda import utils as utils
from taeda_autograd import *
from taeda_tensor_core import *
from taeda_tensor_core import random as random
from taeda_tensor_core.serialization import load as load
from taeda_tensor_core.serialization import save as save

__version__: str
