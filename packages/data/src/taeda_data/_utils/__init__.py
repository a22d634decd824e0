"""``utils.data._utils``: where programs import parts of the loader from although the place is private."""

from taeda_data._utils import collate, fetch, pin_memory, signal_handling, worker

#: Seconds between two looks at whether a worker still lives.
MP_STATUS_CHECK_INTERVAL = 5.0

__all__ = ["MP_STATUS_CHECK_INTERVAL", "collate", "fetch", "pin_memory", "signal_handling", "worker"]
