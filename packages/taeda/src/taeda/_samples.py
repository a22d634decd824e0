"""Samples of distributions under the names of PyTorch's private operators."""

from __future__ import annotations

from typing import Any

__all__ = ["_sample_dirichlet", "_standard_gamma"]


def _standard_gamma(self: Any, generator: Any = None) -> Any:
    """Samples of gamma distributions of the given concentrations and rate 1, by a generator or the default one."""
    from importlib import import_module

    return import_module("taeda.distributions._gamma_gradient").standard_gamma(self, generator)


def _sample_dirichlet(self: Any, generator: Any = None) -> Any:
    """Samples of Dirichlet distributions, whose concentrations stand along the last dimension.

    Example:
        >>> taeda._sample_dirichlet(taeda.ones(2, 3)).sum(-1)
        tensor([1., 1.])
    """
    from importlib import import_module

    return import_module("taeda.distributions.dirichlet").drawn(self, generator)
