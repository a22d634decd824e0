"""The simulated driver behaves as the hardware's does, as far as the backend relies on it."""

from __future__ import annotations

import ctypes

import pytest

from taeda_tensor_cuda.simulated import DriverError, Machine


def test_work_of_a_stream_is_in_order_and_streams_run_beside_each_other(machine: Machine) -> None:
    first, second = machine.stream(), machine.stream()
    assert machine.work(first, 100) == 100 and machine.work(first, 50) == 150
    assert machine.work(second, 70) == 70
    machine.advance(70)
    assert machine.is_idle(second) and not machine.is_idle(first)
    machine.synchronize()
    assert machine.now() == 150 and machine.is_idle(first)


def test_a_stream_that_waits_for_an_event_begins_after_it(machine: Machine) -> None:
    first, second, event = machine.stream(), machine.stream(), machine.event()
    machine.work(first, 100)
    machine.record(event, first)
    machine.work(first, 1000)
    machine.wait(second, event)
    assert machine.work(second, 10) == 110
    assert not machine.is_reached(event)
    machine.advance(100)
    assert machine.is_reached(event)
    machine.destroy_event(event)


def test_an_event_that_moves_leaves_those_who_wait_where_they_were(machine: Machine) -> None:
    first, second, event = machine.stream(), machine.stream(), machine.event()
    machine.work(first, 100)
    machine.record(event, first)
    machine.wait(second, event)
    machine.work(first, 900)
    machine.record(event, first)
    assert machine.work(second, 1) == 101
    machine.synchronize_stream(second)
    assert not machine.is_reached(event)
    machine.destroy_event(event)


def test_events_measure_the_time_between_them(machine: Machine) -> None:
    stream, start, end = machine.stream(), machine.event(timing=True), machine.event(timing=True)
    machine.record(start, stream)
    machine.work(stream, 2_500_000)
    machine.record(end, stream)
    machine.synchronize()
    assert machine.elapsed(start, end) == 2.5
    machine.destroy_event(start)
    machine.destroy_event(end)


def test_copies_take_place_when_their_stream_comes_to_them(machine: Machine) -> None:
    stream, block = machine.stream(), machine.allocate(1 << 20)
    data, seen = (ctypes.c_char * 8)(*b"computer"), (ctypes.c_char * 8)()
    machine.work(stream, 1000)
    machine.copy_in(block, data, 8, stream)
    machine.copy_out(seen, block, 8, stream)
    data.value = b"elephant"  # the copy has not read it yet
    assert bytes(seen) == bytes(8)
    machine.synchronize_stream(stream)
    assert bytes(seen) == b"elephant"


def test_failures_come_once_and_when_they_were_asked_for(machine: Machine) -> None:
    machine.fail("copy", 2)
    data, block = (ctypes.c_char * 4)(), machine.allocate(4)
    machine.copy_in(block, data, 4, None)
    with pytest.raises(DriverError, match="invalid argument"):
        machine.copy_in(block, data, 4, None)
    machine.copy_in(block, data, 4, None)
    with pytest.raises(DriverError):
        machine.fail("toaster")


def test_a_kernel_that_fails_leaves_the_device_unusable(machine: Machine) -> None:
    stream, event = machine.stream(), machine.event()
    machine.fail("kernel")
    machine.work(stream, 100)
    machine.record(event, stream)  # nobody knows yet
    for use in (
        lambda: machine.synchronize_stream(stream),
        machine.synchronize,
        lambda: machine.is_idle(stream),
        lambda: machine.is_reached(event),
        lambda: machine.record(event, stream),
        lambda: machine.work(stream, 1),
        machine.stream,
    ):
        with pytest.raises(DriverError, match="illegal memory access"):
            use()
    machine.destroy_event(event)


def test_devices_have_memory_and_time_of_their_own() -> None:
    with Machine(8 << 20, devices=2) as machine:
        blocks = [machine.allocate(1 << 20, device=i) for i in (0, 1)]
        assert abs(blocks[0] - blocks[1]) > 8 << 20
        machine.work(None, 100, device=0)
        machine.synchronize(1)
        assert machine.now() == 0
        assert machine.taken(0) == machine.taken(1) == 2 << 20
