"""A profile of a whole network agrees with the clock: its table, and its trace."""

from __future__ import annotations

import json
import time

import pytest

import taeda
from taeda.models import resnet50
from taeda.profiler import profile, record_function

# What else runs on the machine may take the processor away between two operators.
TRIES = 4


@pytest.fixture(scope="module")
def step():
    taeda.manual_seed(0)
    model = resnet50(num_classes=10)
    optimizer = taeda.optim.SGD(model.parameters(), lr=1e-3)
    images, labels = taeda.randn(2, 3, 64, 64), taeda.tensor([1, 2])

    def run():
        optimizer.zero_grad()
        taeda.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    run()
    return run


def profiled(step):
    """(microseconds by the clock, the profile)"""
    with profile() as prof:
        start = time.perf_counter()
        with record_function("whole"):
            step()
        wall = (time.perf_counter() - start) * 1e6
    return wall, prof


def covered(slices):
    """Microseconds in which at least one of the slices runs."""
    total, until = 0.0, 0.0
    for event in sorted(slices, key=lambda e: e["ts"]):
        end = event["ts"] + event["dur"]
        total += max(end - max(event["ts"], until), 0.0)
        until = max(until, end)
    return total


def test_table_and_trace_of_a_resnet_50_agree_with_the_clock(step, tmp_path):
    path, parts = tmp_path / "trace.json", []
    for _ in range(TRIES):
        wall, prof = profiled(step)
        rows = {row.key: row for row in prof.key_averages()}
        assert all(row.self_cpu_time_total >= 0 for row in rows.values())
        assert sum(row.self_cpu_time_total for row in rows.values()) == pytest.approx(
            rows["whole"].cpu_time_total
        )
        prof.export_chrome_trace(str(path))
        slices = [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"]
        inside = [event for event in slices if event["name"] != "whole"]
        # The block itself, what is spent in operators, backwards and the optimizer, and what the trace shows of these.
        parts = [
            rows["whole"].cpu_time_total / wall,
            (rows["whole"].cpu_time_total - rows["whole"].self_cpu_time_total) / wall,
            covered(inside) / wall,
        ]
        if all(0.95 <= part <= 1.0 for part in parts):
            return
    pytest.fail(f"parts of the time by the clock: {parts}, expected 0.95 to 1")
