"""Meta's accelerators: there are none."""

from __future__ import annotations

import sys
from types import ModuleType

from taeda import _absent

_REASON = "there is no backend of this kind of device"


def is_available() -> bool:
    """Whether there is such a device: False."""
    return False


def is_initialized() -> bool:
    """Whether one was used: False."""
    return False


def device_count() -> int:
    """How many there are: 0."""
    return 0


def is_bf16_supported() -> bool:
    """Whether they take bfloat16: False."""
    return False


def manual_seed(seed: int) -> None:
    """Nothing: no device draws numbers."""


def manual_seed_all(seed: int) -> None:
    """Nothing: no device draws numbers."""


def empty_cache() -> None:
    """Nothing: no device keeps memory."""


_WITHOUT = (
    "attach_out_of_memory_observer current_device current_stream default_stream get_device_capability "
    "get_device_properties get_rng_state init max_memory_allocated mem_get_info memory_allocated memory_reserved "
    "memory_stats record_memory_history reset_peak_memory_stats set_device set_rng_state set_stream snapshot stream "
    "synchronize"
)
globals().update(_absent.functions(__name__, _WITHOUT, _REASON))
Event = _absent.cls(f"{__name__}.Event", _REASON)
Stream = _absent.cls(f"{__name__}.Stream", _REASON)
device = _absent.cls(f"{__name__}.device", _REASON)

memory = ModuleType(f"{__name__}.memory", "Memory of Meta's accelerators: there are none.")
memory.__dict__.update({
    name: globals()[name]
    for name in ("max_memory_allocated", "memory_allocated", "memory_stats", "reset_peak_memory_stats")
})  # fmt: skip
__path__: list[str] = []
sys.modules[memory.__name__] = memory
