"""Zeros, infinities, NaN and the ends of each dtype as elements and options: calls come back, with errors of our own.

TAEDA_TEST_SEED chooses other random calls.
"""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import taeda as t
import taeda.nn.functional as F
from taeda_testing.record import all_records
from taeda_testing.survival import crashes

SEED = os.environ.get("TAEDA_TEST_SEED", "2026")
INF = float("inf")


def test_calls_with_extreme_values_come_back(tmp_path):
    """Random calls of every record and their gradients, within seconds each."""
    print("seed", SEED)
    assert crashes(["-m", "taeda_testing.values", SEED, "2"], tmp_path / "call", patience=60) == []


@pytest.mark.parametrize(
    ("s", "q", "expected"),
    [
        (2.0, 1e10, 1e-10),
        (1e300, 0.5, INF),
        (1e300, 1.0, 1.0),
        (1e300, 2.0, 0.0),
        (INF, 3.0, 0.0),
        (2.0, 1e300, 1e-300),
        (1e300, 1e300, 0.0),
        (50.0, 1e15, 0.0),
    ],
)
def test_zeta_where_terms_vanish(s, q, expected):
    found = t.special.zeta(t.tensor(s, dtype=t.float64), t.tensor(q, dtype=t.float64)).item()
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


POINTS = (0.0, -0.0, 1.0, -1.0, 2.0, -2.0, -3.0, 0.5, -0.5, -2.5, 7.0, 10.0, 2.0**-7, INF, -INF, float("nan"))
# What depends on a dtype's own spacing or ends, makes complex numbers, or takes a device.
BY_DTYPE = {"nextafter", "nan_to_num", "complex", "polar", "to_device"}


@pytest.mark.parametrize(
    "record",
    [
        record
        for record in all_records()
        if record.domains and {"float32", "float64"} <= set(record.dtypes) and record.name not in BY_DTYPE
    ],
    ids=lambda record: record.name,
)
def test_both_precisions_agree_at_special_points(record):
    """Poles, zeros and NaN lie where they lie, by whatever series each dtype is computed."""
    name = record.name.removeprefix("special_")
    function = next((getattr(home, name) for home in (t, F, t.special) if hasattr(home, name)), None)
    if function is None:  # an operator that no function of the library names
        function = getattr(t.ops, record.name)
    places = [grid.ravel() for grid in np.meshgrid(*[np.array(POINTS)] * len(record.domains), indexing="ij")]
    double, single = (
        function(*(t.from_numpy(place).to(dtype) for place in places)) for dtype in (t.float64, t.float32)
    )
    np.testing.assert_allclose(single.numpy(), double.to(single.dtype).numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["laguerre_polynomial_l", "legendre_polynomial_p"])
def test_recurrences_end(name):
    function = getattr(t.special, name)
    x = t.tensor([0.3, -0.7], dtype=t.float64)
    assert t.isnan(function(x, 1e18)).all()
    assert t.isfinite(function(x, 2000)).all()


@pytest.mark.parametrize("kind", "tuvw")
def test_chebyshev_polynomials_of_high_degree_outside(kind):
    """By their hyperbolic forms as by the recurrence, and at once for degrees that none could be followed to."""
    function = getattr(t.special, f"chebyshev_polynomial_{kind}")
    x = np.array([1.00001, -1.00001, 1 + 1e-12, -1.0002])
    for n in (4097, 5000):
        before, p = np.ones_like(x), {"t": x, "u": 2 * x, "v": 2 * x - 1, "w": 2 * x + 1}[kind]
        for _ in range(n - 1):
            before, p = p, 2 * x * p - before
        np.testing.assert_allclose(function(t.from_numpy(x), n).numpy(), p, rtol=1e-6)
    large = function(t.tensor([1 + 2**-52, -2.0, INF], dtype=t.float64), 10**10)
    assert t.isinf(large).tolist() == [False, True, True]


def test_gradient_of_an_adaptive_pooling_without_elements():
    x = t.ones(1, 2, 4, 4, requires_grad=True)
    F.adaptive_avg_pool2d(x, (0, 2**31 - 1)).sum().backward()
    assert x.grad.tolist() == t.zeros(1, 2, 4, 4).tolist()


def test_results_that_do_not_fit_name_their_operator():
    """What a kernel works out on the way may be too large where the result is not."""
    program = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))\n"
        "import taeda as t\n"
        "try: t.ops.resample(t.ones(1, 1, 8, 5, dtype=t.uint8), [1, 2**31 - 1], 'linear', True, True)\n"
        "except MemoryError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("resample: ")
