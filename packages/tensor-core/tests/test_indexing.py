"""Indexing and assignment against NumPy."""

import collections

import numpy as np
import pytest

import taeda_tensor_core as taeda

BASIC = [
    0,
    -1,
    slice(None),
    slice(1, 3),
    slice(None, None, -1),
    slice(3, 0, -2),
    slice(5, 2),
    slice(-100, 100, 3),
    slice(None, None, 2**63 - 1),
    slice(None, None, -(2**63 - 1)),
    (0, slice(1, None, 2**62)),
    None,
    ...,
    (),
    (0,),
    (0, 1),
    (slice(1), 2),
    (..., 0),
    (0, ...),
    (..., slice(None, None, -1)),
    (None, 0),
    (0, None),
    (slice(None), None, 1),
    (1, 2, 3),
    (..., None),
    (0, ..., 1),
    (slice(None, None, 2), slice(None, None, -1), slice(1, 2)),
    np.int64(1),
    (np.int8(1), 0),
]
ADVANCED = [
    [0, 2],
    [[0, 1], [2, 0]],
    ([0, 2], [1, 1]),
    (slice(None), [3, 0, 3]),
    ([0, 1], slice(1, 3)),
    (0, [1, 2]),
    ([1, 2], 0),
    (0, slice(None), [1, 2]),
    (slice(None), [1], [2, 3]),
    ([0], slice(None), [1, 2, 3]),
    (..., [0, 1]),
    (None, [0, 1]),
    ([0, 1], None, [2, 3]),
    True,
    False,
    (True, 0),
    ([],),
    (slice(None, None, -1), [0, 1]),
    ([-1, -3],),
    ([[0], [1]], [[1, 2]]),
    (0, [0, 1], slice(None, None, -1)),
    np.array([1, 0]),
    np.array(1),
]


def arrays():
    array = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    return array.copy(), taeda.from_numpy(array)


def as_key(key):
    """The key with lists as tensors of ours."""
    if isinstance(key, tuple):
        return tuple(as_key(k) for k in key)
    return taeda.tensor(key, dtype=taeda.int64) if isinstance(key, list) else key


def numbers_first(array, key):
    """NumPy's array without the dimensions that numbers take away, and the rest of the key.

    NumPy counts numbers beside index arrays as such; PyTorch takes their dimensions away first.
    """
    keys = key if isinstance(key, tuple) else (key,)
    first = []
    for item in keys:
        masked = isinstance(item, np.ndarray) and item.dtype == bool
        if item is not None:
            kept = item is Ellipsis or isinstance(item, int)
            first += [item] if kept else [slice(None)] * (item.ndim if masked else 1)
    end = () if any(item is Ellipsis for item in first) else (...,)
    return array[(*first, *end)], tuple(item for item in keys if not isinstance(item, int))


@pytest.mark.parametrize("key", BASIC, ids=str)
def test_basic_is_a_view(key):
    expected, t = arrays()
    found = t[key]
    assert found.shape == expected[key].shape and np.array_equal(found.numpy(), expected[key])
    if found.numel():
        found.fill_(-1)
        expected[key] = -1
        assert np.array_equal(t.numpy(), expected)


@pytest.mark.parametrize("key", ADVANCED, ids=str)
@pytest.mark.parametrize("tensors", [False, True], ids=["lists", "tensors"])
def test_advanced_is_a_copy(key, tensors):
    expected, t = arrays()
    reference = np.array(key, dtype=np.int64) if isinstance(key, list) else key
    if not tensors and isinstance(key, list) and isinstance(key[0], list):
        reference = tuple(key)  # as PyTorch has it
    if isinstance(key, tuple):
        reference = tuple(np.array(k, dtype=np.int64) if isinstance(k, list) else k for k in key)
    mine = as_key(key) if tensors else key
    found = t[mine]
    there, rest = numbers_first(expected, reference)
    assert found.shape == there[rest].shape and np.array_equal(found.numpy(), there[rest])
    value = np.arange(found.numel(), dtype=np.float32).reshape(found.shape)
    there[rest] = value
    t[mine] = taeda.from_numpy(value)
    assert np.array_equal(t.numpy(), expected)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_masks(dims):
    expected, t = arrays()
    mask = np.random.default_rng(dims).random(expected.shape[:dims]) < 0.5
    assert np.array_equal(t[taeda.from_numpy(mask)].numpy(), expected[mask])
    assert np.array_equal(t[mask].numpy(), expected[mask])
    t[mask] = 0
    expected[mask] = 0
    assert np.array_equal(t.numpy(), expected)


def test_mask_beside_others():
    expected, t = arrays()
    mask = np.array([True, False, True, True])
    for key in [
        (slice(None), mask),
        (0, mask),
        (..., mask, slice(1, 3)),
        (slice(None), mask, 2),
        (mask[:3],),
    ]:
        assert np.array_equal(t[key].numpy(), expected[key]), key


