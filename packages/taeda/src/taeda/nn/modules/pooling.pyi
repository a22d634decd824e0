# What type checkers and editors see: the first-party provider.
from taeda_nn.modules.pooling import *
from taeda_nn.modules.pooling import _AvgPoolNd as _AvgPoolNd
from taeda_nn.modules.pooling import _MaxPoolNd as _MaxPoolNd
