"""Comparison, logic, bits and choice against NumPy."""

import math

import numpy as np
import pytest

import taeda_tensor_core as taeda

INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan])


def tensor(array):
    return taeda.from_numpy(np.array(array))


def same(result, expected):
    np.testing.assert_array_equal(result.numpy(), expected)
    assert result.numpy().dtype == np.asarray(expected).dtype


COMPARISONS = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("dtype", ["bool", "float32", "float64", *INTS])
def test_comparisons(name, dtype):
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 3, (9, 70)).astype(dtype), rng.integers(0, 3, (9, 70)).astype(dtype)
    same(getattr(taeda, name)(tensor(a), tensor(b)), COMPARISONS[name](a, b))
    same(getattr(tensor(a).T, name)(tensor(b).T), COMPARISONS[name](a.T, b.T))
    same(getattr(tensor(a), name)(1), COMPARISONS[name](a, np.array(1, dtype)))


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_of_specials(name):
    a, b = np.meshgrid(SPECIAL, SPECIAL)
    same(getattr(taeda, name)(tensor(a), tensor(b)), COMPARISONS[name](a, b))


def test_predicates():
    x = tensor(SPECIAL)
    same(taeda.isnan(x), np.isnan(SPECIAL))
    same(taeda.isinf(x), np.isinf(SPECIAL))
    same(taeda.isfinite(x), np.isfinite(SPECIAL))
    same(taeda.isposinf(x), np.isposinf(SPECIAL))
    same(taeda.isneginf(x), np.isneginf(SPECIAL))
    same(taeda.signbit(x), np.signbit(SPECIAL))
    same(taeda.isnan(taeda.tensor([1, 2])), np.array([False, False]))


@pytest.mark.parametrize("dtype", ["bool", *INTS])
def test_bits(dtype):
    rng = np.random.default_rng(4)
    high = 2 if dtype == "bool" else np.iinfo(dtype).max
    a, b = (rng.integers(0, high, 40, dtype=dtype) for _ in range(2))
    same(tensor(a) & tensor(b), a & b)
    same(tensor(a) | tensor(b), a | b)
    same(tensor(a) ^ tensor(b), a ^ b)
    same(~tensor(a), ~a)
    with pytest.raises(RuntimeError):
        tensor(a) & taeda.ones(40)


def test_shifts():
    a = np.array([1, -8, 127], "int64")
    same(tensor(a) << 2, a << 2)
    same(tensor(a) >> 1, a >> 1)
    assert (taeda.tensor([1]) << 64).item() == 0


def test_logic_on_any_dtype():
    a, b = np.array([0.0, 2.0, np.nan]), np.array([1, 0, 3])
    same(taeda.logical_and(tensor(a), tensor(b)), np.logical_and(a, b))
    same(taeda.logical_or(tensor(a), tensor(b)), np.logical_or(a, b))
    same(taeda.logical_xor(tensor(a), tensor(b)), np.logical_xor(a, b))
    same(taeda.logical_not(tensor(a)), np.logical_not(a))


@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "float32", "float64", "complex128"])
def test_where(dtype):
    rng = np.random.default_rng(5)
    condition = rng.integers(0, 2, (5, 600)).astype(bool)
    a, b = rng.integers(0, 9, (5, 600)).astype(dtype), rng.integers(0, 9, (600,)).astype(dtype)
    same(taeda.where(tensor(condition), tensor(a), tensor(b)), np.where(condition, a, b))
    same(taeda.where(tensor(condition).T, tensor(a).T, tensor(a[0, 0])), np.where(condition.T, a.T, a[0, 0]))


def test_where_with_numbers_promotes():
    assert taeda.where(taeda.tensor([True, False]), 1.5, 0).tolist() == [1.5, 0.0]
    with pytest.raises(RuntimeError, match="condition"):
        taeda.where(taeda.tensor([1.0]), 1, 2)


def test_masked_fill():
    x = taeda.zeros(2, 3, dtype=taeda.int32)
    mask = taeda.tensor([True, False, True])
    assert x.masked_fill(mask, 7).tolist() == [[7, 0, 7], [7, 0, 7]]
    x.masked_fill_(mask, 1)
    assert x.sum().item() == 4 and x.dtype == taeda.int32
    for value in (2.5, taeda.tensor(2.5), taeda.tensor(2.5, dtype=taeda.float64)):
        assert x.masked_fill(mask, value).tolist() == [[2, 0, 2], [2, 0, 2]]
        assert x.clone().masked_fill_(mask, value).dtype == taeda.int32
    with pytest.raises(RuntimeError, match=r"masked_fill: argument 'value' is .* has an imaginary part"):
        x.masked_fill(mask, 1j)


def test_closeness():
    a, b = (
        taeda.tensor([1.0, float("nan"), float("inf")]),
        taeda.tensor([1.0 + 1e-6, float("nan"), float("inf")]),
    )
    assert taeda.isclose(a, b).tolist() == [True, False, True]
    assert taeda.allclose(a, b, equal_nan=True) is True
    assert taeda.allclose(a, b) is False
    assert taeda.equal(taeda.ones(2), taeda.ones(2)) is True
    assert taeda.equal(taeda.ones(2), taeda.ones(3)) is False


@pytest.mark.parametrize("dtype", [taeda.float16, taeda.bfloat16])
@pytest.mark.parametrize("value", [0.1, 0.3, 0.7, -1.7, 2049, 1e9, -math.inf])
def test_numbers_beside_sixteen_bits_are_compared_in_their_dtype(dtype, value):
    x = taeda.tensor([0.1, 0.3, 0.7, -1.7, 2048], dtype=dtype)
    fits = abs(value) <= taeda.finfo(dtype).max or math.isinf(value)
    number = taeda.tensor([value], dtype=dtype if fits else taeda.float32)
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        compare = getattr(taeda, name)
        assert compare(x, value).tolist() == compare(x.double(), number.double()).tolist()
        assert compare(value, x).tolist() == compare(number.double(), x.double()).tolist()
    assert (taeda.tensor(0.1, dtype=dtype) == 0.1).item()


@pytest.mark.parametrize("dtype", [taeda.float16, taeda.bfloat16])
@pytest.mark.parametrize("kind", [taeda.float32, taeda.float64, taeda.bfloat16])
def test_tensors_without_dimensions_are_compared_in_the_dtype_of_elements_of_sixteen_bits(dtype, kind):
    x, number = taeda.tensor([0.1, 0.3, 0.7], dtype=dtype), taeda.tensor(0.3, dtype=kind)
    rounded = number.to(dtype).double()
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        compare = getattr(taeda, name)
        assert compare(x, number).tolist() == compare(x.double(), rounded).tolist()
        assert compare(number, x).tolist() == compare(rounded, x.double()).tolist()
    assert (x[1] == taeda.tensor(0.3)).item() is False  # neither has dimensions: float32 is the common dtype
