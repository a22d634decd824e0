# What type checkers see of this name as a module: what operators declare there.
from typing import Any

def __getattr__(name: str) -> Any: ...
