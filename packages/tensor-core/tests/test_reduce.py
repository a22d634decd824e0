"""Reductions and scans against NumPy: axes, layouts, dtypes, empty and 0-d tensors, reproducibility."""

import itertools

import numpy as np
import pytest

import taeda_tensor_core as taeda

SHAPES = [(), (1,), (7,), (3, 5), (2, 3, 4), (5, 130), (70, 9), (2, 70, 3), (300, 4)]


def sample(dtype, shape, seed=0):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if "int" in dtype:
        return rng.integers(0, 9, shape).astype(dtype)
    return rng.normal(size=shape).astype(dtype)


def tensor(array):
    return taeda.from_numpy(np.array(array))


def axes_of(ndim):
    yield None
    for count in range(1, ndim + 1):
        yield from itertools.combinations(range(ndim), count)


REDUCTIONS = {
    "sum": np.sum,
    "prod": np.prod,
    "mean": np.mean,
    "amax": np.max,
    "amin": np.min,
    "var": np.var,
    "std": np.std,
}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("layout", ["plain", "transposed", "strided"])
def test_reductions(name, shape, layout):
    a = sample("float64", shape)
    x = tensor(a)
    if layout == "transposed":
        a, x = a.T, x.permute(tuple(reversed(range(len(shape)))))
    if layout == "strided" and shape:
        a, x = a[..., ::-2], x[..., ::-2]
    keywords = {"correction": 0} if name in ("var", "std") else {}
    for axes, keep in itertools.product(axes_of(a.ndim), (False, True)):
        result = getattr(taeda, name)(x, dim=axes, keepdim=keep, **keywords)
        np.testing.assert_allclose(
            result.numpy(), REDUCTIONS[name](a, axis=axes, keepdims=keep), rtol=1e-11, atol=1e-12
        )


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
)
def test_integer_sums_are_wide(dtype):
    a = sample(dtype, (9, 300))
    for axis in (None, 0, 1):
        result = taeda.sum(tensor(a), axis)
        np.testing.assert_array_equal(result.numpy(), a.sum(axis=axis))
        assert result.dtype == (taeda.uint64 if dtype == "uint64" else taeda.int64)
    assert taeda.sum(tensor(a), dtype=taeda.float64).dtype == taeda.float64


@pytest.mark.parametrize("name", ["any", "all"])
@pytest.mark.parametrize("dtype", ["bool", "int32", "float32"])
def test_truth(name, dtype):
    a = sample("bool", (6, 70)).astype(dtype)
    a[:, 0] = name == "all"
    for axis in (None, 0, 1, (0, 1)):
        np.testing.assert_array_equal(
            getattr(taeda, name)(tensor(a), axis).numpy(), getattr(np, name)(a, axis=axis)
        )


@pytest.mark.parametrize("name", ["any", "all"])
@pytest.mark.parametrize("dim", [[], ()])
@pytest.mark.parametrize("keepdim", [False, True])
def test_truth_over_no_dimension_is_that_of_each_element(name, dim, keepdim):
    function = getattr(taeda, name)
    for a in (
        np.array([[1.5, 0.0], [np.nan, -0.0]]),
        np.zeros((0, 3)),
        np.array(2),
        np.array([0, 3], "uint8"),
    ):
        x, out = tensor(a), taeda.empty(0, dtype=function(tensor(a)).dtype)
        for found in (
            function(x, dim, keepdim),
            getattr(x, name)(dim=dim, keepdim=keepdim),
            function(x, dim=dim, keepdim=keepdim, out=out),
        ):
            assert found.dtype == (taeda.uint8 if a.dtype == "uint8" else taeda.bool)
            np.testing.assert_array_equal(found.numpy(), a != 0)
    assert taeda.any(taeda.zeros(3), None).shape == ()


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", ["bool", "int16", "uint8", "float32", "float64"])
@pytest.mark.parametrize("shape", [(7,), (3, 5), (70, 130), (2, 70, 9)])
def test_arg_extrema_take_the_first(name, dtype, shape):
    a = sample(dtype, shape)
    for axis in (None, *range(len(shape))):
        np.testing.assert_array_equal(
            getattr(taeda, name)(tensor(a), axis).numpy(), getattr(np, name)(a, axis=axis)
        )
        np.testing.assert_array_equal(
            getattr(taeda, name)(tensor(a.T), axis).numpy(), getattr(np, name)(a.T, axis=axis)
        )


