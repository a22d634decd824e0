"""PyTorch's TorchScript archives: the text of their code, and their objects as data. Nothing of it is run here.

Layout: PyTorch's notes on the serialization of TorchScript (torch/csrc/jit/docs/serialization.md).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Any

from taeda_registry.files import is_path
from taeda_tensor_core.checkpoint import torch_names
from taeda_tensor_core.checkpoint.archive import Archive
from taeda_tensor_core.checkpoint.common import Budget, fail, shown
from taeda_tensor_core.checkpoint.machine import Machine
from taeda_tensor_core.checkpoint.read_torch import Data, callers_errors, named_errors
from taeda_tensor_core.checkpoint.source import Source

#: The oldest format that is read: before it, archives described their modules in JSON.
OLDEST = 2


class ScriptClass:
    """A class that the code of an archive defines, by its qualified name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name


class ScriptObject:
    """An object of such a class: its attributes, or whatever else its `__getstate__` gave."""

    def __init__(self, kind: ScriptClass) -> None:
        self.kind, self.state = kind.name, None  # type: ignore[var-annotated]


class ScriptEnum:
    """A member of an enumeration that the code of an archive defines."""

    def __init__(self, kind: str, value: Any) -> None:
        self.kind, self.value = kind, value


class ScriptTyped:
    """A list or dict with the text of its type, which archives are written with."""

    def __init__(self, value: Any, kind: str) -> None:
        self.value, self.kind = value, kind


@dataclass
class ScriptArchive:
    """What an archive holds.

    Attributes:
        root: The saved module.
        code: Texts of programs by the qualified names of their modules.
        constants: What the code calls `CONSTANTS.c0` and so on.
        version: Version of the operators that the code was written for.
        extra: Further contents by name.
    """

    root: ScriptObject
    code: dict[str, str]
    constants: tuple[Any, ...]
    version: int
    extra: dict[str, bytes] = field(default_factory=dict)


class _ScriptData(Data):
    """The meaning of names in the pickles of an archive."""

    def find(self, module: str, name: str) -> Any:
        """See `machine.Names`."""
        if module == "__torch__" or module.startswith("__torch__."):
            return ScriptClass(f"{module}.{name}")
        return _LISTS.get(f"{module}.{name}") or super().find(module, name)

    def call(self, machine: Machine, what: Any, args: tuple[Any, ...]) -> Any:
        """See `machine.Names`."""
        return what(*args) if what in _LISTS.values() else super().call(machine, what, args)

    def new(self, machine: Machine, what: Any, args: tuple[Any, ...]) -> Any:
        """See `machine.Names`."""
        return ScriptObject(what) if isinstance(what, ScriptClass) else super().new(machine, what, args)

    def build(self, target: Any, state: Any) -> None:
        """See `machine.Names`."""
        if isinstance(target, ScriptObject):
            target.state = state
        else:
            super().build(target, state)

    def is_data(self, value: Any) -> bool:
        """See `machine.Names`."""
        return isinstance(value, (ScriptObject, ScriptEnum)) or super().is_data(value)


class _ScriptMachine(Machine):
    """Members of enumerations are calls with the bare value."""

    def call(self) -> None:
        what, value = self.replace(2)
        if not isinstance(what, ScriptClass):
            self._stack += [what, value]
            super().call()
            return
        self.budget.take(200)
        self._stack.append(ScriptEnum(what.name, value))


def _list_of(items: Any) -> Any:
    return items if isinstance(items, list) else fail(f"the file makes a list of {shown(items)}")


def _typed(value: Any, tag: Any) -> Any:
    if not isinstance(value, (list, dict)) or not isinstance(tag, str):
        fail(f"the file gives {shown(value)} a type, expected a list or dict")
    return value


_LISTS: dict[str, Callable[..., Any]] = {
    "torch.jit._pickle.restore_type_tag": _typed,
    **{f"torch.jit._pickle.build_{kind}list": _list_of for kind in ("int", "tensor", "double", "bool")},
}


def _is_torchscript_zip(zip_file: Any) -> bool:
    """Whether the archive of a reader of records holds a script."""
    return "constants.pkl" in zip_file.get_all_records()


def is_script(f: Any) -> bool:
    """Whether a path or seekable file is such an archive, or one of PyTorch's older ones."""
    if is_path(f):
        with open(f, "rb") as file:
            return is_script(file)
    at = f.tell()
    try:
        source = Source(f)
        if source.part(0, min(4, source.size)) != b"PK\3\4":
            return False
        names = list(Archive(source, Budget(source.size), deflated=True))
    except ValueError:
        return False
    finally:
        f.seek(at)
    return any(re.fullmatch(r"[^/]*/(constants\.pkl|model\.json)", name) for name in names)


def read_script(file: IO[bytes], map_location: Any = None) -> ScriptArchive:
    """The parts of a TorchScript archive.

    Args:
        file: Binary and readable, from its position on.
        map_location: Where tensors go; as in `serialization.load`.

    Raises:
        CheckpointError: The file is malformed, or holds what is no data.
    """
    with callers_errors(), named_errors():
        source = Source(file)
        return _Reader(source, torch_names.placer(map_location)).read()


class _Reader:
    def __init__(self, source: Source, place: Callable[[Any, str], Any]) -> None:
        self._budget = Budget(source.size)
        self._archive = Archive(source, self._budget, deflated=True)
        self._place = place
        heads = [name for name in self._archive if re.fullmatch(r"[^/]*/constants\.pkl", name)]
        if len(heads) != 1:
            fail(
                "the file is no TorchScript archive, or one of PyTorch's before 1.4, which nothing here reads"
            )
        self._root = heads[0].removesuffix("constants.pkl")

    def read(self) -> ScriptArchive:
        version = self._version()
        root = self._pickle("data")
        constants = self._pickle("constants")
        if not isinstance(root, ScriptObject) or not isinstance(constants, tuple):
            fail(f"the archive holds {shown(root)}, expected a module")
        code = {self._module(name): text.decode() for name, text in self._files("code/", ".py").items()}
        return ScriptArchive(root, code, constants, version, self._files("extra/", ""))

    def _version(self) -> int:
        for name in (".data/version", "version"):
            if self._root + name in self._archive:
                text = self._archive.read(self._root + name).strip()
                if text.isdigit() and int(text) >= OLDEST:
                    return int(text)
                fail(f"the archive has version {shown(text)}, expected {OLDEST} or more")
        return fail("the archive does not say its version")

    def _pickle(self, name: str) -> Any:
        storages = torch_names.Storages(
            lambda key: self._archive.tensor(f"{self._root}{name}/{key}"), self._place
        )
        data = self._archive.read(f"{self._root}{name}.pkl")
        return _ScriptMachine(data, _ScriptData(storages), self._budget).run()

    def _files(self, folder: str, ending: str) -> dict[str, bytes]:
        begin = self._root + folder
        return {
            name[len(begin) :]: self._archive.read(name)
            for name in self._archive
            if name.startswith(begin) and name.endswith(ending)
        }

    @staticmethod
    def _module(name: str) -> str:
        return name.removesuffix(".py").replace("/", ".")
