"""Categories as vectors with a single one."""

from __future__ import annotations

from typing import Any, ClassVar

from taeda_distributions import constraints
from taeda_distributions.categorical import Categorical
from taeda_distributions.distribution import Distribution
from taeda_distributions.utils import batch_of
from taeda_registry.slots import tensor

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(Distribution):
    """The categorical distribution, of vectors with a single one.

    Args:
        probs: Weights along the last dimension.
        logits: Their logarithms, in their place.
        validate_args: Check parameters and values.

    Example:
        >>> OneHotCategorical(taeda.tensor([0.0, 1.0])).sample()
        tensor([0., 1.])
    """

    arg_constraints: ClassVar = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(OneHotCategorical, _instance)
        new._categorical = self._categorical.expand(batch_of(batch_shape))
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def probs(self) -> Any:
        """The probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Any:
        """Their logarithms."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Any:
        """Shape of the parameter."""
        return self._categorical.param_shape

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def mode(self) -> Any:
        return self._rows(self.probs.argmax(dim=-1))

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    def _rows(self, indices: Any) -> Any:
        return tensor.ops.one_hot(indices, self._event_shape[-1]).to(self._categorical._param.dtype)

    def sample(self, sample_shape: Any = ()) -> Any:
        return self._rows(self._categorical.sample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Any:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Any:
        n = self.event_shape[0]
        values = tensor.eye(n, dtype=self._categorical._param.dtype, device=self._categorical._param.device)
        values = values.reshape((n, *(1 for _ in self.batch_shape), n))
        return values.expand((n, *self.batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """The same, whose samples hand gradients straight to the probabilities.

    "Estimating or propagating gradients" (Bengio et al., 2013).
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Any:
        samples = self.sample(sample_shape)
        return samples + (self.probs - self.probs.detach())
