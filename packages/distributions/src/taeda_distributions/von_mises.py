"""The von Mises distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from taeda_distributions import constraints
from taeda_distributions.distribution import Parameterized
from taeda_distributions.utils import all_true, any_true, broadcast_all, lazy_property
from taeda_registry.slots import tensor

__all__ = ["VonMises"]


def _log_i0(x: Any) -> Any:
    return tensor.special.i0e(x).log() + x


_UNIFORM = 1e-12  # smaller concentrations count as this one
_NORMAL = 1e10  # the least concentration of samples from the normal distribution


class VonMises(Parameterized):
    """The normal distribution's counterpart for angles.

    Samples are drawn as in "Efficient simulation of the von Mises distribution" (Best and Fisher, 1979).

    Args:
        loc: Mean angle, in radians.
        concentration: Positive; large ones are narrow.
        validate_args: Check parameters and values.

    Example:
        >>> VonMises(0.0, 1.0).mean
        tensor(0.)
    """

    arg_constraints: ClassVar = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False
    _parameter_dims: ClassVar = {"loc": 0, "concentration": 0}

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return (
            self.concentration * tensor.cos(value - self.loc)
            - math.log(2 * math.pi)
            - _log_i0(self.concentration)
        )

    @lazy_property
    def _proposal_r(self) -> Any:
        kappa = self.concentration.to(tensor.float64).clamp(min=_UNIFORM)
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        exact = (1 + rho**2) / (2 * rho)
        # For small concentrations the differences vanish; Taylor's series takes over.
        return tensor.where(kappa < 1e-5, 1 / kappa + kappa, exact)

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = tuple(self._extended_shape(sample_shape))
        with tensor.no_grad():
            given = self.concentration.to(tensor.float64).expand(shape)
            # Large ones are normal to all digits; NaN and negative ones have no samples: each proposal is rejected.
            drawn = (given >= 0) & (given < _NORMAL)
            r = tensor.where(drawn, self._proposal_r.expand(shape), 2.0)
            angle = _rejected(r, tensor.where(drawn, given.clamp(min=_UNIFORM), 1.0), shape)
            if not all_true(drawn):
                normal = tensor.randn(shape, dtype=tensor.float64, device=given.device) * given.rsqrt()
                angle = tensor.where(drawn, angle, normal)
            whole = angle + math.pi + self.loc.to(tensor.float64)
            return ((whole % (2 * math.pi)) - math.pi).to(self.loc.dtype)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @lazy_property
    def variance(self) -> Any:  # type: ignore[override]
        """The circular variance."""
        return 1 - tensor.special.i1e(self.concentration) / tensor.special.i0e(self.concentration)


def _rejected(r: Any, kappa: Any, shape: tuple[int, ...]) -> Any:
    """Angles around 0: proposals of a wrapped Cauchy distribution, for all again until each has had one accepted."""
    result = tensor.zeros_like(kappa)
    missing = tensor.ones_like(kappa, dtype=tensor.bool)
    while any_true(missing):
        u1, u2, u3 = tensor.rand((3, *shape), dtype=tensor.float64, device=kappa.device).unbind()
        z = tensor.cos(math.pi * u1)
        f = (1 + r * z) / (r + z)
        c = kappa * (r - f)
        accepted = (c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0)
        result = tensor.where(accepted, (u3 - 0.5).sign() * f.clamp(min=-1, max=1).acos(), result)
        missing = missing & ~accepted
    return result
