"""Special functions: a few units in the last place of values computed with 40 digits (mpmath), and of SciPy's."""

import math

import numpy as np
import pytest
from scipy import special

import taeda_tensor_core as t

# Arguments and values.
ONE = {
    "special.airy_ai": [
        (-30.5, -0.004333637288742865),
        (-3.25, -0.4190132668052308),
        (-1.5, 0.4642565777488694),
        (0.0, 0.3550280538878172),
        (0.75, 0.17933630547864524),
        (1.0, 0.13529241631288141),
        (2.5, 0.01572592338047049),
        (12.0, 1.3931846888753607e-13),
        (60.0, 2.7831487094969354e-136),
    ],
    "special.bessel_j0": [
        (0.0, 1.0),
        (0.5, 0.9384698072408129),
        (3.0, -0.26005195490193345),
        (17.25, -0.14061184950308583),
        (-40.5, -0.05358267563226295),
    ],
    "special.bessel_j1": [
        (0.0, 0.0),
        (0.5, 0.2422684576748739),
        (3.0, 0.3390589585259365),
        (17.25, -0.13496424275615052),
        (-40.5, -0.11269052994059431),
    ],
    "special.bessel_y0": [
        (0.25, -0.9315730249300587),
        (2.0, 0.5103756726497451),
        (17.25, -0.13083724626447651),
        (40.5, 0.11334331437420168),
    ],
    "special.bessel_y1": [
        (0.25, -2.7041052293152825),
        (3.0, 0.3246744247918),
        (17.25, 0.13688138127709584),
        (40.5, 0.05498584250054305),
    ],
    "special.erfcx": [
        (-20.5, 6.50557990548002e182),
        (-1.0, 5.008980080762283),
        (0.0, 1.0),
        (0.7, 0.525930337349441),
        (5.3, 0.10464919566077328),
        (24.9, 0.022639987776049506),
        (25.1, 0.02245987581758139),
        (10000.0, 5.641895807268084e-05),
    ],
    "special.log_ndtr": [
        (-50.0, -1254.8313611394199),
        (-8.3, -37.49421742374825),
        (-1.0, -1.8410216450092636),
        (-0.3, -0.9621028181688507),
        (0.4, -0.42247637022777607),
        (3.0, -0.0013508099647481938),
        (9.0, -1.1285884059538405e-19),
    ],
    "special.ndtr": [
        (-37.0, 5.725571222524577e-300),
        (-12.6, 1.0557225580886476e-36),
        (-2.0, 0.02275013194817921),
        (-0.3, 0.3820885778110474),
        (0.4, 0.6554217416103242),
        (3.0, 0.9986501019683699),
    ],
    "special.modified_bessel_k0": [
        (0.01, 4.721244730161095),
        (0.9, 0.4867303081629005),
        (1.1, 0.36560239154318586),
        (8.0, 0.0001464707052228154),
        (300.5, 2.2566568930326207e-132),
    ],
    "special.modified_bessel_k1": [
        (0.01, 99.97389411829624),
        (0.9, 0.7165335787760191),
        (1.1, 0.509760027167027),
        (8.0, 0.00015536921180500115),
        (300.5, 2.2604086163105544e-132),
    ],
    "special.scaled_modified_bessel_k0": [
        (0.01, 4.768694028544462),
        (1.1, 1.0983302829475998),
        (300.5, 0.07226988189033148),
        (100000.0, 0.003963322343474756),
    ],
    "special.scaled_modified_bessel_k1": [
        (0.01, 100.97864845824004),
        (1.1, 1.5314037539811933),
        (300.5, 0.07239003156794468),
        (100000.0, 0.003963342160036932),
    ],
    "special.ndtri": [
        (1e-200, -30.20559417957964),
        (1e-09, -5.9978070150076865),
        (0.03, -1.8807936081512509),
        (0.4, -0.2533471031357997),
        (0.75, 0.6744897501960817),
        (0.999, 3.090232306167813),
    ],
}
TWO = {
    "special.gammainc": [
        (0.25, 0.125, 0.6401572060830841),
        (3.0, 2.0, 0.32332358381693654),
        (2.0, 9.0, 0.9987659019591332),
        (30.0, 28.0, 0.3773896943143976),
        (150.0, 170.0, 0.9443655686898067),
        (10000.0, 10100.0, 0.8413487504471796),
    ],
    "special.gammaincc": [
        (0.015625, 0.5, 0.00881687717555247),
        (0.25, 0.125, 0.35984279391691587),
        (3.0, 2.0, 0.6766764161830635),
        (2.0, 9.0, 0.0012340980408667955),
        (30.0, 28.0, 0.6226103056856024),
        (150.0, 170.0, 0.05563443131019329),
        (10000.0, 10100.0, 0.15865124955282037),
    ],
    "special.zeta": [
        (1.0625, 1.0, 16.58174764665502),
        (2.0, 1.0, 1.6449340668482264),
        (9.5, 10.25, 4.456111060010534e-10),
        (20.0, 10.0, 1.181604775825168e-20),
        (3.0, 100.0, 5.0502499916675e-05),
    ],
    "special.polygamma": [
        (1, 0.25, 17.19732915450711),
        (2, 3.5, -0.1082040516417274),
        (9, 10.25, 4.8717780925279786e-05),
    ],
}


def value(name, *arguments, dtype=t.float64):
    function = getattr(t.special, name.partition(".")[2])
    return function(*(t.tensor(a, dtype=dtype) if isinstance(a, float) else a for a in arguments)).item()


