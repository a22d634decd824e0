"""Checkpoints wherever the package fsspec reaches: memory, stores of objects, other machines."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from taeda.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter

__all__ = ["FsspecReader", "FsspecWriter"]


class _Place:
    """A path of a file system of fsspec, with what is used of `pathlib.Path`."""

    def __init__(self, system: Any, path: str) -> None:
        self._system, self._path = system, path

    @classmethod
    def of(cls, url: str | os.PathLike, options: dict[str, Any]) -> _Place:
        """The place that a URL names.

        Raises:
            ImportError: fsspec, or what it needs for this kind of place, is not installed.
        """
        try:
            from fsspec.core import url_to_fs
        except ImportError as error:
            raise ImportError(
                f"FsspecWriter and FsspecReader need fsspec to reach {url}; try: pip install fsspec"
            ) from error
        return cls(*url_to_fs(os.fspath(url), **options))

    def __truediv__(self, name: str) -> _Place:
        return _Place(self._system, f"{self._path.rstrip('/')}/{name}")

    def __str__(self) -> str:
        return self._system.unstrip_protocol(self._path)

    def mkdir(self, parents: bool = True, exist_ok: bool = True) -> None:
        """Make the folder."""
        self._system.makedirs(self._path, exist_ok=exist_ok)

    def exists(self) -> bool:
        """Whether there is something."""
        return bool(self._system.exists(self._path))

    def open(self, mode: str) -> Any:
        """The file, for a `with` block."""
        return self._system.open(self._path, mode)

    def transaction(self) -> Any:
        """A block whose files get their names at its end, and none after an error."""
        return self._system.transaction


def _is_url(checkpoint_id: Any) -> bool:
    """Whether fsspec reaches a place."""
    if isinstance(checkpoint_id, os.PathLike):
        return False
    try:
        from fsspec.core import url_to_fs

        url_to_fs(str(checkpoint_id))
    except (ImportError, ValueError):
        return False
    return True


class FsspecWriter(FileSystemWriter):
    """Writes checkpoints to a URL.

    Args:
        path: As "memory://run/1" or "s3://bucket/run".
        kwargs: Those of `FileSystemWriter`; others are for fsspec.

    Raises:
        ImportError: fsspec is not installed.

    Example:
        >>> save(state, storage_writer=FsspecWriter("memory://run/1"))  # doctest: +SKIP
    """

    def __init__(self, path: str | os.PathLike, *args: Any, **kwargs: Any) -> None:
        self._options = {key: value for key, value in kwargs.items() if key not in self.SETTINGS}
        super().__init__(path, *args, **kwargs)

    def _place(self, path: Any) -> Any:
        return _Place.of(path, self._options)

    @contextmanager
    def _replacing(self, place: _Place) -> Iterator[Any]:
        with place.transaction(), place.open("wb") as file:
            yield file

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        """Whether fsspec reaches it."""
        return _is_url(checkpoint_id)


class FsspecReader(FileSystemReader):
    """Reads checkpoints from a URL.

    Args:
        path: As "memory://run/1" or "s3://bucket/run".
        kwargs: For fsspec.

    Raises:
        ImportError: fsspec is not installed.
    """

    def __init__(self, path: str | os.PathLike, **kwargs: Any) -> None:
        self._options = kwargs
        super().__init__(path)

    def _place(self, path: Any) -> Any:
        return _Place.of(path, self._options)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        """Whether fsspec reaches it."""
        return _is_url(checkpoint_id)


def writer_of(place: Any) -> FileSystemWriter:
    """What writes to a folder or a URL."""
    return (FileSystemWriter if FileSystemWriter.validate_checkpoint_id(place) else FsspecWriter)(place)


def reader_of(place: Any) -> FileSystemReader:
    """What reads from a folder or a URL."""
    return (FileSystemReader if FileSystemReader.validate_checkpoint_id(place) else FsspecReader)(place)
