"""A setting of deterministic algorithms."""

import sys
import types

from taeda_registry.slots import tensor


class _Deterministic(types.ModuleType):
    """Refuses what is no bool."""

    _fill = True

    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether `empty` and the like fill memory where deterministic algorithms are asked for: with NaN, or the
        largest number."""
        return self._fill

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(f"fill_uninitialized_memory expected a bool, found {type(mode).__name__}")
        type(self)._fill = mode
        tensor._C._fill_unwritten(mode)


sys.modules[__name__].__class__ = _Deterministic
