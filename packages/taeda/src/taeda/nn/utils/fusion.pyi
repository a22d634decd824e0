# What type checkers and editors see: the first-party provider.
from taeda_nn.utils.fusion import *
