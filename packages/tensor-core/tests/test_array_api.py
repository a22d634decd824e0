"""The array API namespace: names, promotion, operators, and where it differs from tensors; NumPy is the reference.

The public suite of the standard goes much further: `python -m nox -s array_api`.
"""

import operator
import re

import numpy as np
import pytest

import taeda_tensor_core as core
from taeda_tensor_core import array_api as xp

SEED = 7
DTYPES = [*xp.__array_namespace_info__().dtypes()]
OPERATORS = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
    "floordiv": operator.floordiv, "mod": operator.mod, "pow": operator.pow, "and": operator.and_,
    "or": operator.or_, "xor": operator.xor, "lt": operator.lt, "eq": operator.eq,
}  # fmt: skip


def name_of(dtype):
    return str(dtype).rpartition(".")[2]


def refuses(one, other):
    """Whether the standard leaves a pair of dtypes undefined, where NumPy converts."""
    kinds = [np.dtype(name).kind for name in (one, other)]
    mixed = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 2}
    if mixed[kinds[0]] != mixed[kinds[1]]:
        return True
    return {one, other} & {"uint64"} and "i" in kinds


@pytest.mark.parametrize("one", DTYPES)
@pytest.mark.parametrize("other", DTYPES)
def test_promotion(one, other):
    first, second = getattr(xp, one), getattr(xp, other)
    if refuses(one, other):
        with pytest.raises(TypeError, match="do not promote"):
            xp.result_type(first, second)
        with pytest.raises(TypeError, match=r"add: dtypes .* do not promote"):
            xp.add(xp.ones(1, dtype=first), xp.ones(1, dtype=second))
        return
    expected = np.result_type(np.dtype(one), np.dtype(other)).name
    assert name_of(xp.result_type(first, second)) == expected
    # An array of no dimensions counts like any other.
    assert name_of(xp.equal(xp.ones((), dtype=first), xp.ones(2, dtype=second)).dtype) == "bool"
    if one != "bool":
        assert name_of((xp.ones((), dtype=first) + xp.ones(2, dtype=second)).dtype) == expected


@pytest.mark.parametrize(
    ("dtype", "number", "expected"),
    [
        ("int8", 3, "int8"), ("uint64", 3, "uint64"), ("float32", 3, "float32"), ("float32", 1.5, "float32"),
        ("float64", 1j, "complex128"), ("float32", 1j, "complex64"), ("complex64", 2, "complex64"),
        ("int8", 1.5, TypeError), ("int8", True, TypeError), ("float32", True, TypeError), ("bool", 1, TypeError),
        ("int8", 200, OverflowError), ("uint8", -1, OverflowError), ("int64", 1j, TypeError),
    ],
)  # fmt: skip
def test_python_numbers(dtype, number, expected):
    array = xp.ones(2, dtype=getattr(xp, dtype))
    if isinstance(expected, str):
        assert name_of((array + number).dtype) == name_of((number + array).dtype) == expected
        return
    for call in (lambda: array + number, lambda: number * array, lambda: xp.add(array, number)):
        with pytest.raises(expected):
            call()


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("dtype", ["int32", "uint16", "float32", "bool"])
def test_operators_are_those_of_numpy(name, dtype):
    function = OPERATORS[name]
    random = np.random.default_rng(SEED)
    a, b = (random.integers(0 if dtype[0] in "ub" else -4, 9, (3, 4)).astype(dtype) for _ in range(2))
    b[b == 0] = 1
    if name == "pow" and dtype == "int32":
        b = abs(b)
    bits = name in ("and", "or", "xor")
    wrong = (bits and dtype == "float32") or (not bits and dtype == "bool" and name != "eq") or (
        name == "truediv" and dtype in ("int32", "uint16")
    )  # fmt: skip
    x, y = xp.asarray(a), xp.asarray(b)
    if wrong:
        with pytest.raises(TypeError, match="expected"):
            function(x, y)
        return
    found = function(x, y)
    expected = function(a, b)
    assert type(found) is xp.Array and name_of(found.dtype) == expected.dtype.name
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)
    if name not in ("lt", "eq"):
        in_place = xp.asarray(a.copy())
        memory = in_place
        in_place = getattr(operator, f"i{name}")(in_place, y)
        assert in_place is memory
        np.testing.assert_allclose(memory.numpy(), expected, rtol=1e-6)


