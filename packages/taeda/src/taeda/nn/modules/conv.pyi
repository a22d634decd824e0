# What type checkers and editors see: the first-party provider.
from taeda_nn.modules.conv import *
from taeda_nn.modules.conv import _ConvNd as _ConvNd
from taeda_nn.modules.conv import _ConvTransposeNd as _ConvTransposeNd
