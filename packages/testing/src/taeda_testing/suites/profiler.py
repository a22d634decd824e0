"""Behaviour of a profiler provider: blocks by name with their times, steps, files; programs stay as they are."""

from __future__ import annotations

import json
import os
import tempfile
import time
from typing import Any

from taeda_registry.slots import tensor
from taeda_testing.conformance.checks import Suite, equal, raises, true

suite = Suite("profiler")
CHECKS = suite.checks
_BLOCK = "conformance block"


def _work() -> Any:
    return tensor.ones(3) + tensor.ones(3)


def _recorded(part: Any, times: int = 1, **options: Any) -> Any:
    with part.profile(**options) as prof:
        for _ in range(times):
            with part.record_function(_BLOCK):
                _work()
    return prof


def _row(prof: Any, key: str = _BLOCK) -> Any:
    rows = [row for row in prof.key_averages() if row.key == key]
    equal(f"rows named {key!r} in key_averages()", len(rows), 1)
    return rows[0]


@suite.check("profile", "record_function", "profile.key_averages")
def blocks_have_names_and_are_counted(part: Any) -> None:
    """A block that ran three times is one row with that count; a decorated function is, too."""

    @part.record_function("conformance function")
    def decorated(x: int, *, more: int) -> int:
        return x + more

    equal("count of a block that ran 3 times", _row(_recorded(part, 3)).count, 3)
    with part.profile() as prof:
        equal("result of a decorated function", [decorated(1, more=2), decorated(3, more=4)], [3, 7])
    equal("count of a decorated function", _row(prof, "conformance function").count, 2)


@suite.check("profile.key_averages")
def times_are_the_clock_s(part: Any) -> None:
    """`cpu_time_total` of a block is in microseconds: no less than it slept, no more than passed around it."""
    with part.profile() as prof:
        start = time.perf_counter()
        with part.record_function(_BLOCK):
            time.sleep(0.03)
        passed = (time.perf_counter() - start) * 1e6
    found = _row(prof).cpu_time_total
    true(f"cpu_time_total {found} of a block of 30 ms", 29_000 < found <= passed, f"29000 to {passed:.0f}")


@suite.check("profile.key_averages")
def the_table_shows_names(part: Any) -> None:
    """`key_averages().table(sort_by, row_limit)` is a text with the names."""
    table = _recorded(part).key_averages().table(sort_by="self_cpu_time_total", row_limit=1000)
    true("the table", isinstance(table, str) and _BLOCK in table, f"a text with {_BLOCK!r}")
    with raises("table(sort_by='nonsense')", ValueError, AttributeError):
        _recorded(part).key_averages().table(sort_by="nonsense")


@suite.check("profile.events")
def single_events(part: Any) -> None:
    """`events` has one item with the name for each time that a block ran."""
    names = [event.name for event in _recorded(part, 4).events()]
    equal("events of a block that ran 4 times", names.count(_BLOCK), 4)


@suite.check("profile", "record_function")
def errors_go_through(part: Any) -> None:
    """An exception leaves blocks and profiles as itself; what was recorded until then is there, another can begin."""

    class Mine(Exception):
        pass

    prof = part.profile()
    with raises("a block that raises", Mine), prof, part.record_function(_BLOCK):
        raise Mine
    equal("count of the block that raised", _row(prof).count, 1)
    equal("count in a second profile", _row(_recorded(part)).count, 1)


@suite.check("profile.start", "profile.stop")
def without_a_block(part: Any) -> None:
    """`start` and `stop` are the ends of the block; what comes before and after is not recorded."""
    prof = part.profile()
    for run in (lambda: None, prof.start, prof.stop):
        run()
        with part.record_function(_BLOCK):
            _work()
    equal("count between start and stop", _row(prof).count, 1)


@suite.check("profile", "record_function")
def results_stay_as_they_are(part: Any) -> None:
    """A program computes the same within a profile with all that can be recorded, and blocks work outside of one."""
    with part.record_function(_BLOCK):
        expected = _work().tolist()
    with part.profile(record_shapes=True, profile_memory=True, with_stack=True):
        equal("values within a profile", _work().tolist(), expected)


