"""Values at the ends of ranges, of NaN and infinities, and copies that must not share memory with their source."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import taeda_tensor_core as taeda
from taeda_tensor_core import ops

LOW, HIGH = -(2**63), 2**63 - 1


@pytest.mark.parametrize(
    ("start", "end", "step"),
    [
        (LOW, HIGH, 2**62),
        (HIGH, LOW, -(2**62)),
        (LOW, HIGH, HIGH),
        (0, HIGH, 2**61),
        (HIGH - 3, HIGH, 2),
        (LOW + 3, LOW, -2),
        (HIGH, LOW, LOW),
        (5, 5, -3),
        (-7, 8, 3),
        (8, -7, -5),
    ],
)
def test_arange_over_the_whole_range_of_int64(start, end, step):
    assert taeda.arange(start, end, step).tolist() == list(range(start, end, step))


def test_arange_of_random_ends_agrees_with_range():
    rng = np.random.default_rng(7)
    for _ in range(300):
        start, end = (int(v) for v in rng.integers(LOW, HIGH, 2))
        step = (1 if end > start else -1) * int(rng.integers(2**58, HIGH))
        assert taeda.arange(start, end, step).tolist() == list(range(start, end, step)), (start, end, step)


@pytest.mark.parametrize("ends", [(-1, 2**64 - 1), (2**64 - 1, -1)])
def test_arange_refuses_ends_of_no_common_dtype(ends):
    with pytest.raises(ValueError, match="arange"):
        taeda.arange(*ends, 2**62 if ends[0] < 0 else -(2**62))


@pytest.mark.parametrize("dtype", ["int64", "uint64", "float64"])
def test_arange_of_steps_beyond_int64_has_one_number(dtype):
    for start, end in ((0, 5), (3, 2**63 - 1)):
        assert taeda.arange(start, end, 2**63, dtype=getattr(taeda, dtype)).tolist() == [start]


def test_arange_refuses_numbers_beyond_int64():
    for ends in ((2**63, 2**63 + 4), (2**63 - 2, 2**63 + 2), (2**63 + 4, 2**63, -1)):
        with pytest.raises(RuntimeError, match=r"arange: integers from .* do not fit into int64"):
            taeda.arange(*ends)
        assert taeda.arange(*ends, dtype=taeda.uint64).tolist() == list(range(*ends))
    assert taeda.arange(2**63 - 3, 2**63).tolist() == [2**63 - 3, 2**63 - 2, 2**63 - 1]


def test_arange_says_when_it_would_be_too_long():
    with pytest.raises(MemoryError, match="arange"):
        taeda.arange(LOW, HIGH)


@pytest.mark.parametrize("name", ["tril_indices", "triu_indices"])
@pytest.mark.parametrize("offset", [-5, -3, -1, 0, 1, 2, 5])
def test_indices_of_triangles_agree_with_numpys(name, offset):
    find = {"tril_indices": np.tril, "triu_indices": np.triu}[name]
    for rows, columns in itertools.product(range(5), repeat=2):
        expected = np.stack(np.nonzero(find(np.ones((rows, columns)), offset)))
        assert getattr(taeda, name)(rows, columns, offset).tolist() == expected.tolist()


def test_indices_of_triangles_of_very_long_sides():
    assert taeda.triu_indices(2**38, 2).tolist() == [[0, 0, 1], [0, 1, 1]]
    assert taeda.tril_indices(2**38, 2, 1 - 2**38).tolist() == [[2**38 - 1], [0]]
    assert taeda.tril_indices(2, 2**38).tolist() == [[0, 1, 1], [0, 0, 1]]
    for rows, columns in ((2**62, 0), (0, 2**63 - 1)):
        assert taeda.tril_indices(rows, columns, 3).shape == taeda.triu_indices(rows, columns).shape == (2, 0)


COPIES = {
    "diff without a step": lambda x: taeda.diff(x, n=0),
    "ravel of a transposed tensor": lambda x: taeda.ravel(x.t()),
    "ravel of a tensor with gaps": lambda x: taeda.ravel(x[:, ::2]),
    "clone": taeda.clone,
}


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_does_not_follow_its_source(name):
    x = taeda.arange(12.0).reshape(3, 4)
    made = COPIES[name](x)
    before = made.tolist()
    x.zero_()
    assert made.tolist() == before
    assert made.is_contiguous()


@pytest.mark.parametrize("reduce", ["amin", "amax"])
@pytest.mark.parametrize("values", [[math.nan, 1.0, 2.0], [1.0, math.nan, 2.0], [2.0, 1.0, math.nan]])
def test_extrema_of_scattered_values_keep_nan(reduce, values):
    first, *rest = values
    index = taeda.zeros(2, dtype=taeda.int64)
    found = taeda.scatter_reduce(taeda.tensor([first]), 0, index, taeda.tensor(rest), reduce)
    assert math.isnan(found.item())


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_statistics_of_unbounded_values_are_no_numbers(value):
    x = taeda.tensor([[[1.0, value], [2.0, 3.0]]])
    assert math.isnan(ops.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)[2][0].item())
    assert math.isnan(ops.native_group_norm(x, 1, None, None, 1e-5)[2].item())
    assert math.isnan(ops.native_layer_norm(x, [2], None, None, 1e-5)[2][0, 0].item())


def test_the_mean_over_no_class_probabilities_is_no_number():
    x = taeda.zeros(0, 3)
    assert math.isnan(ops.cross_entropy_loss(x, x).item())
    assert ops.cross_entropy_loss(x, x, None, 2).item() == 0


NEGATIVE_ZERO = {
    "full": lambda z, dtype: taeda.full((3,), z, dtype=dtype),
    "full_like": lambda z, dtype: taeda.full_like(taeda.ones(2, 3, dtype=dtype).T, z),
    "new_full": lambda z, dtype: taeda.ones(2, dtype=dtype).new_full((3,), z),
    "fill_": lambda z, dtype: taeda.ones(3, dtype=dtype).fill_(z),
    "masked_fill": lambda z, dtype: taeda.ones(3, dtype=dtype).masked_fill(
        taeda.ones(3, dtype=taeda.bool), z
    ),
    "index_fill": lambda z, dtype: taeda.ones(3, dtype=dtype).index_fill(0, taeda.arange(3), z),
    "scatter": lambda z, dtype: taeda.ones(3, dtype=dtype).scatter(0, taeda.arange(3), z),
    "constant_pad_nd": lambda z, dtype: ops.constant_pad_nd(taeda.ones(3, dtype=dtype), (2, 1), z)[:2],
    "setitem": lambda z, dtype: _written(taeda.ones(3, dtype=dtype), z),
}


def _written(tensor, value):
    tensor[:] = value
    return tensor


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "complex64"])
@pytest.mark.parametrize("name", NEGATIVE_ZERO)
def test_what_is_filled_with_negative_zero_keeps_its_sign(name, dtype):
    kind = getattr(taeda, dtype)
    made = NEGATIVE_ZERO[name](complex(-0.0, -0.0) if kind.is_complex else -0.0, kind)
    parts = [made.real, made.imag] if kind.is_complex else [made.to(taeda.float64)]
    for part in parts:
        assert all(math.copysign(1.0, value) == -1.0 for value in part.flatten().tolist())


@pytest.mark.parametrize("extent", [1, 2, 3, 7])
@pytest.mark.parametrize("step", [1, 2, 3, 8, HIGH])
def test_windows_of_no_elements_are_as_many_as_begin_within(extent, step):
    assert taeda.ones(extent).unfold(0, 0, step).shape == (extent // step + 1, 0)


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 2.5, math.inf])
def test_a_distance_from_nan_is_nan(p):
    x = taeda.tensor([[1.0, math.nan], [0.0, 2.0], [0.0, 3.0]])
    assert taeda.isnan(taeda.cdist(x, x, p)).tolist() == [
        [True] * 3,
        [True, False, False],
        [True, False, False],
    ]
    assert taeda.isnan(taeda.pdist(x, p)).tolist() == [True, True, False]
