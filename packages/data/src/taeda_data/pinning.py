"""Copies batches to host memory from which a device copies without blocking."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from taeda_data.collate import mapping_like
from taeda_registry.slots import tensor


def pinner(pin_memory: bool, device: str) -> Callable[[Any], Any] | None:
    """What an epoch does with each batch; None where nothing is to be pinned, with a warning when that was asked for.

    Raises:
        NotImplementedError: the device that was named has no pinned memory.
        RuntimeError: there is no such device.
    """
    if not pin_memory:
        if device:
            _warn("argument 'pin_memory_device' has no effect without pin_memory=True")
        return None
    if device:
        _probe(device)
        return lambda batch: pin(batch, device)
    found = _accelerator()
    if found is None:
        _warn(
            "argument 'pin_memory' has no effect: no accelerator was found; pin_memory_device can name a device"
        )
        return None
    try:
        _probe(found)
    except NotImplementedError as error:
        _warn(f"argument 'pin_memory' has no effect: {error}")
        return None
    return lambda batch: pin(batch, found)


def _warn(text: str) -> None:
    warnings.warn(f"DataLoader: {text}", UserWarning, stacklevel=4)


def _accelerator() -> Any:
    """The device that programs compute on, None where the tensor provider knows of none."""
    part = getattr(tensor, "accelerator", None)
    return None if part is None else part.current_accelerator()


def _probe(device: Any) -> None:
    if not hasattr(tensor.Tensor, "pin_memory"):
        raise NotImplementedError("the tensor provider has no pinned memory")
    tensor.zeros(1).pin_memory(device)


def pin(data: Any, device: Any) -> Any:
    """The same data with its tensors in pinned memory, through nested containers.

    Tuples become lists. Other objects that have a method ``pin_memory`` are asked for a pinned copy of themselves;
    what remains is handed on.
    """
    if isinstance(data, tensor.Tensor):
        return data.pin_memory(device)
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        return mapping_like(data, {key: pin(value, device) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pin(value, device) for value in data))
    if isinstance(data, (list, tuple)) or (isinstance(data, Sequence) and not hasattr(data, "pin_memory")):
        return [pin(value, device) for value in data]
    return data.pin_memory() if hasattr(data, "pin_memory") else data
