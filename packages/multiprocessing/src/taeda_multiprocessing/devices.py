"""Memory of devices in messages: a handle by which a receiver opens it, and a lease that says who still does.

Note [Leases]. Memory of a device is its maker's, and no driver counts who else has opened it. So its maker keeps what
it has sent, and with each handle goes a block of shared memory, whose holders the table knows (see Note [Who holds a
block] in _arena.py): a receiver holds it until the last of its tensors over the memory is gone, or until it ends,
however it ends. When nobody else holds the block, the maker lets go of the memory. It looks at a few such blocks
whenever it sends, and at all of them in `collect`.
"""

from __future__ import annotations

import atexit
import os
import threading
import warnings
import weakref
from typing import Any, NamedTuple

from taeda_multiprocessing import _table
from taeda_registry.slots import tensor

__all__ = ["collect", "lend", "open_lent", "reduced"]

_LOOKED_AT = 4  # loans that are looked at whenever memory is sent


class Loan(NamedTuple):
    """Memory of this process that others may have open."""

    data: Any  # its bytes, which keep it
    lease: Any  # one byte of shared memory


class Lease:
    """What a receiver keeps as long as it uses the memory."""

    def __init__(self, owner: tuple[int, int], handle: bytes, byte: Any) -> None:
        self.owner, self.handle, self.byte = owner, handle, byte


# Reentrant: a tensor that ends while the same thread is at work here may end others.
_lock = threading.RLock()
_loans: dict[int, Loan] = {}
_numbers: dict[tuple[str, int], int] = {}  # of loans, by device and address
_borrowed: dict[tuple[str, int], weakref.ref[Lease]] = {}
_inherited: list[Loan] = []  # in a forked child, which can do nothing with them
_last = 0


def _place(data: Any) -> tuple[str, int]:
    return str(data.device), int(data.data_ptr())


def shares(device: Any) -> bool:
    """Whether memory of a device can be opened by other processes."""
    return device.type not in ("cpu", "meta") and bool(
        tensor.backends.capabilities(device.type).get("sharing")
    )


def reduced(value: Any) -> tuple[Any, ...] | None:
    """How a tensor of a device is pickled over its memory; None where its bytes are to go instead."""
    if value.device.type == "cpu" or not shares(value.device):
        return None
    found: tuple[Any, ...] | None = tensor.sharing.reduced_over_memory(value)
    return found


def lend(memory: Any) -> tuple[Any, tuple[Any, ...]]:
    """What stands for a storage in a message: a function and what the receiver calls it with."""
    data = memory.data
    with _lock:
        _collect(_LOOKED_AT)
        known = _borrowed.get(_place(data))
        lease = known() if known is not None else None
        if lease is not None:  # another process's: it learns of one more who holds it
            tensor.synchronize(data.device)
            return open_lent, (lease.owner, lease.handle, lease.byte)
        try:
            handle = tensor.backends.export_memory(data)
        except NotImplementedError as error:  # such memory, of a device that shares other
            _table.warn_of_copies(data.numel(), error)
            return _put_on, (data.cpu(), str(data.device))
        number = _lent(data)
        # A tensor of its own, whose end tells that the message is written.
        return open_lent, ((os.getpid(), number), handle, _loans[number].lease.detach())


def _lent(data: Any) -> int:
    """The number of the loan of a storage."""
    global _last
    number = _numbers.get(_place(data))
    if number is None:
        byte = tensor.from_numpy(_table.allocate(1))
        _last += 1
        number = _numbers[_place(data)] = _last
        _loans[number] = Loan(data, byte)
    return number


def open_lent(owner: tuple[int, int], handle: bytes, byte: Any) -> Any:
    """The bytes of a storage that was sent.

    Raises:
        ValueError: The process that made it has ended.
    """
    process, number = owner
    with _lock:
        if process == os.getpid() and number in _loans:
            return _loans[number].data
        lease = Lease(owner, handle, byte)
        opened = tensor.backends.import_memory(handle, lease)
        for place in [place for place, known in _borrowed.items() if known() is None]:
            del _borrowed[place]
        _borrowed[_place(opened)] = weakref.ref(lease)
        return opened


def _put_on(data: Any, device: str) -> Any:
    """Bytes that could not be shared, on the device again."""
    return data.to(device)


def _collect(most: int) -> None:
    """Let go of up to so many loans that nobody else holds."""
    for number in list(_loans)[:most]:
        loan = _loans[number]
        # First whether a message is being written here, then whether one is on its way or has been read.
        being_sent = tensor.sharing.storage_facts(loan.lease)[2] > 1
        ended = not being_sent and _table.is_alone(loan.lease.data_ptr())
        del _loans[number]
        if ended:
            del _numbers[_place(loan.data)]
        else:
            _loans[number] = loan  # at the end: all get their turn


def collect() -> int:
    """Let go of the devices' memory that was sent to others and that none of them holds any more.

    Returns: Bytes that others still hold, or that are on their way to them.

    Example:
        >>> mp.devices.collect()
        0
    """
    with _lock:
        _collect(len(_loans))
        return sum(loan.data.numel() for loan in _loans.values())


def _after_fork_in_child() -> None:
    """The loans are the parent's; the child's hold on their leases ends, the devices' memory is left as it is."""
    global _lock
    _lock = threading.RLock()
    _inherited.extend(Loan(loan.data, None) for loan in _loans.values())
    _loans.clear()
    _numbers.clear()


def _at_exit() -> None:
    held = collect() if _loans else 0
    if held:
        warnings.warn(
            f"multiprocessing: this process ends while others hold {held} bytes of its devices' memory, which they "
            "lose; let it live until they are done",
            RuntimeWarning,
            stacklevel=1,
        )


if _table.supported:
    os.register_at_fork(after_in_child=_after_fork_in_child)
    atexit.register(_at_exit)
