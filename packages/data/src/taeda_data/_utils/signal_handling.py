"""Names that loaders of programs call: workers that die are noticed without a handler of signals."""

from __future__ import annotations

__all__ = ["_remove_worker_pids", "_set_SIGCHLD_handler", "_set_worker_pids", "_set_worker_signal_handlers"]


def _set_worker_signal_handlers() -> None:
    """Nothing is set."""


def _set_SIGCHLD_handler() -> None:
    """Nothing is set."""


def _set_worker_pids(loader_id: int, worker_pids: tuple[int, ...]) -> None:
    """Nothing is kept."""


def _remove_worker_pids(loader_id: int) -> None:
    """Nothing was kept."""
