"""The order of what goes through queues, how much they hold, and errors, whichever way a message takes."""

import io
import pickle
import queue as standard
import random
import sys
import threading

import mp_workers as workers
import pytest
import taeda_multiprocessing as mp

from taeda_registry.slots import tensor as tt
from taeda_testing.settling import PATIENCE, eventually

pytestmark = pytest.mark.usefixtures("nothing_left")
SIZES = (1, 8, 40, 5_000, 200_000)


def item(number, size):
    """A tensor, a number or a list of `size` elements, all of which say the number."""
    kind = number % 4
    if kind == 0:
        return tt.full((size,), float(number))
    if kind == 1:
        return [number] * size
    return number if kind == 2 else ("item", {"number": number}, None, tt.tensor([float(number)]))


def number_of(received):
    if isinstance(received, tuple):
        return int(received[-1].item())
    if isinstance(received, list):
        assert set(received) == {received[0]}
        return received[0]
    return received if isinstance(received, int) else int(received[-1].item())


@pytest.mark.parametrize("kind", ["Queue", "JoinableQueue"])
def test_small_and_large_items_arrive_in_order(kind):
    seed = random.SystemRandom().randrange(1 << 30)
    print("seed", seed)
    draw = random.Random(seed)
    context = mp.get_context("fork")
    there, back = getattr(context, kind)(), getattr(context, kind)()
    process = context.Process(target=workers.pass_on, args=(there, back))
    process.start()
    for start in range(0, 400, 40):
        for number in range(start, start + 40):
            there.put(item(number, draw.choice(SIZES)))
        for number in range(start, start + 40):
            assert number_of(back.get(timeout=PATIENCE)) == number
    there.put(None)
    process.join()
    assert process.exitcode == 0


def wrapping():
    """Tensors that other tensors say what they are."""
    square = tt.arange(9.0).reshape(3, 3)
    long = tt.arange(30_000.0)
    return {
        "sparse": square.to_sparse(),
        "rows": square.to_sparse_csr(),
        "nested": tt.nested.nested_tensor([long, square[0]]),
        "jagged": tt.nested.nested_tensor([long, square[0]], layout=tt.jagged),
        "masked": tt.masked.masked_tensor(square, square > 3),
        "quantized": tt.quantize_per_tensor(square, 0.5, 3, tt.quint8),
    }


@pytest.mark.parametrize("name", ["sparse", "rows", "nested", "jagged", "masked", "quantized"])
def test_tensors_without_memory_of_their_own_arrive(name):
    if not hasattr(tt, "nested"):
        pytest.skip("the provider has no such tensors")
    value = wrapping()[name]
    context = mp.get_context("fork")
    there, back = context.Queue(), context.Queue()
    process = context.Process(target=workers.pass_on, args=(there, back))
    process.start()
    there.put(value)
    received = back.get(timeout=PATIENCE)
    there.put(None)
    process.join()
    assert type(received) is type(value) and received.layout == value.layout
    if name in ("nested", "jagged"):
        parts = list(zip(received.unbind(), value.unbind(), strict=True))
    elif name == "masked":
        parts = [(received.get_mask(), value.get_mask()), (received.get_data(), value.get_data())]
    else:
        dense = "dequantize" if name == "quantized" else "to_dense"
        parts = [(getattr(received, dense)(), getattr(value, dense)())]
    assert all(tt.equal(*pair) for pair in parts)


def test_nested_tensors_are_moved_to_shared_memory():
    if not hasattr(tt, "nested"):
        pytest.skip("the provider has no such tensors")
    value = tt.nested.nested_tensor([tt.zeros(2), tt.zeros(3)])
    assert not value.is_shared()
    assert value.share_memory_() is value and value.is_shared()
    assert all(part.is_shared() for part in value.unbind())


def test_each_thread_keeps_its_order():
    channel = mp.get_context("fork").Queue()

    def put(thread):
        for number in range(200):
            channel.put((thread, number, [0] * (number % 7 * 1_000)))

    threads = [threading.Thread(target=put, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    last = dict.fromkeys(range(4), -1)
    for _ in range(800):
        thread, number, _filling = channel.get(timeout=PATIENCE)
        assert number == last[thread] + 1
        last[thread] = number
    for thread in threads:
        thread.join()


def test_a_queue_holds_no_more_than_it_may():
    channel = mp.get_context("fork").Queue(maxsize=3)
    for number in range(3):
        channel.put(number)
    assert channel.full()
    with pytest.raises(standard.Full):
        channel.put(3, block=False)
    with pytest.raises(standard.Full):
        channel.put(3, timeout=0.01)
    assert [channel.get(timeout=PATIENCE) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(standard.Empty):
        channel.get(block=False)


def test_a_pipe_that_is_full_makes_nobody_wait():
    """Small items beyond what the pipe takes wait in the feeder's list, in order."""
    channel = mp.get_context("fork").Queue()
    for number in range(5_000):
        channel.put(("x" * 100, number))
    assert [channel.get(timeout=PATIENCE)[1] for _ in range(5_000)] == list(range(5_000))


def test_items_are_done_when_their_takers_say_so():
    channel = mp.get_context("fork").JoinableQueue()
    for number in range(3):
        channel.put(number)
    joined = threading.Event()
    waiting = threading.Thread(target=lambda: (channel.join(), joined.set()))
    waiting.start()
    for _ in range(3):
        assert not joined.is_set()
        channel.get(timeout=PATIENCE)
        channel.task_done()
    assert joined.wait(PATIENCE)
    waiting.join()
    with pytest.raises(ValueError, match="too many times"):
        channel.task_done()


def test_what_cannot_be_sent_is_told_as_pythons_queue_tells_it(monkeypatch):
    """By the feeder, not the caller; the place in the queue is free again."""
    told = io.StringIO()
    monkeypatch.setattr(sys, "stderr", told)
    channel = mp.get_context("fork").Queue(maxsize=1)
    channel.put(tt.ones(2, requires_grad=True) * 2)
    channel.put(5, timeout=PATIENCE)

    def said():
        assert "cannot be sent" in told.getvalue()

    eventually(said)
    assert channel.get(timeout=PATIENCE) == 5


def test_a_closed_queue_takes_nothing():
    channel = mp.get_context("fork").Queue()
    channel.put(1)
    assert channel.get(timeout=PATIENCE) == 1
    channel.close()
    with pytest.raises(ValueError, match="closed"):
        channel.put(2)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_context_can_be_pickled(method):
    context = mp.get_context(method)
    assert pickle.loads(pickle.dumps(context)) is context
