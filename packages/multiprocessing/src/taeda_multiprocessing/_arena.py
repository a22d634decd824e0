"""Arenas: anonymous memory files cut into blocks that several processes map, and accounts of who holds which block.

Note [Who holds a block]. An arena is made by one process, its owner, which alone hands out blocks. Every process that
maps it has a *slot* there: a column of accounts that nobody else writes, so that no account needs an atomic operation
and each says whose it is.

* ``holds[block]`` is 1 while the process has tensors over the block;
* ``sent[block]`` counts the messages by which it passed the block on, ``received[block]`` those that reached it. Their
  sums over all slots differ by the messages on their way.

Whoever takes a block out of a message first writes ``holds``, then ``received``; who sends one writes ``sent`` while it
holds. A block is free when nothing is on its way, nobody holds it, and no message was sent or received between these
two looks (x86-64 keeps the order of stores and of loads).

A slot is occupied as long as the byte of its number is locked through an open file description of its process alone.
The kernel ends that lock with the process, however it ends; what the dead hold does not count. The file has no name:
it ends with its last mapping.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import time
from collections import deque

import numpy as np

PAGE = 4096
SLOTS = 1024
OWNER = 0  # slot of the process that made the arena
MARK = "memfd:taeda"

_HEAD = struct.Struct("16sQQQ")  # name, blocks, where the data begins, bytes in all
_HIGH = 64  # place of the number of blocks ever handed out
_PID = 72  # place of the owner's process id
_USED = 1024  # place of one byte for each slot that was ever taken
_LOCKS = 1 << 62  # the bytes that are locked lie behind the end of the file
_FLOCK = struct.Struct("hhqqixxxx")
# Freed bytes that keep their pages for the next block of the size.
KEPT = 256 << 20
_TRUST = 0.02  # seconds for which a process that was alive counts as alive
LARGE = 64 << 10  # from here on pages are given back one block at a time


def supported() -> bool:
    """Whether the system has memory files, locks of open descriptions, and a way to open a file of another process."""
    return hasattr(os, "memfd_create") and hasattr(fcntl, "F_OFD_SETLK") and os.path.isdir("/proc/self/fd")


def again(fd: int) -> int:
    """The same file through an open description of its own."""
    return os.open(f"/proc/self/fd/{fd}", os.O_RDWR)


def _lock(fd: int, command: int, kind: int, slot: int) -> int:
    asked = _FLOCK.pack(kind, os.SEEK_SET, _LOCKS + slot, 1, 0)
    return int(_FLOCK.unpack(fcntl.fcntl(fd, command, asked))[0])


def take_slot(fd: int, slot: int) -> bool:
    """Lock a slot for the open description; False when a living process has it."""
    try:
        _lock(fd, fcntl.F_OFD_SETLK, fcntl.F_WRLCK, slot)
    except (BlockingIOError, PermissionError):
        return False
    return True


def leave_slot(fd: int, slot: int) -> None:
    """Unlock a slot."""
    _lock(fd, fcntl.F_OFD_SETLK, fcntl.F_UNLCK, slot)


def is_taken(fd: int, slot: int) -> bool:
    """Whether another open description has the slot."""
    return _lock(fd, fcntl.F_OFD_GETLK, fcntl.F_WRLCK, slot) != fcntl.F_UNLCK


def create(data_bytes: int, blocks: int) -> tuple[bytes, int]:
    """A new arena's name and file; no memory is taken before it is written."""
    begin = PAGE + SLOTS * _stride(blocks)
    name = os.urandom(16)
    fd = os.memfd_create("taeda")
    try:
        os.ftruncate(fd, begin + data_bytes)
        os.pwrite(fd, _HEAD.pack(name, blocks, begin, begin + data_bytes), 0)
    except OSError:
        os.close(fd)
        raise
    return name, fd


def name_of(fd: int) -> bytes:
    """The name in the head of an arena's file."""
    return os.pread(fd, 16, 0)


def sign(fd: int) -> None:
    """Write into an arena's head that this process owns it."""
    os.pwrite(fd, struct.pack("I", os.getpid()), _PID)


