"""What profilers are told of a device: its work by stream, where that came from, and waits for it."""

from __future__ import annotations

import json
from textwrap import dedent

START = """
    import json, warnings
    from pathlib import Path
    import taeda
    import taeda_backend_sim as device
    from taeda.profiler import ProfilerActivity, profile, record_function

    x = taeda.ones(3, 4).to("sim")
    taeda.synchronize("sim")
"""


def lines(sim, program):
    return sim.lines(dedent(START) + dedent(program))


def test_the_table_shows_what_the_device_did(sim):
    program = """
        with profile(profile_memory=True) as prof:
            y = (x + taeda.ones(4, device="sim")).exp()
            z = y.cpu()
        rows = {row.key: row for row in prof.key_averages()}
        print(sorted(name for name, row in rows.items() if row.device_type.name == "PrivateUse1"))
        exp, kernel, fill, ones = rows["aten::exp"], rows["exp"], rows["aten::fill_"], rows["aten::ones"]
        print(exp.self_device_time_total == kernel.self_device_time_total == exp.device_time_total > 0)
        print(kernel.cpu_time_total, kernel.count)
        print(ones.self_device_time_total, ones.device_time_total == fill.device_time_total > 0)
        print(all(row.self_cpu_time_total >= 0 and row.self_device_time_total >= 0 for row in rows.values()))
        table = prof.key_averages().table(sort_by="self_device_time_total")
        print(all(title in table for title in ("Self SIM", "SIM total", "SIM time avg", "SIM Mem")))
        total = sum(row.self_device_time_total for row in rows.values() if row.device_type.name == "PrivateUse1")
        print(abs(total - prof.trace.activities.duration.sum() * 1e-3) < 1e-6)
        kernels = {event.name: [k.name for k in event.kernels] for event in prof.events() if event.kernels}
        print(kernels["aten::add"], kernels["aten::exp"])
    """
    found = lines(sim, program)
    assert json.loads(found[0].replace("'", '"')) == ["add", "copy to host", "exp", "fill_"]
    assert found[1:] == ["True", "0.0 1", "0.0 True", "True", "True", "True", "['add'] ['exp']"]


def test_lanes_are_streams_and_arrows_come_from_the_calls(sim):
    program = """
        side = taeda.Stream("sim")
        with profile() as prof:
            with record_function("step"):
                with side:
                    y = x + 1
                side.synchronize()
                z = x * 2
                w = taeda.ones(2, device="sim:1")
            taeda.synchronize("sim")
        done = prof.trace.activities
        texts = [lane.text for lane in done.lanes]
        print(sorted(texts))
        names = [prof.trace.names[number][0] for number in done.name.tolist()]
        print([texts[done.lane[names.index(name)]] for name in ("add", "mul")])
        prof.export_chrome_trace("trace.json")
        events = json.loads(Path("trace.json").read_text())["traceEvents"]
        slices = [event for event in events if event["ph"] == "X"]
        work = {event["name"]: event for event in slices if event["cat"] == "kernel"}
        calls = {event["name"]: event for event in slices if event["cat"] == "cpu_op"}
        print(work["add"]["args"]["External id"] == calls["aten::add"]["args"]["External id"])
        add, mul = work["add"], work["mul"]
        print(add["tid"] != mul["tid"], add["pid"] == mul["pid"] != calls["aten::add"]["pid"])
        flows = {(event["ph"], event["id"]): event for event in events if event.get("cat") == "ac2g"}
        ends = [event for (kind, _), event in flows.items() if kind == "f"]
        print(len(ends) == len(done) == len(flows) / 2)
        for end in ends:
            start = flows["s", end["id"]]
            (slice,) = [s for s in work.values() if (s["tid"], s["ts"]) == (end["tid"], end["ts"])]
            call = calls["aten::" + slice["name"]]
            assert call["ts"] <= start["ts"] <= call["ts"] + call["dur"] + 0.002, (start, call)
            assert start["ts"] <= end["ts"] + 0.002, (start, end)
        metadata = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
        print(metadata[work["mul"]["pid"], work["mul"]["tid"]])
        print(prof.trace.length >= done.end >= int(done.begin[0]) > 0)
    """
    assert lines(sim, program) == [
        "['sim:0 stream 0', 'sim:0 stream 1', 'sim:1 stream 0']",
        "['sim:0 stream 1', 'sim:0 stream 0']",
        "True",
        "True True",
        "True",
        "stream 0",
        "True",
    ]


def test_the_page_has_lanes_of_streams(sim):
    program = """
        import base64, re
        with profile() as prof:
            y = x + 1
        prof.export_html("page.html")
        text = Path("page.html").read_text()
        data = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.S)[1])
        kinds = list(base64.b64decode(data["kind"]))
        threads = memoryview(base64.b64decode(data["thread"])).cast("H").tolist()
        links = memoryview(base64.b64decode(data["link"])).cast("i").tolist()
        names = memoryview(base64.b64decode(data["name"])).cast("i").tolist()
        of_device = [i for i, kind in enumerate(kinds) if kind == data["device"]]
        print(data["threads"][threads[of_device[0]]], [data["names"][names[i]] for i in of_device])
        print([data["names"][names[links[i]]] for i in of_device], [row[0] for row in data["rows"] if row[6] > 0])
    """
    assert lines(sim, program) == ["sim:0 stream 0 ['add']", "['aten::add'] ['aten::add', 'add']"]


