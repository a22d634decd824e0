"""Arithmetic against NumPy: dtypes, layouts, broadcasting, promotion, errors."""

import re

import numpy as np
import pytest

import taeda_tensor_core as taeda

FLOATS = ["float32", "float64"]
INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
COMPLEX = ["complex64", "complex128"]
SEED = 20


def sample(dtype, shape, seed=SEED, low=-9):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in INTS:
        return rng.integers(0 if dtype.startswith("u") else low, 9, shape).astype(dtype)
    values = rng.normal(size=shape) * 3
    if dtype in COMPLEX:
        values = values + 1j * rng.normal(size=shape)
    return values.astype(dtype)


def tensor(array):
    return taeda.from_numpy(np.array(array))


def close(result, expected, dtype=None):
    tolerance = {"float32": 1e-5, "complex64": 1e-5}.get(str(np.asarray(expected).dtype), 1e-12)
    np.testing.assert_allclose(result.numpy(), expected, rtol=tolerance, atol=tolerance)
    if dtype is not None:
        assert str(result.dtype).split(".")[-1] == dtype


BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
}


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("dtype", INTS + FLOATS)
@pytest.mark.parametrize(
    "layout", ["plain", "transposed", "reversed", "sliced", "row", "column", "zero_dim", "empty"]
)
def test_binary_matches_numpy(name, dtype, layout):
    a, b = sample(dtype, (6, 8)), sample(dtype, (6, 8), seed=SEED + 1)
    x, y = tensor(a), tensor(b)
    if layout == "transposed":
        a, b, x, y = a.T, b.T.copy(), x.T, tensor(b.T)
    elif layout == "reversed":
        a, x = a[::-1, ::-1], x[::-1, ::-1]
    elif layout == "sliced":
        a, b, x, y = a[1:, ::3], b[1:, ::3], x[1:, ::3], y[1:, ::3]
    elif layout == "row":
        b, y = b[0], y[0]
    elif layout == "column":
        b, y = b[:, :1], y[:, :1]
    elif layout == "zero_dim":
        a, b, x, y = a[0, 0], b[0, 0], x[0, 0], y[0, 0]
    elif layout == "empty":
        a, b, x, y = a[:0], b[:0], x[:0], y[:0]
    with np.errstate(over="ignore"):
        close(getattr(taeda, name)(x, y), BINARY[name](a, b), dtype)


@pytest.mark.parametrize("count", [1, 3, 511, 512, 513, 40_000, 200_001])
@pytest.mark.parametrize(
    "pair", [("float32", "float32"), ("float32", "int16"), ("uint8", "int64"), ("float64", "float32")]
)
def test_sizes_cross_every_path(count, pair):
    a, b = sample(pair[0], count), sample(pair[1], count, seed=SEED + 1)
    expected = (a + b).astype("float32" if pair == ("float32", "int16") else (a + b).dtype)
    close(tensor(a) + tensor(b), expected)
    close(tensor(a)[::-1] + tensor(b), (a[::-1] + b).astype(expected.dtype))


def test_promotion_by_category():
    ints = taeda.ones(3, dtype=taeda.int32)
    assert (ints + 1).dtype == taeda.int32
    assert (ints + 1.5).dtype == taeda.float32
    assert (ints / 2).dtype == taeda.float32
    assert (ints + taeda.tensor(1, dtype=taeda.int64)).dtype == taeda.int32
    assert (taeda.ones(3, dtype=taeda.float16) + taeda.ones(3, dtype=taeda.bfloat16)).dtype == taeda.float32
    assert (taeda.ones(3) + 1j).dtype == taeda.complex64
    assert (taeda.ones(3, dtype=taeda.uint8) + taeda.ones(3, dtype=taeda.int8)).dtype == taeda.int16


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_computes_in_float32(dtype):
    x = taeda.tensor([1.0, 2.5, -3.0, 1e-3]).to(getattr(taeda, dtype))
    result = x * x + x
    assert result.dtype == x.dtype
    wide = x.to(taeda.float32)
    step = wide * wide
    expected = (step.to(x.dtype).to(taeda.float32) + wide).to(x.dtype).to(taeda.float32)
    np.testing.assert_array_equal(result.to(taeda.float32).numpy(), expected.numpy())


