"""The half-normal distribution."""

from __future__ import annotations

import math
from typing import Any

from taeda_distributions._folded import Folded
from taeda_distributions.normal import Normal

__all__ = ["HalfNormal"]


class HalfNormal(Folded):
    """Distribution of |x| for x of a normal distribution around 0.

    Args:
        scale: Scale of that distribution, positive.
        validate_args: Check parameters and values.

    Example:
        >>> HalfNormal(1.0).mode
        tensor(0.)
    """

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0, scale, validate_args=False), validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, self._get_checked_instance(HalfNormal, _instance))

    @property
    def mean(self) -> Any:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Any:
        return self.scale.pow(2) * (1 - 2 / math.pi)
