"""The arenas that this process maps: allocating, sending and receiving blocks, across forks and ends of processes."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import warnings
from collections import deque
from typing import Any

import numpy as np

from taeda_multiprocessing import _arena
from taeda_multiprocessing._arena import Arena, OwnArena, Place
from taeda_registry.slots import tensor

_FIRST = 4 << 30  # address space of the first arena; pages are taken when they are written
_BLOCKS = 1 << 16

#: What a message carries in place of the bytes: arena, block, place in the file, bytes, where the file can be opened.
Handle = tuple[bytes, int, int, int, tuple[tuple[int, int], ...]]


class Block(np.ndarray):
    """The bytes of a block; tensors over them keep it, and its end is theirs."""

    end: object = None


class Table:
    """All that a process knows of shared memory. There is one; the class groups its state."""

    def __init__(self) -> None:
        # Plain: an end that comes while the same thread is at work here waits in the queue. It is taken by `with` on
        # itself alone, between which and its block no KeyboardInterrupt comes that would leave it taken.
        self._lock = threading.Lock()
        self._ended: deque[Place] = deque()
        # Processes that have ended, whose memory is to be let go of; told by finalizers, too.
        self._unread: deque[tuple[int, ...]] = deque()
        self._arenas: dict[bytes, Arena] = {}
        self._own: list[OwnArena] = []
        # Files of children's first arenas, so that what a child sent can be read when it is no more.
        self._heirs: dict[bytes, tuple[int, float]] = {}
        self._legacy: tuple[bytes, int, int, int] | None = (
            None  # the file that the parent keeps for this process
        )
        self._prepared: dict[bytes, tuple[int, int]] = {}
        self._child: tuple[bytes, int] | None = None

    def _settle(self) -> None:
        """Give up the places that have ended, unless somebody has the lock, who does it then."""
        while (self._ended or self._unread) and not self._lock.locked():
            with self._lock:
                while self._unread:
                    self._leave_dead(self._unread.popleft())
                while self._ended:
                    place = self._ended.popleft()
                    place.arena.drop(place)
                    if place.arena.is_left():
                        self._leave(place.arena)

    def _leave(self, arena: Arena) -> None:
        if self._arenas.pop(arena.name, None) is not None:
            arena.close()

    def _show(self, place: Place) -> Block:
        place.arena.hold(place)
        return self._block(place)

    def _block(self, place: Place) -> Block:
        block = Block((place.nbytes,), np.uint8, place.arena.map, place.offset)
        block.end = tensor.sharing.at_end(self._ended.append, place, self._settle)
        return block

    # --- blocks ---

    def allocate(self, nbytes: int) -> Block:
        """A new block of shared memory.

        Raises:
            OSError: The system has no memory or no descriptor for it.
        """
        self._settle()
        with self._lock:
            block = self._allocate(nbytes)
        self._settle()
        return block

    def _allocate(self, nbytes: int) -> Block:
        for arena in reversed(self._own):
            place = arena.allocate(nbytes)
            if place is not None:
                return self._show(place)
        place = self._new_arena(nbytes).allocate(nbytes)
        if place is None:
            raise OSError(f"a new arena has no room for {nbytes} bytes")
        return self._show(place)

    def _new_arena(self, nbytes: int) -> OwnArena:
        self._leave_dead()
        if self._legacy is not None and 2 * nbytes <= _FIRST:
            name, fd, *kept = self._legacy
            mapped = _arena.again(fd)  # apart from the lock, see Arena
            try:
                arena = OwnArena(mapped, ((kept[0], kept[1]),), fd)
            finally:
                os.close(mapped)
            self._legacy = None
        else:
            size = max(_FIRST << len(self._own), 2 * nbytes)
            name, fd = _arena.create(-(-size // _arena.PAGE) * _arena.PAGE, _BLOCKS << len(self._own))
            try:
                arena = OwnArena(fd)
            finally:
                os.close(fd)
        self._arenas[name] = arena
        self._own.append(arena)
        return arena

    def find(self, address: int) -> Place | None:
        """The block that begins at an address."""
        for arena in self._arenas.copy().values():
            if arena.base <= address < arena.end:
                return arena.at.get(address - arena.base)
        return None

    def is_alone(self, address: int) -> bool:
        """Whether no other process holds the block that begins at an address, and no message."""
        self._settle()
        with self._lock:
            place = self.find(address)
            return place is None or place.arena.is_free(place.block)

    def send(self, address: int) -> Handle | None:
        """A handle of the block that begins at an address, for one message; the caller holds the block."""
        handle = None
        with self._lock:
            place = self.find(address)
            if place is not None and place.refs:
                arena = place.arena
                arena.send(place)
                path = ((os.getpid(), arena.lock_fd), *arena.path)
                handle = arena.name, place.block, place.offset, place.nbytes, path
        self._settle()
        return handle

    def receive(self, handle: Handle) -> Block:
        """The block of a message.

        Raises:
            RuntimeError: Its memory cannot be reached.
        """
        name, block, offset, nbytes, path = handle
        with self._lock:
            arena = self._arenas.get(name) or self._open(name, path)
            received = self._block(arena.receive(block, offset, nbytes))
        self._settle()
        return received

    # --- arenas of others ---

    def _open(self, name: bytes, path: tuple[tuple[int, int], ...]) -> Arena:
        self._leave_dead()
        if name in self._heirs:
            fd = _arena.again(self._heirs[name][0])
        else:
            fd = _reach(name, path)
        try:
            # What the sender lists after itself outlives it.
            arena = self._arenas[name] = Arena(fd, path[1:])
        finally:
            os.close(fd)
        return arena

    def _leave_dead(self, unread: tuple[int, ...] = ()) -> None:
        for arena in list(self._arenas.values()):
            if arena.is_left():
                self._leave(arena)
        for name, (fd, since) in list(self._heirs.items()):
            # A child takes its slot as it begins.
            old = time.monotonic() - since >= 1
            lost = _arena.owner_of(fd) in unread
            if (
                (old or lost)
                and not _arena.is_taken(fd, _arena.OWNER)
                and (lost or not _arena.on_their_way(fd))
            ):
                os.close(self._heirs.pop(name)[0])

    def leave_dead(self, unread: tuple[int, ...] = ()) -> None:
        """Let go of memory of processes that have ended, as far as nobody here holds it.

        Args:
            unread: ended processes whose messages nobody is going to read.
        """
        self._unread.append(unread)
        self._settle()

    # --- forks ---

    def before_fork(self) -> None:
        """Take slots for the child, so that what it inherits is held without a gap."""
        self._settle()
        self._lock.acquire()
        with contextlib.suppress(OSError):
            self._leave_dead()
            for name, arena in self._arenas.items():
                fd, slot = arena.new_slot(arena.lock_fd)
                high = arena.high
                arena.columns[slot].holds[:high] = arena.mine.holds[:high]
                self._prepared[name] = fd, slot
            self._child = _arena.create(_FIRST, _BLOCKS)

    def after_fork_in_parent(self) -> None:
        for fd, _ in self._prepared.values():
            os.close(fd)
        self._prepared.clear()
        if self._child is not None:
            name, fd = self._child
            self._heirs[name] = fd, time.monotonic()
            self._child = None
        self._lock.release()
        self._settle()

    def after_fork_in_child(self) -> None:
        for fd, _ in self._heirs.values():
            os.close(fd)
        self._heirs.clear()
        self._unread.clear()
        self._own.clear()
        for name, arena in list(self._arenas.items()):
            for place in [place for place in arena.places.values() if not place.refs]:
                arena.forget(place)
            place_of = self._prepared.get(name)
            if place_of is None:  # no descriptor was left for it
                self._leave(arena)
            elif isinstance(arena, OwnArena):
                arena.inherit(*place_of)
            else:
                arena.occupy(*place_of)
        self._prepared.clear()
        if self._legacy is not None:
            os.close(self._legacy[1])
            self._legacy = None
        if self._child is not None:
            name, inherited = self._child
            self._child = None
            with contextlib.suppress(OSError):
                fd = _arena.again(inherited)
                _arena.take_slot(fd, _arena.OWNER)
                _arena.sign(fd)
                self._legacy = name, fd, os.getppid(), inherited
            os.close(inherited)
        self._lock.release()


def _reach(name: bytes, path: tuple[tuple[int, int], ...]) -> int:
    """Open an arena through one of the processes that have it open."""
    problems = []
    for pid, number in path:
        link = f"/proc/{pid}/fd/{number}"
        try:
            # Another file may stand there when the process is another one: it is looked at before it is opened.
            if _arena.MARK not in os.readlink(link):
                raise FileNotFoundError(f"process {pid} has closed it")
            fd = os.open(link, os.O_RDWR)
        except OSError as error:
            problems.append(f"{link}: {error.strerror or error}")
            continue
        if _arena.name_of(fd) == name:
            return fd
        os.close(fd)
        problems.append(f"{link}: is another one")
    raise RuntimeError(
        "multiprocessing: the shared memory of a received tensor cannot be opened; its sender has probably ended "
        f"({'; '.join(problems)})"
    )


_table = Table()
supported = _arena.supported()
if supported:
    os.register_at_fork(
        before=_table.before_fork,
        after_in_parent=_table.after_fork_in_parent,
        after_in_child=_table.after_fork_in_child,
    )

allocate, find, is_alone, send, receive, leave_dead = (
    _table.allocate,
    _table.find,
    _table.is_alone,
    _table.send,
    _table.receive,
    _table.leave_dead,
)

_warned = False


def warn_of_copies(nbytes: int, reason: Any) -> None:
    """Say once that tensors travel as bytes."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            f"multiprocessing: no shared memory for a tensor of {nbytes} bytes ({reason}); such tensors are sent as "
            "bytes from here on",
            RuntimeWarning,
            stacklevel=3,
        )
