"""Picklers of other modules (dill, cloudpickle) for what the standard one cannot write: tensors stay as they are."""

from __future__ import annotations

import copyreg
import io
import pickle
from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from taeda_tensor_core.checkpoint import torch_names
from taeda_tensor_core.checkpoint.write_torch import Pickler


@cache
def pickler_of(module: ModuleType | None) -> type[Pickler]:
    """Our pickler, which asks that of `module` for functions, classes and objects that it does not know itself.

    Raises:
        TypeError: The module has no class `Pickler` that derives from one of the standard module's.
    """
    if module is None or module is pickle:
        return Pickler
    other = getattr(module, "Pickler", None)
    if not (isinstance(other, type) and issubclass(other, (pickle.Pickler, pickle._Pickler))):  # type: ignore[attr-defined]
        raise TypeError(
            f"save: argument 'pickle_module' has no class Pickler of pickle's kind, found {module!r}"
        )
    return _merged(other) if issubclass(other, pickle._Pickler) else _asking(other)  # type: ignore[attr-defined]


def _merged(other: type) -> type[Pickler]:
    """A pickler written in Python (dill's): both classes in one."""
    table = type(other.dispatch)(other.dispatch)  # type: ignore[attr-defined]
    for kind in (type, type(lambda: None), type(len)):
        table[kind] = _known_or(table[kind]) if kind in table else Pickler.save_global
    return type(other.__name__, (Pickler, other), {"dispatch": table})


def _known_or(save: Callable[..., None]) -> Callable[..., None]:
    def save_known(self: Any, obj: Any, *rest: Any, **named: Any) -> None:
        if torch_names.foreign_name(obj) is not None:
            return self.save_global(obj)
        return save(self, obj, *rest, **named)

    return save_known


def _asking(other: type) -> type[Pickler]:
    """A pickler on the compiled one (cloudpickle's): it says how to reduce an object, ours writes."""

    class Asking(Pickler):
        def __init__(self, file: io.BytesIO, protocol: int) -> None:
            super().__init__(file, protocol)
            self._other = other(io.BytesIO(), protocol)
            self.dispatch_table = getattr(self._other, "dispatch_table", copyreg.dispatch_table)

        def reducer_override(self, obj: Any) -> Any:
            found = super().reducer_override(obj)
            asked = getattr(self._other, "reducer_override", None)
            if found is not NotImplemented or asked is None or torch_names.foreign_name(obj) is not None:
                return found
            if isinstance(obj, ModuleType):
                return import_module, (obj.__name__,)
            return asked(obj)

    return Asking
