"""Distributions against SciPy and mathematics: densities, moments, samples, gradients, shapes, wrong calls."""

import contextlib
import functools
import math
import signal

import numpy as np
import pytest
import scipy.stats as stats

import taeda_distributions as d
import taeda_tensor_core as tc
from taeda_autograd import grad, gradcheck

f64 = tc.float64


def t(*values):
    return tc.tensor(list(values), dtype=f64)


# Each with SciPy's counterpart; the second parameter set has another shape of density.
CASES = {
    "normal": (d.Normal(t(0.5, -1), t(2, 0.3)), stats.norm([0.5, -1], [2, 0.3])),
    "laplace": (d.Laplace(t(0.5, -1), t(2, 0.3)), stats.laplace([0.5, -1], [2, 0.3])),
    "cauchy": (d.Cauchy(t(0.5, -1), t(2, 0.3)), stats.cauchy([0.5, -1], [2, 0.3])),
    "uniform": (d.Uniform(t(-1, 2), t(3, 2.5)), stats.uniform([-1, 2], [4, 0.5])),
    "exponential": (d.Exponential(t(0.5, 3)), stats.expon(scale=[2, 1 / 3])),
    "gamma": (d.Gamma(t(0.7, 4), t(2, 0.5)), stats.gamma([0.7, 4], scale=[0.5, 2])),
    "chi2": (d.Chi2(t(1.5, 6)), stats.chi2([1.5, 6])),
    "inverse gamma": (d.InverseGamma(t(5.0, 7), t(2, 0.5)), stats.invgamma([5.0, 7], scale=[2, 0.5])),
    "beta": (d.Beta(t(0.7, 4), t(2, 1.5)), stats.beta([0.7, 4], [2, 1.5])),
    "student": (d.StudentT(t(5.0, 8), t(1, -1), t(2, 0.5)), stats.t([5.0, 8], [1, -1], [2, 0.5])),
    "fisher": (d.FisherSnedecor(t(3.0, 8), t(9, 12)), stats.f([3.0, 8], [9, 12])),
    "gumbel": (d.Gumbel(t(0.5, -1), t(2, 0.3)), stats.gumbel_r([0.5, -1], [2, 0.3])),
    "half normal": (d.HalfNormal(t(2, 0.3)), stats.halfnorm(scale=[2, 0.3])),
    "half cauchy": (d.HalfCauchy(t(2, 0.3)), stats.halfcauchy(scale=[2, 0.3])),
    "log normal": (d.LogNormal(t(0.5, -1), t(0.7, 0.3)), stats.lognorm([0.7, 0.3], scale=np.exp([0.5, -1]))),
    "pareto": (d.Pareto(t(2, 0.3), t(5.0, 6)), stats.pareto([5.0, 6], scale=[2, 0.3])),
    "generalized pareto": (
        d.GeneralizedPareto(t(0.5, 1, 0), t(2, 1, 1.5), t(0.1, -0.5, 0)),
        stats.genpareto([0.1, -0.5, 0], [0.5, 1, 0], [2, 1, 1.5]),
    ),
    "weibull": (d.Weibull(t(2, 0.3), t(0.8, 3)), stats.weibull_min([0.8, 3], scale=[2, 0.3])),
    "von mises": (d.VonMises(t(0.5, -1), t(2, 0.3)), stats.vonmises([2, 0.3], [0.5, -1])),
    "bernoulli": (d.Bernoulli(t(0.2, 0.7)), stats.bernoulli([0.2, 0.7])),
    "binomial": (d.Binomial(30, t(0.05, 0.7)), stats.binom(30, [0.05, 0.7])),
    "geometric": (d.Geometric(t(0.2, 0.7)), stats.geom([0.2, 0.7], loc=-1)),
    "poisson": (d.Poisson(t(0.5, 30)), stats.poisson([0.5, 30])),
    "negative binomial": (d.NegativeBinomial(t(3.5, 9), t(0.2, 0.7)), stats.nbinom([3.5, 9], [0.8, 0.3])),
}
CONTINUOUS = [name for name, (mine, _) in CASES.items() if mine.has_rsample or name == "von mises"]


@pytest.fixture(params=CASES, ids=str)
def case(request):
    return CASES[request.param]


