"""The routes that kernels take for large, wide or awkward operands, against NumPy in float64."""

import numpy as np
import pytest

import taeda_tensor_core as taeda

SEED = 20


def rng(*parts):
    return np.random.default_rng([SEED, *parts])


def ulps(got, exact):
    """Greatest distance of float32 or float64 results from the exact ones, in units of the last place."""
    with np.errstate(over="ignore"):
        rounded = exact.astype(got.dtype)
    finite = np.isfinite(rounded)
    np.testing.assert_array_equal(got[~finite], rounded[~finite])
    gap = np.abs(got[finite].astype(np.longdouble) - exact[finite])
    return float(np.max(gap / np.spacing(np.abs(rounded[finite]))))


# Products: sizes around every border between routines, pieces and strips.
@pytest.mark.parametrize(
    ("m", "k", "n"),
    [(1, 7, 5), (5, 300, 70), (16, 256, 1024), (33, 512, 65), (64, 1024, 130), (129, 128, 128), (8, 5000, 9)],
)
@pytest.mark.parametrize("transposed", ["neither", "left", "right", "both"])
def test_products_agree_and_do_not_depend_on_threads(m, k, n, transposed):
    left, right = (rng(m, k, n, i).standard_normal(s).astype("f4") for i, s in enumerate([(m, k), (k, n)]))
    a, b = taeda.from_numpy(left), taeda.from_numpy(right)
    if transposed in ("left", "both"):
        a = a.t().contiguous().t()
    if transposed in ("right", "both"):
        b = b.t().contiguous().t()
    before, results = taeda.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            taeda.set_num_threads(threads)
            results.append(taeda.mm(a, b).numpy())
    finally:
        taeda.set_num_threads(before)
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
    exact = left.astype("f8") @ right
    np.testing.assert_allclose(results[0], exact, atol=3e-6 * np.sqrt(k))


def test_linear_adds_its_bias_in_every_piece():
    x, w, b = (
        rng(i).standard_normal(s).astype("f4") for i, s in enumerate([(64, 700), (1000, 700), (1000,)])
    )
    got = taeda.ops.linear(*(taeda.from_numpy(v) for v in (x, w, b))).numpy()
    np.testing.assert_allclose(got, x.astype("f8") @ w.T + b, atol=1e-4)


@pytest.mark.parametrize(("shape", "dim"), [((70, 130), 0), ((3, 100, 64), 1), ((200, 9), 0), ((2, 5, 3), 1)])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_softmax_of_columns(shape, dim, dtype):
    x = (4 * rng(*shape).standard_normal(shape)).astype(dtype)
    x[(0,) * len(shape)] = -np.inf
    wide = x.astype("f8")
    powers = np.exp(wide - wide.max(dim, keepdims=True))
    exact = powers / powers.sum(dim, keepdims=True)
    tolerance = 4e-6 if dtype == "f4" else 1e-14
    np.testing.assert_allclose(taeda.from_numpy(x).softmax(dim).numpy(), exact, rtol=tolerance, atol=0)
    with np.errstate(divide="ignore"):
        logarithm = np.log(exact)
    np.testing.assert_allclose(
        taeda.from_numpy(x).log_softmax(dim).numpy(), logarithm, rtol=0, atol=20 * tolerance
    )


def test_softmax_of_columns_passes_nan_on_to_its_column_alone():
    x = rng(1).standard_normal((50, 80)).astype("f4")
    x[7, 3] = np.nan
    got = taeda.from_numpy(x).softmax(0).numpy()
    np.testing.assert_array_equal(np.isnan(got).any(0), np.arange(80) == 3)
    assert np.isnan(got[:, 3]).all()


@pytest.mark.parametrize("shape", [(300, 200), (7, 6, 5), (40_000,), (3, 50_000), (0, 4)])
def test_masks_and_places(shape):
    values = rng(*shape).standard_normal(shape).astype("f4")
    mask = rng(*shape, 1).random(shape) > 0.5
    t, k = taeda.from_numpy(values), taeda.from_numpy(mask)
    np.testing.assert_array_equal(t[k].numpy(), values[mask])
    np.testing.assert_array_equal(k.nonzero().numpy(), np.argwhere(mask))
    rows = rng(*shape, 2).random(shape[0]) > 0.5
    np.testing.assert_array_equal(t[taeda.from_numpy(rows)].numpy(), values[rows])


