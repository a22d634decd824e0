"""Shows where the time and the memory of programs go: the profiler slot of taeda.

Operators, their arguments and memory are recorded by observers of the C ABI, in C++ and by thread; what was recorded is
summed up into tables, written as traces for Perfetto and chrome://tracing, or looked at in a browser.
"""

from __future__ import annotations

from taeda_profiler.averages import DeviceType
from taeda_profiler.chrome import merge as merge_traces
from taeda_profiler.marks import record_function
from taeda_profiler.memory import leaks
from taeda_profiler.profiles import kineto_available, profile, supported_activities, tensorboard_trace_handler
from taeda_profiler.schedules import ProfilerAction, ProfilerActivity, schedule
from taeda_profiler.schedules import always as _default_schedule_fn  # noqa: F401  # programs go back to it
from taeda_profiler.settings import ExperimentalConfig as _ExperimentalConfig  # noqa: F401

__version__ = "0.1.0"
__taeda_interface__ = {"profiler": "1.0"}
__all__ = [
    "DeviceType",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "leaks",
    "merge_traces",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
