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

    def test_prod(self, n):
        """Factors near one, where float32 rounds the same way again and again."""
        x = (1 + (uniform(n) - 0.5) / n**0.5).astype(np.float32)
        exact = x.astype(np.float64)
        assert off(t.from_numpy(x).prod(), exact.prod()) < 2 * EPS
        wide, by_column = t.from_numpy(x).reshape(-1, 10), exact.reshape(-1, 10)
        assert off(wide.prod(0), by_column.prod(0)) < 2 * EPS
        assert off(wide.t().prod(0), by_column.prod(1)) < 2 * EPS
        assert off(wide[:, ::3].prod(), by_column[:, ::3].prod()) < 2 * EPS

    @pytest.mark.parametrize("places", [1, 3])
    def test_sums_into_indexed_places(self, n, places):
        x, at = uniform(n), np.random.default_rng(SEED).integers(0, places, n)
        exact = np.bincount(at, x, places)
        values, index, none = t.from_numpy(x), t.from_numpy(at), t.zeros(places)
        both = t.stack([values, values], 1)
        for found in (
            none.scatter_add(0, index, values),
            none.index_add(0, index, values),
            none.index_put((index,), values, accumulate=True),
            none.scatter_reduce(0, index, values, "sum"),
            t.ops.embedding_backward(values.reshape(-1, 1), index, places, -1, False).reshape(-1),
            t.zeros(places, 2).index_add(0, index, both)[:, 1],
            t.zeros(places, 2).index_put((index,), both, accumulate=True)[:, 0],
            t.bincount(index, values, places),
        ):
            assert found.dtype is t.float32
            assert off(found, exact) < 2 * EPS
        mean = none.scatter_reduce(0, index, values, "mean", include_self=False)
        assert off(mean, exact / np.bincount(at, minlength=places)) < 2 * EPS
        half = values.to(t.float16)
        exact = np.bincount(at, half.to(t.float64).numpy(), places)
        bound = 2.0**-11 if exact.max() < 60_000 else math.inf
        for found in (
            none.to(t.float16).scatter_add(0, index, half),
            none.to(t.float16).index_add(0, index, half),
            none.to(t.float16).index_put((index,), half, accumulate=True),
        ):
            assert found.dtype is t.float16
            assert off(found, exact) <= bound

    def test_a_product_into_an_indexed_place(self, n):
        x = (1 + (uniform(n) - 0.5) / n**0.5).astype(np.float32)
        index = t.zeros(n, dtype=t.int64)
        found = t.ones(1).scatter_reduce(0, index, t.from_numpy(x), "prod")
        assert off(found, x.astype(np.float64).prod()) < 2 * EPS

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
        assert off(t.from_numpy(x).var(), exact.var(ddof=1)) < 2 * EPS
        wide, exact = t.from_numpy(x).reshape(-1, 10), exact.reshape(-1, 10)
        assert off(wide.var(0), exact.var(0, ddof=1)) < 2 * EPS
        assert off(wide.std(0), exact.std(0, ddof=1)) < 2 * EPS
        assert off(wide.var(1), exact.var(1, ddof=1)) < 2 * EPS
        assert off(wide.t().var(1), exact.var(0, ddof=1)) < 2 * EPS
        assert off(wide[:, ::3].var(1), exact[:, ::3].var(1, ddof=1)) < 2 * EPS
        cube, exact = wide.reshape(-1, 5, 2), exact.reshape(-1, 5, 2)
        assert off(cube.var((0, 2)), exact.var((0, 2), ddof=1)) < 2 * EPS

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


def test_a_long_product():
    x = (1 + (uniform(20_000_000) - 0.5) / 20_000_000**0.5).astype(np.float32)
    assert off(t.from_numpy(x).prod(), np.prod(x, dtype=np.float64)) < 2 * EPS


def test_variance_where_squares_or_sums_leave_the_range():
    """The result is in range, what is added up on the way is not."""
    far = np.float32(3e38)
    assert t.full((1000,), float(far)).var().item() == 0
    x = np.zeros(1_000_000, np.float32)
    x[::1000] = 3e19
    exact = x.astype(np.float64).var(ddof=1)
    assert off(t.from_numpy(x).var(), exact) < 2 * EPS
    assert off(t.from_numpy(x.reshape(-1, 10)).var(0)[0], x.astype(np.float64)[::10].var(ddof=1)) < 2 * EPS
    wide = t.tensor([1e200, 1e200, 1e200], dtype=t.float64)
    assert wide.var().item() == 0


def test_variance_of_numbers_that_jump():
    """What was near the mean at first is far from it later."""
    x = np.concatenate([np.zeros(100), 1e6 + np.random.default_rng(SEED).standard_normal(1_000_000)])
    x = x.astype(np.float32)
    exact = x.astype(np.float64)
    assert off(t.from_numpy(x).var(), exact.var(ddof=1)) < 4 * EPS
    assert off(t.from_numpy(x.reshape(-1, 10)).var(0), exact.reshape(-1, 10).var(0, ddof=1)) < 4 * EPS


def test_variance_of_complex_numbers_is_that_of_their_parts():
    x = normal(6000, 1e4) + 1j * normal(6001, 3)[:6000]
    exact = x.astype(np.complex128).reshape(-1, 3)
    wide = t.from_numpy(x.astype(np.complex64)).reshape(-1, 3)
    assert off(wide.var(), exact.var(ddof=1)) < 2 * EPS
    assert off(wide.var(0), exact.var(0, ddof=1)) < 2 * EPS
    assert off(wide.t().var(0, keepdim=True), exact.T.var(0, ddof=1, keepdims=True)) < 2 * EPS


def test_variance_keeps_what_is_no_number():
    assert math.isnan(t.tensor([1.0, math.inf, 2.0]).var().item())
    assert math.isnan(t.tensor([1.0, math.nan, 2.0]).var().item())
    for few in (t.tensor([1.0]), t.zeros(0)):
        with pytest.warns(UserWarning, match="degrees of freedom is <= 0"):
            assert math.isnan(few.var().item())
    long = t.zeros(5000, 8)
    long[4321, 3] = math.nan
    long[17, 5] = math.inf
    assert long.var(0).isnan().tolist() == [False, False, False, True, False, True, False, False]
    assert math.isnan(long.var().item())
