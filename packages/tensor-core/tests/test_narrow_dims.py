"""Places along dimensions of one or few elements, and masks that are filled, in any layout: against NumPy."""

import numpy as np
import pytest

import taeda_tensor_core as tc

SEED = 1130
SHAPES = [
    (70, 1),
    (70, 2),
    (1, 70),
    (33, 1, 3),
    (9, 40, 1, 1),
    (5, 3, 300, 2),
    (4, 1, 1, 4100),
    (2, 5000, 3),
    (30, 40, 4, 3),
]
LAYOUTS = {
    "row-major": lambda t: t,
    "turned": lambda t: t.movedim(-1, 0).contiguous().movedim(0, -1),
    "apart": lambda t: t.repeat_interleave(2, -1)[..., ::2],
}
CASES = [(shape, d) for shape in SHAPES for d in range(len(shape))]


def drawn(shape, dtype="float32", seed=SEED):
    print("seed", seed)
    return np.random.default_rng(seed).integers(-50, 50, shape).astype(dtype)


def laid(values, layout):
    return LAYOUTS[layout](tc.from_numpy(values))


def line_places(shape, dim, size, seed):
    """Numbers below `size`, as many as the shape has along `dim` at most."""
    sizes = [max(1, n - 1) if k == dim else n for k, n in enumerate(shape)]
    return np.random.default_rng(seed).integers(0, size, sizes)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("shape", "dim"), CASES)
def test_elements_are_gathered_and_scattered_along_any_dimension(shape, dim, layout):
    values, places = drawn(shape), line_places(shape, dim, shape[dim], SEED + 1)
    found = laid(values, layout).gather(dim, laid(places, layout))
    np.testing.assert_array_equal(found.numpy(), np.take_along_axis(values, places, dim))

    source = drawn(places.shape, seed=SEED + 2)
    summed, put, largest = values.copy(), values.copy(), values.copy()
    for at in np.ndindex(*places.shape):
        place = (*at[:dim], places[at], *at[dim + 1 :])
        summed[place] += source[at]
        put[place] = source[at]  # of several the last stays
        largest[place] = max(largest[place], source[at])
    index, new = laid(places, layout), laid(source, layout)
    np.testing.assert_array_equal(laid(values, layout).scatter_add(dim, index, new).numpy(), summed)
    np.testing.assert_array_equal(laid(values, layout).scatter(dim, index, new).numpy(), put)
    np.testing.assert_array_equal(
        laid(values, layout).scatter_reduce(dim, index, new, "amax").numpy(), largest
    )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("shape", "dim"), CASES)
def test_a_bad_place_among_few_in_a_row_is_refused(shape, dim, layout):
    places = line_places(shape, dim, shape[dim], SEED)
    places[tuple(n - 1 for n in places.shape)] = shape[dim]
    target = laid(drawn(shape), layout)
    before = target.numpy().copy()
    with pytest.raises(IndexError, match="out of"):
        target.gather(dim, laid(places, layout))
    with pytest.raises(IndexError, match="out of"):
        target.scatter_(dim, laid(places, layout), tc.zeros(places.shape))
    np.testing.assert_array_equal(target.numpy(), before)


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "float64"])
@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize(("shape", "dim"), CASES)
def test_few_slices_are_selected(shape, dim, count, dtype):
    values = abs(drawn(shape)).astype(dtype)
    places = np.random.default_rng(SEED).integers(0, shape[dim], count)
    expected = np.take(values, places, dim)
    for layout in LAYOUTS:
        t = laid(values, layout)
        np.testing.assert_array_equal(t.index_select(dim, tc.from_numpy(places)).numpy(), expected)
        key = (*[slice(None)] * dim, tc.from_numpy(places))
        np.testing.assert_array_equal(t[key].numpy(), expected)


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize(("shape", "dim"), CASES)
def test_few_slices_are_written(shape, dim, count):
    """Of what is written to one place the last stays."""
    places = np.random.default_rng(SEED).integers(0, shape[dim], count)
    slices = drawn((*shape[:dim], count, *shape[dim + 1 :]), seed=SEED + 3)
    for layout in LAYOUTS:
        for value in (slices, np.float32(7)):
            expected, target = drawn(shape), laid(drawn(shape), layout)
            key = (*[slice(None)] * dim, places)
            for k, place in enumerate(places):
                one = value if value.ndim == 0 else np.take(value, k, dim)
                expected[(*[slice(None)] * dim, place)] = one
            target[(*key[:-1], tc.from_numpy(places))] = tc.from_numpy(np.asarray(value))
            np.testing.assert_array_equal(target.numpy(), expected)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("shape", "dim"), CASES)
