"""Tables, lists of events, and the older names in autograd."""

from __future__ import annotations

import pytest

import taeda
from taeda.autograd import profiler as autograd_profiler
from taeda.profiler import profile, record_function
from taeda_profiler.averages import EventList, FunctionEvent, FunctionEventAvg
from taeda_profiler.table import memory_text, time_text


@pytest.fixture(scope="module")
def prof():
    with profile(record_shapes=True, profile_memory=True) as found:
        for _ in range(3):
            with record_function(
                "a block with a name that is much too long for the column of names in tables"
            ):
                taeda.ones(100).exp().sum()
    return found


def cells(line):
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def test_columns_and_rows(prof):
    lines = prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=2).splitlines()
    assert cells(lines[1]) == [
        *("Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"),
        *("CPU Mem", "Self CPU Mem", "# of Calls"),
    ]
    assert lines[0] == lines[2] == lines[5] and set(lines[0]) == {"-", " "}
    assert lines[6].startswith("Self CPU time total: ") and lines[6].endswith(("us", "ms"))
    assert len(lines) == 7 and len({len(line) for line in lines[:6]}) == 1
    assert len(cells(lines[3])) == 9


def test_sorting(prof):
    for name in ("self_cpu_time_total", "cpu_time_total", "cpu_time", "cpu_memory_usage", "count"):
        averages = prof.key_averages()
        first = cells(averages.table(sort_by=name, row_limit=1).splitlines()[3])[0]
        best = max(averages, key=lambda row: getattr(row, name))
        assert first.removesuffix("...") in best.key
    with pytest.raises(ValueError, match="sort_by"):
        prof.key_averages().table(sort_by="nonsense")
    with pytest.raises(ValueError, match="time_unit"):
        prof.key_averages().table(time_unit="years")


def test_options_of_tables(prof):
    averages = prof.key_averages()
    table = averages.table(header="Of all", time_unit="ns", max_name_column_width=20)
    assert "Of all" in table.splitlines()[1] and "us" not in table.split("Calls")[1]
    assert "a block with a na..." in table
    assert len(averages.table(row_limit=-1).splitlines()) == len(averages) + 5
    top = prof.events().table(top_level_events_only=True, row_limit=-1)
    assert "aten::exp" not in top and "a block" in top
    assert EventList([]).table() == "" and str(averages) == averages.table()


def test_units():
    assert [time_text(t) for t in (0.0, 12.3456, 1234.5, 2.5e6)] == [
        "0.000us",
        "12.346us",
        "1.234ms",
        "2.500s",
    ]
    assert time_text(1500.0, "us") == "1500.000us"
    sizes = [memory_text(s) for s in (0, -8, 1536, -3 << 20, 5 << 30)]
    assert sizes == ["0 B", "-8 B", "1.50 KB", "-3.00 MB", "5.00 GB"]


def test_total_average(prof):
    total = prof.key_averages().total_average()
    assert total.key == "Total" and total.count == sum(row.count for row in prof.key_averages())
    assert total.self_cpu_time_total == pytest.approx(prof.key_averages().self_cpu_time_total)
    for old in ("cuda_time", "cuda_time_total", "self_cuda_time_total", "self_cuda_memory_usage"):
        assert getattr(total, old) == getattr(total, old.replace("cuda", "device"))


def test_sums_of_single_events_are_those_of_the_columns(prof):
    fast = {row.key: row for row in prof.key_averages()}
    slow = {}
    for event in prof.events():
        slow.setdefault(event.key, FunctionEventAvg()).add(event)
    assert fast.keys() == slow.keys()
    for key, row in fast.items():
        for name in (
            "cpu_time_total",
            "self_cpu_time_total",
            "cpu_memory_usage",
            "self_cpu_memory_usage",
            "count",
        ):
            assert getattr(row, name) == pytest.approx(getattr(slow[key], name), abs=1e-6), (key, name)


def test_lists_that_a_program_makes_itself():
    outer, inner = FunctionEvent(0, "outer", 0, 0.0, 10.0), FunctionEvent(1, "inner", 0, 2.0, 5.0)
    outer.append_cpu_child(inner)
    inner.set_cpu_parent(outer)
    found = {row.key: row for row in EventList([outer, inner]).key_averages()}
    assert found["outer"].self_cpu_time_total == 7.0 and found["inner"].cpu_time_total == 3.0
    assert "outer" in repr(outer) and "inner" in repr(found["inner"])
    with pytest.raises(ValueError, match="is no"):
        found["outer"].add(inner)


def test_the_older_profile():
    with autograd_profiler.profile(record_shapes=True) as prof:
        taeda.ones(2).exp()
    assert [event.name for event in prof.function_events] == ["aten::ones", "aten::fill_", "aten::exp"]
    assert "aten::exp" in prof.table(sort_by="cpu_time_total") and "aten::exp" in str(prof)
    assert prof.self_cpu_time_total > 0 and prof.total_average().count == 3
    assert prof.key_averages()[0].count == 1
    with pytest.raises(RuntimeError, match="not reentrant"), prof:
        pass
    with autograd_profiler.profile(enabled=False) as nothing:
        taeda.ones(1)
    assert nothing is None
    assert str(autograd_profiler.profile()) == "<unfinished profile>"


def test_vendors_marks_are_accepted():
    for mark in (autograd_profiler.emit_nvtx, autograd_profiler.emit_itt):
        with mark(record_shapes=True):
            assert taeda.ones(2).sum().item() == 2
    assert autograd_profiler.record_function is record_function is taeda.autograd.profiler.record_function