def test_assignment_broadcasts_and_converts():
    expected, t = arrays()
    for key, value in [
        (0, 1.5),
        ((slice(None), 1), np.arange(5)),
        (..., 2),
        ((0, 0), np.arange(5.0)[None, None]),
        (slice(0, 2), [1, 2, 3, 4, 5]),
    ]:
        t[key] = value if not isinstance(value, np.ndarray) else taeda.tensor(value)
        expected[key] = value
        assert np.array_equal(t.numpy(), expected)
    ints = taeda.zeros(3, dtype=taeda.int64)
    ints[1] = 2.7
    assert ints.tolist() == [0, 2, 0]


def test_assignment_from_overlapping_view():
    t = taeda.arange(5)
    t[1:] = t[:-1]
    assert t.tolist() == [0, 0, 1, 2, 3]
    t[...] = t[::-1]
    assert t.tolist() == [3, 2, 1, 0, 0]


def test_zero_dimensional():
    t = taeda.tensor(3.0)
    assert t[()].item() == 3 and t[...].item() == 3 and t[None].shape == (1,)
    assert t[True].tolist() == [3.0] and t[False].shape == (0,)
    t[()] = 4
    t[...] += 1
    assert t.item() == 5


@pytest.mark.parametrize(
    ("key", "error", "text"),
    [
        (3, IndexError, "index 3 is out of bounds for dimension 0 with size 3"),
        (-4, IndexError, "-4 is out of bounds"),
        ((0, 4), IndexError, "4 is out of bounds for dimension 1 with size 4"),
        ((0, 0, 0, 0), IndexError, "too many indices for tensor of dimension 3.*found 4"),
        (1.5, IndexError, "expected int, slice.*found float"),
        ("a", TypeError, "found str"),
        ([0.5j], IndexError, "integer or bool dtype"),
        (np.float64(1), IndexError, "integer or bool dtype"),
        (taeda.tensor([1.0]), IndexError, "integer or bool dtype"),
        ([5], IndexError, "5"),
        (slice(None, None, 0), ValueError, "zero"),
        (slice("a", None), TypeError, "slice"),
        (np.zeros((2, 4), bool), IndexError, "mask"),
    ],
    ids=str,
)
def test_errors(key, error, text):
    expected, t = arrays()
    with pytest.raises(error, match=text):
        t[key]
    with pytest.raises(error, match=text):
        t[key] = 0
    assert np.array_equal(t.numpy(), expected)


def test_assignment_errors():
    t = taeda.zeros(2, 3)
    with pytest.raises(RuntimeError, match=r"\(2,\)"):
        t[0] = taeda.ones(2)
    with pytest.raises(RuntimeError, match=r"\(4,\)"):
        t[[0, 1]] = taeda.ones(4)
    with pytest.raises(TypeError):
        t[0] = "a"
    with pytest.raises(TypeError, match="deleted"):
        del t[0]
    assert t.tolist() == [[0, 0, 0], [0, 0, 0]]


def test_random_keys():
    rng = np.random.default_rng(20)
    for trial in range(300):
        shape = tuple(rng.integers(0, 5, size=rng.integers(1, 5)))
        array = rng.integers(0, 100, size=shape)
        t = taeda.from_numpy(array.copy())
        key = []
        for size in shape[: rng.integers(0, len(shape) + 1)]:
            kind = rng.integers(0, 5)
            if kind == 0 and size:
                key.append(int(rng.integers(-size, size)))
            elif kind == 1:
                bounds = [None if rng.random() < 0.3 else int(rng.integers(-6, 7)) for _ in range(2)]
                key.append(slice(*bounds, int(rng.choice([-3, -2, -1, 1, 2, 3]))))
            elif kind == 2 and size:
                key.append(rng.integers(-size, size, size=2))
            elif kind == 3:
                key.append(rng.random(size) < 0.5)
            else:
                key.append(slice(None))
            if rng.random() < 0.15:
                key.append(None)
        key = tuple(key)
        try:
            there, rest = numbers_first(array, key)
            expected = there[rest]
        except IndexError:
            with pytest.raises((IndexError, RuntimeError)):
                t[key]
            continue
        found = t[key]
        assert found.shape == expected.shape and np.array_equal(found.numpy(), expected), (trial, shape, key)
        t[key] = -1
        there[rest] = -1
        assert np.array_equal(t.numpy(), array), (trial, shape, key)


def test_values_may_have_leading_dimensions_of_one():
    t = taeda.zeros(4, 3)
    t[[0, 1]] = taeda.ones(1, 2, 3)
    t[:, [1]] = taeda.full((1, 1, 4, 1), 5.0)
    assert t.tolist() == [[1, 5, 1], [1, 5, 1], [0, 5, 0], [0, 5, 0]]
    t[t == 0] = taeda.full((1, 4), 2.0)
    t[t == 5] = [[7.0, 8.0, 9.0, 10.0]]
    assert t.tolist() == [[1, 7, 1], [1, 8, 1], [2, 9, 2], [2, 10, 2]]
    with pytest.raises(RuntimeError, match="index_put_: "):
        t[[0, 1]] = taeda.ones(2, 2, 3)