@pytest.mark.parametrize("dtype", ["i1", "i2", "i8", "f8", "c16"])
def test_masks_of_every_item_size(dtype):
    values = np.arange(5000).astype(dtype)
    mask = rng(2).random(5000) > 0.3
    np.testing.assert_array_equal(taeda.from_numpy(values)[taeda.from_numpy(mask)].numpy(), values[mask])


@pytest.mark.parametrize(
    ("shape", "dim"), [((300, 200), 0), ((300, 200), 1), ((40, 50, 30), 1), ((70_000,), 0)]
)
def test_gather_and_scatter_of_many_elements(shape, dim):
    values = rng(*shape).integers(-9, 9, shape).astype("f4")
    index = rng(*shape, 1).integers(0, shape[dim], shape)
    t, i = taeda.from_numpy(values), taeda.from_numpy(index)
    np.testing.assert_array_equal(t.gather(dim, i).numpy(), np.take_along_axis(values, index, dim))
    exact = np.zeros(shape, "f4")
    places = list(np.indices(shape))
    places[dim] = index
    np.add.at(exact, tuple(places), values)
    np.testing.assert_array_equal(taeda.zeros(*shape).scatter_add(dim, i, t).numpy(), exact)


@pytest.mark.parametrize("dtype", ["f4", "i4", "f2"])
@pytest.mark.parametrize(("shape", "dim", "k"), [((5, 1000), 1, 9), ((300, 7), 0, 20), ((4000,), 0, 256)])
@pytest.mark.parametrize("largest", [True, False])
def test_topk_of_long_rows(shape, dim, k, largest, dtype):
    values = rng(*shape, k).integers(-200, 200, shape).astype(dtype)  # with many ties
    if dtype != "i4":
        values[(3,) * len(shape)] = np.nan
    got, places = taeda.from_numpy(values).topk(k, dim, largest)
    ordered = np.sort(values, axis=dim)  # NaN last: it counts as the greatest
    ordered = np.flip(ordered, dim) if largest else ordered
    np.testing.assert_array_equal(got.numpy(), np.take(ordered, range(k), dim))
    np.testing.assert_array_equal(np.take_along_axis(values, places.numpy(), dim), got.numpy())
    index = np.moveaxis(places.numpy(), dim, -1).reshape(-1, k)
    assert all(len(set(row)) == k for row in index.tolist())


@pytest.mark.parametrize("dtype", ["?", "u1", "i1", "u8", "i8", "f2", "f4", "f8"])
@pytest.mark.parametrize(("n", "k"), [(1, 1), (9, 2), (33, 3), (700, 1), (700, 300), (9000, 7), (9000, 9000)])
@pytest.mark.parametrize("order", ["random", "rising", "falling", "equal"])
def test_topk_takes_the_first_of_equal_elements(n, k, order, dtype):
    kind = np.dtype(dtype).kind
    values = rng(n, k).integers(0 if kind in "u?" else -90, 2 if kind == "?" else 90, n)
    if kind in "ui" and order == "random":
        bounds = np.iinfo(dtype)
        values = rng(n, k).choice(np.array([bounds.min, bounds.max, 0, 1], dtype), n)
    values = {"rising": np.sort(values), "falling": np.sort(values)[::-1], "equal": values[:1].repeat(n)}.get(
        order, values
    )
    values = values.astype(dtype)
    if kind == "f" and order == "random":
        values[rng(n).random(n) < 0.2] = -0.0
        values[rng(n, 1).random(n) < 0.1] = np.nan
        values[rng(n, 2).random(n) < 0.1] = -np.inf
    both = taeda.from_numpy(np.stack([values, values], 1))
    for largest in (True, False):
        # Stable orders: by ranks, as NaN is the greatest and equal to itself.
        ranks = np.unique(values, return_inverse=True)[1]
        expected = np.argsort(-ranks if largest else ranks, kind="stable")[:k]
        for found, places in (
            both[:, 0].contiguous().topk(k, 0, largest),
            (t[:, 1] for t in both.topk(k, 0, largest)),
        ):
            assert places.tolist() == expected.tolist()
            np.testing.assert_array_equal(found.numpy(), values[expected])


