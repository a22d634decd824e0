# What type checkers and editors see: the first-party provider.
from taeda_nn.modules.dropout import *
from taeda_nn.modules.dropout import _DropoutNd as _DropoutNd
