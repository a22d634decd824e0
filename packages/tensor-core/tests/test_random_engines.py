"""Generators made of a Mersenne twister: the numbers of NumPy's twister, states, and the choice of the engine."""

import copy
import math
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import taeda_tensor_core as taeda
from taeda_tensor_core import random

SEED = 20250301


@pytest.fixture
def twister():
    random.set_engine("mt19937")
    yield taeda.manual_seed(SEED)
    random.set_engine("philox")


class Words:
    """NumPy's own MT19937, seeded by one number as PyTorch's is."""

    def __init__(self, seed=SEED):
        self._bits = np.random.MT19937()
        self._bits._legacy_seeding(seed)

    def take(self, count):
        return self._bits.random_raw(count).astype(np.uint64)

    def pairs(self, count):
        words = self.take(2 * count)
        return words[::2] << np.uint64(32) | words[1::2]

    def units(self, count):
        return (self.pairs(count) % np.uint64(2**53)).astype(np.float64) * 2.0**-53


@pytest.mark.parametrize("count", [1, 5, 623, 625, 3000])
def test_uniform_numbers_take_one_word_or_two(twister, count):
    words = Words()
    expected = (words.take(count) % np.uint64(2**24)).astype(np.float32) * np.float32(2.0**-24)
    assert (taeda.rand(count).numpy() == expected).all()
    assert (taeda.rand(count, dtype=taeda.float64).numpy() == words.units(count)).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("low, high", [(0.0, 1.0), (-0.3, 0.3), (100.0, 101.0)])
def test_uniform_numbers_rounded_up_to_the_end_are_the_lower_one(twister, dtype, low, high):
    dtype, count = getattr(taeda, dtype), 100_000
    found = taeda.empty(count, dtype=dtype).uniform_(low, high).to(taeda.float64).numpy()
    units = (Words().take(count) % np.uint64(2**24)).astype(np.float64) * 2.0**-24
    first, last = np.float32(low), np.float32(high)
    numbers = (units * (last - first) + first).astype(np.float32)
    rounded = taeda.from_numpy(numbers).to(dtype).to(taeda.float64).numpy()
    end, start = (float(taeda.tensor(v, dtype=dtype)) for v in (high, low))
    expected = np.where(rounded >= end, start, rounded)
    assert found.max() < end and ((rounded >= end).any() or dtype == taeda.float32)
    assert (found != expected).mean() < 1e-3  # sums rounded once or twice
    assert ((found == start) == (expected == start)).mean() > 0.9999


def test_integers_are_remainders(twister):
    words = Words()
    assert (
        taeda.randint(-3, 7, (50,)).numpy() == (words.take(50) % np.uint64(10)).astype(np.int64) - 3
    ).all()
    large = 2**40 + 1
    assert (
        taeda.randint(large, (50,)).numpy() == (words.pairs(50) % np.uint64(large)).astype(np.int64)
    ).all()
    assert (taeda.empty(9, dtype=taeda.uint8).random_().numpy() == words.take(9) % np.uint64(256)).all()


def test_normal_numbers_come_in_pairs_of_places_eight_apart(twister):
    u = (Words().take(32) % np.uint64(2**24)).astype(np.float64).reshape(2, 2, 8) * 2.0**-24
    radius, angle = np.sqrt(-2 * np.log(1 - u[:, 0])), 2 * math.pi * u[:, 1]
    expected = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).ravel()
    np.testing.assert_allclose(
        taeda.empty(32).normal_(1.0, 2.0).numpy(), expected * 2 + 1, rtol=1e-6, atol=1e-6
    )


def test_single_normal_numbers_leave_one_behind(twister):
    u = Words().units(4)
    pair = math.sqrt(-2 * math.log1p(-u[1])) * np.exp(2j * math.pi * u[0])
    assert taeda.randn(1, dtype=taeda.float64).item() == pytest.approx(pair.real, rel=1e-14)
    assert taeda.randn(1, dtype=taeda.float64).item() == pytest.approx(pair.imag, rel=1e-14)


