"""Classes of C++ extensions written against PyTorch: none can be loaded here."""

from __future__ import annotations

from typing import NoReturn

from taeda import _absent

_REASON = "extensions built against PyTorch cannot be loaded; plug-ins of taeda have their own guide"
load_library = _absent.function("taeda.classes.load_library", _REASON)
#: Paths of the libraries that were loaded.
loaded_libraries: set[str] = set()


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(f"module 'taeda.classes' has no attribute {name!r}: {_REASON}")