def ulps(found, exact):
    return abs(found - exact) / math.ulp(exact)


@pytest.mark.parametrize(("name", "cases"), [*ONE.items(), *TWO.items()])
def test_values(name, cases):
    for *arguments, exact in cases:
        assert ulps(value(name, *arguments), exact) <= 2, (name, arguments)


@pytest.mark.parametrize("name", ONE)
def test_float32_is_right_to_little_more_than_half_a_unit(name):
    """float32 numbers are computed in float64, some by shorter series."""
    x = np.linspace(0.05, 0.95, 500).astype(np.float32)
    function = getattr(t.special, name.partition(".")[2])
    exact = function(t.from_numpy(x.astype(np.float64))).numpy()
    unit = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)
    assert (np.abs(function(t.from_numpy(x)).numpy() - exact) < 0.6 * unit).all()


SPECIAL = (0.0, -0.0, math.inf, -math.inf, math.nan, -1.0)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("airy_ai", (0.3550280538878172, 0.3550280538878172, 0, 0, math.nan, 0.5355608832923521)),
        ("entr", (0, 0, -math.inf, -math.inf, math.nan, -math.inf)),
        ("erfcx", (1, 1, 0, math.inf, math.nan, 5.00898008076228)),
        ("log_ndtr", (math.log(0.5), math.log(0.5), 0, -math.inf, math.nan, -1.8410216450092636)),
        ("modified_bessel_k0", (math.inf, math.inf, 0, math.nan, math.nan, math.nan)),
        ("modified_bessel_k1", (math.inf, math.inf, 0, math.nan, math.nan, math.nan)),
        ("ndtr", (0.5, 0.5, 1, 0, math.nan, 0.15865525393145707)),
        ("ndtri", (-math.inf, -math.inf, math.nan, math.nan, math.nan, math.nan)),
        ("spherical_bessel_j0", (1, 1, 0, 0, math.nan, math.sin(1))),
    ],
)
def test_special_values(name, values):
    found = getattr(t.special, name)(t.tensor(SPECIAL, dtype=t.float64))
    np.testing.assert_allclose(found.numpy(), values, rtol=1e-14)


def test_zeta_and_polygamma_far_below_zero():
    """As many steps as far above it: the sum over negative places is a mirror image."""
    x = t.tensor([-0.5, -7.25, -1e6 - 0.25], dtype=t.float64)
    for n in (1, 2, 3):
        np.testing.assert_allclose(
            t.polygamma(n, x).numpy(), special.polygamma(n, 1 - x.numpy()) * (-1) ** n + turned(n, x.numpy()), rtol=1e-8
        )  # fmt: skip
    assert t.special.zeta(t.tensor(2.0), t.tensor(-3.0)).item() == math.inf
    assert math.isnan(t.special.zeta(t.tensor(2.5), t.tensor(-3.5)).item())
    assert math.isnan(t.special.zeta(t.tensor(0.5), t.tensor(2.0)).item())


def turned(n, x):
    """The reflection formula's other side: pi times derivative n of cot(pi x), but for its sign."""
    c, s = 1 / np.tan(np.pi * x), 1 / np.sin(np.pi * x) ** 2
    derivatives = {1: s, 2: -2 * c * s, 3: 4 * c * c * s + 2 * s * s}
    return np.pi ** (n + 1) * derivatives[n]


def test_polynomials_of_odd_degrees():
    """Negative, cut and unknown degrees, and high ones inside (-1, 1), which take no recurrence."""
    x = t.tensor(0.5, dtype=t.float64)
    assert t.special.chebyshev_polynomial_t(x, -3).item() == 0
    assert t.special.legendre_polynomial_p(x, 2.75).item() == t.special.legendre_polynomial_p(x, 2).item()
    assert math.isnan(t.special.hermite_polynomial_h(x, math.nan).item())
    assert t.special.chebyshev_polynomial_t(x, 3e9).item() == pytest.approx(1, abs=1e-5)
    assert t.special.hermite_polynomial_he(2, t.tensor([0, 1, 2, 3])).tolist() == [1, 2, 3, 2]


def test_incomplete_gamma_in_place():
    """The first argument has no derivative, so that records leave these forms out."""
    a, x = t.tensor([0.5, 2.0]), t.tensor([1.0, 3.0])
    for name in ("igamma", "igammac"):
        changed = a.clone()
        assert getattr(changed, f"{name}_")(x) is changed
        assert changed.tolist() == getattr(t, name)(a, x).tolist()


def test_every_public_name():
    names = """
        airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 chebyshev_polynomial_t
        chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w digamma entr erf erfc
        erfcx erfinv exp2 expit expm1 gammainc gammaincc gammaln hermite_polynomial_h
        hermite_polynomial_he i0 i0e i1 i1e laguerre_polynomial_l legendre_polynomial_p log1p
        log_ndtr log_softmax logit logsumexp modified_bessel_i0 modified_bessel_i1
        modified_bessel_k0 modified_bessel_k1 multigammaln ndtr ndtri polygamma psi round
        shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v
        shifted_chebyshev_polynomial_w scaled_modified_bessel_k0 scaled_modified_bessel_k1 sinc
        softmax spherical_bessel_j0 xlog1py xlogy zeta
    """
    assert [name for name in names.split() if not callable(getattr(t.special, name, None))] == []
