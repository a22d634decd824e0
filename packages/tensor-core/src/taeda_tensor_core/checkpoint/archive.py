"""Zip archives: where each entry lies, every claim of the directory checked against the file.

Layout: PKWARE's application note (APPNOTE.TXT), 4.3. Entries may neither overlap nor leave the file, so that nothing
that is read is larger than the file. Compressed entries are texts of programs, read where the caller expects them.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import Any

from taeda_tensor_core.checkpoint.common import Budget, fail, shown
from taeda_tensor_core.checkpoint.source import Source

_END = struct.Struct("<4s4H2LH")
_LOCATOR = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LENGTHS = struct.Struct("<2H")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
# Where the checksum is in an entry of the directory and in a local header, and what says that there is none.
_LISTED_SUM, _LOCAL_SUM, _NO_SUM = 16, 14, bytes(4)
_ENCRYPTED = 1
_DEFLATED = 8
_FULL = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class _Entry:
    listed: int  # where the directory has it
    begin: int  # of its local header
    data: int
    size: int
    checksum: int
    packed: int  # bytes in the file
    deflated: bool


class Archive:
    """The entries of a zip file by name.

    Args:
        source: the file.
        budget: what its directory, and what is inflated, may cost.
        deflated: whether entries may be compressed.
    """

    def __init__(self, source: Source, budget: Budget, deflated: bool = False) -> None:
        self._source, self._budget, self._deflated = source, budget, deflated
        count, length, begin = _directory(source)
        budget.take(count * 400)
        text = source.part(begin, length)
        self._entries: dict[str, _Entry] = {}
        at = 0
        for _ in range(count):
            at = self._add(text, at, begin)
        if at != len(text):
            fail(f"the directory of the archive has {len(text) - at} bytes too many")
        self._check_apart(begin)

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def __iter__(self) -> Any:
        return iter(self._entries)

    def is_deflated(self, name: str) -> bool:
        """Whether an entry is compressed."""
        return self._entry(name).deflated

    def size(self, name: str) -> int:
        """How many bytes the content of an entry has."""
        return self._entry(name).size

    def place(self, name: str) -> tuple[int, int]:
        """Where in the file an entry begins, and where its content does."""
        entry = self._entry(name)
        return entry.begin, entry.data

    def read(self, name: str) -> bytes:
        """The content of a small entry."""
        entry = self._entry(name)
        data = self._source.part(entry.data, entry.packed)
        return self._checked(name, entry, self._inflated(name, entry, data) if entry.deflated else data)

    def _inflated(self, name: str, entry: _Entry, data: bytes) -> bytes:
        self._budget.take(entry.size)
        try:
            out = zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, entry.size + 1)
        except zlib.error as error:
            fail(f"entry {shown(name)} of the archive is damaged: {error}")
        if len(out) != entry.size:
            fail(f"entry {shown(name)} of the archive does not have the {entry.size} bytes that it claims")
        return out

    def tensor(self, name: str) -> Any:
        """The content of an entry as a tensor of bytes."""
        entry = self._entry(name)
        if entry.deflated:
            fail(f"entry {shown(name)} of the archive is compressed")
        data = self._source.tensor(entry.data, entry.size)
        if entry.size and not self._source.mapped:
            self._checked(name, entry, memoryview(data.numpy()))
        if self._source.shared and entry.checksum:  # which what the program writes would not have
            self._source.overwrite(entry.begin + _LOCAL_SUM, _NO_SUM)
            self._source.overwrite(entry.listed + _LISTED_SUM, _NO_SUM)
        return data

    def _entry(self, name: str) -> _Entry:
        found = self._entries.get(name)
        return found if found is not None else fail(f"the archive has no entry {shown(name)}")

    def _checked(self, name: str, entry: _Entry, data: Any) -> Any:
        # PyTorch can leave checksums out; they are 0 then.
        if entry.checksum and zlib.crc32(data) != entry.checksum:
            fail(f"entry {shown(name)} of the archive is damaged: its checksum is wrong")
        return data

    def _add(self, text: bytes, at: int, directory: int) -> int:
        """Reads one entry of the directory; where the next one begins."""
        listed = directory + at
        if at + _ENTRY.size > len(text):
            fail("the directory of the archive is cut off")
        fields = _ENTRY.unpack_from(text, at)
        mark, flags, kind, checksum, packed, size = fields[0], fields[3], fields[4], *fields[7:10]
        lengths, begin = fields[10:13], fields[16]
        stop = at + _ENTRY.size + sum(lengths)
        if mark != b"PK\1\2" or stop > len(text):
            fail("the directory of the archive is malformed")
        at += _ENTRY.size
        raw, extra = text[at : at + lengths[0]], text[at + lengths[0] : at + lengths[0] + lengths[1]]
        name = raw.decode("utf-8", "replace")
        packed, size, begin = _wide(extra, size, packed, begin)
        deflated = kind == _DEFLATED and self._deflated
        if (not deflated and (kind != 0 or packed != size)) or flags & _ENCRYPTED:
            fail(f"entry {shown(name)} of the archive is compressed or encrypted")
        if name in self._entries:
            fail(f"the archive repeats the entry {shown(name)}")
        self._entries[name] = _Entry(listed, begin, self._data(raw, begin), size, checksum, packed, deflated)
        return stop

    def _data(self, name: bytes, begin: int) -> int:
        """Where the data begin, by the entry's own header."""
        fields = _LOCAL.unpack(self._source.part(begin, _LOCAL.size))
        at = begin + _LOCAL.size
        if fields[0] != b"PK\3\4" or self._source.part(at, min(fields[9], len(name) + 1)) != name:
            fail("the directory of the archive names an entry that is not there")
        return at + fields[9] + fields[10]

    def _check_apart(self, end: int) -> None:
        at = 0
        for name, entry in sorted(self._entries.items(), key=lambda item: item[1].begin):
            if entry.begin < at or entry.data + entry.packed > end:
                fail(f"entry {shown(name)} of the archive overlaps another one or the directory")
            at = entry.data + entry.packed


