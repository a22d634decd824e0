"""What scripts refuse before they run: functions that no script can be."""

from __future__ import annotations

import builtins
import dis
import types
from typing import Any

__all__ = ["check"]


def check(function: Any) -> None:
    """Refuse a function that no script can be; anything else is left alone.

    Raises:
        RuntimeError: It reads a global name that there is not.
        NotSupportedError: It takes any number of arguments.
    """
    if type(function) is not types.FunctionType:
        return
    from taeda.jit.frontend import NotSupportedError

    code = function.__code__
    if code.co_flags & 0x0C:  # *args, **kwargs
        raise NotSupportedError(
            f"{code.co_name}: Compiled functions can't take variable number of arguments or use keyword-only "
            "arguments with defaults"
        )
    for instruction in dis.get_instructions(code):
        name = instruction.argval
        known = name in function.__globals__ or hasattr(builtins, str(name))
        if instruction.opname == "LOAD_GLOBAL" and not known:
            raise RuntimeError(f"{code.co_name}: undefined value {name}")
