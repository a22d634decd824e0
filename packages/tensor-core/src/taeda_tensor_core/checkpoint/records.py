"""The records of a file of PyTorch's form, read or written one by one."""

from __future__ import annotations

import os
import weakref
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any

import taeda_tensor_core as tc
from taeda_registry import files
from taeda_registry.files import is_path, write_to
from taeda_tensor_core.checkpoint.archive import Archive
from taeda_tensor_core.checkpoint.common import Budget, CheckpointError
from taeda_tensor_core.checkpoint.read_torch import named_errors
from taeda_tensor_core.checkpoint.source import Source
from taeda_tensor_core.checkpoint.write_torch import IDENTITY, ZipParts, archive_name, bytes_of


class PyTorchFileReader:
    """Reads one record at a time, so that a program may take a few tensors out of a large file.

    Args:
        file: A path, or a file open for reading.

    Raises:
        RuntimeError: There is no such file, or it is no archive whose entries lie apart from each other.

    Example:
        >>> taeda.save({"weight": taeda.ones(3)}, "model.pt")
        >>> reader = taeda.PyTorchFileReader("model.pt")
        >>> reader.get_storage_from_record("data/0", 3, taeda.float32)
        tensor([1., 1., 1.])
    """

    def __init__(self, file: Any) -> None:
        try:
            with ExitStack() as opened, named_errors():
                source = Source(opened.enter_context(open(file, "rb")) if is_path(file) else file)
                self._archive = Archive(source, Budget(source.size), deflated=True)
                weakref.finalize(
                    self, opened.pop_all().close
                )  # a path's file is open as long as its reader is there
        except (OSError, CheckpointError) as error:
            raise RuntimeError(f"PyTorchFileReader: {file} cannot be read: {error}") from error
        # All lie in one folder, which is not part of their names.
        self._entries = {entry.partition("/")[2]: entry for entry in self._archive}

    def _entry(self, name: str) -> str:
        if not isinstance(name, str):
            raise TypeError(f"PyTorchFileReader: expected the name of a record, found {type(name).__name__}")
        if name not in self._entries:
            raise RuntimeError(f"PyTorchFileReader: there is no record {name!r}")
        return self._entries[name]

    def get_all_records(self) -> list[str]:
        """The names of all records."""
        return list(self._entries)

    def has_record(self, name: str) -> bool:
        """Whether there is a record of that name."""
        return name in self._entries

    def get_record(self, name: str) -> bytes:
        """A record's bytes; RuntimeError where there is none."""
        return self._archive.read(self._entry(name))

    def get_record_size(self, name: str) -> int:
        """How many bytes a record has."""
        return self._archive.size(self._entry(name))

    def get_record_header_offset(self, name: str) -> int:
        """Where in the file a record begins."""
        return self._archive.place(self._entry(name))[0]

    def get_record_offset(self, name: str) -> int:
        """Where in the file a record's bytes begin."""
        return self._archive.place(self._entry(name))[1]

    def get_storage_from_record(self, name: str, numel: int, dtype: Any) -> Any:
        """A record as a tensor of one dimension.

        Args:
            name: The record.
            numel: How many elements it has; bytes, for `UntypedStorage`.
            dtype: Their dtype, or `UntypedStorage`.

        Raises:
            RuntimeError: There is no such record, it is compressed, or it has another size.
        """
        dtype = dtype if isinstance(dtype, tc.dtype) else tc.uint8
        size = self.get_record_size(name)
        if size != numel * dtype.itemsize:
            raise RuntimeError(
                f"PyTorchFileReader: record {name!r} has {size} bytes, expected {numel} of {dtype}, "
                f"{numel * dtype.itemsize} bytes"
            )
        return self._archive.tensor(self._entry(name)).view(dtype)

    def serialization_id(self) -> str:
        """What tells this file from others; empty where it does not say."""
        return self.get_record(IDENTITY).decode() if self.has_record(IDENTITY) else ""


def _discard(whole: AbstractContextManager[Any]) -> None:
    """Leaves a file that never ended: what was there before stays."""
    whole.__exit__(GeneratorExit, GeneratorExit(), None)


class PyTorchFileWriter:
    """Writes one record at a time, so that a program need not hold all tensors of a large file at once.

    Args:
        file: A path, or a file open for writing.
        compute_crc32: Accepted; entries always have their checksum.
        storage_alignment: Accepted; bytes begin at multiples of 64.

    Raises:
        RuntimeError: There can be no such file, or a record comes after the end.

    Example:
        >>> writer = taeda.PyTorchFileWriter("model.pt")
        >>> writer.write_record("data/0", taeda.ones(3).untyped_storage(), 12)
        >>> writer.write_end_of_file()
        >>> taeda.PyTorchFileReader("model.pt").get_record_size("data/0")
        12
    """

    def __init__(self, file: Any, compute_crc32: bool = True, storage_alignment: int = 64) -> None:
        path = is_path(file)
        try:
            whole = files.replacing(file) if path else nullcontext(file)
            self._file = whole.__enter__()  # left at the end of the file
        except OSError as error:
            raise RuntimeError(
                f"PyTorchFileWriter: {os.fsdecode(file)} cannot be written: {error}"
            ) from error
        self._whole, self._discard = whole, weakref.finalize(self, _discard, whole)
        self._folder = archive_name(file)
        self._archive: ZipParts | None = ZipParts()
        self._names: dict[str, None] = {}  # in order
        self._version = 3
        self._identity = self._archive.fingerprint()

    def archive_name(self) -> str:
        """The folder inside the archive that all records lie in."""
        return self._folder

    def set_min_version(self, version: int) -> None:
        """The file is to say that it is of this version of the format, or of a later one."""
        self._version = max(self._version, version)

    def get_all_written_records(self) -> list[str]:
        """The names of the records so far."""
        return list(self._names)

    def serialization_id(self) -> str:
        """What tells this file from others of other records."""
        return self._identity

    def write_record(self, name: str, data: Any, size: int) -> None:
        """Writes a record.

        Args:
            name: Of the record; there is none of this name yet.
            data: Bytes, text, a storage or a tensor.
            size: How many of its bytes are written.

        Raises:
            TypeError: ``data`` is none of these.
            ValueError: It has fewer bytes.
            RuntimeError: The file was ended, or has a record of that name.
        """
        if self._archive is None:
            raise RuntimeError(f"PyTorchFileWriter: record {name!r} comes after the end of the file")
        if name in self._names:
            raise RuntimeError(f"PyTorchFileWriter: record {name!r} was written already")
        found = bytes_of(data)
        if found is None:
            raise TypeError(
                f"PyTorchFileWriter: expected record {name!r} as bytes, text or a storage, found {type(data).__name__}"
            )
        if not 0 <= size <= len(found):
            raise ValueError(
                f"PyTorchFileWriter: argument 'size' of record {name!r} is {size}, expected at most {len(found)}"
            )
        self._names[name] = None
        parts = self._archive.entry(f"{self._folder}/{name}", memoryview(found)[:size])
        if name != IDENTITY:
            self._identity = self._archive.fingerprint()
        write_to(self._file, parts)

    def write_end_of_file(self) -> None:
        """Writes what readers begin with; a path's file is closed, and has its name from now on."""
        if self._archive is None:
            return
        if "version" not in self._names:
            self.write_record("version", text := f"{self._version}\n", len(text))
        if IDENTITY not in self._names:
            self.write_record(IDENTITY, text := self.serialization_id(), len(text))
        write_to(self._file, self._archive.end())
        self._archive = None
        self._discard.detach()
        self._whole.__exit__(None, None, None)
