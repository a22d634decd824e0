"""Random numbers: reproducible, independent of layout and threads, and distributed as they should be."""

import math

import numpy as np
import pytest

import taeda_tensor_core as taeda


@pytest.fixture(autouse=True)
def seeded():
    taeda.manual_seed(1234)


def moments(x):
    a = x.to(taeda.float64).numpy()
    return a.mean(), a.var()


DRAWS = {
    "rand": lambda: taeda.rand(1000),
    "randn": lambda: taeda.randn(1000),
    "randn64": lambda: taeda.randn(1000, dtype=taeda.float64),
    "randint": lambda: taeda.randint(100, (1000,)),
    "randperm": lambda: taeda.randperm(1000),
    "bernoulli": lambda: taeda.bernoulli(taeda.full((1000,), 0.3)),
    "multinomial": lambda: taeda.multinomial(taeda.ones(1000), 500),
    "exponential": lambda: taeda.empty(1000).exponential_(),
}


@pytest.mark.parametrize("name", DRAWS)
def test_same_seed_same_numbers(name):
    first, second = DRAWS[name](), DRAWS[name]()
    taeda.manual_seed(1234)
    assert taeda.equal(first, DRAWS[name]())
    assert not taeda.equal(first, second)


def test_numbers_do_not_depend_on_the_number_of_threads():
    before = taeda.get_num_threads()
    draws = []
    try:
        for threads in (1, 3):
            taeda.set_num_threads(threads)
            taeda.manual_seed(5)
            draws.append(taeda.randn(200_001))
    finally:
        taeda.set_num_threads(before)
    assert taeda.equal(*draws)


def philox(counters, key):
    """Philox 4x32-10 (Salmon et al., 2011) of 64-bit counters: four words of 32 bits each."""
    c = [counters & 0xFFFFFFFF, counters >> np.uint64(32), 0 * counters, 0 * counters]
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    for _round in range(10):
        first, second = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [
            (second >> np.uint64(32)) ^ c[1] ^ np.uint64(k0),
            second & 0xFFFFFFFF,
            (first >> np.uint64(32)) ^ c[3] ^ np.uint64(k1),
            first & 0xFFFFFFFF,
        ]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c


def test_numbers_are_those_of_philox():
    """In groups of 64 blocks, first words first; also where the counter outgrows 32 bits, in a vector and between."""
    zeros = [int(word[0]) for word in philox(np.zeros(1, "uint64"), 0)]
    assert zeros == [
        0x6627E8D5,
        0xE169C58D,
        0xBC57AC4C,
        0x9B00DBD8,
    ]  # the authors' known answer
    seed, generator = 0x123456789ABCDEF, taeda.Generator()
    for offset in (0, 64, 2**32 - 128, 2**32 - 67, 2**32 - 64, 2**32 - 1, 2**40 + 3):
        state = np.array([seed, offset], "<u8").view("uint8")
        generator.set_state(taeda.from_numpy(state.copy()))
        blocks = np.uint64(offset) + np.arange(192, dtype="uint64")
        words = np.stack(philox(blocks, seed), 0).reshape(4, 3, 64).transpose(1, 0, 2).ravel()
        expected = (words >> np.uint64(8)).astype("float32") * np.float32(2**-24)
        np.testing.assert_array_equal(taeda.rand(700, generator=generator).numpy(), expected[:700])


def test_a_longer_draw_begins_with_the_shorter():
    short = taeda.rand(300)
    taeda.manual_seed(1234)
    assert taeda.equal(short, taeda.rand(5000)[:300])


def test_own_generator():
    g = taeda.Generator()
    g.manual_seed(7)
    first = taeda.rand(5, generator=g)
    g.manual_seed(7)
    assert taeda.equal(first, taeda.rand(5, generator=g))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_uniform(dtype):
    x = taeda.empty(200, 500, dtype=getattr(taeda, dtype)).uniform_(-2, 6)
    mean, var = moments(x)
    assert abs(mean - 2) < 0.05 and abs(var - 64 / 12) < 0.1
    assert x.min().item() >= -2 and x.max().item() <= 6
    assert taeda.rand(100_000).max().item() < 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal(dtype):
    x = taeda.randn(400_000, dtype=getattr(taeda, dtype)).numpy().astype("float64")
    assert abs(x.mean()) < 0.01 and abs(x.var() - 1) < 0.01
    assert abs((x**3).mean()) < 0.03 and abs((x**4).mean() - 3) < 0.06
    # Distribution function at a few places.
    for place in (-2.0, -1.0, 0.5, 1.5):
        assert abs((x < place).mean() - 0.5 * math.erfc(-place / math.sqrt(2))) < 0.005
    # Neighbours and the two halves of each Box-Muller pair are uncorrelated.
    for step in (1, 64, 128):
        assert abs(np.corrcoef(x[:-step], x[step:])[0, 1]) < 0.01


