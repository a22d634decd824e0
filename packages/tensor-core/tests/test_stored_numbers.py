"""Numbers of another kind than the tensor that they go into."""

import math

import numpy as np
import pytest

import taeda_tensor_core as tc

MASK = tc.tensor([True, True])
FIRST = tc.tensor([0, 1])
STORED = {
    "fill_": lambda x, v: x.fill_(v),
    "assignment": lambda x, v: x.__setitem__(slice(None), v) or x,
    "one": lambda x, v: [x.__setitem__(i, v) for i in range(2)] and x,
    "mask": lambda x, v: x.__setitem__(MASK, v) or x,
    "places": lambda x, v: x.__setitem__(FIRST, v) or x,
    "full": lambda x, v: tc.full((2,), v, dtype=x.dtype),
    "full_like": lambda x, v: tc.full_like(x, v),
    "new_full": lambda x, v: x.new_full((2,), v),
    "masked_fill": lambda x, v: x.masked_fill(MASK, v),
    "scatter": lambda x, v: x.scatter(0, FIRST, v),
}
DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "uint8", "bool"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", STORED)
def test_complex_numbers_without_an_imaginary_part_are_real(name, dtype):
    found = STORED[name](tc.zeros(2, dtype=getattr(tc, dtype)), 1 + 0j)
    assert found.dtype is getattr(tc, dtype)
    assert found.tolist() == [1, 1]


@pytest.mark.parametrize("dtype", DTYPES[:-1])
@pytest.mark.parametrize("name", STORED)
def test_others_are_not(name, dtype):
    x = tc.zeros(2, dtype=getattr(tc, dtype))
    with pytest.raises(RuntimeError, match=r"imaginary part|real number"):
        STORED[name](x, 1 + 1j)
    assert x.tolist() == [0, 0]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", STORED)
def test_integers_have_no_such_number(name, value):
    with pytest.raises(RuntimeError, match="no integer dtype can hold"):
        STORED[name](tc.zeros(2, dtype=tc.int32), value)


def test_index_fill_takes_no_complex_number_into_real_elements():
    with pytest.raises(
        RuntimeError, match="index_fill: argument 'value' of dtype complex64 cannot be stored"
    ):
        tc.zeros(2).index_fill(0, FIRST, tc.tensor(1 + 0j))
    assert tc.zeros(2, dtype=tc.complex64).index_fill(0, FIRST, 1j).tolist() == [1j, 1j]


@pytest.mark.parametrize("value", [1 + 1j, 1 + 0j, tc.tensor(2.5), tc.tensor([2.0]), tc.tensor(1j)])
def test_integers_are_not_cut_off_a_complex_number_or_a_float_tensor(value):
    with pytest.raises(TypeError, match="which dtype int64 cannot hold"):
        tc.tensor([value], dtype=tc.int64)
    assert tc.tensor([2.5, np.float32(1.5), tc.tensor(3)], dtype=tc.int64).tolist() == [2, 1, 3]
