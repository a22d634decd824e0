"""A trace as a picture, with matplotlib: lanes over time, memory, and the costliest names."""

from __future__ import annotations

import colorsys
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from taeda_profiler import memory_line
from taeda_profiler.table import time_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from taeda_profiler.results import Results
    from taeda_profiler.trace import Numbers, Trace

_DEEPEST = 8  # rows of a lane
_PIXELS = 2000  # what is narrower than the whole width by this cannot be seen


def figure(results: Results, row_limit: int, title: str) -> Figure:
    """The picture.

    Raises:
        ImportError: There is no matplotlib.
        ValueError: `row_limit` is not positive.
    """
    if row_limit < 1:
        raise ValueError(f"plot: argument 'row_limit' must be positive, found {row_limit}")
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plot: needs matplotlib; try: pip install 'taeda-profiler[plot]'") from error
    with_memory = len(results.trace.memory["at"]) > 0
    heights = [4, 1, 2.5] if with_memory else [4, 2.5]
    made = Figure(figsize=(12, 1.2 * sum(heights)), layout="constrained")
    axes = made.subplots(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    _timeline(axes[0], results.trace)
    if with_memory:
        axes[1].sharex(axes[0])
        _memory(axes[1], results.trace)
    _costliest(axes[-1], results, row_limit)
    if title:
        made.suptitle(title)
    return made


def _color(name: str) -> tuple[float, float, float]:
    return colorsys.hls_to_rgb(zlib.crc32(name.encode()) % 360 / 360, 0.68, 0.5)


def _lanes(trace: Trace) -> list[tuple[str, Numbers, Numbers, Numbers, Numbers]]:
    """(text, row, begin, duration, name) of threads, then of streams."""
    found = []
    for thread in trace.threads:
        own = np.flatnonzero((trace.thread == thread.number) & (trace.depth < _DEEPEST))
        columns = (trace.depth[own], trace.begin[own], trace.duration[own], trace.name[own])
        found.append((thread.name or f"thread {thread.id}", *columns))
    done = trace.activities
    for number, lane in enumerate(done.lanes):
        own = np.flatnonzero(done.lane == number)
        row = np.zeros(len(own), np.int32)
        found.append((lane.text, row, done.begin[own], done.duration[own], done.name[own]))
    return found


def _visible(row: Numbers, begin: Numbers, duration: Numbers, length: int) -> Numbers:
    """Of what lies within one pixel of a row the first."""
    pixel = max(length / _PIXELS, 1)
    wide = duration >= pixel
    keys = row.astype(np.int64) * (_PIXELS + 2) + (begin / pixel).astype(np.int64)
    first = np.zeros(len(row), bool)
    first[np.unique(keys, return_index=True)[1]] = True
    return np.flatnonzero(wide | first)


def _timeline(axes: Axes, trace: Trace) -> None:
    from matplotlib.collections import PolyCollection

    top, ticks = 0.0, []
    colors = [_color(text) for text, _ in trace.names]
    for text, row, begin, duration, name in _lanes(trace):
        shown = _visible(row, begin, duration, trace.length)
        left, low = begin[shown] * 1e-6, top + row[shown]
        right = left + np.maximum(duration[shown], trace.length / _PIXELS) * 1e-6
        corners = [(left, low), (right, low), (right, low + 0.9), (left, low + 0.9)]
        boxes = np.stack([np.stack(corner, axis=-1) for corner in corners], axis=1)
        axes.add_collection(PolyCollection(boxes, facecolors=[colors[i] for i in name[shown].tolist()]))
        rows = int(row.max()) + 1 if len(row) else 1
        ticks.append((top + rows / 2, text))
        top += rows + 0.5
    axes.set_xlim(0, max(trace.length, 1) * 1e-6)
    axes.set_ylim(max(top, 1), 0)
    axes.set_yticks([at for at, _ in ticks], [text for _, text in ticks])
    axes.set_xlabel("milliseconds")


def _memory(axes: Axes, trace: Trace) -> None:
    for device in ("cpu", "device"):
        times, totals = memory_line.curve(trace, device)
        if times:
            x, y = np.array([0, *times, trace.length]) * 1e-6, np.array([0, *totals, totals[-1]]) / 2**20
            axes.step(x, y, where="post", label=device)
    axes.set_ylabel("MB in use")
    axes.legend(loc="upper left")


def _costliest(axes: Axes, results: Results, row_limit: int) -> None:
    def cost(row: Any) -> float:
        return max(
            row.self_cpu_time_total, 0.0 if row.device_type.name == "CPU" else row.self_device_time_total
        )

    rows = sorted(results.key_averages(), key=cost, reverse=True)[:row_limit]
    colors = [_color(row.key) for row in rows]
    bars = axes.barh(range(len(rows)), [cost(row) * 1e-3 for row in rows], color=colors)
    axes.set_yticks(range(len(rows)), [row.key for row in rows])
    axes.bar_label(
        bars, [f"{time_text(cost(row))}, {row.count} calls" for row in rows], padding=3, fontsize=8
    )
    axes.invert_yaxis()
    axes.margins(x=0.2)
    axes.set_xlabel("milliseconds in itself")
