"""Checkpoints as safetensors files: data and a JSON header, no code, loaded entirely or not at all.

The format is public (https://github.com/huggingface/safetensors): eight bytes of header length, a JSON header that maps
names to dtype, shape and byte range, then the bytes. A flat dict of tensors is stored as exactly that, so that other
readers understand it; nesting, numbers and strings are described in the header's ``__metadata__``.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

import taeda_tensor_core as tc

_MAX_HEADER = 100_000_000
_STRUCTURE = "taeda.structure"
_NAMES = {
    "bool": "BOOL", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64", "uint8": "U8", "uint16": "U16",
    "uint32": "U32", "uint64": "U64", "float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64",
    "complex64": "C64", "complex128": "C128",
}  # fmt: skip
_DTYPES = {code: name for name, code in _NAMES.items()}
_ITEM_SIZES = {
    "BOOL": 1, "I8": 1, "I16": 2, "I32": 4, "I64": 8, "U8": 1, "U16": 2, "U32": 4, "U64": 8, "F16": 2, "BF16": 2,
    "F32": 4, "F64": 8, "C64": 8, "C128": 16,
}  # fmt: skip


class CheckpointError(ValueError):
    """A file that is no well-formed checkpoint; nothing of it was loaded."""


# --- saving ---


def _dtype_name(tensor: Any) -> str:
    return str(tensor.dtype).rpartition(".")[2]


def _raw(tensor: Any) -> np.ndarray:
    """The visible elements, row by row, as bytes."""
    plain = tensor.detach().cpu().contiguous()
    if _dtype_name(tensor) == "bfloat16":
        plain = plain.view(tc.int16)
    return np.ascontiguousarray(plain.numpy()).reshape(-1).view(np.uint8)


class _Collector:
    """Walks a nested object: tensors get names and are taken out, the rest becomes JSON."""

    def __init__(self) -> None:
        self.tensors: dict[str, Any] = {}
        self._seen: dict[tuple[Any, ...], str] = {}

    def describe(self, value: Any, name: str) -> Any:
        if isinstance(value, tc.Tensor):
            return {"tensor": self._add(value, name or "tensor")}
        if isinstance(value, Mapping):
            items = [
                [self._key(key, name), self.describe(item, self._join(name, key))]
                for key, item in value.items()
            ]
            return {"dict": items}
        if isinstance(value, (list, tuple)):
            kind = "list" if isinstance(value, list) else "tuple"
            return {kind: [self.describe(item, self._join(name, i)) for i, item in enumerate(value)]}
        if value is None or isinstance(value, (bool, int, str)):
            return {"value": value}
        if isinstance(value, float):
            return {"float": value.hex() if math.isfinite(value) else repr(value)}
        raise TypeError(
            f"save: cannot store {type(value).__name__} at '{name}'; expected tensors, numbers, strings, None, and dicts, "
            "lists and tuples of them"
        )

    @staticmethod
    def _join(name: str, key: Any) -> str:
        return f"{name}.{key}" if name else str(key)

    @staticmethod
    def _key(key: Any, name: str) -> Any:
        if isinstance(key, (str, bool, int)):
            return key
        raise TypeError(f"save: dict keys must be str or int, found {type(key).__name__} at '{name}'")

    def _add(self, tensor: Any, name: str) -> str:
        # The same elements under two names (tied weights) are stored once and shared again by load.
        place = (
            (tensor.data_ptr(), tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype)
            if tensor.numel()
            else (name,)
        )
        if place in self._seen:
            return self._seen[place]
        while name in self.tensors or name == "__metadata__":
            name += "_"
        self.tensors[name] = tensor
        self._seen[place] = name
        return name


def _is_flat(obj: Any, tensors: dict[str, Any]) -> bool:
    return (
        isinstance(obj, Mapping)
        and len(obj) == len(tensors)
        and all(isinstance(key, str) and obj[key] is tensors.get(key) for key in obj)
    )


def _encode(obj: Any) -> tuple[bytes, list[np.ndarray]]:
    collector = _Collector()
    structure = collector.describe(obj, "")
    header: dict[str, Any] = {}
    if not _is_flat(obj, collector.tensors):
        header["__metadata__"] = {_STRUCTURE: json.dumps(structure)}
    chunks, at = [], 0
    for name, tensor in collector.tensors.items():
        raw = _raw(tensor)
        header[name] = {
            "dtype": _NAMES[_dtype_name(tensor)],
            "shape": list(tensor.shape),
            "data_offsets": [at, at + raw.size],
        }
        chunks.append(raw)
        at += raw.size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # data begins aligned
    return len(text).to_bytes(8, "little") + text, chunks


def save(obj: Any, f: str | os.PathLike[str] | IO[bytes]) -> None:
    """Stores tensors, numbers, strings and containers of them.

    A view costs only its visible elements; tensors that are the same elements are stored once. A path is written to a
    temporary file first and then renamed, so that an interrupted save leaves the old file.

    Args:
        obj: a state dict or any nesting of dicts (str or int keys), lists and tuples.
        f: path or binary file.

    Raises:
        TypeError: something else inside ``obj``.

    Example:
        >>> save(model.state_dict(), "model.safetensors")
    """
    head, chunks = _encode(obj)
    if hasattr(f, "write"):
        for part in (head, *chunks):
            f.write(memoryview(part))  # type: ignore[union-attr]
        return
    path = Path(os.fspath(f))  # type: ignore[arg-type]
    handle, temporary = tempfile.mkstemp(dir=path.parent or ".", prefix=path.name + ".")
    try:
        with os.fdopen(handle, "wb") as file:
            for part in (head, *chunks):
                file.write(memoryview(part))
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


# --- loading ---


def _fail(message: str) -> Any:
    raise CheckpointError(f"load: {message}")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    return out if len(out) == len(pairs) else _fail("the header repeats a name")


def _header(data: memoryview) -> tuple[dict[str, Any], memoryview]:
    if len(data) < 8:
        _fail(f"expected at least 8 bytes, found {len(data)}")
    size = int.from_bytes(data[:8], "little")
    if size > min(_MAX_HEADER, len(data) - 8):
        _fail(f"the header claims {size} bytes in a file of {len(data)}")
    try:
        header = json.loads(bytes(data[8 : 8 + size]).decode("utf-8"), object_pairs_hook=_unique)
    except CheckpointError:
        raise
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"load: the header is no JSON text: {error}") from error
    if not isinstance(header, dict):
        _fail("the header is no JSON object")
    return header, data[8 + size :]


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62


def _check_entry(name: str, entry: Any, size: int) -> tuple[int, int]:
    """Byte range of a tensor after checking everything about it."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        _fail(f"tensor '{name}' must have dtype, shape and data_offsets")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        _fail(f"tensor '{name}' has unknown dtype {dtype!r}")
    if not isinstance(shape, list) or len(shape) > 64 or not all(_is_count(n) for n in shape):
        _fail(f"tensor '{name}' has shape {shape!r}, expected a list of sizes")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(_is_count(n) for n in offsets):
        _fail(f"tensor '{name}' has data_offsets {offsets!r}, expected [begin, end]")
    begin, end = offsets
    needed = math.prod(shape) * _ITEM_SIZES[dtype]
    if not begin <= end <= size or end - begin != needed:
        _fail(f"tensor '{name}' needs {needed} bytes, has the range {begin} to {end} of {size}")
    return begin, end


