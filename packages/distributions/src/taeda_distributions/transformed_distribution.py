"""Distributions of transformed values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from taeda_distributions import constraints
from taeda_distributions.distribution import Distribution
from taeda_distributions.independent import Independent
from taeda_distributions.transforms import ComposeTransform, Transform
from taeda_distributions.utils import batch_of, sum_rightmost
from taeda_registry.slots import tensor

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of f(x) for x of a base distribution.

    Args:
        base_distribution: The base.
        transforms: f, or several one after the other.
        validate_args: Check parameters and values.

    Example:
        >>> LogUniform = TransformedDistribution(Uniform(0.0, 1.0), [ExpTransform()])
        >>> LogUniform.cdf(taeda.tensor(1.0))
        tensor(0.)
    """

    arg_constraints: ClassVar[dict[str, Any]] = {}

    def __init__(
        self,
        base_distribution: Any,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        parts = list(transforms) if isinstance(transforms, Iterable) else [transforms]
        if not all(isinstance(one, Transform) for one in parts):
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        self.transforms = parts
        base_shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        base_event = len(base_distribution.event_shape)
        whole = ComposeTransform(parts)
        if len(base_shape) < whole.domain.event_dim:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {whole.domain.event_dim}, but got "
                f"{base_shape}."
            )
        forward = tuple(whole.forward_shape(base_shape))
        expanded = tuple(whole.inverse_shape(forward))
        if base_shape != expanded:
            base_distribution = base_distribution.expand(expanded[: len(expanded) - base_event])
        wider = whole.domain.event_dim - base_event
        if wider > 0:
            base_distribution = Independent(base_distribution, wider)
        self.base_dist = base_distribution
        change = whole.codomain.event_dim - whole.domain.event_dim
        event_dim = max(whole.codomain.event_dim, base_event + change)
        cut = len(forward) - event_dim
        super().__init__(forward[:cut], forward[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(TransformedDistribution, _instance)
        batch_shape = batch_of(batch_shape)
        whole = ComposeTransform(self.transforms)
        base_shape = tuple(whole.inverse_shape((*batch_shape, *self.event_shape)))
        new.base_dist = self.base_dist.expand(base_shape[: len(base_shape) - len(self.base_dist.event_shape)])
        new.transforms = self.transforms
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        extra = len(self.event_shape) - support.event_dim
        return constraints.independent(support, extra) if extra > 0 else support

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    def _forward(self, x: Any) -> Any:
        for one in self.transforms:
            x = one(x)
        return x

    def sample(self, sample_shape: Any = ()) -> Any:
        with tensor.no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self._forward(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        event_dim = len(self.event_shape)
        total: Any = 0.0
        y = value
        for one in reversed(self.transforms):
            x = one.inv(y)
            event_dim += one.domain.event_dim - one.codomain.event_dim
            total = total - sum_rightmost(one.log_abs_det_jacobian(x, y), event_dim - one.domain.event_dim)
            y = x
        return total + sum_rightmost(self.base_dist.log_prob(y), event_dim - len(self.base_dist.event_shape))

    def _monotone(self, value: Any) -> Any:
        """Probabilities as they are where the transforms rise, from the other end where they fall."""
        sign: Any = 1
        for one in self.transforms:
            sign = sign * one.sign
        if isinstance(sign, int) and sign == 1:
            return value
        return sign * (value - 0.5) + 0.5

    def cdf(self, value: Any) -> Any:
        for one in reversed(self.transforms):
            value = one.inv(value)
        if self.base_dist._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotone(self.base_dist.cdf(value))

    def icdf(self, value: Any) -> Any:
        return self._forward(self.base_dist.icdf(self._monotone(value)))