def test_numbers_follow_the_order_of_memory(twister):
    expected = (Words().take(15) % np.uint64(2**24)).astype(np.float32) * np.float32(2.0**-24)
    assert (taeda.empty(5, 3).t().uniform_().numpy() == expected.reshape(5, 3).T).all()
    taeda.manual_seed(SEED)
    spread = taeda.zeros(30)
    spread[::2].uniform_()
    assert (spread[::2].numpy() == expected).all() and (spread[1::2] == 0).all()


def test_moments(twister):
    n = 200_000
    chances = [
        (taeda.empty(n).exponential_(2.0), 0.5, 0.25),
        (taeda.empty(n).bernoulli_(0.3), 0.3, 0.21),
        (taeda.empty(n).geometric_(0.5), 2.0, 2.0),
        (taeda.poisson(taeda.full((n,), 20.0)), 20.0, 20.0),
        (taeda.randn(n), 0.0, 1.0),
        (taeda.randn(n, dtype=taeda.complex64).real, 0.0, 0.5),
        (taeda.multinomial(taeda.tensor([1.0, 3.0]), n, replacement=True), 0.75, 0.1875),
    ]
    for drawn, mean, variance in chances:
        numbers = drawn.to(taeda.float64).numpy()
        assert numbers.mean() == pytest.approx(mean, abs=6 * math.sqrt(variance / n))
        assert numbers.var() == pytest.approx(variance, rel=0.03)


def test_permutations_hold_every_number(twister):
    words, expected = Words().take(99), np.arange(100)
    for i, word in enumerate(words):
        j = i + int(word) % (100 - i)
        expected[[i, j]] = expected[[j, i]]
    assert (taeda.randperm(100).numpy() == expected).all()
    assert (taeda.randperm(100_000).sort()[0] == taeda.arange(100_000)).all()


@pytest.mark.parametrize("drawn", [0, 1, 623, 624, 625])
def test_states_bring_the_numbers_back(twister, drawn):
    taeda.rand(drawn)
    taeda.randn(1)
    state = taeda.get_rng_state()
    assert state.shape == (5056,)
    expected = taeda.randn(3), taeda.rand(700)
    for generator in (
        taeda.Generator().set_state(state),
        taeda.Generator(engine="philox").set_state(state).clone_state(),
        pickle.loads(pickle.dumps(taeda.Generator().set_state(state))),
        copy.deepcopy(taeda.Generator().set_state(state)),
    ):
        assert generator.engine == "mt19937" and generator.initial_seed() == SEED
        found = taeda.randn(3, generator=generator), taeda.rand(700, generator=generator)
        assert all(map(taeda.equal, found, expected))
    taeda.set_rng_state(state)
    assert taeda.equal(taeda.randn(3), expected[0])


def test_a_state_makes_the_generator_what_it_is_of():
    twisted = taeda.Generator(engine="mt19937").manual_seed(4)
    counter = taeda.Generator(engine="philox").manual_seed(4)
    assert (twisted.engine, counter.engine) == ("mt19937", "philox")
    other = taeda.Generator(engine="mt19937").set_state(counter.get_state())
    assert other.engine == "philox"
    assert taeda.equal(taeda.rand(9, generator=other), taeda.rand(9, generator=counter))


def test_wrong_states_change_nothing(twister):
    state = taeda.get_rng_state()
    for wrong in (state[:-1], state.long(), taeda.zeros(5056, dtype=taeda.uint8)):
        with pytest.raises(ValueError, match=r"Generator\.set_state: argument 'new_state'"):
            taeda.set_rng_state(wrong)
    for held in (state, taeda.zeros(16, dtype=taeda.uint8)):
        with pytest.raises(
            ValueError, match=r"Generator\.set_state"
        ):  # what has no memory of its own to read
            taeda.Generator().set_state(held.to_sparse())
    broken = state.clone()
    broken[24 + 4 : 24 + 8] = 1  # the upper half of the first word
    with pytest.raises(ValueError, match="holds no state of an mt19937"):
        taeda.set_rng_state(broken)
    assert taeda.equal(taeda.get_rng_state(), state)


