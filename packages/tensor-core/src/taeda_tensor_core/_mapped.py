"""Files as memory of tensors."""

from __future__ import annotations

import errno
import mmap
import os
import stat
from typing import Any

# What file systems answer that cannot reserve blocks.
_CANNOT_RESERVE = (errno.EINVAL, errno.ENODEV, errno.ENOSYS, errno.EOPNOTSUPP)


def mapped_bytes(operator: str, filename: Any, shared: bool, nbytes: int | None) -> mmap.mmap | None:
    """The first bytes of a file; None for no bytes.

    Args:
        operator: Named in errors.
        filename: Of the file.
        shared: Whether writes go to the file, which is made or grows where it is shorter. Its blocks are reserved,
            since a write to memory for which the disk has no room ends the process.
        nbytes: How many bytes; None for all.

    Raises:
        OSError: The file cannot be opened, or the disk has no room; the file is as it was.
        RuntimeError: It is no file, or too short.
    """
    if nbytes is not None and not 0 <= nbytes < 2**63:
        raise RuntimeError(f"{operator}: a file cannot have {nbytes} bytes")
    made = shared and not os.path.exists(filename)
    fd = os.open(filename, os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY, 0o666)
    try:
        facts = os.fstat(fd)
        if not stat.S_ISREG(facts.st_mode):
            raise RuntimeError(f"{operator}: {str(filename)!r} is no regular file")
        wanted = facts.st_size if nbytes is None else nbytes
        if not shared and facts.st_size < wanted:
            raise RuntimeError(
                f"{operator}: {str(filename)!r} has {facts.st_size} bytes, expected at least {wanted}"
            )
        if wanted == 0:
            return None
        if shared:
            _reserve(fd, filename, made, facts.st_size, wanted)
        return mmap.mmap(fd, wanted, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)
    finally:
        os.close(fd)


def _reserve(fd: int, filename: Any, made: bool, held: int, nbytes: int) -> None:
    try:
        try:
            os.posix_fallocate(fd, 0, nbytes)
        except OSError as error:
            if error.errno not in _CANNOT_RESERVE:
                raise
            os.ftruncate(fd, max(held, nbytes))
    except BaseException as error:
        if made:
            os.unlink(filename)
        else:
            os.ftruncate(fd, held)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(filename)
        raise
