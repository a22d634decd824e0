# What type checkers and editors see: the first-party provider.
from taeda_nn.modules.instancenorm import *
from taeda_nn.modules.instancenorm import _InstanceNorm as _InstanceNorm
