"""Writing PyTorch's zip files: a pickle with PyTorch's names for tensors, and an entry for each storage.

What holds nothing but tensors, containers, numbers and text opens in PyTorch with ``weights_only=True``. Names in the
file are PyTorch's where PyTorch has the thing too: ``torch.nn.Linear`` is the active provider's on either side.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import struct
import sys
import zlib
from collections import OrderedDict
from importlib import import_module
from typing import Any

import taeda_tensor_core as tc
from taeda_registry.files import is_path
from taeda_registry.pickles import DISPATCH
from taeda_tensor_core import _older_names
from taeda_tensor_core._copies import storage_bytes, wraps
from taeda_tensor_core.checkpoint import torch_names
from taeda_tensor_core.checkpoint.common import DTYPES, OLDER_HEAD, dtype_name, skipped
from taeda_tensor_core.storage import TypedStorage, UntypedStorage

# Where the bytes of an entry begin: at multiples of this, so that files can be mapped.
ALIGNMENT = 64
#: The entry that tells a file from others.
IDENTITY = ".data/serialization_id"
#: The folder of an archive without a name.
_NAMELESS = "archive"
#: Before archives, files told of the machine that wrote them.
_SYSTEM = {
    "protocol_version": OLDER_HEAD[1],
    "little_endian": True,
    "type_sizes": {"short": 2, "int": 4, "long": 4},
}
_FULL = 0xFFFFFFFF
# Objects of their own: `struct.pack` compares its formats with those that zipfile gives it as bytes.
_BOTH_SIZES = struct.Struct("<HHQQ")
_FILL = struct.Struct("<2sH")
_FACTS = struct.Struct("<5H3L")
_LENGTHS = struct.Struct("<2H")
_TWO = struct.Struct("<QQ")
_ONE = struct.Struct("<Q")
_REST = struct.Struct("<5H2L")
_SHORT = struct.Struct("<H")
_END_64 = struct.Struct("<4sQ2H2L4Q")
_PLACE_64 = struct.Struct("<4sLQL")
_END = struct.Struct("<4s4H2LH")
# Where the classes of tensors are that consist of other tensors.
_KINDS = tuple(
    f"{home}.{kind}" for home in ("taeda_tensor_core", "torch") for kind in ("sparse", "quantized", "nested")
)
#: Modules of tensors that only taeda knows: what makes one again of `saved_parts` stands there as `restored`.
_OWN_KINDS = ("taeda_tensor_core.packed", "taeda_tensor_core.opaque")


class _Global:
    """A name that stands in the file whatever is installed here."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self) -> None:
        """Pickles call what makes objects; this one is only written."""


class _Reference:
    """A storage inside the pickle."""

    def __init__(self, *id: Any) -> None:
        self.id = ("storage", *id)


