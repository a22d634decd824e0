"""What a trace says in plain words: the costliest places of a program, and what may be wrong."""

from __future__ import annotations

import functools
import os
import site
import sysconfig
from collections import defaultdict
from typing import NamedTuple

import numpy as np

from taeda_profiler import memory_line
from taeda_profiler._recorder import MODULE, SYNCHRONIZE, WAIT
from taeda_profiler.results import Results
from taeda_profiler.table import memory_text, time_text
from taeda_profiler.trace import OPERATOR, Trace

# Parts of the recorded time from which something is worth a word.
_WAITING, _TINY, _COPIES, _SYNCHRONIZING = 0.1, 0.3, 0.1, 0.1
_TINY_NS = 5000
_COPYING = frozenset({"aten::copy_", "aten::copy_same_", "aten::clone", "aten::contiguous", "aten::cast"})


class Place(NamedTuple):
    """A line of a program with the microseconds and calls of operators that it is responsible for."""

    line: str
    time: float
    calls: int


@functools.cache
def _foreign_folders() -> tuple[str, ...]:
    """Where code of libraries lies."""
    import taeda_registry

    packages = os.path.dirname(os.path.dirname(os.path.abspath(taeda_registry.__file__)))
    family = os.path.dirname(os.path.dirname(packages))  # of an editable install: the folder of all packages
    found = [*site.getsitepackages(), sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")]
    if os.path.basename(family) == "packages":
        found += [os.path.join(family, name) for name in os.listdir(family)]
    return tuple(os.path.join(folder, "") for folder in found)


def _own_line(stack: list[str]) -> str | None:
    """The innermost line of the user's own code."""
    foreign = (*_foreign_folders(), "<frozen")
    return next((entry for entry in stack if not entry.startswith(foreign)), None)


def costliest_places(trace: Trace, count: int = 3) -> list[Place]:
    """The lines of the user's own code with the most time in operators and backwards that they called."""
    times: dict[str, float] = defaultdict(float)
    calls: dict[str, int] = defaultdict(int)
    own = trace.self_duration()
    details, of_event = np.unique(trace.detail, return_inverse=True)
    per_detail = np.bincount(of_event, weights=own.astype(np.float64), minlength=len(details)).tolist()
    numbers = np.bincount(of_event, minlength=len(details)).tolist()
    for detail, time, number in zip(details.tolist(), per_detail, numbers, strict=True):
        stack = trace.stack_of(detail)
        line = _own_line(stack)
        if line is not None:
            times[line] += time * 1e-3
            calls[line] += number
    best = sorted(times, key=lambda line: times[line], reverse=True)[:count]
    return [Place(line, times[line], calls[line]) for line in best]


def hints(results: Results) -> list[str]:
    """What may be worth a change, the most important first; empty when nothing stands out."""
    trace = results.trace
    found = [*_waiting(trace), *_synchronizing(trace), *_tiny(trace), *_copies(trace), *_peak(trace)]
    if trace.activities.failed:
        found.append(f"what devices did is not known: {trace.activities.failed}")
    if trace.dropped:
        found.append(f"{trace.dropped} events were dropped; what is said here is about the rest")
    return found


def _part(trace: Trace, chosen: np.ndarray, column: np.ndarray) -> float:
    return float(column[chosen].sum()) / max(trace.length, 1)


def _waiting(trace: Trace) -> list[str]:
    chosen = trace.kind == WAIT + 1
    part = _part(trace, chosen, trace.duration)
    if part < _WAITING:
        return []
    time = time_text(float(trace.duration[chosen].sum()) * 1e-3)
    return [
        f"{part:.0%} of the time ({time}) the program waited for data: give the DataLoader more workers "
        "(num_workers), or make reading cheaper"
    ]


def _synchronizing(trace: Trace) -> list[str]:
    """The host stood still until a device had come to the end of its work; and where that was, if it is known."""
    chosen = trace.kind == SYNCHRONIZE + 1
    part = _part(trace, chosen, trace.duration)
    if part < _SYNCHRONIZING:
        return []
    time = time_text(float(trace.duration[chosen].sum()) * 1e-3)
    lines: dict[str, float] = defaultdict(float)
    for event in np.flatnonzero(chosen).tolist():
        if stack := trace.stack_of(int(trace.detail[event])):
            lines[_own_line(stack) or stack[0]] += float(trace.duration[event])
    where = f", most of it in {max(lines, key=lambda line: lines[line])}" if lines else ""
    return [
        f"{part:.0%} of the time ({time}), {int(chosen.sum())} times, the program waited for a device{where}: .item(), "
        ".cpu(), .tolist(), print and conditions on tensors of a device wait for all that it was given before; ask for "
        "numbers less often, or copy with non_blocking=True to pinned memory"
    ]


def _tiny(trace: Trace) -> list[str]:
    operators = trace.kind == OPERATOR
    leaves = operators & ~np.isin(np.arange(len(trace)), trace.parent)
    tiny = leaves & (trace.duration < _TINY_NS)
    spent, of = float(trace.duration[tiny].sum()), float(trace.duration[leaves].sum())
    if not of or tiny.sum() < 1000 or spent / of < _TINY:
        return []
    return [
        f"{int(tiny.sum())} operators took less than {_TINY_NS / 1000:.0f} us each and {spent / of:.0%} of the time of "
        "all: most of it is the cost of calling; work on larger tensors, or on several at once"
    ]


def _copies(trace: Trace) -> list[str]:
    numbers = [number for number, (name, _) in enumerate(trace.names) if name in _COPYING]
    chosen = np.isin(trace.name, numbers)
    part = _part(trace, chosen, trace.self_duration())
    if part < _COPIES:
        return []
    return [
        f"{part:.0%} of the time, in {int(chosen.sum())} calls, went into copies: look for contiguous(), clone(), and "
        "dtypes or layouts that change"
    ]


def _peak(trace: Trace) -> list[str]:
    """The most memory, and the module in whose forward it came to be."""
    times, totals = memory_line.curve(trace)
    if not totals or max(totals) <= 0:
        return []
    place = int(np.argmax(totals))
    at = times[place]
    inside = (trace.kind == MODULE + 1) & (trace.begin <= at) & (trace.begin + trace.duration >= at)
    where = ""
    if inside.any():
        deepest = max(np.flatnonzero(inside).tolist(), key=lambda i: int(trace.depth[i]))
        where = f", in the forward of {trace.names[int(trace.name[deepest])][0].removeprefix('nn.Module: ')}"
    return [
        f"memory was at most {memory_text(max(totals))} above the beginning, {time_text(at * 1e-3)} in{where}"
    ]
