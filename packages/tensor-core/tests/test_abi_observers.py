"""Observers through the C ABI: what they see of a thread's calls, and what they may do meanwhile."""

from __future__ import annotations

import ctypes
import threading

import pytest

import taeda_tensor_core as taeda
from taeda_tensor_core import backends
from taeda_testing.settling import without_collector

X = taeda.tensor([1.0, -2.0, 3.0, 4.0])
JOURNAL, BUSY, ONCE, STOPPING = range(4)
VALUE = 2


class Watcher:
    """The controls of abi/watcher.c."""

    def __init__(self, path):
        backends.load(path)
        self.library = ctypes.CDLL(str(path))
        self.library.error_text.restype = self.library.read_journal.restype = ctypes.c_char_p

    def put(self, name):
        assert self.library.put(name.encode()) == 0

    def take(self, which):
        return self.library.take(which)

    @property
    def journal(self):
        return self.library.read_journal().decode().split("\n")[:-1]

    @property
    def status(self):
        return self.library.get_status()


@pytest.fixture
def watcher(shared_plugin):
    made = Watcher(shared_plugin("watcher"))
    assert made.journal == []
    with without_collector():  # what it frees would be told
        yield made
    for which in (JOURNAL, BUSY, ONCE, STOPPING):
        assert made.take(which) == 0
    made.library.read_journal()


def test_calls_are_seen_with_their_tensors_from_begin_to_end(watcher):
    two = taeda.ones(2)
    watcher.put("journal")
    y = taeda.cat([X, X, two])
    y.add_(1.0)
    assert watcher.journal == [
        *("+cat 4 4 2", "-cat 4 4 2"),
        *("+add_ 10 1", "-add_ 10 1"),
    ]
    assert watcher.status == 0


def test_parts_of_a_composite_are_calls_within_it(watcher):
    watcher.put("journal")
    taeda.ones(3)
    assert watcher.journal == ["+ones", "+fill_ 3 1", "-fill_ 3 1", "-ones"]


def test_an_error_is_told_at_the_end(watcher):
    watcher.put("journal")
    with pytest.raises(RuntimeError, match="matmul"):
        X.matmul(taeda.ones(3))
    assert watcher.journal[-1].startswith("-matmul 4 3 failed")


def test_what_an_observer_calls_is_not_seen_and_its_errors_stay_its_own(watcher):
    watcher.put("busy")
    watcher.put("journal")
    assert (X + X).tolist() == [2, -4, 6, 8]
    with pytest.raises(RuntimeError, match=r"shape|broadcast"):
        X + taeda.ones(3)
    seen = watcher.journal
    assert seen[:4] == ["busy", "+add 4 4", "-add 4 4", "busy"]
    assert seen.count("busy") == len(seen) / 2


def test_an_observer_may_take_itself_away(watcher):
    watcher.put("once")
    assert (X * X).sum().item() == 30
    assert (watcher.journal, watcher.status) == (["once"], 0)


def test_taking_away_twice_and_what_was_never_there(watcher):
    watcher.put("journal")
    assert watcher.take(JOURNAL) == watcher.take(JOURNAL) == 0
    assert X.sum().item() == 6
    assert watcher.journal == []


def test_a_visit_may_end_early(watcher):
    watcher.put("stopping")
    taeda.cat([X, X])
    assert (watcher.journal, watcher.status) == (["stop"], 4321)


def test_tensors_are_told_within_the_call_alone(watcher):
    watcher.put("journal")
    X.exp()
    assert watcher.library.ask_late() == VALUE
    assert b"expected the call that an observer was given" in watcher.library.error_text()


def test_other_threads_are_not_seen_and_end_with_their_observers(watcher):
    watcher.put("journal")

    def work():
        X.exp()
        watcher.put("busy")
        X.exp()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert watcher.journal == ["busy", "busy"]
    X.exp()
    assert watcher.journal == ["+exp 4", "-exp 4"]


def test_spans_and_memory_are_told_to_those_who_ask(watcher):
    watcher.put("wide")
    assert watcher.library.tell_span(b"waiting") == 0
    y = X + X
    taeda.zeros(100)
    del y
    assert watcher.journal == [
        *("(waiting 4 0", ")waiting 4 0"),
        *("memory 16", "add 1 1 3"),
        *("memory 400", "zeros 10 0 0 2", "memory -400"),
        "memory -16",
    ]
    assert watcher.take(JOURNAL) == 0
    assert watcher.library.tell_span(b"unseen") == 0
    assert watcher.journal == []


def test_wrong_spans_are_refused(watcher):
    assert watcher.library.tell_span(None) == VALUE
    assert b"taeda_span has no name" in watcher.library.error_text()


def test_arguments_are_told_within_the_call_alone(watcher):
    watcher.put("journal")
    X.exp()
    assert watcher.library.ask_late_for_all() == VALUE
    assert b"observed_arguments: expected the call" in watcher.library.error_text()


def test_an_observer_that_asks_for_calls_alone_gets_no_more(watcher):
    watcher.put("journal")
    assert watcher.library.tell_span(b"unseen") == 0
    taeda.zeros(100)
    assert not any("memory" in line or "unseen" in line for line in watcher.journal)


def test_operators_of_libraries_are_seen(watcher):
    from taeda_tensor_core import library

    @library.custom_op("watched::twice", mutates_args=())
    def twice(x: taeda.Tensor) -> taeda.Tensor:
        return x * 2

    watcher.put("journal")
    twice(X)
    assert watcher.journal[0] == "+watched::twice 4"
