"""Embedding against NumPy."""

import numpy as np
import pytest

import taeda_tensor_core as taeda

ops = taeda.ops


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("shape", [(), (7,), (4, 5), (0,)])
def test_rows(shape, dtype):
    rng = np.random.default_rng(51)
    weight, indices = (rng.standard_normal((10, 6)) * 9).astype(dtype), np.array(rng.integers(0, 10, shape))
    got = ops.embedding(taeda.from_numpy(weight), taeda.from_numpy(indices))
    np.testing.assert_array_equal(got.numpy(), weight[indices])
    got = ops.embedding(taeda.from_numpy(weight)[::-1], taeda.from_numpy(indices.astype("int32")))
    np.testing.assert_array_equal(got.numpy(), weight[::-1][indices])


@pytest.mark.parametrize("by_frequency", [False, True])
@pytest.mark.parametrize("padding", [-1, 3])
def test_gradient(padding, by_frequency):
    rng = np.random.default_rng(52)
    indices, grad = rng.integers(0, 6, (8, 5)), rng.standard_normal((8, 5, 4))
    expected = np.zeros((6, 4))
    np.add.at(expected, indices[indices != padding], grad[indices != padding])
    if by_frequency:
        expected /= np.maximum(np.bincount(indices.ravel(), minlength=6), 1)[:, None]
    got = ops.embedding_backward(taeda.from_numpy(grad), taeda.from_numpy(indices), 6, padding, by_frequency)
    np.testing.assert_allclose(got.numpy(), expected, atol=1e-12)


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (
            lambda t: ops.embedding(t.ones(3, 2), t.tensor([0, 3])),
            IndexError,
            ["embedding", "indices", "3", "0 to 2"],
        ),
        (lambda t: ops.embedding(t.ones(3, 2), t.tensor([-1])), IndexError, ["embedding", "indices", "-1"]),
        (lambda t: ops.embedding(t.ones(3), t.tensor([0])), RuntimeError, ["embedding", "weight", "(3,)"]),
        (lambda t: ops.embedding(t.ones(3, 2), t.ones(1)), RuntimeError, ["embedding", "indices", "float32"]),
        (
            lambda t: ops.embedding(t.ones(3, 2), t.tensor([0]), sparse=True),
            NotImplementedError,
            ["embedding", "sparse"],
        ),
    ],
)
def test_errors_name_what_is_wrong(call, kind, words):
    with pytest.raises(kind) as caught:
        call(taeda)
    for word in words:
        assert word in str(caught.value)


DTYPES = {"float32": 1e-5, "float64": 1e-12, "float16": 1e-3, "bfloat16": 8e-3}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [1, 3, 21, 64, 70, 301])
@pytest.mark.parametrize("mode", [0, 1, 2])
def test_bags_of_every_length(mode, width, dtype):
    print("seed 6")
    rng, kind, near = np.random.default_rng(6), getattr(taeda, dtype), DTYPES[dtype]
    weight = taeda.tensor(rng.standard_normal((20, width))).to(kind)
    table = weight.double().numpy()
    lengths = [0, 1, 2, 3, 4, 5, 9, 0, 30]
    numbers = rng.integers(0, 20, sum(lengths))
    numbers[numbers == 7] = 8
    numbers[3], numbers[10] = 7, 7  # that of the padding
    starts = np.cumsum([0, *lengths[:-1]])
    given = (taeda.tensor(numbers), taeda.tensor(starts), False, mode, False)
    bags = taeda.embedding_bag(weight, *given, None, False, 7)
    assert bags[0].dtype is kind
    how = [np.sum, np.mean, np.max][mode]
    for bag, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        rows = [n for n in numbers[start : start + length] if n != 7]
        expected = how(table[rows], axis=0) if rows else np.zeros(width)
        np.testing.assert_allclose(bags[0][bag].double().numpy(), expected, rtol=near, atol=near / 10)
        assert bags[2][bag].item() == len(rows)
        if mode == 2 and rows:
            chosen = np.array(rows)[np.argmax(table[rows], axis=0)]
            np.testing.assert_array_equal(bags[3][bag].numpy(), chosen)
    if mode == 0:
        weights = taeda.tensor(rng.standard_normal(len(numbers))).to(kind)
        found = taeda.embedding_bag(weight, *given, weights)[0].double().numpy()
        for bag, (start, length) in enumerate(zip(starts, lengths, strict=True)):
            part = slice(start, start + length)
            expected = weights[part].double().numpy() @ table[numbers[part]]
            np.testing.assert_allclose(found[bag], expected, rtol=near, atol=near)


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("offsets, last", [([], False), ([0], True)])
def test_indices_of_no_bag(mode, offsets, last):
    offsets = taeda.tensor(offsets, dtype=taeda.int64)
    taeda.full((64,), -1)  # what new memory is made of
    sums, owners, sizes, _ = ops.embedding_bag(
        taeda.ones(4, 3), taeda.tensor([1, 2, 3]), offsets, mode=mode, include_last_offset=last
    )
    assert (sums.shape, sizes.shape) == ((0, 3), (0,))
    assert owners.numel() == 0 or owners.tolist() == [0, 0, 0]