@pytest.mark.parametrize(
    "key",
    [
        ([0, 1],),
        (slice(None), [[0, 2], [1, 1]]),
        ([0, 1], slice(None), [1, 0]),
        (1, [1, 0]),
        (slice(1, 3), [1, 0], [0, 3]),
        (None, [3]),
    ],
    ids=str,
)
def test_shapes_on_meta_are_those_on_cpu(key):
    t = taeda.zeros(4, 3, 5)
    shown = t.to("meta")
    assert shown[key].shape == t[key].shape and shown[key].device.type == "meta"
    shown[key] = taeda.ones(5, device="meta") if t[key].shape[-1] == 5 else 1.0
    with pytest.raises(RuntimeError, match="index_put_: "):
        shown[key] = taeda.ones(7, device="meta")


def test_masks_on_meta():
    with pytest.raises(NotImplementedError, match=r"index: a mask of dtype bool .* not known on meta"):
        taeda.zeros(3, device="meta")[taeda.ones(3, dtype=taeda.bool)]


def test_masks_on_meta_name_places_to_write():
    shown = taeda.zeros(3, 4, device="meta")
    rows, elements = shown[:, 0] > 0, shown > 0
    shown[elements] = 1.0
    shown[rows] = taeda.ones(4, device="meta")
    shown[elements] = taeda.ones(5, device="meta")  # as many as the mask may pick
    assert shown.index_put((rows,), taeda.ones(2, 4, device="meta")).shape == (3, 4)
    with pytest.raises(IndexError, match="mask of shape"):
        shown[shown[0] > 0] = 1.0


def test_tensors_without_dimensions_have_one_element_along_dimension_0():
    number, twice = taeda.tensor(7.0), taeda.tensor([0, 0])
    assert taeda.index_fill(number, 0, twice, 3.0).tolist() == 3.0
    assert taeda.index_add(number, 0, twice, taeda.tensor([1.0, 2.0])).tolist() == 10.0
    assert taeda.index_select(number, 0, taeda.tensor([0])).tolist() == 7.0
    assert taeda.repeat_interleave(number, 2, 0).tolist() == [7.0, 7.0]
    assert taeda.movedim(number, 0, -1).tolist() == 7.0
    assert taeda.scatter(taeda.zeros(3), 0, taeda.tensor([2]), number).tolist() == [0.0, 0.0, 7.0]


@pytest.mark.parametrize("shape", [(3, 4), (4, 3)])
def test_many_addends_into_a_tensor_of_another_layout(shape):
    """They are summed beside the result, which lies otherwise than what is beside it."""
    rng = np.random.default_rng(5)
    rows, columns = rng.integers(-shape[0], shape[0], 500), rng.integers(-shape[1], shape[1], 500)
    values = rng.random(500).astype(np.float32)
    expected = np.ones(shape)
    np.add.at(expected, (rows, columns), values)
    for x in (taeda.ones(shape), taeda.ones(shape[::-1]).t(), taeda.ones(shape[0], 2 * shape[1])[:, ::2]):
        x.index_put_(
            (taeda.from_numpy(rows), taeda.from_numpy(columns)), taeda.from_numpy(values), accumulate=True
        )
        np.testing.assert_allclose(x.numpy(), expected, rtol=1e-6)


def test_numbers_take_their_dimensions_away_first():
    t = taeda.arange(24).reshape(2, 3, 4)
    places = taeda.tensor([2, 0])
    assert t[0, :, places].shape == (3, 2) and t[0, :, places].equal(t[0][:, places])
    assert t[:, 1, [0, 3, 3]].tolist() == [[4, 7, 7], [16, 19, 19]]
    assert taeda.arange(120).reshape(2, 3, 4, 5)[:, 0, :, places].shape == (2, 4, 2)
    assert t[taeda.tensor(1), :, places].equal(t[1][:, places])
    t[0, :, places] = taeda.zeros(3, 2, dtype=taeda.int64)
    assert t[0].tolist() == [[0, 1, 0, 3], [0, 5, 0, 7], [0, 9, 0, 11]]
    with pytest.raises(IndexError):
        t[2, :, places]


def test_sizes_of_one_element():
    pair = [taeda.tensor([3]), taeda.tensor(2)]
    assert taeda.zeros(pair).shape == (3, 2) and taeda.zeros(6).view(*pair).shape == (3, 2)
    with pytest.raises(TypeError):
        taeda.zeros([taeda.tensor([3, 2]), 1])
    with pytest.raises(TypeError):
        taeda.zeros([taeda.tensor([3.0]), 1])
    assert [part.shape[0] for part in taeda.ones(5).split(split_size=[3, 2])] == [3, 2]
    assert [part.shape[0] for part in taeda.split(tensor=taeda.ones(5), split_size_or_sections=2)] == [
        2,
        2,
        1,
    ]