def owner_of(fd: int) -> int:
    """Process id of an arena's owner, 0 before it has signed."""
    return int(struct.unpack("I", os.pread(fd, 4, _PID))[0])


def on_their_way(fd: int) -> bool:
    """Whether messages with blocks of an arena, which need not be mapped, have not been read."""
    _, blocks, _, _ = _HEAD.unpack(os.pread(fd, _HEAD.size, 0))
    high = struct.unpack("I", os.pread(fd, 4, _HIGH))[0]
    used = os.pread(fd, SLOTS, _USED).rstrip(b"\0")
    total = np.zeros(high, np.uint32)
    for slot in range(len(used)):
        at = PAGE + slot * _stride(blocks) + blocks
        total += np.frombuffer(os.pread(fd, 4 * high, at), np.uint32)
        total -= np.frombuffer(os.pread(fd, 4 * high, at + 4 * blocks), np.uint32)
    return bool(total.any())


def _stride(blocks: int) -> int:
    return 9 * blocks


class Accounts:
    """The column of one slot."""

    __slots__ = ("holds", "received", "sent")

    def __init__(self, memory: memoryview, blocks: int, slot: int) -> None:
        at = PAGE + slot * _stride(blocks)
        self.holds = memory[at : at + blocks]
        self.sent = memory[at + blocks : at + 5 * blocks].cast("I")
        self.received = memory[at + 5 * blocks : at + 9 * blocks].cast("I")


class Place:
    """A block as this process knows it."""

    __slots__ = ("arena", "block", "lent", "nbytes", "offset", "refs")

    def __init__(self, arena: Arena, block: int, offset: int, nbytes: int) -> None:
        self.arena, self.block, self.offset, self.nbytes = arena, block, offset, nbytes
        self.refs = 0  # storages of this process over it
        self.lent = False  # waits at its owner for others to let go


