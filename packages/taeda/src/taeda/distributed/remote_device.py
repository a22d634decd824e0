"""Where a tensor or a module of another process lies."""

from __future__ import annotations

import re

import taeda as torch


class _remote_device:
    """A device of a process: ``"worker1/cuda:0"``, ``"rank:1/cpu"``, ``"worker1"`` on the cpu, or ``"cpu"`` here.

    Raises:
        TypeError: Neither a text nor a device.
        ValueError: A text that names no process.

    Example:
        >>> place = _remote_device("rank:1/cpu")
        >>> place.rank(), place.worker_name(), place.device()
        (1, None, device(type='cpu'))
    """

    def __init__(self, remote_device: str | torch.device) -> None:
        self._rank: int | None = None
        self._worker_name: str | None = None
        if isinstance(remote_device, torch.device):
            self._device = remote_device
            return
        if not isinstance(remote_device, str):
            raise TypeError(
                "_remote_device: argument 'remote_device' must be a str or a device, "
                f"found {type(remote_device).__name__}"
            )
        if _is_device(remote_device):
            self._device = torch.device(remote_device)
            return
        found = re.fullmatch(r"(?:rank:(\d+)|([^/:]+))(?:/([^/]+))?", remote_device)
        if not found:
            raise ValueError(
                f"_remote_device: argument 'remote_device' is {remote_device!r}, expected 'WORKER/DEVICE', "
                "'rank:N/DEVICE' or 'DEVICE'"
            )
        rank, self._worker_name, device = found.groups()
        self._rank = None if rank is None else int(rank)
        self._device = torch.device(device or "cpu")

    def worker_name(self) -> str | None:
        """The name of the process, if it was given by a name."""
        return self._worker_name

    def rank(self) -> int | None:
        """The number of the process, if it was given by a number."""
        return self._rank

    def device(self) -> torch.device:
        """The device there."""
        return self._device

    def __repr__(self) -> str:
        process = self._worker_name if self._rank is None else f"rank:{self._rank}"
        return str(self._device) if process is None else f"{process}/{self._device}"

    def _key(self) -> tuple[str | None, int | None, torch.device]:
        return self._worker_name, self._rank, self._device

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _remote_device) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


def _is_device(text: str) -> bool:
    try:
        torch.device(text)
    except RuntimeError:  # of an unknown device too
        return False
    return True
