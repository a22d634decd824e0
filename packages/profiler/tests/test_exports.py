"""Files: traces for Perfetto, stacks for flame graphs, memory over time, folders of TensorBoard."""

from __future__ import annotations

import gzip
import json
import os

import pytest

import taeda
from taeda.profiler import merge_traces, profile, record_function, schedule, tensorboard_trace_handler


@pytest.fixture(scope="module")
def prof():
    x = taeda.ones(3, 4, requires_grad=True)
    found = profile(record_shapes=True, profile_memory=True, with_stack=True)
    with found, record_function('odd "name"\\'):
        (x.exp() @ taeda.ones(4, 2)).sum().backward()
    return found


@pytest.fixture(scope="module")
def trace(prof, tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "trace.json"
    prof.export_chrome_trace(str(path))
    return json.loads(path.read_text())


def slices(trace):
    return [event for event in trace["traceEvents"] if event["ph"] == "X"]


def test_slices_nest(trace, prof):
    """Rules of the format: slices of a thread lie within each other or apart."""
    found = slices(trace)
    assert len(found) == len(prof.trace)
    open_ = []
    for event in sorted(found, key=lambda e: (e["ts"], -e["dur"])):
        assert event["dur"] >= 0 and event["pid"] == os.getpid()
        while open_ and open_[-1] <= event["ts"]:
            open_.pop()
        assert not open_ or event["ts"] + event["dur"] <= open_[-1] + 0.002
        open_.append(event["ts"] + event["dur"])


def test_slices_say_what_they_are(trace):
    by_name = {event["name"]: event for event in reversed(slices(trace))}  # the first of each
    assert by_name['odd "name"\\']["cat"] == "user_annotation"
    mm = by_name["aten::mm"]
    assert mm["cat"] == "cpu_op" and mm["args"]["Input Dims"] == [[3, 4], [4, 2]]
    assert mm["args"]["Input type"] == ["float", "float"] and __file__ in mm["args"]["Call stack"]
    exp, back = by_name["aten::exp"], by_name["ExpBackward0"]
    assert exp["args"]["Sequence number"] == back["args"]["Sequence number"]
    assert back["args"]["Fwd thread id"] == exp["tid"]
    names = [event for event in trace["traceEvents"] if event["ph"] == "M"]
    assert {event["name"] for event in names} == {"process_name", "thread_name", "thread_sort_index"}


def test_arrows_begin_in_forwards_and_end_in_backwards(trace):
    flows = [event for event in trace["traceEvents"] if event.get("cat") == "fwdbwd"]
    starts = {event["id"]: event for event in flows if event["ph"] == "s"}
    ends = {event["id"]: event for event in flows if event["ph"] == "f"}
    assert starts.keys() == ends.keys() and len(starts) >= 3
    at = {event["ts"]: event["name"] for event in slices(trace)}
    assert all(event["ts"] in at for event in flows)
    pairs = {at[starts[number]["ts"]]: at[ends[number]["ts"]] for number in starts}
    assert pairs["aten::exp"] == "ExpBackward0"
    assert all(starts[number]["ts"] < ends[number]["ts"] for number in starts)


def test_memory_is_a_counter(trace):
    counts = [event["args"]["bytes"] for event in trace["traceEvents"] if event["ph"] == "C"]
    uses = [event["args"] for event in trace["traceEvents"] if event["name"] == "[memory]"]
    assert len(counts) == len(uses) > 5
    total = 0
    for count, use in zip(counts, uses, strict=True):
        total += use["Bytes"]
        assert count == use["Total Allocated"] == total


def test_packed_and_with_facts(prof, tmp_path):
    prof.add_metadata("who", "me")
    prof.add_metadata_json("what", '{"a": [1]}')
    with pytest.raises(ValueError, match="Expecting"):
        prof.add_metadata_json("bad", "{")
    path = tmp_path / "trace.json.gz"
    prof.export_chrome_trace(str(path))
    with gzip.open(path, "rt") as file:
        found = json.load(file)
    assert found["who"] == "me" and found["what"] == {"a": [1]} and found["dropped_events"] == 0


def test_traces_of_processes_are_merged(prof, tmp_path):
    first, second = tmp_path / "a.json", tmp_path / "b.json.gz"
    prof.export_chrome_trace(str(first))
    child = os.fork()
    if child == 0:
        try:
            with profile() as own:
                taeda.ones(1)
            own.export_chrome_trace(str(second))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    merge_traces([str(first), str(second)], str(tmp_path / "all.json"))
    found = json.loads((tmp_path / "all.json").read_text())
    assert {event["pid"] for event in slices(found)} == {os.getpid(), child}
    assert len(slices(found)) == len(prof.trace) + 2
    (tmp_path / "no.json").write_text("[]")
    with pytest.raises(ValueError, match="no trace"):
        merge_traces([str(tmp_path / "no.json")], str(tmp_path / "x.json"))


def test_stacks_for_flame_graphs(prof, tmp_path):
    path = tmp_path / "stacks.txt"
    prof.export_stacks(str(path), "self_cpu_time_total")
    lines = path.read_text().splitlines()
    assert lines
    for line in lines:
        places, weight = line.rsplit(" ", 1)
        assert int(weight) > 0 and " " not in places
    assert any("test_exports.py" in line for line in lines)
    with pytest.raises(ValueError, match="metric"):
        prof.export_stacks(str(path), "nonsense")


def test_memory_over_time(prof, tmp_path):
    path = tmp_path / "memory.json"
    prof.export_memory_timeline(str(path))
    times, sizes = json.loads(path.read_text())
    assert len(times) == len(sizes) == len(prof.trace.memory["at"]) and times == sorted(times)
    raw = tmp_path / "memory.raw.json.gz"
    prof.export_memory_timeline(str(raw))
    with gzip.open(raw, "rt") as file:
        uses = json.load(file)
    total = sum(size if action == "alloc" else -size for _, action, _, size in uses)
    assert total == sizes[-1]
    with pytest.raises(ValueError, match="device"):
        prof.export_memory_timeline(str(path), "moon")
    with profile() as without:
        taeda.ones(1)
    with pytest.raises(AssertionError, match="profile_memory"):
        without.export_memory_timeline(str(path))


def test_the_folder_of_tensorboard(tmp_path):
    folder = tmp_path / "runs" / "one"
    plan = schedule(wait=0, warmup=0, active=1, repeat=2)
    handler = tensorboard_trace_handler(str(folder), worker_name="w", use_gzip=True)
    with profile(schedule=plan, on_trace_ready=handler) as prof:
        for _ in range(3):
            taeda.ones(1)
            prof.step()
    files = sorted(os.listdir(folder))
    assert len(files) == 2 and all(
        name.startswith("w.") and name.endswith(".pt.trace.json.gz") for name in files
    )
    with gzip.open(folder / files[0], "rt") as file:
        assert any(event["name"] == "ProfilerStep#0" for event in json.load(file)["traceEvents"])
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(RuntimeError, match="cannot make folder"),
        profile(on_trace_ready=tensorboard_trace_handler(str(tmp_path / "file" / "x"))),
    ):
        taeda.ones(1)


