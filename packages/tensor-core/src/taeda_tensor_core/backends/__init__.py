"""Devices that plug-ins offer: finding and loading them, and what happens where they lack an operator.

A distribution offers a device by an entry point of the group ``taeda.backends`` whose name is the device's. Nothing
is looked up before somebody asks for a device that is not known, and a plug-in that fails breaks only its device.
"""

from __future__ import annotations

import atexit
import sys
from typing import Any

from taeda_tensor_core import _C, _plugins
from taeda_tensor_core.sharing import export_memory, import_memory

__all__ = [
    "CompiledGraph",
    "Group",
    "Work",
    "capabilities",
    "compile_graph",
    "device_count",
    "disable_global_flags",
    "export_memory",
    "failures",
    "fallback",
    "fallback_counts",
    "fallback_summary",
    "flags_frozen",
    "import_memory",
    "lacks",
    "load",
    "names",
    "properties",
    "reset_fallback_counts",
    "retry",
    "to_layout",
]

#: The precision of float32 products that programs ask for; all of theirs is kept.
fp32_precision = "none"

_watched: list[str] = []


def __getattr__(name: str) -> object:
    if name in ("Group", "Work"):
        from taeda_tensor_core.backends import _groups

        return globals().setdefault(name, getattr(_groups, name))
    if name == "to_layout":
        from taeda_tensor_core import opaque

        return globals().setdefault(name, opaque.to_layout)
    if name in ("CompiledGraph", "compile_graph"):
        from taeda_tensor_core.backends import _graphs

        return globals().setdefault(name, getattr(_graphs, name))
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from taeda_tensor_core.backends import _settings

    if name in ("disable_global_flags", "flags_frozen"):
        return globals().setdefault(name, getattr(_settings, name))
    if name in _settings.DEVICE_INDEPENDENT:
        return _settings.settings(name)
    if name in _C._reserved_devices():
        return _settings.device_settings(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def names() -> list[str]:
    """Devices that are there now; others may be found when they are asked for."""
    return _C._backend_names()


def load(plugin: Any) -> None:
    """Load a plug-in; one that fails leaves nothing of itself behind.

    Args:
        plugin: Path of a shared library that exports ``taeda_plugin_describe``; a capsule named "taeda.plugin"; a
            module that has one of these as ``__taeda_plugin__``, or that registered everything while it was
            imported; or a function that gives any of these.

    Raises:
        RuntimeError: It cannot be loaded, or was built for another version of the C ABI; the text says which and what
            helps.

    Example:
        >>> taeda.backends.load("build/libmydev.so")  # doctest: +SKIP
        >>> taeda.ones(2, device="mydev")  # doctest: +SKIP
    """
    _plugins.load(plugin)


def failures() -> dict[str, BaseException]:
    """Devices whose plug-in failed when they were asked for, with what went wrong."""
    return _plugins.failed()


def retry(device: str) -> None:
    """Load the plug-in of a device again that failed, with its modules as they are now.

    A device that failed is tried again by itself once the installed distributions have changed.

    Args:
        device: Device type. Nothing happens when it works.

    Raises:
        RuntimeError: It fails again, or nobody offers such a device.

    Example:
        >>> taeda.backends.retry("mydev")  # doctest: +SKIP
    """
    name = device.partition(":")[0]
    _plugins.forget(name)
    _C._device_count(name)


def fallback(device: str, policy: str) -> None:
    """Choose what happens to operators that a device has no kernel of.

    Args:
        device: Device type.
        policy: "error" (the default) raises NotImplementedError; "cpu" copies the arguments to the cpu, computes there
            and copies the results back. Each such call is counted; a line on stderr sums them up when the program ends.

    Raises:
        ValueError: There is no such policy, or the device is the cpu.

    Example:
        >>> taeda.backends.fallback("mydev", "cpu")  # doctest: +SKIP
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
    for name in set(_watched) & set(names()):  # a device may have been removed
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
        "pinned-memory", "sharing" (of memory between processes) and "peer-copies" (without the host).

    Example:
        >>> taeda.backends.capabilities("cpu")["host-read"]
        True
    """
    return _C._backend_capabilities(device)


def device_count(device: str) -> int:
    """How many devices of a type there are."""
    return _C._device_count(device)


class Properties(dict[str, Any]):
    """Facts by their names, which are attributes too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the device has no property {name!r}; found {', '.join(self)}") from None


def properties(device: Any) -> Properties:
    """Facts about one device: name, total_memory, free_memory, alignment, processors and what its backend adds.

    They are attributes too, as PyTorch's: beside these `multi_processor_count` and, where a backend tells the
    capability, `major` and `minor`.

    Raises:
        ValueError: What its backend adds is no JSON object.
    """
    facts = Properties(_C._device_properties(device))
    more = facts.pop("more")
    if more:
        facts.update(_object_of(more, device))
    facts.setdefault("multi_processor_count", facts["processors"])
    capability = facts.get("capability")
    if isinstance(capability, list) and len(capability) == 2:
        facts.setdefault("major", capability[0])
        facts.setdefault("minor", capability[1])
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
