"""What the tensor provider tells of a device: missing kernels, fallbacks, declared capabilities.

The active provider may have a module ``library`` or ``backends`` with ``fallback_counts(device)`` and
``lacks(device)``; a provider without it is taken to have neither fallbacks nor declarations.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import taeda_registry
from taeda_registry.discovery import installed
from taeda_registry.selection import choose
from taeda_registry.slots import tensor
from taeda_registry.table import FIRST_PARTY
from taeda_testing.conformance.operators import declared
from taeda_testing.record import add_records

_LIBRARIES = (".so", ".dylib", ".dll")
_NO_KERNEL = re.compile(r"(?:^|\s)([\w.]+): backend '[^']*' has no kernel")


def missing_kernel(error: BaseException | None) -> str | None:
    """The operator whose kernel an error says is missing, looking through chained errors; else None."""
    while error is not None:
        if isinstance(error, NotImplementedError) and (found := _NO_KERNEL.search(str(error))):
            return _plain(found[1])
        error = error.__cause__ or error.__context__
    return None


def _plain(form: str) -> str:
    """The operator of a form: of ``add_`` and ``add.out`` it is ``add``; ``fill_`` has only this form."""
    name, known = form.partition(".")[0], declared()
    return name if name in known or name.rstrip("_") not in known else name.rstrip("_")


def load_autograd() -> dict[str, str]:
    """Loads the autograd provider that serves the tensor provider; what is lacking when there is none.

    The first-party one serves first-party tensors; for others it must have been chosen.
    """
    taeda_registry.resolve("tensor")
    ours = taeda_registry.active("tensor").name == FIRST_PARTY
    if not ours and choose("autograd").origin == "default":
        return _without_gradients("no autograd provider has been chosen for this tensor provider")
    try:
        taeda_registry.resolve("autograd")
    except taeda_registry.ProviderNotFoundError as error:
        return _without_gradients(str(error))
    return {}


def _without_gradients(reason: str) -> dict[str, str]:
    return {"gradients": reason, "higher-order": reason}


def require(device: str) -> None:
    """Makes sure that tensors can be made on a device, if need be by importing the plug-in that offers it.

    Raises:
        RuntimeError: they cannot; the cause is chained.
    """
    name = device.partition(":")[0]
    try:
        with suppress(Exception):
            tensor.empty(1, device=device)
            return
        for point in installed("taeda.backends"):
            if point.name == name:
                point.load()
        tensor.empty(1, device=device)
    except Exception as error:
        raise RuntimeError(f"run_backend: device {device!r} cannot be used: {error}") from error


def load(plugin: str) -> None:
    """Loads a plug-in that is not installed; the ``RECORDS`` of a module are added to those of the kit.

    Args:
        plugin: a compiled library's path, a Python file's path, or the name of a module.

    Raises:
        RuntimeError: it cannot be loaded; the cause is chained.
    """
    try:
        taeda_registry.resolve("tensor")
        found = os.path.abspath(plugin) if Path(plugin).suffix in _LIBRARIES else _module(plugin)
        if records := getattr(found, "RECORDS", ()):
            add_records(found.__name__, records)
        taker = getattr(getattr(tensor, "backends", None), "load", None)
        if taker is not None:
            taker(found)
    except (Exception, SystemExit) as error:
        text = f"plug-in {plugin!r} cannot be loaded: {type(error).__name__}: {error}"
        raise RuntimeError(text) from error


def _module(plugin: str) -> ModuleType:
    path = Path(plugin)
    if path.suffix != ".py":
        return importlib.import_module(plugin)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None, "a .py file has a loader"
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _library_function(name: str) -> Callable[..., Any] | None:
    for module in ("library", "backends"):
        if (found := getattr(getattr(tensor, module, None), name, None)) is not None:
            return found
    return None


def lacks(device: str) -> dict[str, str]:
    """Capabilities that the device's backend declares it lacks or has no function for, with reasons."""
    ask = _library_function("lacks")
    declared = dict(ask(device.partition(":")[0])) if ask is not None else {}
    return {**_without_function(device), **declared}


def _without_function(device: str) -> dict[str, str]:
    """Capabilities that a backend may leave out by having no function for them: asking for one says so."""
    asked: dict[str, Callable[[], Any]] = {
        "streams": lambda: tensor.Stream(device),
        "events": lambda: tensor.Event(device),
        "event-timing": lambda: tensor.Event(device, enable_timing=True),
        "pinned-memory": lambda: tensor.ones(1).pin_memory(device),
    }
    found = {}
    for name, ask in asked.items():
        try:
            ask()
        except (NotImplementedError, AttributeError) as error:
            found[name] = str(error)
        except Exception:
            continue  # it is there and broken, which its checks will say
    return found


def _fallbacks(device: str) -> dict[str, int]:
    ask = _library_function("fallback_counts")
    return dict(ask(device.partition(":")[0])) if ask is not None else {}


def has_kernel(device: str, name: str) -> bool:
    """Whether the backend has a kernel of its own for an operator; True when the provider cannot tell."""
    ask = _library_function("operators")
    found = [op for op in ask() if op.name.partition(".")[0] == name] if ask is not None else []
    found = [op for op in found if op.kind in ("structured", "direct")]
    return not found or any(device.partition(":")[0] in op.kernels() for op in found)


@contextmanager
def counted_fallbacks(device: str) -> Iterator[Callable[[], dict[str, int]]]:
    """Gives a function that returns the operators that fell back since the beginning, and how often."""
    before = _fallbacks(device)

    def since() -> dict[str, int]:
        now = _fallbacks(device)
        return {op: n - before.get(op, 0) for op, n in sorted(now.items()) if n > before.get(op, 0)}

    yield since
