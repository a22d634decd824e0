"""Element types that Python defines by a table of numbers."""

import copy
import math
import pickle

import numpy as np
import pytest

import taeda_tensor_core as tc
from taeda_tensor_core import library


@pytest.fixture(scope="module")
def posit():
    """A table with infinities, a NaN and two zeros, in no order."""
    numbers = [math.copysign((i % 128) ** 2 / 64, 1 if i < 128 else -1) for i in range(256)]
    numbers[127], numbers[255], numbers[64] = math.inf, -math.inf, math.nan
    made = library.define_dtype("posit_of_tests", numbers)
    yield made.dtype, numbers
    made.remove()


def test_every_code_goes_round(posit):
    dtype, numbers = posit
    codes = tc.arange(256, dtype=tc.uint8)
    shown = codes.view(dtype)
    np.testing.assert_array_equal(shown.float().numpy(), np.array(numbers, np.float32))
    back = shown.float().to(dtype).view(tc.uint8)
    assert tc.equal(back, codes)


def test_a_number_becomes_the_nearest(posit):
    dtype, numbers = posit
    finite = np.array([n for n in numbers if math.isfinite(n)], np.float64)
    x = np.random.default_rng(0).uniform(-300, 300, 1000).astype(np.float32)
    found = tc.from_numpy(x).to(dtype).double().numpy()
    nearest = np.abs(finite[None] - x[:, None].astype(np.float64)).min(1)
    np.testing.assert_allclose(np.abs(found - x), nearest, rtol=1e-6)
    special = tc.tensor([math.nan, math.inf, -math.inf, 1e9, -0.0, 0.5 / 64]).to(dtype)
    values = special.tolist()
    assert math.isnan(values[0]) and values[1:3] == [math.inf, -math.inf] and values[3] == 126**2 / 64
    assert math.copysign(1, values[4]) == -1 and values[5] == 0.0  # of two equally near the even code


def test_a_format_of_few_bits():
    with library.define_dtype("fours_of_tests", [0, 1, 2, 4]) as made:
        x = tc.tensor([0.4, 1.6, 3.0, 99.0, math.nan]).to(made.dtype)
        assert x.tolist() == [0.0, 2.0, 2.0, 4.0, 0.0] and x.view(tc.uint8).tolist() == [0, 2, 2, 3, 0]


def test_it_is_a_dtype_like_others(posit):
    dtype, _ = posit
    assert tc.posit_of_tests is dtype and repr(dtype) == "taeda.posit_of_tests" and dtype.itemsize == 1
    assert pickle.loads(pickle.dumps(dtype)) is dtype and copy.deepcopy(dtype) is dtype
    x = tc.tensor([[1.0, 4.0]], dtype=dtype)
    assert tc.tensor(pickle.loads(pickle.dumps(x)).tolist()).tolist() == [[1.0, 4.0]]
    assert tc.zeros(2, dtype=dtype).tolist() == [0.0, 0.0] and x.clone().dtype is dtype
    x[0, 0] = 16.0
    assert x.tolist() == [[16.0, 4.0]] and x[0, 1].item() == 4.0
    assert (x == tc.tensor([[16.0, 1.0]], dtype=dtype)).tolist() == [[True, False]]
    assert x.index_select(1, tc.tensor([1, 0])).tolist() == [[4.0, 16.0]]
    assert repr(x) == "tensor([[16.,  4.]], dtype=taeda.posit_of_tests)"


def test_what_is_taken_away_has_no_name():
    made = library.define_dtype("passing_of_tests", [0, 1])
    x = tc.ones(2, dtype=made.dtype)
    made.remove()
    assert not hasattr(tc, "passing_of_tests") and x.float().tolist() == [1.0, 1.0]


def test_wrong_definitions(posit):
    for numbers in ([], [1.0], [1.0] * 3, [0.0] * 512):
        with pytest.raises(ValueError, match=f"power of two.*found {len(numbers)}"):
            library.define_dtype("wrong_of_tests", numbers)
    with pytest.raises(ValueError, match="none of the numbers is finite"):
        library.define_dtype("wrong_of_tests", [math.nan, math.inf])
    with pytest.raises(ValueError, match="letters, digits and underscores"):
        library.define_dtype("wrong-of-tests", [0, 1])
    with pytest.raises(RuntimeError, match="which is there already, defined by posit_of_tests"):
        library.define_dtype("posit_of_tests", [0, 1])
