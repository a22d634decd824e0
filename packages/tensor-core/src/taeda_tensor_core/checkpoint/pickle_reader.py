"""Reader of PyTorch's zip checkpoints (.pt, .pth): an interpreter of the few pickle opcodes that data needs.

It makes tensors, dicts, lists, tuples, sets, numbers, strings and bytes. Names that a file refers to are looked up
in the tables below and nowhere else; every other name is an error that says it. Opcodes: Python's documentation of
``pickletools``; layout of the archive: PyTorch's notes on serialization semantics.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

import taeda_tensor_core as tc
from taeda_tensor_core.checkpoint.common import DTYPES, CheckpointError, fail
from taeda_tensor_core.checkpoint.read_safetensors import check_view, from_bytes

STORAGES = {
    "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8",
    "ByteStorage": "uint8", "BoolStorage": "bool", "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128", "UntypedStorage": "uint8",
}  # fmt: skip


def read_pt(file: IO[bytes], size: int) -> Any:
    """The object in a zip archive of PyTorch's.

    Args:
        file: at its beginning.
        size: its length in bytes.

    Raises:
        CheckpointError: malformed, or holding more than data.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            return _Archive(archive, size).object()
    except CheckpointError:
        raise
    except (zipfile.BadZipFile, zlib.error, struct.error, OSError, EOFError, RecursionError) as error:
        raise CheckpointError(f"load: the archive is malformed: {error}") from error
    except (
        KeyError,
        IndexError,
        ValueError,
        TypeError,
        OverflowError,
        NotImplementedError,
        RuntimeError,
    ) as error:
        raise CheckpointError(f"load: the archive is malformed: {type(error).__name__}: {error}") from error


@dataclass(frozen=True)
class _Name:
    """Something that the file refers to by module and name."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass(frozen=True)
class _Storage:
    """A 1-d tensor that holds a storage's elements."""

    elements: Any


class _Archive:
    """The entries of the zip file: the pickle, and one entry for each storage."""

    def __init__(self, archive: zipfile.ZipFile, size: int) -> None:
        self._archive = archive
        entries = archive.infolist()
        names = [entry.filename for entry in entries]
        if len(set(names)) != len(names):
            fail("the archive repeats an entry")
        for entry in entries:
            if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > size:
                fail(f"entry '{entry.filename}' of the archive is compressed or too long")
        heads = [name for name in names if name.endswith("/data.pkl") or name == "data.pkl"]
        if len(heads) != 1:
            fail(f"expected one entry data.pkl in the archive, found {len(heads)}")
        self._names, self._pickle = set(names), heads[0]
        self._root = heads[0][: -len("data.pkl")]
        self._storages: dict[tuple[str, str], _Storage] = {}

    def object(self) -> Any:
        order = self._root + "byteorder"
        if order in self._names and self._archive.read(order) != b"little":
            fail("the archive is not in little-endian byte order")
        return _Machine(self._archive.read(self._pickle), self.storage).run()

    def storage(self, reference: Any) -> _Storage:
        """The storage that a persistent id names."""
        if not isinstance(reference, tuple) or len(reference) != 5 or reference[0] != "storage":
            fail(f"expected a reference to a storage, found {reference!r:.80}")
        _, kind, key, _, count = reference
        if (
            not isinstance(kind, _Name)
            or kind.module not in ("torch", "torch.storage")
            or kind.name not in STORAGES
        ):
            fail(f"the file refers to a storage of type {kind}")
        dtype = STORAGES[kind.name]
        found = self._storages.get((str(key), dtype))
        if found is None:
            raw = np.frombuffer(self._archive.read(f"{self._root}data/{key}"), np.uint8).copy()
            if not isinstance(count, int) or raw.size != count * DTYPES[dtype][1]:
                fail(f"storage {key} has {raw.size} bytes, expected {count} elements of {dtype}")
            found = self._storages[str(key), dtype] = _Storage(from_bytes(raw, dtype))
        return found


def _rebuild_tensor(storage: Any, offset: Any, shape: Any, stride: Any, grad: Any = False, *rest: Any) -> Any:
    if not isinstance(storage, _Storage) or any(rest[1:]):
        fail("a tensor of the file has parts that are not data")
    elements = storage.elements
    check_view(offset, shape, stride, elements.numel())
    if any(s < 0 for s in stride):
        fail(f"a tensor of the file has stride {stride!r}, expected none below 0")
    out = elements.as_strided(list(shape), list(stride), offset)
    return _recorded(out) if grad is True else out


def _recorded(tensor: Any) -> Any:
    """The tensor with requires_grad where automatic differentiation is present; without it that means nothing."""
    try:
        return tensor.requires_grad_(True)
    except RuntimeError:
        return tensor


