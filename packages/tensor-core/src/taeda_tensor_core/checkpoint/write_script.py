"""Writing TorchScript archives: the text of a program, its objects and its constants, as PyTorch reads them."""

from __future__ import annotations

import io
from typing import Any

import taeda_tensor_core as tc
from taeda_registry.files import write
from taeda_tensor_core.checkpoint.read_script import ScriptArchive, ScriptEnum, ScriptObject, ScriptTyped
from taeda_tensor_core.checkpoint.write_torch import Pickler, _plain, archive_name, zipped

_NEW, _BUILD, _CALL, _NO_ARGUMENTS = b"\x81", b"b", b"R", b")"


class _ScriptPickler(Pickler):
    """Objects of the program's classes stand by their names; parameters are plain tensors."""

    def save(self, obj: Any, *args: Any, **kwargs: Any) -> None:
        if isinstance(obj, ScriptObject):
            self._object(obj)
        elif isinstance(obj, ScriptEnum):
            self._name(obj.kind)
            self.save(obj.value)
            self.write(_CALL)
        elif isinstance(obj, ScriptTyped):
            self._name("torch.jit._pickle.restore_type_tag")
            self.save((obj.value, obj.kind))
            self.write(_CALL)
        else:
            super().save(obj, *args, **kwargs)

    def _object(self, obj: ScriptObject) -> None:
        known = self.memo.get(id(obj))
        if known is not None:
            self.write(self.get(known[0]))
            return
        self._name(obj.kind)
        self.write(_NO_ARGUMENTS + _NEW)
        self.memoize(obj)
        self.save(obj.state)
        self.write(_BUILD)

    def _name(self, full: str) -> None:
        module, _, name = full.rpartition(".")
        self.write(f"c{module}\n{name}\n".encode())

    def _tensor(self, tensor: Any) -> Any:
        make, facts = self._values(tensor)
        if make.name != "_rebuild_tensor_v2":
            raise TypeError(f"save: a TorchScript archive holds no tensor of dtype {tensor.dtype}")
        return make, facts


def _pickled(value: Any, folder: str, entries: dict[str, Any]) -> None:
    file = io.BytesIO()
    pickler = _ScriptPickler(file, 2)
    pickler.dump(value)
    entries[f"{folder}.pkl"] = file.getbuffer()
    for key, memory in pickler.storages.items():
        entries[f"{folder}/{key}"] = _plain(memory)


def write_script(archive: ScriptArchive, f: Any) -> None:
    """Write an archive to a path or a binary file.

    Args:
        archive: What it is to hold; objects in `root` are `ScriptObject`, `ScriptEnum`, `ScriptTyped`, tensors and
            plain data.
        f: The path or file.

    Raises:
        TypeError: A tensor of a kind that archives do not have.
    """
    entries: dict[str, Any] = {}
    with tc.no_grad():
        _pickled(archive.root, "data", entries)
        _pickled(archive.constants, "constants", entries)
    for module, text in archive.code.items():
        entries[f"code/{module.replace('.', '/')}.py"] = text.encode()
    for name, content in archive.extra.items():
        entries[f"extra/{name}"] = content
    entries["version"] = f"{archive.version}\n".encode()
    entries["byteorder"] = b"little"
    write(f, zipped(entries, archive_name(f)))