class Pickler(pickle._Pickler):  # type: ignore[name-defined]  # the one written in Python can be told how to write names
    dispatch = dict(DISPATCH)

    def __init__(self, file: io.BytesIO, protocol: int) -> None:
        super().__init__(file, protocol)
        self._names: dict[tuple[str, str], _Global] = {}
        self._keys: dict[Any, str] = {}
        self._first: dict[str, str] = {}  # the dtype that a storage was first seen with
        self._alive: list[Any] = []  # so that no address is used twice
        self.storages: dict[str, Any] = {}
        self.units: dict[str, int] = {}  # bytes of an element, by which a storage is counted
        self._parameter = torch_names.parameter_class()

    def name(self, module: str, name: str) -> _Global:
        return self._names.setdefault((module, name), _Global(module, name))

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, (TypedStorage, UntypedStorage)):
            obj = self._storage(obj)
        return obj.id if type(obj) is _Reference else None

    def _storage(self, storage: Any) -> _Reference:
        """A storage by itself."""
        location, elements = str(storage.device), storage._elements()
        _, memory, key = self._memory(elements, location)
        untyped = isinstance(storage, UntypedStorage)
        home = ("torch.storage", "UntypedStorage") if untyped else ("torch", storage.pickle_storage_type())
        if not untyped:
            self._first.setdefault(key, storage.dtype.name)
        return self._reference(home, key, location, memory, elements.itemsize)

    def _reference(
        self, home: tuple[str, str], key: str, location: str, memory: Any, unit: int
    ) -> _Reference:
        self.units.setdefault(key, unit)
        return _Reference(self.name(*home), key, location, memory.numel() // unit)

    def reducer_override(self, obj: Any) -> Any:
        kind = type(obj)
        if kind is _Global:
            return obj.name
        if isinstance(obj, tc.Tensor):
            return self._tensor(obj)
        if kind is tc._info.layout:
            return self.name("torch.serialization", "_get_layout"), (f"torch.{str.__str__(obj)}",)
        if kind.__name__ == "qscheme" and kind.__module__.startswith(("taeda_tensor_core.", "torch")):
            return self.name("torch", obj.name), None
        if isinstance(obj, tc.dtype) and kind is not tc.dtype and obj.name in torch_names.NAMED_DTYPES:
            return self.name("torch", obj.name), None
        if kind is tc.dtype and str(obj).rpartition(".")[2] in DTYPES:
            return self.name("torch", str(obj).rpartition(".")[2]), None
        if kind is tc.Size:
            return self.name("torch", "Size"), (tuple(obj),)
        if kind is tc.device:
            return self.name("torch", "device"), (obj.type, *([] if obj.index is None else [obj.index]))
        return NotImplemented

    def save_global(self, obj: Any, name: str | None = None) -> None:
        known = (obj.module, obj.name) if type(obj) is _Global else torch_names.foreign_name(obj)
        if known is None:
            super().save_global(obj, name)
            return
        self.write("c{}\n{}\n".format(*known).encode())
        self.memoize(obj)

    def save_reduce(self, func: Any, args: Any, *rest: Any, **named: Any) -> None:
        if args is None:
            self.save(func)  # a name alone
            return
        super().save_reduce(func, args, *rest, **named)

    def _tensor(self, tensor: Any) -> Any:
        if skipped.fakes and hasattr(tensor, "fake_device"):
            tensor = self._whole(tensor)
        home = type(tensor).__module__
        if home.startswith(_KINDS):
            return self._of_kinds(tensor)
        if home in _OWN_KINDS:
            found = import_module(home).saved_parts(tensor)
            self._alive.append(found)
            return self.name(home, "restored"), found
        make, args = self._values(tensor)
        cls, state = type(tensor), tc._C._state_of(tensor)
        if self._parameter is not None and cls is self._parameter:
            plain = tensor.detach()
            self._alive.append(plain)
            args = plain, tensor.requires_grad, OrderedDict(), *([state] if state else [])
            what = "_rebuild_parameter_with_state" if state else "_rebuild_parameter"
            return self.name("torch._utils", what), args
        if "_is_buffer" in vars(cls):  # there a plain tensor, told by this attribute
            cls, state = tc.Tensor, {**(state or {}), "_is_buffer": True}
        if cls is tc.Tensor and not state:
            return make, args
        state = {name: value for name, value in (state or {}).items() if name != "_wrapped_device"}
        self._alive.append(state)
        kind = self.name("torch", "Tensor") if cls is tc.Tensor else cls
        return self.name("torch._tensor", "_rebuild_from_type_v2"), (make, kind, args, state)

    def _whole(self, fake: Any) -> Any:
        """A tensor in memory of what a fake one tells."""
        dtype, grad = fake.dtype, fake.requires_grad
        made = tc.empty_strided(
            tuple(fake.shape), tuple(fake.stride()), dtype=dtype, device="cpu", requires_grad=grad
        )
        self._alive += [fake, made]
        return made

    def _of_kinds(self, tensor: Any) -> Any:
        """A sparse, quantized or nested tensor, by its parts."""
        from taeda_tensor_core.checkpoint import kinds

        found = kinds.parts(tensor)
        if found is not None:
            self._alive.append(found)
            return self.name("torch._utils", found[0]), found[1]
        if not isinstance(tensor, kinds.QuantizedTensor):
            return NotImplemented
        codes = tensor._codes.detach()
        dtype = dtype_name(codes)
        codes, memory, key = self._memory(codes, str(codes.device))
        self._first.setdefault(key, dtype)
        home = "torch", kinds.CODES[dtype]
        reference = self._reference(home, key, str(tensor._codes.device), memory, DTYPES[dtype][1])
        place = (codes.storage_offset(), tuple(codes.shape), tuple(codes.stride()))
        facts = kinds.mapping(tensor)
        self._alive.append(facts)
        return self.name("torch._utils", "_rebuild_qtensor"), (
            *(reference, *place, facts),
            *(False, OrderedDict()),
        )

    def _values(self, tensor: Any) -> tuple[_Global, tuple[Any, ...]]:
        dtype, grad = dtype_name(tensor), tensor.requires_grad
        if wraps(tensor):
            return self._wrapper(tensor, dtype, grad)
        if tensor.device.type == "meta":
            facts = getattr(tc, dtype), tuple(tensor.shape), tuple(tensor.stride()), grad
            return self.name("torch._utils", "_rebuild_meta_tensor_no_storage"), facts
        location = str(tensor.device)
        tensor, memory, key = self._memory(tensor.detach(), location)
        typed = dtype in _older_names.STORAGES and self._first.setdefault(key, dtype) == dtype
        home = ("torch", _older_names.STORAGES[dtype]) if typed else ("torch.storage", "UntypedStorage")
        reference = self._reference(home, key, location, memory, DTYPES[dtype][1] if typed else 1)
        place = (tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride()))
        args = (reference, *place, grad, OrderedDict())
        if typed:
            return self.name("torch._utils", "_rebuild_tensor_v2"), args
        return self.name("torch._utils", "_rebuild_tensor_v3"), (*args, getattr(tc, dtype))

    def _wrapper(self, tensor: Any, dtype: str, grad: bool) -> tuple[_Global, tuple[Any, ...]]:
        """A tensor that has no memory: its shape and what it is of; the rest are its attributes."""
        place = tuple(tensor.shape), tuple(tensor.stride()), 0
        facts = type(tensor), getattr(tc, dtype), *place, tc.strided, tensor.device, grad
        return self.name("torch._utils", "_rebuild_wrapper_subclass"), facts

    def _memory(self, tensor: Any, location: str) -> tuple[Any, Any, str]:
        """A tensor with steps that PyTorch has too, its whole storage as bytes, and the storage's key.

        Tensors of devices are copied to main memory one by one; those that share memory there no longer do so.
        """
        tensor = tensor.cpu()
        memory = None if any(step < 0 for step in tensor.stride()) else storage_bytes(tensor)
        if memory is None:
            tensor = tensor.clone().contiguous()
            memory = storage_bytes(tensor)
            if memory is None:  # no elements, or no storage that bytes could show
                memory = tc.empty((0,), dtype=tc.uint8, device="cpu")
        place = (location, memory.data_ptr(), memory.numel()) if memory.numel() else id(memory)
        self._alive += [tensor, memory]
        key = self._keys.setdefault(place, str(len(self._keys)))
        self.storages.setdefault(key, memory)
        return tensor, memory, key


