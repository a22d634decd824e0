"""Profiles operators on a GPU: each has the time of the device's work that it asked for, and what profiling costs.

python tools/gpu_check/activities.py [--small]

The times that the profiler shows are held to those of events around the same calls, and the trace to what was called.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import taeda as torch
import taeda_tensor_cuda

SMALL = "--small" in sys.argv[1:]
ELEMENTS, SIDE, CALLS = (1 << 10, 16, 20) if SMALL else (1 << 26, 4096, 500)
# How far events and records may differ: events include what passes between kernels.
NEAR = 0.25


def cases() -> dict[str, tuple[str, Callable[[], Any]]]:
    """What is called, with the operator's name in profiles."""
    x, y = torch.rand(ELEMENTS, device="cuda"), torch.rand(ELEMENTS, device="cuda")
    a, b = torch.rand(SIDE, SIDE, device="cuda"), torch.rand(SIDE, SIDE, device="cuda")
    return {
        "add": ("aten::add", lambda: x + y),
        "exp": ("aten::exp", lambda: x.exp()),
        "sum": ("aten::sum", lambda: x.sum()),
        "mm": ("aten::mm", lambda: a @ b),
        "softmax": ("aten::softmax", lambda: a.softmax(1)),
    }


def profiled(work: Callable[[], Any], repeats: int) -> Any:
    """A profile of calls, begun and ended with nothing on its way."""
    torch.cuda.synchronize()
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    ) as prof:
        for _ in range(repeats):
            work()
    return prof


def by_events(work: Callable[[], Any], repeats: int) -> float:
    """Microseconds of one call between two events."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(repeats):
        work()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) * 1000 / repeats


def check_times() -> None:
    """Operators have the device's times."""
    for name, (key, work) in cases().items():
        work()
        events = by_events(work, 20)
        row = {row.key: row for row in profiled(work, 20).key_averages()}[key]
        shown = row.device_time_total / row.count
        print(f"{name}: {shown:.1f} us by the profiler, {events:.1f} us by events")
        assert row.count == 20 and shown > 0, row
        assert SMALL or abs(shown - events) < NEAR * events, (name, shown, events)


def check_trace() -> None:
    """Kernels and copies are in the trace, after the calls that they come from."""
    x = torch.rand(ELEMENTS, device="cuda")
    prof = profiled(lambda: [(x + x).cpu(), torch.zeros(100).to("cuda")], 3)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        prof.export_chrome_trace(str(path))
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    calls = {e["args"]["External id"]: e for e in events if e.get("cat") in ("cpu_op", "user_annotation")}
    done = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy")]
    kinds = [e["cat"] for e in done]
    assert kinds.count("kernel") >= 3 and kinds.count("gpu_memcpy") == 6, kinds
    for event in done:
        call = calls[event["args"]["External id"]]
        assert event["ts"] >= call["ts"] - 10, (call, event)  # the two clocks agree to some microseconds
    print(f"trace: {kinds.count('kernel')} kernels, {kinds.count('gpu_memcpy')} copies, each behind its call")


def measure_cost() -> None:
    """The host's time to hand a small operator over, with a profile and without."""
    x = torch.rand(16, device="cuda")

    def handed_over() -> float:
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(CALLS):
            x + x
        return (time.perf_counter() - begin) / CALLS * 1e6

    handed_over()
    plain = handed_over()
    with torch.profiler.profile():
        watched = handed_over()
    print(f"to hand over an addition: {plain:.2f} us, {watched:.2f} us in a profile")


def main() -> int:
    """All of it."""
    found = taeda_tensor_cuda.libraries()["cupti"] if torch.cuda.is_available() else {}
    print(f"CUPTI: {found}")
    check_times()
    check_trace()
    measure_cost()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