def test_a_deviation_that_is_not_given_is_one():
    mean = taeda.arange(6.0).reshape(2, 3)
    results = []
    for std in ((), (1.0,), (taeda.ones(3),)):
        taeda.manual_seed(3)
        results.append(taeda.normal(mean, *std))
    assert results[0].equal(results[1]) and results[0].equal(results[2])
    out = taeda.empty(2, 3)
    taeda.manual_seed(3)
    assert taeda.normal(mean, out=out) is out and out.equal(results[0])


def test_integers_cover_their_range_evenly():
    counts = np.bincount(taeda.randint(3, 11, (80_000,)).numpy(), minlength=11)
    assert (counts[:3] == 0).all() and (abs(counts[3:] - 10_000) < 600).all()
    assert taeda.randint(5, (3,), dtype=taeda.uint8).dtype == taeda.uint8
    assert taeda.empty(1000, dtype=taeda.int8).random_().min().item() >= 0
    with pytest.raises(RuntimeError, match="low"):
        taeda.randint(5, 5, (2,))


def test_permutation():
    assert sorted(taeda.randperm(1000).tolist()) == list(range(1000))
    assert taeda.randperm(0).shape == (0,)
    assert taeda.randperm(2049, dtype=taeda.float16).unique().numel() == 2049
    with pytest.raises(RuntimeError, match="'n' is 2050, expected at most 2049"):
        taeda.randperm(2050, dtype=taeda.float16)


def test_bernoulli():
    assert abs(taeda.empty(100_000).bernoulli_(0.3).mean().item() - 0.3) < 0.01
    chances = taeda.tensor([0.0, 1.0]).expand(1000, 2)
    assert taeda.bernoulli(chances).mean(0).tolist() == [0.0, 1.0]
    assert taeda.empty(5, dtype=taeda.bool).bernoulli_(1.0).all().item()
    with pytest.raises(RuntimeError, match="'p'"):
        taeda.empty(2).bernoulli_(1.5)


def test_other_distributions():
    assert abs(taeda.empty(200_000).exponential_(2).mean().item() - 0.5) < 0.01
    assert abs(taeda.empty(200_000).geometric_(0.25).mean().item() - 4) < 0.1
    assert abs(taeda.empty(200_001).cauchy_(3).median().item() - 3) < 0.05
    for rate in (0.5, 4.0, 60.0):
        mean, var = moments(taeda.poisson(taeda.full((100_000,), rate)))
        assert abs(mean - rate) < 0.05 * max(rate, 1) and abs(var - rate) < 0.06 * max(rate, 1)
    mean, var = moments(taeda.normal(taeda.tensor([1.0, 5.0]).expand(100_000, 2), 0.5)[:, 1])
    assert abs(mean - 5) < 0.02 and abs(var - 0.25) < 0.02


def test_multinomial():
    weights = taeda.tensor([1.0, 0.0, 3.0])
    counts = np.bincount(taeda.multinomial(weights, 40_000, replacement=True).numpy(), minlength=3)
    assert counts[1] == 0 and abs(counts[2] / counts.sum() - 0.75) < 0.02
    rows = taeda.multinomial(taeda.ones(50, 6), 6)
    assert (np.sort(rows.numpy(), 1) == np.arange(6)).all()
    with pytest.raises(RuntimeError, match="weights"):
        taeda.multinomial(taeda.tensor([-1.0, 2.0]), 1)


def test_layouts_receive_numbers_everywhere():
    x = taeda.zeros(20, 30)
    x[:, ::2].uniform_(1, 2)
    assert (x[:, ::2] >= 1).all().item() and (x[:, 1::2] == 0).all().item()
    assert taeda.rand_like(taeda.ones(3, 4)).shape == (3, 4)
    assert taeda.randn(2, 3, dtype=taeda.complex64).dtype == taeda.complex64
    with pytest.raises(RuntimeError, match="int64"):
        taeda.empty(2, dtype=taeda.int64).normal_()


def test_numbers_like_a_tensor_come_from_a_given_generator():
    x, state = taeda.ones(2, 3), taeda.get_rng_state()
    for like, fill in (
        (lambda g: taeda.rand_like(x, generator=g), lambda out, g: out.uniform_(generator=g)),
        (lambda g: taeda.randn_like(x, generator=g), lambda out, g: out.normal_(generator=g)),
        (lambda g: taeda.randint_like(x, 9, generator=g), lambda out, g: out.random_(0, 9, generator=g)),
        (lambda g: taeda.randint_like(x, 3, 9, generator=g), lambda out, g: out.random_(3, 9, generator=g)),
    ):
        expected = fill(taeda.empty(2, 3), taeda.Generator().manual_seed(5))
        assert taeda.equal(like(taeda.Generator().manual_seed(5)), expected)
    assert taeda.randn_like(x, dtype=taeda.float64, generator=taeda.Generator()).dtype is taeda.float64
    assert taeda.equal(taeda.get_rng_state(), state)
    with pytest.raises(TypeError, match=r"randn_like.*generator"):
        taeda.randn_like(x, generator=5)