def test_waits_for_the_device_are_told_and_hinted_at(sim):
    program = """
        from taeda_profiler.hints import hints
        big = taeda.ones(120, 120).to("sim")
        taeda.synchronize("sim")
        with profile(with_stack=True) as prof:
            for _ in range(5):
                y = big @ big
                value = y.sum().item()
        waits = [event for event in prof.events() if event.name == "sim: copy_to_host"]
        print(len(waits), all("<string>" in event.stack[0] for event in waits))
        (hint,) = [text for text in hints(prof._found("hints")) if "waited for a device" in text]
        print(" 5 times" in hint, "<string>" in hint)
        with profile() as prof:
            taeda.synchronize("sim")
            taeda.current_stream("sim").synchronize()
        print([event.name for event in prof.events()])
    """
    assert lines(sim, program) == [
        "5 True",
        "True True",
        "['sim: synchronize', 'sim: stream_synchronize']",
    ]


def test_only_the_host_is_recorded_when_asked_so(sim):
    program = """
        with profile(activities=[ProfilerActivity.CPU]) as prof:
            y = x + 1
        print(len(prof.trace.activities), "SIM" in prof.key_averages().table())
        with profile(activities=[ProfilerActivity.PrivateUse1]) as prof:
            y = x + 1
        print(len(prof.trace.activities))
        with taeda.autograd.profiler.profile(use_device="sim") as prof:
            y = x + 1
        print(len(prof.trace.activities))
    """
    assert lines(sim, program) == ["0 False", "1", "1"]


def test_a_device_that_is_found_meanwhile_is_recorded(sim):
    program = """
        import taeda
        from taeda.profiler import profile
        with profile() as prof:
            y = taeda.ones(3).to("sim") + 1
            taeda.synchronize("sim")
        print([prof.trace.names[number][0] for number in prof.trace.activities.name.tolist()])
    """
    assert sim.lines(program) == ["['copy from host', 'add']"]


def test_room_for_activities_is_bounded_and_what_is_dropped_is_told(sim):
    program = """
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            with profile(max_mb=0.3) as prof:
                for _ in range(9000):
                    x.add_(1)
                taeda.synchronize("sim")
        trace = prof.trace
        kept, dropped = len(trace.activities), trace.activities.dropped
        print(kept > 100, dropped > 0, kept + dropped)
        print([str(warning.message).split(":")[0] for warning in told], "events were dropped" in str(told[0].message))
    """
    assert lines(sim, program) == ["True True 9000", "['profile'] True"]


def test_errors_of_work_are_left_to_those_who_wait(sim):
    program = """
        device.fail("kernel")
        with profile() as prof:
            y = x + 1
        print(len(prof.trace.activities))
        try:
            taeda.synchronize("sim")
        except RuntimeError as error:
            print(error)
    """
    found = lines(sim, program)
    assert found[0] == "1" and "kernel 'add' failed on request" in found[1]


def test_work_of_a_fork_is_its_own(sim):
    program = """
        import os
        with profile() as prof:
            y = x + 1
            child = os.fork()
            if child == 0:
                with profile() as own:
                    taeda.ones(1)
                os._exit(0 if len(own.trace) == 2 and not len(own.trace.activities) else 1)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        print(len(prof.trace.activities))
    """
    assert lines(sim, program) == ["0", "1"]


TABLE = """
    import ctypes
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = get(taeda.abi_capsule(1, 3), b"taeda.abi")

    def member(place, result, *arguments):
        return ctypes.CFUNCTYPE(result, *arguments)(ctypes.c_void_p.from_address(table + place).value)

    TELL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
    last_error = member(32, ctypes.c_char_p)
    origin = member(328, ctypes.c_uint64)
    start = member(336, ctypes.c_int32, ctypes.c_uint64)
    stop = member(344, ctypes.c_int32, TELL, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64))
    name = member(352, ctypes.c_char_p, ctypes.c_int32)
"""


def test_functions_of_the_table(sim):
    program = dedent(TABLE) + dedent(
        """
        told, dropped = [], ctypes.c_uint64(7)
        tell = TELL(lambda to, activity: told.append(ctypes.c_char_p.from_address(activity + 8).value))
        print(stop(tell, None, None), last_error())
        print(start(1), start(1), last_error(), origin())
        y = x + 1
        y = y * 2
        print(stop(TELL(), None, None), last_error())
        print(stop(tell, None, ctypes.byref(dropped)), told, dropped.value)
        print(name(0), name(-1), name(99))
        """
    )
    assert lines(sim, program) == [
        "4 b'activities_stop: nobody has started to note activities'",
        "0 4 b'activities_start: activities are being noted for somebody else already' 0",
        "2 b'activities_stop: the function to tell is null'",
        "0 [b'add'] 1",
        "b'cpu' None None",
    ]
