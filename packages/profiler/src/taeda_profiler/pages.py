"""A trace as one page that needs nothing else: lanes, memory, flame graph and table, in any browser."""

from __future__ import annotations

import base64
import html
import json
from importlib.resources import files
from typing import Any

import numpy as np

from taeda_profiler import memory_line
from taeda_profiler.averages import EventList
from taeda_profiler.results import Results
from taeda_profiler.trace import OPERATOR

_KINDS = (
    *("operator", "block", "backward", "module", "step of an optimizer", "wait for data", "function"),
    *("wait for a device", "work of a device"),
)
_DEVICE = len(_KINDS) - 1
_US = 1e-3


def _packed(parts: tuple[Any, ...], dtype: Any) -> str:
    column = np.concatenate([np.asarray(part, dtype) for part in parts])
    return base64.b64encode(column.tobytes()).decode("ascii")


def _content(results: Results) -> dict[str, Any]:
    trace = results.trace
    pairs, of_event = results._pairs()
    notes = []
    for name, detail in pairs:
        shapes = results.shapes_of(name, detail)
        notes.append({"shapes": str(shapes) if shapes else "", "stack": trace.stack_of(detail)})
    notes.append({"shapes": "", "stack": []})
    done = trace.activities
    known = np.flatnonzero(done.event >= 0)
    note = np.full(len(done), len(pairs), np.int32)
    note[known] = of_event[done.event[known]]
    blocks = set(trace.name[trace.kind != OPERATOR].tolist())
    times, totals = memory_line.curve(trace)
    return {
        "length": trace.length * _US,
        "threads": [
            *(thread.name or f"thread {thread.id}" for thread in trace.threads),
            *(lane.text for lane in done.lanes),
        ],
        "names": [text for text, _ in trace.names],
        "user": [int(number in blocks) for number in range(len(trace.names))],
        "kinds": _KINDS,
        "device": _DEVICE,
        # Activities of devices stand behind the events.
        "begin": _packed((trace.begin * _US, done.begin * _US), np.float64),
        "duration": _packed((trace.duration * _US, done.duration * _US), np.float64),
        "self": _packed((trace.self_duration() * _US, done.duration * _US), np.float64),
        "bytes": _packed((trace.with_children(trace.self_memory()), done.bytes), np.float64),
        "name": _packed((trace.name, done.name), np.int32),
        "parent": _packed((trace.parent, np.full(len(done), -1)), np.int32),
        "link": _packed((results.forward_of(), done.event), np.int32),
        "note": _packed((of_event, note), np.int32),
        "depth": _packed((trace.depth, np.zeros(len(done))), np.uint16),
        "thread": _packed((trace.thread, done.lane + len(trace.threads)), np.uint16),
        "kind": _packed((trace.kind, np.full(len(done), _DEVICE)), np.uint8),
        "memory_at": _packed((np.array(times) * _US,), np.float64),
        "memory_total": _packed((totals,), np.float64),
        "notes": notes,
        "rows": _rows(results.key_averages()),
    }


def _rows(averages: EventList) -> list[list[Any]]:
    return [
        [
            row.key,
            row.self_cpu_time_total,
            row.cpu_time_total,
            row.cpu_time,
            row.count,
            row.self_cpu_memory_usage,
            row.self_device_time_total,
        ]
        for row in averages
    ]


def page(results: Results, title: str = "taeda profile") -> str:
    """The page as text."""
    folder = files("taeda_profiler").joinpath("page")
    parts = {
        "%STYLE%": folder.joinpath("timeline.css").read_text(encoding="utf-8"),
        "%SCRIPT%": folder.joinpath("timeline.js").read_text(encoding="utf-8"),
        # No text of a program may end the script that it stands in.
        "%DATA%": json.dumps(_content(results)).replace("<", "\\u003c"),
    }
    text = folder.joinpath("timeline.html").read_text(encoding="utf-8").replace("%TITLE%", html.escape(title))
    head, rest = text.split("%STYLE%")
    middle, rest = rest.split("%DATA%")
    between, tail = rest.split("%SCRIPT%")
    return head + parts["%STYLE%"] + middle + parts["%DATA%"] + between + parts["%SCRIPT%"] + tail


def frame(results: Results) -> str:
    """The page within another one, as notebooks show it."""
    style = "width:100%;height:640px;border:1px solid #ccc"
    return f'<iframe srcdoc="{html.escape(page(results))}" style="{style}"></iframe>'
