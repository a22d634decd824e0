"""The optional parts of a backend in C: pinned memory, events, a random state, memory of other processes."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from textwrap import dedent

import pytest

import taeda_tensor_core as taeda
from taeda_tensor_core import backends, random

#: The one seed that the device refuses.
UNLUCKY = 0x1313131313


def loaded(shared_plugin, name, *options):
    path = shared_plugin("optional", f'-DDEVICE_NAME="{name}"', *options)
    backends.load(path)
    library = ctypes.CDLL(str(path))
    library.draw.restype = ctypes.c_uint64
    return library


@pytest.fixture
def device(shared_plugin):
    """The library of the device "optional", behaving."""
    library = loaded(shared_plugin, "optional")
    library.keep_silent(b"")
    library.run_queue()
    yield library
    library.keep_silent(b"")
    library.run_queue()
    taeda.synchronize("optional")


@pytest.fixture
def plain(shared_plugin):
    """The library of the device "optplain", which has no whole set of event functions, nor the newer capabilities."""
    return loaded(shared_plugin, "optplain", "-DPLAIN")


# --- pinned memory ---


def test_pinned_memory_outlives_the_copies_that_wait(device):
    before = device.pinned_blocks()
    there = taeda.ones(1000).pin_memory("optional").to("optional", non_blocking=True)
    others = [taeda.full((1000,), 9.0).pin_memory("optional") for _ in range(3)]
    assert device.pinned_blocks() == before + 4
    device.run_queue()
    del others
    assert device.pinned_blocks() == before
    assert there.cpu().tolist() == [1.0] * 1000


def test_pinned_memory_waits_for_what_a_copy_brings(device):
    before = device.pinned_blocks()
    there = taeda.arange(4.0).to("optional")
    host = taeda.empty(4).pin_memory("optional")
    host.copy_(there, non_blocking=True)
    part = host[1:]
    del host
    part.copy_(there[1:], non_blocking=True)
    del part
    assert device.pinned_blocks() == before + 1
    taeda.synchronize("optional")
    assert device.pinned_blocks() == before


def test_pinned_memory_that_nothing_waits_for_goes_at_once(device):
    before = device.pinned_blocks()
    host = taeda.ones(5).pin_memory("optional")
    for _ in range(3):
        there = host.to("optional", non_blocking=True)
        taeda.current_stream("optional").synchronize()
    del host
    assert device.pinned_blocks() == before
    taeda.empty(0).pin_memory("optional")
    assert device.pinned_blocks() == before
    assert there.cpu().tolist() == [1.0] * 5


def test_a_copy_that_cannot_be_marked_is_waited_for(device):
    before = device.pinned_blocks()
    host = taeda.ones(5).pin_memory("optional")
    there = taeda.zeros(5).to("optional")
    device.keep_silent(b"event_record")
    with pytest.raises(RuntimeError, match="event_record: no more marks"):
        there.copy_(host, non_blocking=True)
    del host
    assert device.pinned_blocks() == before
    device.keep_silent(b"event_create")
    with pytest.raises(RuntimeError, match="event_create"):
        there.copy_(taeda.ones(5).pin_memory("optional"), non_blocking=True)
    assert device.pinned_blocks() == before


def test_without_events_copies_do_not_wait(plain):
    before = plain.pinned_blocks()
    there = taeda.ones(5).pin_memory("optplain").to("optplain", non_blocking=True)
    assert plain.pinned_blocks() == before
    assert there.cpu().tolist() == [1.0] * 5


def test_memory_that_another_device_pinned_is_copied_at_once(device, plain):
    before = plain.pinned_blocks()
    there = taeda.ones(5).pin_memory("optplain").to("optional", non_blocking=True)
    assert plain.pinned_blocks() == before
    assert there.cpu().tolist() == [1.0] * 5


# --- functions that make nothing ---


@pytest.mark.parametrize(
    ("function", "call"),
    [
        ("allocate", lambda: taeda.ones(3).to("optional")),
        ("allocate", lambda: taeda.empty(3, device="optional:1")),
        ("pinned_allocate", lambda: taeda.ones(3).pin_memory("optional")),
        ("stream_create", lambda: taeda.Stream("optional")),
        ("event_create", lambda: taeda.Event("optional")),
    ],
)
def test_a_function_that_makes_nothing_is_named(device, function, call):
    device.keep_silent(function.encode())
    with pytest.raises(RuntimeError, match=rf"optional: {function} gave TAEDA_OK but null"):
        call()
    device.keep_silent(b"")
    call()


# --- events ---


def test_times_need_events_that_were_made_for_it_recorded_and_reached(device):
    start, end, untimed = (
        taeda.Event("optional", True),
        taeda.Event("optional", True),
        taeda.Event("optional"),
    )
    with pytest.raises(ValueError, match=r"^Event.elapsed_time: .*enable_timing=True; the end event was not"):
        start.elapsed_time(untimed)
    with pytest.raises(ValueError, match=r"^Event.elapsed_time: the start event was never recorded"):
        start.elapsed_time(end)
    start.record()
    device.run_queue()
    with pytest.raises(ValueError, match=r"^Event.elapsed_time: the end event was never recorded"):
        start.elapsed_time(end)
    end.record()
    with pytest.raises(RuntimeError, match=r"^Event.elapsed_time: the end event has not been reached"):
        start.elapsed_time(end)
    end.synchronize()
    assert start.elapsed_time(end) == 1.5


def test_an_event_that_was_never_recorded_stands_for_no_work(device):
    event = taeda.Event("optional")
    assert event.query()
    event.synchronize()
    event.wait()
    taeda.Stream("optional").wait_event(event)
    event.record()
    assert not event.query()


def test_events_that_do_not_measure_time_say_so(plain):
    with pytest.raises(NotImplementedError, match=r"device 'optplain:0' does not measure the time"):
        taeda.Event("optplain", enable_timing=True)
    taeda.Event("optplain")


# --- what streams.py takes ---


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s, e: taeda.ones(2).record_stream(3), "record_stream: argument 'stream'.*Stream, found int"),
        (lambda s, e: taeda.set_stream(3), "set_stream: argument 'stream'.*Stream, found int"),
        (lambda s, e: s.wait_stream(e), "Stream.wait_stream: argument 'stream'.*Stream, found Event"),
        (lambda s, e: s.wait_event(s), "Stream.wait_event: argument 'event'.*Event, found Stream"),
        (lambda s, e: s.record_event(s), "Stream.record_event: argument 'event'.*Event, found Stream"),
        (lambda s, e: e.record(3), "Event.record: argument 'stream'.*Stream, found int"),
        (lambda s, e: e.wait(3), "Event.wait: argument 'stream'.*Stream, found int"),
        (lambda s, e: e.elapsed_time(None), "Event.elapsed_time: argument 'end'.*Event, found NoneType"),
        (lambda s, e: taeda.Stream(3.5), "Stream: argument 'device'.*found float"),
        (lambda s, e: taeda.Stream("optional", "x"), "Stream: argument 'priority' must be an int, found str"),
        (lambda s, e: taeda.current_stream([]), "current_stream: argument 'device'.*found list"),
    ],
)  # fmt: skip
def test_what_is_no_stream_is_refused(device, call, words):
    with pytest.raises(TypeError, match=f"^{words}"):
        call(taeda.Stream("optional"), taeda.Event("optional"))


def test_streams_are_left_in_order(device):
    outer, inner = taeda.Stream("optional"), taeda.Stream("optional")
    with pytest.raises(RuntimeError, match=r"^Stream.__exit__: .* found none"):
        outer.__exit__()
    with outer:
        with inner, inner:
            with pytest.raises(RuntimeError, match=r"^Stream.__exit__: .* entered last"):
                outer.__exit__()
            assert taeda.current_stream("optional") == inner
        assert taeda.current_stream("optional") == outer
    assert taeda.current_stream("optional") not in (outer, inner)


# --- randomness ---


def test_the_device_hears_of_seeds_and_is_asked_for_its_position(device):
    taeda.manual_seed(5)
    assert [device.draw(i) for i in (0, 1)] == [5, 5]
    state = random.get_rng_state("optional")
    assert state.tolist()[::8] == [5, 1]
    random.generator_of("optional").manual_seed(6)
    assert [device.draw(i) for i in (0, 1)] == [6, 5]
    random.set_rng_state(state, "optional")
    assert random.generator_of("optional").initial_seed() == 5
    assert random.get_rng_state("optional").tolist() == state.tolist()


def test_random_set_may_reserve_numbers(device):
    assert taeda.manual_seed(14).initial_seed() == 14  # each call does
    assert device.draw(1) == 14
    assert random.generator_of("optional:1").initial_seed() == 14


def test_a_seed_that_a_device_refuses_changes_nothing(device):
    taeda.manual_seed(5)
    drawn = taeda.rand(2).tolist()
    states = [random.get_rng_state(d).tolist() for d in ("cpu", "optional", "optional:1")]
    with pytest.raises(ValueError, match="this seed is unlucky"):
        taeda.manual_seed(UNLUCKY)
    assert [random.get_rng_state(d).tolist() for d in ("cpu", "optional", "optional:1")] == states
    with pytest.raises(ValueError, match="this seed is unlucky"):
        random.generator_of("optional:1").manual_seed(UNLUCKY)
    assert random.generator_of("optional:1").initial_seed() == 5
    taeda.manual_seed(5)
    assert taeda.rand(2).tolist() == drawn


def test_a_position_that_cannot_be_read_is_an_error(device):
    taeda.manual_seed(5)
    device.keep_silent(b"random_get")
    with pytest.raises(RuntimeError, match="random_get: lost count"):
        random.get_rng_state("optional")
    taeda.manual_seed(6)
    device.keep_silent(b"")
    assert random.generator_of("optional").initial_seed() == 6


def run(program, *arguments):
    """Lines that a program of its own prints."""
    command = [sys.executable, "-c", dedent(program), *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def test_a_device_that_is_found_later_starts_from_the_chosen_seed(shared_plugin):
    program = """
        import ctypes, sys
        import taeda_tensor_core as taeda
        taeda.manual_seed(77)
        taeda.rand(3)
        taeda.backends.load(sys.argv[1])
        library = ctypes.CDLL(sys.argv[1])
        library.draw.restype = ctypes.c_uint64
        print(library.draw(0), library.draw(1))
        print(taeda.random.generator_of("optlate:1").initial_seed())
    """
    assert run(program, shared_plugin("optional", '-DDEVICE_NAME="optlate"')) == ["77 77", "77"]


def test_a_device_that_refuses_the_chosen_seed_does_not_start(shared_plugin):
    program = """
        import sys
        import taeda_tensor_core as taeda
        taeda.manual_seed(int(sys.argv[2]))
        try:
            taeda.backends.load(sys.argv[1])
        except ValueError as complaint:
            print(complaint, taeda.backends.names())
        taeda.manual_seed(12)
        taeda.backends.load(sys.argv[1])
        print(taeda.random.generator_of("optrefuses:1").initial_seed())
    """
    path = shared_plugin("optional", '-DDEVICE_NAME="optrefuses"')
    assert run(program, path, UNLUCKY) == [
        "optrefuses: random_set: this seed is unlucky ['cpu', 'meta']",
        "12",
    ]


# --- memory of other processes ---


def test_capabilities_can_be_asked_for(device, plain):
    filled = ["event-timing", "events", "host-read", "pinned-memory", "sharing", "streams"]
    found = backends.capabilities("optional")
    assert sorted(found) == sorted([*filled, "peer-copies"])
    assert [name for name, has in sorted(found.items()) if has] == filled
    there = [name for name, has in backends.capabilities("optplain").items() if has]
    assert there == ["host-read", "pinned-memory", "streams"]
    assert [name for name, has in backends.capabilities("cpu").items() if has] == ["host-read"]


def test_memory_is_shared_inside_a_process(device):
    x = taeda.arange(12.0).reshape(3, 4).to("optional")
    view = x[1:].t()
    y = backends.import_memory(backends.export_memory(view))
    assert (y.device, y.dtype, y.shape, y.stride()) == (view.device, view.dtype, view.shape, view.stride())
    assert y.t().cpu().tolist() == [[4.0, 5.0, 6.0, 7.0], [8.0, 9.0, 10.0, 11.0]]
    assert device.imports() == 1
    x.copy_(taeda.zeros(3, 4))
    assert y.t().cpu().tolist() == [[0.0] * 4] * 2
    del y
    assert device.imports() == 0
    nothing = backends.import_memory(backends.export_memory(taeda.empty(0, 3).to("optional:1")))
    assert nothing.shape == (0, 3) and nothing.device == taeda.device("optional:1")


def test_memory_is_shared_between_processes(device, shared_plugin):
    x = taeda.arange(6).reshape(2, 3).to("optional")
    program = """
        import sys
        import taeda_tensor_core as taeda
        taeda.backends.load(sys.argv[1])
        x = taeda.backends.import_memory(bytes.fromhex(sys.argv[2]))
        print(x.t().cpu().tolist(), x.dtype)
        x.t()[1].copy_(taeda.tensor([7, 8, 9]))
    """
    path = shared_plugin("optional", '-DDEVICE_NAME="optional"')
    handle = backends.export_memory(x.t()).hex()
    assert run(program, path, handle) == ["[[0, 1, 2], [3, 4, 5]] taeda.int64"]
    assert x.cpu().tolist() == [[0, 1, 2], [7, 8, 9]]


def test_what_waits_is_done_before_memory_is_shared(device):
    there = taeda.ones(3).pin_memory("optional").to("optional", non_blocking=True)
    y = backends.import_memory(backends.export_memory(there))
    assert y.cpu().tolist() == [1.0] * 3


def test_devices_that_cannot_share_refuse(plain):
    for tensor in (taeda.ones(2), taeda.ones(2, device="meta"), taeda.ones(2).to("optplain")):
        with pytest.raises(
            NotImplementedError, match=rf"export_memory: device '{tensor.device}' cannot share"
        ):
            backends.export_memory(tensor)
    with pytest.raises(TypeError, match="export_memory: argument 'tensor' must be a Tensor, found list"):
        backends.export_memory([1.0])


def forged(handle, **changes):
    mark, facts, description = handle.split(b"\n", 2)
    return b"\n".join([mark, json.dumps({**json.loads(facts), **changes}).encode(), description])


@pytest.mark.parametrize(
    ("spoil", "error", "words"),
    [
        (lambda h: "text", TypeError, "must be bytes, found str"),
        (lambda h: b"abc", ValueError, "begins with b'abc'"),
        (lambda h: h.replace(b"{", b"(", 1), ValueError, "cannot be read"),
        (lambda h: h.replace(b'"sizes"', b'"seizes"'), ValueError, "seizes"),
        (lambda h: forged(h, sizes=[5]), ValueError, r"shape \(5,\) that leaves its memory of 16 bytes"),
        (lambda h: forged(h, offset=1), ValueError, "leaves its memory"),
        (lambda h: forged(h, strides=[-1]), ValueError, "leaves its memory"),
        (lambda h: forged(h, sizes=[-4]), ValueError, "shape"),
        (lambda h: forged(h, strides=[1, 1]), ValueError, "is not what export_memory gives"),
        (lambda h: forged(h, sizes=["4"]), ValueError, "is not what export_memory gives"),
        (lambda h: forged(h, dtype="Tensor"), ValueError, "is not what export_memory gives"),
        (lambda h: forged(h, offset=2**70), ValueError, "is not what export_memory gives"),
        (lambda h: forged(h, nbytes=2**62, sizes=[2**58]), ValueError, "the memory is gone"),
        (lambda h: forged(h, nbytes=2**62, sizes=[2**60]), MemoryError, "more elements than can be counted"),
        (lambda h: forged(h, device="cpu"), NotImplementedError, "import_memory: device 'cpu' cannot share"),
        (lambda h: forged(h, device="nowhere"), RuntimeError, "unknown device 'nowhere'"),
    ],
)
def test_strange_handles_are_refused(device, spoil, error, words):
    x = taeda.ones(4).to("optional")
    handle = spoil(backends.export_memory(x))
    if words == "the memory is gone":
        del x
    with pytest.raises(error, match=words):
        backends.import_memory(handle)
    assert device.imports() == 0


def test_functions_that_share_badly_are_named(device):
    x = taeda.ones(4).to("optional")
    handle = backends.export_memory(x)
    device.keep_silent(b"memory_import")
    with pytest.raises(RuntimeError, match=r"^optional: memory_import gave TAEDA_OK but null"):
        backends.import_memory(handle)
    device.keep_silent(b"memory_export")
    with pytest.raises(
        RuntimeError, match=r"^optional: memory_export gave a description of 1025 bytes.*room for 1024"
    ):
        backends.export_memory(x)


# --- registration ---


def test_backends_may_be_registered_while_others_are_used():
    # In a process of its own: the first one to come is the interesting one.
    program = """
        import threading
        import taeda_tensor_core as taeda
        from taeda_tensor_core import backends, library
        failed, done = [], threading.Event()
        def use():
            try:
                while not done.is_set():
                    assert taeda.empty(3, device="meta").device.type == "meta" and "cpu" in backends.names()
                    assert (taeda.ones(100).to("cpu") + 1).sum().item() == 200
            except BaseException as error:
                failed.append(error)
        threads = [threading.Thread(target=use) for _ in range(4)]
        for thread in threads:
            thread.start()
        for i in range(10):
            library.Backend(f"late{i}", device_count=2)
        done.set()
        for thread in threads:
            thread.join()
        print(failed, len(backends.names()))
    """
    assert run(program) == ["[] 12"]
