"""Spans that parts mark, seen by whoever watches."""

from __future__ import annotations

import weakref

import pytest

from taeda_registry import spans


class Seen(list):
    def begin(self, name, kind):
        self.append(("begin", name, kind))

    def end(self, name, kind):
        self.append(("end", name, kind))


@pytest.fixture
def seen():
    spans.watcher = made = Seen()
    yield made
    spans.watcher = None


def test_items_are_the_same_and_waits_are_seen(seen):
    assert list(spans.waited_for([1, 2], "wait")) == [1, 2]
    assert seen == [("begin", "wait", spans.WAIT), ("end", "wait", spans.WAIT)] * 3


def test_nobody_watches():
    assert list(spans.waited_for(range(3), "wait")) == [0, 1, 2]


def test_a_wait_that_fails_ends(seen):
    def items():
        yield 1
        raise ArithmeticError("no more")

    with pytest.raises(ArithmeticError):
        list(spans.waited_for(items(), "wait"))
    assert [what for what, *_ in seen] == ["begin", "end"] * 2


def test_items_are_not_kept(seen):
    class Item:
        pass

    items = spans.waited_for((Item() for _ in range(2)), "wait")
    gone = weakref.ref(next(items))
    assert gone() is None
