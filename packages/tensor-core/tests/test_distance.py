"""Distances between rows of every length, against NumPy: short rows are compared by pairs, longer ones by terms."""

import numpy as np
import pytest

import taeda_tensor_core as taeda


def norm(difference, p):
    d = np.abs(difference)
    if p == 0:
        return (d != 0).sum(-1).astype(d.dtype)
    if np.isinf(p):
        return d.max(-1, initial=0)
    return (d**p).sum(-1) ** (1 / p)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, float("inf")])
@pytest.mark.parametrize("length", [1, 3, 6, 16, 17, 63, 64, 65, 130])
def test_rows_of_every_length(length, p, dtype):
    rng = np.random.default_rng(length)
    print("seed", length)
    unit = {"float32": 1e-5, "float64": 1e-13}[dtype]
    for rows, others in ((1, 1), (5, 17), (3, 64), (2, 70)):
        draw = lambda *sizes: taeda.from_numpy(rng.integers(-4, 5, sizes) / 4).to(getattr(taeda, dtype))  # noqa: E731
        x, y = draw(2, rows, length), draw(2, length, others).transpose(1, 2)  # the others lie apart
        a, b = (t.to(taeda.float64).numpy() for t in (x, y))
        expected = norm(a[:, :, None] - b[:, None], p)
        found = taeda.cdist(x, y, p, compute_mode="donot_use_mm_for_euclid_dist").to(taeda.float64).numpy()
        np.testing.assert_allclose(found, expected, rtol=unit, atol=unit)
        one = y[0].contiguous()
        pairs = np.triu_indices(others, 1)
        found = taeda.pdist(one, p).to(taeda.float64).numpy()
        np.testing.assert_allclose(found, norm(b[0][pairs[0]] - b[0][pairs[1]], p), rtol=unit, atol=unit)


@pytest.mark.parametrize("length", [3, 70])
@pytest.mark.parametrize("p", [1.0, 2.0, float("inf")])
def test_what_is_no_number_reaches_its_own_pairs_alone(length, p):
    x, y = taeda.zeros(2, length), taeda.ones(20, length)
    y[7, length - 1] = float("nan")
    found = taeda.cdist(x, y, p, compute_mode="donot_use_mm_for_euclid_dist").isnan()
    assert found[:, 7].all() and found.sum().item() == 2
