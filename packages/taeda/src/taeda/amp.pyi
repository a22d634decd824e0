# What type checkers and editors see: the first-party provider.
from taeda_tensor_core.amp import *