def test_a_picture_has_lanes_memory_and_the_costliest(prof, tmp_path):
    pytest.importorskip("matplotlib", reason="the picture is made by matplotlib")
    found = prof.plot(row_limit=3, title="A step")
    timeline, memory, costliest = found.axes
    (boxes,) = timeline.collections
    assert len(boxes.get_paths()) >= 5 and found.get_suptitle() == "A step"
    assert [text.get_text() for text in timeline.get_yticklabels()] == ["MainThread"]
    times, sizes = memory.lines[0].get_data()
    assert max(sizes) * 2**20 == pytest.approx(max(taeda_curve(prof))) and times[0] == 0
    names = [text.get_text() for text in costliest.get_yticklabels()]
    best = sorted(prof.key_averages(), key=lambda row: row.self_cpu_time_total, reverse=True)
    assert names == [row.key for row in best[:3]]
    found.savefig(tmp_path / "profile.png")
    assert (tmp_path / "profile.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="row_limit"):
        prof.plot(row_limit=0)


def taeda_curve(prof):
    from taeda_profiler import memory_line

    return memory_line.curve(prof.trace)[1]


def test_a_picture_of_many_events_is_of_what_can_be_seen():
    pytest.importorskip("matplotlib", reason="the picture is made by matplotlib")
    x = taeda.ones(2)
    with profile() as found:
        for _ in range(20_000):
            x.exp()
    timeline, _ = found.plot().axes
    assert 100 < len(timeline.collections[0].get_paths()) <= 2002


def test_a_picture_without_matplotlib_says_what_to_install(prof, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install 'taeda-profiler\[plot\]'"):
        prof.plot()
