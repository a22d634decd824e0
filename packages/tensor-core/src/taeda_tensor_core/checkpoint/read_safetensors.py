"""Reading a checkpoint: everything in the header is checked before the first tensor is made."""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import taeda_tensor_core as tc
from taeda_tensor_core._copies import shown_over
from taeda_tensor_core.checkpoint.common import (
    BY_CODE,
    DTYPES,
    MAX_DEPTH,
    MAX_HEADER,
    MAX_KEY,
    METADATA,
    STRUCTURE,
    Budget,
    CheckpointError,
    EmptyFileError,
    check_view,
    fail,
    is_count,
    shown,
)
from taeda_tensor_core.checkpoint.source import Source


def decode(source: Source, place: Callable[[Any], Any]) -> Any:
    """The object in a file.

    Args:
        source: the file.
        place: moves a tensor to where it belongs.
    """
    budget = Budget(source.size, 16)  # a tensor of one number is told in a hundred bytes of text
    header, body = _header(source, budget)
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        fail("__metadata__ must map names to strings")
    ranges = sorted((*_check_entry(name, entry, body), name) for name, entry in header.items())
    _check_gapless(ranges, body)
    structure = _structure(metadata, header, budget)
    first = source.size - body
    tensors = {
        name: place(_tensor(source, first + begin, end - begin, header[name])) for begin, end, name in ranges
    }
    if structure is None:
        return {name: tensors[name] for name in header}
    return _Builder(tensors).build(structure)


def _check_gapless(ranges: list[tuple[int, int, str]], body: int) -> None:
    at = 0
    for begin, end, name in ranges:
        if begin != at:
            fail(
                f"tensor {shown(name)} begins at byte {begin}, expected {at}: "
                "ranges must neither overlap nor leave gaps"
            )
        at = end
    if at != body:
        fail(f"{body - at} bytes after the last tensor")


def _header(source: Source, budget: Budget) -> tuple[dict[str, Any], int]:
    """The header, and how many bytes of data follow."""
    if source.size == 0:
        raise EmptyFileError("load: the file is empty")
    if source.size < 8:
        fail(f"expected at least 8 bytes, found {source.size}")
    length = int.from_bytes(source.part(0, 8), "little")
    if length > min(MAX_HEADER, source.size - 8):
        fail(f"the header claims {length} bytes in a file of {source.size}")
    return parse(source.part(8, length), "the header", budget), source.size - 8 - length


def parse(text: bytes, what: str, budget: Budget) -> dict[str, Any]:
    """A JSON object, after making sure that its parts, counted before they exist, are in proportion."""
    budget.take(2 * len(text) + 250 * text.count(b"{") + 64 * text.count(b"[") + 40 * text.count(b","))
    try:
        parsed = json.loads(text.decode("utf-8"), object_pairs_hook=_unique)
    except CheckpointError:
        raise
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"load: {what} is no JSON text: {error!s:.200}") from error
    return parsed if isinstance(parsed, dict) else fail(f"{what} is no JSON object")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    return out if len(out) == len(pairs) else fail("the header repeats a name")


