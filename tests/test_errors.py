"""Every wrong call ends in the exception a user expects, says what was wrong, and changes nothing."""

from __future__ import annotations

import importlib.util
import pickle
from pathlib import Path
from types import ModuleType

import pytest

import taeda as t


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"errors_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TABLES = {path.stem: _load(path) for path in sorted((Path(__file__).parent / "errors").glob("*.py"))}
CALLS = [
    pytest.param(row, id=f"{family}-{row[0]}")
    for family, table in TABLES.items()
    for row in getattr(table, "ROWS", ())
]
CHANGES = [
    pytest.param(row, id=f"{family}-{row[0]}")
    for family, table in TABLES.items()
    for row in getattr(table, "INPLACE_ROWS", ())
]


def _check(caught: pytest.ExceptionInfo, words: list[str]) -> None:
    """Every word, or one of its alternatives `a|b`, is in the text."""
    text = str(caught.value)
    missing = [w for w in words if not any(part.lower() in text.lower() for part in w.split("|"))]
    assert not missing, f"the text lacks {missing}: {caught.type.__name__}: {text}"


def _state(x) -> tuple:
    """What must not change when a call on ``x`` fails."""
    return (
        tuple(x.shape),
        tuple(x.stride()),
        x.dtype,
        x.requires_grad,
        x.is_leaf,
        x.data_ptr(),
        x._version,
        repr(x.detach().tolist()),
    )


def test_the_tables_are_large_and_their_names_unique():
    assert len(CALLS) + len(CHANGES) >= 150
    names = [row.id for row in CALLS + CHANGES]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("row", CALLS)
def test_wrong_call(row):
    _, call, error, *words = row
    with pytest.raises(error) as caught:
        call()
    _check(caught, words)


@pytest.mark.parametrize("row", CHANGES)
def test_wrong_change_leaves_the_tensor_as_it_was(row):
    _, make, call, error, *words = row
    x = make()
    before = _state(x)
    with pytest.raises(error) as caught:
        call(x)
    _check(caught, words)
    assert _state(x) == before


@pytest.mark.parametrize(
    ("call", "closer"),
    [
        (lambda: t.ones(2).sum(3), IndexError),
        (lambda: t.ones(2, 3).gather(0, t.tensor([[5, 0, 0]])), IndexError),
        (lambda: t.arange(3) // 0, ZeroDivisionError),
        (lambda: t.empty(2**62), MemoryError),
        (lambda: t.tensor([300], dtype=t.uint8), OverflowError),
    ],
)
def test_errors_with_a_closer_class_are_runtime_errors_too(call, closer):
    """PyTorch raises either: programs catch the one or the other. They travel between processes."""
    with pytest.raises(RuntimeError) as caught:
        call()
    error = caught.value
    assert isinstance(error, closer) and type(error).__name__ == closer.__name__
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error)
