"""Layers: Python code between callers and kernels."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable
from typing import Any

from taeda_registry.forks import held_at_fork
from taeda_tensor_core import _C
from taeda_tensor_core.library._registration import note, remove_all
from taeda_tensor_core.library._table import Operator, op, operators

#: Positions of layers by name; a call meets the highest first. "dispatch" is that of classes and modes above autograd,
#: "below_autograd" that of TorchDispatchMode, "transform" that of levels.
POSITIONS = {
    "below_autograd": -1,
    "autograd": 0,
    "dispatch": 1,
    "transform": 4,
    "autocast": 8,
    "tracing": 10,
    "profiler": 14,
}


class below:
    """Context in which a layer is switched off on this thread, so that calls go on below it."""

    def __init__(self, position: int | str) -> None:
        self._position = _place(position)

    def __enter__(self) -> None:
        self._before = _C._exclude_layer(self._position, True)

    def __exit__(self, *_: object) -> None:
        _C._exclude_layer(self._position, self._before)


def _place(position: int | str) -> int:
    if isinstance(position, str):
        if position not in POSITIONS:
            raise ValueError(
                f"position must be a number or one of {', '.join(POSITIONS)}, found {position!r}"
            )
        return POSITIONS[position]
    return position


def split(operator: Operator, arguments: tuple) -> tuple[tuple, dict[str, Any]]:
    """All arguments of a call, in order, as positional and keyword-only ones."""
    positional, names = operator.by_position
    return arguments[:positional], dict(zip(names, arguments[positional:], strict=True)) if names else {}


class Layer:
    """Code that stands between callers and kernels: sees calls, and may change, replace or only watch them.

    Derive from it and write `__call__(op, args, kwargs)`. `op` is an `Operator`, `args` holds all
    positional arguments of its schema, defaults included, `kwargs` the keyword-only ones. Inside, this
    layer is off: `op(*args, **kwargs)` goes on below it. The result must be what the operator gives, on the
    same device; forms that write into an argument give None.

    A layer runs on the threads that entered it (`with layer:`). At the position "autograd" it runs for
    tensors that require gradients, without being entered. It stands in the table from when it is made until `remove()`,
    or until the last thread leaves its `with`; entering it again puts it back.

    Any number of layers may stand at a position. The one that was put into the table last is met first, and `op` inside
    it goes on with those that were there before; the positions "autograd", "dispatch" and "below_autograd" have one.

    Args:
        name: Stands in messages.
        position: A number from 0 to 15 or a name of POSITIONS. Higher ones are met first.
        operators: Operators or names it sees; None for all.

    Example:
        >>> class Count(taeda.library.Layer):
        ...     calls = 0
        ...     def __call__(self, op, args, kwargs):
        ...         self.calls += 1
        ...         return op(*args, **kwargs)
    """

    def __init__(
        self,
        name: str,
        position: int | str = "profiler",
        operators: Iterable[Operator | str] | None = None,
    ) -> None:
        self.name = name
        self.position = _place(position)
        self._operators = None if operators is None else tuple(operators)
        self._numbers: list[int] = []
        self._lock = held_at_fork(threading.Lock())
        self._threads = 0  # how often it is entered, on all threads
        self._before = _Before()
        self._register()
        note(self)

    def _register(self) -> None:
        chosen = operators() if self._operators is None else self._operators
        targets = [each if isinstance(each, Operator) else op(each) for each in chosen]
        names, entries = [target.name for target in targets], [self._entry(target) for target in targets]
        # Nothing of Python's runs between an entry and the note of its number, so that no interrupt comes in between.
        made = map(
            _C._add_layer, names, itertools.repeat(self.position), entries, itertools.repeat(self.name)
        )
        try:
            self._numbers.extend(made)
        except BaseException:
            self._remove()
            raise

    def _entry(self, target: Operator) -> Callable:
        def call(*arguments: Any) -> Any:
            args, kwargs = split(target, arguments)
            # Another layer of the position has switched it on, on a thread that did not enter this one.
            if self._threads and not self._before.states:
                return target(*args, **kwargs)
            return self(target, args, kwargs)

        return call

    def __call__(self, op: Operator, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Goes on below; override it."""
        return op(*args, **kwargs)

    def __enter__(self) -> Layer:
        with self._lock:
            if not self._numbers:
                self._register()
            self._threads += 1
        self._before.states.append(_C._include_layer(self.position, True))
        return self

    def __exit__(self, *_: object) -> None:
        _C._include_layer(self.position, self._before.states.pop())
        with self._lock:
            self._threads -= 1
            if self._threads == 0:
                self._remove()

    def remove(self) -> None:
        """Take the layer out of the table."""
        with self._lock:
            self._remove()

    def _remove(self) -> None:
        remove_all(self._numbers)
        self._numbers.clear()


class _Before(threading.local):
    """Whether a layer was in force on this thread before each of its entries."""

    def __init__(self) -> None:
        self.states: list[bool] = []
