"""Groups of devices that work together, as far as their backend has collectives."""

from __future__ import annotations

from typing import Any

from taeda_tensor_core import _C
from taeda_tensor_core._C import Tensor

REDUCTIONS = ("sum", "product", "min", "max")


class Work:
    """A collective that was begun; the tensors of the call are kept until it is waited for."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    def wait(self) -> None:
        """Wait until the work is done.

        Raises:
            RuntimeError: The work failed; other classes are those that the backend chose.
        """
        _C._work_wait(self._handle)

    def is_completed(self) -> bool:
        """Whether it is done, without waiting."""
        return _C._work_done(self._handle)


class Group:
    """One device's membership in a group of devices of a kind, which may lie in several processes.

    Every member makes the same calls in the same order. A call begins work on the device's current stream, behind
    what is there, and gives it at once. Tensors are contiguous, of the group's device, and of one shape and dtype for
    all members.

    Args:
        device: The member.
        name: The group, as all members call it.
        rank: Place of the device in the group, from 0.
        size: How many devices there are.

    Raises:
        NotImplementedError: The device's backend has no collectives.
        ValueError: There is no such place, or another has it.

    Example:
        >>> group = taeda.backends.Group("sim:0", "all", 0, 1)  # doctest: +SKIP
        >>> group.all_reduce(taeda.ones(2, device="sim:0")).wait()
    """

    def __init__(self, device: Any, name: str, rank: int, size: int) -> None:
        self._handle = _C._group_join(device, name, rank, size)
        self.device, self.name, self.rank, self.size = _C.device(device), name, rank, size

    def all_reduce(self, tensor: Tensor, reduction: str = "sum", *, out: Tensor | None = None) -> Work:
        """Every member gets the numbers of all, reduced, in `out`, or in `tensor` itself."""
        return self._begin("all_reduce", tensor, tensor if out is None else out, _reduction(reduction))

    def broadcast(self, tensor: Tensor, root: int = 0) -> Work:
        """Every member gets what `tensor` holds on the member `root`."""
        return self._begin("broadcast", tensor, None, root)

    def all_gather(self, tensor: Tensor, out: Tensor) -> Work:
        """Every member gets in `out`, (size, *tensor.shape), what each of them gave."""
        return self._begin("all_gather", tensor, out, 0)

    def reduce_scatter(self, tensor: Tensor, out: Tensor, reduction: str = "sum") -> Work:
        """The member of rank r gets in `out` the reduced numbers of place r of `tensor`, (size, *out.shape)."""
        return self._begin("reduce_scatter", tensor, out, _reduction(reduction))

    def send(self, tensor: Tensor, to: int) -> Work:
        """Send a tensor to the member `to`, whose `recv` takes it."""
        return self._begin("send", tensor, None, to)

    def recv(self, tensor: Tensor, source: int) -> Work:
        """Overwrite a tensor with what the member `source` sends."""
        return self._begin("recv", tensor, None, source)

    def _begin(self, what: str, tensor: Tensor, other: Tensor | None, number: int) -> Work:
        return Work(_C._group_begin(self._handle, what, tensor, other, number))

    def __repr__(self) -> str:
        return f"<group {self.name!r}: {self.device}, {self.rank} of {self.size}>"


def _reduction(name: str) -> int:
    if name not in REDUCTIONS:
        raise ValueError(f"argument 'reduction' must be one of {', '.join(REDUCTIONS)}, found {name!r}")
    return REDUCTIONS.index(name)
