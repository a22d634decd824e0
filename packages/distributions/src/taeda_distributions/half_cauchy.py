"""The half-Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

from taeda_distributions._folded import Folded
from taeda_distributions.cauchy import Cauchy
from taeda_registry.slots import tensor

__all__ = ["HalfCauchy"]


class HalfCauchy(Folded):
    """Distribution of |x| for x of a Cauchy distribution around 0.

    Args:
        scale: Scale of that distribution, positive.
        validate_args: Check parameters and values.

    Example:
        >>> HalfCauchy(1.0).mode
        tensor(0.)
    """

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0, scale, validate_args=False), validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, self._get_checked_instance(HalfCauchy, _instance))

    @property
    def mean(self) -> Any:
        return tensor.full_like(self.scale, math.inf)

    @property
    def variance(self) -> Any:
        return self.base_dist.variance

    def _as_value(self, value: Any) -> Any:
        return tensor.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
