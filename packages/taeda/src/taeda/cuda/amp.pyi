# What type checkers see of this name as a module: mixed precision under its older name.
from typing import Any

def __getattr__(name: str) -> Any: ...
