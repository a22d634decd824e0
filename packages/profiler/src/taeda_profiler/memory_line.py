"""The bytes in use over time."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from taeda_profiler import chrome
from taeda_profiler.trace import Trace


def curve(trace: Trace, device: str | None = None) -> tuple[list[int], list[int]]:
    """Times in nanoseconds since the beginning, and the bytes in use after each; 0 is what was in use before.

    Raises:
        ValueError: `device` is neither "cpu" nor "device".
    """
    if device not in (None, "cpu", "device"):
        raise ValueError(f"memory timeline: argument 'device' must be 'cpu' or 'device', found {device!r}")
    uses = trace.memory
    wanted = (uses["device"] >> 16 == 0) == (device != "device")
    return uses["at"][wanted].tolist(), np.cumsum(uses["bytes"][wanted]).tolist()


def export(trace: Trace, path: str, device: str | None = None) -> None:
    """Writes the curve, or (".raw.json.gz") each use as [time, action, address, bytes]."""
    if path.endswith((".raw.json.gz", ".raw.json")):
        uses = trace.memory
        columns = (uses[name].tolist() for name in ("at", "address", "bytes"))
        content: Any = [
            [at, "alloc" if size > 0 else "free", address, abs(size)]
            for at, address, size in zip(*columns, strict=True)
        ]
    else:
        content = curve(trace, device)
    with chrome.open_text(path) as file:
        json.dump(content, file)