def test_log_prob(case):
    mine, theirs = case
    tc.manual_seed(0)
    values = mine.sample((50,))
    expected = (
        theirs.logpdf(values.numpy()) if hasattr(theirs.dist, "logpdf") else theirs.logpmf(values.numpy())
    )
    np.testing.assert_allclose(mine.log_prob(values).numpy(), expected, rtol=1e-7, atol=1e-9)


def test_moments(case):
    mine, theirs = case
    if isinstance(mine, d.VonMises):
        return  # moments of angles are circular
    mean, variance = theirs.stats("mv")
    finite = np.isfinite(mean)
    np.testing.assert_allclose(mine.mean.numpy()[finite], mean[finite], rtol=1e-9)
    finite = np.isfinite(variance)
    np.testing.assert_allclose(mine.variance.numpy()[finite], variance[finite], rtol=1e-9)


def test_entropy(case):
    mine, theirs = case
    try:
        found = mine.entropy()
    except NotImplementedError:
        return
    np.testing.assert_allclose(found.numpy(), theirs.entropy(), rtol=1e-6)


@pytest.mark.parametrize(
    "name",
    [
        n
        for n in CONTINUOUS
        if n not in ("gamma", "chi2", "inverse gamma", "beta", "student", "fisher", "von mises")
    ],
)
def test_cdf_and_its_inverse(name):
    mine, theirs = CASES[name]
    probability = tc.tensor([[0.01], [0.3], [0.5], [0.99]], dtype=f64).expand(4, *mine.batch_shape)
    values = mine.icdf(probability)
    np.testing.assert_allclose(values.numpy(), theirs.ppf(probability.numpy()), rtol=1e-7)
    np.testing.assert_allclose(mine.cdf(values).numpy(), probability.numpy(), rtol=1e-7)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_samples_follow_the_distribution(name):
    mine, theirs = CASES[name]
    tc.manual_seed(1)
    samples = mine.sample((4000,)).numpy()
    if isinstance(mine, d.VonMises):  # SciPy counts angles from the mean
        loc = mine.loc.numpy()
        samples = (samples - loc + math.pi) % (2 * math.pi) - math.pi + loc
    for i in range(samples.shape[1]):
        column = [np.asarray(arg)[i] if np.ndim(arg) else arg for arg in theirs.args]
        named = {key: np.asarray(arg)[i] if np.ndim(arg) else arg for key, arg in theirs.kwds.items()}
        assert stats.kstest(samples[:, i], theirs.dist(*column, **named).cdf).pvalue > 1e-4


@pytest.mark.parametrize("name", [name for name in CASES if name not in CONTINUOUS])
def test_counts_follow_the_distribution(name):
    mine, theirs = CASES[name]
    tc.manual_seed(1)
    samples = mine.sample((5000,)).numpy()
    for i in range(samples.shape[1]):
        values, counts = np.unique(samples[:, i], return_counts=True)
        expected = 5000 * theirs.pmf(values[:, None])[:, i]
        enough = expected > 5
        chi2 = ((counts - expected)[enough] ** 2 / expected[enough]).sum()
        assert stats.chi2(enough.sum()).sf(chi2) > 1e-4


@pytest.mark.parametrize("a", [1e-3, 0.1, 0.7, 1, 3, 30, 1e3])
def test_gradients_of_gamma_samples_are_implicit_ones(a):
    import mpmath

    from taeda_distributions._gamma_gradient import gradient

    with mpmath.workdps(60):
        for probability in (1e-4, 0.1, 0.5, 0.9, 0.9999):
            x = float(stats.gamma(a).ppf(probability))
            if x < 1e-200:
                continue
            up, down = (
                mpmath.gammainc(a + h, 0, x, regularized=True)
                for h in (mpmath.mpf("1e-20"), mpmath.mpf("-1e-20"))
            )
            density = mpmath.exp((a - 1) * mpmath.log(x) - x - mpmath.loggamma(a))
            expected = float(-(up - down) / mpmath.mpf("2e-20") / density)
            found = gradient(t(a), t(x)).item()
            assert found == pytest.approx(expected, rel=1e-6), (a, x)