def _wide(extra: bytes, size: int, packed: int, begin: int) -> tuple[int, int, int]:
    """Packed size, size and beginning, taken from the extra field where they do not fit into 32 bits."""
    if _FULL not in (size, packed, begin):
        return packed, size, begin
    at = 0
    while at + 4 <= len(extra):
        kind, length = _LENGTHS.unpack_from(extra, at)
        if kind == 1:
            numbers = iter(struct.Struct(f"<{length // 8}Q").unpack(extra[at + 4 : at + 4 + length // 8 * 8]))
            size, packed, begin = (next(numbers, v) if v == _FULL else v for v in (size, packed, begin))
            break
        at += 4 + length
    return packed, size, begin


def _directory(source: Source) -> tuple[int, int, int]:
    """Number of entries, length and beginning of the directory."""
    tail = source.part(max(0, source.size - 65_557), min(source.size, 65_557))
    at = tail.rfind(b"PK\5\6")
    if at < 0 or at + _END.size > len(tail):
        fail("the archive has no end: it is cut off")
    end = source.size - len(tail) + at
    fields = _END.unpack_from(tail, at)
    if end + _END.size + fields[7] != source.size:
        fail("the archive has bytes behind its end")
    count, length, begin = fields[4:7]
    if end >= _LOCATOR.size:
        mark, _, place, _ = _LOCATOR.unpack(source.part(end - _LOCATOR.size, _LOCATOR.size))
        if mark == b"PK\6\7":
            wide = _END64.unpack(source.part(place, _END64.size))
            if wide[0] != b"PK\6\6":
                fail("the archive's end is malformed")
            count, length, begin, end = *wide[7:10], place
    if begin + length > end or count > length // _ENTRY.size:
        fail(f"the archive claims a directory of {count} entries and {length} bytes at byte {begin}")
    return count, length, begin
