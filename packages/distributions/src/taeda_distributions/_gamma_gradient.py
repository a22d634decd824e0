"""Standard gamma samples, and how they move when their concentration does.

Samples are drawn by "A simple method for generating gamma variables" (Marsaglia and Tsang, 2000), all that were
rejected again at once, or from a Mersenne twister one after another, as PyTorch draws them. Gradients are implicit:
with the distribution function F(x; a) held still, dx/da = -(dF/da) / p(x) ("Implicit reparameterization gradients",
Figurnov et al., 2018). Substituting t = x exp(-s) below the sample, and t = x exp(s) above it, turns that into

    a >= x:   x * integral over s > 0 of exp(-a s + x (1 - exp(-s))) * (digamma(a) - log(x) + s)
    a <  x:   x * integral over s > 0 of exp(a s - x (exp(s) - 1)) * (log(x) + s - digamma(a))

whose integrands fall from s = 0 on, so that a Gauss-Legendre rule over where they count suffices for every a and x.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from taeda_distributions.utils import any_true, tiny
from taeda_registry.slots import autograd, tensor

_NODES = 48
_SPAN = 40.0  # exp(-40) is nothing beside 1


@functools.cache
def _rule() -> tuple[tuple[float, float], ...]:
    """Nodes and weights of the Gauss-Legendre rule on [0, 1]."""
    import numpy

    nodes, weights = numpy.polynomial.legendre.leggauss(_NODES)
    return tuple(zip(((nodes + 1) / 2).tolist(), (weights / 2).tolist(), strict=True))


def gradient(concentration: Any, sample: Any) -> Any:
    """dx/da of standard gamma samples x with concentration a, element by element."""
    a, x = concentration.to(tensor.float64), sample.to(tensor.float64)
    below = x <= a
    distance = (a - x).abs()
    ends = _ends(a, x, distance, below)
    # What both integrals have in common: exp(-distance * s - x * bend(s)) with a bend that is no difference of numbers
    # close to each other.
    offset = x.log() - tensor.digamma(a)
    total = tensor.zeros_like(x)
    for node, weight in _rule():
        s = ends * node
        bend = tensor.where(below, s + tensor.expm1(-s), tensor.expm1(s) - s)
        factor = tensor.where(below, s - offset, s + offset)
        total = total + weight * tensor.exp(-distance * s - x * bend) * factor
    return (x * ends * total).to(sample.dtype)


def _ends(a: Any, x: Any, distance: Any, below: Any) -> Any:
    """Where the integrands have fallen to nothing."""
    lower = 2 * _SPAN / (distance + (distance**2 + 4 * _SPAN * x / 3).sqrt())
    lower = tensor.where(lower <= 1, lower, (_SPAN + x) / a)
    upper = 2 * _SPAN / (distance + (distance**2 + 2 * _SPAN * x).sqrt())
    upper = tensor.where(x < 10, tensor.minimum(upper, (2 * _SPAN / x).log1p()), upper)
    return tensor.where(below, lower, upper)


def sample_standard_gamma(concentration: Any, generator: Any = None) -> Any:
    """Standard gamma samples, one for each concentration, without gradients; NaN where it is NaN or negative."""
    given = concentration.detach().to(tensor.float64)
    # Others have no samples, or only one: every proposal would be rejected.
    drawn = (given >= 0) & given.isfinite()
    a = tensor.where(drawn, given, tensor.ones_like(given))
    found = _in_turn(a, generator) if _is_twister(given, generator) else _at_once(a, generator)
    found = found.to(concentration.dtype).clamp(min=tiny(concentration.dtype))
    return tensor.where(drawn, found, tensor.where(given > 0, given, math.nan).to(concentration.dtype))


def _is_twister(given: Any, generator: Any) -> bool:
    streams = getattr(tensor, "random", None)  # which not all providers have
    source = getattr(streams, "default_generator", None) if generator is None else generator
    return given.device.type == "cpu" and getattr(source, "engine", None) == "mt19937"


def _in_turn(a: Any, generator: Any) -> Any:
    """Sample by sample, so that each takes from the stream what it takes in PyTorch."""
    options = {"generator": generator, "dtype": tensor.float64}

    def uniform() -> float:
        return 1 - float(tensor.rand((), **options))

    def sample(shape: float) -> float:
        if shape == 0:
            return 0.0
        scale = 1.0 if shape >= 1 else uniform() ** (1 / shape)
        d = (shape if shape >= 1 else shape + 1) - 1 / 3
        while True:
            root = 0.0
            while root <= 0:
                normal = float(tensor.randn((), **options))
                root = 1 + normal / math.sqrt(9 * d)
            v = root**3
            if math.log(uniform()) < 0.5 * normal**2 + d * (1 - v + math.log(v)):
                return scale * d * v

    drawn = [sample(shape) for shape in a.flatten().tolist()]
    return tensor.tensor(drawn, dtype=tensor.float64).reshape(a.shape)


def _at_once(a: Any, generator: Any) -> Any:
    small = a < 1
    boosted = tensor.where(small, a + 1, a)
    found = _marsaglia_tsang(boosted, generator)
    # For small ones x = y * u ** (1 / a), by logarithms: the power alone may be too small for a number.
    uniform = tensor.rand(tuple(a.shape), generator=generator, dtype=tensor.float64, device=a.device).clamp(
        min=tiny(tensor.float64)
    )
    return tensor.where(small, (found.log() + uniform.log() / a).exp(), found)


def _marsaglia_tsang(a: Any, generator: Any) -> Any:
    d = a - 1 / 3
    c = (9 * d).rsqrt()
    result = tensor.zeros_like(a)
    missing = tensor.ones_like(a, dtype=tensor.bool)
    while any_true(missing):
        shape = tuple(a.shape)
        options = {"generator": generator, "dtype": a.dtype, "device": a.device}
        normal = tensor.randn(shape, **options)
        uniform = tensor.rand(shape, **options).clamp(min=tiny(a.dtype))
        v = (1 + c * normal) ** 3
        inside = v > 0
        v = tensor.where(inside, v, tensor.ones_like(v))
        accepted = inside & (uniform.log() < 0.5 * normal**2 + d * (1 - v + v.log())) & missing
        result = tensor.where(accepted, d * v, result)
        missing = missing & ~accepted
    return result


@functools.cache
def _function() -> Any:
    class StandardGamma(autograd.Function):
        """Samples with implicit gradients."""

        @staticmethod
        def forward(ctx: Any, concentration: Any, generator: Any) -> Any:
            sample = sample_standard_gamma(concentration, generator)
            ctx.save_for_backward(concentration, sample)
            return sample

        @staticmethod
        @autograd.once_differentiable
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * gradient(*ctx.saved_tensors), None

        @staticmethod
        def vmap(info: Any, in_dims: Any, concentration: Any, generator: Any) -> Any:
            """The whole batch at once: proposals are rejected by what they are, which one example cannot tell."""
            if info.randomness != "different":
                raise RuntimeError(
                    "vmap: gamma samples of what depends on the batch are drawn for each example alone, with "
                    f"randomness='different', found {info.randomness!r}"
                )
            return standard_gamma(concentration.movedim(in_dims[0], 0), generator), 0

    return StandardGamma


def standard_gamma(concentration: Any, generator: Any = None) -> Any:
    """Standard gamma samples that gradients flow through, drawn by a generator or the default one."""
    apart = getattr(getattr(tensor, "library", None), "for_each_example", None)
    return _function().apply(concentration if apart is None else apart(concentration), generator)
