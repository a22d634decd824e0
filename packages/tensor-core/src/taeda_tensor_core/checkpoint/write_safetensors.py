"""Writing a checkpoint: naming the tensors of a nested object, storing shared memory once, laying out the file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import taeda_tensor_core as tc
from taeda_tensor_core.checkpoint.common import (
    DTYPES,
    MAX_DEPTH,
    STRUCTURE,
    bounds,
    dtype_name,
)


@dataclass
class _Item:
    """A tensor to store, or a view of another item."""

    name: str
    tensor: Any
    node: dict[str, Any]  # its place in the structure; becomes a view when the tensor shares memory
    low: int = 0  # addresses: first byte, and one past the last
    high: int = 0

    def __post_init__(self) -> None:
        if self.tensor.numel():
            size = DTYPES[dtype_name(self.tensor)][1]
            low, high = bounds(list(self.tensor.shape), list(self.tensor.stride()))
            self.low = self.tensor.data_ptr() + low * size
            self.high = self.tensor.data_ptr() + (high + 1) * size


@dataclass
class Collector:
    """Walks a nested object: tensors get names and are taken out, the rest becomes JSON."""

    items: list[_Item] = field(default_factory=list)
    _names: set[str] = field(default_factory=lambda: {"__metadata__"})
    _seen: dict[Any, dict[str, Any]] = field(default_factory=dict)

    def describe(self, value: Any, name: str, depth: int = 0) -> dict[str, Any]:
        """The JSON form of ``value``, which stands at ``name`` inside ``depth`` containers."""
        if depth > MAX_DEPTH:
            raise ValueError(f"save: containers are nested deeper than {MAX_DEPTH} at '{name[:60]}...'")
        if isinstance(value, tc.Tensor):
            return self._add(value, name or "tensor")
        if isinstance(value, Mapping):
            pairs = [[_key(k, name), self.describe(v, _join(name, k), depth + 1)] for k, v in value.items()]
            return {"dict": pairs}
        if isinstance(value, (list, tuple)):
            kind = "list" if isinstance(value, list) else "tuple"
            return {kind: [self.describe(item, _join(name, i), depth + 1) for i, item in enumerate(value)]}
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, (bool, int, str)):
            return {"value": value}
        if isinstance(value, float):
            return {"float": float(value).hex() if math.isfinite(value) else repr(float(value))}
        raise TypeError(
            f"save: cannot store {type(value).__name__} at '{name}'; expected tensors, numbers, strings, None, "
            "and dicts, lists and tuples of them"
        )

    def _add(self, tensor: Any, name: str) -> dict[str, Any]:
        if dtype_name(tensor) not in DTYPES:
            raise TypeError(f"save: cannot store a tensor of dtype {tensor.dtype} at '{name}'")
        # The same elements under two names (tied weights) are one tensor again after loading.
        place = (tensor.data_ptr(), tuple(tensor.shape), tuple(tensor.stride()), dtype_name(tensor))
        if tensor.numel() and place in self._seen:
            return self._seen[place]
        node = {"tensor": self.unused(name)}
        self.items.append(_Item(node["tensor"], tensor.detach(), node))
        self._seen[place] = node
        return node

    def unused(self, name: str) -> str:
        """``name``, or a longer one where it is taken."""
        while name in self._names:
            name += "_"
        self._names.add(name)
        return name


def _join(name: str, key: Any) -> str:
    return f"{name}.{key}" if name else str(key)


def _key(key: Any, name: str) -> Any:
    if isinstance(key, (str, bool, int)):
        return key
    raise TypeError(f"save: dict keys must be str or int, found {type(key).__name__} at '{name}'")


def stored(collector: Collector) -> dict[str, Any]:
    """The tensors to write by name; items that overlap become views of one of them."""
    out = {item.name: item.tensor for item in collector.items}
    for group in _overlapping(collector.items):
        low, high = min(item.low for item in group), max(item.high for item in group)
        carrier = next(
            (i for i in group if (i.low, i.high) == (low, high) and i.tensor.is_contiguous()), None
        )
        name = carrier.name if carrier else collector.unused(f"{group[0].name}.shared")
        size = DTYPES[dtype_name(group[0].tensor)][1]
        if carrier is None:
            first = group[0].tensor
            offset = first.storage_offset() + (low - first.data_ptr()) // size
            out[name] = first.as_strided(((high - low) // size,), (1,), offset)
        for item in group:
            if item is not carrier:
                del out[item.name]
                shape, stride = list(item.tensor.shape), list(item.tensor.stride())
                item.node.clear()
                item.node["view"] = [name, (item.tensor.data_ptr() - low) // size, shape, stride]
    return out


def _overlapping(items: list[_Item]) -> list[list[_Item]]:
    """Groups of two or more items of one dtype that have elements in common."""
    done: list[list[_Item]] = []
    groups: list[list[_Item]] = []  # those that reach behind the begin of the item that is looked at
    ordered = sorted((item for item in items if item.high), key=lambda item: (item.low, -item.high))
    for item in ordered:
        joined, others = [item], []
        for group in groups:
            if all(other.high <= item.low for other in group):
                done.append(group)
            elif any(_shares(item, other) for other in group):
                joined = group + joined
            else:
                others.append(group)
        groups = [*others, joined]
    return [group for group in (*done, *groups) if len(group) > 1]


def _shares(a: _Item, b: _Item) -> bool:
    if a.low >= b.high or b.low >= a.high:
        return False
    if a.tensor.dtype != b.tensor.dtype or a.tensor.device != b.tensor.device:
        return False
    try:
        return bool(
            np.shares_memory(_Addresses(a.tensor).array(), _Addresses(b.tensor).array(), max_work=10_000)
        )
    except Exception as error:  # too hard to tell: storing them together is right in any case
        if type(error).__name__ != "TooHardError":
            raise
        return True


class _Addresses:
    """An array over a tensor's addresses, on whatever device; its elements are never looked at."""

    def __init__(self, tensor: Any) -> None:
        size = DTYPES[dtype_name(tensor)][1]
        self.__array_interface__ = {
            "data": (tensor.data_ptr(), True),
            "shape": tuple(tensor.shape),
            "strides": tuple(s * size for s in tensor.stride()),
            "typestr": f"|V{size}",
            "version": 3,
        }

    def array(self) -> np.ndarray:
        return np.asarray(self)


