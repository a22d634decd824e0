"""Questions about the compiler."""

import collections


def is_compile_supported(device_type: str) -> bool:
    """Whether functions can be compiled for a kind of device: False."""
    return False


def compile_times(repr: str = "str", aggregate: bool = False) -> str:
    """How long compiling took: nothing was compiled."""
    return ""


#: What a compiler would count: nothing is counted.
counters: collections.defaultdict[str, collections.Counter[str]] = collections.defaultdict(
    collections.Counter
)
