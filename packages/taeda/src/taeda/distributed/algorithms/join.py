"""Processes with different numbers of batches: those that are done go on answering the others."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import taeda as torch
from taeda.distributed import _world
from taeda.distributed._reductions import RedOpType

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What a process that is done does for others: in each of their steps, and once in the end."""

    def main_hook(self) -> None:
        """Answer one step of the others."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Do what is left, when all are done; says whether this process was among the last."""


class Joinable(ABC):
    """An object whose steps all processes take together."""

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = _JoinConfig.disabled()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What a process that is done does."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """Where tensors that are sent are."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The processes."""


class _JoinConfig:
    """Whether objects are joined, and how."""

    def __init__(self, enable: bool, throw_on_early_termination: bool, is_first_joinable: bool) -> None:
        self.enable, self.is_first_joinable = enable, is_first_joinable
        self.throw_on_early_termination = throw_on_early_termination

    @staticmethod
    def disabled() -> _JoinConfig:
        return _JoinConfig(False, False, False)


class Join:
    """Context in which processes may have different numbers of batches.

    Args:
        joinables: The objects whose steps all take together, such as `DistributedDataParallel`.
        enable: False makes the context do nothing.
        throw_on_early_termination: Raise in all processes when one is done.
        kwargs: For the hooks of the objects.

    Example:
        >>> with Join([net]):  # doctest: +SKIP
        ...     for batch in batches:
        ...         net(batch).sum().backward()
    """

    _warned: ClassVar[bool] = False

    def __init__(
        self,
        joinables: Sequence[Joinable],
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **kwargs: Any,
    ) -> None:
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables, self._enable = list(joinables), enable
        self._throw = throw_on_early_termination
        self._hooks = [item.join_hook(**kwargs) for item in joinables]
        groups = {id(item.join_process_group): item.join_process_group for item in joinables}
        if len(groups) > 1:
            raise ValueError("Using join context manager with multiple process groups")
        self._group, self._device = joinables[0].join_process_group, joinables[0].join_device
        for number, item in enumerate(joinables):
            item._join_config = _JoinConfig(enable, throw_on_early_termination, number == 0)

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if not self._enable or kind is not None:
            self._leave()
            return
        last, steps = True, 0
        try:
            while True:
                left = self._count()
                if not left:
                    break
                if self._throw:
                    _told(self._group, self._device, True)
                    raise RuntimeError(f"Rank {_world.get_rank(self._group)} exhausted all inputs.")
                last, steps = False, steps + 1
                if steps == 1000 and not Join._warned:
                    Join._warned = True
                    warnings.warn(
                        "Detected uneven input skew of greater than 1000. This means that rank "
                        f"{_world.get_rank(self._group)} has at least 1000 fewer inputs than other currently-active "
                        "ranks. This level of skew could lead to performance degradation during training.",
                        stacklevel=2,
                    )
                for hook in self._hooks:
                    hook.main_hook()
            for hook in self._hooks:
                hook.post_hook(last)
        finally:
            self._leave()

    def _leave(self) -> None:
        for item in self._joinables:
            item._join_config = _JoinConfig.disabled()

    def _count(self) -> int:
        """How many processes are not done."""
        number = torch.zeros(1, device=self._device)
        self._group.allreduce([number], RedOpType.SUM, later=False)
        return int(number.item())

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Any:
        """Tells the processes that are done that a step begins; called by joined objects.

        Raises:
            RuntimeError: Another process is done, and that is to be an error.
        """
        config = getattr(joinable, "_join_config", None)
        if config is None or not config.enable or not config.is_first_joinable:
            return None
        group, device = joinable.join_process_group, joinable.join_device
        group.allreduce([torch.ones(1, device=device)], RedOpType.SUM, later=False)
        if config.throw_on_early_termination and _told(group, device, False):
            raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return None


def _told(group: Any, device: Any, done: bool) -> bool:
    """Whether any process is done."""
    flag = torch.tensor([float(done)], device=device)
    group.allreduce([flag], RedOpType.SUM, later=False)
    return bool(flag.item())