RSAMPLES = {
    "normal": lambda a, b: d.Normal(a, b),
    "laplace": lambda a, b: d.Laplace(a, b),
    "gumbel": lambda a, b: d.Gumbel(a, b),
    "uniform": lambda a, b: d.Uniform(a, a + b),
    "weibull": lambda a, b: d.Weibull(b, a + 1),
    "kumaraswamy": lambda a, b: d.Kumaraswamy(a, b),
    "log normal": lambda a, b: d.LogNormal(a, b),
    "relaxed": lambda a, b: d.RelaxedBernoulli(b, logits=a),
    "continuous bernoulli": lambda a, b: d.ContinuousBernoulli(logits=a * b),
}


@pytest.mark.parametrize("name", RSAMPLES)
def test_gradients_through_samples(name):
    a, b = t(0.7, 1.3).requires_grad_(), t(0.8, 0.5).requires_grad_()

    def draw(a, b):
        tc.manual_seed(3)
        return RSAMPLES[name](a, b).rsample((3,))

    assert gradcheck(draw, (a, b))


@pytest.mark.parametrize(
    "make", [lambda a: d.Gamma(a, 2.0 + 0 * a), lambda a: d.Beta(a, a + 1), lambda a: d.Chi2(a)]
)
def test_mean_gradients_of_samples_by_gammas(make):
    a = t(0.7, 3).requires_grad_()
    tc.manual_seed(0)
    samples = make(a).rsample((40000,))
    found = grad(samples.mean(0).sum(), a)[0]
    expected = grad(make(a).mean.sum(), a)[0]
    assert tc.allclose(found, expected, rtol=0.05, atol=0.01)


def test_gradients_of_log_prob():
    a, b = t(0.7, 1.3).requires_grad_(), t(0.8, 0.5).requires_grad_()
    x = t(0.3, 0.6)
    for make in (d.Normal, d.Gamma, d.Beta, d.Laplace, d.Gumbel, d.Cauchy, d.Kumaraswamy, d.Weibull):
        assert gradcheck(lambda a, b, make=make: make(a, b).log_prob(x), (a, b))


def test_categories():
    tc.manual_seed(0)
    weights = t(1, 2, 5)
    one = d.Categorical(weights)
    assert one.log_prob(tc.tensor(2)).item() == pytest.approx(math.log(5 / 8))
    assert one.entropy().item() == pytest.approx(stats.entropy([1, 2, 5]))
    draws = one.sample((8000,))
    assert draws.dtype is tc.int64 and np.allclose(
        np.bincount(draws.numpy()) / 8000, [1 / 8, 2 / 8, 5 / 8], atol=0.02
    )
    assert one.enumerate_support().tolist() == [0, 1, 2]
    hot = d.OneHotCategorical(weights)
    assert hot.log_prob(t(0, 1, 0)).item() == pytest.approx(math.log(2 / 8)) and hot.sample((4,)).shape == (
        4,
        3,
    )
    many = d.Multinomial(20, weights)
    value = t(3, 7, 10)
    assert many.log_prob(value).item() == pytest.approx(
        stats.multinomial(20, [1 / 8, 2 / 8, 5 / 8]).logpmf([3, 7, 10])
    )
    assert many.entropy().item() == pytest.approx(stats.multinomial(20, [1 / 8, 2 / 8, 5 / 8]).entropy())
    assert (many.sample((50,)).sum(-1) == 20).all()
    through = d.OneHotCategoricalStraightThrough(weights.clone().requires_grad_())
    assert through.rsample().requires_grad
    dirichlet = d.Dirichlet(t(0.5, 2, 3))
    point = dirichlet.sample()
    assert point.sum().item() == pytest.approx(1)
    assert dirichlet.log_prob(t(0.2, 0.3, 0.5)).item() == pytest.approx(
        stats.dirichlet([0.5, 2, 3]).logpdf([0.2, 0.3, 0.5])
    )
    assert dirichlet.entropy().item() == pytest.approx(stats.dirichlet([0.5, 2, 3]).entropy())


