"""Bytes into files: a regular file is replaced as a whole or not at all, everything else is written through."""

from __future__ import annotations

import errno
import io
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

# Bytes handed over at once: an interrupt waits for one of these at most.
PIECE = 1 << 24


class MissingFolderError(FileNotFoundError, RuntimeError):
    """The folder that a file is to be written into is not there; PyTorch raises RuntimeError."""


def is_path(f: Any) -> bool:
    """Whether a file is told by its place: paths of some packages have methods `read` and `write` too."""
    return isinstance(f, (str, bytes, os.PathLike)) and not hasattr(f, "close")


def write(f: Any, parts: Iterable[Any]) -> None:
    """Writes buffers of bytes to a path or a binary file; see `replacing`."""
    if hasattr(f, "write") and not is_path(f):
        write_to(f, parts)
    else:
        _to_path(os.fsdecode(f), parts)


def write_to(file: IO[bytes], parts: Iterable[Any]) -> None:
    """Writes buffers of bytes to a binary file, in pieces."""
    if isinstance(file, io.TextIOBase):
        raise TypeError(f"save: argument 'f' must be a binary file, found {type(file).__name__}")
    for part in parts:
        view = memoryview(part)
        for at in range(0, len(view), PIECE):
            _all_of(file, view[at : at + PIECE])
    # Others may read the file by its name before it is closed.
    if hasattr(file, "flush"):
        file.flush()


def _all_of(file: IO[bytes], piece: memoryview) -> None:
    """Unbuffered files may take less than they are given, and say how much."""
    while len(piece):
        taken = file.write(piece)
        if taken is None:
            if isinstance(file, io.RawIOBase):
                raise BlockingIOError(errno.EAGAIN, "save: the file takes no more bytes without waiting")
            return  # a writer of somebody's own, which says nothing: it took everything
        if not 0 < taken <= len(piece):
            raise OSError(errno.EIO, f"save: the file took {taken} of {len(piece)} bytes")
        piece = piece[taken:]


def _to_path(path: str, parts: Iterable[Any]) -> None:
    with replacing(path, buffering=0) as file:
        write_to(file, parts)


@contextmanager
def replacing(path: str | bytes | os.PathLike[Any], buffering: int = 1 << 18) -> Iterator[Any]:
    """A binary file to write, which takes the name ``path`` when the block ends well; else what is there stays.

    Args:
        path: A link stays, what it points to is replaced. Pipes and devices are written through. A file that is there
            and empty, as temporary files are, is filled, for those that hold it open; it is empty again after an error.
        buffering: As of `open`.

    Raises:
        MissingFolderError: The folder is not there.
        OSError: The file cannot be written; the error names ``path``.
    """
    name = os.fsdecode(path)
    try:
        old = os.stat(name)
    except FileNotFoundError:
        old = None
    target = os.path.realpath(name)
    if old is not None and not _replaceable(target, old):
        with open(name, "wb", buffering=buffering) as file:
            yield file
        return
    if old is not None and old.st_size == 0:
        with _filling(name, buffering) as file:
            yield file
        return
    folder = os.path.dirname(target)
    handle, temporary = _temporary(folder, 0o666 if old is None else 0o600)
    try:
        raw = _Part(handle, name)
        with io.BufferedWriter(raw, buffering) if buffering else raw as file:
            yield file
            file.flush()
            if old is not None:
                _take_owner_and_mode(handle, old)
            os.fsync(handle)
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


@contextmanager
def _filling(name: str, buffering: int) -> Iterator[Any]:
    raw = _Part(os.open(name, os.O_WRONLY | os.O_CLOEXEC), name)
    kept = os.dup(raw.fileno())
    file = io.BufferedWriter(raw, buffering) if buffering else raw
    try:
        yield file
        if not file.closed:
            file.flush()
        os.fsync(kept)
        file.close()
    except BaseException:
        with suppress(OSError):
            file.close()  # with what is still buffered
        os.ftruncate(kept, 0)
        raise
    finally:
        os.close(kept)


@contextmanager
def replacing_text(path: str | bytes | os.PathLike[Any], newline: str | None = None) -> Iterator[Any]:
    """As `replacing`, for text in UTF-8."""
    with replacing(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline=newline)
        try:
            yield text
            text.flush()
        except BaseException:
            with suppress(OSError, ValueError):  # the first error is the one to tell
                text.close()
            raise
        text.detach()  # else its end would close the file


class _Part(io.FileIO):
    """The file that is being written, whose errors name the one that it is to become."""

    def __init__(self, handle: int, name: str) -> None:
        super().__init__(handle, "wb")
        self.name = name

    def write(self, data: Any) -> int | None:
        try:
            return super().write(data)
        except OSError as error:
            error.filename = self.name
            raise


def _replaceable(target: str, old: os.stat_result) -> bool:
    """Whether a new file may stand in the old one's place: not for pipes, devices and nameless files."""
    if not stat.S_ISREG(old.st_mode):
        return False
    try:
        return os.path.samestat(old, os.lstat(target))
    except OSError:
        return False


def _temporary(folder: str, mode: int) -> tuple[int, str]:
    """A new file beside the target. Its name is short, because the target's may be as long as names can be."""
    while True:
        name = os.path.join(folder, f".taeda-{secrets.token_hex(8)}.tmp")
        try:  # the system takes the process's umask off the mode
            return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), name
        except FileExistsError:
            continue
        except FileNotFoundError as error:
            raise MissingFolderError(error.errno, "Parent directory does not exist", folder) from None
        except OSError as error:
            raise OSError(error.errno, error.strerror, folder) from None


def _take_owner_and_mode(handle: int, old: os.stat_result) -> None:
    mine = os.fstat(handle)
    if (mine.st_uid, mine.st_gid) != (old.st_uid, old.st_gid):
        with suppress(PermissionError):  # only some may give files away
            os.fchown(handle, old.st_uid, old.st_gid)
    os.fchmod(handle, old.st_mode & 0o777)


def _sync_folder(folder: str) -> None:
    """Makes the new name outlive a loss of power; file systems that cannot do that for folders say EINVAL."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:
        return  # a folder that may be written but not read
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)
