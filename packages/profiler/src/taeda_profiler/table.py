"""Tables of events: columns, units and widths as programs for PyTorch print them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

_UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}
_SORTABLE = (
    *("cpu_time", "device_time", "cuda_time", "xpu_time", "cpu_time_total", "device_time_total"),
    *("cuda_time_total", "xpu_time_total", "cpu_memory_usage", "device_memory_usage", "cuda_memory_usage"),
    *("xpu_memory_usage", "self_cpu_time_total", "self_device_time_total", "self_cuda_time_total"),
    *("self_xpu_time_total", "self_cpu_memory_usage", "self_device_memory_usage", "self_cuda_memory_usage"),
    *("self_xpu_memory_usage", "count", "flops"),
)


def time_text(microseconds: float, unit: str | None = None) -> str:
    """A time with its unit: "1.234ms"."""
    if unit is None:
        unit = "s" if microseconds >= 1e6 else "ms" if microseconds >= 1e3 else "us"
    return f"{microseconds / _UNITS[unit]:.3f}{unit}"


def memory_text(size: int) -> str:
    """A size with its unit: "1.50 KB"."""
    for unit, bytes_ in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(size) >= bytes_:
            return f"{size / bytes_:.2f} {unit}"
    return f"{size} B"


def _percent_text(part: float, whole: float) -> str:
    if whole == 0:
        return "NaN" if part else "0.00%"
    return f"{part * 100.0 / whole:.2f}%"


class _Column(NamedTuple):
    title: str
    cell: Callable[[Any], str]
    width: int = 12  # at least


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width or width <= 0 else text[: max(width - 3, 0)] + "..."


def _cut_front(text: str, width: int) -> str:
    return text if len(text) <= width or width <= 0 else "..." + text[-max(width - 3, 0) :]


def _sorted(events: list[Any], sort_by: str | None) -> list[Any]:
    if sort_by is None:
        return events
    if sort_by not in _SORTABLE:
        raise ValueError(f"table: argument 'sort_by' must be one of {sorted(_SORTABLE)}, found {sort_by!r}")
    name = sort_by.replace("cuda", "device").replace("xpu", "device")
    return sorted(events, key=lambda event: getattr(event, name) or 0, reverse=True)


def _flop_scale(events: list[Any]) -> tuple[str, float]:
    least = min((event.flops for event in events if event.flops), default=0)
    names = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")
    step = min(int(math.log10(least) / 3) if least else 0, len(names) - 1)
    return f"Total {names[step]}", 10.0 ** (3 * step)


def _device_time(events: list[Any]) -> float:
    """Microseconds that devices worked: what they did stands in rows of its own, and with what it came from."""
    own = [event for event in events if event.device_type.name != "CPU"]
    return sum(event.self_device_time_total for event in own or events)


def _columns(
    events: list[Any],
    total: float,
    widths: tuple[int, int, int],
    unit: str | None,
    memory: bool,
    flops: bool,
    device: str | None,
) -> list[_Column]:
    source_width, name_width, shapes_width = widths
    columns = [
        _Column("Name", lambda e: _cut(e.key, name_width), 0),
        _Column("Self CPU %", lambda e: _percent_text(e.self_cpu_time_total, total)),
        _Column("Self CPU", lambda e: time_text(e.self_cpu_time_total, unit)),
        _Column("CPU total %", lambda e: _percent_text(e.cpu_time_total, total) if not e.is_async else "0"),
        _Column("CPU total", lambda e: time_text(e.cpu_time_total, unit)),
        _Column("CPU time avg", lambda e: time_text(e.cpu_time, unit)),
    ]
    if device is not None and any(event.device_time_total for event in events):
        whole = _device_time(events)
        name = device.upper()
        columns += [
            _Column(f"Self {name}", lambda e: time_text(e.self_device_time_total, unit)),
            _Column(f"Self {name} %", lambda e: _percent_text(e.self_device_time_total, whole)),
            _Column(f"{name} total", lambda e: time_text(e.device_time_total, unit)),
            _Column(f"{name} time avg", lambda e: time_text(e.device_time, unit)),
        ]
    if memory:
        columns += [
            _Column("CPU Mem", lambda e: memory_text(e.cpu_memory_usage)),
            _Column("Self CPU Mem", lambda e: memory_text(e.self_cpu_memory_usage)),
        ]
        if any(event.device_memory_usage for event in events):
            name = (device or "device").upper()
            columns += [
                _Column(f"{name} Mem", lambda e: memory_text(e.device_memory_usage)),
                _Column(f"Self {name} Mem", lambda e: memory_text(e.self_device_memory_usage)),
            ]
    columns.append(_Column("# of Calls", lambda e: str(e.count)))
    if any(event.input_shapes for event in events):
        columns.append(_Column("Input Shapes", lambda e: _cut(str(e.input_shapes), shapes_width)))
    if any(event.stack for event in events):
        columns.append(
            _Column("Source Location", lambda e: _cut_front(e.stack[0], source_width) if e.stack else "")
        )
    if flops:
        title, scale = _flop_scale(events)
        columns.append(_Column(title, lambda e: f"{e.flops / scale:.3f}" if e.flops else "--"))
    return columns


def build(
    events: list[Any],
    total: float,
    *,
    sort_by: str | None,
    row_limit: int,
    widths: tuple[int, int, int],
    header: str | None,
    time_unit: str | None,
    memory: bool,
    flops: bool,
    device: str | None,
) -> str:
    """A table of events; `total` is what percentages are of.

    Raises:
        ValueError: An unknown column or unit.
    """
    if time_unit is not None and time_unit not in _UNITS:
        raise ValueError(f"table: argument 'time_unit' must be one of {sorted(_UNITS)}, found {time_unit!r}")
    events = _sorted(events, sort_by)
    if not events:
        return ""
    columns = _columns(events, total, widths, time_unit, memory, flops, device)
    shown = events if row_limit < 0 else events[:row_limit]
    rows = [[column.cell(event) for column in columns] for event in shown]
    wide = [
        max(len(column.title), column.width, *(len(row[i]) for row in rows), 0)
        for i, column in enumerate(columns)
    ]
    rule = "  ".join("-" * width for width in wide) + "  "
    lines = [] if header is None else ["=" * len(rule), header]
    titles = [column.title for column in columns]
    lines += [rule, *(_line(cells, wide) for cells in (titles,)), rule]
    lines += [_line(row, wide) for row in rows]
    lines += [rule, f"Self CPU time total: {time_text(total, time_unit)}"]
    if device is not None and any(event.device_time_total for event in events):
        lines.append(f"Self {device.upper()} time total: {time_text(_device_time(events), time_unit)}")
    return "\n".join(lines) + "\n"


def _line(cells: list[str], widths: list[int]) -> str:
    return "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)) + "  "
