"""What is done at the end of an object: it is noted, acted upon, and an interrupt meanwhile is the program's."""

import pickle
import sys
from collections import deque

import pytest

import taeda_tensor_core as taeda
from taeda_tensor_core import _copies
from taeda_tensor_core.sharing import at_end


def test_an_end_is_noted_and_acted_upon():
    ended, calls = deque(), []
    end = at_end(ended.append, "value", lambda: calls.append(list(ended)))
    kept = at_end(ended.append, "kept")
    assert not ended and not calls
    del end
    assert calls == [["value"]]
    del kept
    assert list(ended) == ["value", "kept"] and len(calls) == 1


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt("stop"), SystemExit(3)])
def test_an_interrupt_of_an_end_is_raised_where_the_program_is(interrupt):
    def act():
        raise interrupt

    ended, reached = deque(), []
    end = at_end(ended.append, 1, act)
    with pytest.raises(type(interrupt)) as info:
        del end
        for _ in range(1000):
            reached.append(1)
    assert info.value is interrupt and len(reached) < 1000 and list(ended) == [1]


def test_other_errors_of_an_end_are_told(monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: told.append(found.exc_value))
    ended = deque()
    for note, act in ((ended.append, lambda: 1 / 0), ({}.pop, None)):
        end = at_end(note, 1, act)
        del end
    assert [type(error) for error in told] == [ZeroDivisionError, KeyError] and list(ended) == [1]


def test_an_end_leaves_an_error_on_its_way():
    ended = deque()

    def fail():
        end = at_end(ended.append, 1, lambda: ended.append(2))
        raise LookupError("on its way", end)

    with pytest.raises(LookupError, match="on its way") as info:
        fail()
    assert not ended
    del info
    assert list(ended) == [1, 2]


def test_wrong_arguments():
    with pytest.raises(TypeError):
        taeda._C._at_end(print, 1)


def test_pickles_of_storages_are_forgotten():
    """Views of one storage share it in a pickle; what knows of it lives as long as that."""
    before = dict(_copies._memories)
    x = taeda.arange(6.0)
    a, b = pickle.loads(pickle.dumps((x[:3], x[2:])))
    a[2] = 9
    assert b[0] == 9 and x[2] == 2
    assert _copies._memories == before
