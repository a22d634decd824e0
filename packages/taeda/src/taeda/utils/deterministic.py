"""A setting of deterministic algorithms."""

import sys
import types


class _Deterministic(types.ModuleType):
    """Refuses what is no bool."""

    _fill = True

    @property
    def fill_uninitialized_memory(self) -> bool:
        """Kept and returned: `empty` leaves memory as it is in any case."""
        return self._fill

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(f"fill_uninitialized_memory expected a bool, found {type(mode).__name__}")
        type(self)._fill = mode


sys.modules[__name__].__class__ = _Deterministic
