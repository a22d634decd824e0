# What type checkers and editors see: the first-party provider.
from typing import Any

from taeda_tensor_core.backends import *

# Settings of each library and kind of device, which are made when they are asked for.
def __getattr__(name: str) -> Any: ...
