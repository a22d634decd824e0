"""Traces in the format of Chrome's trace viewer, which Perfetto and TensorBoard's plug-in read too.

Source: "Trace Event Format" (Google).
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np

from taeda_profiler import arguments
from taeda_profiler._recorder import BACKWARD, FUNCTION, MODULE, STEP, SYNCHRONIZE, USER, WAIT
from taeda_profiler.activities import COPY, FILL
from taeda_profiler.results import Results
from taeda_profiler.trace import OPERATOR, Trace
from taeda_registry import files

__all__ = ["export", "merge"]

_CATEGORIES = {
    OPERATOR: "cpu_op",
    USER + 1: "user_annotation",
    BACKWARD + 1: "cpu_op",
    MODULE + 1: "python_function",
    STEP + 1: "user_annotation",
    WAIT + 1: "user_annotation",
    FUNCTION + 1: "python_function",
    SYNCHRONIZE + 1: "user_annotation",
}
_DEVICE_CATEGORIES = {COPY: "gpu_memcpy", FILL: "gpu_memset"}
_US = 1e-3


@contextmanager
def open_text(path: str) -> Iterator[IO[str]]:
    """A text file to write as a whole, packed if its name ends in ".gz"."""
    if not path.endswith(".gz"):
        with files.replacing_text(path) as file:
            yield file
        return
    with files.replacing(path) as packed, gzip.open(packed, "wt", encoding="utf-8", compresslevel=3) as file:
        yield file


def export(results: Results, path: str, facts: dict[str, Any]) -> None:
    """Writes a trace."""
    trace = results.trace
    head = {
        "schemaVersion": 1,
        "deviceProperties": [],
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": 0,
        "traceName": path,
        "record_shapes": int(results._shapes),
        "profile_memory": int(results._memory),
        "dropped_events": trace.dropped,
        **facts,
    }
    with open_text(path) as file:
        _write(file, head, _lines(results))


def _write(file: IO[str], head: dict[str, Any], lines: Iterable[str]) -> None:
    file.write(json.dumps(head, indent=1)[:-2])
    file.write(',\n "traceEvents": [\n')
    separator = ""
    for line in lines:
        file.write(separator + line)
        separator = ",\n"
    file.write("\n ]\n}\n")


def _lines(results: Results) -> Iterator[str]:
    trace = results.trace
    yield from _thread_lines(trace)
    yield from _event_lines(results)
    yield from _flow_lines(results)
    yield from _device_lines(trace)
    yield from _memory_lines(trace)


def _system_ids(trace: Trace) -> dict[int, int]:
    return {thread.number: thread.id for thread in trace.threads}


def _thread_lines(trace: Trace) -> Iterator[str]:
    yield json.dumps(
        {"ph": "M", "name": "process_name", "pid": trace.pid, "tid": 0, "ts": 0, "args": {"name": "python"}}
    )
    for thread in trace.threads:
        name = f"thread {thread.id} ({thread.name})" if thread.name else f"thread {thread.id}"
        base = {"ph": "M", "pid": trace.pid, "tid": thread.id, "ts": 0}
        yield json.dumps({**base, "name": "thread_name", "args": {"name": name}})
        yield json.dumps({**base, "name": "thread_sort_index", "args": {"sort_index": thread.number}})


def _times(trace: Trace, column: Any) -> list[float]:
    """Microseconds of the clock, as Python's time.perf_counter_ns has it."""
    return np.round((trace.started + column) * _US, 3).tolist()


def _event_lines(results: Results) -> Iterator[str]:
    trace = results.trace
    ids = _system_ids(trace)
    shared: dict[tuple[int, int], str] = {}
    heads: dict[tuple[int, int], str] = {}
    forward = results.forward_of()
    columns = zip(
        _times(trace, trace.begin),
        (trace.duration * _US).round(3).tolist(),
        *(
            column.tolist()
            for column in (trace.name, trace.kind, trace.detail, trace.sequence, trace.thread, forward)
        ),
        strict=True,
    )
    for number, (begin, duration, name, kind, detail, sequence, thread, place) in enumerate(columns, 1):
        head = heads.get((name, kind))
        if head is None:
            text, category = json.dumps(trace.names[name][0]), _CATEGORIES.get(kind, "cpu_op")
            head = heads[name, kind] = f'{{"ph":"X","cat":"{category}","name":{text},"pid":{trace.pid},"tid":'
        extra = shared.get((name, detail))
        if extra is None:
            extra = shared[name, detail] = _shared_args(results, name, detail)
        own = f',"Sequence number":{sequence}' if sequence else ""
        if place >= 0:
            own += f',"Fwd thread id":{ids[int(trace.thread[place])]}'
        yield (
            f'{head}{ids[thread]},"ts":{begin},"dur":{duration},"args":{{"External id":{number}{own}{extra}}}}}'
        )


def _shared_args(results: Results, name: int, detail: int) -> str:
    """What all events of a name and a detail say beside their times."""
    trace, found = results.trace, {}
    told = arguments.told(trace.detail_words(detail), trace.names[name][1])
    if told.values and results._shapes:
        found["Input Dims"] = arguments.shapes(told)
        found["Input type"] = arguments.dtypes(told)
        if told.whole:
            found["Concrete Inputs"] = arguments.concrete(told)
    stack = trace.stack_of(detail)
    if stack:
        found["Call stack"] = ";".join(stack)
    return "".join(f",{json.dumps(key)}:{json.dumps(value)}" for key, value in found.items())


