"""taeda.utils.benchmark: timing, measurements, tables, and counts of instructions."""

from __future__ import annotations

import shutil
import time

import pytest

import taeda
from taeda.utils import benchmark
from taeda_profiler.benchmark import counts
from taeda_profiler.benchmark.common import TaskSpec
from taeda_testing.settling import eventually


def measured(times, number=1, **names):
    return benchmark.Measurement(number, times, TaskSpec("f()", "", **names))


def test_a_statement_takes_its_time():
    timer = benchmark.Timer("time.sleep(0.002)", globals={"time": time})
    start = time.perf_counter()
    found = timer.timeit(5)
    whole = time.perf_counter() - start
    assert found.number_per_run == 5 and len(found.times) == 1
    assert 0.002 <= found.median <= whole / 5 and found.mean == found.median
    assert "1 measurement, 5 runs" in repr(found) and "ms" in repr(found)


def test_blocks_are_long_enough_and_many():
    timer = benchmark.Timer("x + x", setup="x = taeda.ones(4)")

    def measured_in_peace():
        """A statement that others interrupt looks slow: one run makes a block, a block fills the time."""
        seen = []
        found = timer.blocked_autorange(
            callback=lambda number, seconds: seen.append((number, seconds)), min_run_time=0.05
        )
        assert sum(found.raw_times) >= 0.05 and found.number_per_run > 10
        assert seen == [(found.number_per_run, seconds) for seconds in found.raw_times]
        assert found.iqr >= 0 and 1 <= found.significant_figures <= 5
        assert "measurements" in repr(found) and "Median" in repr(found)

    eventually(measured_in_peace)


def test_adaptive_runs_end_when_the_scatter_is_small_or_time_is_up():
    clock = iter(range(10**9))
    even = benchmark.Timer("pass", timer=lambda: next(clock) * 1e-3).adaptive_autorange(min_run_time=0.001)
    assert even.iqr == pytest.approx(0, abs=1e-15) and len(even.raw_times) >= 4
    wild = benchmark.Timer(
        "sleep(random() * 0.002)", setup="from random import random; from time import sleep"
    )
    # Its time is up where the scatter never is small: that it comes back says so.
    found = wild.adaptive_autorange(threshold=1e-6, max_run_time=0.05)
    assert sum(found.raw_times) >= 0.05


def test_threads_are_set_meanwhile_and_given_back():
    before = taeda.get_num_threads()
    seen = []
    timer = benchmark.Timer(
        "seen.append(taeda.get_num_threads())", globals={"seen": seen}, num_threads=before + 1
    )
    timer.timeit(1)
    assert set(seen) == {before + 1} and taeda.get_num_threads() == before
    assert "threads" in repr(timer.blocked_autorange(min_run_time=0.001))


def test_setup_runs_outside_of_the_time():
    clock = [0]
    options = {"globals": {"clock": clock}, "timer": lambda: clock[0]}
    timer = benchmark.Timer("clock[0] += 2", setup="clock[0] += 1000", **options)
    assert timer.timeit(3).median == 2


def test_indented_statements():
    timer = benchmark.Timer(
        """
        for i in range(3):
            total = total + i
        """,
        setup="total = 0",
    )
    assert timer.timeit(10).median > 0


@pytest.mark.skipif(shutil.which("c++") is None, reason="no compiler: c++ is not on the path")
def test_statements_in_c(tmp_path, monkeypatch):
    monkeypatch.setenv("TAEDA_EXTENSIONS_DIR", str(tmp_path))
    timer = benchmark.Timer(
        "total += add(2); auto y = x + 1;",
        setup="int total = 0; auto x = torch::ones({2, 2});",
        global_setup="static int add(int n) { return n + 1; }",
        language="cpp",
    )
    found = timer.timeit(100)
    assert found.number_per_run == 100 and 0 < found.median < 1
    assert timer.blocked_autorange(min_run_time=0.01).median > 0
    with pytest.raises(NotImplementedError, match="collect_callgrind"):
        timer.collect_callgrind()
    with pytest.raises(RuntimeError, match="Error building extension"):
        benchmark.Timer("no such words", language=benchmark.Language.CPP)


