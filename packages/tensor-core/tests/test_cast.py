"""Conversions, copies and fills against NumPy."""

import contextlib

import numpy as np
import pytest

import taeda_tensor_core as taeda

INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
DTYPES = ["bool", *INTS, "float16", "float32", "float64", "complex64", "complex128"]


def tensor(array):
    return taeda.from_numpy(np.array(array))


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_every_pair(source, target):
    values = np.random.default_rng(6).integers(0, 100, 77).astype(source)
    with np.errstate(all="ignore"):
        expected = (values.real if source.startswith("c") and not target.startswith("c") else values).astype(
            target
        )
    if source.startswith("c") and target == "bool":
        expected = values.astype(bool)
    loses = source.startswith("c") and not target.startswith("c") and target != "bool"
    said = (
        pytest.warns(UserWarning, match="discards the imaginary part") if loses else contextlib.nullcontext()
    )
    with said:
        np.testing.assert_array_equal(tensor(values).to(getattr(taeda, target)).numpy(), expected)
    with said if not loses else pytest.warns(UserWarning, match=f"{source} to {target}"):
        np.testing.assert_array_equal(tensor(values)[::-2].to(getattr(taeda, target)).numpy(), expected[::-2])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_rounds_to_nearest_even(dtype):
    rng = np.random.default_rng(7)
    x = np.concatenate(
        [
            rng.normal(size=3000),
            [65504, 65519.9, 65520, 1e-8, 6e-8, 5.9e-5, 6.2e-5, np.inf, -np.inf, 0.0, -0.0],
        ]
    ).astype("float32")
    result = tensor(x).to(getattr(taeda, dtype)).to(taeda.float32).numpy()
    if dtype == "float16":
        with np.errstate(over="ignore"):
            expected = x.astype("float16").astype("float32")
    else:
        raw = x.view("uint32").astype("uint64")
        expected = (((raw + 0x7FFF + ((raw >> 16) & 1)) >> 16) << 16).astype("uint32").view("float32")
    np.testing.assert_array_equal(result, expected)
    assert np.isnan(taeda.tensor([float("nan")]).to(getattr(taeda, dtype)).to(taeda.float32).numpy()).all()


def test_negative_numbers_wrap_in_unsigned_types():
    assert taeda.tensor([-1.0, -2.0]).to(taeda.uint8).tolist() == [255, 254]
    assert taeda.tensor([-1]).to(taeda.uint16).tolist() == [65535]
    assert taeda.tensor([2.0**63]).to(taeda.uint64).tolist() == [2**63]


def test_to_returns_itself_when_nothing_changes():
    x = taeda.ones(3)
    assert x.to(taeda.float32) is x
    assert x.contiguous() is x
    assert x.clone() is not x


@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 4), (70, 90), (2, 3, 4, 5)])
def test_clone_and_contiguous(shape):
    a = np.random.default_rng(8).normal(size=shape)
    x = tensor(a).permute(tuple(reversed(range(len(shape)))))
    np.testing.assert_array_equal(x.clone().numpy(), a.T)
    assert x.contiguous().is_contiguous()
    np.testing.assert_array_equal(x.contiguous().numpy(), a.T)


def test_large_transposed_copy():
    a = np.arange(300 * 517, dtype="float32").reshape(300, 517)
    np.testing.assert_array_equal(tensor(a).T.contiguous().numpy(), a.T)
    np.testing.assert_array_equal(tensor(a).T.contiguous().T.numpy(), a)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex128"])