HALVES_AND_FLOATS = [taeda.float16, taeda.bfloat16, taeda.float32, taeda.float64]


@pytest.mark.parametrize("dtype", HALVES_AND_FLOATS, ids=str)
@pytest.mark.parametrize(
    ("low", "high"), [(0.0, 1.0), (-1.0, 0.0), (3.0, 3.5), (-0.1, 0.1), (1000.0, 1001.0)]
)
def test_uniform_numbers_stay_below_the_upper_end(dtype, low, high):
    x = taeda.empty(300_000, dtype=dtype).uniform_(low, high).to(taeda.float64)
    least = taeda.tensor(low, dtype=dtype).item()
    assert least <= x.min().item() <= x.max().item() < high
    view = taeda.zeros(1000, 2, dtype=dtype)
    view[:, 0].uniform_(low, high)
    assert view[:, 0].to(taeda.float64).max().item() < high
    assert (view[:, 1] == 0).all()


@pytest.mark.parametrize("dtype", HALVES_AND_FLOATS, ids=str)
def test_whole_numbers_stay_below_the_upper_end(dtype):
    for low, high in ((0, 1000), (-1000, -1), (0, 2**24 + 3)):
        if dtype is taeda.float16 and high > 65504:
            continue
        x = taeda.empty(200_000, dtype=dtype).random_(low, high).to(taeda.float64)
        assert x.max().item() < high


@pytest.mark.parametrize(
    ("name", "last"), [("uint8", 255), ("int8", 127), ("int16", 2**15 - 1), ("float16", 2048), ("bool", 1)]
)
def test_a_lower_bound_without_an_upper_one_reaches_to_the_last_number(name, last):
    x = taeda.empty(300_000, dtype=getattr(taeda, name))
    for low in (0, last, *((-3,) if name in ("int8", "float16") else ())):
        found = x.random_(low, None).to(taeda.int64)
        assert found.min().item() == low and found.max().item() == last
        assert taeda.equal(x, x.random_(low, to=None)) or low != last
    assert x.random_(to=1).to(taeda.int64).max().item() == 0
    with pytest.raises(RuntimeError, match=f"'low' is {last + 1}, expected a number that {name} holds"):
        x.random_(last + 1, None)


@pytest.mark.parametrize("low", [0, 5, -5, 2**62, -(2**63), 2**63 - 1])
def test_the_widest_integers_are_drawn_from_a_lower_bound_on(low):
    x = taeda.empty(20_000, dtype=taeda.int64).random_(low, None).numpy()
    assert x.min() >= low and x.max() > 2**63 - 2**53
    assert low >= 2**62 or x.min() < low + 2**53
    for bounds in ((low, low), (0, -(2**63)), (-(2**63),)):
        with pytest.raises(RuntimeError, match="must be less than"):
            taeda.empty(2, dtype=taeda.int64).random_(*bounds)


@pytest.mark.parametrize("dtype", HALVES_AND_FLOATS, ids=str)
def test_exponential_numbers_are_positive(dtype):
    assert taeda.empty(300_000, dtype=dtype).exponential_(1e4).min().item() > 0


def test_seeds_may_be_given_by_name():
    assert taeda.manual_seed(seed=11) is taeda.random.default_generator
    first = taeda.rand(3)
    taeda.random.manual_seed(seed=11)
    assert taeda.equal(first, taeda.rand(3))


@pytest.mark.parametrize("dtype", ["int64", "bool", "float64", "float16"])
def test_bernoulli_draws_into_a_target_of_any_dtype(dtype):
    target = taeda.zeros(2, dtype=getattr(taeda, dtype))
    assert taeda.bernoulli(taeda.tensor([1.0, 0.0]), out=target) is target
    assert target.tolist() == [1, 0]


@pytest.mark.parametrize(
    "own, other", [("float16", "float32"), ("float32", "float64"), ("complex64", "float64")]
)
def test_normal_has_the_dtype_of_its_mean(own, other):
    mean, std = taeda.ones(3, dtype=getattr(taeda, own)), taeda.zeros(3, dtype=getattr(taeda, other))
    drawn = taeda.normal(mean, std)
    assert drawn.dtype is mean.dtype and drawn.equal(mean)
    assert (
        taeda.normal(1.0, std).dtype is taeda.normal(taeda.ones(3, dtype=taeda.int64), std).dtype is std.dtype
    )


@pytest.mark.parametrize("engine", ["philox", "mt19937"])
def test_draws_beyond_the_weights_that_are_not_zero_are_of_the_others(engine, request):
    request.addfinalizer(lambda: taeda.random.set_engine("philox"))
    taeda.random.set_engine(engine)
    weights = taeda.tensor([0.0, 3.0, 0.0, 1.0])
    for seed in range(20):
        taeda.manual_seed(seed)
        drawn = taeda.multinomial(weights.repeat(3, 1), 4).tolist()
        for row in drawn:
            assert sorted(row) == [0, 1, 2, 3], (seed, row)
            assert set(row[:2]) == {1, 3}, (seed, row)