def test_wrong_arguments():
    for options, error in (
        ({"stmt": 3}, ValueError),
        ({"stmt": "x ="}, SyntaxError),
        ({"num_threads": 0}, ValueError),
        ({"language": "rust"}, ValueError),
        ({"global_setup": "int x;"}, ValueError),
        ({"language": "cpp", "globals": {"x": 1}}, ValueError),
    ):
        with pytest.raises(error):
            benchmark.Timer(**options)
    timer = benchmark.Timer()
    with pytest.raises(ValueError, match="positive"):
        timer.timeit(0)
    with pytest.raises(ValueError, match="positive"):
        timer.blocked_autorange(min_run_time=0)
    with pytest.raises(ValueError, match="min_run_time"):
        timer.adaptive_autorange(min_run_time=2, max_run_time=1)
    for call in (timer.repeat, timer.autorange):
        with pytest.raises(NotImplementedError, match="blocked_autorange"):
            call()


def test_numbers_of_measurements():
    found = measured([0.4, 0.1, 0.2, 0.3], number=10)
    assert found.times == pytest.approx([0.04, 0.01, 0.02, 0.03])
    assert found.median == pytest.approx(0.025) and found.mean == pytest.approx(0.025)
    assert found.iqr == pytest.approx(0.015) and found.has_warnings and "WARNING" in repr(found)
    assert not measured([1.0, 1.0, 1.0]).has_warnings and measured([1.0, 1.0]).significant_figures == 5
    assert measured([1.0, 2.0]).stmt == "f()" and measured([1.0]).num_threads == 1
    with pytest.raises(AttributeError):
        _ = measured([1.0]).nonsense
    with pytest.raises(ValueError, match="nothing has been timed"):
        _ = measured([]).median


def test_merging():
    merged = benchmark.Measurement.merge([measured([2.0], 2), measured([1.0], label="a"), measured([6.0], 2)])
    assert [m.raw_times for m in merged] == [[2.0, 6.0], [1.0]] and merged[0].number_per_run == 2
    mixed = benchmark.Measurement.merge([measured([2.0], 2), measured([3.0], 1)])
    assert mixed[0].times == [1.0, 3.0]