@pytest.mark.parametrize("shape", [(5,), (4, 90), (90, 4), (3, 4, 5)])
def test_extrema_with_indices(shape):
    a = sample("float32", shape)
    for axis in range(len(shape)):
        values, indices = taeda.max(tensor(a), axis)
        np.testing.assert_array_equal(values.numpy(), a.max(axis))
        np.testing.assert_array_equal(indices.numpy(), a.argmax(axis))
        least = taeda.min(tensor(a), axis, keepdim=True)
        np.testing.assert_array_equal(least.values.numpy(), a.min(axis, keepdims=True))
    assert taeda.max(tensor(a)).item() == a.max()
    np.testing.assert_array_equal(taeda.max(tensor(a), tensor(-a)).numpy(), np.maximum(a, -a))


@pytest.mark.parametrize("count", [5, 100, 5000])
def test_nan_wins(count):
    a = np.arange(count, dtype="float32")
    a[3] = np.nan
    x = tensor(a)
    assert np.isnan(taeda.amax(x).item()) and np.isnan(taeda.amin(x).item())
    assert taeda.argmax(x).item() == 3 and taeda.argmin(x).item() == 3
    assert np.isnan(taeda.sum(x).item())
    np.testing.assert_allclose(taeda.nansum(x).item(), np.nansum(a), rtol=1e-6)
    np.testing.assert_allclose(taeda.nanmean(x).item(), np.nanmean(a), rtol=1e-6)
    a[1] = np.inf
    assert taeda.nansum(tensor(a)).item() == np.inf


def test_empty():
    x = taeda.ones(0, 3)
    assert taeda.sum(x).item() == 0 and taeda.prod(x).item() == 1
    assert taeda.sum(x, 0).tolist() == [0.0, 0.0, 0.0]
    assert taeda.sum(x, 1).shape == (0,)
    assert np.isnan(taeda.mean(x).item())
    assert taeda.any(x).item() is False and taeda.all(x).item() is True
    with pytest.raises(IndexError, match="amax"):
        taeda.amax(x, 0)
    with pytest.raises(RuntimeError):
        taeda.max(x)


def test_errors():
    with pytest.raises(IndexError, match="sum"):
        taeda.sum(taeda.ones(2, 3), 2)
    with pytest.raises(RuntimeError, match="twice"):
        taeda.sum(taeda.ones(2, 3), (0, 0))
    with pytest.raises(RuntimeError, match="mean"):
        taeda.mean(taeda.tensor([1, 2]))


def test_float32_sums_are_accurate():
    a = np.random.default_rng(1).random(3_000_000).astype("float32")
    exact = a.astype("float64").sum()
    assert abs(taeda.sum(tensor(a)).item() - exact) / exact < 1e-6
    assert abs(taeda.sum(tensor(a).reshape(-1, 3), 0).sum().item() - exact) / exact < 1e-6


def test_bits_do_not_depend_on_the_number_of_threads():
    x = tensor(np.random.default_rng(2).normal(size=1_500_000).astype("float32"))
    before = taeda.get_num_threads()
    results = set()
    try:
        for threads in (1, 2, 3):
            taeda.set_num_threads(threads)
            results.add((taeda.sum(x).item(), taeda.sum(x.reshape(-1, 4), 0)[1].item(), taeda.var(x).item()))
    finally:
        taeda.set_num_threads(before)
    assert len(results) == 1


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("shape", [(1,), (9,), (4, 5), (2, 3, 40)])
def test_scans(name, shape):
    a = sample("float64", shape)
    for axis in range(len(shape)):
        np.testing.assert_allclose(
            getattr(taeda, name)(tensor(a), axis).numpy(), getattr(np, name)(a, axis=axis), rtol=1e-12
        )
    whole = sample("int8", shape)
    result = getattr(taeda, name)(tensor(whole), 0)
    np.testing.assert_array_equal(result.numpy(), getattr(np, name)(whole.astype("int64"), axis=0))
    assert result.dtype == taeda.int64


def test_running_extrema():
    a = np.array([3.0, 1.0, 4.0, 4.0, 2.0])
    values, indices = taeda.cummax(tensor(a), 0)
    np.testing.assert_array_equal(values.numpy(), np.maximum.accumulate(a))
    assert indices.tolist() == [0, 0, 2, 3, 3]
    np.testing.assert_array_equal(taeda.cummin(tensor(a), 0).values.numpy(), np.minimum.accumulate(a))


