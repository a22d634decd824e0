"""Element-wise operators: an element's result is its own, whatever stands beside it and however it lies in memory."""

from __future__ import annotations

import numpy as np
import pytest

import taeda_tensor_core as taeda
from taeda_testing.record import OpRecord, all_records
from taeda_testing.runner import function_of

SPECIAL = [
    0.0,
    -0.0,
    np.inf,
    -np.inf,
    np.nan,
    1e-310,
    1e-40,
    1e6 + 1,
    3e7,
    710.0,
    -750.0,
    1e200,
    -1e200,
    1e-200,
]


def functions_of(operands: int, *dtypes: str) -> list[tuple[OpRecord, str]]:
    """The records of functions of each element with so many operands, with each of the dtypes that they take."""
    return [
        (record, dtype)
        for record in all_records()
        if len(record.domains) == operands and not record.creates
        for dtype in dtypes
        if dtype in record.dtypes and takes(record, dtype, operands)
    ]


def takes(record: OpRecord, dtype: str, operands: int) -> bool:
    """Whether a call needs nothing but its operands."""
    sample = next(record.samples(dtype, np.random.default_rng(0)))
    return len(sample.args) == operands and not sample.kwargs


def title(value: object) -> str | None:
    return value.title if isinstance(value, OpRecord) else None


# Complex numbers against NumPy: function, a region where neither loses digits.
COMPLEX = {
    **{
        name: (getattr(np, name), 3.0)
        for name in ("cos", "cosh", "exp", "exp2", "log2", "log10", "sin", "sinh")
    },
    **{name: (getattr(np, name), 3.0) for name in ("sqrt", "tan", "tanh", "reciprocal", "log")},
    "abs": (np.abs, 1e3),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1e3),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), 3.0),
    "sgn": (lambda x: x / np.abs(x), 1e3),
}


def numbers(dtype: str, count: int, seed: int) -> np.ndarray:
    """Random numbers of several sizes, with special ones here and there."""
    rng = np.random.default_rng(seed)

    def real() -> np.ndarray:
        x = rng.normal(size=count) * 10 ** rng.uniform(-2, 2, count)
        places = rng.choice(count, len(SPECIAL), replace=False)
        x[places] = SPECIAL
        return x

    with np.errstate(all="ignore"):
        return (real() + 1j * real() if dtype.startswith("complex") else real()).astype(dtype)


def check_equal(found: np.ndarray, expected: np.ndarray, said: object) -> None:
    """Bit for bit; of complex numbers, whose products may be rounded once less in vectors, to a few units."""
    if found.dtype.kind == "c":
        kept = np.isfinite(expected)
        np.testing.assert_array_equal(np.isfinite(found), kept, err_msg=str(said))
        found, expected = found[kept], expected[kept]
        assert (np.abs(found - expected) <= 4 * np.finfo(found.dtype).eps * np.abs(expected)).all(), said
    else:
        np.testing.assert_array_equal(found, expected, err_msg=str(said))
        kept = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found[kept]), np.signbit(expected[kept]), err_msg=str(said))


@pytest.mark.parametrize(
    ("record", "dtype"), functions_of(1, "float32", "float64", "complex64", "complex128"), ids=title
)
def test_neighbours_and_layout_change_nothing(record: OpRecord, dtype: str) -> None:
    function = function_of(record)
    data = numbers(dtype, 333, seed=11)
    alone = np.concatenate([function(taeda.tensor(data[i : i + 1])).numpy() for i in range(len(data))])
    if alone.dtype.kind == "c":  # the next test compares special results
        kept = np.isfinite(alone)
        data, alone = data[kept], alone[kept]
    x = taeda.tensor(data)
    check_equal(function(x).numpy(), alone, (record.name, dtype, "contiguous"))
    spread = taeda.tensor(np.repeat(data, 3))[::3]
    check_equal(function(spread).numpy(), alone, (record.name, dtype, "strided"))
    for count in (2, 15, 16, 17, 127, 128, 129, 250):
        check_equal(function(x[:count]).numpy(), alone[:count], (record.name, dtype, count))
    if str(alone.dtype) == dtype and record.in_place:
        getattr(spread, record.name + "_")()
        check_equal(spread.numpy(), alone, (record.name, dtype, "in place"))


