"""A store that one process keeps, and the others reach over a network."""

from __future__ import annotations

import os
import socket
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from taeda.distributed import _errors, _wire
from taeda.distributed._stores import _TIMEOUT, HashStore, Store, _bytes, _seconds, _timed_out

_JOINED = "init/"
# How many seconds a question for a value keeps the connection busy.
_PIECE = 0.05


def _number(value: bytes) -> float | None:
    return None if value == b"none" else float(value)


#: What others may ask for: the table and the parts of the message, to the parts of the answer.
_ANSWERS: dict[str, Callable[[HashStore, list[bytes]], list[bytes]]] = {
    "set": lambda table, p: table.set(p[0].decode(), p[1]) or [],
    "found": lambda table, p: [table._found(p[0].decode(), float(p[1]))],
    "add": lambda table, p: [str(table.add(p[0].decode(), int(p[1]))).encode()],
    "compare_set": lambda table, p: [table.compare_set(p[0].decode(), p[1], p[2])],
    "delete_key": lambda table, p: [b"1" if table.delete_key(p[0].decode()) else b""],
    "list_keys": lambda table, p: [key.encode() for key in table.list_keys()],
    "check": lambda table, p: [b"1" if table.check([key.decode() for key in p]) else b""],
    "append": lambda table, p: table.append(p[0].decode(), p[1]) or [],
    "queue_push": lambda table, p: table.queue_push(p[0].decode(), p[1]) or [],
    "queue_pop": lambda table, p: [table._popped(p[0].decode(), _number(p[1]))],
    "queue_len": lambda table, p: [str(table.queue_len(p[0].decode())).encode()],
}  # fmt: skip


class _Server:
    """The process that keeps the table: a thread for each connection."""

    def __init__(self, host: str, port: int) -> None:
        self.table, self.users, self.process = HashStore(), 0, os.getpid()
        self._door = _wire.listen(host, port)
        self.port = self._door.getsockname()[1]
        self._channels: list[socket.socket] = []
        threading.Thread(target=self._accept, name="taeda-store", daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                channel, _ = self._door.accept()
            except OSError:
                return
            self._channels.append(channel)
            channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(channel,), name="taeda-store", daemon=True).start()

    def _serve(self, channel: socket.socket) -> None:
        try:
            while True:
                _wire.send_parts(channel, self._answer(_wire.read_parts(channel)))
        except (OSError, ValueError):
            channel.close()

    def _answer(self, message: list[bytes]) -> list[bytes]:
        try:
            return [b"", *_ANSWERS[message[0].decode()](self.table, message[1:])]
        except Exception as error:
            return [type(error).__name__.encode(), str(error).encode()]

    def close(self) -> None:
        """Listens no more."""
        _wire.close(self._door)
        for channel in self._channels:
            _wire.close(channel)


# Between two looks at how many have come.
_PAUSE = 0.005

_servers: dict[int, _Server] = {}


def _server(host: str, port: int, shared: bool) -> _Server:
    """What keeps a table at a port; that of another store of this process where it may be shared."""
    found = _servers.get(port)
    if not shared or found is None or found.process != os.getpid():
        found = _Server(host, port)
        if shared:
            _servers[found.port] = found
    found.users += 1
    return found


