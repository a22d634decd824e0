"""The loader: orders and samples that follow from seeds, and generators that it leaves where they are."""

import random

import numpy as np
import pytest
from loader_basics import Numbers, lists, seeded

import taeda_data as data
from taeda_registry.slots import tensor as tt


@pytest.fixture
def twister():
    """PyTorch's numbers."""
    tt.random.set_engine("mt19937")
    yield
    tt.random.set_engine("philox")


@pytest.mark.parametrize("workers", [0, 2])
def test_passes_take_from_a_twister_what_pytorchs_take(twister, workers):
    """The orders that PyTorch gives after the same seed; Python's and NumPy's generators stay where they are."""
    states = random.getstate(), np.random.get_state()[1].tolist()
    tt.manual_seed(0)
    loader = data.DataLoader(Numbers(), 4, shuffle=True, num_workers=workers)
    orders = [[6, 7, 1, 4, 2, 0, 9, 8, 3, 5], [1, 3, 4, 7, 6, 8, 2, 5, 0, 9], [8, 0, 4, 3, 1, 9, 6, 2, 5, 7]]
    found, between = [], []
    for _ in range(3):
        found.append([index for batch in lists(loader) for index in batch])
        between.append(round(tt.rand(1).item(), 4))
    assert found == orders and between == [0.3074, 0.6323, 0.2939]
    assert states == (random.getstate(), np.random.get_state()[1].tolist())


class Drawn(Numbers):
    def __getitem__(self, i):
        return random.random() + np.random.random() + tt.rand(1).item()


def test_samples_that_workers_draw_beside_a_twister_follow_from_its_seed(twister):
    def samples(workers, seed):
        tt.manual_seed(seed)
        loader = data.DataLoader(Drawn(4), 2, num_workers=workers)
        return [lists(loader), lists(loader)]

    first, second = samples(2, 3)
    assert first != second and [first, second] == samples(2, 3) != samples(2, 4)


@pytest.mark.parametrize("collates", [False, True])
def test_without_workers_samples_are_drawn_from_a_twister_as_the_program_would(twister, collates):
    """After the number that a pass takes for its seed; PyTorch draws so after ``manual_seed(5)``."""

    def draw():
        return tt.rand(1).item()

    def start():
        tt.manual_seed(5)
        random.seed(1)
        np.random.seed(2)
        tt.empty((), dtype=tt.int64).random_()

    start()
    expected = [random.random() + np.random.random() + draw() for _ in range(4)]
    after = random.random(), np.random.random(), draw()
    start()
    tt.manual_seed(5)
    if collates:
        sample = Drawn(4).__getitem__
        loader = data.DataLoader(
            Numbers(4), 1, collate_fn=lambda group: tt.tensor([sample(i) for i in group])
        )
    else:
        loader = data.DataLoader(Drawn(4), 2)
    assert [x for batch in loader for x in batch.tolist()] == pytest.approx(expected, rel=1e-6)
    assert (random.random(), np.random.random(), draw()) == after
    tt.manual_seed(5)
    (batch,) = data.DataLoader(range(1), collate_fn=lambda _: draw(), shuffle=True)
    assert round(batch, 4) == 0.9201


def test_shuffled_epochs_differ_and_repeat_with_the_seed():
    loader = data.DataLoader(Numbers(20), batch_size=4, shuffle=True, generator=seeded())
    one, two = lists(loader), lists(loader)
    assert one != two
    assert sorted(i for batch in one for i in batch) == list(range(20))
    again = data.DataLoader(Numbers(20), batch_size=4, shuffle=True, generator=seeded())
    assert [lists(again), lists(again)] == [one, two]


def test_default_generator_is_seeded_as_a_whole():
    loader = data.DataLoader(Numbers(20), batch_size=4, shuffle=True)
    tt.manual_seed(1)
    one = lists(loader)
    tt.manual_seed(1)
    assert lists(loader) == one


class Noisy(Numbers):
    def __getitem__(self, i):
        return i, tt.randn(1, generator=data.worker_rng()).item()


def noise(batch_size, shuffle):
    tt.manual_seed(3)
    out = {}
    for index, value in data.DataLoader(Noisy(), batch_size=batch_size, shuffle=shuffle):
        out.update(zip(index.tolist(), value.tolist(), strict=True))
    return out


def test_randomness_of_a_sample_follows_from_seed_and_index():
    assert noise(2, True) == noise(5, False)
    assert len(set(noise(2, False).values())) == 10
    with pytest.raises(RuntimeError, match="worker_rng"):
        data.worker_rng()


def test_a_loader_within_a_sample_leaves_the_sample_its_randomness():
    class Outer(data.Dataset):
        def __len__(self):
            return 3

        def __getitem__(self, i):
            before = tt.rand(1, generator=data.worker_rng())
            inner = list(data.DataLoader(Inner(), batch_size=None))
            after = tt.rand(1, generator=data.worker_rng())
            return before.item() == after.item() and before.item() not in inner

    class Inner(data.Dataset):
        def __len__(self):
            return 2

        def __getitem__(self, i):
            return tt.rand(1, generator=data.worker_rng()).item()

    assert list(data.DataLoader(Outer(), batch_size=3, collate_fn=list)) == [[True] * 3]
    with pytest.raises(RuntimeError, match="worker_rng"):
        data.worker_rng()


@pytest.mark.parametrize("left_over", [False, True])
@pytest.mark.parametrize("kind", [np.random.MT19937, np.random.PCG64])
def test_numpys_global_generator_goes_on_between_batches(kind, left_over):
    """Also where a normal number is left over from a pair, and with a bit generator that the program has chosen."""
    before = np.random.get_bit_generator()

    class Noise(data.Dataset):
        def __len__(self):
            return 6

        def __getitem__(self, i):
            return np.random.normal()

    def numbers(read):
        np.random.set_bit_generator(kind(3))
        drawn = [np.random.normal() for _ in range(1 + left_over)]
        batches = iter(data.DataLoader(Noise(), batch_size=2))
        next(batches)  # draws the epoch's number
        for _ in range(2):
            drawn.append(np.random.normal())
            if read:
                next(batches)
        return [*drawn, np.random.normal(), np.random.randint(1 << 30)]

    try:
        assert numbers(read=True) == numbers(read=False)
    finally:
        np.random.set_bit_generator(before)
