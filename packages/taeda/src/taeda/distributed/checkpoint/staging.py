"""Copies of states that a program goes on changing while they are written."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import taeda as torch

__all__ = ["AsyncStager", "BlockingAsyncStager", "DefaultStager", "StagingOptions"]


@runtime_checkable
class AsyncStager(Protocol):
    """What makes such a copy; `async_save` takes one."""

    _synchronize_after_execute: bool = True

    @property
    def should_synchronize_after_execute(self) -> bool:
        """Whether `async_save` waits for the copy."""
        return self._synchronize_after_execute

    def stage(self, state_dict: dict[str, Any]) -> Any:
        """The copy, or a future of it."""
        raise NotImplementedError(f"{type(self).__name__} must implement the method 'stage'")

    def synchronize_staging(self) -> None:
        """Waits for the copy."""

    def close(self) -> None:
        """Gives threads and memory back."""


@dataclass
class StagingOptions:
    """How a `DefaultStager` copies.

    Args:
        use_pinned_memory: Into memory that devices reach directly; where there is one.
        use_shared_memory: Into memory that other processes can be given.
        use_async_staging: By a thread; the program must leave the state alone until the future is done.
        use_non_blocking_copy: Copies from a device are queued, and waited for together.
    """

    use_pinned_memory: bool = True
    use_shared_memory: bool = True
    use_async_staging: bool = True
    use_non_blocking_copy: bool = True


class DefaultStager(AsyncStager):
    """Copies a state into the host's memory, which it keeps for the next one.

    Args:
        config: How.

    Raises:
        AssertionError: Copies are to be queued, and there is no device.

    Example:
        >>> stager = DefaultStager(StagingOptions(use_async_staging=False, use_non_blocking_copy=False))
        >>> copy = stager.stage(net.state_dict())  # doctest: +SKIP
    """

    def __init__(self, config: StagingOptions | None = None) -> None:
        self._config = config = config or StagingOptions()
        self._kept: dict[Any, Any] = {}
        self._thread = ThreadPoolExecutor(1, "taeda-staging") if config.use_async_staging else None
        self._last: Future | None = None
        self._device = torch.accelerator.is_available()
        if config.use_non_blocking_copy and not self._device:
            raise AssertionError("Non-blocking copy requires that the current accelerator is available.")

    def stage(self, state_dict: dict[str, Any], **_others: Any) -> Any:
        """The copy; with `use_async_staging` a future of it."""
        if self._thread is None:
            return self._stage(state_dict)
        self._last = self._thread.submit(self._stage, state_dict)
        return self._last

    def _stage(self, state_dict: dict[str, Any]) -> dict[str, Any]:
        copy = copied(state_dict, self._copy)
        if self._config.use_non_blocking_copy:
            torch.accelerator.synchronize()
        return copy

    def _copy(self, tensor: Any, path: tuple) -> Any:
        key = path, tuple(tensor.shape), tensor.dtype
        if key not in self._kept:
            self._kept[key] = self._room(tensor)
        return self._kept[key].copy_(tensor, non_blocking=self._config.use_non_blocking_copy)

    def _room(self, tensor: Any) -> Any:
        pinned = self._config.use_pinned_memory and self._device
        room = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=pinned)
        return room.share_memory_() if self._config.use_shared_memory and not pinned else room

    def synchronize_staging(self) -> None:
        """Waits for the copy."""
        if self._last is not None:
            self._last.result()

    def close(self) -> None:
        """Ends the thread and forgets the memory."""
        if self._thread is not None:
            self._thread.shutdown(wait=True)
        self._kept.clear()


class BlockingAsyncStager(AsyncStager):
    """Copies a state into the host's memory at once.

    Args:
        cache_staged_state_dict: Write the next one into the same memory.
        type_check: Accepted.
    """

    _synchronize_after_execute = False

    def __init__(self, cache_staged_state_dict: bool = False, type_check: bool = False) -> None:
        self.cache_staged_state_dict, self.type_check = cache_staged_state_dict, type_check
        self.state_dict_cache: dict[str, Any] | None = None
        self._kept: dict[Any, Any] = {}

    def stage(self, state_dict: dict[str, Any]) -> dict[str, Any]:
        """The copy."""
        copy = copied(state_dict, self._copy)
        if self.cache_staged_state_dict:
            self.state_dict_cache = copy
        return copy

    def _copy(self, tensor: Any, path: tuple) -> Any:
        if not self.cache_staged_state_dict:
            return on_host(tensor, path)
        key = path, tuple(tensor.shape), tensor.dtype
        if key not in self._kept:
            self._kept[key] = torch.empty(tensor.shape, dtype=tensor.dtype)
        return self._kept[key].copy_(tensor)


def on_host(tensor: Any, _path: tuple) -> Any:
    """The values of a tensor in memory of their own."""
    return tensor.cpu() if tensor.device.type != "cpu" else tensor.clone()


def copied(value: Any, copy: Any = on_host, path: tuple = ()) -> Any:
    """A state whose tensors are `copy(tensor, path)`, parts of distributed ones too."""
    from taeda.distributed.tensor import DTensor

    if isinstance(value, DTensor):
        return DTensor(copy(value.to_local().detach(), path), value._spec)
    if isinstance(value, torch.Tensor):
        return copy(value.detach(), path)
    if isinstance(value, dict):
        return {key: copied(item, copy, (*path, key)) for key, item in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(copied(item, copy, (*path, i)) for i, item in enumerate(value))
    return value