def test_lists_that_hold_more_than_numbers_are_tuples():
    t = taeda.arange(12).reshape(3, 4)
    assert (
        t[[slice(None), 1]].equal(t[:, 1]) and t[[..., 0]].equal(t[:, 0]) and t[[None, 0]].equal(t[None, 0])
    )
    assert t[[[0, 1], [1, 0]]].tolist() == [1, 4]
    assert t[[taeda.tensor([0, 1]), taeda.tensor([1, 2])]].tolist() == [1, 6]
    assert t[[0, 1]].shape == (2, 4) and t[[True, False, True]].shape == (2, 4)
    t[[slice(1, None), 0]] = -1
    assert t[:, 0].tolist() == [0, -1, -1]


def test_seeds_are_read_as_ints():
    assert taeda.manual_seed(3.7).initial_seed() == 3
    with pytest.raises(TypeError):
        taeda.manual_seed([1])


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("places", [[0, 0, *range(9), 8, 8], [3, 1, 0, 8, 2, 2, 7], list(range(9))])
def test_runs_of_places(dim, places):
    """Places side by side are moved and summed together, others one by one: the same elements."""
    rng = np.random.default_rng(5)
    a = rng.integers(-9, 9, (9, 9, 9)).astype("float32")
    index, added = np.array(places), rng.integers(-9, 9, np.take(a, places, dim).shape).astype("float32")
    t, at = taeda.from_numpy(a), taeda.from_numpy(index)
    assert np.array_equal(t.index_select(dim, at).numpy(), np.take(a, index, dim))
    before = (slice(None),) * dim
    assert np.array_equal(t[(*before, at)].numpy(), np.take(a, index, dim))
    for source in (added, np.broadcast_to(added[:1, :1, :1], added.shape)):
        expected = a.copy()
        np.add.at(expected, (*before, index), source)
        assert np.array_equal(t.index_add(dim, at, taeda.from_numpy(source.copy())).numpy(), expected)
        changed = t.clone()
        changed.index_put_([None] * dim + [at], taeda.from_numpy(source.copy()), accumulate=True)
        assert np.array_equal(changed.numpy(), expected)


@pytest.mark.parametrize("dtype", [taeda.float16, taeda.bfloat16])
def test_a_few_slices_of_16_bits_are_added_with_one_rounding(dtype: taeda.dtype) -> None:
    random = np.random.default_rng(5)
    for dim, turned in ((0, False), (1, False), (1, True)):
        base = taeda.from_numpy(random.standard_normal((40, 64)).astype("float32")).to(dtype)
        base = base.t().contiguous().t() if turned else base
        at = [7, 3, 7, 7, 0, 3]
        sizes = (len(at), 64) if dim == 0 else (40, len(at))
        source = taeda.from_numpy(random.standard_normal(sizes).astype("float32")).to(dtype)
        expected = base.double().numpy().copy()
        np.add.at(expected, at if dim == 0 else (slice(None), at), 0.5 * source.double().numpy())
        rounded = taeda.from_numpy(expected).to(dtype)
        before = base.clone()
        assert taeda.equal(base.index_add(dim, taeda.tensor(at), source, alpha=0.5), rounded)
        assert taeda.equal(base, before)
        with pytest.raises(IndexError):
            base.index_add_(dim, taeda.tensor([64]), source.narrow(dim, 0, 1))
        assert taeda.equal(base, before)
        base.index_add_(dim, taeda.tensor(at), source, alpha=0.5)
        assert taeda.equal(base, rounded)


@pytest.mark.parametrize(
    "call",
    [
        lambda t, i, s: t.scatter(0, i, s),
        lambda t, i, s: t.scatter(0, i, 1.0),
        lambda t, i, s: t.scatter_add(0, i, s),
        lambda t, i, s: t.scatter_reduce(0, i, s, "amax"),
        lambda t, i, s: t.index_add(0, i[0], s[:1].expand(2, 3)),
        lambda t, i, s: t.index_copy(0, i[0], s[:1].expand(2, 3)),
        lambda t, i, s: t.index_reduce(0, i[0], s[:1].expand(2, 3), "amin"),
        lambda t, i, s: t.index_fill(0, i[0], 1.0),
    ],
)
def test_nothing_is_written_into_a_dimension_without_places(call):
    places, source = taeda.zeros(1, 2, dtype=taeda.int64), taeda.ones(1, 3)
    with pytest.raises(IndexError, match="every index is out of bounds for dimension 0 with size 0"):
        call(taeda.zeros(0, 3), places, source)


def test_places_of_all_elements_are_integers():
    t = taeda.arange(6.0).reshape(2, 3)
    for wrong in (taeda.tensor([1.0]), taeda.tensor([True])):
        for call in (
            lambda i: t.take(i),
            lambda i: t.put(i, taeda.ones(1)),
            lambda i: t.put_(i, taeda.ones(1)),
        ):
            with pytest.raises(RuntimeError, match="'index' must have dtype int64 or another of integers"):
                call(wrong)
    assert t.take(taeda.tensor([5, 0])).tolist() == [5, 0] and t.flatten().tolist() == [0, 1, 2, 3, 4, 5]