@pytest.mark.parametrize("dtype", INTS + FLOATS)
def test_division_family(dtype):
    a, b = sample(dtype, (50,)), sample(dtype, (50,), seed=5)
    b = np.where(b == 0, np.ones_like(b), b)
    x, y = tensor(a), tensor(b)
    close(x // y, np.floor_divide(a, b), dtype)
    close(x % y, np.remainder(a, b), dtype)
    close(x[::3] // y[::3], np.floor_divide(a, b)[::3], dtype)
    close(x[:7] % y[1:8], np.remainder(a[:7], b[1:8]), dtype)
    close(taeda.fmod(x, y), np.fmod(a, b), dtype)
    close(taeda.div(x, y, rounding_mode="trunc"), np.trunc(a.astype("float64") / b).astype(dtype), dtype)
    quotient = taeda.div(x, y)
    close(quotient, (a.astype("float64") / b).astype("float32" if dtype in INTS else dtype))


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
def test_integer_division_by_zero_is_an_error(name):
    with pytest.raises(ZeroDivisionError, match=name):
        getattr(taeda, name)(taeda.tensor([1, 2, 3]), taeda.tensor([1, 0, 2]))
    lowest = taeda.tensor([-128], dtype=taeda.int8)
    assert taeda.remainder(lowest, -1).item() == 0


@pytest.mark.parametrize("dtype", FLOATS)
def test_powers(dtype):
    a = np.abs(sample(dtype, (60,))) + 0.1
    x = tensor(a)
    for exponent in (0, 1, 2, 3, -1, 0.5, -0.5, 2.5, -1.75):
        close(x**exponent, a**exponent)
    close(2.0**x, 2.0**a)
    close(taeda.pow(x, tensor(a)), np.power(a, a))
    assert taeda.isnan(taeda.tensor([-2.0], dtype=x.dtype) ** 0.5).item()
    close(taeda.tensor([-2.0, 2.0], dtype=x.dtype) ** 3, np.array([-8.0, 8.0], dtype))


def test_integer_powers():
    a = np.arange(-4, 5)
    close(tensor(a) ** 3, a**3, "int64")
    with pytest.raises(RuntimeError, match="negative"):
        taeda.tensor([2]) ** -1


def test_in_place_keeps_identity_and_refuses_lower_categories():
    x = taeda.ones(3)
    y = x
    x += 2
    assert y is x and y.tolist() == [3.0, 3.0, 3.0]
    ints = taeda.ones(3, dtype=taeda.int64)
    with pytest.raises(RuntimeError):
        ints += 0.5
    assert ints.tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError):
        taeda.ones(2).add_(taeda.ones(3, 2))


def test_alpha_and_ternaries():
    a, b, c = (sample("float64", (4, 5), seed=s) for s in (1, 2, 3))
    x, y, z = tensor(a), tensor(b), tensor(c)
    close(taeda.add(x, y, alpha=2.5), a + 2.5 * b)
    close(taeda.sub(x, y, alpha=2), a - 2 * b)
    close(taeda.rsub(x, y), b - a)
    close(taeda.addcmul(x, y, z, value=0.5), a + 0.5 * b * c)
    close(taeda.addcdiv(x, y, z, value=0.5), a + 0.5 * b / c)
    close(taeda.lerp(x, y, 0.25), a + 0.25 * (b - a))
    with pytest.raises(RuntimeError, match="alpha"):
        taeda.add(taeda.tensor([1]), 1, alpha=0.5)


def test_clamp_promotes_all_operands_at_once():
    one = {
        name: taeda.ones(3, dtype=getattr(taeda, name)) for name in ("bool", "int32", "float32", "float64")
    }
    for name in ("bool", "int32"):
        x = one[name]
        assert taeda.clamp(x, one["float64"][0], one["float32"]).dtype is taeda.float32
        assert taeda.clamp(x, one["float32"], one["float64"][0]).dtype is taeda.float32
        assert taeda.clamp(x, one["float32"][0], one["float64"][0]).dtype is taeda.float64
        assert taeda.clamp(x, one["float32"], one["float64"]).dtype is taeda.float64
    assert taeda.clamp(one["float32"], one["float64"][0], one["float64"][0]).dtype is taeda.float32


def test_clamp():
    a = np.array([-2.0, -0.5, np.nan, 0.5, 2.0])
    close(tensor(a).clamp(-1, 1), np.clip(a, -1, 1))
    close(tensor(a).clamp(min=0), np.clip(a, 0, None))
    close(taeda.clip(tensor(a), max=0), np.clip(a, None, 0))
    close(taeda.clamp(tensor(a), tensor(np.full(5, -1.0)), tensor(np.full(5, 0.0))), np.clip(a, -1, 0))
    assert taeda.tensor([0, 200], dtype=taeda.uint8).clamp(-5, 100).tolist() == [0, 100]
    with pytest.raises(RuntimeError, match="min"):
        taeda.ones(2).clamp()


def test_specials():
    a = np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan])
    x = tensor(a)
    with np.errstate(all="ignore"):
        close(taeda.sqrt(x), np.sqrt(a))
        close(taeda.abs(x), np.abs(a))
        close(taeda.square(x), np.square(a))
        close(taeda.fmax(x, taeda.ones(())), np.fmax(a, 1))
        close(taeda.hypot(x, tensor(np.ones(7))), np.hypot(a, 1))
        close(taeda.logaddexp(x, tensor(np.ones(7))), np.logaddexp(a, 1))
        close(taeda.copysign(taeda.ones(7, dtype=taeda.float64), x), np.copysign(1, a))
    np.testing.assert_array_equal(np.signbit((-x).numpy()), ~np.signbit(a))
    close(taeda.gcd(taeda.tensor([12, -18]), taeda.tensor([8, 27])), np.gcd([12, -18], [8, 27]))
    close(taeda.lcm(taeda.tensor([4, 6]), taeda.tensor([10, -4])), np.lcm([4, 6], [10, -4]))


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex(dtype):
    a, b = sample(dtype, (7, 3)), sample(dtype, (7, 3), seed=9)
    x, y = tensor(a), tensor(b)
    close(x * y, a * b, dtype)
    close(x / y, a / b, dtype)
    close(abs(x), np.abs(a))
    close(taeda.sqrt(x), np.sqrt(a), dtype)
    with pytest.raises(RuntimeError):
        taeda.maximum(x, y)


