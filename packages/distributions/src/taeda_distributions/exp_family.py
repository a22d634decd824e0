"""Exponential families: densities h(x) exp(<t(x), theta> - F(theta))."""

from __future__ import annotations

from typing import Any

from taeda_distributions.distribution import Parameterized
from taeda_distributions.utils import sum_rightmost
from taeda_registry.slots import autograd

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Parameterized):
    """Base of exponential families; the entropy follows from the log normalizer by differentiation.

    "Entropies and cross-entropies of exponential families" (Nielsen and Nock, 2010).
    """

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        raise NotImplementedError(f"{type(self).__name__}._natural_params")

    def _log_normalizer(self, *natural_params: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._log_normalizer")

    @property
    def _mean_carrier_measure(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._mean_carrier_measure")

    def entropy(self) -> Any:
        result = -self._mean_carrier_measure
        natural = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*natural)
        gradients = autograd.grad(normalizer.sum(), natural, create_graph=True)
        result = result + normalizer
        for parameter, gradient in zip(natural, gradients, strict=True):
            dims = parameter.dim() - len(self._batch_shape)
            result = result - sum_rightmost(parameter * gradient, dims)
        return result
