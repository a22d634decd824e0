"""What devices did, as profilers are told: on the simulated driver, and with a CUPTI made for the test."""

from __future__ import annotations

import json
from pathlib import Path

import device_programs as programs
import pytest
import stand_ins
import test_real_driver as real

pytest.importorskip(
    "taeda_profiler", reason="what is noted is told to profilers, which are a package of their own"
)

HEAD = """
import json, sys, warnings
import taeda_tensor_core as tc
import taeda_profiler as profiler
kind = tc.get_device_module("cuda")
def recorded(work, **options):
    work()  # what is made ready once
    with profiler.profile(**options) as prof:
        work()
    return prof
def rows(prof):
    return {row.key: row for row in prof.key_averages()}
def traced(prof, path):
    prof.export_chrome_trace(path)
    return json.load(open(path))["traceEvents"]
"""
DEVICE_OF_OPERATORS = """
x, y = tc.ones(1000, device="cuda"), tc.ones(1000, device="cuda")
def work():
    x + y
    (x * y).sum()
    tc.ops.mm(x.reshape(20, 50), y.reshape(50, 20))
    x.cpu()
prof = recorded(work)
found = rows(prof)
for name in ("aten::add", "aten::mul", "aten::sum", "aten::mm"):
    assert found[name].self_device_time_total > 0, (name, found[name])
own = {key: row for key, row in found.items() if row.device_type is profiler.DeviceType.CUDA}
assert own["taeda_add_f"].count == 1 and own["product"].count == 1, own.keys()
assert own["Memcpy DtoH (Device -> Pageable)"].count == 1
assert found["aten::add"].self_device_time_total == own["taeda_add_f"].device_time_total
table = prof.key_averages().table(sort_by="self_cuda_time_total")
assert "Self CUDA" in table and "CUDA total" in table and "taeda_add_f" in table
kernels = [k.name for event in prof.events() if event.name == "aten::add" for k in event.kernels]
assert kernels == ["taeda_add_f"], kernels
"""


@pytest.mark.parametrize("thread", ["0", "1"])
def test_operators_have_the_times_of_what_they_started(thread: str) -> None:
    programs.run(DEVICE_OF_OPERATORS, HEAD, TAEDA_CUDA_LAUNCH_THREAD=thread)


def test_traces_have_a_process_for_each_device_and_a_row_for_each_stream(tmp_path: Path) -> None:
    programs.run(
        f"""
        x = tc.ones(1000, device="cuda:1")
        side = tc.Stream("cuda:1")
        def work():
            x + x
            with side:
                x * x
            tc.ones(5).pin_memory("cuda").to("cuda:1", non_blocking=True)
            x.to("cuda:0")
        events = traced(recorded(work), {str(tmp_path / "trace.json")!r})
        names = {{e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}}
        on_device = [e for e in events if e["ph"] == "X" and names[e["pid"]].startswith("cuda:")]
        add, mul = (next(e for e in on_device if e["name"] == n) for n in ("taeda_add_f", "taeda_mul_f"))
        assert add["cat"] == "kernel" and names[add["pid"]].startswith("cuda:1 of"), add
        assert add["tid"] == 0 and mul["tid"] == 1 and add["args"]["device"] == 1
        copies = {{e["name"]: e for e in on_device if e["cat"] == "gpu_memcpy"}}
        assert copies["Memcpy HtoD (Pinned -> Device)"]["args"]["bytes"] == 20, copies
        assert copies["Memcpy PtoP (Device -> Device)"]["args"]["bytes"] == 4000, copies
        # An arrow leads there from within the call, which came before.
        calls = {{e["args"]["External id"]: e for e in events if e.get("cat") == "cpu_op"}}
        for event in on_device:
            call = calls[event["args"]["External id"]]
            assert call["ts"] <= event["ts"], (call, event)
        assert calls[add["args"]["External id"]]["name"] == "aten::add"
        starts = [e for e in events if e["ph"] == "s" and e["cat"] == "ac2g"]
        assert len(starts) == len(on_device)
        """,
        HEAD,
        driver="simulated:2:64",
    )


def test_runs_of_graphs_are_what_was_recorded() -> None:
    programs.run(
        """
        graph, x = kind.CUDAGraph(), tc.ones(5, device="cuda")
        with kind.graph(graph):
            y = (x + x) * x
        found = rows(recorded(graph.replay))
        assert found["taeda_add_f"].count == 1 and found["taeda_mul_f"].count == 1, found.keys()
        # A profile that ends while work is recorded waits for nothing, and breaks no recording.
        with kind.graph(kind.CUDAGraph()):
            with profiler.profile() as prof:
                x + x
        assert "taeda_add_f" not in rows(prof)
        """,
        HEAD,
    )


