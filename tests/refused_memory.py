"""Runs records and programs while one request for memory is refused, and prints what is wrong afterwards.

    LD_PRELOAD=refusing_heap.so python tests/refused_memory.py records SEED | programs

Each request of a run is refused in turn, of many a sample. The call must end in an error that speaks of memory, or
have a way without it and be right; what it was given must be as before; and the next run must be right.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from test_kept_and_recorded import Call, differ, differentiable, gradients, results

import taeda
from taeda import nn
from taeda.nn import functional as F
from taeda_testing.cases import samples_of, size_of
from taeda_testing.record import OpRecord, Sample, all_records

HEAP = ctypes.CDLL(None)
HEAP.refuse_block.argtypes = [ctypes.c_long, ctypes.c_long]
HEAP.stop_refusing.restype = ctypes.c_long
#: Requests of a run that are refused; the first ones are the operator's own.
FIRST, MORE = 25, 8
# oneDNN uses blocks that it did not get; those of its own objects are small.
OBJECTS = 2048


def requests(run: Callable[[], Any], least: int) -> int:
    HEAP.refuse_block(-1, least)
    try:
        run()
    finally:
        found = HEAP.stop_refusing()
    return found


def refused(run: Callable[[], Any], n: int, least: int) -> tuple[Any, BaseException | None]:
    """The result of a run whose request number n is refused, or its error."""
    HEAP.refuse_block(n, least)
    try:
        result = run()
    except BaseException as error:
        HEAP.stop_refusing()
        return None, error.with_traceback(None)
    HEAP.stop_refusing()
    return result, None


def speaks_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or "memory" in str(error)


def places(total: int, rng: random.Random) -> list[int]:
    later = range(FIRST, total)
    return [*range(min(total, FIRST)), *rng.sample(later, min(MORE, len(later)))]


def same(left: Any, right: Any) -> bool:
    return np.array_equal(left.numpy(), right.numpy(), equal_nan=left.dtype.is_floating_point)


def record_run(record: OpRecord, dtype: str, sample: Sample, rng: random.Random) -> Iterator[str]:
    call = Call(record, sample)
    tensors = call.tensors
    if not tensors or any(t.layout != taeda.strided for t in tensors):
        return
    flow = differentiable(record, sample) if dtype == "float64" and record.differentiable else []
    if len(flow) == len(tensors):
        tensors = [t.requires_grad_(f and t.is_floating_point()) for t, f in zip(tensors, flow, strict=True)]
    before = [t.detach().clone() for t in tensors]

    def put_back() -> None:
        for tensor, kept in zip(tensors, before, strict=True):
            tensor.detach().copy_(kept)

    def run() -> Any:
        result = call(*tensors)
        return result, gradients(lambda *_: result, tensors)

    expected = [[x.detach().clone() for x in results(part)] for part in run()]
    writes = not all(same(t.detach(), kept) for t, kept in zip(tensors, before, strict=True))
    if writes and any(t.requires_grad for t in tensors):
        return
    least = OBJECTS if record.family in ("conv", "rnn", "matrix") else 0
    put_back()
    for n in places(requests(run, least), rng):
        put_back()
        found, error = refused(run, n, least)
        where = f"{record.name} {dtype}, request {n}"
        if error is not None and not speaks_of_memory(error):
            yield f"{where}: {type(error).__name__}: {error}"
        if found is not None and any(map(differ, found, expected)):
            yield f"{where}: another result"
        if (error is not None or not writes) and not all(
            same(t.detach(), kept) for t, kept in zip(tensors, before, strict=True)
        ):
            yield f"{where}: operands are changed"
        put_back()
        if any(map(differ, run(), expected)):
            yield f"{where}: the next call gives another result"


def records(seed: int) -> Iterator[str]:
    rng = random.Random(seed)
    for record in all_records():
        if record.creates or not record.values or record.name == "set_":
            continue
        for dtype in [d for d in ("float64", "int64", "float32") if d in record.dtypes][:2]:
            samples = [s for s in itertools.islice(samples_of(record, dtype), 60) if size_of(s) <= 20_000]
            for sample in sorted(samples, key=size_of)[len(samples) // 2 :: max(1, len(samples) // 2)][:2]:
                yield from record_run(record, dtype, sample, rng)


def network() -> Any:
    taeda.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 7), nn.BatchNorm1d(7), nn.ReLU(), nn.Linear(7, 3))


X = taeda.linspace(-1, 1, 20).reshape(4, 5)
CLASSES = taeda.tensor([0, 1, 2, 0])


def state(module: Any) -> list[Any]:
    return [t.tolist() for t in module.state_dict().values()]


def training(make: Callable[[Any], Any]) -> tuple[Callable[[], Any], ...]:
    """A step: all parameters take it, or none."""

    def begin() -> Any:
        model = network()
        optimizer = make(model.parameters())
        for _ in range(2):
            F.cross_entropy(model(X), CLASSES).backward()
            optimizer.step()
        return model, optimizer

    def run(given: Any) -> Any:
        given[1].step()
        return state(given[0])

    return begin, run, lambda given: state(given[0])


def loading() -> tuple[Callable[[], Any], ...]:
    def run(given: Any) -> Any:
        given[0].load_state_dict(given[1])
        return state(given[0])

    return (
        lambda: (network(), {k: v + 1 for k, v in network().state_dict().items()}),
        run,
        lambda g: state(g[0]),
    )


def transforms() -> tuple[Callable[[], Any], ...]:
    def run(x: Any) -> Any:
        def f(v: Any) -> Any:
            return (v.sin() * v).sum()

        vmap, grad, hessian = taeda.func.vmap, taeda.func.grad, taeda.func.hessian
        return [vmap(f)(x).tolist(), vmap(grad(f))(x).tolist(), hessian(f)(x[0]).tolist()]

    return lambda: X, run, lambda given: None


def second_order() -> tuple[Callable[[], Any], ...]:
    def run(x: Any) -> Any:
        (first,) = taeda.autograd.grad((x.tanh() @ x.t()).sum(), x, create_graph=True)
        return taeda.autograd.grad(first.pow(2).sum(), x)[0].tolist()

    return lambda: X.clone().requires_grad_(), run, lambda given: given.grad


def views_in_place() -> tuple[Callable[[], Any], ...]:
    def run(x: Any) -> Any:
        x.grad = None
        whole = x * 1
        whole[1:3].mul_(2)
        whole.t()[2].exp_()
        whole.sum().backward()
        return x.grad.tolist()

    return lambda: X.clone().requires_grad_(), run, lambda given: given.tolist()


def parametrizing(how: Callable[[Any], Any]) -> tuple[Callable[[], Any], ...]:
    def begin() -> Any:
        taeda.manual_seed(0)
        return nn.Linear(5, 3)

    def run(layer: Any) -> Any:
        taeda.manual_seed(0)
        how(layer)

    return begin, run, state


PROGRAMS: dict[str, tuple[Callable[[], Any], ...]] = {
    **{
        name: training(lambda p, name=name: getattr(taeda.optim, name)(p, lr=0.1))
        for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "NAdam", "Rprop", "Adamax")
    },
    "load_state_dict": loading(),
    "weight_norm": parametrizing(nn.utils.parametrizations.weight_norm),
    "orthogonal": parametrizing(nn.utils.parametrizations.orthogonal),
    "transforms": transforms(),
    "second order": second_order(),
    "views in place": views_in_place(),
}


def program_run(
    name: str, begin: Callable[[], Any], run: Callable[[Any], Any], look: Callable[[Any], Any]
) -> Iterator[str]:
    expected = run(begin())
    given = begin()
    before = look(given)
    for n in range(requests(functools.partial(run, given), 0)):
        given = begin()
        found, error = refused(functools.partial(run, given), n, 0)
        if error is not None and not speaks_of_memory(error):
            yield f"{name}, request {n}: {type(error).__name__}: {error}"
        if found is not None and found != expected:
            yield f"{name}, request {n}: another result"
        if error is not None and look(given) != before:
            yield f"{name}, request {n}: half done"
        if run(begin()) != expected:
            yield f"{name}, request {n}: the next run gives another result"
            return


def programs() -> Iterator[str]:
    for name, parts in PROGRAMS.items():
        yield from program_run(name, *parts)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    taeda.set_num_threads(1)
    for line in records(int(sys.argv[2])) if sys.argv[1] == "records" else programs():
        print(line, flush=True)