def test_logarithmic_sums():
    a = sample("float64", (4, 6)) * 100
    expected = np.logaddexp.reduce(a, axis=1)
    np.testing.assert_allclose(taeda.logsumexp(tensor(a), 1).numpy(), expected)
    np.testing.assert_allclose(taeda.logcumsumexp(tensor(a), 1)[:, -1].numpy(), expected)
    assert taeda.logsumexp(taeda.tensor([-float("inf")] * 2), 0).item() == -float("inf")


@pytest.mark.parametrize("p", [0, 1, 2, 3, 0.5, float("inf"), -float("inf")])
def test_norms(p):
    a = sample("float64", (4, 6))
    np.testing.assert_allclose(taeda.norm(tensor(a), p, 1).numpy(), np.linalg.norm(a, p, axis=1))


def test_counts_and_moments():
    a = sample("float64", (5, 8))
    assert taeda.count_nonzero(taeda.tensor([[0, 1], [2, 3]]), 0).tolist() == [1, 2]
    np.testing.assert_allclose(taeda.var(tensor(a), 0).numpy(), a.var(0, ddof=1))
    spread, middle = taeda.std_mean(tensor(a), 1)
    np.testing.assert_allclose(spread.numpy(), a.std(1, ddof=1))
    np.testing.assert_allclose(middle.numpy(), a.mean(1))
    low, high = taeda.aminmax(tensor(a), dim=0)
    np.testing.assert_array_equal(low.numpy(), a.min(0))
    np.testing.assert_array_equal(high.numpy(), a.max(0))


@pytest.mark.parametrize(
    ("op", "dtype"),
    [
        *itertools.product(("sum", "prod", "amax", "amin"), ("float32", "float64", "int32")),
        ("sum", "complex64"),
        ("prod", "complex64"),
    ],
)
def test_columns_of_any_number_of_rows(op, dtype):
    """Rows are joined some at a time, in bands: numbers of rows about both, and columns about a tile."""
    for rows in (1, 2, 3, 4, 5, 6, 8, 9, 63, 64, 65, 66, 69, 130):
        for columns in (8, 255, 258):
            x = np.random.default_rng(rows).normal(size=(rows, columns))
            x = (1 + x / 40 if op == "prod" else x * 9).astype(dtype)
            wide = {"float32": np.float64, "complex64": np.complex128}.get(dtype, dtype)
            expected = REDUCTIONS[op](x.astype(wide), axis=0)
            np.testing.assert_allclose(getattr(tensor(x), op)(0).numpy(), expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("op", ["sum", "prod", "amax", "amin"])
def test_nan_in_any_row_of_a_column_stays(op):
    for rows in (5, 66):
        for row in range(rows):
            x = np.ones((rows, 8), np.float32)
            x[row, 3] = np.nan
            found = getattr(tensor(x), op)(0).isnan().tolist()
            assert found == [column == 3 for column in range(8)], row


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("function", ["sum", "mean", "amax", "amin"])
def test_repeated_elements(function, keepdim):
    """What is repeated along kept or reduced dimensions, and stands in the middle of its storage."""
    base = np.random.default_rng(4).normal(size=(3, 1, 4, 1, 2))
    shown, expected = tensor(base)[1:].expand(2, 5, 4, 3, 2), np.broadcast_to(base[1:], (2, 5, 4, 3, 2))
    for axes in axes_of(5):
        if axes is not None:
            found = getattr(shown, function)(axes, keepdim=keepdim).numpy()
            reference = getattr(expected, {"amax": "max", "amin": "min"}.get(function, function))
            np.testing.assert_allclose(found, reference(axis=axes, keepdims=keepdim), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["max", "min", "amax", "amin", "aminmax"])
def test_an_empty_tensor_has_no_extremum_as_a_whole(name):
    for x in (taeda.zeros(0), taeda.zeros(2, 0)):
        with pytest.raises(RuntimeError, match=f"{name}: argument 'self' of shape .* has no elements"):
            getattr(taeda, name)(x)
        with pytest.raises(IndexError, match=f"{name}: dimension {x.dim() - 1} of shape .* is empty"):
            getattr(taeda, name)(x, dim=-1)


def test_an_empty_tensor_has_no_place_of_an_extremum():
    for find in (taeda.argmax, taeda.argmin):
        with pytest.raises(IndexError, match="has no elements"):
            find(taeda.zeros(0))


@pytest.mark.parametrize("ord", [float("inf"), -float("inf"), -1])
def test_norms_that_no_elements_have(ord):
    for dim in (None, 0):
        with pytest.raises(RuntimeError, match=r"vector_norm: dimension 0 of shape \(0,\) is empty"):
            taeda.linalg.vector_norm(taeda.zeros(0), ord, dim)
    assert taeda.linalg.vector_norm(taeda.zeros(0, 3), ord, 1).shape == (0,)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("gap", [0, 3])
@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 9, 16, 17, 33, 64, 70, 81, 128, 131])
def test_many_short_rows_are_reduced_as_each_alone(length, gap, dtype):
    """Rows are taken together, as many as a register has lanes; what is left over, alone."""
    rng = np.random.default_rng(length)
    values = rng.normal(size=(53, length + gap))
    x = tensor(values).to(getattr(taeda, dtype))[:, :length]
    if length > 2:
        x[5, 1], x[6, 2], x[7, 0] = float("nan"), float("inf"), float("-inf")
    wide = x.double().numpy()
    near = {"float32": 1e-5, "float64": 1e-12, "bfloat16": 1e-2}[dtype]
    for name, reduce in REDUCTIONS.items():
        if name in ("var", "std"):
            continue
        found = getattr(taeda, name)(x, 1)
        alone = taeda.stack([getattr(taeda, name)(row) for row in x])
        np.testing.assert_array_equal(found.double().numpy(), alone.double().numpy(), name)
        with np.errstate(invalid="ignore"):
            expected = reduce(wide, axis=1)
        np.testing.assert_allclose(found.double().numpy(), expected, rtol=near, atol=near, err_msg=name)
    np.testing.assert_array_equal(taeda.any(x > 0, 1).numpy(), (wide > 0).any(1))
    np.testing.assert_array_equal(taeda.all(x, 1).numpy(), (wide != 0).all(1))
    for p, power in ((1, lambda a: np.abs(a).sum(1)), (2, lambda a: np.sqrt((a * a).sum(1)))):
        found = taeda.linalg.vector_norm(x, p, 1).double().numpy()
        np.testing.assert_allclose(found, power(wide), rtol=near, atol=near)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax"])