def test_names_of_engines():
    with pytest.raises(ValueError, match="argument 'engine' must be 'philox' or 'mt19937', found 'mt'"):
        random.set_engine("mt")
    with pytest.raises(TypeError, match="argument 'engine'"):
        taeda.Generator(engine=19937)
    assert random.get_engine() == "philox"


def test_the_default_generator_goes_to_the_beginning_of_its_seed():
    taeda.manual_seed(8)
    counted = taeda.rand(3)
    random.set_engine("mt19937")
    try:
        twisted = taeda.rand(3)
        assert taeda.initial_seed() == 8 and not taeda.equal(counted, twisted)
        with taeda.random.fork_rng():
            taeda.rand(10)
        again = taeda.rand(3)
    finally:
        random.set_engine("philox")
    assert taeda.equal(taeda.rand(3), counted)
    generator = taeda.Generator(engine="mt19937").manual_seed(8)
    assert taeda.equal(taeda.rand(3, generator=generator), twisted)
    assert taeda.equal(taeda.rand(3, generator=generator), again)


def test_threads_share_the_stream(twister):
    """Every word is given once, to whichever thread asks."""
    found = [[] for _ in range(4)]

    def draw(mine):
        for _ in range(200):
            mine.append(taeda.randint(2**31, (7,)).numpy())

    threads = [threading.Thread(target=draw, args=(mine,)) for mine in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = (Words().pairs(4 * 200 * 7) % np.uint64(2**31)).astype(np.int64)
    assert (np.sort(np.concatenate([drawn for mine in found for drawn in mine])) == np.sort(expected)).all()


def test_the_environment_chooses():
    program = "import taeda_tensor_core as t; print(t.manual_seed(42).engine, int(t.randint(10, ())))"

    def run(engine):
        return subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "TAEDA_RANDOM": engine},
            capture_output=True,
            text=True,
            check=False,
        )

    assert run("mt19937").stdout.split() == ["mt19937", "2"]
    assert run("philox").stdout.split()[0] == "philox"
    assert "argument 'engine' must be 'philox' or 'mt19937', found 'xorshift'" in run("xorshift").stderr


def test_binomial_numbers_take_what_they_need_in_turn(twister):
    """One number at a time, so that none moves another: here by waiting times, which NumPy's words give as well."""
    tries, chance = 6, 0.25
    expected, words = [], Words()
    for _ in range(200):
        passed, successes = 0.0, -1
        while passed <= tries:
            passed += math.ceil(math.log(words.units(1)[0]) / math.log1p(-chance))
            successes += 1
        expected.append(successes)
    drawn = taeda.binomial(taeda.full((200,), float(tries)), taeda.full((200,), chance))
    assert drawn.tolist() == expected
    assert taeda.rand(1, dtype=taeda.float64).item() == words.units(1)[0]
    assert taeda.binomial(taeda.zeros(0), taeda.zeros(0)).shape == (0,)
    # What is certain takes none.
    assert taeda.binomial(taeda.tensor([0.0, 5.0, 5.0]), taeda.tensor([0.5, 0.0, 1.0])).tolist() == [
        0.0,
        0.0,
        5.0,
    ]
    assert taeda.rand(1, dtype=taeda.float64).item() == words.units(1)[0]


def test_binomial_numbers_by_rejection(twister):
    drawn = taeda.binomial(taeda.full((4000,), 100.0), taeda.full((4000,), 0.7))
    assert abs(float(drawn.mean()) - 70) < 0.4
    assert abs(float(drawn.var()) - 21) < 2.5