def test_sequences_without_an_item_choose_nothing():
    x = taeda.arange(6).reshape(2, 3)
    for key in ([], (), range(0), collections.deque(), np.array([], dtype=np.int64)):
        assert x[[]].shape == x[key,].shape == (0, 3) and x[:, key].shape == (2, 0)
        y = x.clone()
        y[key,] = 7
        y[:, key] += 1
        assert y.equal(x)


def test_lists_and_arrays_of_floating_numbers_are_places():
    """As PyTorch reads them: what NumPy joined with an empty array is floating."""
    a = np.arange(12).reshape(3, 4)
    x = taeda.from_numpy(a.copy())
    joined = np.concatenate([np.array([]), np.array([2, 0])])
    for key in (joined, joined.astype("float32"), [2.0, 0.0], (2.0, 0.9)):
        assert np.array_equal(x[list(key) if isinstance(key, tuple) else key], a[[2, 0]])
        assert np.array_equal(x[:, np.asarray(key)], a[:, [2, 0]])
    assert np.array_equal(x[np.array(1.0)], a[1])
    assert x[np.array([])].shape == (0, 4)
    x[joined] = -1
    assert x[:, 0].tolist() == [-1, 4, -1]


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("name", ["prod", "mean", "amax", "amin"])
@pytest.mark.parametrize(("shape", "dim"), [((5, 400), 0), ((4, 6, 300), 1)])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_slices_that_meet_in_a_place(shape, dim, name, include_self, dtype):
    rng = np.random.default_rng(3)
    places = np.array([1, 3, 1, 0, 1])
    x = rng.integers(-4, 5, shape).astype(dtype)
    source = rng.integers(-4, 5, [5 if d == dim else n for d, n in enumerate(shape)]).astype(dtype)
    if dtype == "float32":
        source[0] = np.nan
    combine = {"prod": np.prod, "mean": np.mean, "amax": np.max, "amin": np.min}[name]
    exact, own, given = x.copy(), np.moveaxis(x, dim, 0), np.moveaxis(source, dim, 0)
    for place in set(places):
        met = [*([own[place]] if include_self else []), *given[places == place]]
        found = combine(np.stack(met), axis=0)
        np.moveaxis(exact, dim, 0)[place] = np.floor(found) if dtype == "int64" else found
    index = taeda.tensor(places)
    found = taeda.tensor(x).index_reduce(dim, index, taeda.tensor(source), name, include_self=include_self)
    np.testing.assert_allclose(found.numpy(), exact, rtol=1e-6)


def test_places_that_are_written_over():
    # The index is what is written to.
    for size in (7, 5000):
        z = taeda.arange(size).flip(0).contiguous()
        z[z] = taeda.arange(size) * 2
        assert z.tolist() == [2 * i for i in reversed(range(size))]
        both = taeda.arange(2 * size)
        both.index_put_((both[:size],), both[size:])
        assert both[:size].tolist() == list(range(size, 2 * size))


@pytest.mark.parametrize("size", [3, 5000])
def test_one_bad_place_among_many_changes_nothing(size):
    x, places = taeda.arange(size), taeda.arange(size)
    for bad in (size, -size - 1):
        places[size - 2] = bad
        with pytest.raises(IndexError, match=str(bad)):
            x.put_(places, taeda.zeros(size, dtype=taeda.int64))
        with pytest.raises(IndexError, match=str(bad)):
            x.take(places)
        assert x.tolist() == list(range(size))
    places[size - 2] = -size
    assert x.take(places).tolist() == [*range(size - 2), 0, size - 1]