Pickler.dispatch[type(pickle.dumps)] = Pickler.save_global
Pickler.dispatch[type(lambda: None)] = Pickler.save_global


#: Calls of the pickler written in Python for one of that written in C.
_CALLS = 4


def _dumped(obj: Any, protocol: int, kind: type[Pickler]) -> tuple[io.BytesIO, Pickler]:
    file = io.BytesIO()
    pickler = kind(file, protocol)
    pickler.dump(obj)
    return file, pickler


def _pickled(obj: Any, protocol: int, kind: type[Pickler]) -> tuple[io.BytesIO, Pickler]:
    """The object's pickle, and the pickler with its storages.

    Raises:
        TypeError, AttributeError, pickle.PicklingError: something in ``obj`` that cannot be pickled.
        ValueError: objects within objects beyond what can be followed.
    """
    try:
        return _dumped(obj, protocol, kind)
    except RecursionError:
        # The library's own pickler follows objects in fewer calls for each: as deep as that one this one gets, too.
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(_CALLS * limit)
        try:
            return _dumped(obj, protocol, kind)
        except RecursionError:
            raise ValueError("save: objects are nested too deeply") from None
        finally:
            sys.setrecursionlimit(limit)


def archive_name(f: Any) -> str:
    """The folder that stands for the whole in an archive: the file's name without its ending, as in PyTorch.

    Names of other letters than ASCII's, and files without a name, have ``archive``.
    """
    name = os.path.basename(os.fsdecode(f)) if is_path(f) else ""
    return os.path.splitext(name.lstrip("."))[0] if name.isascii() and name.strip(".") else _NAMELESS


def encode(obj: Any, protocol: int = 2, kind: type[Pickler] = Pickler, folder: str = _NAMELESS) -> list[Any]:
    """The parts of a zip file, in their order; its entries stand in `folder`. Raises as `_pickled` does."""
    file, pickler = _pickled(obj, protocol, kind)
    entries = {
        "data.pkl": file.getbuffer(),
        ".format_version": b"1",
        ".storage_alignment": str(ALIGNMENT).encode(),
    }
    entries["byteorder"] = b"little"
    for key, memory in pickler.storages.items():
        entries[f"data/{key}"] = bytes(memory.numel()) if skipped.data else _plain(memory)
    entries["version"] = b"3\n"
    return zipped(entries, folder)


