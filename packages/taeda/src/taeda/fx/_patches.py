"""Names and attributes that stand for something else while a program is traced."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from taeda_registry.slots import nn, tensor

if TYPE_CHECKING:
    from collections.abc import Callable

_ABSENT: Any = object()


class Patcher:
    """Changes items of dicts and attributes of classes, and takes all back at its end, the last one first."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []
        self.visited: set[int] = set()

    def patch(self, frame_dict: dict[str, Any], name: str, new_fn: Any) -> None:
        """Set an item of a dict."""
        before = frame_dict.get(name, _ABSENT)

        def undo() -> None:
            if before is _ABSENT:
                frame_dict.pop(name, None)
            else:
                frame_dict[name] = before

        self._undo.append(undo)
        frame_dict[name] = new_fn

    def patch_method(self, cls: type, name: str, new_fn: Any, deduplicate: bool = True) -> None:
        """Set an attribute of a class.

        Args:
            cls, name: Which. ``__getattr__`` of `Module` answers for members, wherever modules keep them.
            new_fn: What it is to be.
            deduplicate: Leave alone what was set before with this argument.
        """
        if getattr(getattr(cls, name, None), "_patched_once", False):
            return
        if deduplicate:
            new_fn._patched_once = True
        if cls is nn.Module and name == "__getattr__":
            name, new_fn = "__getattribute__", _reading(cls.__getattribute__, new_fn)
        before = cls.__dict__.get(name, _ABSENT)

        def undo() -> None:
            if before is not _ABSENT:
                setattr(cls, name, before)
            elif name in cls.__dict__:
                delattr(cls, name)
            if cls is nn.Module and name == "__getattribute__":
                _read_quickly()

        self._undo.append(undo)
        setattr(cls, name, new_fn)

    def visit_once(self, thing: Any) -> bool:
        """Whether this is the first time that something is shown."""
        first = id(thing) not in self.visited
        self.visited.add(id(thing))
        return first

    def __enter__(self) -> Patcher:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._take_back()
        except BaseException:  # Ctrl-C in the midst of it
            self._take_back()
            raise
        self.visited.clear()

    def _take_back(self) -> None:
        while self._undo:
            self._undo[-1]()  # may be done twice
            del self._undo[-1]


def _read_quickly() -> None:
    """Let attributes of modules be read without their lookup again, where the provider has a way."""
    have_lookup = getattr(sys.modules.get(nn.Module.__module__), "have_lookup", None)
    if have_lookup is not None:
        have_lookup(nn.Module, nn.Module)


def _reading(read: Any, member: Any) -> Any:
    """How attributes of modules are read where `member` is asked for those that are members."""

    def patched(module: Any, name: str) -> Any:
        value = read(module, name)
        return member(module, name) if isinstance(value, (tensor.Tensor, nn.Module)) else value

    return patched
