"""What test_rpc.py starts in several processes: one of the parts below, which fails where something is wrong.

python -m taeda.distributed.run --standalone --nproc-per-node=3 rpc_program.py PART
"""

from __future__ import annotations

import functools
import gc
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable

import taeda as torch
import taeda.distributed as dist
from taeda import nn
from taeda.distributed import autograd, rpc
from taeda.distributed.nn import RemoteModule
from taeda.distributed.optim import DistributedOptimizer
from taeda.distributed.rpc import _references, api

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def same(found: object, expected: object) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def numbers(*shape: int, seed: int = 0, requires_grad: bool = False) -> torch.Tensor:
    source = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=source, dtype=torch.float64).requires_grad_(requires_grad)


def refused(
    call: Callable[[], object], kind: type[BaseException] | tuple[type[BaseException], ...], text: str
) -> None:
    try:
        call()
    except kind as error:
        assert text in str(error), (text, str(error))
    else:
        raise AssertionError(f"{kind} with {text!r} was expected")


def first(part: Callable[[], None]) -> Callable[[], None]:
    """A part that the first process plays; the others answer."""

    def play() -> None:
        if RANK == 0:
            part()

    return play


def where() -> str:
    return rpc.get_worker_info().name


def relay(to: list[str]) -> list[str]:
    """Through all of them, each of which waits for the next."""
    return [where(), *(rpc.rpc_sync(to[0], relay, (to[1:],)) if to else [])]


@first
def calls() -> None:
    """Functions of modules, of this program, built-in ones; waiting at once, later, and for many."""
    assert rpc.get_worker_info() == ("worker0", 0) and rpc.get_worker_info("worker2").id == 2
    assert str(rpc.get_worker_info("worker1")) == "WorkerInfo(id=1, name=worker1)"
    for to in ("worker1", 1, rpc.get_worker_info("worker1")):
        assert rpc.rpc_sync(to, where) == "worker1"
    assert rpc.rpc_sync("worker0", where) == "worker0"
    same(
        rpc.rpc_sync("worker1", torch.add, args=(torch.ones(2), 3), kwargs={"alpha": 2}),
        torch.full((2,), 7.0),
    )
    assert rpc.rpc_sync("worker2", max, args=([3, 1, 2],)) == 3
    waiting = [rpc.rpc_async(f"worker{i % SIZE}", torch.mul, (numbers(5), i)) for i in range(60)]
    for i, future in enumerate(waiting):
        same(future.wait(), numbers(5) * i)
    assert rpc.rpc_async("worker1", where).then(lambda done: done.value() + "!").wait() == "worker1!"
    with api._wait_all():
        slow = [rpc.rpc_async("worker1", sleep, (0.2,)) for _ in range(3)]
    assert all(future.done() for future in slow)
    # Deeper than any fixed number of threads.
    route = [f"worker{1 + i % 2}" for i in range(40)]
    assert rpc.rpc_sync("worker1", relay, (route,)) == ["worker1", *route]
    large = numbers(300_000)
    same(rpc.rpc_sync("worker1", torch.neg, (large,)), -large)
    view = numbers(4, 6)[:, ::2]
    found = rpc.rpc_sync("worker1", torch.t, (view,))
    same(found, view.t())
    sent = numbers(3, requires_grad=True)
    assert rpc.rpc_sync("worker1", torch.exp, (sent * 2,)).requires_grad  # of no graph outside of a context


class Counter:
    def __init__(self, start: int) -> None:
        self.count = start

    def add(self, amount: int, times: int = 1) -> int:
        self.count += amount * times
        return self.count

    def me(self) -> Counter:
        return self

    @rpc.functions.async_execution
    def add_elsewhere(self, to: str, x: torch.Tensor) -> torch.futures.Future:
        return rpc.rpc_async(to, torch.add, (x, self.count)).then(lambda done: done.wait() * 10)

    @staticmethod
    @rpc.functions.async_execution
    def wrong() -> int:
        return 3


def total(reference: rpc.RRef) -> float:
    return reference.to_here().sum().item()


def hold(reference: rpc.RRef) -> None:
    global held
    held = reference


def held_value() -> object:
    return held.to_here()


def let_go() -> None:
    global held
    held = None
    gc.collect()


