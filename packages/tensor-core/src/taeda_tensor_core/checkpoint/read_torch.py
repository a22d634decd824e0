"""Readers of PyTorch's files (.pt, .pth, .bin): zip archives and the bare pickles before them, without running code.

Data are tensors, parameters, containers, numbers and text; everything else is an error that names it, but for what the
program itself has declared safe. Layout: PyTorch's notes on serialization semantics.
"""

from __future__ import annotations

import re
import struct
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import taeda_tensor_core as tc
from taeda_tensor_core.checkpoint import torch_names
from taeda_tensor_core.checkpoint.archive import Archive
from taeda_tensor_core.checkpoint.common import (
    DTYPES,
    OLDER_HEAD,
    Budget,
    CheckpointError,
    fail,
    shown,
    skipped,
)
from taeda_tensor_core.checkpoint.machine import Machine
from taeda_tensor_core.checkpoint.source import Source
from taeda_tensor_core.storage import TypedStorage, UntypedStorage

# Enough for the pickles of nearly all files; the bytes of tensors follow them.
HEAD = 1 << 24

#: What programs have declared safe, by its name in files.
safe: dict[str, Any] = {}


class Name:
    """Something that a file refers to, which only `Data` can call."""

    def __init__(self, module: str, name: str) -> None:
        self.full = f"{module}.{name}"
        self.storage_dtype, self.storage_name = torch_names.storage_kind(module, name), name

    def __str__(self) -> str:
        return self.full


def _declared(module: str, name: str) -> Any:
    """What was declared safe and is known to PyTorch, and so to files, by another name than here; None if nothing."""
    if not safe or module.partition(".")[0] != "torch":
        return None
    try:
        found = torch_names.native(module, name)
    except (ImportError, AttributeError):
        return None
    return found if any(found is item for item in safe.values()) else None


class Data:
    """The meaning of names in a file of data.

    Args:
        storages: what persistent ids stand for.
        dry: leaves tensors out, for a first look at what a file refers to.
        encoding: of strings of Python 2; "bytes" leaves them bytes.
    """

    def __init__(self, storages: Callable[[Any], Any], dry: bool = False, encoding: str = "latin-1") -> None:
        self._storages, self._dry, self._encoding = storages, dry, encoding

    def old_text(self, data: bytes) -> Any:
        """See `machine.Names`."""
        return data if self._encoding == "bytes" else data.decode(self._encoding)

    def find(self, module: str, name: str) -> Any:
        """See `machine.Names`."""
        if module == "torch" and name in DTYPES:
            return getattr(tc, name)
        if module == "torch" and (name in torch_names.QSCHEMES or name in torch_names.NAMED_DTYPES):
            return getattr(tc, name)
        found = Name("builtins" if module == "__builtin__" else module, name)
        if found.full in safe:
            return safe[found.full]
        known = (
            found.full in torch_names.FUNCTIONS
            or found.full in _CONTAINERS
            or found.full in torch_names.CLASSES
        )
        if not known and found.storage_dtype is None and found.full != _TYPED:
            if (declared := _declared(module, name)) is not None:
                return declared
            fail(
                "Weights only load failed. Unsupported global: the file refers to "
                f"{shown(module)[1:-1]}.{shown(name)[1:-1]}; only tensors, containers, numbers and strings are read. "
                "If you trust the file's author, declare the name with serialization.add_safe_globals, or load with "
                "weights_only=False, which runs the file's code"
            )
        return found

    def call(self, machine: Machine, what: Any, args: tuple[Any, ...]) -> Any:
        """See `machine.Names`."""
        if not isinstance(what, Name):
            if _is_safe(what):
                return what(*args)
            fail(
                f"the file wants to call {shown(what)}; only tensors, containers, numbers and strings are read"
            )
        if what.full in _CONTAINERS:
            return _CONTAINERS[what.full](machine, *args)
        if what.full == _TYPED:
            return self._typed(machine, *args)
        if what.full not in torch_names.FUNCTIONS:
            fail(f"the file wants to call {what}; only tensors, containers, numbers and strings are read")
        machine.budget.take(300)
        return None if self._dry and what.full not in _SMALL else torch_names.FUNCTIONS[what.full](*args)

    def _typed(self, machine: Machine, make: Any, kind: Any, args: Any, state: Any) -> Any:
        """A tensor of a subclass, or one with attributes."""
        kinds = torch_names.CLASSES
        declared = isinstance(kind, type) and issubclass(kind, tc.Tensor) and _is_safe(kind)
        known = declared or (isinstance(kind, Name) and kind.full in kinds)
        if not known or not isinstance(make, Name):
            fail(f"the file refers to the tensor type {kind if isinstance(kind, Name) else shown(kind)}")
        if not isinstance(args, tuple) or not make.full.startswith(
            ("torch._utils.", "torch.nested._internal.")
        ):
            fail("a tensor of the file has parts that are not data")
        made = self.call(machine, make, args)
        if self._dry:
            return made
        if declared and type(made) is not kind:
            made = tc.Tensor._make_subclass(kind, made, made.requires_grad)
        return torch_names.with_attributes(made, state)

    def new(self, machine: Machine, what: Any, args: tuple[Any, ...]) -> Any:
        """See `machine.Names`."""
        if isinstance(what, Name) and what.full == "collections.OrderedDict" and not args:
            return OrderedDict()
        if isinstance(what, Name) and torch_names.CLASSES.get(what.full) == "range":
            return torch_names.DimRange()
        if not isinstance(what, type) or not _is_safe(what):
            fail(
                f"the file makes an object of {what if isinstance(what, Name) else shown(what)}, which is no data"
            )
        return what.__new__(what, *args)

    def build(self, target: Any, state: Any) -> None:
        """See `machine.Names`."""
        if type(target) in (dict, OrderedDict):
            # A state dict's version numbers.
            if type(target) is OrderedDict and isinstance(state, dict) and all(type(k) is str for k in state):
                vars(target).update(state)
            return
        if type(target) is torch_names.DimRange:
            return
        if not _is_safe(type(target)):
            fail(
                "the file sets attributes of an object; only tensors, containers, numbers and strings are read"
            )
        if hasattr(target, "__setstate__"):
            target.__setstate__(state)
            return
        slots = None
        if isinstance(state, tuple) and len(state) == 2:
            state, slots = state
        if state:
            vars(target).update(state)
        for name, value in (slots or {}).items():
            setattr(target, name, value)

    def refer(self, reference: Any) -> Any:
        """See `machine.Names`."""
        return self._storages(reference)

    def is_data(self, value: Any) -> bool:
        """See `machine.Names`."""
        # A declared class or function may stand there itself, not only what it makes.
        return isinstance(value, _VALUES) or _is_safe(type(value)) or _is_safe(value)


