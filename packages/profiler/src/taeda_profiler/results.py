"""What is made of a trace: sums, single events, and the links between forward and backward."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from taeda_profiler import arguments
from taeda_profiler._recorder import BACKWARD, USER
from taeda_profiler.averages import DeviceType, EventList, FunctionEvent, FunctionEventAvg
from taeda_profiler.flop_counter import flops_of
from taeda_profiler.trace import OPERATOR, Numbers, Trace

MEMORY = "[memory]"
_US = 1e-3  # nanoseconds in microseconds
_STEP = "ProfilerStep#"


def name_of_all(name: str) -> str:
    """The name of an event and of all like it: steps of a profile have one, whatever their number."""
    return "ProfilerStep*" if name.startswith(_STEP) else name


class Results:
    """A trace with what was asked of it.

    Args:
        trace: What was recorded.
        shapes, memory, flops: Whether these were asked for.
        export: Writes the trace to a path.
    """

    def __init__(
        self,
        trace: Trace,
        *,
        shapes: bool = False,
        memory: bool = False,
        flops: bool = False,
        export: Callable[[str], None] | None = None,
    ) -> None:
        self.trace = trace
        self._shapes, self._memory, self._flops = shapes, memory, flops
        self._export = export
        self._shape_lists: dict[tuple[int, int], list[Any]] = {}
        self._flop_numbers: dict[tuple[int, int], int] = {}
        self._events: EventList | None = None
        self._use_device = _device_name(trace)

    # --- what an event and all like it share ---

    def _told(self, name: int, detail: int) -> arguments.Told:
        return arguments.told(self.trace.detail_words(detail), self.trace.names[name][1])

    def shapes_of(self, name: int, detail: int) -> list[Any]:
        """Shapes of the arguments of an event, by the numbers of its name and detail."""
        if not self._shapes:
            return []
        key = (name, detail)
        if key not in self._shape_lists:
            self._shape_lists[key] = arguments.shapes(self._told(name, detail))
        return self._shape_lists[key]

    def flops_of(self, name: int, detail: int) -> int:
        """Floating-point operations of an event."""
        if not self._flops:
            return 0
        key = (name, detail)
        if key not in self._flop_numbers:
            self._flop_numbers[key] = flops_of(self.trace.names[name][0], self._told(name, detail))
        return self._flop_numbers[key]

    def top_time(self) -> float:
        """Microseconds of what lies in no other event."""
        trace = self.trace
        return float(trace.duration[trace.parent < 0].sum()) * _US

    # --- sums ---

    def key_averages(self, by_shapes: bool = False, stack_lines: int = 0) -> EventList:
        """Events of one name summed up, and told apart by shapes and by the innermost lines of the program."""
        trace = self.trace
        keys = self._alike()[trace.name] << 8 | trace.kind
        labels: list[tuple[str, ...]] = [()]
        if by_shapes or stack_lines:
            groups, labels = self._groups(by_shapes, stack_lines)
            keys = keys << 24 | groups
        found, first, of_event = np.unique(keys, return_index=True, return_inverse=True)
        sums = self._sums(of_event, len(found))
        averages = []
        for number in np.argsort(first).tolist():
            average = self._average(int(first[number]), sums, number, by_shapes)
            if stack_lines:
                average.stack = list(labels[int(found[number] & 0xFFFFFF)])
            averages.append(average)
        averages += self._device_averages() + self._memory_average()
        return self._list(averages)

    def _alike(self) -> Numbers:
        """Of each name the number of the first that is summed up with it."""
        first: dict[str, int] = {}
        return np.array(
            [first.setdefault(name_of_all(name[0]), i) for i, name in enumerate(self.trace.names)], np.int64
        )

    def _sums(self, of_event: Numbers, count: int) -> dict[str, list[Any]]:
        trace = self.trace

        def summed(column: Numbers) -> Numbers:
            return np.bincount(of_event, weights=column.astype(np.float64), minlength=count)

        sums = {
            "count": np.bincount(of_event, minlength=count),
            "cpu_time_total": summed(trace.duration) * _US,
            "self_cpu_time_total": summed(trace.self_duration()) * _US,
        }
        if self._memory:
            for place, device in (("cpu", 0), ("device", 1)):
                own = trace.self_memory(device)
                sums[f"self_{place}_memory_usage"] = summed(own).astype(np.int64)
                sums[f"{place}_memory_usage"] = summed(trace.with_children(own)).astype(np.int64)
        if len(trace.activities):
            own = trace.activities.self_duration(len(trace))
            sums["self_device_time_total"] = summed(own) * _US
            sums["device_time_total"] = summed(trace.with_children(own)) * _US
        if self._flops:
            pairs, of_pair = self._pairs()
            each = np.array([self.flops_of(*pair) for pair in pairs], np.float64)
            sums["flops"] = summed(each[of_pair] if len(each) else np.zeros(0)).astype(np.int64)
        return {name: column.tolist() for name, column in sums.items()}

    def _pairs(self) -> tuple[list[tuple[int, int]], Numbers]:
        """The (name, detail) that occur, and which one each event has."""
        keys = self.trace.name.astype(np.int64) << 32 | self.trace.detail
        found, of_event = np.unique(keys, return_inverse=True)
        return [(int(key >> 32), int(key & 0xFFFFFFFF)) for key in found.tolist()], of_event

    def _groups(self, by_shapes: bool, stack_lines: int) -> tuple[Numbers, list[tuple[str, ...]]]:
        """The number of the group of each event, and the lines of each group."""
        pairs, of_event = self._pairs()
        groups: dict[tuple[str, tuple[str, ...]], int] = {}
        of_pair = []
        for name, detail in pairs:
            shapes = str(self.shapes_of(name, detail)) if by_shapes else ""
            lines = tuple(self.trace.stack_of(detail)[:stack_lines]) if stack_lines else ()
            of_pair.append(groups.setdefault((shapes, lines), len(groups)))
        return np.array(of_pair, np.int64)[of_event], [lines for _, lines in groups]

    def _average(self, event: int, sums: dict[str, list[Any]], number: int, shapes: bool) -> FunctionEventAvg:
        trace, average = self.trace, FunctionEventAvg()
        name = int(trace.name[event])
        average.key = name_of_all(trace.names[name][0])
        average.is_user_annotation = int(trace.kind[event]) == USER + 1
        average.use_device = self._use_device
        average.input_shapes = self.shapes_of(name, int(trace.detail[event])) if shapes else ""
        for field, column in sums.items():
            setattr(average, field, column[number])
        return average

    def _device_averages(self) -> list[FunctionEventAvg]:
        """What devices did, by name."""
        activities, found = self.trace.activities, []
        names, of_activity = np.unique(activities.name, return_inverse=True)
        counts = np.bincount(of_activity, minlength=len(names)).tolist()
        times = np.bincount(of_activity, weights=activities.duration.astype(np.float64), minlength=len(names))
        for name, count, time in zip(names.tolist(), counts, (times * _US).tolist(), strict=True):
            average = FunctionEventAvg()
            average.key, average.count, average.input_shapes = self.trace.names[name][0], count, ""
            average.device_type, average.use_device = _device_type(self._use_device), self._use_device
            average.device_time_total = average.self_device_time_total = time
            found.append(average)
        return found

    def _memory_average(self) -> list[FunctionEventAvg]:
        """What was taken and given back outside all events."""
        found = []
        for place, device in (("cpu", 0), ("device", 1)):
            uses = self.trace.unclaimed_memory(device) if self._memory else []
            if uses:
                average = FunctionEventAvg()
                average.key, average.count, average.input_shapes = MEMORY, len(uses), ""
                setattr(average, f"{place}_memory_usage", sum(uses))
                setattr(average, f"self_{place}_memory_usage", sum(uses))
                found.append(average)
        return found

    def _list(self, events: list[Any], others: Iterable[Results] = ()) -> EventList:
        return EventList(
            events,
            use_device=self._use_device,
            profile_memory=self._memory,
            with_flops=self._flops,
            top_time=self.top_time() + sum(other.top_time() for other in others),
        )

    def events_after(self, earlier: Sequence[Results]) -> EventList:
        """Events of cycles of a schedule that were kept, one by one, and those of this one."""
        return self._list([event for part in (*earlier, self) for event in part.events()], earlier)

    # --- single events ---

    def forward_of(self) -> Numbers:
        """Of each backward the event that was recorded for it, -1 for all others."""
        trace = self.trace
        found = np.full(len(trace), -1, np.int64)
        backward = np.flatnonzero((trace.kind == BACKWARD + 1) & (trace.sequence > 0))
        forward = np.flatnonzero((trace.kind == OPERATOR) & (trace.sequence > 0))
        if not len(forward) or not len(backward):
            return found
        order = forward[np.argsort(trace.sequence[forward], kind="stable")]
        numbers = trace.sequence[order]
        place = np.minimum(np.searchsorted(numbers, trace.sequence[backward]), len(order) - 1)
        same = numbers[place] == trace.sequence[backward]
        found[backward[same]] = order[place[same]]
        return found

    def events(self) -> EventList:
        """All events, one by one, in the order of time."""
        if self._events is None:
            self._events = self._make_events()
        return self._events

    def _make_events(self) -> EventList:
        trace = self.trace
        memory = [trace.with_children(trace.self_memory(device)).tolist() for device in (0, 1)]
        forward = self.forward_of().tolist()
        threads = trace.thread.tolist()
        stacks: dict[int, list[str]] = {}
        names, details = trace.name.tolist(), trace.detail.tolist()
        begins, durations = (trace.begin * _US).tolist(), (trace.duration * _US).tolist()
        kinds, sequences = trace.kind.tolist(), trace.sequence.tolist()
        made: list[FunctionEvent] = []
        for i, (name, detail) in enumerate(zip(names, details, strict=True)):
            if detail not in stacks:
                stacks[detail] = trace.stack_of(detail)
            made.append(
                FunctionEvent(
                    i,
                    name_of_all(trace.names[name][0]),
                    threads[i],
                    begins[i],
                    begins[i] + durations[i],
                    fwd_thread=threads[forward[i]] if forward[i] >= 0 else None,
                    input_shapes=self.shapes_of(name, detail),
                    stack=stacks[detail],
                    use_device=self._use_device,
                    cpu_memory_usage=memory[0][i],
                    device_memory_usage=memory[1][i],
                    sequence_nr=sequences[i] or -1,
                    scope=_SCOPES.get(kinds[i], 0),
                    flops=self.flops_of(name, detail) or None,
                    trace_name=trace.names[name][0],
                    is_user_annotation=kinds[i] == USER + 1,
                )
            )
        for event, parent in zip(made, trace.parent.tolist(), strict=True):
            if parent >= 0:
                event.cpu_parent = made[parent]
                made[parent].cpu_children.append(event)
        for event, place in zip(made, forward, strict=True):
            if place >= 0 and not event.stack:
                event.stack = made[place].stack
        more = [*self._memory_events(len(made)), *self._device_events(made)]
        events = self._list(sorted([*made, *more], key=_start))
        events._export, events._sums = self._export, self.key_averages
        return events

    def _memory_events(self, first: int) -> list[FunctionEvent]:
        """What was taken and given back outside all events; [] where memory was not asked for."""
        uses, found = self.trace.memory, []
        for place in np.flatnonzero(uses["event"] < 0).tolist() if self._memory else []:
            at, size = float(uses["at"][place]) * _US, int(uses["bytes"][place])
            host = int(uses["device"][place]) >> 16 == 0
            found.append(
                FunctionEvent(
                    first + len(found),
                    MEMORY,
                    int(uses["thread"][place]),
                    at,
                    at,
                    cpu_memory_usage=size if host else 0,
                    device_memory_usage=0 if host else size,
                )
            )
        return found

    def _device_events(self, made: list[FunctionEvent]) -> list[FunctionEvent]:
        """What devices did; the events that it came from learn it."""
        activities, found = self.trace.activities, []
        columns = (
            column.tolist()
            for column in (
                activities.name,
                activities.begin * _US,
                activities.duration * _US,
                activities.lane,
                activities.event,
            )
        )
        for name, begin, duration, number, event in zip(*columns, strict=True):
            lane, text = activities.lanes[number], self.trace.names[name][0]
            found.append(
                FunctionEvent(
                    len(self.trace) + len(self.trace.memory["at"]) + len(found),
                    text,
                    lane.stream,
                    begin,
                    begin + duration,
                    use_device=self._use_device,
                    device_type=_device_type(self.trace.backends[lane.backend]),
                    device_index=lane.index,
                    device_resource_id=lane.stream,
                )
            )
            if event >= 0:
                made[event].append_kernel(text, lane.index, duration)
        return found


# PyTorch's numbers of scopes: functions, backwards, user's.
_SCOPES = {OPERATOR: 0, BACKWARD + 1: 1, USER + 1: 7}


def _start(event: FunctionEvent) -> float:
    return event.time_range.start


def _device_type(name: str | None) -> DeviceType:
    """PyTorch's kind of a device; those that it does not know are one."""
    return {"cuda": DeviceType.CUDA, "xpu": DeviceType.XPU}.get(name or "", DeviceType.PrivateUse1)


def _device_name(trace: Trace) -> str | None:
    """The kind of device, other than the host, that worked or had memory; "device" for several."""
    used = {
        *np.unique(trace.memory["device"] >> 16).tolist(),
        *(lane.backend for lane in trace.activities.lanes),
    }
    used.discard(0)
    if len(used) == 1 and (number := used.pop()) < len(trace.backends):
        return trace.backends[number]
    return "device" if used else None