def test_order_and_extremes_along_any_dimension(shape, dim, layout):
    values = drawn(shape)
    t = laid(values, layout)
    for name, found in {
        "sort": t.sort(dim, stable=True),
        "topk": t.topk(1, dim, largest=False),
        "kthvalue": t.kthvalue(1, dim, keepdim=True),
        "median": t.median(dim, keepdim=True),
        "max": t.max(dim, keepdim=True),
        "min": t.min(dim, keepdim=True),
    }.items():
        order = np.sort(values, dim)
        middle = (shape[dim] - 1) // 2
        expected = {
            "sort": order,
            "median": np.take(order, [middle], dim),
            "max": np.take(order, [-1], dim),
        }.get(name, np.take(order, [0], dim))
        np.testing.assert_array_equal(found.values.numpy(), expected, err_msg=name)
        np.testing.assert_array_equal(
            np.take_along_axis(values, found.indices.numpy(), dim), expected, err_msg=name
        )
    np.testing.assert_array_equal(t.argmax(dim).numpy(), values.argmax(dim))
    np.testing.assert_array_equal(t.argmin(dim, keepdim=True).numpy(), values.argmin(dim, keepdims=True))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "bool"])
@pytest.mark.parametrize(("shape", "dim"), CASES)
def test_truth_along_any_dimension(shape, dim, dtype, layout):
    values = (drawn(shape) > 0).astype(dtype) * np.array(3).astype(dtype)
    t = laid(values, layout)
    expected = np.uint8 if dtype == "uint8" else np.bool_  # as PyTorch has it
    for name in ("all", "any"):
        for keepdim in (False, True):
            found = getattr(t, name)(dim, keepdim=keepdim).numpy()
            assert found.dtype == expected
            np.testing.assert_array_equal(found, getattr(values, name)(dim, keepdims=keepdim))


@pytest.mark.parametrize("order", [0, 1, 2, 3, np.inf, -np.inf])
@pytest.mark.parametrize(("shape", "dim"), CASES)
def test_norms_along_any_dimension(shape, dim, order):
    values = drawn(shape).astype("float64")
    values.flat[0] = 0.0
    found = tc.linalg.vector_norm(tc.from_numpy(values), order, dim)
    with np.errstate(divide="ignore"):
        expected = np.linalg.norm(values, order, dim)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-14)


def test_the_norm_of_one_element_is_its_size():
    values = np.array([[np.nan], [-np.inf], [-0.0], [3e38], [-1e-40]], "float32")
    for order in (1, 2, 3, np.inf):
        found = tc.linalg.vector_norm(tc.from_numpy(values), order, 1).numpy()
        np.testing.assert_array_equal(found, abs(values[:, 0]))
        assert not np.signbit(found[2])
    np.testing.assert_array_equal(tc.linalg.vector_norm(tc.from_numpy(values), 0, 1).numpy(), [1, 1, 0, 1, 1])
    complex_one = tc.tensor([[3 + 4j]])
    assert tc.linalg.vector_norm(complex_one, 2, 1).tolist() == [5.0]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_mask_is_filled(shape, layout):
    values, mask = drawn(shape), drawn(shape, seed=SEED + 3) > 0
    expected = values.copy()
    expected[mask] = 7
    for value in (7, 7.0, tc.tensor(7), tc.tensor(7.0), tc.tensor([7.0]), tc.tensor([[7.0]])):
        t = laid(values, layout)
        t[laid(mask, layout)] = value
        np.testing.assert_array_equal(t.numpy(), expected)
    part = mask.reshape(*mask.shape[:2], -1)[..., 0]
    t, rows = laid(values, layout), values.copy()
    t[tc.from_numpy(part)] = -3
    rows[part] = -3
    np.testing.assert_array_equal(t.numpy(), rows)
    if len(shape) > 2:
        last = np.arange(shape[-1]) % 2 == 0
        t, columns = laid(values, layout), values.copy()
        t[..., tc.from_numpy(last)] = 9
        columns[..., last] = 9
        np.testing.assert_array_equal(t.numpy(), columns)


def test_a_mask_and_a_value_that_are_written_to():
    values = np.random.default_rng(SEED).random((40, 40)) < 0.5
    t, expected = tc.from_numpy(values.copy()), values.copy()
    t[t.t()] = False
    expected[values.T] = False
    np.testing.assert_array_equal(t.numpy(), expected)
    numbers = tc.arange(100.0)
    numbers[numbers >= 0] = numbers[5:6]
    assert numbers.tolist() == [5.0] * 100
    mask = tc.tensor([1, 2, 0, 255], dtype=tc.uint8).view(tc.bool)
    numbers = tc.zeros(4)
    numbers[mask] = 1
    assert numbers.tolist() == [1, 1, 0, 1]