@pytest.mark.parametrize(("shape", "dim"), [((300, 200), 0), ((300, 200), 1), ((40, 50, 30), 1)])
def test_gather_and_scatter_by_strided_indices(shape, dim):
    values = rng(*shape).integers(-9, 9, shape).astype("f4")
    index = rng(*shape, 3).integers(0, shape[dim], shape)
    t, i = taeda.from_numpy(values), taeda.from_numpy(index)
    other_layout = taeda.from_numpy(np.ascontiguousarray(index.T)).permute(tuple(range(len(shape)))[::-1])
    exact = np.zeros(shape, "f4")
    places = list(np.indices(shape))
    places[dim] = index
    np.add.at(exact, tuple(places), values)
    for chosen in (i, other_layout):
        expected = np.take_along_axis(values, index, dim)
        np.testing.assert_array_equal(t.gather(dim, chosen).numpy(), expected)
        np.testing.assert_array_equal(taeda.zeros(*shape).scatter_add(dim, chosen, t).numpy(), exact)


@pytest.mark.parametrize("bad", [400, -1, -401, 2**63 - 1, -(2**63)])
def test_a_bad_index_leaves_the_target_of_scatter_as_it_was(bad):
    index = np.zeros((400, 400), "i8")
    index[200, 17] = bad
    target = taeda.ones(400, 400)
    with pytest.raises(IndexError, match=rf"scatter_add.*{bad}"):
        target.scatter_add_(1, taeda.from_numpy(index), taeda.ones(400, 400))
    assert target.sum().item() == 160_000


def test_an_index_out_of_range_is_found_in_any_thread():
    index = np.zeros((400, 400), "i8")
    index[399, 399] = 400
    with pytest.raises(IndexError, match=r"gather.*400"):
        taeda.zeros(400, 400).gather(1, taeda.from_numpy(index))


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 1e-30, -1e-30, 3e38, -3e38, np.inf, -np.inf, np.nan]


def samples(dtype):
    random = rng(3)
    parts = [
        SPECIAL,
        random.uniform(-1, 1, 5000),
        random.normal(0, 10, 5000),
        np.exp(random.uniform(-60, 60, 5000)),
        1 - np.exp(random.uniform(-30, 0, 2000)),
    ]
    return np.concatenate(parts).astype(dtype)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("asin", np.arcsin),
        ("acos", np.arccos),
        ("atan", np.arctan),
        ("asinh", np.arcsinh),
        ("acosh", np.arccosh),
        ("atanh", np.arctanh),
    ],
)
def test_inverse_functions_to_the_last_places(name, reference, dtype):
    x = samples(dtype)
    with np.errstate(all="ignore"):
        exact = reference(x.astype(np.longdouble))
    # asin and acos of float32 are computed in float32; the others in double precision.
    bound = {"asin": 1.5, "acos": 1.5}.get(name, 1) if dtype == "f4" else 4
    assert ulps(getattr(taeda, name)(taeda.from_numpy(x)).numpy(), exact) < bound


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_exponentials_are_rounded_as_the_exact_ones_are_but_for_few(dtype):
    # Steps of schedules are found again by their exponentials, so a place too many or too few is seen by programs.
    x = rng(5).uniform(-80, 80, 20000).astype(dtype)
    got, exact = taeda.from_numpy(x).exp().numpy(), np.exp(x.astype(np.longdouble))
    assert ulps(got, exact) < 0.8
    assert np.mean(got != exact.astype(dtype)) < 0.04


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    ("name", "reference"), [("atan2", np.arctan2), ("hypot", np.hypot), ("fmod", np.fmod)]
)
def test_functions_of_two_numbers_to_the_last_places(name, reference, dtype):
    x = samples(dtype)
    a = np.concatenate([x, np.repeat(np.array(SPECIAL, dtype), len(SPECIAL))])
    b = np.concatenate([rng(4).permutation(x), np.tile(np.array(SPECIAL, dtype), len(SPECIAL))])
    with np.errstate(all="ignore"):
        exact = reference(a.astype(np.longdouble), b.astype(np.longdouble))
    got = getattr(taeda, name)(taeda.from_numpy(a), taeda.from_numpy(b)).numpy()
    assert ulps(got, exact) < (1 if dtype == "f4" else 4)
    zero = got == 0
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(exact[zero]))