@pytest.mark.parametrize("dtype", [tc.float32, tc.float64])
def test_samples_of_small_concentrations_lie_at_the_ends(dtype):
    tc.manual_seed(0)
    one = tc.tensor(1e-2, dtype=dtype)
    samples = d.Beta(one, one).sample((20000,))
    assert samples.dtype is dtype
    assert samples.min().item() > 0 and samples.max().item() < 1
    expected = stats.beta(1e-2, 1e-2).cdf(0.1)
    assert (samples < 0.1).double().mean().item() == pytest.approx(expected, abs=0.02)
    assert (samples > 0.9).double().mean().item() == pytest.approx(expected, abs=0.02)
    parts = d.Dirichlet(one.expand(3)).sample((5000,))
    assert (parts.amax(-1) > 0.9).double().mean().item() > 0.9


def test_mixtures():
    parts = d.Normal(t(-1, 2), t(0.5, 1))
    mixture = d.MixtureSameFamily(d.Categorical(t(1, 3)), parts)
    x = t(0.3)
    expected = 0.25 * stats.norm(-1, 0.5).pdf(0.3) + 0.75 * stats.norm(2, 1).pdf(0.3)
    assert mixture.log_prob(x).exp().item() == pytest.approx(expected)
    assert mixture.mean.item() == pytest.approx(1.25)
    assert mixture.cdf(x).item() == pytest.approx(
        0.25 * stats.norm(-1, 0.5).cdf(0.3) + 0.75 * stats.norm(2, 1).cdf(0.3)
    )
    tc.manual_seed(0)
    assert mixture.sample((20000,)).mean().item() == pytest.approx(1.25, abs=0.05)
    with pytest.raises(ValueError, match="Mixture distribution needs to be an instance"):
        d.MixtureSameFamily(parts, parts)


def test_independent_and_transformed():
    base = d.Normal(tc.zeros(3, 2, dtype=f64), tc.ones(3, 2, dtype=f64))
    joint = d.Independent(base, 1)
    assert joint.batch_shape == (3,) and joint.event_shape == (2,)
    x = base.sample()
    assert tc.allclose(joint.log_prob(x), base.log_prob(x).sum(-1))
    steps = [d.AffineTransform(1.0, 2.0), d.ExpTransform()]
    moved = d.TransformedDistribution(base, steps)
    expected = stats.lognorm(2, scale=math.e).logpdf(x.exp().numpy())
    np.testing.assert_allclose(moved.log_prob(x.exp()).numpy(), expected, rtol=1e-9)
    assert moved.expand((4, 3, 2)).sample().shape == (4, 3, 2)
    for wrong in (abs, [abs], 3):
        with pytest.raises(ValueError, match="transforms must be a Transform or list, but was"):
            d.TransformedDistribution(base, wrong)


TRANSFORMS = [
    d.ExpTransform(), d.SigmoidTransform(), d.TanhTransform(), d.SoftplusTransform(), d.PowerTransform(t(2.0)[0]),
    d.AffineTransform(1.0, -2.0), d.CumulativeDistributionTransform(d.Normal(t(0.0)[0], t(1.0)[0])),
    d.ComposeTransform([d.AffineTransform(0.5, 2.0), d.SigmoidTransform()]), d.StickBreakingTransform(),
    d.CorrCholeskyTransform(), d.ReshapeTransform((3,), (3, 1)),
    d.StackTransform([d.ExpTransform(), d.TanhTransform(), d.ExpTransform()], dim=-1),
    d.CatTransform([d.ExpTransform(), d.TanhTransform()], dim=-1, lengths=[1, 2]),
]  # fmt: skip


@pytest.mark.parametrize("transform", TRANSFORMS, ids=lambda one: type(one).__name__)
def test_transforms_are_undone_and_know_their_volume(transform):
    tc.manual_seed(2)
    x = tc.rand(3, dtype=f64) + 0.1
    y = transform(x)
    assert tc.allclose(transform.inv(y), x, rtol=1e-6)
    assert transform.inv.inv is transform or transform.inv.inv == transform
    found = transform.log_abs_det_jacobian(x, y)
    if transform.domain.event_dim == 0 and transform.codomain.event_dim == 0:
        x = x.requires_grad_()
        (slope,) = grad(transform(x).sum(), x)
        assert tc.allclose(found, slope.abs().log(), rtol=1e-6)
        return
    from taeda_autograd.functional import jacobian

    def flat(x):
        y = transform(x)
        if isinstance(transform, d.CorrCholeskyTransform):
            from taeda_distributions.utils import tril_matrix_to_vec

            return tril_matrix_to_vec(y, -1)
        return y.reshape(-1)[: x.numel()]

    matrix = jacobian(flat, x).numpy()
    assert found.sum().item() == pytest.approx(np.linalg.slogdet(matrix)[1], rel=1e-6)


