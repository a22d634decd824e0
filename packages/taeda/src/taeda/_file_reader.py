"""The records of a file that `taeda.save` or PyTorch wrote, one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taeda_registry.slots import tensor

if TYPE_CHECKING:
    import zipfile

__all__ = ["PyTorchFileReader"]

# Of what stands in front of a record's bytes: its fixed part, and where in it the lengths of the rest are.
_HEADER, _LENGTHS = 30, slice(26, 30)


class PyTorchFileReader:
    """Reads one record at a time, so that a program may take a few tensors out of a large file.

    Args:
        file: A path, or a file open for reading.

    Raises:
        RuntimeError: There is no such file, or it is no archive.

    Example:
        >>> taeda.save({"weight": taeda.ones(3)}, "model.pt")
        >>> reader = taeda.PyTorchFileReader("model.pt")
        >>> reader.get_storage_from_record("data/0", 3, taeda.float32)
        tensor([1., 1., 1.])
    """

    def __init__(self, file: Any) -> None:
        import zipfile

        try:
            self._archive = zipfile.ZipFile(file)
        except (OSError, zipfile.BadZipFile) as error:
            raise RuntimeError(f"PyTorchFileReader: {file} cannot be read: {error}") from error
        self._infos = {info.filename.partition("/")[2]: info for info in self._archive.infolist()}

    def _info(self, name: str) -> zipfile.ZipInfo:
        if not isinstance(name, str):
            raise TypeError(f"PyTorchFileReader: expected the name of a record, found {type(name).__name__}")
        if name not in self._infos:
            raise RuntimeError(f"PyTorchFileReader: there is no record {name!r}")
        return self._infos[name]

    def get_all_records(self) -> list[str]:
        """The names of all records."""
        return list(self._infos)

    def has_record(self, name: str) -> bool:
        """Whether there is a record of that name."""
        return name in self._infos

    def get_record(self, name: str) -> bytes:
        """A record's bytes; RuntimeError where there is none."""
        return self._archive.read(self._info(name))

    def get_record_size(self, name: str) -> int:
        """How many bytes a record has."""
        return self._info(name).file_size

    def get_record_header_offset(self, name: str) -> int:
        """Where in the file a record begins."""
        return self._info(name).header_offset

    def get_record_offset(self, name: str) -> int:
        """Where in the file a record's bytes begin."""
        begin = self._info(name).header_offset
        file = self._archive.fp
        assert file is not None
        file.seek(begin)
        lengths = file.read(_HEADER)[_LENGTHS]
        return begin + _HEADER + int.from_bytes(lengths[:2], "little") + int.from_bytes(lengths[2:], "little")

    def get_storage_from_record(self, name: str, numel: int, dtype: Any) -> Any:
        """A record as a tensor of one dimension.

        Args:
            name: The record.
            numel: How many elements it has; bytes, for `UntypedStorage`.
            dtype: Their dtype, or `UntypedStorage`.

        Raises:
            RuntimeError: There is no such record, or it has another size.
        """
        dtype = dtype if isinstance(dtype, tensor.dtype) else tensor.uint8
        data = self.get_record(name)
        if len(data) != numel * dtype.itemsize:
            raise RuntimeError(
                f"PyTorchFileReader: record {name!r} has {len(data)} bytes, expected {numel} of {dtype}, "
                f"{numel * dtype.itemsize} bytes"
            )
        return tensor.frombuffer(bytearray(data), dtype=dtype) if data else tensor.empty(0, dtype=dtype)

    def serialization_id(self) -> str:
        """What tells this file from others; empty where it does not say."""
        name = ".data/serialization_id"
        return self.get_record(name).decode() if self.has_record(name) else ""
