"""Stand-in provider of slot ``profiler``: a clock in Python that sees marked blocks, and nothing of operators."""

import contextlib
import dataclasses
import enum
import json
import os
import time
import timeit
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

__taeda_interface__ = {"profiler": "1.0"}


class ProfilerActivity(enum.Enum):
    """Whose work is recorded."""

    CPU = 0


class ProfilerAction(enum.Enum):
    """What is done in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


@dataclasses.dataclass
class Event:
    """One block, or all of a name summed up; times in microseconds."""

    name: str
    start: float
    cpu_time_total: float
    count: int = 1

    @property
    def key(self) -> str:
        """Its name."""
        return self.name


class Rows(list):
    """Blocks with how often they ran and how long."""

    def table(self, sort_by: str = "cpu_time_total", row_limit: int = 100, **_options: Any) -> str:
        """One line for each."""
        column = sort_by.removeprefix("self_")
        rows = sorted(self, key=lambda row: getattr(row, column), reverse=True)[:row_limit]
        return "\n".join(f"{row.name} {row.count} {row.cpu_time_total:.1f}us" for row in rows)


_active: list["profile"] = []


class profile:
    """A block whose marked blocks are timed."""

    def __init__(
        self,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[Any], None] | None = None,
        **_options: Any,
    ) -> None:
        self._plan = schedule or (lambda _step: ProfilerAction.RECORD)
        self._ready = on_trace_ready
        self._step = 0
        self._events: list[Event] = []

    def __enter__(self) -> "profile":
        self.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop()

    def _records(self) -> bool:
        return self._plan(self._step) in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)

    def start(self) -> None:
        """Begin."""
        if self._records():
            _active.append(self)

    def stop(self) -> None:
        """End."""
        if self in _active:
            _active.remove(self)
            if self._ready is not None:
                self._ready(self)

    def step(self) -> None:
        """The next step begins."""
        if self._plan(self._step) is ProfilerAction.RECORD_AND_SAVE:
            self.stop()
        self._step += 1
        if self._records() and self not in _active:
            self._events = []
            _active.append(self)

    def events(self) -> Rows:
        """The blocks, one by one."""
        return Rows(self._events)

    def key_averages(self, **_options: Any) -> Rows:
        """The blocks, summed up by name."""
        sums: dict[str, Event] = {}
        for event in self._events:
            total = sums.setdefault(event.name, Event(event.name, event.start, 0.0, 0))
            total.cpu_time_total += event.cpu_time_total
            total.count += 1
        return Rows(sums.values())

    def export_chrome_trace(self, path: str) -> None:
        """Writes the blocks as slices."""
        slices = [
            {"ph": "X", "name": e.name, "ts": e.start, "dur": e.cpu_time_total, "pid": os.getpid(), "tid": 0}
            for e in self._events
        ]
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": slices}, file)


@contextlib.contextmanager
def record_function(name: str) -> Iterator[None]:
    """A block with a name."""
    seen_by, start = list(_active), time.perf_counter() * 1e6
    try:
        yield
    finally:
        for prof in seen_by:
            prof._events.append(Event(name, start, time.perf_counter() * 1e6 - start))


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0
) -> Callable[[int], ProfilerAction]:
    """What to do in each step."""
    cycle = [ProfilerAction.NONE] * wait + [ProfilerAction.WARMUP] * warmup
    cycle += [ProfilerAction.RECORD] * (active - 1) + [ProfilerAction.RECORD_AND_SAVE]

    def plan(step: int) -> ProfilerAction:
        step -= skip_first
        if step < 0 or (repeat and step >= repeat * len(cycle)):
            return ProfilerAction.NONE
        return cycle[step % len(cycle)]

    return plan


def tensorboard_trace_handler(folder: str, worker_name: str = "plain") -> Callable[[profile], None]:
    """Writes into a folder."""

    def write(prof: profile) -> None:
        os.makedirs(folder, exist_ok=True)
        name = f"{worker_name}.{time.time_ns()}.pt.trace.json"
        prof.export_chrome_trace(os.path.join(folder, name))

    return write


def supported_activities() -> set[ProfilerActivity]:
    """The host's."""
    return {ProfilerActivity.CPU}


class Timer:
    """Python's own timer."""

    def __init__(self, stmt: str = "pass", globals: dict[str, Any] | None = None) -> None:
        self._timer = timeit.Timer(stmt, globals=globals)

    def timeit(self, number: int = 1000) -> SimpleNamespace:
        """Seconds of one run."""
        return SimpleNamespace(median=self._timer.timeit(number) / number)

    def blocked_autorange(self, min_run_time: float = 0.2) -> SimpleNamespace:
        """The same, with as many runs as it takes."""
        number, seconds = self._timer.autorange()
        return SimpleNamespace(median=max(seconds / number, min_run_time * 1e-9))


class FlopCounterMode:
    """Sees products of matrices by taking their method's place."""

    def __init__(self, display: bool = True) -> None:
        self._flops = 0

    def __enter__(self) -> "FlopCounterMode":
        from taeda_registry.slots import tensor

        self._product = product = tensor.Tensor.__matmul__

        def counted(x: Any, y: Any) -> Any:
            result = product(x, y)
            self._flops += 2 * result.numel() * x.shape[-1]
            return result

        tensor.Tensor.__matmul__ = counted
        return self

    def __exit__(self, *_exception: object) -> None:
        from taeda_registry.slots import tensor

        tensor.Tensor.__matmul__ = self._product

    def get_total_flops(self) -> int:
        """What was counted."""
        return self._flops


def _module(name: str, **members: Any) -> ModuleType:
    made = ModuleType(f"{__name__}.{name}")
    vars(made).update(members)
    return made


autograd_profiler = _module(
    "autograd_profiler",
    profile=profile,
    record_function=record_function,
    emit_nvtx=contextlib.nullcontext,
    emit_itt=contextlib.nullcontext,
)
benchmark = _module("benchmark", Timer=Timer)
flop_counter = _module("flop_counter", FlopCounterMode=FlopCounterMode)