def test_transforms_keep_the_last_pair():
    cached = d.TanhTransform(cache_size=1)
    x = t(20.0)
    assert cached.inv(cached(x)) is x
    with pytest.raises(ValueError, match="cache_size must be 0 or 1"):
        d.ExpTransform(cache_size=2)


@pytest.mark.parametrize(
    "constraint",
    [
        d.constraints.real, d.constraints.positive, d.constraints.greater_than(2.0), d.constraints.less_than(-1.0),
        d.constraints.unit_interval, d.constraints.interval(-2.0, 5.0), d.constraints.simplex,
        d.constraints.real_vector, d.constraints.lower_cholesky, d.constraints.nonnegative,
    ],
    ids=repr,
)  # fmt: skip
def test_registered_transforms_reach_what_fulfils_the_constraint(constraint):
    tc.manual_seed(0)
    x = tc.randn(4, 3, 3, dtype=f64)
    assert constraint.check(d.transform_to(constraint)(x)).all()
    if not isinstance(constraint, type(d.constraints.lower_cholesky)):
        transform = d.biject_to(constraint)
        assert constraint.check(transform(x)).all() and tc.allclose(transform.inv(transform(x)), x)


def test_divergences_are_means_of_log_ratios():
    tc.manual_seed(0)
    one = t(1.0)
    pairs = [
        (d.Normal(0 * one, one), d.Normal(0.5 * one, 2 * one)),
        (d.Gamma(2 * one, one), d.Gamma(3 * one, 0.5 * one)),
        (d.Beta(2 * one, 3 * one), d.Beta(one, one)),
        (d.Beta(2 * one, 3 * one), d.Normal(0 * one, one)),
        (d.Exponential(one), d.Gamma(2 * one, one)),
        (d.Laplace(0 * one, one), d.Normal(0 * one, one)),
        (d.Normal(0 * one, one), d.Laplace(0.3 * one, one)),
        (d.Gumbel(0 * one, one), d.Gumbel(0.5 * one, 2 * one)),
        (d.Normal(0 * one, one), d.Gumbel(0.5 * one, 2 * one)),
        (d.Uniform(0.1 * one, 0.8 * one), d.Beta(2 * one, 3 * one)),
        (d.Poisson(3 * one), d.Poisson(4 * one)),
        (d.Bernoulli(0.3 * one), d.Bernoulli(0.6 * one)),
        (d.Geometric(0.3 * one), d.Geometric(0.6 * one)),
        (d.Pareto(one, 4 * one), d.Normal(one, one)),
        (d.ContinuousBernoulli(0.3 * one), d.ContinuousBernoulli(0.7 * one)),
        (d.Cauchy(0 * one, one), d.Cauchy(one, 2 * one)),
    ]
    for p, q in pairs:
        x = p.sample((60000,))
        terms = p.log_prob(x) - q.log_prob(x)
        error = (terms.var(0) / 60000).sqrt()
        assert abs(d.kl_divergence(p, q) - terms.mean(0)).item() < 6 * error.item() + 1e-9, (p, q)
    assert d.kl_divergence(d.Normal(0 * one, one), d.Uniform(0 * one, one)).item() == math.inf
    assert d.kl_divergence(d.Uniform(0 * one, 2 * one), d.Uniform(0 * one, one)).item() == math.inf


def test_divergences_of_own_classes():
    class Mine(d.Normal):
        pass

    one = tc.ones(1)
    assert d.kl_divergence(Mine(one, one), d.Normal(one, one)).item() == 0

    @d.register_kl(Mine, Mine)
    def kl(p, q):
        return "mine"

    assert d.kl_divergence(Mine(one, one), Mine(one, one)) == "mine"
    with pytest.raises(NotImplementedError, match="No KL"):
        d.kl_divergence(d.VonMises(one, one), d.Normal(one, one))
    with pytest.raises(TypeError, match="Expected a Distribution subclass"):
        d.register_kl("Normal", Mine)
    d.register_kl(int, Mine)(kl)  # as libraries do with bases of their own