def count_of_objects() -> int:
    return len(_references.table)


def soon(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < limit, "it did not become true"
        time.sleep(0.01)


@first
def references() -> None:
    """Objects stay where they are; they live as long as somebody anywhere refers to them."""
    mine = rpc.RRef(torch.ones(3))
    assert mine.is_owner() and mine.owner_name() == "worker0" and mine.confirmed_by_owner()
    assert rpc.rpc_sync("worker1", total, (mine,)) == 3
    assert mine.to_here() is mine.local_value()
    counter = rpc.remote("worker1", Counter, (5,))
    assert not counter.is_owner() and counter.owner() == rpc.get_worker_info("worker1")
    assert counter.rpc_sync().add(2) == 7
    assert counter.rpc_async().add(1, times=3).wait() == 10
    assert counter.remote().add(1).to_here() == 11
    assert counter.to_here().count == 11 and counter.to_here().add(5) == 16  # a copy
    assert counter._get_type() is Counter and counter.rpc_sync().add(0) == 11
    assert counter.confirmed_by_owner()
    same(counter.rpc_sync().add_elsewhere("worker2", torch.ones(2)), torch.full((2,), 120.0))
    refused(counter.rpc_sync().wrong, RuntimeError, "must return a torch.futures.Future")
    refused(counter.local_value, RuntimeError, "non-local reference")
    refused(functools.partial(pickle.dumps, mine), RuntimeError, "can only be pickled when using RPC")
    # Handed on, while this process lets go.
    tensor = rpc.remote("worker1", torch.full, ((2,), 4.0))
    rpc.rpc_sync("worker2", hold, (tensor,))
    del tensor
    gc.collect()
    same(rpc.rpc_sync("worker2", held_value), torch.full((2,), 4.0))
    rpc.rpc_sync("worker2", hold, (counter,))  # the tensor is let go
    soon(lambda: rpc.rpc_sync("worker1", count_of_objects) == 1)
    rpc.rpc_sync("worker1", hold, (counter,))  # the owner's own reference
    del counter
    gc.collect()
    rpc.rpc_sync("worker2", let_go)
    assert rpc.rpc_sync("worker1", held_value).count == 11
    rpc.rpc_sync("worker1", let_go)
    soon(lambda: rpc.rpc_sync("worker1", count_of_objects) == 0)
    local = rpc.remote("worker0", torch.ones, (2,))
    assert local.is_owner() and local.to_here().tolist() == [1, 1]
    everything = [rpc.remote("worker2", torch.full, ((3,), float(i))) for i in range(100)]
    assert [r.to_here()[0].item() for r in everything] == list(range(100))
    del everything, mine, local
    gc.collect()
    soon(lambda: rpc.rpc_sync("worker2", count_of_objects) == 0)
    assert count_of_objects() == 0


class Own(Exception):
    def __init__(self, text: str, more: int = 3) -> None:
        super().__init__(text)
        self.more = more


class Odd(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__(one, two)


def fail(kind: type[BaseException], *args: object) -> None:
    raise kind(*args)


def sleep(seconds: float) -> None:
    time.sleep(seconds)


@first
def errors() -> None:
    """What functions raise elsewhere is raised here; wrong calls are refused; late answers too."""
    refused(
        lambda: rpc.rpc_sync("worker1", fail, (ValueError, "here")),
        ValueError,
        "On WorkerInfo(id=1, name=worker1)",
    )
    refused(lambda: rpc.rpc_sync("worker1", fail, (KeyError, "word")), KeyError, "in fail")
    refused(lambda: rpc.rpc_sync("worker1", fail, (Own, "words")), Own, "words")
    refused(lambda: rpc.rpc_sync("worker1", fail, (Odd, 1, 2)), RuntimeError, "Odd: On WorkerInfo")
    refused(lambda: rpc.rpc_sync("worker1", torch.add, (torch.ones(2), torch.ones(3))), RuntimeError, "add")
    failed = rpc.remote("worker1", fail, (ValueError, "later"))
    refused(failed.to_here, ValueError, "later")
    refused(failed.rpc_sync().anything, ValueError, "later")
    refused(
        lambda: rpc.rpc_sync("worker1", lambda: 3), (AttributeError, pickle.PicklingError), "local object"
    )
    refused(lambda: rpc.rpc_sync("worker1", threading.Lock), TypeError, "pickle")  # what comes back
    refused(lambda: rpc.rpc_sync("worker1", 3), TypeError, "function should be callable")
    refused(lambda: rpc.rpc_sync("nobody", where), RuntimeError, "Unknown destination worker nobody")
    refused(lambda: rpc.rpc_sync(7, where), RuntimeError, "Unknown destination worker 7")
    refused(lambda: rpc.rpc_sync("worker1", sleep, (2,), timeout=0.2), RuntimeError, "set timeout (200 ms)")
    refused(lambda: rpc.rpc_sync("worker1", where, timeout=-3), RuntimeError, "must not be negative")
    refused(lambda: rpc.init_rpc("other"), RuntimeError, "already initialized")
    refused(lambda: autograd.get_gradients(12), RuntimeError, "Could not find autograd context with id: 12")
    before = rpc.get_rpc_timeout()
    rpc._set_rpc_timeout(0.2)
    refused(lambda: rpc.rpc_sync("worker2", sleep, (2,)), RuntimeError, "set timeout (200 ms)")
    rpc._set_rpc_timeout(before)
    assert rpc.rpc_sync("worker1", where) == "worker1"


class Layer(nn.Module):
    def __init__(self, seed: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(numbers(4, 4, seed=seed))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x @ self.weight).tanh()

    def and_on(self, x: torch.Tensor, following: rpc.RRef) -> torch.Tensor:
        """Two ways to the result, one of them through another process."""
        y = self(x)
        return y + following.rpc_sync().forward(y)

    def references(self) -> list[rpc.RRef]:
        return [rpc.RRef(p) for p in self.parameters()]

    def gradient(self, context: int) -> torch.Tensor:
        return autograd.get_gradients(context)[self.weight]


@first
def gradients() -> None:
    """Those of a graph through three processes are those of one; nothing is left behind."""
    one, two = rpc.remote("worker1", Layer, (1,)), rpc.remote("worker2", Layer, (2,))
    x = numbers(3, 4, seed=3, requires_grad=True)
    with autograd.context() as context:
        y = one.rpc_sync().and_on(x * x, two) * x
        z = two.rpc_async().forward(y).wait()
        autograd.backward(context, [z.sum(), (y * 2).sum()])
        found = autograd.get_gradients(context)
        elsewhere = one.rpc_sync().gradient(context), two.rpc_sync().gradient(context)
        assert list(found) == [x] and x.grad is None
        refused(lambda: autograd.backward(context, [z]), RuntimeError, "root is not a scalar")
        refused(
            lambda: autograd.backward(context, [torch.ones(())]),
            RuntimeError,
            "requires_grad not set on root",
        )
        refused(lambda: autograd.backward(context, []), RuntimeError, "No tensors provided")
    refused(lambda: autograd.get_gradients(context), RuntimeError, "Could not find autograd context")
    refused(lambda: one.rpc_sync().gradient(context), RuntimeError, "Could not find autograd context")
    a, b, leaf = Layer(1), Layer(2), x.detach().requires_grad_()
    h = a(leaf * leaf)
    y = (h + b(h)) * leaf
    (b(y).sum() + (y * 2).sum()).backward()
    same(found[x], leaf.grad)
    same(elsewhere, (a.weight.grad, b.weight.grad))
    with autograd.context() as context:  # by the process that has the loss
        loss = rpc.remote("worker1", torch.sum, (x * 3,))
        loss.backward(context)
        same(autograd.get_gradients(context)[x], torch.full_like(x, 3))
    with autograd.context() as context:  # several outputs, one of them unused, and no gradient for numbers
        values, places = rpc.rpc_sync("worker1", torch.max, (x, 1))
        autograd.backward(context, [values.sum()])
        assert not places.requires_grad
        same(autograd.get_gradients(context)[x].sum(1), torch.ones(3, dtype=torch.float64))


@first
def training() -> None:
    """Steps of an optimizer in two processes are those of one in one."""
    layers = [rpc.remote(f"worker{i}", Layer, (i,)) for i in (1, 2)]
    parameters = [r for layer in layers for r in layer.rpc_sync().references()]
    optimizer = DistributedOptimizer(torch.optim.SGD, parameters, lr=0.1, momentum=0.9)
    local = [Layer(1), Layer(2)]
    beside = torch.optim.SGD([p for layer in local for p in layer.parameters()], lr=0.1, momentum=0.9)
    for step in range(4):
        x = numbers(5, 4, seed=10 + step)
        with autograd.context() as context:
            loss = layers[1].rpc_sync().forward(layers[0].rpc_sync().forward(x)).square().sum()
            autograd.backward(context, [loss])
            optimizer.step(context)
        beside.zero_grad()
        expected = local[1](local[0](x)).square().sum()
        expected.backward()
        beside.step()
        same(loss, expected)
    for layer, here in zip(layers, local, strict=True):
        same(layer.to_here().weight, here.weight)
    refused(lambda: optimizer.step(context), RuntimeError, "Could not find autograd context")
    refused(
        lambda: DistributedOptimizer(torch.optim.SGD, parameters, lr=-1.0),
        RuntimeError,
        "2 of 2 processes failed",
    )
    linear = RemoteModule("worker1/cpu", nn.Linear, (4, 2), {"dtype": torch.float64})
    with autograd.context() as context:
        autograd.backward(context, [linear(x).sum()])
        weight, bias = linear.remote_parameters()
        DistributedOptimizer(torch.optim.SGD, [weight, bias], lr=1.0).step(context)
        before = linear.get_module_rref().to_here()
    assert bias.to_here().shape == (2,) and isinstance(before, nn.Linear)
    refused(linear.parameters, ValueError, "Method ``parameters`` not supported for RemoteModule")
    refused(lambda: RemoteModule("worker1/cpu", Counter, (3,)), ValueError, "instance of <class nn.Module>")
    refused(lambda: RemoteModule("a/b/c", nn.Linear), ValueError, "argument 'remote_device' is 'a/b/c'")
    refused(lambda: RemoteModule("cpu", nn.Linear), ValueError, "'cpu', which names no process")


def together() -> None:
    """A group of the same processes, found at the same address; all meet and exchange objects."""
    dist.init_process_group("gloo")
    x = torch.tensor([float(RANK)])
    dist.all_reduce(x)
    assert x.item() == SIZE * (SIZE - 1) / 2
    for turn in range(3):
        every = api._all_gather((RANK, turn))
        assert every == {f"worker{i}": (i, turn) for i in range(SIZE)}
    api._barrier({f"worker{i}" for i in range(SIZE)})
    dist.destroy_process_group()
    rpc.shutdown()
    refused(lambda: rpc.rpc_sync("worker0", where), RuntimeError, "RPC has not been initialized")
    refused(rpc.shutdown, RuntimeError, "RPC has not been initialized")
    begin()  # and once more
    assert rpc.rpc_sync((RANK + 1) % SIZE, where) == f"worker{(RANK + 1) % SIZE}"


def go(seconds: float) -> None:
    time.sleep(seconds)
    os._exit(0)


def leaving() -> None:
    """A process that goes is noticed by those that wait for it, before their time is over."""
    if RANK == 0:
        begun = time.monotonic()
        refused(
            lambda: rpc.rpc_sync("worker2", go, (0.3,), timeout=120), RuntimeError, "name=worker2) has gone"
        )
        refused(lambda: rpc.rpc_sync("worker2", where), RuntimeError, "worker2")
        assert time.monotonic() - begun < 60
        assert rpc.rpc_sync("worker1", where) == "worker1"
    elif RANK == 2:
        time.sleep(600)
    if RANK == 0:
        rpc.rpc_async("worker1", go, (0.1,))
        time.sleep(0.05)
        os._exit(0)
    time.sleep(600)


def begin() -> None:
    options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=8, rpc_timeout=120)
    rpc.init_rpc(f"worker{RANK}", rank=RANK, world_size=SIZE, rpc_backend_options=options)


def main() -> None:
    torch.set_num_threads(1)
    begin()
    globals()[sys.argv[1]]()
    rpc.shutdown()
    assert not [
        t.name
        for t in threading.enumerate()
        if t.name.startswith("taeda-rpc-") and t.name != "taeda-rpc-call"
    ]


if __name__ == "__main__":
    main()
