"""States of generators: what is kept where it lies is what the generators themselves say."""

import random

import numpy as np
import pytest

from taeda_data import randomness


@pytest.fixture
def python():
    """Python's global generator, as it was afterwards."""
    state = random.getstate()
    yield random.random.__self__
    random.setstate(state)


@pytest.fixture
def numpy_global():
    """NumPy's global generator, as it was afterwards."""
    state = np.random.get_state()
    yield np.random
    np.random.set_state(state)


def draws(source):
    """Numbers of every kind; an odd number of normal ones, so that one is left over."""
    return [
        source.random(),
        source.getrandbits(100),
        source.gauss(0, 1),
        source.choice("abc"),
        source.gauss(0, 1),
    ]


@pytest.mark.parametrize("begun", [0, 1, 2, 623, 624, 2000])
def test_words_of_pythons_generator_are_those_it_tells(python, begun):
    words = randomness._PythonWords(python)
    assert words.found
    python.seed(5)
    for _ in range(begun):
        python.getrandbits(32)
    python.gauss(0, 1)  # leaves one over
    told, kept = python.getstate(), words.save()
    expected = [draws(python) for _ in range(300)]
    python.seed(6)
    words.restore(kept)
    assert python.getstate() == told
    assert [draws(python) for _ in range(300)] == expected


def test_generators_of_other_kinds_keep_their_own_way():
    class Own(random.Random):
        def getstate(self):
            return "own", super().getstate()

        def setstate(self, state):
            assert state[0] == "own"
            super().setstate(state[1])

    source = Own(3)
    made = randomness._python(source)
    state = made.save()
    assert state[0] == "own"
    expected = draws(source)
    made.seed(1)
    made.restore(state)
    assert draws(source) == expected


def test_a_layout_that_is_not_known_is_left_alone(python, monkeypatch):
    monkeypatch.setattr(randomness.ctypes, "string_at", lambda address, size: b"\0" * size)
    assert not randomness._PythonWords(python).found
    source = randomness._python(python)
    assert source.save() == python.getstate()


def test_words_of_numpys_global_generator_are_those_it_tells(numpy_global):
    state = randomness._numpy_global
    for drawn in (0, 1, 2, 5):
        numpy_global.seed(7)
        numpy_global.standard_normal(drawn)  # an odd number leaves one over
        told, kept = numpy_global.get_state(), state.save()
        numpy_global.seed(8)  # as a loader does
        state.restore(kept)
        for found, known in zip(numpy_global.get_state(), told, strict=True):
            assert np.array_equal(found, known)
        found = numpy_global.standard_normal(700).tolist()
        numpy_global.set_state(told)
        assert found == numpy_global.standard_normal(700).tolist()