@suite.check("schedule", "ProfilerAction")
def plans(part: Any) -> None:
    """`schedule(wait, warmup, active, repeat, skip_first)` says what to do in each step."""
    plan = part.schedule(wait=1, warmup=1, active=2, repeat=1, skip_first=1)
    names = [plan(step).name for step in range(6)]
    equal("actions of 6 steps", names, ["NONE", "NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE", "NONE"])
    true("ProfilerAction", plan(3) is part.ProfilerAction.RECORD, "the actions are its members")


@suite.check("profile.step", "schedule")
def steps_of_a_plan(part: Any) -> None:
    """With a schedule the active steps are recorded, and `on_trace_ready` is called once for each cycle."""
    seen = []
    plan = part.schedule(wait=1, warmup=0, active=2, repeat=2)
    with part.profile(schedule=plan, on_trace_ready=lambda prof: seen.append(_row(prof).count)) as prof:
        for _ in range(8):
            with part.record_function(_BLOCK):
                _work()
            prof.step()
    equal("blocks recorded in each cycle", seen, [2, 2])


@suite.check("profile.export_chrome_trace")
def traces(part: Any) -> None:
    """`export_chrome_trace` writes JSON whose `traceEvents` have the block as a slice with `ts` and `dur`."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        _recorded(part).export_chrome_trace(path)
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
    found = [event for event in events if event.get("ph") == "X" and event.get("name") == _BLOCK]
    equal("slices of the block", len(found), 1)
    true("its times", found[0]["ts"] >= 0 and found[0]["dur"] >= 0, "numbers that are not negative")


@suite.check("tensorboard_trace_handler")
def folders_of_traces(part: Any) -> None:
    """`tensorboard_trace_handler(folder)` makes the folder and writes `<worker>.<time>.pt.trace.json`."""
    with tempfile.TemporaryDirectory() as folder:
        inner = os.path.join(folder, "runs", "one")
        _recorded(part, on_trace_ready=part.tensorboard_trace_handler(inner, worker_name="me"))
        names = os.listdir(inner)
    true(f"files {names}", len(names) == 1 and names[0].startswith("me."), "one, of worker 'me'")
    true(f"file {names[0]}", names[0].endswith(".pt.trace.json"), "a name that ends in .pt.trace.json")


@suite.check("supported_activities", "ProfilerActivity")
def activities(part: Any) -> None:
    """The host's work can be recorded, and `activities` says so."""
    host = part.ProfilerActivity.CPU
    true("supported_activities()", host in part.supported_activities(), "has ProfilerActivity.CPU")
    equal("count with activities=[CPU]", _row(_recorded(part, activities=[host])).count, 1)


@suite.check("autograd_profiler")
def the_older_names(part: Any) -> None:
    """`autograd.profiler` has a profile of its own or the same; `emit_nvtx` and `emit_itt` run their blocks."""
    old = part.autograd_profiler
    with old.profile() as prof, old.record_function(_BLOCK):
        _work()
    equal("count in autograd.profiler.profile", _row(prof).count, 1)
    ran = []
    for block in (old.emit_nvtx, old.emit_itt):
        with block():
            ran.append(block)
    equal("blocks that ran", len(ran), 2)


@suite.check("benchmark")
def timers(part: Any) -> None:
    """`Timer(stmt, globals=...).timeit(n)` measures seconds of one run; `blocked_autorange` chooses how many."""
    calls = []
    timer = part.benchmark.Timer(stmt="add()", globals={"add": lambda: calls.append(1)})
    measured = timer.timeit(20)
    true(f"{len(calls)} runs", len(calls) >= 20, "at least 20")
    true(f"median {measured.median}", 0 < measured.median < 1, "seconds of one run")
    true("blocked_autorange", timer.blocked_autorange(min_run_time=0.01).median > 0, "a time")


@suite.check("flop_counter")
def floating_point_operations(part: Any) -> None:
    """`FlopCounterMode` counts a product of matrices as two operations for each of its multiplications."""
    with part.flop_counter.FlopCounterMode(display=False) as counter:
        tensor.ones(2, 3) @ tensor.ones(3, 4)
    equal("operations of a (2, 3) by (3, 4) product", counter.get_total_flops(), 48)
