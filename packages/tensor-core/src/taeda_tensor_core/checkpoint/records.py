"""The records of a file that `save` or PyTorch wrote, one by one."""

from __future__ import annotations

import os
import weakref
from contextlib import ExitStack
from typing import Any

import taeda_tensor_core as tc
from taeda_tensor_core.checkpoint.archive import Archive
from taeda_tensor_core.checkpoint.common import Budget, CheckpointError
from taeda_tensor_core.checkpoint.read_torch import named_errors
from taeda_tensor_core.checkpoint.source import Source


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
                path = isinstance(file, (str, os.PathLike))
                source = Source(opened.enter_context(open(file, "rb")) if path else file)
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
        name = ".data/serialization_id"
        return self.get_record(name).decode() if self.has_record(name) else ""