def test_parameters_and_values_are_checked():
    with pytest.raises(ValueError, match=r"Expected parameter scale .*GreaterThan\(lower_bound=0.0\)"):
        d.Normal(0.0, -1.0)
    assert d.Normal(0.0, -1.0, validate_args=False).scale.item() == -1
    with pytest.raises(ValueError, match="within the support"):
        d.Gamma(1.0, 1.0).log_prob(tc.tensor(-1.0))
    with pytest.raises(ValueError, match="must be a Tensor"):
        d.Normal(0.0, 1.0).log_prob(1.0)
    with pytest.raises(ValueError, match="not broadcastable"):
        d.Normal(tc.zeros(3), tc.ones(3)).log_prob(tc.zeros(2))
    with pytest.raises(ValueError, match="Either `probs` or `logits` must be specified"):
        d.Bernoulli()
    with pytest.raises(ValueError, match="found str"):
        d.Normal("a", 1.0)
    with pytest.raises(NotImplementedError, match="does not implement mode"):
        d.RelaxedBernoulli(tc.ones(1), tc.ones(1) / 2).mode  # noqa: B018


def test_expand_and_names():
    wide = d.Normal(t(0.0, 1), t(1, 1)).expand((3, 2))
    assert wide.batch_shape == (3, 2) and wide.loc.shape == (3, 2) and wide.sample((4,)).shape == (4, 3, 2)
    assert repr(d.Normal(0.0, 1.0)) == "Normal(loc: 0.0, scale: 1.0)"
    held = d.Normal(0.0, 1.0)
    held._buffers = {"loc": held.loc}  # as a class that is a module too keeps it
    assert repr(held) == "Normal(scale: 1.0)"
    assert isinstance(d.Normal(0.0, 1.0).sample(), tc.Tensor) and d.Bernoulli(
        logits=t(0.0)
    ).probs.tolist() == [0.5]


@pytest.mark.parametrize("logit", [3.0, 30.0, 400.0, 1e4])
@pytest.mark.parametrize("sign", [-1, 1])
def test_continuous_bernoulli_of_extreme_odds(logit, sign):
    """It is an exponential distribution that ends at one, or its mirror image."""
    odds = t(sign * logit).requires_grad_()
    ours = d.ContinuousBernoulli(logits=odds)
    theirs = stats.truncexpon(b=logit, scale=1 / logit)

    def mirrored(x):
        return x if sign < 0 else 1 - x

    near = mirrored(t(0.0, 0.1 / logit, 1 / logit, 0.5, 1.0))
    at = np.array([0.0, 0.1 / logit, 1 / logit, 0.5, 1.0])
    close = functools.partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9)
    close(ours.log_prob(near).detach().numpy(), theirs.logpdf(at))
    close(mirrored(ours.cdf(near).detach().numpy()), theirs.cdf(at))
    close(mirrored(ours.icdf(near).detach().numpy()), theirs.ppf(at))
    close(mirrored(ours.mean.item()), theirs.mean())
    close(ours.variance.item(), 1 / logit**2 - 1 / (4 * math.sinh(min(logit, 700) / 2) ** 2))
    close(ours.entropy().item(), 1 - logit / math.expm1(min(logit, 700)) - theirs.logpdf(0))
    total = ours.log_prob(near).sum() + ours.mean + ours.entropy() + ours.icdf(near[1:3]).sum()
    (gradient,) = grad(total.sum(), odds)
    assert math.isfinite(gradient.item())