def test_errors_name_operator_and_shapes():
    with pytest.raises(RuntimeError, match=r"add.*\(2, 3\).*\(4,\)"):
        taeda.ones(2, 3) + taeda.ones(4)
    with pytest.raises(RuntimeError, match="neg"):
        -taeda.tensor([True])
    with pytest.raises(RuntimeError, match="sub"):
        taeda.tensor([True]) - taeda.tensor([False])


@pytest.mark.parametrize("shape", [(2, 6, 3, 4), (2, 6, 3, 4, 2)])
def test_parts_of_channels_last_tensors_stay_channels_last(shape):
    """Results close the gaps between the parts and keep the order, as with any other order of the dimensions."""
    form = "channels_last" if len(shape) == 4 else "channels_last_3d"
    format_of = getattr(taeda, form)
    x = taeda.randn(shape).contiguous(memory_format=format_of)
    first, second = x.chunk(2, 1)
    assert not first.is_contiguous(memory_format=format_of)
    for result in (
        first + second, first * 2, first.exp(), first == second, first.clone(), first.double(), x[:, :, ::2] + 1,
        taeda.where(first > 0, first, second), taeda.empty_like(first), taeda.zeros_like(x[:, ::2]),
        x[:, :, 1:].clone(),
    ):  # fmt: skip
        assert result.is_contiguous(memory_format=format_of) and not result.is_contiguous()
    rows = x.contiguous().chunk(2, 1)
    np.testing.assert_array_equal((first + second).numpy(), (rows[0] + rows[1]).numpy())
    assert (rows[0] + rows[1]).is_contiguous()
    assert (x.contiguous().transpose(1, 2)[:, :, ::2] + 1).transpose(1, 2).is_contiguous()
    assert (first[:, :1] + 1).is_contiguous()


