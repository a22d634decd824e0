"""Python code that threads take turns at where the interpreter has no lock: free-threaded Pythons.

Statements without a call belong together under the interpreter's lock, since no thread is let in between them. Where
there is none, `in_turn` has the threads wait for each other. (Native code: Note [Turns].)
"""

from __future__ import annotations

import functools
import sys
import threading

from taeda_registry.forks import held_at_fork

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeVar

    _F = TypeVar("_F", bound=Callable[..., object])
    _K = TypeVar("_K")
    _V = TypeVar("_V")

#: Whether several threads may run Python code at once.
free_threaded: bool = not getattr(sys, "_is_gil_enabled", lambda: True)()
_turns = held_at_fork(threading.RLock())


def in_turn(function: _F) -> _F:
    """The function, which one thread at a time runs; itself where the interpreter's lock sees to that.

    All functions of this kind share one lock, so that one may call another.

    Example:
        >>> @in_turn
        ... def rename(names: dict, old: str, new: str) -> None:
        ...     names[new] = names.pop(old)
    """
    if not free_threaded:
        return function

    @functools.wraps(function)
    def taking_turns(*args: object, **kwargs: object) -> object:
        with _turns:
            return function(*args, **kwargs)

    return taking_turns  # type: ignore[return-value]


@in_turn
def entries(mapping: Mapping[_K, _V]) -> list[tuple[_K, _V]]:
    """What a dictionary holds at one moment, whichever threads add to it and take from it.

    Where Python has no lock, an OrderedDict bears no change while it is read: those that change it take turns, too.

    Example:
        >>> entries({"a": 1})
        [('a', 1)]
    """
    while True:
        try:
            return list(mapping.items())
        except (RuntimeError, KeyError):  # it was changed meanwhile; an ordered one says so by either
            continue