def test_in_place_operators_keep_dtype_and_shape():
    array = xp.ones(2, dtype=xp.int8)
    with pytest.raises(TypeError, match=r"__iadd__: the result has dtype .*int16"):
        array += xp.ones(2, dtype=xp.int16)
    with pytest.raises(TypeError, match=r"shape \(3, 2\)"):
        array += xp.ones((3, 2), dtype=xp.int8)
    assert array.tolist() == [1, 1]


def test_where_arrays_differ_from_tensors():
    one, thousand = xp.asarray([1], dtype=xp.int8), xp.asarray(1000, dtype=xp.int16)
    assert (one + thousand).tolist() == [1001]
    assert name_of((core.tensor([1], dtype=core.int8) + core.tensor(1000)).dtype) == "int8"
    matrix = xp.reshape(xp.arange(6), (2, 3))
    assert (matrix.size, matrix.shape, type(matrix.shape)) == (6, (2, 3), tuple)
    assert matrix.T.shape == matrix.mT.shape == (3, 2)
    with pytest.raises(ValueError, match="found 1 dimensions, expected 2"):
        _ = xp.arange(3).T
    assert xp.std(xp.asarray([1.0, 3.0])).item() == 1.0
    assert xp.sort(xp.asarray([3, 1])).tolist() == [1, 3]


def test_arrays_are_tensors_without_a_copy():
    tensor = core.ones(3)
    array = xp.asarray(tensor)
    assert isinstance(array, core.Tensor) and array.data_ptr() == tensor.data_ptr()
    assert type(core.add(array, 1)) is core.Tensor
    assert type(array + tensor) is xp.Array and type(tensor + array) is xp.Array
    numbers = np.arange(3.0)
    assert xp.asarray(numbers).data_ptr() == numbers.ctypes.data
    assert xp.asarray(numbers, copy=True).data_ptr() != numbers.ctypes.data
    with pytest.raises(ValueError, match="copy"):
        xp.asarray(array, dtype=xp.float64, copy=False)
    with pytest.raises(ValueError, match="copy"):
        xp.asarray([1.0], copy=False)


def test_conversions_of_one_element():
    assert (int(xp.asarray(3)), float(xp.asarray(2.5)), complex(xp.asarray(1j)), bool(xp.asarray(True))) == (
        3,
        2.5,
        1j,
        True,
    )
    assert [10, 20, 30][xp.asarray(1)] == 20
    for convert in (int, float, complex, bool, operator.index):
        with pytest.raises(TypeError, match="expected 0 dimensions"):
            convert(xp.asarray([1]))
    with pytest.raises(TypeError, match="expected an integer dtype"):
        operator.index(xp.asarray(1.0))
    with pytest.raises(TypeError, match="no float"):
        float(xp.asarray(1j))


def test_elements():
    array = xp.reshape(xp.arange(12), (3, 4))
    assert type(array[0]) is xp.Array and array[::-1, 1].tolist() == [9, 5, 1]
    assert array[array > 9].tolist() == [10, 11]
    array[xp.asarray([0, 2]), 0] = -1
    assert array[:, 0].tolist() == [-1, 4, -1]
    with pytest.raises(TypeError):
        array[0, 0] = 1.5
    with pytest.raises(TypeError, match="do not promote"):
        array[0] = xp.ones(4)


def test_namespace():
    assert core.ones(1).__array_namespace__() is xp is xp.ones(1).__array_namespace__(api_version="2024.12")
    with pytest.raises(ValueError, match=r"expected one of 2024\.12, 2025\.12"):
        xp.ones(1).__array_namespace__(api_version="2019.01")
    assert not [name for name in xp.__all__ if not hasattr(xp, name)]
    info = xp.__array_namespace_info__()
    assert set(info.dtypes(kind="integral")) == {f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)}
    assert xp.zeros(1).device in (info.default_device(), *info.devices())
    with pytest.raises(TypeError, match="made by asarray"):
        xp.Array([1])
    assert re.fullmatch(r"Array\(\[1, 2\], dtype=taeda.int8\)", repr(xp.asarray([1, 2], dtype=xp.int8)))