def test_units_and_digits():
    assert [benchmark.select_unit(t) for t in (5e-10, 2e-6, 0.5, 3.0)] == [
        *(("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0))
    ]
    assert benchmark.unit_to_english("us") == "microsecond"
    assert benchmark.trim_sigfig(123.456, 2) == pytest.approx(120) and benchmark.trim_sigfig(0, 3) == 0
    assert benchmark.ordered_unique("abca") == ["a", "b", "c"]


def test_tables_of_comparisons(capsys):
    results = [
        measured([t], label="sums", sub_label=row, description=column, num_threads=threads)
        for row, column, threads, t in (
            *(("plain", "small", 1, 1e-6), ("plain", "large", 1, 4e-6), ("fast", "small", 1, 2e-6)),
            *(("fast", "large", 1, 3e-6), ("fast", "large", 2, 1.5e-6)),
        )
    ]
    compare = benchmark.Compare(results)
    compare.print()
    shown = capsys.readouterr().out
    lines = shown.splitlines()
    assert "sums" in lines[0] and lines[0].startswith("[-")
    assert [cell.strip() for cell in lines[1].split("|")][1:] == ["small", "large"]
    assert lines[2].startswith("1 threads: ---") and lines[5].startswith("2 threads: ---")
    assert [cell.strip() for cell in lines[3].split("|")] == ["plain", "1.0", "4.0"]
    assert [cell.strip() for cell in lines[6].split("|")] == ["fast", "", "1.5"]
    assert "Times are in microseconds (us)." in shown
    compare.colorize()
    assert "\033[92m" in str(compare)
    compare.colorize(rowwise=True)
    compare.trim_significant_figures()
    compare.highlight_warnings()
    assert "\033[92m" in str(compare)
    with pytest.raises(ValueError, match="expected measurements"):
        compare.extend_results([3])


def test_files_of_callgrind():
    text = """\
fl=(1) /a/b/first.c
fn=(1) main
12 5
cfi=(2) /a/second.c
cfn=(2) helper
calls=3 20
13 30
14 2
fl=(2)
fn=(2)
20 30
"""
    inclusive, exclusive = counts.parse(text)
    assert {row.function: row.count for row in exclusive} == {"second.c:helper": 30, "first.c:main": 7}
    assert {row.function: row.count for row in inclusive} == {"first.c:main": 37, "second.c:helper": 30}
    assert exclusive.sum() == 37 and exclusive[0].function == "second.c:helper" and len(exclusive[:1]) == 1
    twice = exclusive + exclusive
    assert twice.sum() == 74 and (twice - exclusive).sum() == 37 and (exclusive * 3).sum() == 111
    assert exclusive.filter(lambda name: "main" in name).sum() == 7
    assert (
        exclusive.transform(lambda name: "all").sum() == 37 and len(exclusive.transform(lambda n: "all")) == 1
    )
    assert "Total: 37" in repr(exclusive)
    with pytest.raises(AssertionError, match="do not go together"):
        _ = inclusive + exclusive


def test_counting_without_valgrind(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(RuntimeError, match="valgrind is not installed"):
        benchmark.Timer().collect_callgrind()


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_instructions_are_counted():
    timer = benchmark.Timer("for i in range(k): pass", globals={"k": 1000})
    found = timer.collect_callgrind(number=10, collect_baseline=False)
    assert 10 * 1000 < found.counts() < 10 * 1000 * 1000 and found.baseline_exclusive_stats.sum() == 0
    assert found.stats(inclusive=True).sum() >= found.counts() and found.delta(found).sum() == 0
    assert found.as_standardized().counts() == found.counts() and "per measurement" in repr(found)
    with pytest.raises(ValueError, match="pickled: f"):
        benchmark.Timer(globals={"f": lambda: 0}).collect_callgrind()
    with pytest.raises(ValueError, match="positive"):
        timer.collect_callgrind(number=0)


def test_sizes_and_tensors_are_drawn():
    from taeda_profiler.benchmark import FuzzedParameter, FuzzedTensor, Fuzzer, ParameterAlias

    parameters = [
        [FuzzedParameter(f"k{i}", 4, 64, "loguniform") for i in range(2)],
        FuzzedParameter("same", distribution={ParameterAlias("k0"): 0.5, 3: 0.5}),
        FuzzedParameter("step", distribution={1: 0.5, 2: 0.5}),
    ]
    tensors = [FuzzedTensor("x", ("k0", "k1"), ("step",), 0.5, min_elements=64, max_elements=1024)]

    def drawn():
        fuzzer = Fuzzer(parameters, tensors, [lambda k0, k1, **_: k0 <= k1], seed=1)
        return [(made["x"], facts["x"], params) for made, facts, params in fuzzer.take(20)]

    first = drawn()
    for x, facts, params in first:
        assert tuple(x.shape) == (params["k0"], params["k1"]) and 64 <= facts["numel"] <= 1024
        assert params["k0"] <= params["k1"] and params["same"] in (3, params["k0"])
        assert facts["is_contiguous"] == x.is_contiguous() and facts["steps"] == (params["step"], 1)
    assert {facts["is_contiguous"] for _, facts, _ in first} == {True, False}
    assert [params for _, _, params in first] == [params for _, _, params in drawn()]


def test_wrong_draws_are_refused():
    from taeda_profiler.benchmark import FuzzedParameter, Fuzzer

    with pytest.raises(ValueError, match="sum"):
        FuzzedParameter("a", distribution={1: 0.5})
    with pytest.raises(ValueError, match="minval"):
        FuzzedParameter("a", distribution="uniform")
    one = FuzzedParameter("a", 1, 2, "uniform")
    with pytest.raises(ValueError, match="Duplicate names: a"):
        Fuzzer([one, one], [])
    with pytest.raises(ValueError, match="constraints"):
        next(Fuzzer([one], [], [lambda a: a > 2], seed=0).take(1))
