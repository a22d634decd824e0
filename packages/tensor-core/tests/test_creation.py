"""Numbers in equal steps: how their elements are rounded."""

from fractions import Fraction

import numpy as np
import pytest

import taeda_tensor_core as taeda

RANGES = [(-1.0, 1.0), (0.0, 1.0), (0.1, 99.0), (5.0, -3.0), (-0.3, 2.7)]
DTYPES = ["float32", "float64"]


def once(number, dtype):
    """The nearest number of a dtype: Python's division of whole numbers rounds once, and so does the cast after it."""
    return np.dtype(dtype).type(number.numerator / number.denominator)


def exact(number):
    return Fraction(float(number))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("steps", [1, 2, 3, 8, 33, 100])
@pytest.mark.parametrize("start, end", RANGES)
def test_linspace_counts_from_both_ends_and_rounds_each_element_once(start, end, steps, dtype):
    kind = np.dtype(dtype).type
    a, b = kind(start), kind(end)
    width = exact((b - a) / kind(max(steps - 1, 1)))
    half = min(steps, max(steps // 2, 1))
    ascending = [once(exact(a) + width * i, dtype) for i in range(half)]
    descending = [once(exact(b) - width * (steps - 1 - i), dtype) for i in range(half, steps)]
    found = taeda.linspace(start, end, steps, dtype=getattr(taeda, dtype)).numpy()
    np.testing.assert_array_equal(found, np.array(ascending + descending, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("steps", [2, 5, 8, 65, 224])
def test_linspace_between_opposite_ends_is_symmetric(steps, dtype):
    row = taeda.linspace(-1, 1, steps, dtype=getattr(taeda, dtype)).numpy()
    np.testing.assert_array_equal(row, -row[::-1])


@pytest.mark.parametrize("dtype, lane", [("float32", 8), ("float64", 4)])
@pytest.mark.parametrize("count", [1, 7, 8, 15, 16, 31, 64, 77])
def test_arange_counts_from_the_first_of_each_vector(count, dtype, lane):
    start, step = -1.3, 0.1
    whole = count - count % (2 * lane)
    expected = [once(exact(start) + exact(step) * i, dtype) for i in range(count)]
    for i in range(whole):
        expected[i] = once(exact(expected[i - i % lane]) + exact(step) * (i % lane), dtype)
    found = taeda.arange(start, start + step * (count - 0.5), step, dtype=getattr(taeda, dtype)).numpy()
    np.testing.assert_array_equal(found, np.array(expected, dtype))


def test_arange_into_every_second_place_is_that_of_a_row():
    row = taeda.arange(0, 5, 0.1)
    out = taeda.zeros(50, 2)[:, 0]
    taeda.arange(0, 5, 0.1, out=out)
    np.testing.assert_allclose(out.numpy(), row.numpy(), rtol=1e-6)
