"""Kullback-Leibler divergences, by the pair of classes."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

from taeda_distributions._families import (
    Bernoulli,
    Beta,
    Binomial,
    Categorical,
    Cauchy,
    ContinuousBernoulli,
    Dirichlet,
    Exponential,
    ExponentialFamily,
    Gamma,
    Geometric,
    Gumbel,
    HalfNormal,
    Independent,
    Laplace,
    LowRankMultivariateNormal,
    MultivariateNormal,
    Normal,
    OneHotCategorical,
    Pareto,
    Poisson,
    TransformedDistribution,
    Uniform,
)  # fmt: skip
from taeda_distributions._matrices import _aligned, _batch_mahalanobis, half_log_det
from taeda_distributions.lowrank_multivariate_normal import _log_det, _mahalanobis
from taeda_distributions.utils import EULER, softplus, sum_rightmost
from taeda_registry.slots import autograd, tensor

__all__ = ["kl_divergence", "register_kl"]

_KL_REGISTRY: dict[tuple[type, type], Callable[[Any, Any], Any]] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Any], Any]:
    """Decorator: the function gives the divergence of these classes, and of classes derived from them.

    A class need not derive from `Distribution`: libraries register bases of their own beside it.

    Raises:
        TypeError: They are no classes.

    Example:
        >>> @register_kl(Mine, Normal)
        ... def kl_mine_normal(p, q): ...
    """
    for one in (type_p, type_q):
        if not isinstance(one, type):
            raise TypeError(f"Expected a Distribution subclass but got {one}")

    def decorate(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        _KL_REGISTRY[type_p, type_q] = function
        _find.cache_clear()
        return function

    return decorate


def _distance(cls: type, base: type) -> int:
    return cls.__mro__.index(base)


@functools.cache
def _find(type_p: type, type_q: type) -> Any:
    """The function of the nearest classes: first of `p`, then of `q`."""
    pairs = [pair for pair in _KL_REGISTRY if issubclass(type_p, pair[0]) and issubclass(type_q, pair[1])]
    if not pairs:
        return None
    left = min(pairs, key=lambda pair: (_distance(type_p, pair[0]), _distance(type_q, pair[1])))
    right = min(pairs, key=lambda pair: (_distance(type_q, pair[1]), _distance(type_p, pair[0])))
    if _KL_REGISTRY[left] is not _KL_REGISTRY[right]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please register_kl({left[0].__name__}, "
            f"{right[1].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _KL_REGISTRY[left]


def kl_divergence(p: Any, q: Any) -> Any:
    """The Kullback-Leibler divergence: the mean of log p(x) - log q(x) for x of `p`.

    Raises:
        NotImplementedError: Nobody has registered the pair.

    Example:
        >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
        tensor(0.5000)
    """
    function = _find(type(p), type(q))
    if function is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
        )
    return function(p, q)


def _infinite_like(x: Any) -> Any:
    return tensor.full_like(x, math.inf)


def _x_log_x(x: Any) -> Any:
    return tensor.special.xlogy(x, x)


# --- one class ---


@register_kl(Bernoulli, Bernoulli)
def _kl_bernoulli_bernoulli(p: Any, q: Any) -> Any:
    first = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    first = tensor.where(q.probs == 0, _infinite_like(first), first)
    first = tensor.where(p.probs == 0, tensor.zeros_like(first), first)
    second = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    second = tensor.where(q.probs == 1, _infinite_like(second), second)
    return first + tensor.where(p.probs == 1, tensor.zeros_like(second), second)


@register_kl(Beta, Beta)
def _kl_beta_beta(p: Any, q: Any) -> Any:
    total_p = p.concentration1 + p.concentration0
    total_q = q.concentration1 + q.concentration0
    first = q.concentration1.lgamma() + q.concentration0.lgamma() + total_p.lgamma()
    second = p.concentration1.lgamma() + p.concentration0.lgamma() + total_q.lgamma()
    third = (p.concentration1 - q.concentration1) * tensor.digamma(p.concentration1)
    fourth = (p.concentration0 - q.concentration0) * tensor.digamma(p.concentration0)
    return first - second + third + fourth + (total_q - total_p) * tensor.digamma(total_p)


@register_kl(Binomial, Binomial)
def _kl_binomial_binomial(p: Any, q: Any) -> Any:
    kl = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return tensor.where(p.total_count > q.total_count, _infinite_like(kl), kl)


@register_kl(Categorical, Categorical)
def _kl_categorical_categorical(p: Any, q: Any) -> Any:
    terms = p.probs * (p.logits - q.logits)
    terms = tensor.where(q.probs == 0, _infinite_like(terms), terms)
    return tensor.where(p.probs == 0, tensor.zeros_like(terms), terms).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _kl_onehotcategorical_onehotcategorical(p: Any, q: Any) -> Any:
    return _kl_categorical_categorical(p._categorical, q._categorical)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _kl_continuous_bernoulli_continuous_bernoulli(p: Any, q: Any) -> Any:
    first = p.mean * (p.logits - q.logits)
    second = p._log_normalizing() + tensor.log1p(-p.probs)
    return first + second - q._log_normalizing() - tensor.log1p(-q.probs)


@register_kl(Dirichlet, Dirichlet)
def _kl_dirichlet_dirichlet(p: Any, q: Any) -> Any:
    total_p, total_q = p.concentration.sum(-1), q.concentration.sum(-1)
    first = total_p.lgamma() - total_q.lgamma()
    second = (p.concentration.lgamma() - q.concentration.lgamma()).sum(-1)
    third = p.concentration - q.concentration
    fourth = p.concentration.digamma() - total_p.digamma().unsqueeze(-1)
    return first - second + (third * fourth).sum(-1)


@register_kl(Exponential, Exponential)
def _kl_exponential_exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p: Any, q: Any) -> Any:
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed using Bregman "
            "divergences"
        )
    of_p = [value.detach().requires_grad_() for value in p._natural_params]
    of_q = q._natural_params
    normalizer = p._log_normalizer(*of_p)
    gradients = autograd.grad(normalizer.sum(), of_p, create_graph=True)
    result = q._log_normalizer(*of_q) - normalizer
    for a, b, gradient in zip(of_p, of_q, gradients, strict=True):
        result = result - sum_rightmost((b - a) * gradient, len(q.event_shape))
    return result


@register_kl(Gamma, Gamma)
def _kl_gamma_gamma(p: Any, q: Any) -> Any:
    first = q.concentration * (p.rate / q.rate).log()
    second = tensor.lgamma(q.concentration) - tensor.lgamma(p.concentration)
    third = (p.concentration - q.concentration) * tensor.digamma(p.concentration)
    return first + second + third + (q.rate - p.rate) * (p.concentration / p.rate)


@register_kl(Gumbel, Gumbel)
def _kl_gumbel_gumbel(p: Any, q: Any) -> Any:
    ratio = p.scale / q.scale
    between = q.loc / q.scale - p.loc / q.scale
    lifted = tensor.exp(between + (1 + ratio).lgamma())
    return -ratio.log() - between + ratio * EULER + lifted - (1 + EULER)


@register_kl(Geometric, Geometric)
def _kl_geometric_geometric(p: Any, q: Any) -> Any:
    return -p.entropy() - tensor.log1p(-q.probs) / p.probs - q.logits


@register_kl(HalfNormal, HalfNormal)
def _kl_halfnormal_halfnormal(p: Any, q: Any) -> Any:
    return _kl_normal_normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _kl_laplace_laplace(p: Any, q: Any) -> Any:
    ratio = p.scale / q.scale
    between = (p.loc - q.loc).abs()
    return -ratio.log() + between / q.scale + ratio * tensor.exp(-between / p.scale) - 1


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _kl_lowrank_lowrank(p: Any, q: Any) -> Any:
    _same_event(p, q)
    log_dets = _log_det(q._unbroadcasted_cov_diag, q._capacitance_tril) - _log_det(
        p._unbroadcasted_cov_diag, p._capacitance_tril
    )
    distance = _mahalanobis(
        q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag, q.loc - p.loc, q._capacitance_tril
    )
    # Trace of Q^-1 P, Q inverted by Woodbury's identity.
    scaled = q._unbroadcasted_cov_factor.mT / q._unbroadcasted_cov_diag.unsqueeze(-2)
    inner = tensor.linalg.solve_triangular(*_aligned(q._capacitance_tril, scaled), upper=False)
    first = (p._unbroadcasted_cov_diag / q._unbroadcasted_cov_diag).sum(-1)
    second = (
        (p._unbroadcasted_cov_factor * q._unbroadcasted_cov_diag.rsqrt().unsqueeze(-1)).pow(2).sum((-2, -1))
    )
    third = (inner * p._unbroadcasted_cov_diag.sqrt().unsqueeze(-2)).pow(2).sum((-2, -1))
    fourth = (inner @ p._unbroadcasted_cov_factor).pow(2).sum((-2, -1))
    return 0.5 * (log_dets + (first + second - third - fourth) + distance - p.event_shape[0])


def _same_event(p: Any, q: Any) -> None:
    if tuple(p.event_shape) != tuple(q.event_shape):
        raise ValueError(
            f"KL-divergence between {type(p).__name__} and {type(q).__name__} with different event shapes cannot "
            "be computed"
        )


def _trace_of_ratio(lower: Any, root: Any) -> Any:
    """Trace of (L L^T)^-1 R R^T."""
    return tensor.linalg.solve_triangular(*_aligned(lower, root), upper=False).pow(2).sum((-2, -1))


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _kl_multivariatenormal_lowrank(p: Any, q: Any) -> Any:
    _same_event(p, q)
    log_dets = _log_det(q._unbroadcasted_cov_diag, q._capacitance_tril) - 2 * half_log_det(
        p._unbroadcasted_scale_tril
    )
    distance = _mahalanobis(
        q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag, q.loc - p.loc, q._capacitance_tril
    )
    scaled = q._unbroadcasted_cov_factor.mT / q._unbroadcasted_cov_diag.unsqueeze(-2)
    inner = tensor.linalg.solve_triangular(*_aligned(q._capacitance_tril, scaled), upper=False)
    first = (
        (p._unbroadcasted_scale_tril * q._unbroadcasted_cov_diag.rsqrt().unsqueeze(-1)).pow(2).sum((-2, -1))
    )
    second = (inner @ p._unbroadcasted_scale_tril).pow(2).sum((-2, -1))
    return 0.5 * (log_dets + (first - second) + distance - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _kl_lowrank_multivariatenormal(p: Any, q: Any) -> Any:
    _same_event(p, q)
    log_dets = 2 * half_log_det(q._unbroadcasted_scale_tril) - _log_det(
        p._unbroadcasted_cov_diag, p._capacitance_tril
    )
    distance = _batch_mahalanobis(q._unbroadcasted_scale_tril, q.loc - p.loc)
    trace = _trace_of_ratio(q._unbroadcasted_scale_tril, p._unbroadcasted_cov_factor) + _trace_of_ratio(
        q._unbroadcasted_scale_tril, p._unbroadcasted_cov_diag.sqrt().diag_embed()
    )
    return 0.5 * (log_dets + trace + distance - p.event_shape[0])


@register_kl(MultivariateNormal, MultivariateNormal)
def _kl_multivariatenormal_multivariatenormal(p: Any, q: Any) -> Any:
    _same_event(p, q)
    half_dets = half_log_det(q._unbroadcasted_scale_tril) - half_log_det(p._unbroadcasted_scale_tril)
    trace = _trace_of_ratio(q._unbroadcasted_scale_tril, p._unbroadcasted_scale_tril)
    distance = _batch_mahalanobis(q._unbroadcasted_scale_tril, q.loc - p.loc)
    return half_dets + 0.5 * (trace + distance - p.event_shape[0])


@register_kl(Normal, Normal)
def _kl_normal_normal(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(Pareto, Pareto)
def _kl_pareto_pareto(p: Any, q: Any) -> Any:
    scales, alphas = p.scale / q.scale, q.alpha / p.alpha
    result = q.alpha * scales.log() - alphas.log() + alphas - 1
    return tensor.where(p.support.lower_bound < q.support.lower_bound, _infinite_like(result), result)


@register_kl(Poisson, Poisson)
def _kl_poisson_poisson(p: Any, q: Any) -> Any:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(TransformedDistribution, TransformedDistribution)
def _kl_transformed_transformed(p: Any, q: Any) -> Any:
    if p.transforms != q.transforms or tuple(p.event_shape) != tuple(q.event_shape):
        raise NotImplementedError(
            "kl_divergence: of transformed distributions only those with the same transforms are known"
        )
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Uniform, Uniform)
def _kl_uniform_uniform(p: Any, q: Any) -> Any:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return tensor.where((q.low > p.low) | (q.high < p.high), _infinite_like(result), result)


@register_kl(Independent, Independent)
def _kl_independent_independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("kl_divergence: Independent distributions of different dimensions")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(Cauchy, Cauchy)
def _kl_cauchy_cauchy(p: Any, q: Any) -> Any:
    # "A closed-form formula for the Kullback-Leibler divergence between Cauchy distributions" (Chyzak, Nielsen, 2019)
    first = ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log()
    return first - (4 * p.scale * q.scale).log()


# --- two classes ---


def _register_infinite(*pairs: tuple[type, type]) -> None:
    """Pairs of which the first has values that the second never has."""

    def infinite(p: Any, q: Any) -> Any:
        return tensor.full_like(p.mean, math.inf)

    for type_p, type_q in pairs:
        register_kl(type_p, type_q)(infinite)


_REAL = (Normal, Laplace, Gumbel)
_BOUNDED_BELOW = (Exponential, Gamma, Pareto)
_register_infinite(
    (Bernoulli, Poisson), (Poisson, Bernoulli), (Poisson, Binomial),
    *((p, q) for p in (*_REAL, *_BOUNDED_BELOW) for q in (Beta, ContinuousBernoulli, Uniform)),
    *((p, q) for p in _REAL for q in _BOUNDED_BELOW),
    (Beta, Pareto), (ContinuousBernoulli, Pareto), (Exponential, Pareto), (Gamma, Pareto),
)  # fmt: skip
del _KL_REGISTRY[Bernoulli, Poisson]


@register_kl(Bernoulli, Poisson)
def _kl_bernoulli_poisson(p: Any, q: Any) -> Any:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, ContinuousBernoulli)
def _kl_beta_continuous_bernoulli(p: Any, q: Any) -> Any:
    return -p.entropy() - p.mean * q.logits - tensor.log1p(-q.probs) - q._log_normalizing()


@register_kl(Beta, Exponential)
def _kl_beta_exponential(p: Any, q: Any) -> Any:
    mean = p.concentration1 / (p.concentration1 + p.concentration0)
    return -p.entropy() - q.rate.log() + q.rate * mean


@register_kl(Beta, Gamma)
def _kl_beta_gamma(p: Any, q: Any) -> Any:
    total = p.concentration1 + p.concentration0
    first = q.concentration.lgamma() - q.concentration * q.rate.log()
    second = (q.concentration - 1) * (p.concentration1.digamma() - total.digamma())
    return -p.entropy() + first - second + q.rate * p.concentration1 / total


@register_kl(Beta, Normal)
def _kl_beta_normal(p: Any, q: Any) -> Any:
    variance = q.scale.pow(2)
    first = 0.5 * (variance * 2 * math.pi).log()
    second = (p.variance + p.mean.pow(2)) * 0.5
    return -p.entropy() + first + (second - p.mean * q.loc + q.loc.pow(2) * 0.5) / variance


@register_kl(Beta, Uniform)
def _kl_beta_uniform(p: Any, q: Any) -> Any:
    result = -p.entropy() + (q.high - q.low).log()
    return tensor.where((q.low > 0) | (q.high < 1), _infinite_like(result), result)


@register_kl(ContinuousBernoulli, Exponential)
def _kl_continuous_bernoulli_exponential(p: Any, q: Any) -> Any:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(ContinuousBernoulli, Normal)
def _kl_continuous_bernoulli_normal(p: Any, q: Any) -> Any:
    variance = q.scale.pow(2)
    first = 0.5 * (math.log(2.0 * math.pi) + (q.loc / q.scale).square()) + q.scale.log()
    second = (p.variance + p.mean.square() - 2.0 * q.loc * p.mean) / (2.0 * variance)
    return -p.entropy() + first + second


@register_kl(ContinuousBernoulli, Uniform)
def _kl_continuous_bernoulli_uniform(p: Any, q: Any) -> Any:
    result = -p.entropy() + (q.high - q.low).log()
    outside = (q.low > 0) | (q.high < 1)
    return tensor.where(outside, _infinite_like(result), result)


@register_kl(Exponential, Gamma)
def _kl_exponential_gamma(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    first = -q.concentration * ratio.log()
    return first + ratio + q.concentration.lgamma() + q.concentration * EULER - (1 + EULER)


@register_kl(Exponential, Gumbel)
def _kl_exponential_gumbel(p: Any, q: Any) -> Any:
    product = p.rate * q.scale
    shift = q.loc / q.scale
    return product.log() - 1 - shift + product.reciprocal() + shift.exp() * (product / (product + 1))


@register_kl(Exponential, Normal)
def _kl_exponential_normal(p: Any, q: Any) -> Any:
    variance = q.scale.pow(2)
    squared = p.rate.pow(2)
    first = 0.5 * (squared * variance * 2 * math.pi).log()
    second = (squared.reciprocal() - q.loc / p.rate + q.loc.pow(2) * 0.5) / variance
    return first - 1 + second


@register_kl(Gamma, Exponential)
def _kl_gamma_exponential(p: Any, q: Any) -> Any:
    return -p.entropy() - q.rate.log() + q.rate * p.concentration / p.rate


@register_kl(Gamma, Gumbel)
def _kl_gamma_gumbel(p: Any, q: Any) -> Any:
    product = p.rate * q.scale
    shift = q.loc / q.scale
    first = (p.concentration - 1) * p.concentration.digamma() - p.concentration.lgamma() - p.concentration
    second = product.log() + p.concentration / product
    third = shift.exp() * (1 + product.reciprocal()).pow(-p.concentration) - shift
    return first + second + third


@register_kl(Gamma, Normal)
def _kl_gamma_normal(p: Any, q: Any) -> Any:
    variance = q.scale.pow(2)
    squared = p.rate.pow(2)
    first = 0.5 * (squared * variance * 2 * math.pi).log() - p.concentration - p.concentration.lgamma()
    second = 0.5 * (p.concentration.pow(2) + p.concentration) / squared
    third = q.loc * p.concentration / p.rate
    last = (second - third + 0.5 * q.loc.pow(2)) / variance
    return first + (p.concentration - 1) * p.concentration.digamma() + last


@register_kl(Gumbel, Normal)
def _kl_gumbel_normal(p: Any, q: Any) -> Any:
    ratio = p.scale / q.scale
    first = (ratio / math.sqrt(2 * math.pi)).log()
    second = (math.pi * ratio * 0.5).pow(2) / 3
    third = ((p.loc + p.scale * EULER - q.loc) / q.scale).pow(2) * 0.5
    return -first + second + third - (EULER + 1)


@register_kl(Laplace, Normal)
def _kl_laplace_normal(p: Any, q: Any) -> Any:
    variance = q.scale.pow(2)
    ratio = p.scale.pow(2) / variance
    first = 0.5 * (2 * ratio / math.pi).log()
    second = 0.5 * p.loc.pow(2) - p.loc * q.loc + 0.5 * q.loc.pow(2)
    return -first + ratio + second / variance - 1


@register_kl(Normal, Gumbel)
def _kl_normal_gumbel(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale).pow(2)
    shift = (p.loc - q.loc) / q.scale
    lifted = tensor.exp(-shift + 0.5 * ratio)
    return shift + lifted - p.scale.log() + q.scale.log() - 0.5 * (1 + math.log(2 * math.pi))


@register_kl(Normal, Laplace)
def _kl_normal_laplace(p: Any, q: Any) -> Any:
    between = p.loc - q.loc
    ratio = p.scale / q.scale
    scaled = between / p.scale
    first = ratio.log()
    second = math.sqrt(2 / math.pi) * p.scale * tensor.exp(-0.5 * scaled.pow(2))
    third = between * tensor.erf(math.sqrt(0.5) * scaled)
    return -first + (second + third) / q.scale - (0.5 + 0.5 * math.log(0.5 * math.pi))


@register_kl(Pareto, Exponential)
def _kl_pareto_exponential(p: Any, q: Any) -> Any:
    product = p.scale * q.rate
    first = (p.alpha / product).log()
    result = first - (p.alpha.reciprocal() + 1) + p.alpha * product / (p.alpha - 1)
    return tensor.where(p.alpha <= 1, _infinite_like(result), result)


@register_kl(Pareto, Gamma)
def _kl_pareto_gamma(p: Any, q: Any) -> Any:
    common = p.scale.log() + p.alpha.reciprocal()
    first = p.alpha.log() - common
    second = q.concentration.lgamma() - q.concentration * q.rate.log()
    third = (1 - q.concentration) * common
    result = first + second + third + q.rate * p.alpha * p.scale / (p.alpha - 1) - 1
    return tensor.where(p.alpha <= 1, _infinite_like(result), result)


@register_kl(Pareto, Normal)
def _kl_pareto_normal(p: Any, q: Any) -> Any:
    variance = 2 * q.scale.pow(2)
    common = p.scale / (p.alpha - 1)
    first = (math.sqrt(2 * math.pi) * q.scale * p.alpha / p.scale).log() - p.alpha.reciprocal()
    second = p.alpha * common.pow(2) / (p.alpha - 2)
    result = first + (second + (p.alpha * common - q.loc).pow(2)) / variance - 1
    return tensor.where(p.alpha <= 2, _infinite_like(result), result)


@register_kl(Uniform, Beta)
def _kl_uniform_beta(p: Any, q: Any) -> Any:
    width = p.high - p.low
    first = width.log()
    second = (q.concentration1 - 1) * (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    third = (q.concentration0 - 1) * (_x_log_x(1 - p.high) - _x_log_x(1 - p.low) + width) / width
    fourth = (
        q.concentration1.lgamma() + q.concentration0.lgamma() - (q.concentration1 + q.concentration0).lgamma()
    )
    result = third + fourth - first - second
    return tensor.where((p.high > 1) | (p.low < 0), _infinite_like(result), result)


@register_kl(Uniform, ContinuousBernoulli)
def _kl_uniform_continuous_bernoulli(p: Any, q: Any) -> Any:
    result = -p.entropy() - p.mean * q.logits - tensor.log1p(-q.probs) - q._log_normalizing()
    return tensor.where((p.high > 1) | (p.low < 0), _infinite_like(result), result)


@register_kl(Uniform, Exponential)
def _kl_uniform_exponential(p: Any, q: Any) -> Any:
    result = q.rate * (p.high + p.low) / 2 - ((p.high - p.low) * q.rate).log()
    return tensor.where(p.low < 0, _infinite_like(result), result)


@register_kl(Uniform, Gamma)
def _kl_uniform_gamma(p: Any, q: Any) -> Any:
    width = p.high - p.low
    first = width.log()
    second = q.concentration.lgamma() - q.concentration * q.rate.log()
    third = (1 - q.concentration) * (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    result = -first + second + third + q.rate * (p.high + p.low) / 2
    return tensor.where(p.low < 0, _infinite_like(result), result)


@register_kl(Uniform, Gumbel)
def _kl_uniform_gumbel(p: Any, q: Any) -> Any:
    scaled = q.scale / (p.high - p.low)
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    return scaled.log() + 0.5 * (high + low) - scaled * ((-high).exp() - (-low).exp())


@register_kl(Uniform, Normal)
def _kl_uniform_normal(p: Any, q: Any) -> Any:
    width = p.high - p.low
    first = (math.sqrt(math.pi * 2) * q.scale / width).log()
    second = width.pow(2) / 12
    third = ((p.high + p.low - 2 * q.loc) / 2).pow(2)
    return first + 0.5 * (second + third) / q.scale.pow(2)


@register_kl(Uniform, Pareto)
def _kl_uniform_pareto(p: Any, q: Any) -> Any:
    width = p.high - p.low
    first = (q.alpha * q.scale.pow(q.alpha) * width).log()
    second = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    result = second * (q.alpha + 1) - first
    return tensor.where(p.low < q.support.lower_bound, _infinite_like(result), result)