def _is_safe(what: Any) -> bool:
    return any(what is item for item in safe.values())


_VALUES = (
    tc.Tensor, tc.dtype, tc.device, tc.Size, type(tc.per_tensor_affine), TypedStorage, UntypedStorage,
    torch_names.DimRange,
)  # fmt: skip
_TYPED = "torch._tensor._rebuild_from_type_v2"
# What is read at a first look at a file too.
_SMALL = (
    "torch.Size",
    "torch.device",
    "torch.serialization._get_layout",
    "taeda_tensor_core._info._named_format",
)


def _ordered_dict(machine: Machine, items: Any = ()) -> Any:
    pairs = isinstance(items, (list, tuple)) and all(
        isinstance(p, (list, tuple)) and len(p) == 2 for p in items
    )
    if not pairs:
        fail(f"the file makes an OrderedDict of {shown(items)}")
    out: Any = OrderedDict()
    machine.budget.take(100 * len(items))
    machine.put_in(out, [part for pair in items for part in pair])
    return out


def _counter(machine: Machine, counts: Any = ()) -> Any:
    if counts != () and type(counts) is not dict:
        fail(f"the file makes a Counter of {shown(counts)}")
    machine.budget.take(100 * len(counts))
    return Counter(counts)


def _set(machine: Machine, items: Any = ()) -> Any:
    if not isinstance(items, (list, tuple)):
        fail(f"the file makes a set of {shown(items)}")
    out: set[Any] = set()
    machine.add_to(out, items)
    return out


def _encoded(machine: Machine, text: Any, encoding: Any = "latin1") -> bytes:
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        fail("the file holds malformed bytes")
    machine.budget.take(len(text))
    return text.encode("latin-1")


def _byte_array(machine: Machine, data: Any = b"", encoding: Any = "latin1") -> bytearray:
    if isinstance(data, str):
        data = _encoded(machine, data, encoding)
    if not isinstance(data, bytes):
        fail(f"the file makes a bytearray of {shown(data)}")
    machine.budget.take(len(data))
    return bytearray(data)


def _complex(machine: Machine, real: Any = 0.0, imag: Any = 0.0) -> complex:
    if type(real) is not float or type(imag) is not float:
        fail("the file holds a malformed complex number")
    return complex(real, imag)


_CONTAINERS: dict[str, Callable[..., Any]] = {
    "collections.OrderedDict": _ordered_dict,
    "collections.Counter": _counter,
    "builtins.set": _set,
    "builtins.bytearray": _byte_array,
    "builtins.bytes": lambda machine: b"",
    "builtins.complex": _complex,
    "_codecs.encode": _encoded,
}


