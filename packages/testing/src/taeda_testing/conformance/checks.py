"""Checks of behaviour: plain functions with a name, what they cover, and what they need."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from taeda_testing.conformance.capability import KNOWN, Lacks
from taeda_testing.conformance.devices import missing_kernel
from taeda_testing.conformance.report import Item, Problem, Skip
from taeda_testing.runner import Failure, told_apart


@dataclass(frozen=True)
class Check:
    """One behaviour.

    Attributes:
        name: short and unique within its suite.
        meaning: one sentence, the function's docstring.
        run: called with the provider's module, or with the name of a device; raises Failure for a difference.
        covers: names of the interface that it exercises.
        needs: capabilities without which it is skipped.
    """

    name: str
    meaning: str
    run: Callable[[Any], None]
    covers: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


class Suite:
    """Collects the checks of one slot in the order of their definition."""

    def __init__(self, slot: str) -> None:
        self.slot = slot
        self.checks: list[Check] = []

    def check(self, *covers: str, needs: Iterable[str] = ()) -> Callable[[Any], Any]:
        """Decorator: the function becomes a check of that name."""

        def add(function: Callable[[Any], None]) -> Callable[[Any], None]:
            name = function.__name__.replace("_", " ").strip()
            meaning = " ".join((function.__doc__ or "").split())
            unknown = sorted(set(needs) - set(KNOWN))
            silent = not meaning and sys.flags.optimize < 2  # -OO takes all docstrings away
            if silent or unknown or any(present.name == name for present in self.checks):
                raise ValueError(
                    f"check {name!r} of suite {self.slot!r}: no docstring, a name twice or {unknown}"
                )
            self.checks.append(Check(name, meaning, function, tuple(covers), tuple(needs)))
            return function

        return add


def chosen(items: Iterable[Any], only: Iterable[str], kind: str) -> list[Any]:
    """The items of some names; all when no name is given.

    Raises:
        ValueError: there is none of a name; the text has names that look like it.
    """
    items, names = list(items), set(only)
    known = [item.name for item in items]
    for name in sorted(names - set(known)):
        near = get_close_matches(name, known, 3)
        hint = f"; did you mean {', '.join(map(repr, near))}?" if near else ""
        raise ValueError(f"conformance: no {kind} is named {name!r}{hint}")
    return [item for item in items if not names or item.name in names]


def run_check(check: Check, lacks: Lacks, call: Callable[[], None], group: str = "behaviour") -> Item:
    """The item of one check."""
    item = Item(check.name, group, note=check.meaning)
    absent = lacks.first(check.needs)
    if absent is not None:
        item.skips.append(Skip(check.name, absent))
        return item.settle()
    item.checks = 1
    try:
        call()
    except Exception as error:
        need = missing_kernel(error)
        if need is not None:
            item.needs.append(need)
        elif isinstance(error, Failure):
            where, found = error.call or check.meaning, error.found or str(error)
            item.problems.append(Problem(check.name, where, error.expected[:400], found[:400]))
        else:
            found = f"{type(error).__name__}: {error}"
            item.problems.append(Problem(check.name, check.meaning, "no error", found[:400]))
    return item.settle()


def equal(call: str, found: Any, expected: Any) -> None:
    """Failure unless two plain values are equal."""
    if not found == expected:
        raise Failure(f"{call}: expected {expected!r}, found {found!r}", call, repr(expected), repr(found))


def true(call: str, found: Any, expected: str) -> None:
    """Failure with the expectation's words unless a condition holds."""
    if not found:
        raise Failure(f"{call}: expected {expected}", call, expected, repr(found))


def array_of(value: Any) -> np.ndarray:
    """A tensor, also one that needs gradients or stands on a device, as an array."""
    if hasattr(value, "detach"):
        value = value.detach()
    if hasattr(value, "cpu"):
        value = value.cpu()
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value)


def close(call: str, found: Any, expected: Any, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    """Failure unless a tensor has the shape and, within the tolerance, the values of an array."""
    ours, theirs = array_of(found), np.asarray(expected)
    same = ours.shape == theirs.shape and np.allclose(ours, theirs, rtol=rtol, atol=atol, equal_nan=True)
    if not same:
        wanted, there = told_apart(theirs, ours)
        raise Failure(f"{call}: expected {wanted}, found {there}", call, wanted, there)


@contextmanager
def raises(call: str, *kinds: type[BaseException], words: Iterable[str] = ()) -> Any:
    """Failure unless the block raises one of some exceptions, with all words in its text."""
    wanted = " or ".join(kind.__name__ for kind in kinds) + (f" naming {list(words)}" if words else "")
    try:
        yield
    except kinds as error:
        if all(word in str(error) for word in words):
            return
        raise Failure(f"{call}: expected {wanted}, found {error!r}", call, wanted, repr(error)) from error
    except Exception as error:
        raise Failure(f"{call}: expected {wanted}, found {error!r}", call, wanted, repr(error)) from error
    raise Failure(f"{call}: expected {wanted}, found no error", call, wanted, "no error")