def test_samples_of_parameters_that_have_none():
    """They end, and are not numbers."""
    wrong = t(math.nan, -1.0)
    drawn = [
        d.Gamma(wrong, 1.0, validate_args=False).sample(),
        d.Dirichlet(t(math.nan, 1.0), validate_args=False).sample(),
        d.StudentT(t(math.nan), validate_args=False).sample(),
        d.VonMises(0.0 * wrong, wrong, validate_args=False).sample(),
        d.Binomial(
            t(math.nan, 20.0, 0.0, math.inf), t(0.5, math.nan, math.nan, 0.5), validate_args=False
        ).sample(),
    ]
    assert all(bool(x.isnan().all()) for x in drawn)
    tc.manual_seed(0)
    assert d.Gamma(t(math.inf, 2.0), 1.0).sample()[0] == math.inf
    assert d.VonMises(t(0.5), t(math.inf), validate_args=False).sample().tolist() == pytest.approx([0.5])
    near = d.VonMises(t(0.0), t(4e10)).sample((10000,))
    assert near.std().item() == pytest.approx(5e-6, rel=0.05)
    assert d.VonMises(t(0.0), t(2e9)).sample((10000,)).std().item() == pytest.approx(2e9**-0.5, rel=0.05)
    even = d.VonMises(t(0.0), t(0.0), validate_args=False).sample((20000,))
    assert stats.kstest(even.numpy().ravel(), stats.uniform(-math.pi, 2 * math.pi).cdf).pvalue > 1e-4
    assert d.VonMises(t(1.0), t(1e300)).sample().item() == pytest.approx(1.0)


SAMPLED = {
    "Bernoulli": lambda v, one: d.Bernoulli(logits=v),
    "Beta": d.Beta,
    "Binomial": lambda v, one: d.Binomial(5, probs=v),
    "Binomial of counts": lambda v, one: d.Binomial(v, probs=0.7 * one),
    "Categorical": lambda v, one: d.Categorical(logits=tc.stack([v, one], -1)),
    "Chi2": lambda v, one: d.Chi2(v),
    "ContinuousBernoulli": lambda v, one: d.ContinuousBernoulli(logits=v),
    "Dirichlet": lambda v, one: d.Dirichlet(tc.stack([v, one], -1)),
    "FisherSnedecor": lambda v, one: d.FisherSnedecor(v, 3 * one),
    "Gamma": d.Gamma,
    "Geometric": lambda v, one: d.Geometric(logits=v),
    "InverseGamma": d.InverseGamma,
    "Kumaraswamy": d.Kumaraswamy,
    "LKJCholesky": lambda v, one: d.LKJCholesky(3, v),
    "NegativeBinomial": lambda v, one: d.NegativeBinomial(v, 0.5 * one),
    "Poisson": lambda v, one: d.Poisson(v),
    "RelaxedBernoulli": lambda v, one: d.RelaxedBernoulli(v, 0.5 * one),
    "StudentT": lambda v, one: d.StudentT(v),
    "VonMises": lambda v, one: d.VonMises(0 * one, v),
    "VonMises of means": d.VonMises,
    "Wishart": lambda v, one: d.Wishart(v, tc.eye(2, dtype=f64)),
}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1.0, 0.0, 1e-300, 1e-15, 1e15, 1e300])
@pytest.mark.parametrize("name", SAMPLED)
def test_sampling_ends_whatever_the_parameters(name, value):
    def stop(*_):
        pytest.fail(f"{name} of {value} draws for more than 20 s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(20)
    validates = d.Distribution._validate_args
    d.Distribution.set_default_validate_args(False)
    try:
        with contextlib.suppress(ValueError, RuntimeError):
            drawn = SAMPLED[name](t(value)[0], t(1.0)[0]).sample((3,))
            assert drawn.shape[0] == 3
    finally:
        d.Distribution.set_default_validate_args(validates)
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("shape", [0.3, 1.0, 7.5])
def test_gamma_numbers_of_a_twister(shape):
    """Each takes from the stream its own, one after another, with the distribution's moments."""
    tc.random.set_engine("mt19937")
    try:
        tc.manual_seed(3)
        drawn = d.Gamma(tc.full((3000,), shape), 1.0).sample()
        tc.manual_seed(3)
        assert tc.equal(d.Gamma(tc.full((10,), shape), 1.0).sample(), drawn[:10])
    finally:
        tc.random.set_engine("philox")
    assert abs(float(drawn.mean()) - shape) < 5 * (shape / 3000) ** 0.5
    assert abs(float(drawn.var()) / shape - 1) < 0.3
