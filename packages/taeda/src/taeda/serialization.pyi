# What type checkers and editors see: the first-party provider.
from taeda_tensor_core.checkpoint.options import *
from taeda_tensor_core.serialization import *
