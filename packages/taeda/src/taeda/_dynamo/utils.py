"""Questions about the compiler."""

import collections


def is_compile_supported(device_type: str) -> bool:
    """Whether functions can be compiled for a kind of device: False."""
    return False


#: What a compiler would count: nothing is counted.
counters: collections.defaultdict[str, collections.Counter[str]] = collections.defaultdict(
    collections.Counter
)
