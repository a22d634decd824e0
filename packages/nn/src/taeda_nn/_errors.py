"""Names the module in which an exception arose, at no cost while nothing fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from taeda_nn.modules.module import Module


def not_tensors(name: str, **values: object) -> TypeError:
    """The error for arguments of which one turned out not to be a tensor; looked for only when something failed."""
    from taeda_nn._bind import Tensor

    for argument, value in values.items():
        if not isinstance(value, Tensor):
            return TypeError(f"{name}: argument {argument!r} must be a Tensor, found {type(value).__name__}")
    return TypeError(f"{name}: expected tensors")


class _Place(str):
    """The text of a note, together with the outermost module it is told from."""

    owner: Module
    path: str
    kind: str

    @classmethod
    def make(cls, owner: Module, path: str, kind: str) -> _Place:
        place = cls(f"in module {path} ({kind})" if path else f"in module {kind}")
        place.owner, place.path, place.kind = owner, path, kind
        return place


def _path_of(inner: Module, outer: Module) -> str | None:
    for name, module in outer.named_modules(remove_duplicate=False):
        if module is inner:
            return name
    return None


def note_module(error: BaseException, module: Module) -> None:
    """Adds the note "in module head.fc1 (Linear)", or lengthens the path of the note that a child added."""
    notes = getattr(error, "__notes__", None)
    for index, note in enumerate(notes or ()):
        if isinstance(note, _Place):
            name = _path_of(note.owner, module)
            if name:
                path = f"{name}.{note.path}" if note.path else name
                notes[index] = _Place.make(module, path, note.kind)
            return
    error.add_note(_Place.make(module, "", type(module).__name__))
