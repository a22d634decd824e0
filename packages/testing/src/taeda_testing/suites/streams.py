"""Behaviour of asynchronous devices: streams, events, pinned memory, and copies that do not block.

Every check puts work into a stream that takes longer than the call, so that a device which does not wait where it must
is found by wrong values. No check measures time.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np

from taeda_registry.slots import tensor
from taeda_testing.conformance.checks import Suite, array_of, close, equal, true
from taeda_testing.suites.device import put, rng

suite = Suite("streams")
CHECKS = suite.checks
_SIZE, _STEPS = 96, 40
# A busy machine may finish the work before the host goes on: then nothing shows a device that does not wait.
_TRIES = 5


class _Work:
    """Products with a permutation, which take a while and whose result is known exactly."""

    def __init__(self, device: str) -> None:
        source = rng()
        self.order = source.permutation(_SIZE)
        self.array = source.standard_normal((_SIZE, _SIZE)).astype(np.float32)
        turn = np.eye(_SIZE, dtype=np.float32)[:, self.order]
        self.start, self.turn = put(self.array, device), put(turn, device)
        tensor.synchronize(device)

    def begin(self) -> Any:
        """Puts the work into the current stream; the result is there when it is done."""
        x = self.start
        for _ in range(_STEPS):
            x = x @ self.turn
        return x

    @property
    def expected(self) -> np.ndarray:
        """What the result will be."""
        array = self.array
        for _ in range(_STEPS):
            array = array[:, self.order]
        return array


def _pinned(array: np.ndarray, device: str) -> Any:
    return tensor.from_numpy(array.copy()).pin_memory(device)


@suite.check(needs=["streams"])
def streams_of_threads(device: str) -> None:
    """A stream is the current one inside `with`, on its thread only, and the former one comes back."""
    outer, inner = tensor.Stream(device), tensor.Stream(device)
    true("Stream() == Stream()", outer != inner and hash(outer) != hash(inner), "streams that differ")
    default = tensor.current_stream(device)
    elsewhere: list[Any] = []
    with outer:
        with inner:
            equal("current_stream inside `with inner`", tensor.current_stream(device), inner)
            other = threading.Thread(target=lambda: elsewhere.append(tensor.current_stream(device)))
            other.start()
            other.join()
        equal("current_stream after `with inner`", tensor.current_stream(device), outer)
    equal("current_stream after `with outer`", tensor.current_stream(device), default)
    equal("current_stream of another thread", elsewhere, [default])


@suite.check(needs=["streams"])
def work_of_a_stream(device: str) -> None:
    """Work of a stream is done in order and completely, and `synchronize` waits for it."""
    work, side = _Work(device), tensor.Stream(device)
    with side:
        x = work.begin()
        x.mul_(2).add_(1)
    side.synchronize()
    true("query() after synchronize()", side.query(), "True")
    with side:
        close("40 products, then mul_(2).add_(1)", x, work.expected * 2 + 1)


@suite.check(needs=["streams", "events"])
def streams_wait_for_streams(device: str) -> None:
    """What follows `wait_stream` and `wait_event` reads what the other stream has written before."""
    work, side, third = _Work(device), tensor.Stream(device), tensor.Stream(device)
    with side:
        x = work.begin()
        mark = side.record_event()
        work.begin()  # behind the mark: nobody has to wait for it
    with third:
        third.wait_event(mark)
        y = x + 1
    tensor.current_stream(device).wait_stream(third)
    close("x + 1 behind wait_event and wait_stream", y, work.expected + 1)
    side.synchronize()


@suite.check(needs=["streams"])
def memory_used_by_two_streams(device: str) -> None:
    """Memory with `record_stream` is not given away while the other stream still reads it."""
    work, side = _Work(device), tensor.Stream(device)
    x = put(work.array, device)
    tensor.synchronize(device)
    with side:
        work.begin()
        y = x + 1
    x.record_stream(side)
    del x
    others = [tensor.full((_SIZE, _SIZE), -1.0, device=device) for _ in range(4)]
    side.synchronize()
    with side:
        close("x + 1, with x given back meanwhile", y, work.array + 1)
    close("full(-1)", others[0], np.full((_SIZE, _SIZE), -1.0))


@suite.check(needs=["streams", "threads"])
def streams_of_several_threads(device: str) -> None:
    """Threads that each work in a stream of their own get their own results."""
    work, found = _Work(device), {}

    def run(number: int) -> None:
        with tensor.Stream(device):
            found[number] = array_of(work.begin() + number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal("threads that ended well", sorted(found), [0, 1, 2])
    for number, array in found.items():
        close(f"products + {number} of thread {number}", array, work.expected + number)


@suite.check(needs=["events"])
def marks_in_a_stream(device: str) -> None:
    """An event is reached once what was before it is done, and can be recorded again."""
    work, event = _Work(device), tensor.Event(device)
    for _ in range(2):
        work.begin()
        event.record()
        event.synchronize()
        true("query() after synchronize()", event.query(), "True")


@suite.check(needs=["events", "event-timing"])
def times_between_events(device: str) -> None:
    """Times between events have the order of the events and add up."""
    work = _Work(device)
    first, second, third = (tensor.Event(device, enable_timing=True) for _ in range(3))
    first.record()
    work.begin()
    second.record()
    work.begin()
    third.record()
    third.synchronize()
    parts = first.elapsed_time(second), second.elapsed_time(third)
    true("elapsed_time over 40 products", min(parts) > 0, "a time above 0")
    close("elapsed_time(first, third)", first.elapsed_time(third), sum(parts), 1e-2, 1e-2)
    close("elapsed_time(third, first)", third.elapsed_time(first), -sum(parts), 1e-2, 1e-2)
    equal("elapsed_time(first, first)", first.elapsed_time(first), 0.0)


@suite.check(needs=["pinned-memory"])
def pinned_host_memory(device: str) -> None:
    """`pin_memory` copies to host memory that says so, in every layout, and is ordinary memory otherwise."""
    array = rng().standard_normal((5, 7)).astype(np.float32)
    plain = tensor.from_numpy(array.copy())
    pinned = plain.t().pin_memory(device)
    equal("is_pinned()", (plain.is_pinned(), pinned.is_pinned()), (False, True))
    equal("device of pinned memory", tensor.device(str(pinned.device)).type, "cpu")
    close("x.t().pin_memory()", pinned, array.T, 0, 0)
    close("pinned + 1", pinned + 1, array.T + 1)
    close("pinned to the device and back", pinned.to(device), array.T, 0, 0)
    equal("elements of empty pinned memory", _pinned(array[:0], device).to(device).numel(), 0)


@suite.check(needs=["pinned-memory"])
def copies_to_the_device_that_do_not_block(device: str) -> None:
    """Copies with `non_blocking` take their turn in the stream and may lose their source meanwhile."""
    work = _Work(device)
    work.begin()
    there = [_pinned(np.full(1000, i, np.float32), device).to(device, non_blocking=True) for i in range(4)]
    again = [_pinned(np.full(1000, -1, np.float32), device) for _ in range(4)]
    for i, x in enumerate(there):
        close(f"full({i}) from pinned memory that is given back", x + 1, np.full(1000, i + 1))
    close("pinned memory made meanwhile", again[0], np.full(1000, -1))


@suite.check(needs=["streams"])
def copies_of_pageable_memory(device: str) -> None:
    """A copy from or to memory that is not pinned is done when the call returns, also with `non_blocking`."""
    work = _Work(device)
    result = work.begin()
    host = tensor.from_numpy(work.array.copy())
    there = host.to(device, non_blocking=True)
    host.fill_(-1)
    close("x.to(device, non_blocking=True), with x written to afterwards", there, work.array, 0, 0)
    host.copy_(result, non_blocking=True)
    close("host.copy_(x, non_blocking=True)", host, work.expected, 0, 0)


@suite.check(needs=["pinned-memory", "events"])
def events_behind_copies(device: str) -> None:
    """Host memory that a copy without blocking goes to is filled once an event behind the copy is reached."""
    work = _Work(device)
    for wait in ("synchronize", "query") * _TRIES:
        host, event = _pinned(np.zeros_like(work.array), device), tensor.Event(device)
        host.copy_(work.begin(), non_blocking=True)
        event.record()
        if wait == "synchronize":
            event.synchronize()
        while wait == "query" and not event.query():
            time.sleep(0.001)
        close(f"host.copy_(x, non_blocking=True) after {wait}() of an event", host, work.expected, 0, 0)


@suite.check(needs=["pinned-memory", "streams"])
def waiting_for_the_device(device: str) -> None:
    """`synchronize` of a device waits for all of its streams, that of a stream for this one."""
    work = _Work(device)
    waits = (("synchronize(device)", tensor.synchronize), ("stream.synchronize()", None))
    for name, wait in waits * _TRIES:
        host, side = _pinned(np.zeros_like(work.array), device), tensor.Stream(device)
        with side:
            host.copy_(work.begin(), non_blocking=True)
        wait(device) if wait else side.synchronize()
        close(f"host.copy_(x, non_blocking=True) after {name}", host, work.expected, 0, 0)