def _tensor(entry: dict[str, Any], data: memoryview) -> Any:
    begin, end = entry["data_offsets"]
    name = _DTYPES[entry["dtype"]]
    raw = np.frombuffer(data[begin:end], dtype=np.uint8).copy()
    array = raw.view(np.int16 if name == "bfloat16" else np.dtype(name)).reshape(entry["shape"])
    out = tc.from_numpy(array)
    return out.view(tc.bfloat16) if name == "bfloat16" else out


def _rebuild(node: Any, tensors: dict[str, Any]) -> Any:
    if not isinstance(node, dict) or len(node) != 1:
        _fail("the structure in the header is malformed")
    kind, value = next(iter(node.items()))
    if kind == "tensor" and isinstance(value, str) and value in tensors:
        return tensors[value]
    if kind == "value" and (value is None or isinstance(value, (bool, int, str))):
        return value
    if kind == "float" and isinstance(value, str):
        try:
            return float(value) if value in ("inf", "-inf", "nan") else float.fromhex(value)
        except (ValueError, OverflowError) as error:
            raise CheckpointError(f"load: malformed number {value!r}") from error
    if kind in ("list", "tuple") and isinstance(value, list):
        items = [_rebuild(item, tensors) for item in value]
        return items if kind == "list" else tuple(items)
    if kind == "dict" and isinstance(value, list):
        out: OrderedDict[Any, Any] = OrderedDict()
        for pair in value:
            if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], (str, int)):
                _fail("the structure in the header is malformed")
            out[pair[0]] = _rebuild(pair[1], tensors)
        return out
    return _fail("the structure in the header is malformed")


def _decode(data: memoryview) -> Any:
    header, body = _header(data)
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        _fail("__metadata__ must map names to strings")
    ranges = sorted((*_check_entry(name, entry, len(body)), name) for name, entry in header.items())
    at = 0
    for begin, end, name in ranges:
        if begin != at:
            _fail(
                f"tensor '{name}' begins at byte {begin}, expected {at}: ranges must neither overlap nor leave gaps"
            )
        at = end
    if at != len(body):
        _fail(f"{len(body) - at} bytes after the last tensor")
    tensors = {name: _tensor(entry, body) for name, entry in header.items()}
    if _STRUCTURE not in metadata:
        return OrderedDict(tensors)
    try:
        return _rebuild(json.loads(metadata[_STRUCTURE]), tensors)
    except CheckpointError:
        raise
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"load: the structure in the header is malformed: {error}") from error


def load(
    f: str | os.PathLike[str] | IO[bytes], map_location: Any = None, *, weights_only: bool = True
) -> Any:
    """Reads what `save` wrote, or any safetensors file (as a dict of tensors). Runs no code of the file.

    Args:
        f: path or binary file.
        map_location: device to put the tensors on.
        weights_only: accepted as in PyTorch; always true.

    Raises:
        CheckpointError: the file is malformed; the text says where.
        ValueError: weights_only=False, which would run code.
    """
    if not weights_only:
        raise ValueError("load: argument 'weights_only' must be True: checkpoints are data and run no code")
    data = f.read() if hasattr(f, "read") else Path(os.fspath(f)).read_bytes()  # type: ignore[union-attr, arg-type]
    loaded = _decode(memoryview(data))
    return loaded if map_location is None else _moved(loaded, map_location)


def _moved(value: Any, device: Any) -> Any:
    if isinstance(value, tc.Tensor):
        return value.to(device)
    if isinstance(value, Mapping):
        return OrderedDict((key, _moved(item, device)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return type(value)(_moved(item, device) for item in value)
    return value
