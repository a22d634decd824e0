"""Where programs import questions of workers from."""

from taeda_data.reading import WorkerInfo, get_worker_info

__all__ = ["WorkerInfo", "get_worker_info"]