@pytest.mark.parametrize(
    "shape", [(8, 512), (65, 67), (100, 41), (33, 256), (16, 1024), (17, 1030), (129, 140)]
)
def test_transposed_copies_of_elements_of_every_size(shape, dtype):
    rows, columns = shape
    a = np.random.default_rng(9).integers(0, 100, (2, rows, columns)).astype(dtype)
    x = taeda.from_numpy(a)
    np.testing.assert_array_equal(x.transpose(1, 2).contiguous().numpy(), a.transpose(0, 2, 1))
    # Lines that begin anywhere, and whose neighbours are to stay.
    within, wanted = (
        taeda.zeros(2, columns + 3, rows + 5, dtype=x.dtype),
        np.zeros((2, columns + 3, rows + 5), dtype),
    )
    within[:, 1 : columns + 1, 2 : rows + 2], wanted[:, 1 : columns + 1, 2 : rows + 2] = (
        x.mT,
        a.transpose(0, 2, 1),
    )
    np.testing.assert_array_equal(within.numpy(), wanted)
    np.testing.assert_array_equal(x[:, 1:, 3:].mT.contiguous().numpy(), a[:, 1:, 3:].transpose(0, 2, 1))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "int64", "complex128"])
@pytest.mark.parametrize("run", [1, 2, 3, 5, 8, 11, 17, 40, 70, 129])
def test_copies_of_runs_of_every_length(run, dtype):
    a = np.random.default_rng(run).integers(0, 100, (6, 7, run + 3)).astype(dtype)
    x = taeda.from_numpy(a)
    for cut in (np.s_[:, :, :run], np.s_[:, 2:6, 3:], np.s_[1:, ::2, 1 : run + 1]):
        np.testing.assert_array_equal(x[cut].contiguous().numpy(), a[cut])
        # Into a part of something larger, whose other elements stay; and in another order of dimensions.
        wanted, within = np.full((9, 8, run + 5), 7, dtype), taeda.full((9, 8, run + 5), 7, dtype=x.dtype)
        place = tuple(slice(1, 1 + n) for n in a[cut].shape)
        wanted[place], within[place] = a[cut], x[cut]
        np.testing.assert_array_equal(within.numpy(), wanted)
        np.testing.assert_array_equal(x[cut].transpose(0, 1).contiguous().numpy(), a[cut].transpose(1, 0, 2))
    for dims in ((2,), (0, 2), (1,)):
        np.testing.assert_array_equal(x[:, :, :run].flip(dims).numpy(), np.flip(a[:, :, :run], dims))
    spread = np.broadcast_to(a[:, :1, :run], (6, 9, run))
    np.testing.assert_array_equal(x[:, :1, :run].expand(6, 9, run).contiguous().numpy(), spread)


def test_channels_last_clone():
    x = taeda.rand(2, 3, 4, 5)
    y = x.contiguous(memory_format=taeda.channels_last)
    assert y.stride() == (60, 1, 15, 3)
    assert taeda.equal(x, y)
    assert y.clone().stride() == y.stride()
    assert y.contiguous().stride() == x.stride()


def test_copy_broadcasts_converts_and_handles_overlap():
    x = taeda.zeros(2, 3)
    x.copy_(taeda.tensor([1, 2, 3]))
    assert x.tolist() == [[1.0, 2.0, 3.0]] * 2
    line = taeda.arange(6)
    line[1:].copy_(line[:-1])
    assert line.tolist() == [0, 0, 1, 2, 3, 4]
    with pytest.raises(RuntimeError, match="copy_"):
        x.copy_(taeda.ones(4))


def test_fill_and_zero():
    x = taeda.empty(3, 4, dtype=taeda.int16)
    x.fill_(7)
    assert x.sum().item() == 84
    x[:, ::2].zero_()
    assert x.sum().item() == 42
    x.fill_(taeda.tensor(2.9))
    assert x[0, 0].item() == 2
    with pytest.raises(RuntimeError, match="fill_"):
        x.fill_(taeda.ones(2))


@pytest.mark.parametrize(
    ("shape", "other"), [((0, 3), (0, 2)), ((2, 0), (3, 0)), ((0,), (0, 0)), ((0, 1), (0, 3)), ((3,), (0,))]
)
def test_shapes_are_compared_where_there_is_nothing_to_copy(shape, other):
    target, source = taeda.ones(shape), taeda.ones(other)
    for device in ("cpu", "meta"):
        with pytest.raises(RuntimeError, match="copy_: "):
            target.to(device).copy_(source.to(device))
    with pytest.raises(RuntimeError, match="copy_: "):
        target[...] = source
    assert taeda.ones(0, 3).copy_(taeda.ones(3)).shape == (0, 3)
