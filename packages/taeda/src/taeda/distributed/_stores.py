"""Stores: tables of names and bytes that all processes of a job read and write, and by which they find each other."""

from __future__ import annotations

import fcntl
import os
import struct
import threading
import time
import weakref
from collections import deque
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from taeda.distributed._errors import DistStoreError, QueueEmptyError

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store"]

_TIMEOUT = timedelta(seconds=300)
# Between two looks at a file that others write.
_PAUSE = 0.005


def _bytes(value: str | bytes | bytearray) -> bytes:
    if not isinstance(value, (str, bytes, bytearray)):
        raise TypeError(f"Store: values are str or bytes, found {type(value).__name__}")
    return value.encode() if isinstance(value, str) else bytes(value)


def _seconds(timeout: timedelta | float | None, default: timedelta) -> float:
    if timeout is None:
        timeout = default
    return timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)


def _timed_out(key: str, seconds: float) -> DistStoreError:
    return DistStoreError(f"wait timeout after {round(1000 * seconds)}ms, keys: {key}")


class Store:
    """A table of names and bytes which several processes share.

    What derived classes bring are ``set``, ``add``, ``compare_set``, ``delete_key``, ``num_keys``, ``list_keys``,
    ``check`` and ``_found``, which waits for a name, or a ``get`` that does. `TCPStore`, `FileStore` and `HashStore`
    are such.
    """

    def __init__(self) -> None:
        self._timeout = _TIMEOUT

    @property
    def timeout(self) -> timedelta:
        """How long `get` and `wait` wait."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Sets how long `get` and `wait` wait."""
        if not isinstance(timeout, timedelta):
            raise TypeError(f"Store.set_timeout: expected a timedelta, found {type(timeout).__name__}")
        self._timeout = timeout

    def set(self, key: str, value: str | bytes) -> None:
        """Writes a value, which replaces an older one."""
        raise NotImplementedError(f"{type(self).__name__} does not define set")

    def get(self, key: str) -> bytes:
        """The value of a name, when it is there.

        Raises:
            DistStoreError: It does not come before the store's timeout.
        """
        return self._found(key, _seconds(None, self.timeout))

    def _found(self, key: str, seconds: float) -> bytes:
        if type(self).get is Store.get:
            raise NotImplementedError(f"{type(self).__name__} does not define get")
        return self.get(key)

    def add(self, key: str, amount: int) -> int:
        """Adds to a number, which begins at 0, and returns it."""
        raise NotImplementedError(f"{type(self).__name__} does not define add")

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Writes the desired value if the present one is as expected, or none is there and none is expected.

        Returns: the value afterwards; the expected one where none is there.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define compare_set")

    def delete_key(self, key: str) -> bool:
        """Removes a name; whether it was there."""
        raise NotImplementedError(f"{type(self).__name__} does not define delete_key")

    def num_keys(self) -> int:
        """How many names there are."""
        return len(self.list_keys())

    def list_keys(self) -> list[str]:
        """The names."""
        raise NotImplementedError(f"{type(self).__name__} does not define list_keys")

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all of these names are there."""
        return set(keys) <= set(self.list_keys())

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Waits until all of these names are there.

        Raises:
            DistStoreError: They do not come before the timeout.
        """
        limit = time.monotonic() + _seconds(timeout, self.timeout)
        for key in keys:
            self._found(key, max(0.0, limit - time.monotonic()))

    def append(self, key: str, value: str | bytes) -> None:
        """Adds bytes to the end of a value."""
        self.set(key, (self.get(key) if self.check([key]) else b"") + _bytes(value))

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Writes several values."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """Several values, when all are there."""
        return [self.get(key) for key in keys]

    def has_extended_api(self) -> bool:
        """Whether `append`, `multi_get` and `multi_set` are more than what is made of `get` and `set`."""
        return any(
            getattr(type(self), name) is not getattr(Store, name)
            for name in ("append", "multi_get", "multi_set")
        )


class HashStore(Store):
    """A store of one process, for its threads."""

    def __init__(self) -> None:
        super().__init__()
        self._values: dict[str, bytes] = {}
        self._queues: dict[str, deque[bytes]] = {}
        self._changed = threading.Condition()

    def set(self, key: str, value: str | bytes) -> None:
        with self._changed:
            self._values[key] = _bytes(value)
            self._changed.notify_all()

    def _found(self, key: str, seconds: float) -> bytes:
        with self._changed:
            if not self._changed.wait_for(lambda: key in self._values, seconds):
                raise _timed_out(key, seconds)
            return self._values[key]

    def add(self, key: str, amount: int) -> int:
        with self._changed:
            total = int(self._values.get(key, b"0")) + int(amount)
            self._values[key] = str(total).encode()
            self._changed.notify_all()
        return total

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        expected, desired = _bytes(expected_value), _bytes(desired_value)
        with self._changed:
            present = self._values.get(key)
            if present == expected or (present is None and not expected):
                self._values[key] = desired
                self._changed.notify_all()
                return desired
        return expected if present is None else present

    def delete_key(self, key: str) -> bool:
        with self._changed:
            return self._values.pop(key, None) is not None

    def list_keys(self) -> list[str]:
        with self._changed:
            return list(self._values)

    def append(self, key: str, value: str | bytes) -> None:
        with self._changed:
            self._values[key] = self._values.get(key, b"") + _bytes(value)
            self._changed.notify_all()

    def queue_push(self, key: str, value: str | bytes) -> None:
        """Puts a value at the end of a queue."""
        with self._changed:
            self._queues.setdefault(key, deque()).append(_bytes(value))
            self._changed.notify_all()

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """The value at the front of a queue, which leaves it.

        Raises:
            QueueEmptyError: There is none, and `block` is false. DistStoreError: None comes before the timeout.
        """
        return self._popped(key, _seconds(None, self._timeout) if block else None)

    def _popped(self, key: str, seconds: float | None) -> bytes:
        with self._changed:
            if seconds is not None and not self._changed.wait_for(lambda: self._queues.get(key), seconds):
                raise DistStoreError(f"wait timeout after {round(1000 * seconds)}ms, queue: {key}")
            if not self._queues.get(key):
                raise QueueEmptyError(f"queue {key} is empty")
            return self._queues[key].popleft()

    def queue_len(self, key: str) -> int:
        """How many values are in a queue."""
        with self._changed:
            return len(self._queues.get(key, ()))

    def clone(self) -> HashStore:
        """The store itself, which serves all threads."""
        return self


class FileStore(Store):
    """A store in a file, to which every process appends what it writes.

    Args:
        file_name: The file, on a file system that all processes see and that knows locks.
        world_size: How many processes use it; when the last of them leaves, the file goes.
    """

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        self.path = str(file_name)
        self._values: dict[str, bytes] = {}
        self._read = 0
        self._lock = threading.RLock()
        Path(self.path).touch()
        self._leave = weakref.finalize(self, _leave_file, os.getpid(), self.path) if world_size > 0 else None
        if world_size > 0:
            self.add(_USERS, 1)

    def _locked(self) -> Any:
        return _LockedFile(self.path)

    def _catch_up(self, file: Any) -> None:
        self._read = _replay(file, self._read, self._values)

    def set(self, key: str, value: str | bytes) -> None:
        self._change(lambda values: {key: _bytes(value)})

    def _change(self, change: Any) -> None:
        """Reads what others wrote, then appends what `change` gives; None as a value removes a name."""
        with self._lock, self._locked() as file:
            self._catch_up(file)
            for key, value in change(self._values).items():
                file.seek(0, os.SEEK_END)
                file.write(_record(key, value))
            self._catch_up(file)

    def _seen(self) -> dict[str, bytes]:
        with self._lock:
            if Path(self.path).exists():
                with self._locked() as file:
                    self._catch_up(file)
            return dict(self._values)

    def _found(self, key: str, seconds: float) -> bytes:
        limit = time.monotonic() + seconds
        while True:
            values = self._seen()
            if key in values:
                return values[key]
            if time.monotonic() > limit:
                raise _timed_out(key, seconds)
            time.sleep(_PAUSE)

    def add(self, key: str, amount: int) -> int:
        total = 0

        def change(values: dict[str, bytes]) -> dict[str, bytes]:
            nonlocal total
            total = int(values.get(key, b"0")) + int(amount)
            return {key: str(total).encode()}

        self._change(change)
        return total

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        expected, desired = _bytes(expected_value), _bytes(desired_value)
        after = expected

        def change(values: dict[str, bytes]) -> dict[str, bytes]:
            nonlocal after
            present = values.get(key)
            fits = present == expected or (present is None and not expected)
            after = desired if fits else expected if present is None else present
            return {key: desired} if fits else {}

        self._change(change)
        return after

    def delete_key(self, key: str) -> bool:
        there = False

        def change(values: dict[str, bytes]) -> dict[str, bytes | None]:
            nonlocal there
            there = key in values
            return {key: None} if there else {}

        self._change(change)
        return there

    def list_keys(self) -> list[str]:
        return [key for key in self._seen() if key != _USERS]


_USERS = "\0processes"
_HEAD = struct.Struct("<IQ?")


def _record(key: str, value: bytes | None) -> bytes:
    name = key.encode()
    return _HEAD.pack(len(name), len(value or b""), value is None) + name + (value or b"")


def _replay(file: Any, start: int, values: dict[str, bytes]) -> int:
    """Enter what a file has from `start` on; the place after it."""
    file.seek(start)
    content = file.read()
    place = 0
    while place + _HEAD.size <= len(content):
        length, size, gone = _HEAD.unpack_from(content, place)
        begin = place + _HEAD.size
        key = content[begin : begin + length].decode()
        if gone:
            values.pop(key, None)
        else:
            values[key] = content[begin + length : begin + length + size]
        place = begin + length + size
    return start + place


def _leave_file(process: int, path: str) -> None:
    """One process fewer; the last one removes the file. Processes forked from one that came do not count."""
    if process != os.getpid() or not Path(path).exists():
        return
    with _LockedFile(path) as file:
        values: dict[str, bytes] = {}
        _replay(file, 0, values)
        left = int(values.get(_USERS, b"1")) - 1
        file.seek(0, os.SEEK_END)
        file.write(_record(_USERS, str(left).encode()))
        if left <= 0:
            Path(path).unlink(missing_ok=True)


class _LockedFile:
    """A file open for reading and writing while no other process has it."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "r+b", buffering=0)  # noqa: SIM115  (closed by __exit__)

    def __enter__(self) -> Any:
        fcntl.flock(self._file, fcntl.LOCK_EX)
        return self._file

    def __exit__(self, *_: object) -> None:
        self._file.close()