class TCPStore(Store):
    """A store that one process keeps, and that others reach over a network.

    Args:
        host_name: The machine of the process that keeps it.
        port: Where that one listens; 0 takes a free one.
        world_size: How many processes use it, the keeping one too; None when it is not known.
        is_master: Whether this is the process that keeps it.
        timeout: How long to wait for the connection, and then for values.
        wait_for_workers: Whether the keeping process waits until all others have come.
        multi_tenant: Whether the keeping process may keep it a second time at the same port: both are one table.
        master_listen_fd, use_libuv: Accepted for PyTorch's sake.

    Raises:
        DistNetworkError: The port is taken, or nobody listens before the timeout.

    Example:
        >>> store = taeda.distributed.TCPStore("localhost", 0, 1, True)
        >>> store.set("name", "value")
        >>> store.get("name")
        b'value'
    """

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = _TIMEOUT,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        super().__init__()
        self.host, self._timeout, self.libuvBackend = host_name, timeout, False
        server = _server(host_name, port, multi_tenant) if is_master else None
        self.port = port if server is None else server.port
        self._lock = threading.Lock()
        self._channel = _wire.connect(host_name, self.port, timeout.total_seconds())
        weakref.finalize(self, _end, os.getpid(), self._channel, server)
        if wait_for_workers and world_size is not None:
            self._wait_for_all(world_size, is_master)

    def _wait_for_all(self, world_size: int, is_master: bool) -> None:
        self._joined = joined = self.add(_JOINED, 1)
        if joined % world_size == 0:  # more than once where one table is several stores
            self.set(f"{_JOINED}all", b"1")
        if is_master:
            self.wait([f"{_JOINED}all"])
            self.delete_key(f"{_JOINED}all")

    def wait_for_others(self, world_size: int, limit: float) -> None:
        """Wait until all have come that came for the same purpose.

        Raises:
            DistStoreError: They do not come in time. DistNetworkError: It was an older store, which has gone.
        """
        wanted = -(-self._joined // world_size) * world_size
        while (come := self.add(_JOINED, 0)) < wanted:
            if time.monotonic() > limit:
                raise _errors.DistStoreError(f"TCPStore: {come} of {wanted} processes have come")
            time.sleep(_PAUSE)

    @property
    def local_host(self) -> str:
        """The address under which this machine is seen from the process that keeps the store."""
        return self._channel.getsockname()[0]

    def _ask(self, name: str, *parts: str | bytes) -> list[bytes]:
        with self._lock:
            try:
                _wire.send_parts(self._channel, [name.encode(), *map(_bytes, parts)])
                failed, *answer = _wire.read_parts(self._channel)
            except OSError as error:
                raise _errors.DistNetworkError(
                    f"TCPStore: the process that keeps the store at {self.host}:{self.port} has gone: {error}"
                ) from error
        if failed:
            kind: Any = getattr(_errors, failed.decode(), None) or RuntimeError
            raise kind(answer[0].decode())
        return answer

    def set(self, key: str, value: str | bytes) -> None:
        self._ask("set", key, value)

    def _found(self, key: str, seconds: float) -> bytes:
        # In pieces: other threads use the connection between them.
        limit = time.monotonic() + seconds
        while True:
            rest = limit - time.monotonic()
            try:
                return self._ask("found", key, str(max(0.0, min(rest, _PIECE))))[0]
            except _errors.DistStoreError:
                if rest <= _PIECE:
                    raise _timed_out(key, seconds) from None

    def add(self, key: str, amount: int) -> int:
        return int(self._ask("add", key, str(int(amount)))[0])

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        return self._ask("compare_set", key, expected_value, desired_value)[0]

    def delete_key(self, key: str) -> bool:
        return bool(self._ask("delete_key", key)[0])

    def list_keys(self) -> list[str]:
        return [key.decode() for key in self._ask("list_keys")]

    def check(self, keys: Sequence[str]) -> bool:
        return bool(self._ask("check", *keys)[0])

    def append(self, key: str, value: str | bytes) -> None:
        self._ask("append", key, value)

    def queue_push(self, key: str, value: str | bytes) -> None:
        """Puts a value at the end of a queue."""
        self._ask("queue_push", key, value)

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """The value at the front of a queue, which leaves it.

        Raises:
            QueueEmptyError: There is none, and `block` is false. DistStoreError: None comes before the timeout.
        """
        return self._ask("queue_pop", key, str(_seconds(None, self._timeout)) if block else "none")[0]

    def queue_len(self, key: str) -> int:
        """How many values are in a queue."""
        return int(self._ask("queue_len", key)[0])

    def clone(self) -> TCPStore:
        """Another connection to the same store."""
        return TCPStore(self.host, self.port, timeout=self._timeout, wait_for_workers=False)

    def __repr__(self) -> str:
        return f"TCPStore(host={self.host!r}, port={self.port})"


def _end(process: int, channel: socket.socket, server: _Server | None) -> None:
    """Leave; a process forked from the one that came leaves the connection to that one."""
    if process != os.getpid():
        return
    _wire.close(channel)
    if server is not None:
        server.users -= 1
        if not server.users:
            if _servers.get(server.port) is server:
                del _servers[server.port]
            server.close()