def test_of_several_ellipses_the_first_stands_for_dimensions():
    """As in PyTorch; NumPy refuses them."""
    x = taeda.arange(24.0).reshape(2, 3, 4)
    assert x[..., ...].tolist() == x.tolist() and x[..., 0, ...].tolist() == x[:, :, 0].tolist()
    assert x[..., None, ...].shape == (2, 3, 4, 1) and x[0, ..., ..., 1].tolist() == x[0, :, 1].tolist()
    x[..., 0, ...] = 5.0
    assert (x[:, :, 0] == 5).all() and (x[:, :, 1] != 5).any()


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int32", "int64"])
@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("include_self", [True, False])
def test_slices_that_meet(reduce, dtype, dim, include_self):
    """An index that is spread to whole slices, as sums over a graph's edges use it, against NumPy slice by slice."""
    rng = np.random.default_rng(dim)
    kind = getattr(taeda, dtype)
    rounding = {"float16": 2.0**-11, "bfloat16": 2.0**-8}.get(dtype, 1e-6)
    exact = "float64" if "float" in dtype else dtype
    sizes, count = [4, 5, 9], 23
    target = rng.integers(-3, 4, sizes).astype(exact)
    sizes[dim] = count
    source = rng.integers(-3, 4, sizes).astype(exact)
    if "float" in dtype:
        source.flat[::37] = np.nan
    places = rng.integers(0, target.shape[dim], count)
    expected = np.moveaxis(target.copy(), dim, 0)
    joined = {"sum": np.add, "mean": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}[
        reduce
    ]
    for place in range(expected.shape[0]):
        slices = [np.moveaxis(source, dim, 0)[i] for i in np.flatnonzero(places == place)]
        slices = ([expected[place].copy()] if include_self or not slices else []) + slices
        made = joined.reduce(slices, axis=0)
        if reduce == "mean":
            made = made // len(slices) if "int" in dtype else made / len(slices)
        expected[place] = made
    shape = [1, 1, 1]
    shape[dim] = count
    index = taeda.tensor(places).reshape(shape).expand(*source.shape)
    for given in (taeda.tensor(source), taeda.tensor(source.T.copy()).permute(2, 1, 0)):
        found = (
            taeda.tensor(target)
            .to(kind)
            .scatter_reduce(dim, index, given.to(kind), reduce, include_self=include_self)
        )
        assert found.dtype == kind
        np.testing.assert_allclose(
            found.to(getattr(taeda, exact)).numpy(), np.moveaxis(expected, 0, dim), rtol=rounding
        )


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "int8", "bool", "complex64"])
@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("turned", [False, True])
def test_an_index_that_is_spread_to_whole_slices(dtype, dim, turned):
    """gather, scatter and scatter_add against NumPy, whose index is written out."""
    rng = np.random.default_rng(dim)
    kind = getattr(taeda, dtype)
    sizes, count = [4, 5, 9], 23

    def tensor(shape):
        numbers = taeda.tensor(rng.integers(0, 2 if dtype == "bool" else 3, shape)).to(kind)
        return numbers.permute(2, 1, 0).contiguous().permute(2, 1, 0) if turned else numbers

    def exact(x):
        return x.to(taeda.float64 if x.is_floating_point() else x.dtype).numpy()

    target = tensor(sizes)
    places = rng.integers(0, sizes[dim], count)
    sizes[dim] = count
    source = tensor(sizes)
    index = taeda.tensor(places).reshape([count if d == dim else 1 for d in range(3)]).expand(sizes)

    assert np.array_equal(exact(target.gather(dim, index)), np.take(exact(target), places, dim))
    assigned, added = exact(target).copy(), exact(target).copy()
    for i, place in enumerate(places):
        one = np.moveaxis(exact(source), dim, 0)[i]
        np.moveaxis(assigned, dim, 0)[place] = one
        np.moveaxis(added, dim, 0)[place] += one
    assert np.array_equal(exact(target.scatter(dim, index, source)), assigned)
    assert np.array_equal(exact(target.scatter_add(dim, index, source)), added)
    filled = target.scatter(dim, index, 1)
    assert np.array_equal(exact(filled), exact(target.index_fill(dim, taeda.tensor(places), 1)))

    before = target.clone()
    spread = taeda.tensor([*places[:-1], target.shape[dim]])
    spread = spread.reshape([count if d == dim else 1 for d in range(3)]).expand(sizes)
    for wrong in (spread, spread.clone()):
        with pytest.raises(IndexError, match="gather"):
            target.gather(dim, wrong)
        with pytest.raises(IndexError, match="scatter_add"):
            target.scatter_add_(dim, wrong, source)
        with pytest.raises(IndexError, match="scatter"):
            target.scatter_(dim, wrong, source)
        assert np.array_equal(exact(target), exact(before))


def test_nothing_is_gathered_by_an_empty_index_of_any_dtype():
    for dtype in (taeda.float32, taeda.bool, taeda.int32, taeda.int64):
        made = taeda.ones(3, 4).gather(0, taeda.empty(0, 4, dtype=dtype))
        assert made.shape == (0, 4) and made.dtype == taeda.float32
    with pytest.raises(IndexError, match="integer dtype, got float32"):
        taeda.ones(3, 4).gather(0, taeda.zeros(1, 4))


def test_new_dimensions_of_size_1_have_the_strides_that_unsqueeze_gives():
    x = taeda.arange(6.0).reshape(2, 3)
    assert x.expand(1, 1, 2, 3).stride() == x.unsqueeze(0).unsqueeze(0).stride() == (6, 6, 3, 1)
    assert x.expand(1, 4, 2, 3).stride() == (0, 0, 3, 1) and x[:1].expand(1, 5, 3).stride() == (0, 0, 1)
    assert taeda.ones(()).expand(1, 1).stride() == (0, 0)


@pytest.mark.parametrize("n", [1, 7, 1025, 70_001])
def test_masks_of_any_bytes_choose_what_is_not_zero(n):
    """What is read as bool may hold bytes other than 0 and 1, which say how much is written."""
    random = np.random.default_rng(n)
    raw = (random.integers(0, 256, n) * (random.random(n) < 0.6)).astype(np.uint8)
    mask, there = taeda.tensor(raw).view(taeda.bool), np.nonzero(raw)[0]
    assert np.array_equal(mask.nonzero().flatten().numpy(), there)
    assert np.array_equal(taeda.where(mask)[0].numpy(), there)
    for dtype in (taeda.int8, taeda.int16, taeda.int32, taeda.int64, taeda.complex128):
        values = taeda.arange(n).to(dtype)
        assert np.array_equal(values[mask].numpy(), values.numpy()[there])
    rows = taeda.arange(3 * n).reshape(n, 3)
    assert np.array_equal(rows[mask].numpy(), rows.numpy()[there])
    assert np.array_equal(taeda.masked_select(taeda.arange(n), mask).numpy(), there)
    changed = taeda.arange(n)
    changed[mask] = -1
    assert (changed == -1).sum().item() == len(there) and (changed.numpy()[there] == -1).all()