@pytest.mark.parametrize("shape", [(3000, 3), (5, 700), (2, 9000)])
def test_scans_of_halves_round_once(name, shape):
    x = tensor(np.random.default_rng(3).normal(size=shape)).bfloat16()
    found, expected = getattr(taeda, name)(x, 1), getattr(taeda, name)(x.double(), 1)
    if name == "cummax":
        np.testing.assert_array_equal(found[1].numpy(), expected[1].numpy())
        found, expected = found[0], expected[0]
    assert found.dtype is taeda.bfloat16
    np.testing.assert_allclose(found.double().numpy(), expected.numpy(), rtol=2**-8, atol=1e-30)


def test_what_is_repeated_without_end_has_the_first_as_its_greatest():
    x = taeda.tensor([1.0, float("nan"), 3.0]).view(3, 1).expand(3, 1 << 40)
    assert taeda.argmax(x, 1).tolist() == taeda.argmin(x, 1).tolist() == [0, 0, 0]
    assert taeda.argmax(x[:, :5], 0).tolist() == [1] * 5


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64", "int16", "uint8", "bool"])
def test_places_of_extrema_of_many_rows(dtype):
    """Rows that are looked through together, shorter and longer than a vector and a block, with gaps and with ties;
    of NaNs the first."""
    rng = np.random.default_rng(31)
    print("seed 31")
    for rows in (1, 3, 17, 130):
        for n in (1, 2, 7, 15, 16, 17, 31, 33, 63, 64, 65, 100, 255, 256, 257, 600):
            a = rng.integers(0, 2 if dtype == "bool" else 20, (rows, n + 3))
            wide = a.astype(np.float64)
            if dtype in ("float32", "float64", "bfloat16"):
                wide[rng.random(wide.shape) < 0.3 / n] = np.nan
            x = tensor(wide if wide.dtype == np.float64 and np.isnan(wide).any() else a).to(
                getattr(taeda, dtype)
            )
            for of, to in (
                (x[:, :n], wide[:, :n]),
                (x[:, 3:], wide[:, 3:]),
                (x[:, :n].T.contiguous().T, wide[:, :n]),
            ):
                for find, expected in ((taeda.argmax, np.argmax), (taeda.argmin, np.argmin)):
                    np.testing.assert_array_equal(
                        find(of, 1).numpy(), expected(to, 1), err_msg=f"{rows} x {n}"
                    )
                values, places = taeda.max(of, 1)
                np.testing.assert_array_equal(places.numpy(), to.argmax(1))
                np.testing.assert_array_equal(values.to(taeda.float64).numpy(), to.max(1))
