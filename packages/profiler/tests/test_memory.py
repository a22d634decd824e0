"""Who holds memory, and what a block leaves behind."""

from __future__ import annotations

import pytest

import taeda

pytestmark = pytest.mark.usefixtures("nothing_collected")


def test_what_is_held_is_told_by_operator_line_and_module():
    model = taeda.nn.Sequential(taeda.nn.Linear(4, 100), taeda.nn.ReLU())
    x = taeda.ones(10, 4)
    with taeda.memory.record() as recorded, taeda.no_grad():
        kept = taeda.zeros(1000)
        result = model(x)
        taeda.ones(5000)
    found = recorded.snapshot
    assert found.bytes == 8000 and len(found) == 2
    assert found.by("operator") == {"aten::zeros": 4000, "aten::relu": 4000}
    assert found.by("module") == {"(none)": 4000, "Sequential.1": 4000}
    assert all(line.startswith(__file__) or "activation.py" in line for line in found.by("line"))
    assert recorded.peak >= 8000 + 20000 and kept.numel() == result.numel()
    assert "7.81 KB in 2 pieces" in str(found)
    with pytest.raises(ValueError, match="'what'"):
        found.by("colour")


def test_leaks_are_warned_of_by_line():
    kept = []
    with (
        pytest.warns(RuntimeWarning, match=r"(?s)leaks: the block holds 3.91 KB in 1 pieces.*test_memory.py"),
        taeda.profiler.leaks(),
    ):
        kept.append(taeda.ones(1000))
        taeda.ones(10)
    with taeda.profiler.leaks(allowed=4000):
        kept.append(taeda.ones(1000))


def test_a_clean_block_is_quiet_even_with_cycles():
    class Node:
        pass

    with taeda.profiler.leaks() as found:
        node = Node()
        node.me, node.tensor = node, taeda.ones(1000)
        del node
        taeda.ones(3, requires_grad=True).sum().backward()
    assert found.snapshot.bytes == 0


def test_an_error_is_not_hidden_by_a_warning():
    with pytest.raises(ArithmeticError), taeda.profiler.leaks():
        kept = taeda.ones(10)
        raise ArithmeticError(kept)


def test_asking_too_early():
    with taeda.memory.record() as recorded, pytest.raises(AssertionError, match="has not ended"):
        _ = recorded.snapshot
    assert recorded.snapshot.bytes == 0 and recorded.peak == 0
