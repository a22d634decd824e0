# What type checkers and editors see: the first-party providers.
from taeda import autograd as autograd
from taeda import multiprocessing as multiprocessing
from taeda import nn as nn
from taeda import optim as optim
from taeda import profiler as profiler
from taeda import utils as utils
from taeda_autograd import *
from taeda_tensor_core import *
from taeda_tensor_core import accelerator as accelerator
from taeda_tensor_core import backends as backends
from taeda_tensor_core import random as random
from taeda_tensor_core import serialization as serialization
from taeda_tensor_core.device_module import DeviceModule
from taeda_tensor_core.device_module import get_device_module as get_device_module
from taeda_tensor_core.serialization import load as load
from taeda_tensor_core.serialization import save as save

cpu: DeviceModule
cuda: DeviceModule
mps: DeviceModule
xpu: DeviceModule
__version__: str
