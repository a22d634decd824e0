"""Functions of one argument against the references of their records: accuracy, special values, layouts, dtypes."""

import math

import numpy as np
import pytest
from scipy import special

import taeda_tensor_core as taeda
from taeda_testing import all_records
from taeda_testing.runner import function_of

SPECIAL = np.array(
    [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        np.inf,
        -np.inf,
        np.nan,
        5e-324,
        1e-310,
        1e308,
        710.0,
        -745.2,
        1e6 + 1,
        1e22,
    ]
)


def tensor(array):
    return taeda.from_numpy(np.array(array))


MEASURED = [r for r in all_records() if r.accuracy]
# Whose references have no value at huge numbers.
SMALL_ONLY = {"celu", "elu", "erfc", "gelu", "i0", "lgamma", "selu", "sinc"}


def check(record, x):
    with np.errstate(all="ignore"):
        expected = np.asarray(record.reference(x.astype("float64"))).astype(x.dtype)
    relative, absolute = record.accuracy[x.dtype.name]
    for operand, wanted in ((tensor(x), expected), (tensor(x[:, None].repeat(3, 1))[:, 1], expected)):
        np.testing.assert_allclose(function_of(record)(operand).numpy(), wanted, relative, absolute)


@pytest.mark.parametrize("record", MEASURED, ids=lambda r: r.name)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_accuracy(record, dtype):
    rng = np.random.default_rng(11)
    low, high, anywhere = record.domains[0] if record.domains else (-9, 9, True)
    drawn = rng.normal(size=5000) * 4 if anywhere else rng.uniform(low, high, 5000)
    check(record, np.concatenate([drawn, np.linspace(max(low, -9), min(high, 9), 400)]).astype(dtype))


@pytest.mark.parametrize(
    "record",
    [r for r in MEASURED if r.name not in SMALL_ONLY and (not r.domains or r.domains[0][2])],
    ids=lambda r: r.name,
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_values(record, dtype):
    with np.errstate(all="ignore"):
        x = SPECIAL.astype(dtype)
    check(record, x)


@pytest.mark.parametrize("name", ["exp", "tanh", "sin", "sigmoid", "erf"])
def test_result_does_not_depend_on_position_or_layout(name):
    x = (np.random.default_rng(1).normal(size=(37, 129)) * 5).astype("float32")
    whole = getattr(taeda, name)(tensor(x)).numpy()
    np.testing.assert_array_equal(getattr(taeda, name)(tensor(x)[:, ::7]).numpy(), whole[:, ::7])
    np.testing.assert_array_equal(getattr(taeda, name)(tensor(x).T).numpy(), whole.T)
    np.testing.assert_array_equal(getattr(taeda, name)(tensor(x)[3:4, 5:6]).numpy(), whole[3:4, 5:6])


def test_integers_become_floating():
    assert taeda.exp(taeda.tensor([0, 1])).dtype == taeda.float32
    assert taeda.floor(taeda.tensor([1, 2])).dtype == taeda.int64
    assert taeda.sqrt(taeda.tensor([True])).tolist() == [1.0]


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "round"])
def test_rounding(name):
    x = np.array([-2.5, -1.5, -0.5, -0.2, 0.0, 0.5, 1.5, 2.5, np.inf, np.nan])
    np.testing.assert_array_equal(getattr(taeda, name)(tensor(x)).numpy(), getattr(np, name)(x))
    np.testing.assert_allclose(
        taeda.round(tensor(np.array([1.2345, -6.789])), decimals=2).numpy(), [1.23, -6.79]
    )
    np.testing.assert_allclose(taeda.frac(tensor(x[:8])).numpy(), x[:8] - np.trunc(x[:8]))


def test_inverse_functions():
    x = np.linspace(-0.999, 0.999, 101)
    erf = np.vectorize(math.erf)
    np.testing.assert_allclose(erf(taeda.erfinv(tensor(x)).numpy()), x, atol=1e-15)
    ends = np.concatenate(
        [10.0 ** -np.arange(1, 300, 7), 1 - 10.0 ** -np.arange(1, 16), [0.85, np.nextafter(0.85, 1)]]
    )
    np.testing.assert_allclose(taeda.erfinv(tensor(ends)).numpy(), special.erfinv(ends), rtol=1e-14)
    np.testing.assert_array_equal(taeda.erfinv(tensor(-ends)).numpy(), -taeda.erfinv(tensor(ends)).numpy())
    np.testing.assert_allclose(taeda.logit(taeda.sigmoid(tensor(x))).numpy(), x, atol=1e-14)
    assert taeda.erfinv(taeda.tensor([1.0, -1.0])).tolist() == [math.inf, -math.inf]
    assert math.isnan(taeda.erfinv(taeda.tensor([1.5])).item())