@contextmanager
def callers_errors() -> Iterator[None]:
    """Gives the caller what his own functions raised."""
    try:
        yield
    except torch_names.CallersError as error:
        raise error.args[0] from None


@contextmanager
def named_errors() -> Iterator[None]:
    """Turns whatever a malformed file leads to into `CheckpointError`; errors of the caller's functions stay."""
    try:
        yield
    except (CheckpointError, torch_names.CallersError):
        raise
    except (
        ArithmeticError,
        LookupError,
        ValueError,
        TypeError,
        RuntimeError,
        EOFError,
        struct.error,
    ) as error:
        raise CheckpointError(
            f"load: the file is malformed: {type(error).__name__}: {error!s:.200}"
        ) from error


class Zip:
    """A zip archive of PyTorch's: where its pickle and its storages are."""

    def __init__(self, source: Source, budget: Budget) -> None:
        self._archive = Archive(source, budget, deflated=True)
        heads = [name for name in self._archive if re.fullmatch(r"([^/]*/)?data\.pkl", name)]
        if len(heads) != 1:
            fail(f"expected one entry data.pkl in the archive, found {len(heads)}")
        self._root = heads[0][: -len("data.pkl")]
        if self._root + "constants.pkl" in self._archive:
            fail("the file is a TorchScript archive, a program with its data; read it with taeda.jit.load")
        if self._archive.is_deflated(heads[0]):
            fail(f"entry {shown(heads[0])} of the archive is compressed")
        order = self._root + "byteorder"
        if order in self._archive and self._archive.read(order) != b"little":
            fail("the archive is not in little-endian byte order")

    def pickle(self) -> bytes:
        """The pickle of the object."""
        return self._archive.read(self._root + "data.pkl")

    def storage(self, key: str) -> Any:
        """The bytes of a storage."""
        name = f"{self._root}data/{key}"
        if skipped.data:
            return tc.empty((self._archive.size(name),), dtype=tc.uint8, device="cpu")
        return self._archive.tensor(name)


def read_zip(source: Source, place: Callable[[Any, str], Any], encoding: str = "latin-1") -> Any:
    """The object in a zip archive; see `serialization.load` for its errors."""
    with named_errors():
        budget = Budget(source.size)
        archive = Zip(source, budget)
        data = Data(torch_names.Storages(archive.storage, place), encoding=encoding)
        return Machine(archive.pickle(), data, budget).run()


class Legacy:
    """A file of PyTorch's before 1.6: pickles one after another, then the storages."""

    def __init__(self, source: Source, head: int) -> None:
        self._source = source
        self._budget = Budget(source.size)
        self._data = source.part(0, min(head, source.size))
        self._at = 0
        self._wanted: dict[str, int] = {}  # bytes by key
        if (self._next(), self._next()) != OLDER_HEAD:
            fail("the file is a bare pickle, but none of PyTorch's; expected safetensors or PyTorch's files")
        facts = self._next()
        if not isinstance(facts, dict) or facts.get("little_endian") is not True:
            fail("the file is not in little-endian byte order")
        self.begin = self._at
        self._next(Data(self._note, dry=True))
        self._places = self._find(self._next())

    def _next(self, names: Data | None = None) -> Any:
        machine = Machine(self._data, names or Data(self._note), self._budget, self._at)
        value = machine.run()
        self._at = machine.at
        return value

    def _note(self, reference: Any) -> None:
        wanted = torch_names.parse_reference(reference)
        self._wanted[wanted.key] = wanted.nbytes

    def _find(self, keys: Any) -> dict[str, int]:
        """Where the bytes of each storage begin."""
        if not isinstance(keys, list) or sorted(map(shown, keys)) != sorted(map(shown, self._wanted)):
            fail("the file lists other storages than its tensors refer to")
        places, at = {}, self._at
        for key in keys:
            places[key] = at + 8
            at += 8 + self._wanted[key]
        self._source.end = at
        return places

    def pickle(self) -> bytes:
        """The pickles; the object's begins at ``begin``."""
        return self._data

    def storage(self, key: str) -> Any:
        """The bytes of a storage."""
        return self._source.tensor(self._places[key], self._wanted[key])


def read_legacy(source: Source, place: Callable[[Any, str], Any], encoding: str = "latin-1") -> Any:
    """The object in a file before zip archives; see `serialization.load` for its errors."""
    with named_errors():
        file = legacy(source)
        data = Data(torch_names.Storages(file.storage, place), encoding=encoding)
        return Machine(file.pickle(), data, Budget(source.size), file.begin).run()


def legacy(source: Source) -> Legacy:
    """The parts of a file before zip archives."""
    try:
        return Legacy(source, HEAD)
    except CheckpointError as error:
        if "cut off" not in str(error) or source.size <= HEAD:
            raise
        return Legacy(source, source.size)