def _flow_lines(results: Results) -> Iterator[str]:
    """Arrows from calls to their backwards."""
    trace, ids = results.trace, _system_ids(results.trace)
    forward = results.forward_of()
    backward = np.flatnonzero(forward >= 0)
    starts, ends = _times(trace, trace.begin[forward[backward]]), _times(trace, trace.begin[backward])
    for number, (after, start, end) in enumerate(zip(backward.tolist(), starts, ends, strict=True), 1):
        flow = f'"id":{number},"pid":{trace.pid},"cat":"fwdbwd","name":"fwdbwd"'
        yield f'{{"ph":"s",{flow},"tid":{ids[int(trace.thread[forward[after]])]},"ts":{start}}}'
        yield f'{{"ph":"f","bp":"e",{flow},"tid":{ids[int(trace.thread[after])]},"ts":{end}}}'


def _device_lines(trace: Trace) -> Iterator[str]:
    """A process for each device with a thread for each of its streams, what they did, and arrows from where it was
    asked for."""
    activities, ids = trace.activities, _system_ids(trace)
    processes = {lane.device: 0 for lane in activities.lanes}
    for number, device in enumerate(sorted(processes), 1):
        # Traces of several processes may be merged: no device stands in two of them.
        processes[device] = trace.pid * 1000 + number
        base = {"ph": "M", "pid": processes[device], "tid": 0, "ts": 0}
        yield json.dumps(
            {**base, "name": "process_name", "args": {"name": f"{device} of process {trace.pid}"}}
        )
        yield json.dumps({**base, "name": "process_sort_index", "args": {"sort_index": 5_000_000 + number}})
    for lane in activities.lanes:
        base = {"ph": "M", "pid": processes[lane.device], "tid": lane.stream, "ts": 0}
        yield json.dumps({**base, "name": "thread_name", "args": {"name": f"stream {lane.stream}"}})
    names = [json.dumps(text) for text, _ in trace.names]
    columns = (_times(trace, activities.begin), (activities.duration * _US).round(3).tolist())
    more = (
        activities.name,
        activities.kind,
        activities.bytes,
        activities.lane,
        activities.event,
        activities.thread,
    )
    rows = zip(*columns, *(column.tolist() for column in more), _times(trace, activities.at), strict=True)
    for number, (begin, duration, name, kind, size, place, event, thread, at) in enumerate(rows, 1):
        lane = activities.lanes[place]
        where = f'"pid":{processes[lane.device]},"tid":{lane.stream}'
        facts = f'"device":{lane.index},"stream":{lane.stream}'
        if size:
            facts += f',"bytes":{size}'
        if event >= 0:
            facts += f',"External id":{event + 1}'
        yield (
            f'{{"ph":"X","cat":"{_DEVICE_CATEGORIES.get(kind, "kernel")}","name":{names[name]},{where},"ts":{begin},'
            f'"dur":{duration},"args":{{{facts}}}}}'
        )
        if thread >= 0:
            flow = f'"id":{number},"cat":"ac2g","name":"ac2g"'
            yield f'{{"ph":"s",{flow},"pid":{trace.pid},"tid":{ids[thread]},"ts":{at}}}'
            yield f'{{"ph":"f","bp":"e",{flow},{where},"ts":{begin}}}'


def _memory_lines(trace: Trace) -> Iterator[str]:
    """What was taken and given back, and a counter of what is in use since the beginning."""
    ids = _system_ids(trace)
    uses = trace.memory
    totals: dict[int, int] = {}
    columns = zip(
        _times(trace, uses["at"]),
        *(uses[name].tolist() for name in ("bytes", "address", "device", "thread")),
        strict=True,
    )
    for at, size, address, device, thread in columns:
        totals[device] = totals.get(device, 0) + size
        kind, index = device >> 16, device & 0xFFFF
        where = f'"pid":{trace.pid},"tid":{ids[thread]},"ts":{at}'
        facts = (
            f'"Total Allocated":{totals[device]},"Addr":{address},"Bytes":{size},'
            f'"Device Type":{kind},"Device Id":{-1 if kind == 0 else index}'
        )
        yield f'{{"ph":"i","s":"t","cat":"cpu_instant_event","name":"[memory]",{where},"args":{{{facts}}}}}'
        backend = trace.backends[kind] if kind < len(trace.backends) else f"device{kind}"
        name = "cpu memory" if kind == 0 else f"{backend}:{index} memory"
        yield f'{{"ph":"C","name":"{name}",{where},"args":{{"bytes":{totals[device]}}}}}'


def merge(paths: Iterable[str], path: str) -> None:
    """Writes traces of several processes into one file: they share the machine's clock, and each keeps its process.

    Args:
        paths: Files that `export` has written, packed or not.
        path: Where to.

    Raises:
        ValueError: One of them is no trace.
    """
    lines: list[str] = []
    head: dict[str, Any] = {}
    for source in paths:
        opener = gzip.open if str(source).endswith(".gz") else open
        with opener(source, "rt", encoding="utf-8") as file:
            content = json.load(file)
        if not isinstance(content, dict) or "traceEvents" not in content:
            raise ValueError(f"merge_traces: {source} is no trace")
        lines += [json.dumps(event, separators=(",", ":")) for event in content.pop("traceEvents")]
        head = head or content
    with open_text(str(path)) as file:
        _write(file, {**head, "traceName": str(path)}, lines)