@pytest.mark.parametrize("n", [3, 64, 1_001, 20_000])
def test_truth_of_any_bytes_counts_and_chooses_as_true(n):
    random = np.random.default_rng(n)
    raw = (random.integers(0, 256, n) * (random.random(n) < 0.6)).astype(np.uint8)
    mask, truth = taeda.tensor(raw).view(taeda.bool), raw != 0
    for dtype in (
        "uint8",
        "int8",
        "int32",
        "int64",
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "complex64",
    ):
        assert taeda.equal(mask.to(getattr(taeda, dtype)), taeda.tensor(truth).to(getattr(taeda, dtype)))
    assert mask.sum().item() == taeda.count_nonzero(mask).item() == truth.sum()
    for dtype in (taeda.uint8, taeda.float16, taeda.float32, taeda.float64, taeda.complex128):
        a, b = taeda.ones(n, dtype=dtype) * 5, taeda.ones(n, dtype=dtype) * 3
        assert np.array_equal(taeda.where(mask, a, b).numpy(), np.where(truth, a.numpy(), b.numpy()))
        assert np.array_equal(taeda.where(mask, 5, b).numpy(), np.where(truth, a.numpy(), b.numpy()))
    assert np.array_equal(
        taeda.zeros(n).masked_fill(mask, 2).numpy(), np.where(truth, 2, 0).astype(np.float32)
    )


@pytest.mark.parametrize(
    ("name", "exact"),
    [
        ("eq", np.equal),
        ("ne", np.not_equal),
        ("lt", lambda a, b: ~a & b),
        ("le", lambda a, b: ~a | b),
        ("bitwise_and", np.logical_and),
        ("bitwise_or", np.logical_or),
        ("bitwise_xor", np.logical_xor),
        ("logical_and", np.logical_and),
        ("logical_xor", np.logical_xor),
        ("mul", np.logical_and),
        ("add", np.logical_or),
        ("maximum", np.logical_or),
        ("minimum", np.logical_and),
    ],
)
@pytest.mark.parametrize("n", [1, 7, 64, 1_001])
def test_truth_of_any_bytes_is_compared_as_truth(name, exact, n):
    random = np.random.default_rng(n)
    raw = random.integers(0, 4, (2, n)).astype(np.uint8)
    first, second = (taeda.tensor(part).view(taeda.bool) for part in raw)
    a, b = raw != 0
    call = getattr(taeda, name)
    assert np.array_equal(call(first, second).numpy(), exact(a, b))
    assert np.array_equal(call(first[::2], second[::2]).numpy(), exact(a, b)[::2])
    assert np.array_equal(call(first[:, None], second).numpy(), exact(a[:, None], b))
    assert np.array_equal(call(first, second[0]).numpy(), exact(a, b[0]))


def test_truth_of_any_bytes_has_two_values():
    raw = np.array([3, 0, 1, 2, 0, 0, 255], np.uint8)
    mask = taeda.tensor(raw).view(taeda.bool)
    assert taeda.unique(mask).tolist() == [False, True]
    assert taeda.unique_consecutive(mask).tolist() == [True, False, True, False, True]
    assert mask.sort().values.tolist() == [False] * 3 + [True] * 4
    assert taeda.equal(mask, taeda.tensor(raw != 0))


@pytest.mark.parametrize(
    "own, other", [("float32", "float64"), ("int64", "float32"), ("float32", "complex64")]
)
def test_what_is_put_has_the_dtype_of_its_place(own, other):
    x, places = taeda.zeros(3, dtype=getattr(taeda, own)), taeda.tensor([0, 2])
    values = taeda.ones(2, dtype=getattr(taeda, other))
    for call in (
        lambda: x.index_put_((places,), values),
        lambda: x.index_put((places,), values[0]),
        lambda: x.__setitem__(places, values),
        lambda: x.__setitem__(taeda.tensor([True, False, True]), values),
    ):
        with pytest.raises(RuntimeError, match=f"'values' has dtype {other}, expected {own}"):
            call()
    assert x.tolist() == [0, 0, 0]


def test_numbers_and_arrays_are_put_in_any_dtype():
    x, places, mask = taeda.zeros(3), taeda.tensor([0, 2]), taeda.tensor([False, True, False])
    x[places] = 2
    x[mask] = taeda.tensor([7])
    assert x.tolist() == [2.0, 7.0, 2.0]
    x[places] = np.array([3.0, 4.0])
    x[mask] = taeda.tensor(0.5, dtype=taeda.float64)
    assert x.tolist() == [3.0, 0.5, 4.0]
    with pytest.raises(RuntimeError, match="complex64"):
        x[mask] = taeda.tensor(1j)


