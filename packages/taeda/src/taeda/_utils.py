"""Helpers that programs import although their home is private: indices of devices, tensors from storages, buckets."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any, NoReturn

import taeda

__all__: list[str] = []

#: Pickles name what stands below it, such as `torch.channels_last`.
torch = taeda


def __getattr__(name: str) -> Any:
    """What makes tensors of the parts that pickles of PyTorch and its files hold."""
    # Asking taeda brings the graph, which leaves need.
    found = taeda.serialization._maker(f"torch._utils.{name}")
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found


def is_compiling() -> bool:
    """False: programs run as they are."""
    return taeda.compiler.is_compiling()


def _import_dotted_name(name: str) -> Any:
    """What a name with dots leads to from the module that is its first part."""
    head, *parts = name.split(".")
    found: Any = import_module(head)
    for part in parts:
        found = getattr(found, part)
    return found


def _element_size(dtype: Any) -> int:
    """Bytes of one element.

    Raises:
        RuntimeError: No dtype.
    """
    if not isinstance(dtype, taeda.dtype):
        raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
    return dtype.itemsize


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index of a device, its name or number; that of the current one where it has none and `optional` is set.

    Raises:
        ValueError: The cpu without `allow_cpu`, or no index.
    """
    if isinstance(device, int) and not isinstance(device, bool):
        return device
    if device is None and optional:
        return taeda.accelerator.current_device_index() if taeda.accelerator.is_available() else 0
    given = taeda.device(device) if isinstance(device, str) else device
    if isinstance(given, taeda.device):
        if given.type == "cpu":
            if allow_cpu:
                return -1
            raise ValueError(f"Expected a non cpu device, but got: {device}")
        if given.index is not None:
            return given.index
        if optional:
            return taeda.get_device_module(given).current_device()
    raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")


def _get_all_device_indices() -> list[int]:
    """Numbers of the accelerator's devices."""
    return list(range(taeda.accelerator.device_count()))


def _get_available_device_type() -> str | None:
    """The accelerator's kind; None where there is none."""
    return taeda.accelerator.current_accelerator().type if taeda.accelerator.is_available() else None


def _get_device_module(device_type: str) -> Any:
    """The module of a kind of device.

    Raises:
        RuntimeError: There is no such kind.
    """
    return taeda.get_device_module(device_type)


def _flatten_dense_tensors(tensors: Iterable[Any]) -> Any:
    """All elements one after the other."""
    return taeda.cat([tensor.reshape(-1) for tensor in tensors])


def _unflatten_dense_tensors(flat: Any, tensors: Sequence[Any]) -> tuple[Any, ...]:
    """Views of a flat tensor in the shapes of others."""
    parts = flat.split([tensor.numel() for tensor in tensors])
    return tuple(part.view_as(tensor) for part, tensor in zip(parts, tensors, strict=True))


def _take_tensors(tensors: Iterable[Any], size_limit: int) -> Iterator[list[Any]]:
    """Tensors of one type in groups of at most so many bytes."""
    groups: dict[str, tuple[list[Any], int]] = {}
    for tensor in tensors:
        kind, size = tensor.type(), tensor.numel() * tensor.element_size()
        group, held = groups.get(kind, ([], 0))
        if group and held + size > size_limit:
            yield group
            group, held = [], 0
        groups[kind] = ([*group, tensor], held + size)
    yield from (group for group, _ in groups.values())


def _reorder_tensors_as(tensors: Iterable[Any], ordered_tensors: Iterable[Any]) -> tuple[Any, ...]:
    """Tensors that were grouped by their type, in the order of types that others have."""
    groups: dict[str, list[Any]] = {}
    for tensor in tensors:
        groups.setdefault(tensor.type(), []).append(tensor)
    parts = {kind: iter(group) for kind, group in groups.items()}
    return tuple(next(parts[tensor.type()]) for tensor in ordered_tensors)


class ExceptionWrapper:
    """An exception on its way to another thread or process, with the text of where it came from.

    Args:
        exc_info: As `sys.exc_info` gives it; None for the exception that is being handled.
        where: Place, as texts name it.
    """

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        found = sys.exc_info() if exc_info is None else exc_info
        self.exc_type, self.where = found[0], where
        self.exc_msg = "".join(traceback.format_exception(*found))

    def reraise(self) -> NoReturn:
        """Raises an exception of the same class, whose text has the place; a RuntimeError if it takes no text alone."""
        text = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            raise KeyError(_Shown(text))
        if getattr(self.exc_type, "message", None):
            raise self.exc_type(message=text)
        try:
            made = self.exc_type(text)
        except Exception:
            raise RuntimeError(text) from None
        raise made


class _Shown(str):
    """A key whose text shows line by line."""

    __slots__ = ()
    __repr__ = str.__str__


KeyErrorMessage = _Shown


class classproperty:
    """A property of a class."""

    def __init__(self, func: Callable[[Any], Any]) -> None:
        self.func = func

    def __get__(self, instance: object, owner: Any = None) -> Any:
        return self.func(owner if owner is not None else type(instance))
