"""Many Python threads at once, on tensors of their own, compute what one thread computes."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest

import taeda as t

nn = t.nn
THREADS = 8
ROUNDS = 5


def _array(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def arithmetic(seed: int) -> list:
    x = t.tensor(_array(seed, 40, 50))
    y = (x * 2 + x.t().contiguous().t()).relu().sum(1)
    return y.cumsum(0).tolist()


def large_arithmetic(seed: int) -> list:
    """Above the size at which the interpreter's lock is given back."""
    x = t.tensor(_array(seed, 300, 400))
    return [float((x.exp() + x).sum()), float(x.amax()), (x @ x.t()).diagonal()[:5].tolist()]


def changes(seed: int) -> list:
    x = t.arange(60.0).reshape(6, 10) + seed
    x[::2] *= 2
    x.t()[3].add_(1)
    x[x > 50] = -1
    return x.tolist()


def gradients(seed: int) -> list:
    x = t.tensor(_array(seed, 20, 30), requires_grad=True)
    w = t.tensor(_array(seed + 1, 30, 5), requires_grad=True)
    ((x @ w).tanh() ** 2).sum().backward()
    return [x.grad.tolist(), w.grad.tolist()]


def second_gradients(seed: int) -> list:
    x = t.tensor(_array(seed, 30), requires_grad=True)
    (g,) = t.autograd.grad((x**3).sum(), x, create_graph=True)
    (h,) = t.autograd.grad((g * g).sum(), x)
    return h.tolist()


def training(seed: int) -> list:
    layer = nn.Linear(10, 3)
    with t.no_grad():
        layer.weight.copy_(t.tensor(_array(seed, 3, 10)))
        layer.bias.zero_()
    optimizer = t.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9)
    x = t.tensor(_array(seed + 1, 16, 10))
    for _ in range(5):
        optimizer.zero_grad()
        layer(x).square().mean().backward()
        optimizer.step()
    return layer.weight.tolist()


def random_numbers(seed: int) -> list:
    generator = t.Generator()
    generator.manual_seed(seed)
    return [t.rand(20, generator=generator).tolist(), t.randperm(30, generator=generator).tolist()]


def errors(seed: int) -> list:
    texts = []
    for _ in range(20):
        with pytest.raises(RuntimeError) as caught:
            t.ones(seed + 2) + t.ones(seed + 3)
        texts.append(str(caught.value))
    return texts


def modes(seed: int) -> list:
    """What a thread switches off stays switched on for the others."""
    seen = []
    for _ in range(20):
        x = t.ones(2, requires_grad=True)
        with t.set_grad_enabled(seed % 2 == 0):
            seen.append((x * 2).requires_grad)
    return seen


PROGRAMS = [
    arithmetic,
    large_arithmetic,
    changes,
    gradients,
    second_gradients,
    training,
    random_numbers,
    errors,
    modes,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_threads_compute_what_one_computes(program):
    expected = [program(seed) for seed in range(THREADS)]
    gate = threading.Barrier(THREADS)

    def work(seed: int) -> list:
        gate.wait()
        return [program(seed) for _ in range(ROUNDS)]

    with ThreadPoolExecutor(THREADS) as pool:
        results = list(pool.map(work, range(THREADS)))
    assert results == [[one] * ROUNDS for one in expected]


def test_different_programs_at_once():
    expected = [program(3) for program in PROGRAMS]
    with ThreadPoolExecutor(len(PROGRAMS)) as pool:
        results = list(pool.map(lambda program: [program(3) for _ in range(ROUNDS)], PROGRAMS))
    assert results == [[one] * ROUNDS for one in expected]


def test_threads_read_one_tensor():
    x = t.tensor(_array(0, 100, 100))
    weights = t.ones(100, requires_grad=True)

    def work(_: int) -> float:
        return float((x * weights).sum().detach())

    with ThreadPoolExecutor(THREADS) as pool:
        assert len(set(pool.map(work, range(40)))) == 1


def test_gradients_into_one_leaf_add_up():
    """Whichever thread comes first, nothing is lost."""
    x = t.zeros(50, requires_grad=True)
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda k: (x * k).sum().backward(), range(1, 41)))
    assert x.grad.tolist() == [float(sum(range(1, 41)))] * 50


def test_tensors_may_die_in_another_thread():
    made = [t.ones(1000, requires_grad=True).exp() for _ in range(50)]

    def drop(_: int) -> None:
        while made:
            try:
                made.pop().sum().backward()
            except IndexError:
                return

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(drop, range(4)))
    assert not made


def test_a_thread_that_ends_leaves_its_tensors():
    kept = []
    thread = threading.Thread(target=lambda: kept.append(t.arange(5).add(1)))
    thread.start()
    thread.join()
    assert kept[0].tolist() == [1, 2, 3, 4, 5]


def memories(tensors: list) -> int:
    return len({x.untyped_storage().data_ptr() for x in tensors})


def test_pickles_of_one_storage_written_at_once_share_it_each():
    whole = t.rand(40)
    views = [whole[i:] for i in range(10)]
    start, found = threading.Barrier(THREADS), []

    def run() -> None:
        for _ in range(200):
            start.wait()
            found.append(memories(pickle.loads(pickle.dumps(views))))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=run) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert found == [1] * (200 * THREADS)


