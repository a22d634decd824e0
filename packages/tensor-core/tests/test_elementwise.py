"""Element-wise operators: an element's result is its own, whatever stands beside it and however it lies in memory."""

from __future__ import annotations

import numpy as np
import pytest

import taeda_tensor_core as taeda

SPECIAL = [
    0.0,
    -0.0,
    np.inf,
    -np.inf,
    np.nan,
    1e-310,
    1e-40,
    1e6 + 1,
    3e7,
    710.0,
    -750.0,
    1e200,
    -1e200,
    1e-200,
]
UNARY = [
    "abs",
    "acos",
    "acosh",
    "angle",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cos",
    "cosh",
    "erf",
    "exp",
    "exp2",
    "expm1",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "neg",
    "reciprocal",
    "rsqrt",
    "sgn",
    "sigmoid",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
]
REAL_ONLY = {"erf", "lgamma"}
BINARY = ["atan2", "copysign", "div", "floor_divide", "fmod", "hypot", "maximum", "pow", "remainder"]
# Complex numbers against NumPy: function, a region where neither loses digits.
COMPLEX = {
    **{
        name: (getattr(np, name), 3.0)
        for name in ("cos", "cosh", "exp", "exp2", "log2", "log10", "sin", "sinh")
    },
    **{name: (getattr(np, name), 3.0) for name in ("sqrt", "tan", "tanh", "reciprocal", "log")},
    "abs": (np.abs, 1e3),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1e3),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), 3.0),
    "sgn": (lambda x: x / np.abs(x), 1e3),
}


def numbers(dtype: str, count: int, seed: int) -> np.ndarray:
    """Random numbers of several sizes, with special ones here and there."""
    rng = np.random.default_rng(seed)

    def real() -> np.ndarray:
        x = rng.normal(size=count) * 10 ** rng.uniform(-2, 2, count)
        places = rng.choice(count, len(SPECIAL), replace=False)
        x[places] = SPECIAL
        return x

    with np.errstate(all="ignore"):
        return (real() + 1j * real() if dtype.startswith("complex") else real()).astype(dtype)


def check_equal(found: np.ndarray, expected: np.ndarray, said: object) -> None:
    """Bit for bit; of complex numbers, whose products may be rounded once less in vectors, to a few units."""
    if found.dtype.kind == "c":
        assert (np.abs(found - expected) <= 4 * np.finfo(found.dtype).eps * np.abs(expected)).all(), said
    else:
        np.testing.assert_array_equal(found, expected, err_msg=str(said))
        kept = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found[kept]), np.signbit(expected[kept]), err_msg=str(said))


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        (name, dtype)
        for name in UNARY
        for dtype in ("float32", "float64", "complex64", "complex128")
        if name not in REAL_ONLY or not dtype.startswith("complex")
    ],
)
def test_neighbours_and_layout_change_nothing(name: str, dtype: str) -> None:
    function = getattr(taeda, name)
    data = numbers(dtype, 333, seed=11)
    alone = np.concatenate([function(taeda.tensor(data[i : i + 1])).numpy() for i in range(len(data))])
    if alone.dtype.kind == "c":  # the next test compares special results
        kept = np.isfinite(alone)
        data, alone = data[kept], alone[kept]
    x = taeda.tensor(data)
    check_equal(function(x).numpy(), alone, (name, dtype, "contiguous"))
    spread = taeda.tensor(np.repeat(data, 3))[::3]
    check_equal(function(spread).numpy(), alone, (name, dtype, "strided"))
    for count in (2, 15, 16, 17, 127, 128, 129, 250):
        check_equal(function(x[:count]).numpy(), alone[:count], (name, dtype, count))
    if str(alone.dtype) == dtype and hasattr(x, name + "_"):
        getattr(spread, name + "_")()
        check_equal(spread.numpy(), alone, (name, dtype, "in place"))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", [name for name in UNARY if name not in REAL_ONLY])
