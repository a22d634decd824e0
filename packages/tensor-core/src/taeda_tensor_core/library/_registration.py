"""Handles of what stands in the operator table, and the blocks that collect them."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from taeda_tensor_core import _C, _plugins


class _Collected:
    """What one thread has registered during a block of `collecting()`."""

    def __init__(self) -> None:
        self._made: list[Any] = []

    def undo(self) -> None:
        """Take it all away, the last first; what is gone already stays so."""
        while self._made:
            self._made.pop().remove()


class _Open(threading.local):
    """The blocks that this thread is in, the innermost last."""

    def __init__(self) -> None:
        self.blocks: list[_Collected] = []


_open = _Open()


def note(made: Any) -> None:
    if _open.blocks:
        _open.blocks[-1]._made.append(made)


@contextlib.contextmanager
def collecting() -> Iterator[_Collected]:
    """Collects registrations that this thread makes through this module, for a start that may fail half-way.

    Of nested blocks the innermost has them: what another plug-in has registered well is not the outer one's to undo.
    """
    collected = _Collected()
    _open.blocks.append(collected)
    try:
        yield collected
    finally:
        _open.blocks.remove(collected)


class Registration:
    """Something that stands in the operator table until `remove()`; also a context manager."""

    def __init__(self, text: str, undo: Callable[[], None]) -> None:
        self._text, self._undo = text, undo
        self.active = True
        note(self)

    def remove(self) -> None:
        """Take it away; a second call does nothing. Calls that are running on other threads finish as they began."""
        if self.active:
            self.active = False
            self._undo()

    def __enter__(self) -> Registration:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def __repr__(self) -> str:
        return f"<registration {self._text}{'' if self.active else ' (removed)'}>"


class Kernel(Registration):
    """The registration of one function as the kernel of one or several operators. Calling it calls the function."""

    def __init__(self, function: Callable, text: str, numbers: Iterable[int]) -> None:
        super().__init__(text, lambda: remove_all(numbers))
        self.function = function
        functools.update_wrapper(self, function, updated=())

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def remove_all(numbers: Iterable[int]) -> None:
    for number in numbers:
        _C._remove_registration(number)


def owner_text(function: Callable, library: str) -> str:
    code = getattr(function, "__code__", None)
    place = f" ({code.co_filename}:{code.co_firstlineno})" if code else ""
    return f"{library}{place}"


def add_kernel(
    names: Sequence[str],
    device: str,
    function: Callable,
    library: str,
    replace: bool,
    schema: str | None = None,
    recorded: bool = False,
) -> Kernel:
    if isinstance(function, Kernel):
        function = function.function  # decorators may stand above one another
    numbers: list[int] = []
    try:
        for name in names:
            owner = owner_text(function, library)
            numbers.append(_C._add_kernel(name, device, function, owner, replace, schema, recorded))
    except BaseException as error:
        remove_all(numbers)
        # Programs that bring kernels for several devices run where one of them cannot be used.
        if not isinstance(error, RuntimeError) or device not in _plugins.failed():
            raise
        return Kernel(function, f"kernel of {', '.join(names)} on {device}, which cannot be used here", [])
    return Kernel(function, f"kernel of {', '.join(names)} on {device}", numbers)