def encode_older(obj: Any, protocol: int = 2, kind: type[Pickler] = Pickler) -> list[Any]:
    """The parts of a file in the form before archives: pickles one after another, and the storages behind them."""
    if skipped.data:
        raise RuntimeError(
            "save: skip_data leaves out numbers of archives alone; "
            "cannot use it with _use_new_zipfile_serialization=False"
        )
    file, pickler = _pickled(obj, protocol, _older(kind))
    head = [pickle.dumps(part, protocol) for part in (*OLDER_HEAD, _SYSTEM)]
    keys = sorted(pickler.storages)
    parts = [*head, file.getbuffer(), pickle.dumps(keys, protocol)]
    for key in keys:
        memory = pickler.storages[key]
        parts += [(memory.numel() // pickler.units[key]).to_bytes(8, "little"), _plain(memory)]
    return parts


def _older(kind: type[Pickler]) -> type[Pickler]:
    """The pickler of files in the older form, where a storage's name has a sixth part, for parts of storages."""

    class Older(kind):  # type: ignore[misc,valid-type]
        def persistent_id(self, obj: Any) -> Any:
            found = super().persistent_id(obj)
            return None if found is None else (*found, None)

    return Older


def _plain(memory: Any) -> Any:
    memory = memory.detach().cpu()
    return memoryview(memory.numpy()) if memory.numel() else b""


def bytes_of(data: Any) -> Any:
    """Bytes, text, a storage or a tensor as a buffer of bytes; None for anything else."""
    if isinstance(data, (TypedStorage, UntypedStorage)):
        data = data._elements()
    if isinstance(data, tc.Tensor):
        return _plain(data.detach().contiguous().reshape(-1).view(tc.uint8))
    if isinstance(data, str):
        return data.encode()
    return memoryview(data).cast("B") if isinstance(data, (bytes, bytearray, memoryview)) else None


def zipped(entries: dict[str, Any], folder: str = _NAMELESS) -> list[Any]:
    """A zip archive of entries that are not compressed, as parts; all stand in `folder`, the last tells their sum."""
    archive = ZipParts()
    parts = [part for name, data in entries.items() for part in archive.entry(f"{folder}/{name}", data)]
    parts += archive.entry(f"{folder}/{IDENTITY}", archive.fingerprint().encode())
    return [*parts, *archive.end()]


class ZipParts:
    """The parts of such an archive, as its entries come."""

    def __init__(self) -> None:
        self._directory: list[bytes] = []
        self._at = 0
        self._sum = hashlib.blake2b(digest_size=16)

    def fingerprint(self) -> str:
        """Forty digits that follow from names, sizes and checksums of the entries so far."""
        return f"{int.from_bytes(self._sum.digest(), 'little'):040d}"

    def entry(self, name: str, data: Any) -> tuple[bytes, Any]:
        """The parts of one entry."""
        size, begin = len(data), self._at
        large = size >= _FULL
        sizes = _BOTH_SIZES.pack(1, 16, size, size) if large else b""
        fixed = begin + 30 + len(name) + len(sizes) + 4
        fill = -fixed % ALIGNMENT
        extra = sizes + _FILL.pack(b"FB", fill) + b"Z" * fill
        checksum, short = zlib.crc32(data), _FULL if large else size
        facts = _FACTS.pack(45 if large else 20, 0x800, 0, 0, 0x21, checksum, short, short)
        head = b"PK\3\4" + facts + _LENGTHS.pack(len(name), len(extra)) + name.encode() + extra
        self._directory.append(_entry(name, facts, size, begin))
        self._sum.update(name.encode() + facts)
        self._at += len(head) + size
        return head, data

    def end(self) -> tuple[bytes, bytes]:
        """What stands behind the last entry: where each one begins."""
        directory = b"".join(self._directory)
        return directory, _end(len(self._directory), len(directory), self._at)


def _entry(name: str, facts: bytes, size: int, begin: int) -> bytes:
    wide = _TWO.pack(size, size) if size >= _FULL else b""
    wide += _ONE.pack(begin) if begin >= _FULL else b""
    extra = _LENGTHS.pack(1, len(wide)) + wide if wide else b""
    rest = _REST.pack(len(name), len(extra), 0, 0, 0, 0, min(begin, _FULL))
    return b"PK\1\2" + _SHORT.pack(45 if wide else 20) + facts + rest + name.encode() + extra


def _end(count: int, length: int, begin: int) -> bytes:
    end = b""
    if max(length, begin) >= _FULL or count >= 0xFFFF:
        end = _END_64.pack(b"PK\6\6", 44, 45, 45, 0, 0, count, count, length, begin)
        end += _PLACE_64.pack(b"PK\6\7", 0, begin + length, 1)
    few = min(count, 0xFFFF)
    return end + _END.pack(b"PK\5\6", 0, 0, few, few, min(length, _FULL), min(begin, _FULL), 0)
