"""Probability distributions: samples with gradients, densities, entropies, transforms and divergences.

A distribution has a *batch shape*, of independent distributions with parameters of their own, and an *event shape*,
of one value; `sample(shape)` gives tensors of shape ``shape + batch_shape + event_shape``, `log_prob` one number
for each event. Gradients flow through `rsample` where `has_rsample` says so. Names and meanings are PyTorch's.
"""

from taeda_distributions import constraints, transforms
from taeda_distributions._families import *  # noqa: F403
from taeda_distributions._families import __all__ as _families
from taeda_distributions.constraint_registry import biject_to, transform_to
from taeda_distributions.kl import kl_divergence, register_kl
from taeda_distributions.transforms import *  # noqa: F403
from taeda_distributions.transforms import __all__ as _transforms

__version__ = "0.1.0"
__all__ = [
    *_families,
    *_transforms,
    "biject_to",
    "constraints",
    "kl_divergence",
    "register_kl",
    "transform_to",
    "transforms",
]
