"""Loaders with workers: the batches and streams of one thread; what goes wrong ends in one error and nothing left."""

import os
import random
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import loader_sets as sets
import numpy as np
import pytest

import taeda_data as data
from taeda_registry.slots import tensor as tt
from taeda_testing.settling import eventually

pytest.importorskip("taeda_multiprocessing", reason="processes need taeda-multiprocessing")

WORKERS = [{"num_workers": 1}, {"num_workers": 3}, {"num_workers": 2, "worker_type": "thread"}]


def plain(value):
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value.tolist() if hasattr(value, "tolist") else value


def epochs(count=2, dataset=None, **options):
    """Batches of epochs after everything was seeded."""
    random.seed(1)
    np.random.seed(2)
    tt.manual_seed(3)
    sets.GLOBAL.bit_generator.state = np.random.default_rng(7).bit_generator.state
    loader = data.DataLoader(
        sets.Draws() if dataset is None else dataset, batch_size=4, shuffle=True, **options
    )
    return [[plain(batch) for batch in loader] for _ in range(count)]


@pytest.mark.parametrize(
    "options",
    [
        {"num_workers": 1},
        {"num_workers": 3, "prefetch_factor": 1},
        {"num_workers": 2, "persistent_workers": True},
        {"num_workers": 2, "multiprocessing_context": "spawn"},
    ],
)
@pytest.mark.usefixtures("nothing_left")
def test_one_stream_for_any_number_of_workers(options):
    here, there = epochs(), epochs(**options)
    assert here == there
    flat = [value for epoch in here for batch in epoch for value in batch["own"]]
    assert len(set(flat)) == len(flat)  # no sample has the numbers of another, in either epoch


def test_reading_here_leaves_the_program_its_streams():
    """Between two batches Python's, NumPy's and the tensors' generators go on as if nothing had been read."""
    drawn = []
    for read in (False, True):
        tt.manual_seed(5)
        random.seed(6)
        np.random.seed(7)
        iterator = iter(data.DataLoader(sets.Draws(), batch_size=4))
        next(iterator)  # draws the epoch's numbers
        numbers = [(tt.rand(1).item(), random.random(), np.random.rand())]
        if read:
            next(iterator)
        numbers.append((tt.rand(1).item(), random.random(), np.random.rand()))
        iterator.close()
        drawn.append(numbers)
    assert drawn[0] == drawn[1]
    assert drawn[0][0] != drawn[0][1]


@pytest.mark.parametrize("options", WORKERS)
@pytest.mark.usefixtures("nothing_left")
def test_batches_in_order(options):
    loader = data.DataLoader(sets.Images(), batch_size=5, **options)
    assert len(loader) == 3
    for _ in range(2):
        batches = list(loader)
        assert [labels.tolist() for _, labels in batches] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11]]
        assert all((images == labels.reshape(-1, 1)).all() for images, labels in batches)
        del batches


@pytest.mark.usefixtures("nothing_left")
def test_batches_lie_in_shared_memory_and_are_the_callers():
    kept = [images for images, _ in data.DataLoader(sets.Images(40), batch_size=2, num_workers=2)]
    assert all(images.is_shared() for images in kept)
    assert [images[:, 0].tolist() for images in kept] == [[i, i + 1] for i in range(0, 40, 2)]


@pytest.mark.parametrize("options", WORKERS)
@pytest.mark.usefixtures("nothing_left")
def test_without_order_every_batch_comes_once(options):
    loader = data.DataLoader(sets.Images(30, 3), batch_size=4, in_order=False, **options)
    found = [labels.tolist() for _, labels in loader]
    assert sorted(found) == [list(range(i, min(i + 4, 30))) for i in range(0, 30, 4)]


@pytest.mark.parametrize("options", WORKERS)
@pytest.mark.usefixtures("nothing_left")
def test_streams_are_shared_out(options):
    loader = data.DataLoader(sets.Stream(), batch_size=2, **options)
    found = [batch.tolist() for batch in loader]
    assert sorted(i for batch in found for i in batch) == list(range(11))
    workers = options["num_workers"]
    expected = [list(range(w, 11, workers)) for w in range(workers)]
    cut = [[own[i : i + 2] for i in range(0, len(own), 2)] for own in expected]
    assert found == [own[i] for i in range(6) for own in cut if i < len(own)]  # in turn
    single = data.DataLoader(sets.Stream(5), batch_size=None, **options)
    assert sorted(single) == list(range(5))


