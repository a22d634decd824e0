"""What the processes of the suite of multiprocessing do; apart from it, so that clean interpreters load little."""

from __future__ import annotations

import os
from typing import Any

from taeda_registry.slots import tensor


def write(shared: Any, place: int, value: float) -> None:
    """Write into a tensor."""
    shared[place] = value


def fill_received(queue: Any, done: Any) -> None:
    """Fill one of two tensors that arrive; answer with the sum of the other."""
    first, row = queue.get()
    row.fill_(7)
    done.put(float(first.sum()))


def answer(connection: Any) -> None:
    """Send a tensor, and wait until it has arrived."""
    connection.send(tensor.arange(6).reshape(2, 3).t())
    connection.recv()


def fail(rank: int, wanted: int) -> None:
    """Raise in one process of several."""
    if rank == wanted:
        raise ArithmeticError(f"process {rank} cannot count")


def leave(rank: int, status: int) -> None:
    """End with a status, that of process 0 being 0."""
    os._exit(status * rank)
