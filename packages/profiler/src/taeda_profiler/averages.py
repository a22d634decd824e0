"""Events one by one and summed up, with PyTorch's names for what is known of them."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from taeda_profiler import table as _table
from taeda_registry import files

__all__ = [
    "DeviceType",
    "EventList",
    "FormattedTimesMixin",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "Kernel",
]


class DeviceType(enum.Enum):
    """Kinds of devices."""

    CPU = 0
    CUDA = 1
    XPU = 12
    PrivateUse1 = 20


class Interval:
    """A stretch of time, in microseconds."""

    __slots__ = ("end", "start")

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        """Its length."""
        return self.end - self.start


class Kernel:
    """Work of a device that an operator started."""

    def __init__(self, name: str, device: int, duration: float) -> None:
        self.name, self.device, self.duration = name, device, duration


def _time_text(attribute: str) -> property:
    return property(lambda self: _table.time_text(getattr(self, attribute)))


def _by_old_name(attribute: str) -> property:
    return property(lambda self: getattr(self, attribute), doc=f"`{attribute}` by its old name.")


class FormattedTimesMixin:
    """Times as texts, and times of one call."""

    count: int
    cpu_time_total: float
    device_time_total: float

    cpu_time_str = _time_text("cpu_time")
    device_time_str = _time_text("device_time")
    cpu_time_total_str = _time_text("cpu_time_total")
    device_time_total_str = _time_text("device_time_total")
    self_cpu_time_total_str = _time_text("self_cpu_time_total")
    self_device_time_total_str = _time_text("self_device_time_total")

    @property
    def cpu_time(self) -> float:
        """Microseconds of one call, on average."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """Microseconds of one call on devices, on average."""
        return self.device_time_total / self.count if self.count else 0.0

    cuda_time = _by_old_name("device_time")
    cuda_time_total = _by_old_name("device_time_total")
    self_cuda_time_total = _by_old_name("self_device_time_total")
    self_cuda_memory_usage = _by_old_name("self_device_memory_usage")


class FunctionEvent(FormattedTimesMixin):
    """One event of a trace.

    Attributes:
        name: As in tables; `key` is the same.
        time_range: From when to when, in microseconds from the beginning of the recording.
        thread: Number of its thread; `fwd_thread` that of the call whose backward it is.
        input_shapes: Of each argument, if shapes were recorded.
        stack: Lines of the program, the innermost first, if stacks were recorded.
        sequence_nr: The number under which a call was recorded, and of its backward; -1 for others.
        cpu_children, cpu_parent: Events directly within it, and the one that it lies in.
    """

    def __init__(
        self,
        id: int,
        name: str,
        thread: int,
        start_us: float,
        end_us: float,
        overload_name: str | None = None,
        fwd_thread: int | None = None,
        input_shapes: list[Any] | None = None,
        stack: list[str] | None = None,
        scope: int = 0,
        use_device: str | None = None,
        cpu_memory_usage: int = 0,
        device_memory_usage: int = 0,
        is_async: bool = False,
        is_remote: bool = False,
        sequence_nr: int = -1,
        node_id: int = -1,
        device_type: DeviceType = DeviceType.CPU,
        device_index: int = 0,
        device_resource_id: int | None = None,
        is_legacy: bool = False,
        flops: int | None = None,
        trace_name: str | None = None,
        concrete_inputs: list[Any] | None = None,
        kwinputs: dict[str, Any] | None = None,
        is_user_annotation: bool = False,
    ) -> None:
        self.id, self.name, self.thread = id, name, thread
        self.trace_name = name if trace_name is None else trace_name
        self.overload_name = overload_name or ""
        self.time_range = Interval(start_us, end_us)
        self.fwd_thread = fwd_thread
        self.input_shapes = [] if input_shapes is None else input_shapes
        self.concrete_inputs = [] if concrete_inputs is None else concrete_inputs
        self.kwinputs = {} if kwinputs is None else kwinputs
        self.stack = [] if stack is None else stack
        self.scope, self.use_device = scope, use_device
        self.cpu_memory_usage, self.device_memory_usage = cpu_memory_usage, device_memory_usage
        self.is_async, self.is_remote, self.is_legacy = is_async, is_remote, is_legacy
        self.sequence_nr, self.node_id = sequence_nr, node_id
        self.device_type, self.device_index = device_type, device_index
        self.device_resource_id = thread if device_resource_id is None else device_resource_id
        self.flops, self.is_user_annotation = flops, is_user_annotation
        self.count = 1
        self.kernels: list[Kernel] = []
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        self.self_cpu_percent = self.total_cpu_percent = self.total_device_percent = -1.0

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        """Adds work that it started on a device."""
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Adds an event that lies in it."""
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """Says which event it lies in."""
        self.cpu_parent = parent

    @property
    def key(self) -> str:
        """Its name."""
        return self.name

    @property
    def cpu_time_total(self) -> float:
        """Microseconds from its beginning to its end; 0 of what a device did."""
        return self.time_range.elapsed_us() if self.device_type is DeviceType.CPU else 0.0

    @property
    def self_cpu_time_total(self) -> float:
        """Those outside the events within it."""
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        """Bytes of host memory that it itself took, less those that it gave back."""
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    @property
    def self_device_memory_usage(self) -> int:
        """The same of devices."""
        return self.device_memory_usage - sum(child.device_memory_usage for child in self.cpu_children)

    @property
    def device_time_total(self) -> float:
        """Microseconds that devices worked for it and the events within it."""
        return self.self_device_time_total + sum(child.device_time_total for child in self.cpu_children)

    @property
    def self_device_time_total(self) -> float:
        """Microseconds that devices worked for it itself."""
        if self.device_type is not DeviceType.CPU:
            return self.time_range.elapsed_us()
        return sum(kernel.duration for kernel in self.kernels)

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} thread={self.thread} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start:.3f} end_us={self.time_range.end:.3f} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} seq_nr={self.sequence_nr}>"
        )


