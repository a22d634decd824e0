"""The categorical distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from taeda_distributions import constraints
from taeda_distributions.distribution import Parameterized, either, two_ways
from taeda_registry.slots import tensor

__all__ = ["Categorical"]


@two_ways("probs", "logits", is_binary=False)
class Categorical(Parameterized):
    """Indices of categories, each with its probability.

    Args:
        probs: Weights along the last dimension, which are divided by their sum.
        logits: Their logarithms, in their place.
        validate_args: Check parameters and values.

    Example:
        >>> Categorical(taeda.tensor([1.0, 3.0])).probs
        tensor([0.2500, 0.7500])
    """

    arg_constraints: ClassVar = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _parameter_dims: ClassVar = {"probs": 1, "logits": 1}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        either(probs, logits)
        given = logits if probs is None else probs
        if given.dim() < 1:
            raise ValueError(
                f"`{'logits' if probs is None else 'probs'}` parameter must be at least one-dimensional."
            )
        if probs is not None:
            self._param = self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self._param = self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
        self._num_events = self._param.size(-1)
        super().__init__(self._param.shape[:-1], validate_args=validate_args)

    def _carry(self, new: Any, batch_shape: Any) -> None:
        new._param, new._num_events = self._param.expand((*batch_shape, self._num_events)), self._num_events

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def param_shape(self) -> Any:
        """Shape of the parameter."""
        return self._param.shape

    @property
    def mean(self) -> Any:
        return tensor.full(
            tuple(self._extended_shape()), float("nan"), dtype=self._param.dtype, device=self._param.device
        )

    @property
    def mode(self) -> Any:
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> Any:
        return self.mean

    def sample(self, sample_shape: Any = ()) -> Any:
        count = 1
        for size in sample_shape:
            count *= size
        shape = tuple(self._extended_shape(sample_shape))
        with tensor.no_grad():
            if count == 0 or self._param.numel() == 0:
                return tensor.zeros(shape, dtype=tensor.int64, device=self._param.device)
            flat = self.probs.reshape((-1, self._num_events))
            return tensor.multinomial(flat, count, True).T.reshape(shape)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        value = value.to(tensor.int64).unsqueeze(-1)
        value, logits = tensor.broadcast_tensors(value, self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Any:
        logits = self.logits.clamp(min=tensor.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Any:
        values = tensor.arange(self._num_events, dtype=tensor.int64, device=self._param.device)
        values = values.reshape((-1, *(1 for _ in self._batch_shape)))
        return values.expand((-1, *self._batch_shape)) if expand else values