@pytest.mark.usefixtures("nothing_left")
def test_workers_know_themselves():
    rows = list(data.DataLoader(sets.Who(), batch_size=None, num_workers=2))
    assert [row[:3] for row in rows] == [[i, i % 2, 2] for i in range(8)]
    assert len({row[3] for row in rows}) == 2 and os.getpid() not in {row[3] for row in rows}
    assert {row[4] for row in rows} == {1}
    assert data.get_worker_info() is None


@pytest.mark.usefixtures("nothing_left")
def test_init_function_and_collation():
    loader = data.DataLoader(sets.Noted(), batch_size=1, num_workers=2, worker_init_fn=sets.seed_note)
    assert [batch.item() for batch in loader] == [0, 1, 0, 1]
    loader = data.DataLoader(range(6), batch_size=2, num_workers=2, collate_fn=sets.first)
    assert list(loader) == [0, 2, 4]
    with pytest.raises(OSError, match=r"worker \d has no disk"):
        next(iter(data.DataLoader(range(6), num_workers=2, worker_init_fn=sets.fail_at_start)))


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("persistent", [False, True])
def test_streams_of_workers_follow_from_the_generator_of_the_loader(persistent):
    def rows(seed, init):
        loader = data.DataLoader(
            sets.AllSources(),
            batch_size=None,
            num_workers=2,
            worker_init_fn=init,
            generator=tt.Generator().manual_seed(seed),
            persistent_workers=persistent,
        )
        return [list(loader), list(loader)]

    for init in (None, sets.seed_from_worker):
        first = rows(0, init)
        random.seed(os.urandom(8))  # what the program has drawn or seeded does not count
        np.random.seed(int.from_bytes(os.urandom(4), "little"))
        tt.manual_seed(int.from_bytes(os.urandom(4), "little"))
        assert rows(0, init) == first
        assert rows(1, init) != first and first[0] != first[1]
        assert len({tuple(row) for row in first[0] + first[1]}) == 12


@pytest.mark.usefixtures("nothing_left")
def test_what_a_worker_is_seeded_with_it_draws_from():
    options = {"batch_size": None, "num_workers": 2, "worker_init_fn": sets.seed_all_with_seven}
    first = list(data.DataLoader(sets.AllSources(), **options))
    tt.manual_seed(123)
    assert list(data.DataLoader(sets.AllSources(), **options)) == first
    assert len({tuple(row) for row in first}) == len(first)
    loader = data.DataLoader(sets.AllSources(), persistent_workers=True, **options)
    assert list(loader) == first
    assert list(loader) != first  # the stream goes on