def _encoded(text: Any, encoding: Any) -> bytes:
    if not isinstance(text, str) or encoding != "latin1":
        fail("the file holds malformed bytes")
    return text.encode("latin-1")


def _rebuild_parameter(data: Any, grad: Any, *_: Any) -> Any:
    if not isinstance(data, tc.Tensor):
        fail("a parameter of the file is no tensor")
    return _recorded(data.detach()) if grad is True else data.detach()


def _rebuild_typed(make: Any, kind: Any, args: Any, _: Any) -> Any:
    if str(kind) not in ("torch.Tensor", "torch._tensor.Tensor", "torch.nn.parameter.Parameter"):
        fail(f"the file refers to the tensor type {kind}")
    return _call(make, args)


def _ordered_dict(*args: Any) -> dict[Any, Any]:
    return dict(*args)


CALLS: dict[str, Callable[..., Any]] = {
    "torch._utils._rebuild_tensor_v2": _rebuild_tensor,
    "torch._utils._rebuild_parameter": _rebuild_parameter,
    "torch._tensor._rebuild_from_type_v2": _rebuild_typed,
    "collections.OrderedDict": _ordered_dict,
    "_codecs.encode": _encoded,
    "__builtin__.set": lambda items=(): set(map(_hashed, items)),
    "torch.Size": lambda sizes=(): tuple(sizes),
    "torch.device": lambda *parts: ":".join(str(part) for part in parts),
}


def _call(what: Any, args: Any) -> Any:
    if not isinstance(what, _Name) or str(what) not in CALLS or not isinstance(args, tuple):
        fail(f"the file wants to call {what}; only tensors, containers, numbers and strings are read")
    return CALLS[str(what)](*args)


class _Machine:
    """Runs a pickle's opcodes on a stack."""

    def __init__(self, data: bytes, storage: Callable[[Any], _Storage]) -> None:
        self._data, self._at, self._storage = data, 0, storage
        self._stack: list[Any] = []
        self._below: list[list[Any]] = []  # stacks under the marks
        self._memo: dict[int, Any] = {}

    def run(self) -> Any:
        while True:
            code = self._take(1)
            if code == b".":
                return _finished(self._stack.pop())
            if code in _CONSTANTS:
                self._stack.append(_CONSTANTS[code]())
            elif code in _READERS:
                value = _READERS[code](self)  # may change which list the stack is
                self._stack.append(value)
            elif code in _ACTIONS:
                _ACTIONS[code](self)
            else:
                fail(f"the file has opcode {code!r} at byte {self._at - 1}, which data does not need")

    # --- bytes ---

    def _take(self, count: int) -> bytes:
        part = self._data[self._at : self._at + count]
        if len(part) != count:
            fail("the pickle in the archive is cut off")
        self._at += count
        return part

    def _line(self) -> str:
        end = self._data.find(b"\n", self._at)
        if end < 0:
            fail("the pickle in the archive is cut off")
        text = self._data[self._at : end].decode("ascii")
        self._at = end + 1
        return text

    def number(self, size: int, signed: bool = False) -> int:
        return int.from_bytes(self._take(size), "little", signed=signed)

    def long(self, size: int) -> int:
        return self.number(self.number(size), signed=True)

    def double(self) -> float:
        return float(struct.unpack(">d", self._take(8))[0])

    def text(self, size: int, encoding: str = "utf-8") -> str:
        return self._take(self.number(size)).decode(
            encoding, "surrogatepass" if encoding == "utf-8" else "strict"
        )

    def bytes(self, size: int) -> bytes:
        return self._take(self.number(size))

    # --- stack ---

    def mark(self) -> None:
        self._below.append(self._stack)
        self._stack = []

    def marked(self) -> list[Any]:
        """What was pushed since the last mark."""
        items, self._stack = self._stack, self._below.pop()
        return items

    def replace(self, count: int) -> tuple[Any, ...]:
        items = tuple(self._stack[len(self._stack) - count :])
        if len(items) != count:
            fail("the pickle in the archive takes from an empty stack")
        del self._stack[len(self._stack) - count :]
        return items

    def top(self, kind: type) -> Any:
        if not self._stack or type(self._stack[-1]) is not kind:
            fail(f"the pickle in the archive expects a {kind.__name__}")
        return self._stack[-1]

    # --- opcodes ---

    def append(self) -> None:
        (item,) = self.replace(1)
        self.top(list).append(item)

    def extend(self) -> None:
        items = self.marked()
        self.top(list).extend(items)

    def set_item(self) -> None:
        key, value = self.replace(2)
        self.top(dict)[_hashed(key)] = value

    def set_items(self) -> None:
        self.top_update(self.marked())

    def top_update(self, items: list[Any]) -> None:
        if len(items) % 2:
            fail("the pickle in the archive has a key without value")
        self.top(dict).update(zip(map(_hashed, items[::2]), items[1::2], strict=True))

    def add_items(self) -> None:
        items = self.marked()
        self.top(set).update(map(_hashed, items))

    def make_dict(self) -> None:
        items = self.marked()
        self._stack.append({})
        self.top_update(items)

    def put(self, key: int) -> None:
        self._memo[key] = self._stack[-1]

    def named(self) -> _Name:
        module, name = self.replace(2)
        return _named(module, name)

    def call(self) -> None:
        what, args = self.replace(2)
        self._stack.append(_call(what, args))

    def build(self) -> None:
        # Only dicts carry extra attributes in a checkpoint of data (a state dict's version numbers); they are left out.
        self.replace(1)
        if not self._stack or type(self._stack[-1]) is not dict:
            fail(
                "the file sets attributes of an object; only tensors, containers, numbers and strings are read"
            )


