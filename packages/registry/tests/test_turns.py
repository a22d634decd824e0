"""Functions that threads take turns at, and dictionaries read while they change."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor

import pytest

from taeda_registry import turns


def test_where_python_has_a_lock_a_function_stays_what_it_is(monkeypatch):
    monkeypatch.setattr(turns, "free_threaded", False)

    def function() -> None:
        """Nothing."""

    assert turns.in_turn(function) is function


def test_one_thread_at_a_time_runs_what_takes_turns(monkeypatch):
    monkeypatch.setattr(turns, "free_threaded", True)
    inside, most = [], []

    @turns.in_turn
    def first(depth: int = 2) -> int:
        inside.append(depth)
        most.append(len(inside))
        time.sleep(0.002)
        if depth:
            first(depth - 1)
        inside.pop()
        return depth

    @turns.in_turn
    def second() -> int:
        return first(1)

    with ThreadPoolExecutor(4) as pool:
        assert [call.result() for call in [pool.submit(f) for f in [first, second] * 4]] == [2, 1] * 4
    assert max(most) == 3  # one thread's own calls within each other
    assert first.__name__ == "first"


@pytest.mark.parametrize("kind", [dict, OrderedDict])
def test_entries_of_one_moment(kind):
    table, done = kind(stays=1), threading.Event()

    @turns.in_turn
    def put(number: int) -> None:
        table[number] = number

    @turns.in_turn
    def take(number: int) -> None:
        del table[number]

    def change() -> None:
        for number in range(20_000):
            put(number)
            take(number)
        done.set()

    thread = threading.Thread(target=change)
    thread.start()
    while not done.is_set():
        found = turns.entries(table)
        assert found[0] == ("stays", 1)
        assert len(found) <= 2
    thread.join()
    assert turns.entries(table) == [("stays", 1)]