def test_sets_are_those_of_numpy():
    numbers = np.random.default_rng(SEED).integers(0, 6, (4, 5))
    found = xp.unique_all(xp.asarray(numbers))
    expected = np.unique(numbers, return_index=True, return_inverse=True, return_counts=True)
    for part, reference in zip(found, expected, strict=True):
        np.testing.assert_array_equal(part.numpy().reshape(-1), reference.reshape(-1))
    assert xp.unique_values(xp.asarray([1j, 2, 1j, 1 - 1j])).tolist() == [1j, 1 - 1j, 2]
    nans = xp.unique_counts(xp.asarray([float("nan"), 1.0, float("nan")]))
    assert nans.counts.tolist() == [1, 1, 1]
    assert xp.isin(xp.asarray([1, 2, 3]), xp.asarray([2]), invert=True).tolist() == [True, False, True]


@pytest.mark.parametrize(
    "name", ["sum", "prod", "min", "max", "mean", "std", "var", "all", "any", "count_nonzero"]
)
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), ()])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions_are_those_of_numpy(name, axis, keepdims):
    numbers = np.random.default_rng(SEED).normal(size=(2, 3, 4)).round(1)
    found = getattr(xp, name)(xp.asarray(numbers), axis=axis, keepdims=keepdims)
    expected = getattr(np, name)(numbers, axis=axis, keepdims=keepdims)
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: xp.sum([1]), TypeError, "sum: argument 'x' is of type list, expected an array"),
        (lambda: xp.add(1, 2), TypeError, "expected an array among them"),
        (lambda: xp.add(xp.ones(1), "1"), TypeError, "argument 'x2' is of type str"),
        (lambda: xp.sin(xp.ones(1, dtype=xp.int8)), TypeError, "sin: found .*int8, expected real floating point"),
        (lambda: xp.sum(xp.ones(2), axis=1), IndexError, "sum: argument 'axis' is 1, expected -1 to 0"),
        (lambda: xp.sum(xp.ones((2, 2)), axis=(0, -2)), ValueError, "each axis once"),
        (lambda: xp.squeeze(xp.ones((2, 1)), 0), ValueError, "axis 0 has size 2, expected 1"),
        (lambda: xp.expand_dims(xp.ones(2), 5), IndexError, "expected -2 to 1"),
        (lambda: xp.astype(xp.ones(1, dtype=xp.complex64), xp.float32), TypeError, "take real"),
        (lambda: xp.where(xp.ones(1), 1, 2), TypeError, "expected bool"),
        (lambda: xp.nonzero(xp.asarray(1)), ValueError, "expected at least 1"),
        (lambda: xp.concat([]), ValueError, "argument 'arrays' is empty"),
        (lambda: xp.cumulative_sum(xp.ones((2, 2))), ValueError, "argument 'axis' is needed"),
        (lambda: xp.isdtype(xp.int8, "real"), ValueError, "argument 'kind' is 'real'"),
        (lambda: xp.broadcast_shapes((2,), (3,)), ValueError, "broadcast_shapes: shapes"),
        (lambda: xp.reshape(xp.permute_dims(xp.ones((2, 3)), (1, 0)), (6,), copy=False), ValueError, "view"),
        (lambda: xp.vecdot(xp.ones(2), xp.ones(3)), ValueError, "found axes of 2 and 3 elements"),
        (lambda: iter(xp.asarray(1)), TypeError, "0 dimensions"),
    ],
)  # fmt: skip
def test_wrong_calls(call, error, text):
    with pytest.raises(error, match=text):
        call()


SIZES = [(0,), (1,), (2,), (0, 0), (0, 1), (0, 3), (1, 0), (2, 0), (2, 3), (3, 0)]


@pytest.mark.parametrize("mask", SIZES, ids=str)
@pytest.mark.parametrize("shape", [size for size in SIZES if len(size) == 2], ids=str)
def test_masks_without_elements_fit_as_numpys_do(shape, mask):
    try:
        expected = np.zeros(shape)[np.zeros(mask, bool)].shape
    except IndexError:
        with pytest.raises(IndexError):
            xp.zeros(shape)[xp.zeros(mask, dtype=xp.bool)]
    else:
        assert xp.zeros(shape)[xp.zeros(mask, dtype=xp.bool)].shape == expected