def test_lgamma_near_its_zeros_poles_and_far_away():
    rng = np.random.default_rng(3)
    parts = [
        rng.uniform(-40, 40, 4000),
        np.exp(rng.uniform(-80, 80, 1000)),
        -np.exp(rng.uniform(-80, 15, 1000)),
    ]
    parts += [at + rng.uniform(-1e-3, 1e-3, 1000) for at in (1, 2, -2.4570247, -2.7476826, -7.0)]
    x = np.concatenate(parts).astype(np.float32)
    expected = np.array([math.inf if v <= 0 and v == math.floor(v) else math.lgamma(v) for v in x.tolist()])
    found = taeda.lgamma(taeda.from_numpy(x)).numpy()
    assert np.array_equal(np.isinf(found), np.isinf(expected))
    kept = np.isfinite(expected)
    unit = np.spacing(np.abs(expected[kept]).astype(np.float32))
    assert (np.abs(found[kept].astype(np.float64) - expected[kept]) / unit).max() < 1.5
    special = taeda.lgamma(taeda.tensor([1.0, 2.0, 0.0, -3.0, math.inf, -math.inf, math.nan, -(2.0**24)]))
    inf = math.inf
    np.testing.assert_array_equal(special.numpy(), [0, 0, inf, inf, inf, inf, math.nan, inf])


def test_digamma_follows_its_recurrence():
    x = np.array([0.3, 1.0, 2.7, 15.0, -0.4])
    np.testing.assert_allclose(
        taeda.digamma(tensor(x + 1)).numpy(), taeda.digamma(tensor(x)).numpy() + 1 / x, rtol=1e-12
    )
    np.testing.assert_allclose(
        taeda.digamma(taeda.tensor(1.0, dtype=taeda.float64)).item(), -0.5772156649015329
    )


def test_complex_functions():
    rng = np.random.default_rng(2)
    z = rng.normal(size=20) + 1j * rng.normal(size=20)
    for name in ("exp", "log", "sin", "cos", "tan", "tanh", "sqrt", "sinh", "cosh"):
        np.testing.assert_allclose(getattr(taeda, name)(tensor(z)).numpy(), getattr(np, name)(z), rtol=1e-12)
    np.testing.assert_allclose(taeda.angle(tensor(z)).numpy(), np.angle(z))
    np.testing.assert_array_equal(taeda.conj(tensor(z)).numpy(), z.conj())
    np.testing.assert_array_equal(taeda.real(tensor(z)).numpy(), z.real)
    np.testing.assert_array_equal(taeda.imag(tensor(z)).numpy(), z.imag)
    with pytest.raises(RuntimeError, match="imag"):
        taeda.imag(taeda.ones(2))


def test_atan2():
    a, b = np.meshgrid([0.0, -0.0, 1.0, -1.0, np.inf], [0.0, -0.0, 1.0, -1.0, -np.inf])
    np.testing.assert_allclose(taeda.atan2(tensor(a), tensor(b)).numpy(), np.arctan2(a, b))


@pytest.mark.parametrize("function", [taeda.sign, taeda.sgn])
@pytest.mark.parametrize("dtype", [taeda.float64, taeda.float32, taeda.bfloat16, taeda.float16])
def test_nan_has_no_sign(function, dtype):
    x = tensor(np.array([np.nan, -2.0, 0.0, np.inf] * 9)).to(dtype)
    assert function(x).tolist() == [0.0, -1.0, 0.0, 1.0] * 9
    assert taeda.isnan(taeda.array_api.sign(taeda.array_api.asarray(x))[::4]).all()  # as the standard asks


def test_nan_to_num():
    x = tensor(np.array([np.nan, np.inf, -np.inf, 1.0]))
    assert taeda.nan_to_num(x, nan=5.0, posinf=6.0, neginf=7.0).tolist() == [5.0, 6.0, 7.0, 1.0]
    assert taeda.nan_to_num(x).tolist() == np.nan_to_num(x.numpy()).tolist()
    assert taeda.isfinite(taeda.nan_to_num(x.to(taeda.float16))).all().item()


def test_unsupported_dtype_is_named():
    with pytest.raises(RuntimeError, match=r"erf.*complex64"):
        taeda.erf(taeda.ones(2, dtype=taeda.complex64))


def test_complex_powers_of_two_at_the_ends():
    """The real factor must not meet an infinite part as a complex number would."""
    ends = taeda.tensor([0j, complex(-np.inf, 0)], dtype=taeda.complex128)
    assert str(taeda.log2(ends)[:1].numpy()[0]) == str(np.complex128(complex(-np.inf, 0)))
    assert taeda.exp2(ends).tolist() == [1, 0]