def test_special_complex_numbers_among_others_are_those_alone(name: str, dtype: str) -> None:
    function = getattr(taeda, name)
    parts = [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan]
    special = np.array([complex(a, b) for a in parts for b in parts], dtype)
    mixed = np.full(len(special) * 5, 0.5 + 0.25j, dtype)
    mixed[::5] = special
    among = function(taeda.tensor(mixed)).numpy()[::5]
    alone = np.array([function(taeda.tensor(special[i : i + 1])).numpy()[0] for i in range(len(special))])
    for part in ("real", "imag"):
        found, expected = getattr(among, part), getattr(alone, part)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
        kept = ~np.isnan(expected)
        eps = np.finfo(found.dtype).eps
        np.testing.assert_allclose(found[kept], expected[kept], rtol=4 * eps)
        np.testing.assert_array_equal(np.signbit(found[kept]), np.signbit(expected[kept]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", BINARY)
def test_two_operands_in_any_layout(name: str, dtype: str) -> None:
    function = getattr(taeda, name)
    a, b = numbers(dtype, 301, seed=3), numbers(dtype, 301, seed=4)
    alone = np.array([function(taeda.tensor(a[i]), taeda.tensor(b[i])).item() for i in range(301)]).astype(
        dtype
    )
    x, y = taeda.tensor(a), taeda.tensor(b)
    check_equal(function(x, y).numpy(), alone, (name, dtype))
    check_equal(
        function(x.flip(0).flip(0), taeda.tensor(np.repeat(b, 2))[::2]).numpy(),
        alone,
        (name, dtype, "strided"),
    )
    one = np.array([function(x[i], y[5]).item() for i in range(301)]).astype(dtype)
    check_equal(function(x, y[5]).numpy(), one, (name, dtype, "number"))
    one = np.array([function(x[7], y[i]).item() for i in range(301)]).astype(dtype)
    check_equal(function(x[7], y).numpy(), one, (name, dtype, "number first"))


@pytest.mark.parametrize(("dtype", "ulps"), [("complex64", 4), ("complex128", 16)])
@pytest.mark.parametrize("name", COMPLEX)
def test_complex_functions_agree_with_numpy(name: str, dtype: str, ulps: int) -> None:
    reference, size = COMPLEX[name]
    rng = np.random.default_rng(5)
    data = (rng.uniform(-size, size, 5000) + 1j * rng.uniform(-size, size, 5000)).astype(dtype)
    expected = reference(data.astype(np.complex128))
    found = getattr(taeda, name)(taeda.tensor(data)).numpy()
    gap = np.abs(found - expected) / np.abs(expected)
    assert gap.max() <= ulps * np.finfo(dtype).eps, (gap.max(), data[gap.argmax()])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_quotients(dtype: str) -> None:
    rng = np.random.default_rng(6)

    def draw() -> np.ndarray:
        scale = 10 ** rng.uniform(-15, 15, 4000)
        return ((rng.normal(size=4000) + 1j * rng.normal(size=4000)) * scale).astype(dtype)

    a, b = draw(), draw()
    b[::7] = b[::7].real
    b[1::7] = 1j * b[1::7].imag
    expected = a.astype(np.clongdouble) / b.astype(np.clongdouble)
    found = (taeda.tensor(a) / taeda.tensor(b)).numpy()
    gap = np.abs(found - expected) / np.abs(expected)
    assert gap.max() <= 4 * np.finfo(dtype).eps
    with np.errstate(all="ignore"):
        zeros = (taeda.tensor(a[:9]) / taeda.tensor(np.zeros(9, dtype))).numpy()
    assert not np.isfinite(zeros).any()


def test_logic_takes_numbers_for_their_truth() -> None:
    values = np.array([0.0, -0.0, 2.0, np.nan, np.inf, -1.0])
    a, b = (x.ravel() for x in np.meshgrid(values, values))
    whole = np.nan_to_num(b, posinf=3, neginf=-3)
    for name in ("logical_and", "logical_or", "logical_xor"):
        expected = getattr(np, name)(a, b)
        np.testing.assert_array_equal(
            getattr(taeda, name)(taeda.tensor(a), taeda.tensor(b)).numpy(), expected
        )
        mixed = getattr(taeda, name)(taeda.tensor(a), taeda.tensor(whole.astype("int16")))
        np.testing.assert_array_equal(mixed.numpy(), getattr(np, name)(a, whole.astype("int16")))
    np.testing.assert_array_equal(taeda.logical_not(taeda.tensor(a)).numpy(), np.logical_not(a))


@pytest.mark.parametrize(
    "dtype", ["float16", "int8", "uint16", "float32", "int64", "complex64", "complex128"]
)
def test_choices_keep_every_bit(dtype: str) -> None:
    rng = np.random.default_rng(8)
    size = np.dtype(dtype).itemsize
    a, b = (np.frombuffer(rng.bytes(77 * size), dtype).copy() for _ in range(2))
    condition = rng.integers(0, 2, 77).astype(bool)
    chosen = taeda.where(taeda.tensor(condition), taeda.tensor(a), taeda.tensor(b)).numpy()
    expected = np.where(np.repeat(condition, size), a.view(np.uint8), b.view(np.uint8))
    np.testing.assert_array_equal(chosen.view(np.uint8), expected)
