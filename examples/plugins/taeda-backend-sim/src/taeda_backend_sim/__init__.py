"""A device "sim": threads of the host that behave like an accelerator, in C11 against the header ``taeda/abi.h`` alone.

import taeda
x = taeda.ones(3, device="sim")      # found by its name, once this is installed
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from pathlib import Path

#: Where taeda finds the plug-in.
__taeda_plugin__ = str(Path(__file__).with_name("libsim.so"))


def _library() -> ctypes.CDLL:
    return ctypes.CDLL(__taeda_plugin__)


def fail(what: str, nth: int = 1) -> None:
    """Makes the nth event from now on fail; 0 takes the request back.

    Args:
        what: "allocate", "copy", "launch", "kernel" or "synchronize".
        nth: counted from 1.

    Raises:
        ValueError: an unknown event.
    """
    if _library().sim_fail(what.encode(), ctypes.c_int64(nth)) != 0:
        raise ValueError(f"fail: expected allocate, copy, launch, kernel or synchronize, found {what!r}")


@contextlib.contextmanager
def racing() -> Iterator[None]:
    """Inside, `scatter_add` adds up in an order that differs from call to call, as where many processors do it."""
    _library().sim_race(1)
    try:
        yield
    finally:
        _library().sim_race(0)


@contextlib.contextmanager
def held(index: int = 0) -> Iterator[None]:
    """The current stream of a device stands still inside: what is put there waits."""
    _library().sim_hold(index)
    try:
        yield
    finally:
        _library().sim_resume()
