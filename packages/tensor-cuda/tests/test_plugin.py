"""The backend as taeda's tensors meet it: on machines without a driver, and on the simulated one.

Each program is a process of its own, as a device is loaded once.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

DRIVER = "TAEDA_CUDA_DRIVER"


def run(program: str, driver: str = "simulated") -> str:
    environment = {key: value for key, value in os.environ.items() if key != DRIVER}
    if driver:
        environment[DRIVER] = driver
    text = "import taeda_tensor_core as tc\nimport taeda_tensor_cuda as cuda\n" + textwrap.dedent(program)
    command = [sys.executable, "-W", "error", "-c", text]
    made = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert made.returncode == 0, made.stderr
    return made.stdout


def test_without_a_driver_the_device_is_not_available_and_says_why() -> None:
    shown = run(
        """
        kind = tc.get_device_module("cuda")
        print(kind.is_available(), kind.device_count(), kind.is_initialized())
        print(cuda.unavailable_reason())
        print("cuda" in tc.backends.failures(), tc.ones(2).sum().item())
        try:
            tc.ones(2, device="cuda")
        except RuntimeError as error:
            print(error)
        """,
        driver="toaster",
    ).splitlines()
    assert shown[0] == "False 0 False"
    assert "TAEDA_CUDA_DRIVER must be 'simulated'" in shown[1] and "found 'toaster'" in shown[1]
    assert shown[2] == "True 2.0"
    assert shown[3].startswith(
        "device 'cuda' cannot be used, its plug-in failed: ValueError: plug-in 'cuda': TAEDA"
    )
    assert "pip" not in shown[3]


def test_the_machine_s_own_driver_works_or_says_what_is_missing() -> None:
    available, why = run(
        "print(tc.get_device_module('cuda').is_available())\nprint(cuda.unavailable_reason())", driver=""
    ).split("\n")[:2]
    assert (available == "True") == (why == "")
    if why:
        assert "driver" in why and "; try: " in why and "pip" not in why


def test_nothing_is_loaded_before_the_device_is_asked_for() -> None:
    shown = run(
        """
        import subprocess, sys
        code = "import sys, taeda_tensor_core; print('taeda_tensor_cuda' in sys.modules)"
        print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout)
        print("cuda" in tc.backends.names())
        """
    )
    assert shown.split() == ["False", "False"]


def test_tensors_go_there_and_come_back() -> None:
    shown = run(
        """
        x = tc.arange(12.0).reshape(3, 4)
        y = x.to("cuda")
        print(y.device, y.is_cuda, (y.cpu() == x).all().item(), y[1:, :].cpu().tolist())
        print(tc.get_device_module("cuda").get_device_capability(), tc.backends.capabilities("cuda"))
        print(cuda.memory_allocated(), cuda.memory_stats()["allocation.all.current"])
        del y
        print(cuda.memory_allocated(), cuda.max_memory_allocated(), cuda.memory_reserved())
        tc.get_device_module("cuda").empty_cache()
        print(cuda.memory_reserved(), cuda.mem_get_info())
        """
    ).splitlines()
    assert shown[0] == "cuda:0 True True [[4.0, 5.0, 6.0, 7.0], [8.0, 9.0, 10.0, 11.0]]"
    assert shown[1].startswith("(9, 0)") and "'pinned-memory': True" in shown[1]
    assert shown[2] == "512 1"
    assert shown[3] == "0 512 2097152"
    assert shown[4] == f"0 ({1 << 30}, {1 << 30})"


def test_operators_compute_on_the_device_also_where_the_cpu_is_allowed() -> None:
    shown = run(
        """
        tc.backends.fallback("cuda", "cpu")
        x = tc.ones(3).to("cuda")
        print((x + x).device, (x + x).cpu().tolist(), tc.backends.fallback_counts("cuda"))
        """
    )
    assert shown.strip() == "cuda:0 [2.0, 2.0, 2.0] {}"


def test_streams_events_and_pinned_memory() -> None:
    shown = run(
        """
        stream = tc.Stream("cuda")
        assert stream.cuda_stream == stream.stream_id != 0 == tc.current_stream("cuda").cuda_stream
        assert not hasattr(stream, "xpu_stream") and not hasattr(stream, "colour")
        start, end = (tc.Event("cuda", enable_timing=True) for _ in range(2))
        host = tc.arange(1000.0).pin_memory("cuda")
        with stream:
            start.record()
            there = host.to("cuda", non_blocking=True)
            end.record()
        print(host.is_pinned(), end.query())
        there.record_stream(tc.current_stream("cuda"))
        end.synchronize()
        print(end.query(), start.elapsed_time(end) > 0, (there.cpu() == host).all().item())
        del there
        print(cuda.memory_stats()["num_events"], cuda.pinned_memory_stats()["allocation.all.current"] > 0)
        """
    ).splitlines()
    assert shown == ["True False", "True True True", "1 True"]


def test_memory_is_pinned_for_the_accelerator_where_none_is_named() -> None:
    run(
        """
        x = tc.arange(4.0)
        made = [x.pin_memory(), tc.empty(4, pin_memory=True), tc.full((2,), 1.0, pin_memory=True),
                tc.tensor([1.0], pin_memory=True), x.new_empty(3, pin_memory=True),
                x.new_tensor([2.0], pin_memory=True),
                tc.zeros_like(x, pin_memory=True), tc.randperm(4, pin_memory=True),
                x.new_empty_strided((2,), (1,), pin_memory=True),
                tc.empty(2, 3, 4, 5, pin_memory=True, memory_format=tc.channels_last)]
        assert all(t.is_pinned() and t.device.type == "cpu" for t in made)
        assert made[0].tolist() == [0.0, 1.0, 2.0, 3.0] and made[3].tolist() == [1.0]
        assert made[-1].is_contiguous(memory_format=tc.channels_last)
        assert not tc.empty(4, pin_memory=False).is_pinned()
        assert x.pin_memory().to("cuda", non_blocking=True).tolist() == x.tolist()
        try:
            tc.empty(4, pin_memory=True, device="cuda")
        except RuntimeError as error:
            assert "expected a tensor on cpu" in str(error)
        else:
            assert False
        """
    )
    shown = run(
        """
        for work in (lambda: tc.ones(2).pin_memory(), lambda: tc.ones(2, pin_memory=True)):
            try:
                work()
            except RuntimeError as error:
                print(error)
        """,
        driver="toaster",
    )
    assert shown.count("there is no accelerator here") == 2


def test_out_of_memory_is_an_error_that_programs_can_catch() -> None:
    shown = run(
        """
        try:
            tc.empty(100 << 20, dtype=tc.uint8, device="cuda:1")
        except MemoryError as error:
            print(error)
        print(cuda.memory_stats(1)["num_ooms"], cuda.memory_stats(0)["num_ooms"])
        """,
        driver="simulated:2:64",
    ).splitlines()
    assert "cuda:1: out of memory: tried to allocate 100.00 MiB; of 64.00 MiB are free 64.00 MiB" in shown[0]
    assert shown[1] == "1 0"


def test_devices_copy_to_each_other() -> None:
    shown = run(
        """
        x = tc.arange(5.0).to("cuda:0")
        y = x.to("cuda:1")
        print(y.device, y.cpu().tolist(), cuda.memory_allocated(0), cuda.memory_allocated("cuda:1"))
        """,
        driver="simulated:2:64",
    )
    assert shown.strip() == "cuda:1 [0.0, 1.0, 2.0, 3.0, 4.0] 512 512"


def test_limits_and_statistics_check_what_they_are_given() -> None:
    shown = run(
        """
        def say(f):
            try:
                print(f())
            except Exception as error:
                print(type(error).__name__, error)
        print(cuda.memory_stats(), cuda.memory_allocated(), cuda.memory_snapshot())
        tc.get_device_module("cuda").init()
        say(lambda: cuda.set_per_process_memory_fraction(2.0))
        say(lambda: cuda.set_per_process_memory_fraction("1"))
        say(lambda: cuda.memory_stats(1))
        say(lambda: cuda.memory_stats("cpu"))
        cuda.set_per_process_memory_fraction(0.5)
        say(cuda.get_per_process_memory_fraction)
        say(lambda: len(cuda.memory_summary().splitlines()))
        say(lambda: len(cuda.memory_summary(abbreviated=True).splitlines()))
        say(cuda.memory_snapshot)
        """
    ).splitlines()
    assert shown[0] == "{} 0 []"
    assert shown[1].startswith("ValueError set_per_process_memory_fraction: argument 'fraction'")
    assert shown[2].startswith("TypeError set_per_process_memory_fraction")
    assert shown[3].startswith("ValueError expected the index of a cuda device, of 1, found 1")
    assert shown[4].startswith("ValueError expected a cuda device, found 'cpu'")
    assert shown[5:] == ["0.5", "27", "13", "[]"]


def test_the_device_s_module_has_the_names_of_the_package() -> None:
    shown = run(
        """
        kind = tc.get_device_module("cuda")
        print(kind.memory_stats is cuda.memory_stats, kind.memory_allocated(), kind.is_initialized())
        x = tc.ones(1000, device="cuda:1")
        print(kind.memory_allocated(), kind.memory_allocated(1), kind.max_memory_reserved("cuda:1"))
        with kind.device(1):
            print(kind.current_device(), kind.memory_allocated(), kind.memory.memory_reserved())
        facts = kind.get_device_properties(1)
        print(facts.name, facts.total_memory == facts["total_memory"], facts.major, facts.multi_processor_count)
        try:
            facts.colour
        except AttributeError as error:
            print(error)
        place = kind.caching_allocator_alloc(4096, 1)
        print(kind.memory_allocated(1))
        kind.caching_allocator_delete(place)
        try:
            kind.caching_allocator_delete(place)
        except ValueError as error:
            print(kind.memory_allocated(1), error)
        print({"CUDAGraph", "memory_stats", "graph", "mem_get_info", "Stream"} <= set(kind.__all__))
        """,
        driver="simulated:2:64",
    ).splitlines()
    assert shown[:3] == ["True 0 False", f"0 4096 {2 << 20}", f"1 4096 {2 << 20}"]
    assert shown[3] == "simulated device 1 True 9 1"
    assert shown[4].startswith("the device has no property 'colour'; found name,")
    assert shown[5] == "8192"
    assert shown[6].startswith("4096 caching_allocator_delete: nothing was given at the address 0x")
    assert shown[7] == "True"


def test_out_of_memory_is_the_class_that_programs_name() -> None:
    shown = run(
        """
        kind = tc.get_device_module("cuda")
        for wanted in (tc.OutOfMemoryError, kind.OutOfMemoryError, RuntimeError, MemoryError):
            try:
                tc.empty(1 << 30, device="cuda")
            except wanted as error:
                print("out of memory" in str(error))
        """
    ).splitlines()
    assert shown == ["True"] * 4


def test_the_lines_that_hold_memory_are_named() -> None:
    shown = run(
        """
        import pickle, tempfile
        kind = tc.get_device_module("cuda")
        def message():
            try:
                tc.empty(1 << 30, dtype=tc.uint8, device="cuda")
            except tc.OutOfMemoryError as error:
                return str(error)
        print(message())
        kind.memory._record_memory_history()
        def weights():
            return tc.empty(40 << 20, dtype=tc.uint8, device="cuda")
        def activations():
            return [tc.empty(3 << 20, dtype=tc.uint8, device="cuda") for _ in range(2)]
        kept = weights(), activations()
        print(message())
        frames = [block["frames"] for segment in kind.memory._snapshot()["segments"] for block in segment["blocks"]]
        print(sorted({(frame["name"], frame["line"] > 0) for each in frames for frame in each}))
        with tempfile.NamedTemporaryFile() as file:
            kind.memory._dump_snapshot(file.name)
            print(pickle.load(file)["segments"][0]["device"])
        kind.memory._record_memory_history(None)
        print("_record_memory_history" in message())
        try:
            kind.memory._record_memory_history("some")
        except ValueError as error:
            print(error)
        """,
        driver="simulated:1:64",
    ).splitlines()
    assert "_record_memory_history() lets this name the lines that hold it" in shown[0]
    assert "; most is held by 40.00 MiB at <string>:" in shown[1] and ", in weights, 6.00 MiB at " in shown[1]
    assert "('weights', True)" in shown[2] and shown[3] == "0" and shown[4] == "True"
    assert shown[5].startswith("_record_memory_history: argument 'enabled' must be")


def test_what_the_allocator_did_is_told_in_its_order() -> None:
    run(
        """
        kind = tc.get_device_module("cuda")
        note, MiB = kind.memory._record_memory_history, 1 << 20
        def trace():
            (found,) = kind.memory._snapshot()["device_traces"]
            return found
        assert kind.memory._snapshot()["device_traces"] == []  # nobody has used the device
        kind.init()
        assert trace() == []
        note(max_entries=5)
        def make():
            return tc.empty(3 * MiB, dtype=tc.uint8, device="cuda")
        x = make()
        where = x.data_ptr()
        del x
        try:
            tc.empty(1 << 30, dtype=tc.uint8, device="cuda")
        except tc.OutOfMemoryError:
            pass
        found = trace()
        assert [each["action"] for each in found] == [
            "alloc", "free_requested", "free_completed", "segment_free", "oom"], found
        assert [each["size"] for each in found] == [3 * MiB] * 3 + [20 * MiB, 1 << 30]
        assert {each["addr"] for each in found[:4]} == {where}
        assert [each["time_us"] for each in found] == sorted(each["time_us"] for each in found)
        assert all(each["frames"][0]["name"] == "make" for each in found[:3]) and found[3]["frames"] == []
        x = make()
        assert [each["action"] for each in trace()][-2:] == ["segment_alloc", "alloc"] and len(trace()) == 5
        note(max_entries=9, clear_history=True)
        assert trace() == []
        y = make()
        assert [each["action"] for each in trace()] == ["alloc"]
        for how in ("state", None):
            note("all")
            y = make()
            assert trace()
            note(how)
            y = make()
            assert trace() == []
        try:
            note(max_entries=-1)
        except ValueError as error:
            assert "must not be negative, found -1" in str(error)
        """,
        driver="simulated:1:64",
    )


@pytest.mark.parametrize("driver", ["simulated:0:64", "simulated:1", "simulated:1:64x", "simulated:1:0"])
def test_a_machine_that_makes_no_sense_is_refused(driver: str) -> None:
    assert run("print(cuda.unavailable_reason())", driver).startswith(
        "plug-in 'cuda': TAEDA_CUDA_DRIVER must be 'simulated'"
    )


def test_properties_and_counts_that_programs_read() -> None:
    run(
        """
        kind = tc.get_device_module("cuda")
        facts = kind.get_device_properties(0)
        assert facts.regs_per_multiprocessor == 65536 and facts.warp_size == 32 and facts.is_integrated == 0
        assert facts.shared_memory_per_block <= facts.shared_memory_per_block_optin
        assert facts.shared_memory_per_block_optin <= facts.shared_memory_per_multiprocessor
        x = [tc.ones(1 << 12, device="cuda") for _ in range(3)]
        del x[1]
        counts = kind.memory_stats()
        free = counts["reserved_bytes.all.current"] - counts["active_bytes.all.current"]
        assert counts["inactive_split_bytes.all.current"] == free == (2 << 20) - 2 * (4 << 12), counts
        assert counts["inactive_split.small_pool.current"] == 2 and counts["inactive_split.large_pool.current"] == 0
        assert kind.memory_stats_as_nested_dict()["inactive_split"]["all"]["current"] == 2
        assert counts["max_split_size"] == -1 and counts["oversize_allocations.peak"] == 0
        """
    )


def test_files_say_where_tensors_were() -> None:
    shown = run(
        """
        import io
        def loaded(value, **options):
            file = io.BytesIO()
            tc.save(value, file)
            file.seek(0)
            return tc.load(file, **options)
        x = tc.ones(2, device="cuda")
        both = loaded({"there": x, "here": tc.ones(3), "step": 4})
        print(both["there"].device, both["here"].device, both["step"], loaded(x).device)
        print(loaded(x, map_location="cpu").device, loaded(x, map_location={"cuda:0": "cpu"}).device)
        """
    ).split("\n")
    assert shown[:2] == ["cuda:0 cpu 4 cuda:0", "cpu cpu"]


def test_questions_about_the_device_and_marks_that_programs_leave_in() -> None:
    shown = run(
        """
        kind = tc.get_device_module("cuda")
        print(kind.is_bf16_supported(), kind.is_bf16_supported(including_emulation=False), kind.is_tf32_supported())
        marks = kind.nvtx
        print(marks.range_push("a"), marks.range_push("b"), marks.range_pop(), marks.range_pop())
        with marks.range("c"):
            marks.mark("d")
            marks.range_end(marks.range_start("e"))
        """
    ).split("\n")
    assert shown[:2] == ["True True True", "0 1 1 0"]
    shown = run(
        """
        kind = tc.get_device_module("cuda")
        print(kind.is_bf16_supported(), kind.is_tf32_supported())
        try:
            kind.nvtx.range_push("a")
        except RuntimeError as error:
            print(error)
        """,
        driver="toaster",
    ).split("\n")
    assert shown[0] == "False False" and "there is no such profiler" in shown[1]
