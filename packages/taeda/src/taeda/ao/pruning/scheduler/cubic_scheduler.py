"""Sparsity that rises fast at first and slowly at last."""

from __future__ import annotations

from typing import Any

from taeda.ao.pruning.scheduler.base_scheduler import BaseScheduler
from taeda.ao.pruning.sparsifier.base_sparsifier import BaseSparsifier

__all__ = ["CubicSL"]


class CubicSL(BaseScheduler):
    """From ``init_sl`` to the groups' sparsity by the third power of the time that is left.

    Args:
        sparsifier: Whose groups are set.
        init_sl: Sparsity at the beginning.
        init_t: The step at which pruning begins.
        delta_t, total_t: Steps from one change to the next, and number of changes.
        initially_zero: Whether nothing is pruned before ``init_t``.
        last_epoch: The step to go on from.
        verbose: Whether every step prints what it sets.

    Each of the five may be a list with a value for every group.

    Source: Zhu and Gupta, "To prune, or not to prune", 2017.
    """

    def __init__(
        self,
        sparsifier: BaseSparsifier,
        init_sl: Any = 0.0,
        init_t: Any = 0,
        delta_t: Any = 10,
        total_t: Any = 100,
        initially_zero: Any = False,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        self.sparsifier = sparsifier
        self.init_sl = self._make_sure_a_list(init_sl)
        self.init_t = self._make_sure_a_list(init_t)
        self.delta_t = self._make_sure_a_list(delta_t)
        self.total_t = self._make_sure_a_list(total_t)
        self.initially_zero = self._make_sure_a_list(initially_zero)
        super().__init__(sparsifier, last_epoch, verbose)

    @staticmethod
    def sparsity_compute_fn(
        s_0: float, s_f: float, t: int, t_0: int, dt: int, n: int, initially_zero: bool = False
    ) -> float:
        """The sparsity at step ``t``, from ``s_0`` at ``t_0`` to ``s_f`` after ``n`` changes ``dt`` apart."""
        if initially_zero and t < t_0:
            return 0
        left = 1.0 - (t - t_0) / (dt * n)
        return max(s_0, min(s_f, s_f + (s_0 - s_f) * left**3))

    def get_sl(self) -> list[float]:
        self._meant_for_step()
        settings = (self.init_t, self.delta_t, self.total_t, self.initially_zero)
        return [
            self.sparsity_compute_fn(first, last, self.last_epoch, *rest)
            for first, last, *rest in zip(self.init_sl, self.base_sl, *settings, strict=True)
        ]