@pytest.mark.parametrize("index", ["a", b"a", ["a"], (0, "a"), ("a",)])
def test_text_is_no_index(index):
    x = taeda.zeros(2, 2)
    with pytest.raises(TypeError, match="expected int, slice"):
        x[index]
    with pytest.raises(TypeError, match="expected int, slice"):
        x[index] = 1
    assert x.tolist() == [[0, 0], [0, 0]]


def test_bytes_are_masks_where_index_tensors_are_listed():
    a, mask = np.arange(12.0).reshape(3, 4), np.array([1, 0, 1], "uint8")
    x, m = taeda.from_numpy(a), taeda.from_numpy(mask)
    chosen = mask.astype(bool)
    np.testing.assert_array_equal(taeda.ops.index(x, [m]).numpy(), a[chosen])
    np.testing.assert_array_equal(taeda.ops.index(x, [m, taeda.tensor([3])]).numpy(), a[chosen, 3])
    put, expected = x.clone(), a.copy()
    put.index_put_((m, taeda.tensor([1])), taeda.tensor(7.0, dtype=taeda.float64))
    expected[chosen, 1] = 7
    np.testing.assert_array_equal(put.numpy(), expected)
    put.index_put_((m,), taeda.from_numpy(a[:2]), accumulate=True)
    expected[chosen] += a[:2]
    np.testing.assert_array_equal(put.numpy(), expected)
    with pytest.raises(IndexError, match="does not match"):
        taeda.ops.index(x, [m[:2]])
    with pytest.raises(NotImplementedError, match="mask of dtype uint8"):
        taeda.ops.index(taeda.empty(3, 4, device="meta"), [taeda.empty(3, dtype=taeda.uint8, device="meta")])


@pytest.mark.parametrize(
    "call",
    [
        lambda x, i: taeda.index_select(x, 0, i),
        lambda x, i: taeda.index_add(x, 0, i, x[:2]),
        lambda x, i: taeda.index_copy(x, 0, i, x[:2]),
        lambda x, i: taeda.index_reduce(x, 0, i, x[:2], "amax"),
        lambda x, i: taeda.gather(x, 0, i),
        lambda x, i: taeda.gather(x.expand(9, 4).t().contiguous(), 0, i[:, None].expand(2, 9)),
        lambda x, i: x.scatter_(0, i, 1.0),
        lambda x, i: x.scatter_(0, i, x[:2]),
        lambda x, i: x.scatter_add_(0, i, x[:2]),
        lambda x, i: x.scatter_reduce_(0, i, x[:2], "sum"),
        lambda x, i: taeda.ops.max_unpool2d(x[:2].reshape(1, 1, 1, 2), i.reshape(1, 1, 1, 2), (2, 2)),
    ],
)
@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_places_below_zero_are_refused_where_each_element_has_one(call, dtype):
    """As in PyTorch: there -1 is a mistake, such as the mark of what is missing, and not the last place."""
    x = taeda.arange(4.0)
    index = taeda.tensor([2, -1], dtype=getattr(taeda, dtype))
    try:
        call(x, abs(index))
    except (RuntimeError, TypeError):
        assert dtype == "int32"  # which some of them refuse
        return
    x = taeda.arange(4.0)
    with pytest.raises(IndexError, match="-1"):
        call(x, index)
    assert x.tolist() == [0, 1, 2, 3]


def test_places_below_zero_count_from_the_end():
    """Where Python's index operator may stand behind the call, and in take."""
    x, index = taeda.arange(4.0), taeda.tensor([2, -1])
    assert x[index].tolist() == x.take(index).tolist() == [2, 3]
    assert taeda.take_along_dim(x, index, 0).tolist() == [2, 3]
    assert x.index_fill(0, index, 9).tolist() == [0, 1, 9, 9]
    assert x.index_put((index,), taeda.tensor(9.0)).tolist() == [0, 1, 9, 9]


@pytest.mark.parametrize("kind", ["int32", "int64", "uint64"])
def test_means_of_scattered_whole_numbers_keep_every_digit(kind):
    most = np.iinfo(kind).max
    values = np.array([[most // 4 - 2], [most // 4 + 5], [most // 4 - 1]], kind)
    values = values - np.array([[0], [1], [most // 2 if kind[0] == "i" else 0]], kind)
    whole = [int(v) for v in values[:, 0]]
    for index in ([[0], [0], [0]], [[0, 0], [0, 0], [0, 0]]):
        index = np.array(index)
        source = np.broadcast_to(values, index.shape).copy()
        zeros = np.zeros((1, index.shape[1]), kind)
        given = [taeda.from_numpy(a) for a in (zeros, index, source)]
        for included in (False, True):
            found = given[0].scatter_reduce(0, *given[1:], "mean", include_self=included)
            assert found.tolist()[0] == [sum(whole) // (3 + included)] * index.shape[1]