@pytest.mark.usefixtures("nothing_left")
def test_samples_beyond_the_length_that_was_asked_for_are_warned_of():
    loader = data.DataLoader(sets.Claimed(), batch_size=None, num_workers=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(list(loader)) == 8  # nobody asked
    assert len(loader) == 4
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert len(list(loader)) == 8
    said = [
        warning for warning in said if warning.category is UserWarning
    ]  # others may be Python's own, of forks
    for number, warning in enumerate(said, 5):
        assert "Each of the 2 workers" in str(warning.message)
        assert f"Claimed was reported to be 4, but {number} samples" in str(warning.message)
    assert len(said) == 4


@pytest.mark.usefixtures("nothing_left")
def test_persistent_workers_stay():
    loader = data.DataLoader(sets.Who(), batch_size=None, num_workers=2, persistent_workers=True)
    first = {row[3] for row in loader}
    iterator = iter(loader)
    next(iterator)
    del iterator  # what is still on its way belongs to an epoch that nobody reads
    assert [row[0] for row in loader] == list(range(8))
    assert {row[3] for row in loader} == first
    del loader


@pytest.mark.usefixtures("nothing_left")
def test_long_lists_of_indices():
    sampler = [list(range(20_000))] * 4
    loader = data.DataLoader(
        range(20_000), batch_sampler=sampler, num_workers=2, collate_fn=len, prefetch_factor=2
    )
    assert list(loader) == [20_000] * 4


@pytest.mark.parametrize("then", [0, 1, 3])
@pytest.mark.parametrize("stop", [1, 3])
@pytest.mark.usefixtures("nothing_left")
def test_going_on_in_the_middle(stop, then):
    def loader(workers):
        generator = tt.Generator().manual_seed(5)
        options = {"batch_size": 3, "shuffle": True, "generator": generator}
        return data.DataLoader(range(14), num_workers=workers, **options)

    whole = loader(2)
    batches = [[batch.tolist() for batch in whole] for _ in range(2)]
    stopped = loader(2)
    iterator = iter(stopped)
    for _ in range(stop):
        next(iterator)
    state = stopped.state_dict()
    del iterator
    again = loader(then)
    again.load_state_dict(state)
    assert [batch.tolist() for batch in again] == batches[0][stop:]
    assert [batch.tolist() for batch in again] == batches[1]


@pytest.mark.parametrize(
    ("what", "error", "words"),
    [
        ("raises", KeyError, "five"),
        ("raises_picky", sets.Picky, "p!"),
        ("raises_local", RuntimeError, "cannot be sent"),
        ("unsendable", RuntimeError, "cannot be sent"),
        ("killed", RuntimeError, r"worker 0 \(pid \d+\) exited unexpectedly: signal SIGKILL, as sent"),
        ("aborts", RuntimeError, "signal SIGABRT"),
        ("exits", RuntimeError, "exit status 3"),
        ("leaves", RuntimeError, "exit status 4"),
        ("hangs", RuntimeError, "timed out after 1 seconds"),
        ("hangs_deaf", RuntimeError, "timed out after 1 seconds"),
    ],
)
@pytest.mark.usefixtures("nothing_left")
def test_what_goes_wrong_is_told_once(what, error, words):
    loader = data.DataLoader(
        sets.Faulty(what), batch_size=2, num_workers=2, timeout=1 if "hangs" in what else 0
    )
    seen = []
    with pytest.raises(error, match=words) as info:
        for batch in loader:
            seen.append(batch.tolist())
    # A death may be noticed while an earlier batch is waited for, and where others have the processor, any is too late.
    assert seen == [[0, 1], [2, 3]][: len(seen)] and (seen or "hangs" in what)
    if error is not RuntimeError:
        assert "loader_sets.py" in str(info.value.__cause__) and "worker 0" in str(info.value.__cause__)
        assert any("sample 5" in note for note in info.value.__notes__)
    if what == "raises_picky":
        assert info.value.code == 7
    if "sent" in words and "as sent" not in words:
        assert "sample 5" in str(info.value.__cause__)


@pytest.mark.usefixtures("nothing_left")
def test_errors_of_threads():
    with pytest.raises(sets.Picky, match="p!") as info:
        list(data.DataLoader(sets.Faulty("raises_picky"), batch_size=2, num_workers=2, worker_type="thread"))
    assert info.value.code == 7


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize(
    "options",
    [{}, {"num_workers": 2}, {"num_workers": 2, "worker_type": "thread", "persistent_workers": True}],
)
def test_a_pass_goes_on_behind_a_batch_that_could_not_be_read(options):
    """Who catches the error asks for the next batch; the next pass is whole too."""
    loader = data.DataLoader(sets.Faulty("raises"), batch_size=2, **options)
    for _ in range(2):
        batches = iter(loader)
        found = [next(batches).tolist() for _ in range(2)]
        with pytest.raises(KeyError, match="five"):
            next(batches)
        assert found + [batch.tolist() for batch in batches] == [
            [i, i + 1] for i in range(0, 16, 2) if i != 4
        ]
    loader._dismiss()


@pytest.mark.usefixtures("nothing_left")
def test_what_cannot_be_sent_is_told():
    with pytest.raises(Exception, match=r"pickle|local object") as info:  # in the words of this Python
        list(data.DataLoader(sets.Unsendable(), batch_size=None, num_workers=2))
    assert any("while sending batch 2" in note for note in info.value.__notes__)


@pytest.mark.parametrize("options", WORKERS)
@pytest.mark.usefixtures("nothing_left")
def test_abandoned_iterators(options):
    for taken in range(3):
        iterator = iter(data.DataLoader(sets.Images(), batch_size=2, **options))
        for _ in range(taken):
            next(iterator)
        del iterator


AMONG_OTHERS = """
import gc, os, time
import loader_sets as sets
import taeda_data as data
loaders = [data.DataLoader(sets.Draws(), num_workers=1, persistent_workers=True) for _ in range(3)]
for loader in loaders:
    list(loader)
begin = time.monotonic()
while loaders:
    del loaders[0], loader  # of which later workers have inherited an end
    gc.collect()
    loader = None
print(time.monotonic() - begin)
running = iter(data.DataLoader(sets.Draws(), num_workers=1))
next(running)
if os.fork() == 0:
    del running
    gc.collect()
    os._exit(0)
assert os.wait()[1] == 0
print(len(list(running)))
"""


def test_workers_end_beside_those_of_other_loaders():
    done = subprocess.run(
        [sys.executable, "-c", AMONG_OTHERS],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=Path(__file__).parent,
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    seconds, left = done.stdout.split()
    assert float(seconds) < 2 and int(left) > 0  # a worker that does not notice gets that much


@pytest.mark.usefixtures("nothing_left")
def test_loaders_within_loaders():
    assert [batch.item() for batch in data.DataLoader(sets.Nested(), num_workers=2)] == [10, 10, 10]


@pytest.mark.usefixtures("nothing_left")
def test_two_at_once():
    one, two = (data.DataLoader(sets.Images(), batch_size=3, num_workers=2) for _ in range(2))
    for (_, a), (_, b) in zip(one, two, strict=True):
        assert a.tolist() == b.tolist()


def run(program):
    """What a program printed, and how it ended."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=os.path.dirname(__file__),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def lives(pid):
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False


def test_the_interpreter_ends_in_the_middle_of_an_epoch():
    result = run("""
        import loader_sets, taeda_data as data
        iterator = iter(data.DataLoader(loader_sets.Images(100), num_workers=2))
        next(iterator)
        print("done")
    """)
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", "")


def test_an_interrupt_ends_the_epoch_quietly():
    result = run("""
        import loader_sets, signal, taeda_data as data
        signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell began us in the background
        try:
            list(data.DataLoader(loader_sets.Faulty("hangs_while_the_parent_is_interrupted"), num_workers=2))
        except KeyboardInterrupt:
            print("interrupted")
        import multiprocessing
        print(multiprocessing.active_children())
    """)
    assert result.stdout == "interrupted\n[]\n" and result.stderr == ""


def test_workers_end_with_a_killed_parent():
    result = run("""
        import loader_sets, os, signal, taeda_data as data
        rows = iter(data.DataLoader(loader_sets.Who(), batch_size=None, num_workers=2))
        print(next(rows)[3], next(rows)[3], flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    pids = [int(pid) for pid in result.stdout.split()]
    assert len(pids) == 2

    def none_is_left():
        assert not [pid for pid in pids if lives(pid)]

    eventually(none_is_left)


def test_without_the_multiprocessing_part_loaders_read_here():
    result = run("""
        import pickle, sys
        sys.modules["taeda_multiprocessing"] = None
        import taeda_data as data
        print(list(pickle.loads(pickle.dumps(data.SharedList([("a", 1), ("b", 2)])))))
        for options in ({}, {"num_workers": 1, "worker_type": "thread"}):
            print([batch.tolist() for batch in data.DataLoader(range(3), batch_size=2, **options)])
        try:
            list(data.DataLoader(range(3), num_workers=1))
        except ImportError as error:
            print(error)
    """)
    lines = result.stdout.splitlines()
    assert lines[:3] == ["[('a', 1), ('b', 2)]", *["[[0, 1], [2]]"] * 2], result.stderr
    assert "pip install taeda-multiprocessing" in lines[3], result.stderr


def test_sparse_samples_are_joined_in_workers_too():
    samples = [tt.eye(3)[row : row + 2].to_sparse() for row in (0, 1, 0, 1)]
    found = list(data.DataLoader(samples, batch_size=2, num_workers=1))
    assert [batch.to_dense().tolist() for batch in found] == [
        tt.stack([tt.eye(3)[:2], tt.eye(3)[1:]]).tolist()
    ] * 2