@pytest.mark.parametrize(("record", "dtype"), functions_of(1, "complex64", "complex128"), ids=title)
def test_special_complex_numbers_among_others_are_those_alone(record: OpRecord, dtype: str) -> None:
    function = function_of(record)
    parts = [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan]
    special = np.array([complex(a, b) for a in parts for b in parts], dtype)
    mixed = np.full(len(special) * 5, 0.5 + 0.25j, dtype)
    mixed[::5] = special
    among = function(taeda.tensor(mixed)).numpy()[::5]
    alone = np.array([function(taeda.tensor(special[i : i + 1])).numpy()[0] for i in range(len(special))])
    for part in ("real", "imag"):
        found, expected = getattr(among, part), getattr(alone, part)
        if found.dtype.kind == "b":
            np.testing.assert_array_equal(found, expected)
            continue
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
        kept = ~np.isnan(expected)
        eps = np.finfo(found.dtype).eps
        np.testing.assert_allclose(found[kept], expected[kept], rtol=4 * eps)
        np.testing.assert_array_equal(np.signbit(found[kept]), np.signbit(expected[kept]))


@pytest.mark.parametrize(("record", "dtype"), functions_of(2, "float32", "float64"), ids=title)
def test_two_operands_in_any_layout(record: OpRecord, dtype: str) -> None:
    function = function_of(record)
    a, b = numbers(dtype, 301, seed=3), numbers(dtype, 301, seed=4)

    def one_by_one(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        pairs = zip(np.broadcast_to(first, 301), np.broadcast_to(second, 301), strict=True)
        return np.array([function(taeda.tensor(u), taeda.tensor(v)).numpy() for u, v in pairs])

    alone = one_by_one(a, b)
    x, y = taeda.tensor(a), taeda.tensor(b)
    check_equal(function(x, y).numpy(), alone, (record.name, dtype))
    spread = function(x.flip(0).flip(0), taeda.tensor(np.repeat(b, 2))[::2])
    check_equal(spread.numpy(), alone, (record.name, dtype, "strided"))
    check_equal(function(x, y[5]).numpy(), one_by_one(a, b[5]), (record.name, dtype, "number"))
    check_equal(function(x[7], y).numpy(), one_by_one(a[7], b), (record.name, dtype, "number first"))


@pytest.mark.parametrize(("dtype", "ulps"), [("complex64", 4), ("complex128", 16)])
@pytest.mark.parametrize("name", COMPLEX)
def test_complex_functions_agree_with_numpy(name: str, dtype: str, ulps: int) -> None:
    reference, size = COMPLEX[name]
    rng = np.random.default_rng(5)
    data = (rng.uniform(-size, size, 5000) + 1j * rng.uniform(-size, size, 5000)).astype(dtype)
    expected = reference(data.astype(np.complex128))
    found = getattr(taeda, name)(taeda.tensor(data)).numpy()
    gap = np.abs(found - expected) / np.abs(expected)
    assert gap.max() <= ulps * np.finfo(dtype).eps, (gap.max(), data[gap.argmax()])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_quotients(dtype: str) -> None:
    rng = np.random.default_rng(6)

    def draw() -> np.ndarray:
        scale = 10 ** rng.uniform(-15, 15, 4000)
        return ((rng.normal(size=4000) + 1j * rng.normal(size=4000)) * scale).astype(dtype)

    a, b = draw(), draw()
    b[::7] = b[::7].real
    b[1::7] = 1j * b[1::7].imag
    expected = a.astype(np.clongdouble) / b.astype(np.clongdouble)
    found = (taeda.tensor(a) / taeda.tensor(b)).numpy()
    gap = np.abs(found - expected) / np.abs(expected)
    assert gap.max() <= 4 * np.finfo(dtype).eps
    with np.errstate(all="ignore"):
        zeros = (taeda.tensor(a[:9]) / taeda.tensor(np.zeros(9, dtype))).numpy()
    assert not np.isfinite(zeros).any()


def test_logic_takes_numbers_for_their_truth() -> None:
    values = np.array([0.0, -0.0, 2.0, np.nan, np.inf, -1.0])
    a, b = (x.ravel() for x in np.meshgrid(values, values))
    whole = np.nan_to_num(b, posinf=3, neginf=-3)
    for name in ("logical_and", "logical_or", "logical_xor"):
        expected = getattr(np, name)(a, b)
        np.testing.assert_array_equal(
            getattr(taeda, name)(taeda.tensor(a), taeda.tensor(b)).numpy(), expected
        )
        mixed = getattr(taeda, name)(taeda.tensor(a), taeda.tensor(whole.astype("int16")))
        np.testing.assert_array_equal(mixed.numpy(), getattr(np, name)(a, whole.astype("int16")))
    np.testing.assert_array_equal(taeda.logical_not(taeda.tensor(a)).numpy(), np.logical_not(a))


@pytest.mark.parametrize(
    "dtype", ["float16", "int8", "uint16", "float32", "int64", "complex64", "complex128"]
)
def test_choices_keep_every_bit(dtype: str) -> None:
    rng = np.random.default_rng(8)
    size = np.dtype(dtype).itemsize
    a, b = (np.frombuffer(rng.bytes(77 * size), dtype).copy() for _ in range(2))
    condition = rng.integers(0, 2, 77).astype(bool)
    chosen = taeda.where(taeda.tensor(condition), taeda.tensor(a), taeda.tensor(b)).numpy()
    expected = np.where(np.repeat(condition, size), a.view(np.uint8), b.view(np.uint8))
    np.testing.assert_array_equal(chosen.view(np.uint8), expected)


#: Operands with gaps, by how they are made, and the strides of what lies as they do without gaps.
GAPS = {
    "a part of a transposed matrix": (lambda: taeda.ones(4, 6).t()[::2], (1, 3)),
    "a part of a permuted volume": (lambda: taeda.ones(2, 3, 4, 10)[..., ::2].permute(3, 1, 0, 2), (1, 20, 60, 5)),
    "channels last": (lambda: taeda.ones(2, 5, 4, 6).permute(0, 3, 1, 2)[:, :2], (40, 1, 8, 2)),
    "rows": (lambda: taeda.ones(4, 6)[:, ::2], (3, 1)),
    "repeated": (lambda: taeda.ones(2, 1, 3).expand(2, 4, 3), (12, 3, 1)),
    "repeated and turned": (lambda: taeda.ones(2, 1, 3).expand(2, 4, 3).transpose(0, 2), (1, 3, 12)),
}  # fmt: skip


@pytest.mark.parametrize("name", GAPS)
def test_results_lie_as_operands_with_gaps_do(name: str) -> None:
    make, strides = GAPS[name]
    x = make()
    dense = taeda.ones(x.shape)
    for made in (
        x.clone(), x + 1, x * x, x + x[:1], x.exp(), x > 0, x.double(), taeda.empty_like(x), taeda.zeros_like(x),
        taeda.where(x > 0, x, 0.0),
    ):  # fmt: skip
        assert made.stride() == strides and made.shape == x.shape
    assert (dense + x).stride() == dense.stride()  # the first one decides, where it can tell
    assert (x + dense).stride() == (dense.stride() if "repeated" in name else strides)
    assert x.clone(memory_format=taeda.contiguous_format).stride() == dense.stride()


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "complex128"])
def test_dimensions_in_any_order_are_copied_as_numpy_does(dtype):
    """Copies in which both sides run along memory in different dimensions go in tiles, from 4,096 elements on."""
    rng = np.random.default_rng(31)
    for _ in range(120):
        shape = [int(rng.choice([1, 2, 3, 7, 8, 9, 16, 33, 64])) for _ in range(rng.integers(2, 6))]
        while np.prod(shape) > 200_000:
            shape[int(rng.integers(len(shape)))] = 2
        order = rng.permutation(len(shape)).tolist()
        array = rng.integers(0, 100, shape).astype(dtype)
        turned, expected = taeda.from_numpy(array).permute(*order), array.transpose(order)
        if rng.random() < 0.3:
            turned, expected = turned[..., ::2], expected[..., ::2]
        np.testing.assert_array_equal(turned.contiguous().numpy(), expected)
        backwards = list(range(len(shape)))[::-1]
        target = taeda.empty(*expected.shape[::-1], dtype=turned.dtype).permute(*backwards)
        np.testing.assert_array_equal(target.copy_(turned).numpy(), expected)
        if len(shape) == 4:
            np.testing.assert_array_equal(
                turned.contiguous(memory_format=taeda.channels_last).numpy(), expected
            )


