"""Errors of float32 sums, scans and statistics: small at any length, and about any mean."""

import math

import numpy as np
import pytest

import taeda_tensor_core as t

SEED = 20260301
LENGTHS = (100, 10_000, 1_000_000)
EPS = 2.0**-24


def uniform(n):
    return np.random.default_rng(SEED + n).random(n, np.float32)


def normal(n, mean):
    rng = np.random.default_rng(SEED + n)
    return (rng.standard_normal(n, np.float32) + np.float32(mean)).astype(np.float32)


def off(found, exact):
    """The largest error over the largest value."""
    exact = np.asarray(exact, np.float64)
    return np.abs(np.asarray(found.numpy(), np.float64) - exact).max() / np.abs(exact).max()


@pytest.mark.parametrize("n", LENGTHS)
class TestLengths:
    """A few roundings, whatever the length: pieces are joined pairwise or in double."""

    def test_sum(self, n):
        x = uniform(n)
        assert off(t.from_numpy(x).sum(), math.fsum(x.tolist())) < 8 * EPS

    def test_sums_of_columns(self, n):
        x = uniform(n).reshape(-1, 10)
        assert off(t.from_numpy(x).sum(0), x.astype(np.float64).sum(0)) < 16 * EPS

    def test_sums_over_separate_dimensions(self, n):
        x = uniform(n).reshape(-1, 5, 2)
        assert off(t.from_numpy(x).sum((0, 2)), x.astype(np.float64).sum((0, 2))) < 16 * EPS

    def test_cumsum(self, n):
        x = uniform(n)
        assert off(t.from_numpy(x).cumsum(0), np.cumsum(x.astype(np.float64))) < 2 * EPS

    def test_cumprod(self, n):
        x = (1 + (uniform(n) - 0.5) / n**0.5).astype(np.float32)
        assert off(t.from_numpy(x).cumprod(0), np.cumprod(x.astype(np.float64))) < 2 * EPS

    def test_logcumsumexp(self, n):
        x = uniform(n)
        exact = np.log(np.cumsum(np.exp(x.astype(np.float64))))
        assert off(t.from_numpy(x).logcumsumexp(0), exact) < 2 * EPS

    def test_products(self, n):
        x = uniform(n)
        wide, exact = t.from_numpy(x), float(x.astype(np.float64) @ x.astype(np.float64))
        for found in (wide.dot(wide), wide.reshape(1, n) @ wide, wide.reshape(1, n) @ wide.reshape(n, 1)):
            assert off(found, exact) < 200 * EPS

    def test_softmax(self, n):
        x = uniform(n)
        e = np.exp(x.astype(np.float64))
        assert off(t.from_numpy(x).softmax(0), e / e.sum()) < 16 * EPS
        assert off(t.from_numpy(x).log_softmax(0), x - np.log(e.sum())) < 16 * EPS
        both = np.stack([x] * 8, 1)  # along columns
        assert off(t.from_numpy(both).softmax(0)[:, 0], e / e.sum()) < 16 * EPS

    @pytest.mark.parametrize("mean", [0, 1e4, 1e6])
    def test_variance(self, n, mean):
        x = normal(n, mean)
        exact = x.astype(np.float64)
        assert off(t.from_numpy(x).var(), exact.var(ddof=1)) < 16 * EPS
        wide = x.reshape(-1, 10)
        assert off(t.from_numpy(wide).var(0), exact.reshape(-1, 10).var(0, ddof=1)) < 32 * EPS
        assert off(t.from_numpy(wide).var(1), exact.reshape(-1, 10).var(1, ddof=1)) < 16 * EPS
        assert off(t.from_numpy(wide).t().var(1), exact.reshape(-1, 10).var(0, ddof=1)) < 32 * EPS

    @pytest.mark.parametrize("mean", [0, 1e4, 1e6])
    def test_normalisation(self, n, mean):
        x = normal(n, mean)
        exact = x.astype(np.float64)
        expected = (exact - exact.mean()) / np.sqrt(exact.var() + 1e-5)
        wide = t.from_numpy(x)
        plane, rows = wide.reshape(1, 1, n), wide.reshape(n, 1)
        for found in (
            t.ops.layer_norm(wide, [n]),
            t.ops.group_norm(plane, 1),
            t.ops.batch_norm(plane, None, None, None, None, True, 0.1, 1e-5),
            t.ops.batch_norm(rows, None, None, None, None, True, 0.1, 1e-5),
        ):
            assert off(found.reshape(n), expected) < 16 * EPS


def test_a_long_sum_of_ones_is_their_number():
    assert t.ones(20_000_000).sum().item() == 20_000_000
    assert t.ones(20_000_000).reshape(-1, 1).expand(-1, 1).sum((0, 1)).item() == 20_000_000


def test_a_long_running_logarithm_of_zeros():
    assert abs(t.zeros(5_000_000).logcumsumexp(0)[-1].item() - math.log(5e6)) < 2e-6


def test_variance_of_ten_million_numbers_about_a_million():
    x = normal(10_000_000, 1e6)
    assert abs(t.from_numpy(x).var().item() / x.astype(np.float64).var(ddof=1) - 1) < 1e-5


def test_variance_keeps_what_is_no_number():
    assert math.isnan(t.tensor([1.0, math.inf, 2.0]).var().item())
    assert math.isnan(t.tensor([1.0, math.nan, 2.0]).var().item())
    assert math.isnan(t.tensor([1.0]).var().item())