def test_no_hook_is_lost_beside_calls_of_other_threads():
    layer, x, done = nn.Identity(), t.ones(1), threading.Event()

    def call() -> None:
        while not done.is_set():
            layer(x)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=call)
    try:
        thread.start()
        for _ in range(20_000):
            handle = layer.register_forward_pre_hook(lambda *_: None)
            kept = len(layer._forward_pre_hooks)
            handle.remove()
            assert kept == 1
    finally:
        done.set()
        sys.setswitchinterval(interval)
        thread.join()


def test_a_module_that_learns_its_sizes_is_called_first_by_several_threads():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(50):
            layer, start = nn.LazyLinear(2), threading.Barrier(THREADS)

            def call(_: int, layer=layer, start=start) -> list:
                start.wait()
                return layer(t.ones(1, 3)).tolist()

            with ThreadPoolExecutor(THREADS) as pool:
                results = list(pool.map(call, range(THREADS)))
            assert results == [layer(t.ones(1, 3)).tolist()] * THREADS
    finally:
        sys.setswitchinterval(interval)


def test_members_come_and_go_beside_conversions_of_the_module():
    net, end, odd = nn.Linear(2, 2), time.monotonic() + 1.5, []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def come_and_go(name: str) -> None:
        while time.monotonic() < end:
            net.register_buffer(name, t.ones(1))
            delattr(net, name)
            if name in vars(net):
                odd.append(name)
                return

    def convert() -> None:
        while time.monotonic() < end:
            with suppress(RuntimeError, KeyError):  # members changed while they were walked through
                net.double().float()

    try:
        with ThreadPoolExecutor(4) as pool:
            waited = [
                pool.submit(come_and_go, "a"),
                pool.submit(come_and_go, "b"),
                *map(pool.submit, [convert] * 2),
            ]
        assert [one.result() for one in waited] == [None] * 4
    finally:
        sys.setswitchinterval(interval)
    assert odd == [] and [*net.state_dict()] == ["weight", "bias"]


IMPORTS = """
import faulthandler, sys, threading
faulthandler.dump_traceback_later(60, exit=True)
sys.setswitchinterval(1e-6)
import taeda
sys.modules["torch"] = taeda
start = threading.Barrier(8)
names = {names!r}
failed = []
def run(name):
    start.wait()
    try:
        __import__(name, fromlist=["*"])
    except BaseException as error:
        failed.append((name, error))
threads = [threading.Thread(target=run, args=(name,)) for name in names]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(failed)
"""
NAMES = [
    "taeda.utils.data", "torch.func", "taeda.distributions", "torch.nn.functional", "taeda.library",
    "taeda.serialization", "taeda.fx", "torch.optim", "taeda.utils.checkpoint", "taeda.profiler",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_threads_import_modules_below_taeda_at_once(seed):
    """None waits for ever: no lock of Python's is held while a provider is imported."""
    names = ["numpy", *random.Random(seed).sample(NAMES, 7)]
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS.format(names=names)], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr[-3000:]


FIRST = """
import faulthandler, sys, threading, traceback
faulthandler.dump_traceback_later(60, exit=True)
sys.setswitchinterval(1e-6)
import taeda as t
start = threading.Barrier(8)
failed = []
def autocast():
    with t.autocast("cpu", dtype=t.bfloat16):
        assert t.mm(t.ones(2, 2), t.ones(2, 2)).dtype == t.bfloat16
def checkpoint():
    x = t.ones(3, requires_grad=True)
    t.utils.checkpoint.checkpoint(t.exp, x, use_reentrant=False).sum().backward()
    assert x.grad.allclose(x.detach().exp())
def dispatch():
    seen = []
    class Sees(t.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {{}}))
    with Sees():
        t.ones(2, 2) @ t.ones(2, 2)
    assert seen
def operator():
    lib = t.library.Library(f"first{{threading.get_ident()}}", "DEF")
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: x + 1, "CPU")
    assert getattr(t.ops, lib.ns).f(t.ones(2)).tolist() == [2, 2]
def sparse():
    assert (t.eye(3).to_sparse() @ t.ones(3, 1)).sum() == 3
def batches():
    assert t.func.vmap(t.func.grad(lambda x: (x * x).sum()))(t.ones(3, 4)).tolist() == [[2] * 4] * 3
def graph():
    traced = t.fx.symbolic_trace(t.nn.Sequential(t.nn.Linear(3, 2), t.nn.ReLU()))
    assert traced(t.ones(1, 3)).shape == (1, 2)
def fake():
    from taeda._subclasses import FakeTensorMode
    with FakeTensorMode():
        assert (t.ones(3, 4) @ t.ones(4, 5)).shape == (3, 5)
def quantized():
    t.ao.quantization.quantize_dynamic(t.nn.Sequential(t.nn.Linear(3, 2)), dtype=t.qint8)(t.ones(1, 3))
def names():
    for name in dir(t):
        getattr(t, name)
def run(name):
    start.wait()
    try:
        globals()[name]()
    except BaseException:
        failed.append(traceback.format_exc())
threads = [threading.Thread(target=run, args=(name,)) for name in {names!r}]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(*failed, sep="\\n", end="")
"""
USES = [
    "autocast", "checkpoint", "dispatch", "operator", "sparse", "batches", "graph", "fake", "quantized", "names",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_threads_use_parts_for_the_first_time_at_once(seed):
    names = random.Random(seed).sample(USES, 8)
    done = subprocess.run(
        [sys.executable, "-c", FIRST.format(names=names)], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr[-3000:]