def test_what_there_is_no_room_for_is_counted() -> None:
    programs.run(
        """
        x = tc.ones(5, device="cuda")
        def work():
            for _ in range(30000):
                x + x
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            prof = recorded(work, max_mb=1)
        assert len(said) == 1 and "were dropped" in str(said[0].message), said
        """,
        HEAD,
    )


def test_errors_of_work_stay_for_those_who_wait() -> None:
    programs.run(
        """
        x = tc.ones(5, device="cuda")
        with profiler.profile():
            x.gather(0, tc.tensor([7]).to("cuda"))
        try:
            kind.synchronize()
        except IndexError as error:
            print(error)
        else:
            raise AssertionError
        """,
        HEAD,
    )


def test_programs_ask_for_cuda_by_name() -> None:
    programs.run(
        """
        CPU, CUDA = profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.CUDA
        assert CUDA in profiler.supported_activities()
        x = tc.ones(5, device="cuda")
        assert "taeda_add_f" in rows(recorded(lambda: x + x, activities=[CPU, CUDA]))
        assert "taeda_add_f" not in rows(recorded(lambda: x + x, activities=[CPU]))
        """,
        HEAD,
    )


# Each push and pop around calls of the driver gives a record of each kind; times run at half the host's clock.
CUPTI = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
typedef void (*requested)(uint8_t**, size_t*, size_t*);
typedef void (*completed)(void*, uint32_t, uint8_t*, size_t, size_t);
static requested ask;
static completed give;
static uint8_t* buffer;
static size_t room, used;
static uint64_t pushed;
static unsigned enabled, calls;
static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (t.tv_sec * 1000000000ull + t.tv_nsec) / 2;
}
int cuptiGetResultString(int s, const char** t) {
  return *t = s == 35 ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" : s == 39 ? "CUPTI_ERROR_MULTIPLE" : 0, 0;
}
#ifndef WITHOUT_CLOCK
int cuptiGetTimestamp(uint64_t* t) { return *t = now(), 0; }
#endif
int cuptiGetStreamIdEx(void* context, void* stream, uint8_t per_thread, uint32_t* id) {
  return *id = 7, stream || per_thread || !context;
}
int cuptiActivityRegisterCallbacks(requested r, completed c) { return ask = r, give = c, 0; }
int cuptiActivityEnable(int kind) {
  const char* fails = getenv("FAKE_CUPTI_FAILS");
  return fails && kind == 1 ? atoi(fails) : (++enabled, 0);
}
int cuptiActivityDisable(int kind) { return enabled ? --enabled, 0 : 1; }
static int size_of(int kind) { return kind == 10 ? 208 : kind == 39 ? 24 : 64; }
int cuptiActivityGetNextRecord(uint8_t* b, size_t valid, uint8_t** record) {
  uint8_t* next = *record ? *record + size_of(*(int*)*record) : b;
  return next < b + valid ? (*record = next, 0) : 12;
}
int cuptiActivityGetNumDroppedRecords(void* c, uint32_t s, size_t* n) { return *n = 0, 0; }
static uint8_t* record(int kind) {
  size_t most;
  if (!buffer) ask(&buffer, &room, &most), used = 0;
  uint8_t* made = memset(buffer + used, 0, size_of(kind));
  return used += size_of(kind), *(int*)made = kind, made;
}
static void times(uint8_t* r, uint64_t begin, uint64_t length, int device, int stream) {
  *(uint64_t*)(r + 16) = begin, *(uint64_t*)(r + 24) = length ? begin + length : 0;
}
int cuptiActivityPushExternalCorrelationId(int kind, uint64_t id) { return pushed = id, kind != 3; }
int cuptiActivityPopExternalCorrelationId(int kind, uint64_t* last) {
  ++calls;
  const uint64_t begin = now();
  uint8_t* r = record(10);
  times(r, begin, 1000, 0, 0);
  *(uint32_t*)(r + 40) = 1, *(uint32_t*)(r + 48) = calls % 2 ? 7 : 13, *(uint32_t*)(r + 92) = calls;
  *(const char**)(r + 104) = calls % 2 ? "_Z4sumsIfEvPT_i" : "taeda_plain";
  r = record(39), *(int*)(r + 4) = 3, *(uint64_t*)(r + 8) = pushed, *(uint32_t*)(r + 16) = calls;
  if (getenv("FAKE_CUPTI_MORE")) {
    r = record(1), times(r, begin, 10, 0, 0), r[5] = 1, r[6] = 3, *(uint64_t*)(r + 8) = 44;
    *(uint32_t*)(r + 40) = 13, *(uint32_t*)(r + 44) = calls;
    r = record(2), times(r, begin, 10, 0, 0), *(uint64_t*)(r + 8) = 55, *(uint32_t*)(r + 44) = 999;
    r = record(22), times(r, begin, 10, 0, 0), r[5] = 3, r[6] = 3, *(uint32_t*)(r + 60) = calls;
    r = record(10);  // it has not ended
    r = record(8);   // of another kind
  }
  return *last = pushed, 0;
}
int cuptiActivityFlushAll(uint32_t flag) {
  if (buffer) give((void*)1, 0, buffer, room, used), buffer = 0;
  return flag != 1;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory):
    """Makes a folder with a driver's library in it, and CUPTI if wanted."""

    def make(*options: str, cupti: bool = True) -> Path:
        texts = {"libcuda.so.1": real.WHOLE, **({"libcupti.so.13": CUPTI} if cupti else {})}
        return stand_ins.build(tmp_path_factory.mktemp("cupti"), texts, *options)

    return make


