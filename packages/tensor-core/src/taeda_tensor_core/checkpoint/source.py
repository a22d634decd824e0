"""Bytes of a file by their position, whatever the file is: a path, an open file, a stream."""

from __future__ import annotations

import io
import mmap
import os
from typing import IO, Any

import taeda_tensor_core as tc
from taeda_tensor_core.checkpoint.common import fail

# Bytes asked for at once: an interrupt waits for one of these at most.
PIECE = 1 << 24
# Elements in a mapped file are used where they are if they begin at a multiple of this, as the largest of them need.
ALIGNMENT = 8


class Source:
    """A file from its position on.

    Args:
        file: binary and readable; one that cannot seek is read at once.
        mapped: shares memory with the file instead of reading it.
        shared: whether what is written to such memory goes to the file, which must be writable; else it is private.
    """

    def __init__(self, file: IO[bytes], mapped: bool = False, shared: bool = False) -> None:
        if isinstance(file, io.TextIOBase):
            raise TypeError(f"load: argument 'f' must be a binary file, found {type(file).__name__}")
        self._file, self._map = _seekable(file), None
        self.mapped, self.shared = mapped, shared
        self._base = self._file.tell()
        self.size = self._file.seek(0, os.SEEK_END) - self._base
        #: Where what was read ends; known of formats that tell it.
        self.end = self.size
        if mapped and self.size > 0:
            access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
            self._map = mmap.mmap(file.fileno(), self._base + self.size, access=access)

    def part(self, at: int, count: int) -> bytes:
        """Exactly ``count`` bytes from position ``at``."""
        self._file.seek(self._place(at, count))
        parts = []
        while count:
            data = self._file.read(min(count, PIECE))
            if not data:
                fail(f"expected {count} more bytes at the end of the file")
            parts.append(data)
            count -= len(data)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def tensor(self, at: int, count: int) -> Any:
        """The same as a uint8 tensor, which shares memory with a mapped file."""
        place = self._place(at, count)
        if self._map is not None and count and place % ALIGNMENT == 0:
            return tc.frombuffer(self._map, dtype=tc.uint8, count=count, offset=place)
        out = tc.empty((count,), dtype=tc.uint8, device="cpu")
        if count:
            self._file.seek(place)
            self._fill(memoryview(out.numpy()))
        return out

    def overwrite(self, at: int, data: bytes) -> None:
        """Puts other bytes into a file that is shared."""
        assert self._map is not None
        place = self._place(at, len(data))
        self._map[place : place + len(data)] = data

    def _place(self, at: int, count: int) -> int:
        if at < 0 or count < 0 or at + count > self.size:
            fail(f"expected {count} bytes from byte {at} on, the file has {self.size}")
        return self._base + at

    def _fill(self, target: memoryview) -> None:
        while len(target):
            count = self._into(target[:PIECE])
            if not count:
                fail(f"expected {len(target)} more bytes at the end of the file")
            target = target[count:]

    def _into(self, target: memoryview) -> int:
        if hasattr(self._file, "readinto"):
            return self._file.readinto(target) or 0
        data = self._file.read(len(target))
        target[: len(data)] = data
        return len(data)

    def finish(self) -> None:
        """Leaves the file behind what was read."""
        self._file.seek(self._base + self.end)


def _seekable(file: Any) -> Any:
    try:
        if file.seekable():
            return file
    except AttributeError:
        if hasattr(file, "seek") and hasattr(file, "tell"):
            return file
    return io.BytesIO(file.read())