def test_convolutions_keep_the_layout_in_whose_order_is_drawn(twister):
    x, weight = taeda.rand(2, 16, 20, 20), taeda.rand(32, 16, 3, 3)
    result = taeda.conv2d(x, weight)
    assert result.is_contiguous()
    last = x.contiguous(memory_format=taeda.channels_last)
    turned = taeda.conv2d(last, weight)
    assert turned.is_contiguous(memory_format=taeda.channels_last)
    assert taeda.conv_transpose2d(result, weight).is_contiguous()
    assert taeda.conv_transpose2d(turned, weight).is_contiguous(memory_format=taeda.channels_last)
    random.set_engine("philox")
    assert taeda.allclose(result, taeda.conv2d(x, weight), rtol=1e-5)
    assert taeda.allclose(turned, result, rtol=1e-5)


def test_sequences_with_channels_innermost_come_out_row_by_row(twister):
    """As PyTorch copies them for convolutions and batch normalisation over one dimension."""
    line = taeda.rand(2, 20, 16).transpose(1, 2)
    weight, back = taeda.rand(8, 16, 3), taeda.rand(16, 8, 3)

    def results():
        return (
            taeda.conv1d(line, weight),
            taeda.conv_transpose1d(line, back),
            taeda.batch_norm(line, None, None, None, None, True, 0.1, 1e-5),
        )

    drawn = results()
    assert all(result.is_contiguous() for result in drawn)
    random.set_engine("philox")
    for result, other in zip(drawn, results(), strict=True):
        assert taeda.allclose(result, other, rtol=1e-5, atol=1e-6)


LARGE = 3 * 65536 + 5  # drawn piece by piece into contiguous tensors whose dtype is not that of the numbers
DRAWS = {
    "random": lambda x, g: x.random_(0, 100, generator=g),
    "bernoulli": lambda x, g: x.bernoulli_(0.3, generator=g),
    "geometric": lambda x, g: x.geometric_(0.3, generator=g),
    "cauchy": lambda x, g: x.cauchy_(generator=g),
    "exponential": lambda x, g: x.exponential_(generator=g),
    "uniform": lambda x, g: x.uniform_(-1, 3, generator=g),
    "normal": lambda x, g: x.normal_(generator=g),
}


# A twister draws normal numbers of contiguous tensors alone by sixteens.
@pytest.mark.parametrize("engine, name", [*((e, n) for e in ("philox", "mt19937") for n in DRAWS)][:-1])
def test_large_tensors_get_the_numbers_that_other_layouts_get(engine, name):
    whole = ["uint8"] if name in ("random", "bernoulli", "geometric") else []
    for dtype in [getattr(taeda, each) for each in ("float16", "float32", *whole)]:
        x, y = taeda.zeros(LARGE, dtype=dtype), taeda.zeros(LARGE, 2, dtype=dtype)[:, 0]
        for target in (x, y):
            DRAWS[name](target, taeda.Generator(engine=engine).manual_seed(SEED))
        assert taeda.equal(x, y), dtype


def test_large_normal_numbers_of_low_precision_are_those_of_float32_rounded():
    x, y = taeda.empty(LARGE // 16 * 16, dtype=taeda.float16), taeda.empty(LARGE // 16 * 16)
    for target in (x, y):
        target.normal_(generator=taeda.Generator(engine="mt19937").manual_seed(SEED))
    assert taeda.equal(x, y.half())


def test_drawing_into_narrow_dtypes_needs_little_memory():
    program = """
import resource, taeda_tensor_core as taeda
x = taeda.zeros(1 << 26, dtype=taeda.uint8)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 27),) * 2)
x.random_(0, 7), x.geometric_(0.5), x.random_()
taeda.random.set_engine("mt19937")
x.random_(0, 7)
print(x.max().item(), x[-1000:].max().item())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["6", "6"], done.stderr
