"""Reading a checkpoint: everything in the header is checked before the first tensor is made."""

from __future__ import annotations

import json
import math
from typing import IO, Any

import numpy as np

import taeda_tensor_core as tc
from taeda_tensor_core.checkpoint.common import (
    BY_CODE,
    DTYPES,
    MAX_HEADER,
    STRUCTURE,
    CheckpointError,
    bounds,
    fail,
)


def decode(file: IO[bytes], size: int) -> Any:
    """The object in a file of ``size`` bytes, which stands at its beginning."""
    header, body = _header(file, size)
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        fail("__metadata__ must map names to strings")
    ranges = sorted((*_check_entry(name, entry, body), name) for name, entry in header.items())
    at = 0
    for begin, end, name in ranges:
        if begin != at:
            fail(
                f"tensor '{name}' begins at byte {begin}, expected {at}: ranges must neither overlap nor leave gaps"
            )
        at = end
    if at != body:
        fail(f"{body - at} bytes after the last tensor")
    structure = _structure(metadata, header)
    tensors = {name: _tensor(file, name, header[name], end - begin) for begin, end, name in ranges}
    if structure is None:
        return {name: tensors[name] for name in header}
    return _Builder(tensors).build(structure)


def _header(file: IO[bytes], size: int) -> tuple[dict[str, Any], int]:
    """The header, and how many bytes of data follow."""
    if size < 8:
        fail(f"expected at least 8 bytes, found {size}")
    length = int.from_bytes(_exactly(file, 8), "little")
    if length > min(MAX_HEADER, size - 8):
        fail(f"the header claims {length} bytes in a file of {size}")
    return _json(_exactly(file, length), "the header"), size - 8 - length


def _json(text: bytes | str, what: str) -> dict[str, Any]:
    try:
        parsed = json.loads(
            text if isinstance(text, str) else text.decode("utf-8"), object_pairs_hook=_unique
        )
    except CheckpointError:
        raise
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"load: {what} is no JSON text: {error}") from error
    return parsed if isinstance(parsed, dict) else fail(f"{what} is no JSON object")


def _exactly(file: IO[bytes], count: int) -> bytes:
    data = file.read(count)
    return data if len(data) == count else fail(f"expected {count} more bytes, found {len(data)}")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    return out if len(out) == len(pairs) else fail("the header repeats a name")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62


def _check_entry(name: str, entry: Any, body: int) -> tuple[int, int]:
    """Byte range of a tensor after checking everything about it."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        fail(f"tensor '{name}' must have dtype, shape and data_offsets")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in BY_CODE:
        fail(f"tensor '{name}' has unknown dtype {dtype!r}")
    if not isinstance(shape, list) or len(shape) > 64 or not all(_is_count(n) for n in shape):
        fail(f"tensor '{name}' has shape {shape!r}, expected a list of sizes")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(_is_count(n) for n in offsets):
        fail(f"tensor '{name}' has data_offsets {offsets!r}, expected [begin, end]")
    begin, end = offsets
    needed = math.prod(shape) * DTYPES[BY_CODE[dtype]][1]
    if not begin <= end <= body or end - begin != needed or math.prod(n or 1 for n in shape) >= 1 << 62:
        fail(f"tensor '{name}' needs {needed} bytes, has the range {begin} to {end} of {body}")
    return begin, end


def _tensor(file: IO[bytes], name: str, entry: dict[str, Any], size: int) -> Any:
    raw = np.empty(size, np.uint8)
    if file.readinto(memoryview(raw)) != size:  # type: ignore[attr-defined]
        fail(f"tensor '{name}' is cut off")
    return from_bytes(raw, BY_CODE[entry["dtype"]]).reshape(entry["shape"])


def from_bytes(raw: np.ndarray, dtype: str) -> Any:
    """A 1-d tensor over an array of bytes, which it shares."""
    if dtype == "bool" and raw.size and raw.max() > 1:
        fail("a bool must be the byte 0 or 1")
    if dtype == "bfloat16":
        return tc.from_numpy(raw.view(np.int16)).view(tc.bfloat16)
    return tc.from_numpy(raw.view(np.dtype(dtype)))


def _structure(metadata: dict[str, str], header: dict[str, Any]) -> dict[str, Any] | None:
    """The description of the nesting, checked against the tensors; None where there is none."""
    if STRUCTURE not in metadata:
        return None
    structure = _json(metadata[STRUCTURE], "the structure in the header")
    try:
        _Builder(header).build(structure, check_only=True)
    except RecursionError as error:
        raise CheckpointError("load: the structure in the header is nested too deeply") from error
    return structure


class _Builder:
    """Makes the nested object, or only checks that it could be made."""

    def __init__(self, tensors: dict[str, Any]) -> None:
        self._tensors = tensors
        self._views: dict[str, Any] = {}
        self._check_only = False

    def build(self, node: Any, check_only: bool = False) -> Any:
        self._check_only = check_only
        return self._build(node)

    def _build(self, node: Any) -> Any:
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
            items = [self._build(item) for item in value]
            return items if kind == "list" else tuple(items)
        if kind == "dict" and isinstance(value, list):
            return self._dict(value)
        if kind == "view":
            return self._view(value)
        return fail(f"the structure in the header has the unknown or malformed part '{kind}'")

    def _dict(self, pairs: list[Any]) -> dict[Any, Any]:
        out: dict[Any, Any] = {}
        for pair in pairs:
            if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], (str, int)):
                fail("a dict in the structure must be a list of [key, value]")
            if pair[0] in out:
                fail(f"a dict in the structure repeats the key {pair[0]!r}")
            out[pair[0]] = self._build(pair[1])
        return out

    def _view(self, value: Any) -> Any:
        if not isinstance(value, list) or len(value) != 4 or not isinstance(value[0], str):
            fail("a view in the structure must be [tensor, offset, shape, stride]")
        name, offset, shape, stride = value
        if self._check_only:
            entry = self._tensors.get(name)
            elements = math.prod(entry["shape"]) if entry is not None else 0
            check_view(offset, shape, stride, elements)
            return None
        key = json.dumps(value)
        if key not in self._views:
            self._views[key] = self._tensors[name].as_strided(shape, stride, offset)
        return self._views[key]


def check_view(offset: Any, shape: Any, stride: Any, elements: int) -> None:
    """Fails unless a view stays within ``elements`` elements."""
    if (
        not isinstance(shape, (list, tuple))
        or not isinstance(stride, (list, tuple))
        or len(shape) != len(stride)
    ):
        fail(f"a view has shape {shape!r} and stride {stride!r}, expected two lists of one length")
    numbers = all(isinstance(s, int) and abs(s) < 1 << 62 for s in stride) and all(
        _is_count(n) for n in shape
    )
    if not numbers or not _is_count(offset) or len(shape) > 64:
        fail(f"a view has offset {offset!r}, shape {shape!r} and stride {stride!r}, expected ints")
    if 0 in shape:
        return
    low, high = bounds(list(shape), list(stride))
    if offset + low < 0 or offset + high >= elements:
        fail(f"a view reaches from element {offset + low} to {offset + high}, has {elements}")


def _float(text: str) -> float:
    try:
        return float(text) if text in ("inf", "-inf", "nan") else float.fromhex(text)
    except (ValueError, OverflowError) as error:
        raise CheckpointError(f"load: malformed number {text!r}") from error
