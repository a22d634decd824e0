"""Tensors of one process in another: handles of device memory, as bytes; what is to be known of storages."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from taeda_tensor_core import _C
from taeda_tensor_core._C import Tensor
from taeda_tensor_core._copies import (
    Memory,
    reduced_as_pytorch,
    reduced_over_memory,
    shown_over,
    storage_bytes,
    wraps,
)

__all__ = [
    "Memory",
    "at_end",
    "collectors",
    "export_memory",
    "import_memory",
    "reduced_as_pytorch",
    "reduced_over_memory",
    "shown_over",
    "storage_bytes",
    "storage_ended",
    "storage_facts",
    "watch_storage",
    "wraps",
]

#: What lets go of memory that was sent to other processes, as far as none of them holds it; for who sends memory.
collectors: list[Callable[[], object]] = []

#: Stands before each handle; the number is that of the layout of the rest.
_MARK = b"taeda memory 1\n"


def at_end(note: Callable[[Any], object], value: Any, act: Callable[[], object] | None = None) -> object:
    """An object at whose end ``note(value)`` is called, then ``act()`` if there is one.

    Unlike in a ``__del__``, no interrupt is lost there: `note` is to be a function written in C, such as a deque's
    ``append``, to which no signal comes; an interrupt of ``act()`` is raised where the program was.

    Example:
        >>> ended = collections.deque()
        >>> owner.end = at_end(ended.append, owner.place, settle)
    """
    return _C._at_end(note, value, act)


def storage_facts(tensor: Tensor) -> tuple[int, int, int]:
    """Address and bytes of the memory that a tensor shows a part of, and how many hold it: tensors, arrays, buffers."""
    return tensor._storage_facts()[:3]


def watch_storage(storage: Any) -> tuple[int, object]:
    """A number that no other storage ever has, and what `storage_ended` tells of its end; does not hold the storage."""
    return _C._watch_storage(getattr(storage, "_untyped_storage", storage)._tensor)


def storage_ended(watch: object) -> bool:
    """Whether the storage of a watch has ended."""
    return _C._storage_ended(watch)


def export_memory(tensor: Tensor) -> bytes:
    """A handle by which another process of this machine sees the same elements.

    All work of the device is done before. The tensor must live until the other process has let go of what it made:
    the handle keeps nothing. Both see what either writes.

    Args:
        tensor: On a device whose backend shares memory (``taeda.backends.capabilities(device)["sharing"]``).

    Returns: Bytes to send by a pipe or a file.

    Raises:
        NotImplementedError: The device cannot share its memory.

    Example:
        >>> handle = taeda.backends.export_memory(x)
    """
    nbytes, description = _C._memory_export(tensor)
    facts = {
        "device": str(tensor.device),
        "dtype": str(tensor.dtype).rpartition(".")[2],
        "sizes": list(tensor.shape),
        "strides": list(tensor.stride()),
        "offset": tensor.storage_offset(),
        "nbytes": nbytes,
    }
    return _MARK + json.dumps(facts).encode() + b"\n" + description


def import_memory(handle: bytes, lease: object = None) -> Tensor:
    """The tensor that a handle of `export_memory` stands for; its memory is that of the process that made it.

    Args:
        handle: Bytes from a process that is trusted: they name memory.
        lease: Is kept until the memory is used no more, and then let go: by its end others can know that.

    Raises:
        ValueError: These are no such bytes, or the tensor would leave its memory.
        NotImplementedError: The device cannot share its memory.

    Example:
        >>> y = taeda.backends.import_memory(handle)
    """
    facts, description = _read(handle)
    try:
        layout = tuple(facts["sizes"]), tuple(facts["strides"]), facts["offset"], facts["nbytes"]
        device, dtype = _C.device(facts["device"]), getattr(_C, facts["dtype"])
        return _C._memory_import(device, dtype, *layout, description, lease)
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise _strange(f"its facts are {facts}") from error


def _read(handle: Any) -> tuple[dict[str, Any], bytes]:
    if not isinstance(handle, (bytes, bytearray, memoryview)):
        raise TypeError(f"import_memory: argument 'handle' must be bytes, found {type(handle).__name__}")
    mark, rest = bytes(handle[: len(_MARK)]), bytes(handle[len(_MARK) :])
    text, end, description = rest.partition(b"\n")
    if mark != _MARK or not end:
        raise _strange(f"it begins with {bytes(handle[:20])!r}")
    try:
        facts = json.loads(text)
    except ValueError as error:
        raise _strange("its facts cannot be read") from error
    if not isinstance(facts, dict):
        raise _strange(f"its facts are {facts!r}")
    return facts, description


def _strange(found: str) -> ValueError:
    return ValueError(f"import_memory: argument 'handle' is not what export_memory gives: {found}")
