"""Devices that plug-ins offer: finding and loading them, and what happens where they lack an operator.

A distribution offers a device by an entry point of the group ``taeda.backends`` whose name is the device's. Nothing
is looked up before somebody asks for a device that is not known, and a plug-in that fails breaks only its device.
"""

from __future__ import annotations

import atexit
import os
import sys
import types
from typing import Any

from taeda_tensor_core import _C
from taeda_tensor_core.sharing import export_memory, import_memory

__all__ = [
    "capabilities",
    "device_count",
    "export_memory",
    "failures",
    "fallback",
    "fallback_counts",
    "fallback_summary",
    "import_memory",
    "lacks",
    "load",
    "names",
    "properties",
    "reset_fallback_counts",
]

GROUP = "taeda.backends"
#: Where a module that is named by an entry point keeps its plug-in: the path of a library, or a capsule.
ATTRIBUTE = "__taeda_plugin__"

#: Settings that programs make for one vendor's library of layers; no operator of this package reads them.
cudnn = types.SimpleNamespace(enabled=True, benchmark=False, deterministic=False, allow_tf32=True)

_failures: dict[str, BaseException] = {}
_remedies: dict[str, str] = {}
_watched: list[str] = []


def __getattr__(name: str) -> object:
    if name in _C._reserved_devices():
        from taeda_tensor_core.device_module import get_device_module

        return get_device_module(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def names() -> list[str]:
    """Devices that are there now; others may be found when they are asked for."""
    return _C._backend_names()


def load(plugin: Any) -> None:
    """Load a plug-in.

    Args:
        plugin: Path of a shared library that exports ``taeda_plugin_describe``; a capsule named "taeda.plugin"; a
            module that has one of these as ``__taeda_plugin__``, or that registered everything while it was
            imported; or a function that gives any of these.

    Raises:
        RuntimeError: It cannot be loaded, or was built for another version of the C ABI; the text says which and what
            helps.

    Example:
        >>> taeda.backends.load("build/libmydev.so")
        >>> taeda.ones(2, device="mydev")
    """
    if callable(plugin):
        plugin = plugin()
    if isinstance(plugin, types.ModuleType):
        plugin = getattr(plugin, ATTRIBUTE, None)
    if plugin is None:
        return
    if isinstance(plugin, (str, os.PathLike)):
        _C._load_plugin(os.fspath(plugin))
    elif type(plugin).__name__ == "PyCapsule":
        _C._start_plugin(plugin)
    else:
        raise TypeError(
            f"load: expected a path, a capsule, a module or a function, found {type(plugin).__name__}"
        )


def failures() -> dict[str, BaseException]:
    """Devices whose plug-in failed when they were asked for, with what went wrong."""
    there = names()
    return {name: error for name, error in _failures.items() if name not in there}


def _discover(name: str) -> None:
    """Called by the core with the name of a device it does not know."""
    if name in _failures:
        raise _unusable(name) from _failures[name]
    from taeda_registry.discovery import installed

    points = installed(GROUP)
    offering = [point for point in points if point.name == name]
    if not offering:
        if points:
            raise _unknown(name, points)
        return
    before = names()
    try:
        if len(offering) > 1:
            owners = ", ".join(sorted(_distribution(point) for point in offering))
            raise RuntimeError(
                f"several distributions offer it: {owners}; try: pip uninstall, for all but one of them"
            )
        load(offering[0].load())
        if name not in names():
            raise RuntimeError(
                f"{_distribution(offering[0])} was loaded and registered no device of that name"
            )
    except (Exception, SystemExit) as error:
        # What was registered before the failure would be half a device. A plug-in may not end the program either.
        for made in set(names()) - set(before):
            _C._withdraw_backend(made)
        _failures[name] = error
        _remedies[name] = "" if "try: pip" in str(error) else _remedy(offering[0])
        raise _unusable(name) from error


def _distribution(point: Any) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else point.value


def _remedy(point: Any) -> str:
    return (
        f"; try: pip install --upgrade --force-reinstall {point.dist.name}" if point.dist is not None else ""
    )


def _unknown(name: str, points: list[Any]) -> RuntimeError:
    offers = ", ".join(sorted(f"{point.name} ({_distribution(point)})" for point in points))
    return RuntimeError(
        f"device: unknown device {name!r}; known devices: {', '.join(names())}; installed plug-ins offer: {offers}"
    )


def _unusable(name: str) -> RuntimeError:
    cause = _failures[name]
    return RuntimeError(
        f"device {name!r} cannot be used, its plug-in failed: {type(cause).__name__}: {cause}{_remedies[name]}"
    )


def fallback(device: str, policy: str) -> None:
    """Choose what happens to operators that a device has no kernel of.

    Args:
        device: Device type.
        policy: "error" (the default) raises NotImplementedError; "cpu" copies the arguments to the cpu, computes there
            and copies the results back. Each such call is counted; a line on stderr sums them up when the program ends.

    Raises:
        ValueError: There is no such policy, or the device is the cpu.

    Example:
        >>> taeda.backends.fallback("mydev", "cpu")
    """
    if policy not in ("error", "cpu"):
        raise ValueError(f"fallback: argument 'policy' must be 'error' or 'cpu', found {policy!r}")
    _C._set_fallback(device, policy == "cpu")
    name = device.partition(":")[0]
    if policy == "cpu" and name not in _watched:
        if not _watched:
            atexit.register(_report)
        _watched.append(name)


def fallback_counts(device: str) -> dict[str, int]:
    """How often each operator was computed on the cpu because the device has no kernel of it."""
    return _C._fallback_counts(device)


def reset_fallback_counts(device: str) -> None:
    """Count from zero again."""
    _C._reset_fallback_counts(device)


def fallback_summary(device: str) -> str:
    """The counts in one line, the most frequent first; empty when nothing fell back."""
    counts = sorted(fallback_counts(device).items(), key=lambda item: (-item[1], item[0]))
    if not counts:
        return ""
    listed = ", ".join(f"{name} {count}" for name, count in counts)
    return f"taeda: {sum(c for _, c in counts)} call(s) on device {device!r} fell back to the cpu: {listed}"


def _report() -> None:
    for name in _watched:
        if line := fallback_summary(name):
            print(line, file=sys.stderr)


def lacks(device: str) -> dict[str, str]:
    """Capabilities that a device's backend declares missing, with reasons."""
    return _C._backend_lacks(device)


def capabilities(device: str) -> dict[str, bool]:
    """Which optional parts a device's backend has, as far as the core can see.

    Args:
        device: Device type.

    Returns: Truth values under "host-read" (the host may read device memory), "streams", "events", "event-timing",
        "pinned-memory" and "sharing" (of memory between processes).

    Example:
        >>> taeda.backends.capabilities("cpu")["host-read"]
        True
    """
    return _C._backend_capabilities(device)


def device_count(device: str) -> int:
    """How many devices of a type there are."""
    return _C._device_count(device)


def properties(device: Any) -> dict[str, Any]:
    """Facts about one device: name, total_memory, free_memory, alignment, processors and what its backend adds.

    Raises:
        ValueError: What its backend adds is no JSON object.
    """
    facts = _C._device_properties(device)
    more = facts.pop("more")
    if more:
        facts.update(_object_of(more, device))
    return facts


def _object_of(text: str, device: Any) -> dict[str, Any]:
    import json

    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        found = error
    if not isinstance(found, dict):
        raise ValueError(
            f"properties: the backend of device '{device}' must add a JSON object or nothing, found {text!r}"
        )
    return found
