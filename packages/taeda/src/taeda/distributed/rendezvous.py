"""How processes find each other: the addresses that programs give."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlparse

from taeda.distributed._errors import DistNetworkError
from taeda.distributed._stores import FileStore, Store
from taeda.distributed._tcp_store import TCPStore
from taeda.distributed._world import default_pg_timeout

__all__ = ["register_rendezvous_handler", "rendezvous"]

_Found = Iterator[tuple[Store, int, int]]
_handlers: dict[str, Callable[..., _Found]] = {}


def register_rendezvous_handler(scheme: str, handler: Callable[..., _Found]) -> None:
    """Lets a function answer for addresses that begin with ``scheme://``.

    Raises:
        RuntimeError: Another one does already.
    """
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any) -> _Found:
    """The store to which an address leads, the number of this process, and how many there are.

    Args:
        url: "env://", "tcp://HOST:PORT" or "file:///PATH"; ``?rank=R&world_size=N`` may follow.
        rank, world_size: -1 where the address or the environment says.

    Raises:
        ValueError: Something is missing. RuntimeError: An unknown kind of address.
    """
    if not isinstance(url, str):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    parts = urlparse(url)
    asked = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    if rank != -1:
        asked["rank"] = str(rank)
    if world_size != -1:
        asked["world_size"] = str(world_size)
    handler = _handlers.get(parts.scheme)
    if handler is None:
        raise RuntimeError(f"No rendezvous handler for {parts.scheme}://")
    if handler in (_environment, _tcp, _file):
        return handler(parts, asked, kwargs.get("timeout", default_pg_timeout))
    return handler(url, **kwargs)


def _given(asked: dict[str, str], name: str, scheme: str) -> int:
    if name not in asked:
        raise ValueError(
            f"Error initializing torch.distributed using {scheme}:// rendezvous: {name} parameter missing"
        )
    return int(asked[name])


def _of_environment(name: str) -> str:
    if not os.environ.get(name):
        raise ValueError(
            f"Error initializing torch.distributed using env:// rendezvous: environment variable {name} expected, "
            "but not set"
        )
    return os.environ[name]


def _environment(parts: Any, asked: dict[str, str], timeout: timedelta) -> _Found:
    rank = int(asked["rank"] if "rank" in asked else _of_environment("RANK"))
    size = int(asked["world_size"] if "world_size" in asked else _of_environment("WORLD_SIZE"))
    host, port = _of_environment("MASTER_ADDR"), int(_of_environment("MASTER_PORT"))
    yield _common(host, port, rank, size, timeout), rank, size


def _common(host: str, port: int, rank: int, size: int, timeout: timedelta) -> Store:
    """The store of the first process. Another one at the same address may just be ending: it is not taken for it."""
    limit = time.monotonic() + timeout.total_seconds()
    while True:
        try:
            store = TCPStore(host, port, size, rank == 0, timeout, multi_tenant=True)
            if rank != 0:
                store.wait_for_others(size, limit)
            return store
        except DistNetworkError:
            if rank == 0 or time.monotonic() > limit:
                raise


def _tcp(parts: Any, asked: dict[str, str], timeout: timedelta) -> _Found:
    if parts.port is None or parts.hostname is None:
        raise ValueError("Error initializing torch.distributed using tcp:// rendezvous: port number missing")
    rank, size = _given(asked, "rank", "tcp"), _given(asked, "world_size", "tcp")
    yield _common(parts.hostname, parts.port, rank, size, timeout), rank, size


def _file(parts: Any, asked: dict[str, str], timeout: timedelta) -> _Found:
    if not parts.path:
        raise ValueError("Error initializing torch.distributed using file:// rendezvous: path missing")
    rank, size = _given(asked, "rank", "file"), _given(asked, "world_size", "file")
    yield FileStore(parts.path, size), rank, size


_handlers.update(env=_environment, tcp=_tcp, file=_file)
