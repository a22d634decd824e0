"""Starts a function or a program in several processes, with what they print kept in files, and waits for all."""

from __future__ import annotations

from taeda.distributed.elastic.multiprocessing.api import (
    DefaultLogsSpecs,
    LogsDest,
    LogsSpecs,
    MultiprocessContext,
    PContext,
    RunProcsResult,
    SignalException,
    Std,
    SubprocessContext,
    start_processes,
    to_map,
)
from taeda.distributed.elastic.multiprocessing.errors import ProcessFailure

__all__ = [
    "DefaultLogsSpecs", "LogsDest", "LogsSpecs", "MultiprocessContext", "PContext", "ProcessFailure",
    "RunProcsResult", "SignalException", "Std", "SubprocessContext", "start_processes", "to_map",
]  # fmt: skip