def test_division_with_rest_follows_python():
    a = np.concatenate([rng(5).normal(0, 100, 3000), SPECIAL]).astype("f4")
    b = np.concatenate([rng(6).normal(0, 3, 3000), rng(7).permutation(SPECIAL)]).astype("f4")
    with np.errstate(all="ignore"):
        quotient, rest = np.floor_divide(a, b), np.remainder(a, b)
    x, y = taeda.from_numpy(a), taeda.from_numpy(b)
    usual = np.isfinite(a) & np.isfinite(b) & (b != 0)
    np.testing.assert_array_equal((x // y).numpy()[usual], quotient[usual])
    np.testing.assert_array_equal((x % y).numpy()[usual], rest[usual])
    with np.errstate(all="ignore"):
        unbounded = a / np.float32(0)
    np.testing.assert_array_equal((x // 0.0).numpy(), unbounded)
    np.testing.assert_array_equal((x % 0.0).numpy(), np.full_like(a, np.nan))


def test_gelu_keeps_its_left_tail():
    special = pytest.importorskip("scipy.special", reason="the exact tail comes from SciPy")
    x = np.linspace(-9, 9, 4001, dtype="f4")
    exact = x * special.ndtr(x.astype("f8"))
    np.testing.assert_allclose(taeda.ops.gelu(taeda.from_numpy(x)).numpy(), exact, rtol=5e-6, atol=1e-30)


@pytest.mark.parametrize("spread", [(-3, 3, 20), (-38, 38, 1), (-0.01, 0.01, 3000), (-44, -38, 0.9)])
def test_powers_are_right_to_one_unit(spread):
    low, high, most = spread
    base = (10 ** rng(1).uniform(low, high, 20_000)).astype("f4")
    exponent = rng(2).uniform(-most, most, 20_000).astype("f4")
    exact = np.power(base.astype("f8"), exponent.astype("f8"))
    normal = (exact < 3.4e38) & (exact > 1.2e-38)
    got = taeda.pow(taeda.from_numpy(base), taeda.from_numpy(exponent)).numpy()
    assert ulps(got[normal], exact[normal]) < 1


def test_powers_of_special_numbers():
    values = np.array([*SPECIAL, 3.0, -3.0, 1e-42, 16777217.0, -16777215.0, 1e20], "f4")
    a, b = map(np.ascontiguousarray, np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        expected = np.power(a.astype("f8"), b.astype("f8")).astype("f4")
    got = taeda.pow(taeda.from_numpy(a), taeda.from_numpy(b)).numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1.5e-45)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(expected[known]))


@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "i4", "u8", "i8", "f2", "f4", "f8"])
@pytest.mark.parametrize("n", [1, 2, 7, 24, 25, 100, 257, 513])
@pytest.mark.parametrize("rows", [3, 8, 21])
def test_sorted_rows_of_every_length(rows, n, dtype):
    kind = np.dtype(dtype).kind
    values = rng(rows, n).integers(0 if kind in "u?" else -n, 2 if kind == "?" else min(n, 100), (rows, n))
    values = values.astype(dtype)
    if kind in "ui":
        values[rng(rows, n, 1).random((rows, n)) < 0.1] = np.iinfo(dtype).max
        values[rng(rows, n, 2).random((rows, n)) < 0.1] = np.iinfo(dtype).min
    if kind == "f":
        values[rng(rows, n, 1).random((rows, n)) < 0.2] = -0.0
        values[rng(rows, n, 2).random((rows, n)) < 0.1] = np.nan
        values[rng(rows, n, 3).random((rows, n)) < 0.1] = -np.inf
    ranks = np.unique(values, return_inverse=True)[1].reshape(values.shape)
    for t, dim in ((taeda.from_numpy(values), 1), (taeda.from_numpy(values.T.copy()), 0)):
        for descending in (False, True):
            order = np.argsort(-ranks if descending else ranks, axis=1, kind="stable")
            got, places = t.sort(dim=dim, descending=descending, stable=True)
            if dim == 0:
                got, places = got.T, places.T
            np.testing.assert_array_equal(places.numpy(), order)
            np.testing.assert_array_equal(got.numpy(), np.take_along_axis(values, order, 1))
        order = np.argsort(ranks, axis=1, kind="stable")
        wanted = rng(rows, n, 4).integers(0, n, rows)
        found = taeda.ops.rank_indices(t, taeda.from_numpy(wanted).unsqueeze(dim), dim)
        assert found.squeeze(dim).tolist() == order[np.arange(rows), wanted].tolist()


def test_no_element_has_a_rank_in_rows_of_none():
    with pytest.raises(IndexError, match="rank_indices: argument 'rank'"):
        taeda.ops.rank_indices(taeda.zeros(8, 0), taeda.zeros(8, 1, dtype=taeda.int64), 1)


@pytest.mark.parametrize("dtype", ["?", "i2", "f4", "f8", "c16"])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 24, 25, 100])
def test_operands_that_are_broadcast_along_rows_of_every_length(n, dtype):
    draw = rng(n)
    x, part = (
        draw.integers(-9, 9, (40, 6, n)).astype(dtype),
        draw.integers(-9, 9, (40, 6, n + 3)).astype(dtype),
    )
    for shape in ((40, 6, 1), (40, 1, n), (1, 6, n), (40, 1, 1), (1, 1, n), (1, 6, 1)):
        y = draw.integers(-9, 9, shape).astype(dtype)
        t, u, v = taeda.from_numpy(x), taeda.from_numpy(y), taeda.from_numpy(part)[:, :, 3:]
        np.testing.assert_array_equal(taeda.where(u == 3, t, v).numpy(), np.where(y == 3, x, part[:, :, 3:]))
        np.testing.assert_array_equal(taeda.where(t == 3, u, v).numpy(), np.where(x == 3, y, part[:, :, 3:]))
        np.testing.assert_array_equal((t * u).numpy(), x * y)
        np.testing.assert_array_equal((u == v).numpy(), y == part[:, :, 3:])
        within, wanted = taeda.from_numpy(part.copy()), part.copy()
        within[:, :, :n].mul_(u)
        wanted[:, :, :n] *= y
        np.testing.assert_array_equal(within.numpy(), wanted)


@pytest.mark.parametrize("dtype", ["u1", "i8", "f4", "f8", "f2"])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 7, 8, 33, 300])
def test_columns_of_every_number_are_summed_and_scanned(n, dtype):
    x = rng(n, 1).integers(0, 3, (3, 70, n)).astype(dtype)  # sums are exact
    t = taeda.from_numpy(x)
    for axis in (0, 1):
        np.testing.assert_array_equal(
            t.cumsum(axis).numpy(), x.cumsum(axis, dtype=t.cumsum(axis).numpy().dtype)
        )
        np.testing.assert_array_equal(t.sum(axis).numpy(), x.sum(axis, dtype=t.sum(axis).numpy().dtype))
        np.testing.assert_array_equal(t.amax(axis).numpy(), x.max(axis))
        single = t.narrow(axis, 1, 1)
        for name in ("sum", "amax", "any"):
            wanted = getattr(np, name)(single.numpy(), axis=axis)
            np.testing.assert_array_equal(getattr(single, name)(axis).numpy(), wanted)