# Copies, so that device code is not needed.
PROGRAM = """
x = tc.ones(3).to("cuda:1")
def work():
    tc.ones(3).to("cuda:1")
    x.cpu()
before = tc.ops  # loaded
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    prof = recorded(work)
shown = {row.key: (row.count, round(row.device_time_total, 1)) for row in prof.key_averages()
         if row.device_type is profiler.DeviceType.CUDA}
"""


def test_records_of_cupti_are_told_with_the_host_s_times(library, tmp_path: Path) -> None:
    (shown,) = real.run(
        library(),
        HEAD
        + PROGRAM
        + f"""
events = traced(prof, {str(tmp_path / "trace.json")!r})
names = {{e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}}
own = [e for e in events if e["ph"] == "X" and e["pid"] != min(names)]
calls = {{e["args"]["External id"]: e for e in events if e["ph"] == "X" and e["pid"] == min(names)}}
late = [e["ts"] - calls[e["args"]["External id"]]["ts"] for e in own]
print(json.dumps([shown, sorted(e["tid"] for e in own), late, [str(w.message) for w in said]]))
""",
        TAEDA_CUDA_LIBRARIES="",
    )
    rows, streams, late, said = json.loads(shown)
    # One microsecond of its clock is two of the host's.
    assert rows == {"void sums<float>(float*, int)": [1, 2.0], "taeda_plain": [1, 2.0]} and not said
    assert streams == [0, 1] and all(0 <= each < 1e6 for each in late)


def test_copies_and_fills_are_told_too(library) -> None:
    (shown,) = real.run(
        library(), HEAD + PROGRAM + "print(json.dumps([shown, len(said)]))", FAKE_CUPTI_MORE="1"
    )
    rows, said = json.loads(shown)
    assert {name: count for name, (count, _) in rows.items()} == {
        "void sums<float>(float*, int)": 1,
        "taeda_plain": 1,
        "Memcpy HtoD (Pageable -> Device)": 2,
        "Memset (Device)": 2,
        "Memcpy PtoP (Device -> Device)": 2,
    }
    assert said == 1  # two kernels had not ended


@pytest.mark.parametrize(
    ("options", "cupti", "environment", "text"),
    [
        ([], False, {"TAEDA_CUDA_LIBRARIES": "none"}, "TAEDA_CUDA_LIBRARIES is 'none'"),
        (["-DWITHOUT_CLOCK"], True, {}, "libcupti.so.13 lacks cuptiGetTimestamp"),
        ([], True, {"FAKE_CUPTI_FAILS": "39"}, "CUPTI: CUPTI_ERROR_MULTIPLE; try: end the other profiler"),
        ([], True, {"FAKE_CUPTI_FAILS": "35"}, "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES; try: let all users"),
        ([], True, {"FAKE_CUPTI_FAILS": "1"}, "cuptiActivityEnable: CUPTI: status 1"),
    ],
)
def test_without_cupti_there_is_one_warning_and_all_else(
    library, options, cupti, environment, text: str
) -> None:
    (shown,) = real.run(
        library(*options, cupti=cupti),
        HEAD + PROGRAM + "print(json.dumps([shown, [str(w.message) for w in said], sorted(rows(prof))]))",
        **environment,
    )
    own, said, host = json.loads(shown)
    assert not own and any("copy" in name or "to" in name for name in host)
    (said,) = said
    assert (
        "what devices did is not known: " in said
        and text in said
        and "try: " in said + "try: " * (text[-1] == "1")
    )


def test_a_child_of_a_fork_has_nothing_to_tell(library) -> None:
    shown = real.run(
        library(),
        HEAD
        + """
x = tc.ones(3).to("cuda")
with warnings.catch_warnings(), profiler.profile():
    warnings.simplefilter("error")
    sys.stdout.flush()
    if os.fork() == 0:
        with profiler.profile() as prof:
            tc.ones(3) + 1
        print(sorted(rows(prof))[-1])
        sys.stdout.flush()
        os._exit(0)
    os.wait()
print("done")
""",
    )
    assert shown == ["aten::ones", "done"]


def test_it_is_found_among_the_libraries(library) -> None:
    (shown,) = real.run(library(), "x = tc.ones(2).to('cuda'); print(cuda.libraries()['cupti'])")
    assert shown == str({"found": True, "text": "libcupti.so.13"})