def test_a_mask_that_does_not_fit_is_refused():
    t = tc.zeros(3, 4)
    for mask in (tc.ones(4, dtype=tc.bool), tc.ones(3, 5, dtype=tc.bool), tc.ones(3, 4, 1, dtype=tc.bool)):
        with pytest.raises(IndexError):
            t[mask] = 1
    with pytest.raises(RuntimeError, match=r"dtype|complex"):
        t[tc.ones(3, 4, dtype=tc.bool)] = tc.tensor(1j)
    assert t.sum() == 0


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_few_elements_are_taken_by_number(shape, layout):
    values = drawn(shape)
    numbers = np.random.default_rng(SEED).integers(0, values.size, (2, 3))
    t = laid(values, layout)
    np.testing.assert_array_equal(t.take(tc.from_numpy(numbers)).numpy(), values.take(numbers))
    np.testing.assert_array_equal(t.take(tc.from_numpy(numbers - values.size)).numpy(), values.take(numbers))
    with pytest.raises(IndexError):
        t.take(tc.tensor([0, values.size]))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_of_a_table_in_any_layout(layout):
    table = drawn((50, 7))
    for places in ([3, 0, 49], list(range(50)) * 2, []):
        found = tc.embedding(laid(table, layout), tc.tensor(places, dtype=tc.int64))
        np.testing.assert_array_equal(found.numpy(), table[places])
    wide = laid(drawn((50, 9)), layout)[:, 1:8]
    np.testing.assert_array_equal(
        tc.embedding(wide, tc.tensor([[4, 2]])).numpy(), drawn((50, 9))[[[4, 2]], 1:8]
    )


@pytest.mark.parametrize("diagonal", [-200, -3, -1, 0, 1, 2, 200])
@pytest.mark.parametrize("shape", [(90, 1), (90, 2), (1, 90), (3, 50, 4), (7, 2, 2), (2, 0, 3), (2, 3, 0)])
def test_triangles_of_narrow_matrices(shape, diagonal):
    values = drawn(shape) + 100
    for name in ("tril", "triu"):
        expected = getattr(np, name)(values, diagonal)
        t = tc.from_numpy(values.copy())
        np.testing.assert_array_equal(getattr(t, name)(diagonal).numpy(), expected)
        np.testing.assert_array_equal(getattr(t, name + "_")(diagonal).numpy(), expected)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bfloat16"])
@pytest.mark.parametrize(
    ("shape", "dims"),
    [((40, 70, 4, 4), 2), ((300, 3, 8, 2), (1, 2)), ((90, 2, 2), 1), ((5, 90, 3, 5), (0, 2))],
)
def test_few_elements_of_short_runs_are_reduced(shape, dims, dtype):
    values = drawn(shape)
    t = tc.from_numpy(values).to(getattr(tc, dtype))
    for name in ("sum", "amax", "amin"):
        found = getattr(t, name)(dims)
        exact = tc.from_numpy(getattr(values.astype("float64"), name[-3:])(dims))
        assert tc.equal(found, exact.to(found.dtype)), name
    if dtype != "int64":
        np.testing.assert_allclose(
            t.var(dims).double().numpy(),
            values.astype("float64").var(dims, ddof=1),
            rtol=1e-6 if "b" not in dtype else 1e-2,
        )
        t[3, 1] = np.nan
        holes = values.astype("float64")
        holes[3, 1] = np.nan
        np.testing.assert_array_equal(t.amax(dims).double().numpy(), holes.max(dims))
        np.testing.assert_array_equal(t.amin(dims).double().numpy(), holes.min(dims))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize(
    ("shape", "dims"),
    [((9, 70, 8), (0, 2)), ((40, 3, 64), (0, 2)), ((6, 5, 4, 3, 16), (0, 2, 4)), ((3, 7, 30, 9), (1, 3))],
)
def test_inner_and_outer_dimensions_are_reduced_together(shape, dims, dtype, layout):
    values = drawn(shape, dtype)
    exact, found, before = values.astype("float64"), [], tc.get_num_threads()
    try:
        for threads in (1, 2):
            tc.set_num_threads(threads)
            t = laid(values, layout)
            np.testing.assert_array_equal(t.amax(dims).numpy(), values.max(dims))
            np.testing.assert_array_equal(t.amin(dims, keepdim=True).numpy(), values.min(dims, keepdims=True))
            np.testing.assert_array_equal((t > 48).any(dims).numpy(), (values > 48).any(dims))
            results = [t.sum(dims), t.double().var(dims, correction=0), t.double().norm(dim=dims)]
            found.append([result.numpy() for result in results])
    finally:
        tc.set_num_threads(before)
    expected = [exact.sum(dims), exact.var(dims), np.sqrt((exact**2).sum(dims))]
    for one, other, wanted in zip(*found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(one, wanted, rtol=1e-12)
