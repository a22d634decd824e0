# What type checkers see of this name as a module: a device's functions come from its plug-in.
from typing import Any

def __getattr__(name: str) -> Any: ...