class FunctionEventAvg(FormattedTimesMixin):
    """All events of one name (and shape, and place, if asked for), summed up. Times are microseconds, sizes bytes."""

    def __init__(self) -> None:
        self.key = ""
        self.overload_name = ""
        self.count = 0
        self.node_id = 0
        self.is_async = self.is_remote = self.is_legacy = self.is_user_annotation = False
        self.use_device: str | None = None
        self.cpu_time_total = self.device_time_total = 0.0
        self.self_cpu_time_total = self.self_device_time_total = 0.0
        self.input_shapes: list[Any] | str = []
        self.stack: list[str] = []
        self.scope = 0
        self.cpu_memory_usage = self.device_memory_usage = 0
        self.self_cpu_memory_usage = self.self_device_memory_usage = 0
        self.cpu_children: list[FunctionEvent] | None = None
        self.cpu_parent: FunctionEvent | None = None
        self.device_type = DeviceType.CPU
        self.flops = 0

    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Adds an event, or another sum of the same key.

        Raises:
            ValueError: It has another key.
        """
        if not self.count:
            self.key = other.key
            self.input_shapes, self.stack, self.scope = other.input_shapes, other.stack, other.scope
            self.device_type, self.is_user_annotation = other.device_type, other.is_user_annotation
        elif other.key != self.key:
            raise ValueError(f"FunctionEventAvg.add: {other.key!r} is no {self.key!r}")
        for name in _SUMMED:
            setattr(self, name, getattr(self, name) + (getattr(other, name) or 0))
        return self

    def __iadd__(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        return self.add(other)

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage}>"
        )


_SUMMED = (
    *("count", "cpu_time_total", "device_time_total", "self_cpu_time_total", "self_device_time_total"),
    *(
        "cpu_memory_usage",
        "device_memory_usage",
        "self_cpu_memory_usage",
        "self_device_memory_usage",
        "flops",
    ),
)
_METRICS = (
    "self_cpu_time_total",
    "self_cuda_time_total",
    "self_xpu_time_total",
    "self_privateuse1_time_total",
)


class EventList(list):
    """Events, or sums of them, and what can be shown of all."""

    def __init__(
        self,
        events: Iterable[Any] = (),
        *,
        use_device: str | None = None,
        profile_memory: bool = False,
        with_flops: bool = False,
        top_time: float | None = None,
        export: Callable[[str], None] | None = None,
        sums: Callable[[bool, int], EventList] | None = None,
    ) -> None:
        super().__init__(events)
        self._use_device = use_device
        self._profile_memory = profile_memory
        self._with_flops = with_flops
        self._top_time = top_time
        self._export = export
        self._sums = sums

    def __str__(self) -> str:
        return self.table()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events that lie in no other."""
        if self._top_time is not None:
            return self._top_time
        return sum(event.self_cpu_time_total for event in self)

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The events as a table.

        Args:
            sort_by: A number of events to sort by, the largest first: "self_cpu_time_total", "cpu_time_total",
                "cpu_time", "cpu_memory_usage", "self_cpu_memory_usage", "count", and those of devices.
            row_limit: Rows at most; -1 for all.
            max_src_column_width, max_name_column_width, max_shapes_column_width: Longer texts are cut.
            header: A text above.
            top_level_events_only: Leave out events that lie in others.
            time_unit: "s", "ms", "us" or "ns" for all times; by default each has its own.

        Raises:
            ValueError: There is no such number, or no such unit.
        """
        events = [e for e in self if e.cpu_parent is None] if top_level_events_only else list(self)
        return _table.build(
            events,
            self.self_cpu_time_total,
            sort_by=sort_by,
            row_limit=row_limit,
            widths=(max_src_column_width, max_name_column_width, max_shapes_column_width),
            header=header,
            time_unit=time_unit,
            memory=self._profile_memory,
            flops=self._with_flops,
            device=self._use_device,
        )

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """Events of one name summed up.

        Args:
            group_by_input_shapes: Sum up only what has the same shapes.
            group_by_stack_n: Sum up only what has the same innermost so many lines of the program.
            group_by_overload_name: Accepted; overloads of an operator are not told apart.
        """
        if self._sums is not None:
            return self._sums(group_by_input_shapes, group_by_stack_n)
        sums: dict[Any, FunctionEventAvg] = defaultdict(FunctionEventAvg)
        for event in self:
            shapes = str(event.input_shapes) if group_by_input_shapes else ""
            sums[event.key, shapes, tuple(event.stack[:group_by_stack_n])].add(event)
        for average in sums.values():
            average.stack = average.stack[:group_by_stack_n]
            if not group_by_input_shapes:
                average.input_shapes = ""
        return EventList(
            sums.values(),
            use_device=self._use_device,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
            top_time=self.self_cpu_time_total,
        )

    def total_average(self) -> FunctionEventAvg:
        """The sum of all events."""
        total = FunctionEventAvg()
        for event in self:
            total.key = event.key  # of all names
            total.add(event)
        total.key = "Total"
        return total

    def export_chrome_trace(self, path: str) -> None:
        """Writes the trace that the events come from, for Perfetto and chrome://tracing.

        Raises:
            RuntimeError: These are sums.
        """
        if self._export is None:
            raise RuntimeError("export_chrome_trace: sums of events are no trace; use that of the profile")
        self._export(path)

    def supported_export_stacks_metrics(self) -> list[str]:
        """What `export_stacks` can weigh places by."""
        return list(_METRICS)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes places of the program with what was spent there, for flame graphs: "outer;inner 12" in microseconds.

        Raises:
            ValueError: There is no such metric.
        """
        if metric not in _METRICS:
            raise ValueError(
                f"export_stacks: argument 'metric' must be one of {list(_METRICS)}, found {metric!r}"
            )
        name = "self_cpu_time_total" if "cpu" in metric else "self_device_time_total"
        with files.replacing_text(path) as file:
            for event in self:
                weight = int(getattr(event, name))
                if event.stack and weight > 0:
                    line = ";".join(_plain(entry) for entry in reversed(event.stack))
                    file.write(f"{line} {weight}\n")


def _plain(entry: str) -> str:
    """A line of a program without what flame graphs give a meaning to."""
    return entry.translate(str.maketrans(" ;\t\n", "____"))
