"""The record of one checked call, and what several families of cases share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import taeda_tensor_core as taeda


@dataclass(frozen=True)
class Case:
    """One call: shapes of the differentiable inputs, their range, and the function."""

    name: str
    call: Callable
    shapes: tuple[tuple[int, ...], ...] = ((3, 4),)
    low: float = -2.0
    high: float = 2.0
    second: bool = True

    def __str__(self) -> str:
        return self.name


TWO = ((3, 4), (3, 4))
WIDE = ((3, 1), (1, 4))
MASK = taeda.tensor([[True, False, True, False], [False, True, True, False], [True, True, False, False]])
