"""Mixtures of distributions of one kind."""

from __future__ import annotations

from typing import Any, ClassVar

from taeda_distributions import constraints
from taeda_distributions.categorical import Categorical
from taeda_distributions.distribution import Distribution
from taeda_distributions.utils import batch_of
from taeda_registry.slots import tensor

__all__ = ["MixtureSameFamily"]


class _MixtureSupport(constraints.Constraint):
    """Where values of one of the parts lie.

    Args:
        base_constraint: Of the parts, of which the last batch dimension counts them.
    """

    def __init__(self, base_constraint: Any) -> None:
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self.base_constraint.event_dim

    def check(self, value: Any) -> Any:
        return self.base_constraint.check(value.unsqueeze(-1 - self.event_dim)).all(-1)


class MixtureSameFamily(Distribution):
    """A mixture whose parts are the last batch dimension of one distribution.

    Args:
        mixture_distribution: A `Categorical` of the parts.
        component_distribution: The parts.
        validate_args: Check values.

    Example:
        >>> parts = Normal(taeda.tensor([-1.0, 1.0]), taeda.ones(2))
        >>> MixtureSameFamily(Categorical(taeda.ones(2)), parts).mean
        tensor(0.)
    """

    arg_constraints: ClassVar[dict[str, Any]] = {}
    has_rsample = False

    def __init__(
        self, mixture_distribution: Any, component_distribution: Any, validate_args: bool | None = None
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                "The Mixture distribution needs to be an instance of taeda.distributions.Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution need to be an instance of taeda.distributions.Distribution"
            )
        batch = tuple(component_distribution.batch_shape)[:-1]
        for size, other in zip(
            reversed(tuple(mixture_distribution.batch_shape)), reversed(batch), strict=False
        ):
            if size != 1 and other != 1 and size != other:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({tuple(mixture_distribution.batch_shape)}) is not compatible "
                    f"with `component_distribution.batch_shape` ({tuple(component_distribution.batch_shape)})"
                )
        count = mixture_distribution.logits.shape[-1]
        if count != component_distribution.batch_shape[-1]:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal `component_distribution.batch_shape[-1]` "
                f"({component_distribution.batch_shape[-1]})"
            )
        self._mixture_distribution, self._component_distribution = (
            mixture_distribution,
            component_distribution,
        )
        self._num_component = count
        event = component_distribution.event_shape
        self._event_ndims = len(event)
        super().__init__(batch, event, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        batch_shape = batch_of(batch_shape)
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        new._component_distribution = self._component_distribution.expand((*batch_shape, self._num_component))
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._num_component, new._event_ndims = self._num_component, self._event_ndims
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property
    def support(self) -> Any:
        return _MixtureSupport(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Any:
        """The distribution of the parts' numbers."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Any:
        """The parts."""
        return self._component_distribution

    def _weights(self) -> Any:
        probs = self._mixture_distribution.probs
        return probs.reshape((*probs.shape, *(1 for _ in range(self._event_ndims))))

    @property
    def mean(self) -> Any:
        return (self._weights() * self._component_distribution.mean).sum(-1 - self._event_ndims)

    @property
    def variance(self) -> Any:
        axis = -1 - self._event_ndims
        weights = self._weights()
        within = (weights * self._component_distribution.variance).sum(axis)
        between = (weights * (self._component_distribution.mean - self._pad(self.mean)).pow(2.0)).sum(axis)
        return within + between

    def _pad(self, x: Any) -> Any:
        return x.unsqueeze(-1 - self._event_ndims)

    def cdf(self, x: Any) -> Any:
        return (self._component_distribution.cdf(self._pad(x)) * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, x: Any) -> Any:
        if self._validate_args:
            self._validate_sample(x)
        of_parts = self._component_distribution.log_prob(self._pad(x))
        return tensor.logsumexp(of_parts + tensor.log_softmax(self._mixture_distribution.logits, -1), dim=-1)

    def sample(self, sample_shape: Any = ()) -> Any:
        with tensor.no_grad():
            axis = len(sample_shape) + len(self.batch_shape)
            chosen = self._mixture_distribution.sample(sample_shape)
            samples = self._component_distribution.sample(sample_shape)
            chosen = chosen.reshape((*chosen.shape, 1, *(1 for _ in self.event_shape)))
            chosen = chosen.expand((*chosen.shape[:axis], 1, *self.event_shape))
            return samples.gather(axis, chosen).squeeze(axis)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self._mixture_distribution},\n  {self._component_distribution})"