@pytest.mark.parametrize("dtype", ["uint8", "float32", "bfloat16", "complex128"])
@pytest.mark.parametrize(
    "shape", [(200, 333), (3, 150, 64, 5), (2, 129, 300), (40, 50), (9, 1000), (130, 9, 17), (7, 33, 8)]
)
def test_operands_that_run_along_memory_in_different_dimensions(shape, dtype):
    """Beside a row-major one, a turned operand is read in tiles, or in stripes of lines where it is converted."""

    def numbers(t):  # NumPy has no bfloat16
        return (t.double() if t.dtype is taeda.bfloat16 else t).numpy()

    rng = np.random.default_rng(8)
    a = rng.integers(0, 100, shape)
    b = rng.integers(0, 100, shape[::-1])
    backwards = list(range(len(shape)))[::-1]
    kind = getattr(taeda, dtype)
    x, turned = taeda.from_numpy(a).to(kind), taeda.from_numpy(b).to(kind).permute(*backwards)
    np.testing.assert_array_equal(numbers(x + turned), a + b.T)
    np.testing.assert_array_equal(numbers(x - turned.to(taeda.complex128)), a - b.T)
    np.testing.assert_array_equal((x == turned).numpy(), a == b.T)
    target = x.clone()
    target += turned
    np.testing.assert_array_equal(numbers(target), a + b.T)
    if dtype != "complex128":
        np.testing.assert_array_equal(numbers(taeda.maximum(turned, x)), np.maximum(a, b.T))
