"""Integers of 4 bits, two in a byte: against NumPy's bits and Python's numbers."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest

import taeda_tensor_core as taeda
from taeda_tensor_core.packed import PackedTensor
from taeda_tensor_core.serialization import load, save

NUMBERS = [[1, -8, 7], [0, 3, -1]]


def packed_by_numpy(numbers):
    codes = np.asarray(numbers) & 15
    codes = np.pad(codes, [(0, 0)] * (codes.ndim - 1) + [(0, codes.shape[-1] % 2)])
    return (codes[..., 0::2] | codes[..., 1::2] << 4).tolist()


@pytest.fixture
def x():
    return taeda.tensor(NUMBERS, dtype=taeda.int4)


@pytest.mark.parametrize("shape", [(3,), (4,), (2, 3), (2, 0), (0, 3), (3, 2, 5), (1,)])
@pytest.mark.parametrize("kind", ["int4", "uint4"])
def test_numbers_go_round(shape, kind):
    dtype = getattr(taeda, kind)
    least = -8 if dtype.is_signed else 0
    numbers = np.random.default_rng(0).integers(least, least + 16, shape)
    x = taeda.tensor(numbers.tolist()).reshape(shape).to(dtype)
    assert (x.shape, x.dtype, x.tolist()) == (shape, dtype, numbers.tolist())
    assert x.packed.tolist() == packed_by_numpy(numbers) and x.nbytes == (shape[-1] + 1) // 2 * int(
        np.prod(shape[:-1])
    )
    for other in (taeda.float32, taeda.int64, taeda.float64, taeda.int8):
        assert x.to(other).dtype is other and x.to(other).tolist() == numbers.tolist()
    assert x.float().dtype is taeda.float32 and x.to(dtype) is x


def test_ways_to_ask_for_it(x):
    plain = taeda.tensor(NUMBERS)
    for made in (
        plain.to(taeda.int4),
        plain.to(dtype=taeda.int4),
        plain.to("cpu", taeda.int4),
        plain.float().to(taeda.int4),
    ):
        assert type(made) is PackedTensor and taeda.equal(made, x)
    assert taeda.tensor(5.7, dtype=taeda.uint4).item() == 5 and taeda.tensor(-3, dtype=taeda.int4).shape == ()
    assert x.to(taeda.int8).to(taeda.int4).tolist() == NUMBERS and not taeda.equal(x, x.clone().flip(0))


def test_it_is_shown_and_moved(x):
    assert repr(x) == "tensor([[ 1, -8,  7],\n        [ 0,  3, -1]], dtype=taeda.int4)"
    assert (
        x[0].tolist() == NUMBERS[0]
        and x[1, 2].item() == -1
        and x.t().tolist() == np.transpose(NUMBERS).tolist()
    )
    assert (
        [row.tolist() for row in x] == NUMBERS
        and len(x) == 2
        and x.reshape(6).tolist() == [*NUMBERS[0], *NUMBERS[1]]
    )
    assert (x.dim(), x.numel(), x.size(-1), x.is_floating_point(), x.is_signed()) == (2, 6, 3, False, True)


@pytest.mark.parametrize("way", ["file", "pickle", "copy"])
def test_it_is_saved(x, way):
    if way == "file":
        file = io.BytesIO()
        save({"x": x, "bytes": x.packed}, file)
        file.seek(0)
        found = load(file)["x"]
    else:
        found = pickle.loads(pickle.dumps(x)) if way == "pickle" else copy.deepcopy(x)
    assert found.dtype is taeda.int4 and taeda.equal(found, x)


def test_what_does_not_fit_is_refused(x):
    for numbers, dtype in (([8], taeda.int4), ([-9], taeda.int4), ([-1], taeda.uint4), ([16], taeda.uint4)):
        with pytest.raises(ValueError, match=f"{dtype.name} holds numbers from"):
            taeda.tensor(numbers).to(dtype)
    with pytest.raises(ValueError, match="int4 holds"):
        taeda.tensor([float("nan")]).to(taeda.int4)
    with pytest.raises(TypeError, match="complex numbers cannot become int4"):
        taeda.tensor([1j]).to(taeda.int4)
    for call in (lambda: x + 1, lambda: x.exp(), lambda: x @ x.t(), lambda: x.numpy(), lambda: x.add_(1)):
        with pytest.raises(NotImplementedError, match="not implemented for dtype int4"):
            call()
    with pytest.raises(ValueError, match=r"bytes of shape \(3,\) must be uint8 of shape \(2,\)"):
        PackedTensor.around(taeda.zeros(3, dtype=taeda.uint8), taeda.int4, (3,))
    with pytest.raises(TypeError, match="argument 'dtype' must be a dtype"):
        taeda.zeros(2, dtype=taeda.int4)
    with pytest.raises(TypeError, match="expected a dtype"):
        taeda.ones(2).to(taeda.int3)
