"""TorchScript archives of PyTorch (`torch.jit.save`): read as data, their programs translated to Python.

`_code` translates, `_language` and `_operators` are what programs call, `_classes` what their objects are, `_program`
puts them together, `_writing` writes archives again.
"""

from __future__ import annotations

from typing import IO, Any

from taeda.jit._archives._program import Program
from taeda_registry.slots import tensor


def load(file: IO[bytes], map_location: Any = None, extra_files: dict[str, Any] | None = None) -> Any:
    """The module that an archive holds; see `taeda.jit.load`."""
    archive = tensor.serialization.read_script(file, map_location)
    for name in extra_files or {}:
        if name in archive.extra:
            extra_files[name] = archive.extra[name]  # type: ignore[index]
    return Program(archive).object(archive.root)


def save(module: Any, f: Any, extra: dict[str, bytes]) -> None:
    """Write a module that `load` gave to a file, as an archive."""
    from taeda.jit._archives._writing import archive_of

    tensor.serialization.write_script(archive_of(module, extra), f)
