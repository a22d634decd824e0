"""Further settings of a profile, which programs written for PyTorch give as one object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass
class ExperimentalConfig:
    """Settings of PyTorch's `profile(experimental_config=...)`: kept, and of no effect.

    Example:
        >>> with taeda.profiler.profile(experimental_config=taeda.profiler._ExperimentalConfig(verbose=True)) as prof:
        ...     _ = taeda.ones(2) + 1
    """

    profiler_metrics: Sequence[str] = ()
    profiler_measure_per_kernel: bool = False
    verbose: bool = False
    performance_events: Sequence[str] = ()
    enable_cuda_sync_events: bool = False
    adjust_profiler_step: bool = False
    disable_external_correlation: bool = False
    profile_all_threads: bool = False
    capture_overload_names: bool = False
    record_python_gc_info: bool = False
    expose_kineto_event_metadata: bool = False
    custom_profiler_config: str = ""
    adjust_timestamps: bool = False
    trace_only: bool = False
