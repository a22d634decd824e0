"""Where programs look for the wrapper of spread modules, and its settings."""

from taeda.distributed.fsdp import FlatParameter, FullyShardedDataParallel
from taeda.distributed.fsdp.api import *  # noqa: F403

__all__ = ["FlatParameter", "FullyShardedDataParallel"]
