# What type checkers and editors see: the first-party provider.
from taeda_nn.modules.padding import *
from taeda_nn.modules.padding import _ConstantPadNd as _ConstantPadNd