class Arena:
    """An arena as one process maps it. All methods are called under the lock of the process's table.

    Args:
        fd: any descriptor of the file; stays the caller's.
        path: where others find the file beside this process: ``(pid, descriptor)`` pairs.
        slot: the slot to take; None takes the first that is free.
        lock_fd: a descriptor that occupies the slot already.
    """

    def __init__(
        self, fd: int, path: tuple[tuple[int, int], ...], slot: int | None = None, lock_fd: int | None = None
    ) -> None:
        self.name, self.blocks, self.begin, size = _HEAD.unpack(os.pread(fd, _HEAD.size, 0))
        # The mapping keeps a descriptor too, which a forked child cannot close: the lock must not hang on that one.
        self.map = mmap.mmap(fd, size)
        self.memory = memoryview(self.map)
        self.base = int(np.frombuffer(self.map, np.uint8, 1).__array_interface__["data"][0])
        self.end = self.base + size
        self.places: dict[int, Place] = {}
        self.at: dict[int, Place] = {}
        self.columns: list[Accounts] = []
        self.loose: dict[int, int] = {}
        self.loose_bytes = 0
        self._used, self._taken = b"", []
        self._lived: dict[int, float] = {}  # when slots were seen to be occupied
        self.path = path
        self.lock_fd = -1
        if lock_fd is None or slot is None:
            lock_fd, slot = self.new_slot(fd, slot)
        self.occupy(lock_fd, slot)

    def new_slot(self, fd: int, slot: int | None = None) -> tuple[int, int]:
        """A descriptor that occupies a free slot, and the slot. It belongs to whoever keeps the descriptor."""
        lock_fd = again(fd)
        for number in range(OWNER + 1, SLOTS) if slot is None else (slot,):
            if take_slot(lock_fd, number):
                self._forget(number)  # what a dead predecessor held is nobody's
                self.memory[_USED + number] = 1
                return lock_fd, number
        os.close(lock_fd)
        raise OSError(f"an arena of shared memory is mapped by {SLOTS} processes already")

    def _forget(self, slot: int) -> None:
        """Let a slot hold nothing. Blocks that the owner hands out meanwhile are not held by it."""
        high = self.high
        self._column(slot).holds[:high] = bytes(high)

    def occupy(self, lock_fd: int, slot: int) -> None:
        """Make a slot that `new_slot` gave the one of this process."""
        if self.lock_fd >= 0:
            os.close(self.lock_fd)
        self.lock_fd, self.slot, self.mine = lock_fd, slot, self._column(slot)
        self.memory[_USED + slot] = 1

    def close(self) -> None:
        """Leave the arena; its mapping ends with the last tensor."""
        os.close(self.lock_fd)
        self.lock_fd = -1

    @property
    def high(self) -> int:
        """Number of blocks ever handed out."""
        return int(struct.unpack_from("I", self.memory, _HIGH)[0])

    @property
    def is_own(self) -> bool:
        return self.slot == OWNER

    def _column(self, slot: int) -> Accounts:
        while len(self.columns) <= slot:
            self.columns.append(Accounts(self.memory, self.blocks, len(self.columns)))
        return self.columns[slot]

    def _slots(self) -> list[int]:
        """All slots that were ever taken."""
        used = self.map[_USED : _USED + SLOTS]
        if used != self._used:
            last = len(used.rstrip(b"\0")) - 1
            self._column(max(last, 0))
            self._used, self._taken = used, [slot for slot in range(last + 1) if used[slot]]
        return self._taken

    def _messages(self, slots: list[int], block: int) -> tuple[int, int]:
        columns = self.columns
        sent = sum(columns[slot].sent[block] for slot in slots)
        return sent & 0xFFFFFFFF, sum(columns[slot].received[block] for slot in slots) & 0xFFFFFFFF

    def is_free(self, block: int) -> bool:
        """Whether no other process holds a block, and no message (see Note [Who holds a block])."""
        slots = self._slots()
        before = self._messages(slots, block)
        if before[0] != before[1]:
            return False
        for slot in slots:
            if slot != self.slot and self.columns[slot].holds[block] and not self._reclaim(slot):
                return False
        return self._messages(self._slots(), block) == before

    def _reclaim(self, slot: int) -> bool:
        """Forget what a slot holds whose process is dead; False where it lives."""
        now = time.monotonic()
        if now - self._lived.get(slot, 0.0) < _TRUST:
            return False
        if not take_slot(self.lock_fd, slot):
            self._lived[slot] = now
            return False
        self._forget(slot)
        leave_slot(self.lock_fd, slot)
        return True

    def hold(self, place: Place) -> None:
        """One more storage of this process stands over a place."""
        if place.refs == 0:
            self.mine.holds[place.block] = 1
        place.refs += 1

    def send(self, place: Place) -> None:
        """A message with a place, which somebody here holds, is on its way."""
        self.mine.sent[place.block] = (self.mine.sent[place.block] + 1) & 0xFFFFFFFF

    def receive(self, block: int, offset: int, nbytes: int) -> Place:
        """A message with a block has arrived."""
        place = self.places.get(block)
        if place is None:
            place = self.places[block] = self.at[offset] = Place(self, block, offset, nbytes)
            self.loose_bytes -= self.loose.pop(offset, 0)
        self.hold(place)
        self.mine.received[block] = (self.mine.received[block] + 1) & 0xFFFFFFFF
        return place

    def drop(self, place: Place) -> None:
        """A storage over a place has ended."""
        place.refs -= 1
        if place.refs:
            return
        self.forget(place)
        if place.nbytes >= LARGE:
            self._loosen(place)
        self.mine.holds[place.block] = 0

    def forget(self, place: Place) -> None:
        """Remove what the process knows of a block."""
        del self.places[place.block], self.at[place.offset]

    def _loosen(self, place: Place) -> None:
        """Leave the pages of a block for its owner's next one, as far as these are not too many."""
        alone = not is_taken(self.lock_fd, OWNER)
        if (alone or self.loose_bytes + place.nbytes > KEPT) and self.is_free(place.block):
            self.discard(place.offset, place.nbytes)
        else:
            self.loose[place.offset] = place.nbytes
            self.loose_bytes += place.nbytes

    def discard(self, offset: int, nbytes: int) -> None:
        """Give the pages of a large block back."""
        self.map.madvise(mmap.MADV_REMOVE, offset, -(-nbytes // PAGE) * PAGE)

    def is_left(self) -> bool:
        """Whether neither this process nor the owner has a use for the arena."""
        return not self.places and not self.is_own and not is_taken(self.lock_fd, OWNER)


def size_class(nbytes: int) -> int:
    """Bytes that a block of a size takes: multiples of 64, of pages where it is large; an eighth more at most."""
    step = max(64 if nbytes <= PAGE else PAGE, 1 << max(nbytes.bit_length() - 4, 0))
    return max(-(-nbytes // step) * step, 64)


class OwnArena(Arena):
    """An arena of this process, from which it hands out blocks."""

    def __init__(self, fd: int, path: tuple[tuple[int, int], ...] = (), lock_fd: int | None = None) -> None:
        super().__init__(fd, path, OWNER, lock_fd)
        self._next, self._small, self._small_end = self.begin, 0, 0
        self._free: dict[
            int, list[tuple[int, bool]]
        ] = {}  # by size: places, and whether they kept their pages
        self._kept = 0
        self._numbers: list[int] = []
        self._lent: dict[int, deque[Place]] = {}

    def allocate(self, nbytes: int) -> Place | None:
        """A block that nobody holds yet; None when the arena is full."""
        size = size_class(nbytes)
        self._collect(size)
        offset = self._take(size)
        if offset is None or (not self._numbers and self.high == self.blocks):
            return None
        block = self._numbers.pop() if self._numbers else self._new_number()
        place = self.places[block] = self.at[offset] = Place(self, block, offset, nbytes)
        return place

    def _new_number(self) -> int:
        number = self.high
        struct.pack_into("I", self.memory, _HIGH, number + 1)
        return number

    def _take(self, size: int) -> int | None:
        free = self._free.get(size)
        if free:
            offset, kept = free.pop()
            self._kept -= size if kept else 0
            return offset
        if size > PAGE:
            return self._extend(size)
        if self._small + size > self._small_end:
            chunk = self._extend(LARGE)
            if chunk is None:
                return None
            self._small, self._small_end = chunk, chunk + LARGE
        self._small += size
        return self._small - size

    def _extend(self, size: int) -> int | None:
        if self._next + size > len(self.memory):
            return None
        # A page that cannot be had is an error here; later it would be a signal.
        os.posix_fallocate(self.lock_fd, self._next, size)
        self._next += size
        return self._next - size

    def drop(self, place: Place) -> None:
        if not self.is_own:  # a child has inherited it
            super().drop(place)
            return
        place.refs -= 1
        if place.refs:
            return
        self.mine.holds[place.block] = 0
        if place.lent:
            return  # its turn comes
        if self.is_free(place.block):
            self._recycle(place)
        else:
            place.lent = True
            self._lent.setdefault(size_class(place.nbytes), deque()).append(place)

    def _recycle(self, place: Place) -> None:
        self.forget(place)
        size = size_class(place.nbytes)
        kept = size < LARGE or self._kept + size <= KEPT
        if kept:
            self._kept += size
        else:
            self.discard(place.offset, size)
        self._free.setdefault(size, []).append((place.offset, kept))
        self._numbers.append(place.block)

    def _collect(self, size: int) -> None:
        """Look at a few lent blocks, those of the size that is wanted first."""
        for key, count in ((size, 2), (next(iter(self._lent), 0), 1)):
            lent = self._lent.pop(key, None)
            for _ in range(min(count, len(lent)) if lent else 0):
                place = lent.popleft()
                if place.refs:
                    place.lent = False  # came back by a message
                elif self.is_free(place.block):
                    self._recycle(place)
                else:
                    lent.append(place)
            if lent:
                self._lent[key] = lent  # at the end: all sizes get their turn

    def inherit(self, lock_fd: int, slot: int) -> None:
        """The process is a forked child of the owner: the arena is another's now."""
        self.occupy(lock_fd, slot)
        self._lent.clear()
