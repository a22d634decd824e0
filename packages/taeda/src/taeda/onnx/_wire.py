"""ONNX files, byte by byte.

The messages are those of https://github.com/onnx/onnx/blob/main/onnx/onnx.proto in the encoding of protocol buffers
(https://protobuf.dev/programming-guides/encoding): a key of the field's number and kind before each value.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from taeda_registry.slots import tensor

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "attribute", "data_type", "external_tensor", "graph", "model", "node", "tensor_bytes", "tensor_proto",
    "value_info",
]  # fmt: skip

_TYPES = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10,
    "float64": 11, "uint32": 12, "uint64": 13, "complex64": 14, "complex128": 15, "bfloat16": 16,
    "float8_e4m3fn": 17, "float8_e4m3fnuz": 18, "float8_e5m2": 19, "float8_e5m2fnuz": 20,
}  # fmt: skip


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _integer(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes | str) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _float(field: int, value: float) -> bytes:
    return _varint(field << 3 | 5) + struct.pack("<f", value)


def data_type(dtype: Any) -> int:
    """ONNX's number of a dtype.

    Raises:
        TypeError: ONNX has none.
    """
    name = str(dtype).rpartition(".")[2]
    if name not in _TYPES:
        raise TypeError(f"onnx.export: ONNX has no type for {dtype}")
    return _TYPES[name]


def tensor_bytes(value: Any) -> bytes:
    """A tensor's numbers, little-endian and row by row."""
    plain = value.detach().cpu().contiguous()
    if plain.dtype == tensor.bfloat16 or str(plain.dtype).rpartition(".")[2].startswith("float8"):
        plain = plain.view(tensor.uint8) if plain.element_size() == 1 else plain.view(tensor.int16)
    return bytes(plain.numpy().tobytes())


def _tensor_head(value: Any, name: str) -> bytes:
    dims = b"".join(_integer(1, n) for n in value.shape)
    return dims + _integer(2, data_type(value.dtype)) + _bytes(8, name)


def tensor_proto(value: Any, name: str = "") -> bytes:
    """A tensor with its numbers."""
    return _tensor_head(value, name) + _bytes(9, tensor_bytes(value))


def external_tensor(value: Any, name: str, location: str, offset: int, length: int) -> bytes:
    """A tensor whose numbers stand in another file."""
    entries = (("location", location), ("offset", str(offset)), ("length", str(length)))
    where = b"".join(_bytes(13, _bytes(1, key) + _bytes(2, text)) for key, text in entries)
    return _tensor_head(value, name) + where + _integer(14, 1)


def attribute(name: str, value: Any) -> bytes:
    """A named constant of a node: a number, a text, a tensor, or a list of numbers or texts."""
    head = _bytes(1, name)
    if isinstance(value, (bool, int)):
        return head + _integer(3, int(value)) + _integer(20, 2)
    if isinstance(value, float):
        return head + _float(2, value) + _integer(20, 1)
    if isinstance(value, (str, bytes)):
        return head + _bytes(4, value) + _integer(20, 3)
    if isinstance(value, tensor.Tensor):
        return head + _bytes(5, tensor_proto(value)) + _integer(20, 4)
    items = list(value)
    if all(isinstance(item, int) for item in items):
        return head + b"".join(_integer(8, item) for item in items) + _integer(20, 7)
    if all(isinstance(item, (int, float)) for item in items):
        return head + b"".join(_float(7, item) for item in items) + _integer(20, 6)
    return head + b"".join(_bytes(9, item) for item in items) + _integer(20, 8)


def node(
    kind: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    name: str,
    attributes: dict[str, Any],
    domain: str = "",
) -> bytes:
    """One operator of a graph."""
    parts = [_bytes(1, item) for item in inputs]
    parts += [_bytes(2, item) for item in outputs]
    parts += [_bytes(3, name), _bytes(4, kind)]
    parts += [_bytes(5, attribute(key, value)) for key, value in attributes.items()]
    if domain:
        parts.append(_bytes(7, domain))
    return b"".join(parts)


def value_info(name: str, dtype: Any, dims: Iterable[int | str]) -> bytes:
    """The type of a graph's input or output; a size that may vary is its name."""
    shape = b"".join(_bytes(1, _bytes(2, dim) if isinstance(dim, str) else _integer(1, dim)) for dim in dims)
    kind = _integer(1, data_type(dtype)) + _bytes(2, shape)
    return _bytes(1, name) + _bytes(2, _bytes(1, kind))


def graph(
    name: str,
    nodes: Iterable[bytes],
    initializers: Iterable[bytes],
    inputs: Iterable[bytes],
    outputs: Iterable[bytes],
) -> bytes:
    """A graph."""
    parts = [_bytes(1, item) for item in nodes]
    parts.append(_bytes(2, name))
    parts += [_bytes(5, item) for item in initializers]
    parts += [_bytes(11, item) for item in inputs]
    parts += [_bytes(12, item) for item in outputs]
    return b"".join(parts)


def model(graph_bytes: bytes, opsets: dict[str, int], ir_version: int, producer: tuple[str, str]) -> bytes:
    """A file."""
    parts = [_integer(1, ir_version), _bytes(2, producer[0]), _bytes(3, producer[1]), _bytes(7, graph_bytes)]
    parts += [_bytes(8, _bytes(1, domain) + _integer(2, version)) for domain, version in opsets.items()]
    return b"".join(parts)