def _check_entry(name: str, entry: Any, body: int) -> tuple[int, int]:
    """Byte range of a tensor after checking everything about it."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        fail(f"tensor {shown(name)} must have dtype, shape and data_offsets")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in BY_CODE:
        fail(f"tensor {shown(name)} has unknown dtype {shown(dtype)}")
    if not isinstance(shape, list) or len(shape) > 64 or not all(is_count(n) for n in shape):
        fail(f"tensor {shown(name)} has shape {shown(shape)}, expected a list of sizes")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(is_count(n) for n in offsets):
        fail(f"tensor {shown(name)} has data_offsets {shown(offsets)}, expected [begin, end]")
    begin, end = offsets
    needed = math.prod(shape) * DTYPES[BY_CODE[dtype]][1]
    if not begin <= end <= body or end - begin != needed or math.prod(n or 1 for n in shape) >= 1 << 62:
        fail(f"tensor {shown(name)} needs {needed} bytes, has the range {begin} to {end} of {body}")
    return begin, end


def _tensor(source: Source, at: int, size: int, entry: dict[str, Any]) -> Any:
    raw, dtype, shape = source.tensor(at, size), BY_CODE[entry["dtype"]], tuple(entry["shape"])
    if dtype == "bool" and (raw > 1).any():
        fail("a bool must be the byte 0 or 1")
    stride = tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))
    return shown_over(raw, getattr(tc, dtype), shape, stride, 0)


def _structure(metadata: dict[str, str], header: dict[str, Any], budget: Budget) -> dict[str, Any] | None:
    """The description of the nesting, checked against the tensors; None where there is none."""
    if STRUCTURE not in metadata:
        return None
    structure = parse(
        metadata[STRUCTURE].encode("utf-8", "surrogatepass"), "the structure in the header", budget
    )
    _Builder(header).build(structure, check_only=True)
    return structure


class _Builder:
    """Makes the nested object, or only checks that it could be made."""

    def __init__(self, tensors: dict[str, Any]) -> None:
        self._tensors = tensors
        self._views: dict[str, Any] = {}
        self._check_only = False

    def build(self, node: Any, check_only: bool = False) -> Any:
        self._check_only = check_only
        return self._build(node, 0)

    def _build(self, node: Any, depth: int) -> Any:
        if depth > MAX_DEPTH:
            fail(f"the structure in the header is nested too deeply, beyond {MAX_DEPTH}")
        if not isinstance(node, dict) or len(node) != 1:
            fail("the structure in the header is malformed")
        kind, value = next(iter(node.items()))
        if kind == "tensor" and isinstance(value, str) and value in self._tensors:
            return self._tensors[value]
        if kind == "value" and (value is None or isinstance(value, (bool, int, str))):
            return value
        if kind == "float" and isinstance(value, str):
            return _float(value)
        if kind in ("list", "tuple") and isinstance(value, list):
            items = [self._build(item, depth + 1) for item in value]
            return items if kind == "list" else tuple(items)
        if kind == "dict" and isinstance(value, list):
            return self._dict(value, depth + 1)
        if kind == "ordered" and isinstance(value, list) and len(value) == 2 and isinstance(value[0], list):
            return self._ordered(*value, depth + 1)
        if kind == "view":
            return self._view(value)
        return fail(f"the structure in the header has the unknown or malformed part {shown(kind)}")

    def _dict(self, pairs: list[Any], depth: int) -> dict[Any, Any]:
        out: dict[Any, Any] = {}
        for pair in pairs:
            if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], (str, int)):
                fail("a dict in the structure must be a list of [key, value]")
            if isinstance(pair[0], int) and abs(pair[0]) >= MAX_KEY:
                fail("a dict in the structure has an int of more than 64 bits for a key")
            if pair[0] in out:
                fail(f"a dict in the structure repeats the key {shown(pair[0])}")
            out[pair[0]] = self._build(pair[1], depth)
        return out

    def _ordered(self, pairs: list[Any], metadata: Any, depth: int) -> OrderedDict[Any, Any]:
        out = OrderedDict(self._dict(pairs, depth))
        if (versions := self._build(metadata, depth)) is not None:
            setattr(out, METADATA, versions)
        return out

    def _view(self, value: Any) -> Any:
        if not isinstance(value, list) or len(value) != 4 or not isinstance(value[0], str):
            fail("a view in the structure must be [tensor, offset, shape, stride]")
        name, offset, shape, stride = value
        if self._check_only:
            entry = self._tensors.get(name)
            if entry is None:
                fail(f"a view in the structure is of {shown(name)}, which is not there")
            check_view(offset, shape, stride, math.prod(entry["shape"]), DTYPES[BY_CODE[entry["dtype"]]][1])
            return None
        key = json.dumps(value)
        if key not in self._views:
            self._views[key] = self._tensors[name].as_strided(shape, stride, offset)
        return self._views[key]


def _float(text: str) -> float:
    try:
        return float(text) if text in ("inf", "-inf", "nan") else float.fromhex(text)
    except (ValueError, OverflowError) as error:
        raise CheckpointError(f"load: malformed number {shown(text)}") from error
