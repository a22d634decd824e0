"""What schedules of sparsity share."""

from __future__ import annotations

import functools
import warnings
import weakref
from typing import Any

from taeda.ao.pruning.sparsifier.base_sparsifier import BaseSparsifier

__all__ = ["BaseScheduler"]


class BaseScheduler:
    """Base class: a subclass defines ``get_sl()``, the sparsity of every group at ``last_epoch``.

    Args:
        sparsifier: Whose groups' ``sparsity_level`` is set.
        last_epoch: The step to go on from; -1 begins.
        verbose: Whether every step prints what it sets.

    Raises:
        TypeError: No sparsifier.
    """

    def __init__(self, sparsifier: BaseSparsifier, last_epoch: int = -1, verbose: bool = False) -> None:
        if not isinstance(sparsifier, BaseSparsifier):
            raise TypeError(
                f"{type(sparsifier).__name__} is not an instance of torch.ao.pruning.BaseSparsifier"
            )
        self.sparsifier = sparsifier
        self.base_sl = [group["sparsity_level"] for group in sparsifier.groups]
        self.last_epoch = last_epoch
        self.verbose = verbose
        self._step_count = 0
        self._get_sl_called_within_step = False
        _count_steps(sparsifier)
        self.step()

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the sparsifier."""
        return {key: value for key, value in self.__dict__.items() if key != "sparsifier"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes back what `state_dict` returned."""
        self.__dict__.update(state_dict)

    def get_last_sl(self) -> list[float]:
        """What the last step has set."""
        return self._last_sl

    def get_sl(self) -> list[float]:
        """The sparsity of every group; for ``step``."""
        self._meant_for_step()
        raise NotImplementedError(f"{type(self).__name__} defines no get_sl")

    def _meant_for_step(self) -> None:
        if not self._get_sl_called_within_step:
            warnings.warn(
                "To get the last sparsity level computed by the scheduler, please use `get_last_sl()`.",
                stacklevel=3,
            )

    def print_sl(self, is_verbose: bool, group: int, sl: float, epoch: int | None = None) -> None:
        """Prints what is set, if wanted."""
        if is_verbose:
            begin = "Adjusting" if epoch is None else f"Epoch {epoch:5d}: adjusting"
            print(f"{begin} sparsity level of group {group} to {sl:.4e}.")

    def __repr__(self) -> str:
        return f"{type(self).__name__} (\nSparsifier {self.sparsifier}\n    base_sl: {self.base_sl}\n)"

    def step(self, epoch: int | None = None) -> None:
        """Goes on to the next step; a UserWarning tells of a first one before the sparsifier's."""
        if self._step_count == 1:
            if not hasattr(self.sparsifier.step, "_with_counter"):
                warnings.warn(
                    "Seems like `sparsifier.step()` has been overridden after sparsity scheduler initialization. "
                    "Please, make sure to call `sparsifier.step()` before `scheduler.step()`.",
                    UserWarning,
                    stacklevel=2,
                )
            elif self.sparsifier._step_count < 1:  # type: ignore[attr-defined]
                warnings.warn(
                    "Detected call of `scheduler.step()` before `sparsifier.step()`. You have to make sure you run "
                    "the sparsifier.step() BEFORE any calls to the scheduler.step().",
                    UserWarning,
                    stacklevel=2,
                )
        self._step_count += 1
        self.last_epoch += 1
        self._get_sl_called_within_step = True
        try:
            values = self.get_sl()
        finally:
            self._get_sl_called_within_step = False
        for i, (group, value) in enumerate(zip(self.sparsifier.groups, values, strict=False)):
            group["sparsity_level"] = value
            self.print_sl(self.verbose, i, value, epoch)
        self._last_sl = [group["sparsity_level"] for group in self.sparsifier.groups]
        self.sparsifier.enable_mask_update = True

    def _make_sure_a_list(self, var: Any) -> list[Any]:
        """One value for each group, from one for all or several; ValueError for another number."""
        count = len(self.sparsifier.groups)
        if not isinstance(var, (list, tuple)):
            return [var] * count
        if len(var) != count:
            raise ValueError(f"Expected variable of length {count}, but got {len(var)}")
        return list(var)


def _count_steps(sparsifier: Any) -> None:
    """Lets a sparsifier count its steps."""
    sparsifier._step_count = 0
    if getattr(sparsifier.step, "_with_counter", False):
        return
    function, owner = type(sparsifier).step, weakref.ref(sparsifier)

    @functools.wraps(function)
    def counted(*args: Any, **kwargs: Any) -> Any:
        one: Any = owner()
        one._step_count += 1
        return function(one, *args, **kwargs)

    counted._with_counter = True  # type: ignore[attr-defined]
    sparsifier.step = counted
