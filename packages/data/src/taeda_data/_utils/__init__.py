"""Modules under the names that programs import parts of the loader from although they are private."""

from taeda_data._utils import collate, pin_memory, worker

__all__ = ["MP_STATUS_CHECK_INTERVAL", "collate", "pin_memory", "worker"]

#: Seconds between two looks at whether workers are alive.
MP_STATUS_CHECK_INTERVAL = 5.0