def encode(obj: Any, metadata: Mapping[str, str] | None = None) -> tuple[bytes, list[np.ndarray]]:
    """The head of the file, and the data of the tensors in their order."""
    collector = Collector()
    structure = collector.describe(obj, "")
    tensors = stored(collector)
    told = dict(metadata or {})
    if not _is_flat(obj, structure):
        told[STRUCTURE] = json.dumps(structure, separators=(",", ":"))
    header: dict[str, Any] = {"__metadata__": told} if told else {}
    chunks, at = [], 0
    for name, tensor in tensors.items():
        raw = _raw(tensor)
        code = DTYPES[dtype_name(tensor)][0]
        header[name] = {"dtype": code, "shape": list(tensor.shape), "data_offsets": [at, at + raw.size]}
        chunks.append(raw)
        at += raw.size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # data begins aligned
    return len(text).to_bytes(8, "little") + text, chunks


def _is_flat(obj: Any, structure: dict[str, Any]) -> bool:
    """Whether names and tensors say everything, so that any reader of safetensors sees the same."""
    if not isinstance(obj, Mapping):
        return False
    pairs = structure.get("dict", ())
    return "dict" in structure and all(
        isinstance(key, str) and node == {"tensor": key} for key, node in pairs
    )


def _raw(tensor: Any) -> np.ndarray:
    """The visible elements, row by row, as bytes."""
    plain = tensor.detach().cpu().contiguous()
    if plain.is_floating_point() and plain.element_size() < 4:  # NumPy lacks most of these
        plain = plain.view(tc.int16 if plain.element_size() == 2 else tc.uint8)
    return np.ascontiguousarray(plain.numpy()).reshape(-1).view(np.uint8)
