# What type checkers and editors see: the first-party provider.
from taeda_nn.modules.batchnorm import *
from taeda_nn.modules.batchnorm import _BatchNorm as _BatchNorm
from taeda_nn.modules.batchnorm import _LazyNormBase as _LazyNormBase
from taeda_nn.modules.batchnorm import _NormBase as _NormBase
