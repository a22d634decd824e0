"""Modules whose parameters are spread over processes, as names."""

import sys
from typing import Any

from taeda.distributed import _parts


def __getattr__(name: str) -> Any:
    module = sys.modules.get(f"{__name__}.{name}")
    return getattr(sys.modules[f"{__name__}.fully_sharded_data_parallel"], name) if module is None else module


def __dir__() -> list[str]:
    return sorted({*globals(), *_parts.PARTS["fsdp.fully_sharded_data_parallel"].split()})
