"""Distributions that need factors of matrices, where the tensor provider has them."""

import numpy as np
import pytest
import scipy.stats as stats

import taeda_distributions as d
import taeda_tensor_core as tc

NEEDED = ("cholesky", "cholesky_ex", "solve_triangular", "slogdet", "norm", "eigvalsh")
pytestmark = pytest.mark.skipif(
    any(not hasattr(tc.linalg, name) for name in NEEDED),
    reason="the tensor provider has no factors of matrices",
)
COVARIANCE = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, -0.2], [0.1, -0.2, 0.7]])


def covariance():
    return tc.from_numpy(COVARIANCE.copy())


def loc():
    return tc.tensor([0.5, -1.0, 2.0], dtype=tc.float64)


@pytest.mark.parametrize("name", ["covariance_matrix", "precision_matrix", "scale_tril"])
def test_normal_vectors(name):
    matrix = {
        "covariance_matrix": covariance,
        "precision_matrix": lambda: tc.from_numpy(np.linalg.inv(COVARIANCE)),
        "scale_tril": lambda: tc.from_numpy(np.linalg.cholesky(COVARIANCE)),
    }[name]()
    mine = d.MultivariateNormal(loc(), **{name: matrix})
    theirs = stats.multivariate_normal(loc().numpy(), COVARIANCE)
    tc.manual_seed(0)
    x = mine.sample((20000,))
    np.testing.assert_allclose(mine.log_prob(x[:9]).numpy(), theirs.logpdf(x[:9].numpy()), rtol=1e-9)
    np.testing.assert_allclose(np.cov(x.numpy().T), COVARIANCE, atol=0.06)
    np.testing.assert_allclose(mine.covariance_matrix.numpy(), COVARIANCE, rtol=1e-9)
    np.testing.assert_allclose(mine.precision_matrix.numpy(), np.linalg.inv(COVARIANCE), rtol=1e-9)
    assert mine.entropy().item() == pytest.approx(theirs.entropy())


def test_few_directions():
    factor = tc.tensor([[1.0], [0.5], [-0.3]], dtype=tc.float64)
    diagonal = tc.tensor([0.5, 1.0, 0.2], dtype=tc.float64)
    mine = d.LowRankMultivariateNormal(loc(), factor, diagonal)
    whole = d.MultivariateNormal(loc(), mine.covariance_matrix)
    tc.manual_seed(0)
    x = mine.sample((7,))
    assert tc.allclose(mine.log_prob(x), whole.log_prob(x)) and tc.allclose(mine.entropy(), whole.entropy())
    assert tc.allclose(mine.precision_matrix, whole.precision_matrix)
    other = d.MultivariateNormal(loc() + 1, covariance())
    for p, q in ((mine, other), (other, mine)):
        expected = d.kl_divergence(*(whole if one is mine else one for one in (p, q)))
        assert tc.allclose(d.kl_divergence(p, q), expected)
    assert abs(d.kl_divergence(mine, mine).item()) < 1e-12


def test_random_covariances():
    mine = d.Wishart(tc.tensor(5.0, dtype=tc.float64), covariance())
    theirs = stats.wishart(5, COVARIANCE)
    tc.manual_seed(0)
    x = mine.sample((6000,))
    np.testing.assert_allclose(mine.log_prob(x[:1]).numpy(), theirs.logpdf(x[0].numpy()), rtol=1e-9)
    np.testing.assert_allclose(x.mean(0).numpy(), 5 * COVARIANCE, atol=0.3)
    assert mine.entropy().item() == pytest.approx(theirs.entropy())
    with pytest.raises(ValueError, match="expected to be greater than ndim - 1 = 2"):
        d.Wishart(tc.tensor(2.0, dtype=tc.float64), covariance())


@pytest.mark.parametrize("name", ["covariance_matrix", "precision_matrix"])
def test_matrices_that_are_not_definite_are_refused_by_name(name):
    for wrong in (-covariance(), tc.full((3, 3), float("nan"), dtype=tc.float64)):
        with pytest.raises(ValueError, match=f"Expected parameter {name}"):
            d.Wishart(tc.tensor(5.0, dtype=tc.float64), **{name: wrong})
        with pytest.raises(ValueError, match=f"Expected parameter {name}"):
            d.MultivariateNormal(loc(), **{name: wrong})


@pytest.mark.parametrize("name", ["covariance_matrix", "precision_matrix", "scale_tril"])
def test_batches_of_no_matrices(name):
    """Their checks hold of nothing, as do their values."""
    none = tc.zeros(0, 3, 3, dtype=tc.float64)
    for mine in (
        d.Wishart(tc.ones(0, dtype=tc.float64), **{name: none}),
        d.MultivariateNormal(tc.zeros(0, 3, dtype=tc.float64), **{name: none}),
    ):
        assert mine.batch_shape == (0,) and mine.mean.shape[0] == 0
        assert mine.log_prob(mine.sample((2,))).shape == (2, 0)
    for one in ("lower_triangular", "lower_cholesky", "symmetric", "positive_definite", "corr_cholesky"):
        assert getattr(d.constraints, one).check(none).shape == (0,)
    several = d.Independent(d.Normal(tc.zeros(0, 3), 1.0), 1)
    assert several.support.check(tc.zeros(0, 3)).shape == (0,)
    assert several.log_prob(tc.zeros(0, 3)).shape == (0,)


def test_correlations():
    tc.manual_seed(0)
    mine = d.LKJCholesky(3, tc.tensor(1.0, dtype=tc.float64))
    x = mine.sample((4000,))
    correlations = (x @ x.mT)[:, 1, 0].numpy()
    # With concentration 1 each correlation r has (r + 1) / 2 of a beta distribution.
    assert stats.kstest((correlations + 1) / 2, stats.beta(1.5, 1.5).cdf).pvalue > 1e-4
    assert mine.log_prob(x).isfinite().all()
    with pytest.raises(ValueError, match="dim to be an integer greater than or equal to 2"):
        d.LKJCholesky(1)
