# What type checkers and editors see: the first-party provider.
from taeda_nn.utils import *
from taeda_nn.utils import prune as prune
from taeda_nn.utils import stateless as stateless