class PrefixStore(Store):
    """Another store, in which every name begins with a prefix.

    Args:
        prefix: The beginning; a slash follows it.
        store: The store that holds the values.
    """

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__()
        self.prefix, self._store = prefix, store

    @property
    def underlying_store(self) -> Store:
        """The store that holds the values."""
        return self._store

    @property
    def timeout(self) -> timedelta:
        return self._store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        self._store.set_timeout(timeout)

    def _name(self, key: str) -> str:
        return f"{self.prefix}/{key}"

    def set(self, key: str, value: str | bytes) -> None:
        self._store.set(self._name(key), _bytes(value))

    def get(self, key: str) -> bytes:
        return self._store.get(self._name(key))

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        names = [self._name(key) for key in keys]
        self._store.wait(names) if timeout is None else self._store.wait(names, timeout)

    def _found(self, key: str, seconds: float) -> bytes:
        return self._store._found(self._name(key), seconds)

    def add(self, key: str, amount: int) -> int:
        return self._store.add(self._name(key), amount)

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        return self._store.compare_set(self._name(key), _bytes(expected_value), _bytes(desired_value))

    def delete_key(self, key: str) -> bool:
        return self._store.delete_key(self._name(key))

    def list_keys(self) -> list[str]:
        start = f"{self.prefix}/"
        return [key[len(start) :] for key in self._store.list_keys() if key.startswith(start)]

    def num_keys(self) -> int:
        return self._store.num_keys()

    def check(self, keys: Sequence[str]) -> bool:
        return self._store.check([self._name(key) for key in keys])

    def append(self, key: str, value: str | bytes) -> None:
        self._store.append(self._name(key), _bytes(value))

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        return self._store.multi_get([self._name(key) for key in keys])

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        self._store.multi_set([self._name(key) for key in keys], [_bytes(value) for value in values])

    def has_extended_api(self) -> bool:
        return self._store.has_extended_api()
