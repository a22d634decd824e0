"""Bytes over sockets: whole messages, and the places where processes listen."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Sequence

from taeda.distributed._errors import DistNetworkError

_COUNT = struct.Struct("<I")
_SIZE = struct.Struct("<Q")
# A message of a store has at most so many parts, of together at most so many bytes.
_MOST_PARTS, _MOST_BYTES = 1 << 20, 1 << 32
# Between two attempts to reach a process that has not begun to listen.
_PAUSE = 0.05


def read(channel: socket.socket, count: int) -> bytearray:
    """Exactly so many bytes.

    Raises:
        ConnectionError: The other side has gone.
    """
    result = bytearray(count)
    rest = memoryview(result)
    while rest:
        got = channel.recv_into(rest)
        if not got:
            raise ConnectionError("connection closed by peer")
        rest = rest[got:]
    return result


def send_parts(channel: socket.socket, parts: Sequence[bytes]) -> None:
    """A message of several parts."""
    channel.sendall(_COUNT.pack(len(parts)) + b"".join(_SIZE.pack(len(part)) + part for part in parts))


def read_parts(channel: socket.socket) -> list[bytes]:
    """What `send_parts` sent."""
    (count,) = _COUNT.unpack(read(channel, _COUNT.size))
    if count > _MOST_PARTS:
        raise ConnectionError(f"a message of {count} parts: the other side speaks another protocol")
    parts, total = [], 0
    for _ in range(count):
        (size,) = _SIZE.unpack(read(channel, _SIZE.size))
        total += size
        if total > _MOST_BYTES:
            raise ConnectionError(f"a message of {total} bytes: the other side speaks another protocol")
        parts.append(bytes(read(channel, size)))
    return parts


def listen(host: str, port: int) -> socket.socket:
    """A socket that accepts connections; on this machine only where the host is its own name for itself.

    Raises:
        DistNetworkError: The port is taken.
    """
    inside = host == "localhost" or host.startswith("127.")
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(("127.0.0.1" if inside else "", port))
        found.listen(128)
    except OSError as error:
        found.close()
        raise DistNetworkError(
            f"The server socket has failed to listen on any local network address. port: {port}, {error.strerror}"
        ) from error
    return found


def connect(host: str, port: int, seconds: float) -> socket.socket:
    """A connection to a process that listens there, now or within so many seconds.

    Raises:
        DistNetworkError: Nobody does.
    """
    limit = time.monotonic() + seconds
    while True:
        try:
            found = socket.create_connection((host, port), timeout=max(0.1, min(seconds, 10.0)))
        except OSError as error:
            if time.monotonic() > limit:
                raise DistNetworkError(
                    f"The client socket has timed out after {round(1000 * seconds)}ms while trying to connect to "
                    f"({host}, {port}): {error}"
                ) from error
            time.sleep(_PAUSE)
        else:
            found.settimeout(None)
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return found


def close(channel: socket.socket) -> None:
    """Ends a connection, and what waits for it in other threads."""
    with contextlib.suppress(OSError):
        channel.shutdown(socket.SHUT_RDWR)
    channel.close()
