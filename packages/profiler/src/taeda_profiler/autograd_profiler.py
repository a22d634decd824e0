"""``taeda.autograd.profiler``: the older way to profile, with the same recorder."""

from __future__ import annotations

from typing import Any

from taeda_profiler._recorder import DEFAULT_MB
from taeda_profiler.averages import EventList, FunctionEvent, FunctionEventAvg
from taeda_profiler.marks import emit_itt, emit_nvtx, record_function
from taeda_profiler.profiles import Recorded, kineto_available
from taeda_profiler.schedules import ProfilerActivity
from taeda_profiler.table import memory_text as _format_memory  # noqa: F401 (programs import them)
from taeda_profiler.table import time_text as _format_time  # noqa: F401

__all__ = [
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "ProfilerActivity",
    "emit_itt",
    "emit_nvtx",
    "kineto_available",
    "profile",
    "record_function",
]


class profile(Recorded):
    """A block whose operators and marked blocks are recorded.

    Args:
        enabled: False makes it nothing but the block.
        use_cuda, use_device: Either records what devices do, too.
        use_kineto, use_cpu, experimental_config, acc_events, custom_trace_id_callback,
        post_processing_timeout_s, activity_filters: Accepted for programs written for PyTorch.
        record_shapes, with_flops, profile_memory, with_stack, with_modules: As of `taeda.profiler.profile`.

    Raises:
        RuntimeError: Another profile records already; or this one has run.

    Example:
        >>> with taeda.autograd.profiler.profile() as prof:
        ...     _ = taeda.ones(2).exp()
        >>> table = prof.table(sort_by="cpu_time_total")
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Any = None,
        post_processing_timeout_s: float | None = None,
        activity_filters: Any = None,
        max_mb: float = DEFAULT_MB,
    ) -> None:
        super().__init__(
            record_shapes=record_shapes,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_flops=with_flops,
            with_modules=with_modules,
            devices=use_cuda or use_device is not None,
            max_mb=max_mb,
        )
        self.enabled, self.entered = enabled, False

    def __enter__(self) -> profile | None:  # type: ignore[return]
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.entered = True
        self._begin()
        return self

    def __exit__(self, *exception: object) -> None:
        if self.enabled:
            self._end()

    @property
    def function_events(self) -> EventList | None:
        """Every event by itself; None before the end of the block."""
        return None if self._results is None else self.events()

    def table(self, *args: Any, **kwargs: Any) -> str:
        """`EventList.table` of every event by itself."""
        return self.events().table(*args, **kwargs)

    def total_average(self) -> FunctionEventAvg:
        """The sum of all events."""
        return self.events().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events that lie in no other."""
        return self._found("self_cpu_time_total").top_time()

    def __repr__(self) -> str:
        return "<unfinished profile>" if self._results is None else self.table()

    __str__ = __repr__