def test_channels_last_travels():
    x = taeda.ones(2, 3, 4, 5).contiguous(memory_format=taeda.channels_last)
    result = (x * 2 + taeda.ones(1, 3, 1, 1)).relu()
    assert result.stride() == x.stride()
    assert result.sum().item() == 2 * 3 * 4 * 5 * 3


def test_out():
    out = taeda.empty(0)
    result = taeda.add(taeda.ones(3), 1, out=out)
    assert result is out and out.tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("limit", [100, 2**49, 2**50, 2**51, 2**63 - 1])
def test_whole_quotients_on_both_sides_of_what_float64_holds(limit):
    rng = np.random.default_rng(SEED)
    a, b = rng.integers(-limit, limit, (2, 4000))
    b[b == 0] = 3
    a[:4], b[:4] = [-(2**63), 2**63 - 1, 1 - limit, 0], [-1, -1, limit, -3]
    x, y = taeda.from_numpy(a), taeda.from_numpy(b)
    with np.errstate(over="ignore"):
        assert np.array_equal((x // y).numpy(), a // b)
        assert np.array_equal((x % y).numpy(), a % b)
        assert np.array_equal(taeda.fmod(x, y).numpy(), np.fmod(a, b))


def test_float64_powers_of_whole_numbers_are_exact():
    base, exponent = (grid.copy() for grid in np.meshgrid(np.arange(-99.0, 100.0), np.arange(0.0, 8.0)))
    exact = [
        [float(int(x) ** int(n)) for x, n in zip(*rows, strict=True)]
        for rows in zip(base, exponent, strict=True)
    ]
    assert np.array_equal(taeda.pow(taeda.from_numpy(base), taeda.from_numpy(exponent)).numpy(), exact)


@pytest.mark.parametrize("other", [1, 1.5, True, taeda.tensor([2, 3]), taeda.tensor([True, False])])
def test_differences_of_bools_are_refused_in_the_words_that_programs_look_for(other):
    mask = taeda.tensor([True, False])
    two = other is True or (isinstance(other, taeda.Tensor) and other.dtype is taeda.bool)
    words = (
        "with two bool tensors is not supported. Use the `^`"
        if two
        else "with a bool tensor is not supported"
    )
    for difference in (lambda: other - mask, lambda: mask - other, lambda: taeda.rsub(mask, other)):
        with pytest.raises(RuntimeError, match=re.escape(words)):
            difference()
    with pytest.raises(RuntimeError, match="Negation, the `-` operator, on a bool tensor"):
        _ = -mask
    with pytest.raises(RuntimeError, match="with two bool tensors"):
        mask -= mask.clone()


@pytest.mark.parametrize("other", ["float64", "float16", "int64", "complex64"])
def test_lerp_is_of_one_dtype(other):
    x, y = taeda.ones(3), taeda.ones(3, dtype=getattr(taeda, other))
    for call in (lambda: x.lerp(y, 0.5), lambda: x.lerp_(y, 0.5), lambda: x.lerp(y[0], 0.5)):
        with pytest.raises(RuntimeError, match=f"lerp.*'end' has dtype {other}, expected float32"):
            call()
    with pytest.raises(RuntimeError, match=f"lerp.*'weight' has dtype {other}, expected float32"):
        x.lerp(x, y)


def test_lerp_takes_a_weight_without_dimensions_of_another_dtype():
    x, y = taeda.tensor([1.0, 2.0]), taeda.tensor([3.0, 6.0])
    got = x.lerp(y, taeda.tensor(0.25, dtype=taeda.float64))
    assert got.dtype is taeda.float32 and got.tolist() == [1.5, 3.0]
