"""Connections between all processes of a job, and the letters that arrive over them."""

from __future__ import annotations

import contextlib
import secrets
import socket
import struct
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

from taeda.distributed import _wire
from taeda.distributed._errors import DistBackendError
from taeda.distributed._stores import Store

# Who speaks, in the first message of a connection: a secret of the listening process, and the number of the other.
_SECRET = 16
_HELLO = struct.Struct(f"<{_SECRET}sI")
# Before each letter: its group, its tag, what it is part of, its length.
_HEAD = struct.Struct("<16sq16sQ")
# Until somebody who has connected says who it is.
_PATIENCE = 10.0
# Letters up to so many bytes are copied behind their heads.
_SHORT = 1 << 16
# The group of letters that say that a process has met all others.
_MEETING = bytes(16)


@dataclass
class Letter:
    """What one process sent to another."""

    source: int
    purpose: bytes
    content: bytearray


class Mesh:
    """Connections from this process to all others.

    A thread for each of them takes what arrives out of the socket, so that no process waits for another to read.

    Args:
        rank: The number of this process.
        size: How many there are.
        store: Where they tell each other how to be reached.
        host: The address of this machine for the others.
        seconds: How long to wait for them.
    """

    def __init__(self, rank: int, size: int, store: Store, host: str, seconds: float) -> None:
        self.rank, self.size = rank, size
        self._arrived: dict[tuple[bytes, int], deque[Letter]] = {}
        self._changed = threading.Condition()
        self._gone: dict[int, str] = {}
        self._closed = False
        self._channels: dict[int, socket.socket] = {}
        self._sending: dict[int, threading.Lock] = {}
        if size > 1:
            self._meet(store, host, seconds)
        for other, channel in self._channels.items():
            self._sending[other] = threading.Lock()
            name = f"taeda-process-{other}"
            threading.Thread(target=self._read, args=(other, channel), name=name, daemon=True).start()
        self._wait_for_all(seconds)

    def _wait_for_all(self, seconds: float) -> None:
        """The first process, which may keep the store, goes on when nobody needs it any more."""
        for other in range(1, self.size) if self.rank == 0 else ():
            self.receive(other, _MEETING, 0, seconds)
        if self.rank != 0:
            self.send(0, _MEETING, 0, b"meet", b"")

    def _meet(self, store: Store, host: str, seconds: float) -> None:
        """Connect to the processes of smaller numbers, and let those of larger ones connect."""
        secret = secrets.token_bytes(_SECRET)
        door = _wire.listen(host, 0)
        try:
            store.set(f"address/{self.rank}", f"{host} {door.getsockname()[1]} {secret.hex()}")
            for other in range(self.rank):
                there, port, word = store.get(f"address/{other}").decode().split()
                channel = _wire.connect(there, int(port), seconds)
                channel.sendall(_HELLO.pack(bytes.fromhex(word), self.rank))
                self._channels[other] = channel
            self._let_in(door, secret, time.monotonic() + seconds)
        finally:
            door.close()

    def _let_in(self, door: socket.socket, secret: bytes, limit: float) -> None:
        while len(self._channels) < self.size - 1:
            door.settimeout(max(0.01, limit - time.monotonic()))
            try:
                channel, _ = door.accept()
            except TimeoutError:
                missing = sorted(set(range(self.size)) - {self.rank, *self._channels})
                raise DistBackendError(f"rank {self.rank}: processes {missing} did not connect") from None
            channel.settimeout(_PATIENCE)
            try:
                word, other = _HELLO.unpack(_wire.read(channel, _HELLO.size))
            except OSError:
                word, other = b"", 0
            if not secrets.compare_digest(word, secret) or not self.rank < other < self.size:
                channel.close()  # somebody else
                continue
            channel.settimeout(None)
            channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._channels[other] = channel

    def _read(self, other: int, channel: socket.socket) -> None:
        try:
            while True:
                group, tag, purpose, size = _HEAD.unpack(_wire.read(channel, _HEAD.size))
                content = _wire.read(channel, size)
                with self._changed:
                    letter = Letter(other, purpose.rstrip(b"\0"), content)
                    self._arrived.setdefault((group, tag), deque()).append(letter)
                    self._changed.notify_all()
        except (OSError, MemoryError) as error:
            with self._changed:
                self._gone[other] = str(error)
                self._changed.notify_all()
                if self._closed:
                    channel.close()

    def send(self, other: int, group: bytes, tag: int, purpose: bytes, content: Any) -> None:
        """Send a letter.

        Raises:
            DistBackendError: The other process has gone.
        """
        content = memoryview(content).cast("B") if len(content) else memoryview(b"")
        if other == self.rank:
            with self._changed:
                letter = Letter(other, purpose, bytearray(content))
                self._arrived.setdefault((group, tag), deque()).append(letter)
                self._changed.notify_all()
            return
        try:
            with self._sending[other]:
                # Short letters in one piece: the other process may have gone on, and away, once it has all of it.
                first = 0 if len(content) > _SHORT else len(content)
                head = _HEAD.pack(group, tag, purpose, len(content))
                self._channels[other].sendall(head + content[:first].tobytes())
                if first < len(content):
                    self._channels[other].sendall(content[first:])
        except OSError as error:
            raise DistBackendError(f"rank {self.rank}: process {other} cannot be reached: {error}") from error

    @property
    def gone(self) -> dict[int, str]:
        """The processes that are not there any more, and how that showed."""
        with self._changed:
            return dict(self._gone)

    def poll(self, source: int | None, group: bytes, tag: int) -> Letter | None:
        """The next letter of that group and tag, from one process or from any; None while there is none."""
        with self._changed:
            return self._take(source, group, tag)

    def _take(self, source: int | None, group: bytes, tag: int) -> Letter | None:
        waiting = self._arrived.get((group, tag))
        found = next((item for item in waiting or () if source is None or item.source == source), None)
        if waiting is None or found is None:
            return None
        # By identity: letters of equal content are not the same.
        place = next(i for i, item in enumerate(waiting) if item is found)
        del waiting[place]
        if not waiting:
            del self._arrived[(group, tag)]
        return found

    def receive(self, source: int | None, group: bytes, tag: int, seconds: float) -> Letter:
        """The next letter of that group and tag, when it is there.

        Raises:
            DistBackendError: The other process has gone, or none comes in time.
        """
        limit = time.monotonic() + seconds
        with self._changed:
            while True:
                found = self._take(source, group, tag)
                if found is not None:
                    return found
                lost = [source] if source in self._gone else []
                if source is None and len(self._gone) == self.size - 1 > 0:
                    lost = sorted(self._gone)
                if lost:
                    raise DistBackendError(f"rank {self.rank}: process {lost[0]}: {self._gone[lost[0]]}")
                if not self._changed.wait(max(0.0, limit - time.monotonic())):
                    who = "any process" if source is None else f"process {source}"
                    raise DistBackendError(
                        f"rank {self.rank}: Timed out waiting {round(1000 * seconds)}ms for {who}"
                    )

    def close(self) -> None:
        """Say that nothing more comes; what others still send is read until they say so too."""
        with self._changed:
            self._closed = True
            for other, channel in self._channels.items():
                if other in self._gone:
                    channel.close()
                    continue
                with contextlib.suppress(OSError):  # the other process has closed it just now
                    channel.shutdown(socket.SHUT_WR)
