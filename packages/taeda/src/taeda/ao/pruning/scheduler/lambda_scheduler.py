"""Sparsity that follows a function of the step."""

from __future__ import annotations

from collections.abc import Callable

from taeda.ao.pruning.scheduler.base_scheduler import BaseScheduler
from taeda.ao.pruning.sparsifier.base_sparsifier import BaseSparsifier

__all__ = ["LambdaSL"]


class LambdaSL(BaseScheduler):
    """The final sparsity of every group times a function of the step.

    Args:
        sparsifier: Whose groups are set.
        sl_lambda: The function, or one for each group.
        last_epoch: The step to go on from.
        verbose: Whether every step prints what it sets.

    Raises:
        ValueError: Another number of functions.
    """

    def __init__(
        self,
        sparsifier: BaseSparsifier,
        sl_lambda: Callable[[int], float] | list[Callable[[int], float]],
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        self.sparsifier = sparsifier
        self.sl_lambdas = self._make_sure_a_list(sl_lambda)
        super().__init__(sparsifier, last_epoch, verbose)

    def get_sl(self) -> list[float]:
        self._meant_for_step()
        return [base * f(self.last_epoch) for f, base in zip(self.sl_lambdas, self.base_sl, strict=True)]