def _named(module: Any, name: Any) -> Any:
    if not isinstance(module, str) or not isinstance(name, str):
        fail("the file refers to a name that is no text")
    if module == "torch" and name in DTYPES:
        return getattr(tc, name)
    known = _Name(module, name)
    kinds = ("torch.Tensor", "torch._tensor.Tensor", "torch.nn.parameter.Parameter")
    storage = module in ("torch", "torch.storage") and name in STORAGES
    if not storage and str(known) not in CALLS and str(known) not in kinds:
        fail(f"the file refers to {known}; only tensors, containers, numbers and strings are read")
    return known


def _hashed(key: Any) -> Any:
    if not isinstance(key, (str, int, float, bool, bytes, tuple, type(None))):
        fail(f"a key in the file is a {type(key).__name__}")
    return key


def _finished(value: Any, seen: set[int] | None = None) -> Any:
    """``value`` after making sure that nothing but data is in it."""
    seen = set() if seen is None else seen
    if isinstance(value, (_Name, _Storage)):
        fail(f"the file holds {value}; only tensors, containers, numbers and strings are read")
    if isinstance(value, (dict, list, tuple)) and id(value) not in seen:
        seen.add(id(value))
        for item in value.values() if isinstance(value, dict) else value:
            _finished(item, seen)
    return value


_CONSTANTS: dict[bytes, Callable[[], Any]] = {
    b"N": lambda: None, b"\x88": lambda: True, b"\x89": lambda: False,
    b"]": list, b")": tuple, b"}": dict, b"\x8f": set,
}  # fmt: skip

_READERS: dict[bytes, Callable[[_Machine], Any]] = {
    b"J": lambda m: m.number(4, signed=True),
    b"K": lambda m: m.number(1),
    b"M": lambda m: m.number(2),
    b"\x8a": lambda m: m.long(1),
    b"\x8b": lambda m: m.long(4),
    b"G": lambda m: m.double(),
    b"X": lambda m: m.text(4),
    b"\x8c": lambda m: m.text(1),
    b"\x8d": lambda m: m.text(8),
    b"U": lambda m: m.text(1, "latin-1"),
    b"T": lambda m: m.text(4, "latin-1"),
    b"C": lambda m: m.bytes(1),
    b"B": lambda m: m.bytes(4),
    b"\x8e": lambda m: m.bytes(8),
    b"\x85": lambda m: m.replace(1),
    b"\x86": lambda m: m.replace(2),
    b"\x87": lambda m: m.replace(3),
    b"t": lambda m: tuple(m.marked()),
    b"l": lambda m: m.marked(),
    b"h": lambda m: m._memo[m.number(1)],
    b"j": lambda m: m._memo[m.number(4)],
    b"c": lambda m: _named(m._line(), m._line()),
    b"\x93": lambda m: m.named(),
    b"Q": lambda m: m._storage(*m.replace(1)),
}

_ACTIONS: dict[bytes, Callable[[_Machine], Any]] = {
    b"\x80": lambda m: m._take(1),
    b"\x95": lambda m: m._take(8),
    b"(": lambda m: m.mark(),
    b"0": lambda m: m.replace(1),
    b"1": lambda m: m.marked(),
    b"a": lambda m: m.append(),
    b"e": lambda m: m.extend(),
    b"s": lambda m: m.set_item(),
    b"u": lambda m: m.set_items(),
    b"d": lambda m: m.make_dict(),
    b"\x90": lambda m: m.add_items(),
    b"q": lambda m: m.put(m.number(1)),
    b"r": lambda m: m.put(m.number(4)),
    b"\x94": lambda m: m.put(len(m._memo)),
    b"R": lambda m: m.call(),
    b"b": lambda m: m.build(),
}
