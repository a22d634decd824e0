"""What test_nccl.py starts in several processes: one of the parts below, which fails where something is wrong.

python -m taeda.distributed.run --standalone --nproc-per-node=3 nccl_program.py PART
"""

from __future__ import annotations

import os
import sys
import time
from datetime import timedelta
from typing import Any

import taeda as torch
import taeda.distributed as dist

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
# Several processes may share a device: what is in NCCL's place does not mind.
DEVICE = torch.device("cuda", RANK % torch.cuda.device_count())


def numbers(rank: int, *shape: int, dtype: Any = torch.float32) -> Any:
    """Small whole numbers of one process, which all can compute."""
    source = torch.Generator().manual_seed(100 * rank + sum(shape))
    return torch.randint(1, 5, shape, generator=source).to(dtype)


def there(value: Any) -> Any:
    return value.to(DEVICE)


def same(found: Any, expected: Any) -> None:
    assert found.device == DEVICE and found.dtype == expected.dtype, (found, expected)
    assert torch.equal(found.cpu(), expected), (found.cpu(), expected)


def reductions() -> None:
    """Every reduction, of the dtypes that there are, in one process and in all."""
    op = dist.ReduceOp
    known = {
        op.SUM: lambda t: t.sum(0), op.PRODUCT: lambda t: t.prod(0), op.MIN: lambda t: t.amin(0),
        op.MAX: lambda t: t.amax(0),
    }  # fmt: skip
    for dtype in (torch.float32, torch.float64, torch.int32, torch.int64, torch.uint8):
        whole = torch.stack([numbers(rank, 3, 5, dtype=dtype) for rank in range(SIZE)])
        for kind, expected in known.items():
            tensor = there(whole[RANK])
            assert dist.all_reduce(tensor, kind) is None
            same(tensor, expected(whole).to(dtype))
    tensor = there(whole[RANK].double())
    dist.all_reduce(tensor, op.AVG)
    same(tensor, whole.double().sum(0) / SIZE)
    tensor = there(whole[RANK])
    dist.reduce(tensor, 1)
    same(tensor, (whole.sum(0) if RANK == 1 else whole[RANK]).to(torch.uint8))
    truth = torch.tensor([RANK == 0, RANK < SIZE, False])
    for kind, expected in ((op.SUM, [True, True, False]), (op.MIN, [SIZE == 1, True, False])):
        tensor = there(truth)
        dist.all_reduce(tensor, kind)
        same(tensor, torch.tensor(expected))
    pair = [there(numbers(RANK, 4)), there(numbers(RANK, 7))]
    dist.all_reduce_coalesced(pair)
    for tensor, length in zip(pair, (4, 7), strict=True):
        same(tensor, sum(numbers(rank, length) for rank in range(SIZE)))
    value = there(torch.complex(numbers(RANK, 3), numbers(RANK, 3)))
    dist.all_reduce(value)
    whole = torch.stack([numbers(rank, 3) for rank in range(SIZE)]).sum(0)
    same(value, torch.complex(whole, whole))
    empty = there(torch.empty(0))
    dist.all_reduce(empty)


def movements() -> None:
    """What is given on as it is, of any dtype."""
    for dtype in (torch.float32, torch.bfloat16, torch.bool, torch.int16, torch.complex64):
        every = [numbers(rank, 2, 3).to(dtype) for rank in range(SIZE)]
        mine = there(every[RANK])
        tensor = there(every[RANK])
        dist.broadcast(tensor, src=SIZE - 1)
        same(tensor, every[-1])
        room = [there(torch.zeros(2, 3).to(dtype)) for _ in range(SIZE)]
        dist.all_gather(room, mine)
        for found, expected in zip(room, every, strict=True):
            same(found, expected)
        whole = there(torch.zeros(SIZE * 2, 3).to(dtype))
        dist.all_gather_into_tensor(whole, mine)
        same(whole, torch.cat(every))
        room = [there(torch.zeros(2, 3).to(dtype)) for _ in range(SIZE)] if RANK == 0 else None
        dist.gather(mine, room)
        for found, expected in zip(room or [], every, strict=False):
            same(found, expected)
        tensor = there(torch.zeros(2, 3).to(dtype))
        dist.scatter(
            tensor,
            [there(each) for each in every] if min(1, SIZE - 1) == RANK else None,
            src=min(1, SIZE - 1),
        )
        same(tensor, every[RANK])
        # Of each process as many as the receiver's number and one more.
        given = [there(torch.full((place + 1,), RANK).to(dtype)) for place in range(SIZE)]
        taken = [there(torch.zeros(RANK + 1).to(dtype)) for _ in range(SIZE)]
        dist.all_to_all(taken, given)
        for place, found in enumerate(taken):
            same(found, torch.full((RANK + 1,), place).to(dtype))
    room = [there(torch.zeros(rank + 1)) for rank in range(SIZE)]
    dist.all_gather(room, there(torch.full((RANK + 1,), float(RANK))))
    for rank, found in enumerate(room):
        same(found, torch.full((rank + 1,), float(rank)))
    single = there(torch.zeros(SIZE))
    dist.all_to_all_single(single, there(torch.arange(float(SIZE)) + 10 * RANK))
    same(single, 10.0 * torch.arange(SIZE) + RANK)
    parts = [[numbers(rank, 4, dtype=torch.int64) + place for place in range(SIZE)] for rank in range(SIZE)]
    expected = torch.stack([each[RANK] for each in parts]).sum(0)
    out = there(torch.zeros(4, dtype=torch.int64))
    dist.reduce_scatter(out, [there(each) for each in parts[RANK]])
    same(out, expected)
    out = there(torch.zeros(4, dtype=torch.int64))
    dist.reduce_scatter_tensor(out, there(torch.cat(parts[RANK])))
    same(out, expected)
    found: list[Any] = [None] * SIZE
    dist.all_gather_object(found, {"rank": RANK})
    assert found == [{"rank": rank} for rank in range(SIZE)]
    host = torch.ones(2)
    dist.all_reduce(host)
    assert host.tolist() == [SIZE, SIZE]
    dist.barrier()


def pairs() -> None:
    """From one process to another, alone and several together; groups of some processes; waiting."""
    tensor = there(numbers(RANK, 6))
    if RANK == 0:
        dist.send(tensor, 1)
    elif RANK == 1:
        assert dist.recv(tensor, 0) == 0
        same(tensor, numbers(0, 6))
    after, before = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    found = there(torch.zeros(5))
    works = dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, there(numbers(RANK, 5)), after), dist.P2POp(dist.irecv, found, before)]
    )
    for work in works:
        work.wait()
    same(found, numbers(before, 5))
    some = dist.new_group([0, SIZE - 1], backend="nccl")
    if RANK in (0, SIZE - 1):
        tensor = there(torch.ones(2))
        work = dist.all_reduce(tensor, group=some, async_op=True)
        assert work.wait() and work.wait(timedelta(seconds=60)) and work.is_completed() and work.is_success()
        assert work.result()[0] is tensor or torch.equal(work.result()[0].cpu(), tensor.cpu())
        same(tensor, torch.full((2,), 2.0))
        seen = []
        future = dist.all_reduce(tensor, group=some, async_op=True).get_future()
        assert future.then(lambda done: seen.append(done.value()[0])).wait() is None
        same(seen[0], torch.full((2,), 4.0))
        dist.destroy_process_group(some)


def misuse() -> None:
    """What cannot be is refused by name, and the group goes on."""
    for wrong, text in (
        (
            lambda: dist.all_reduce(there(torch.ones(2)), dist.ReduceOp.BAND),
            "Cannot use RedOpType.BAND with NCCL",
        ),
        (lambda: dist.all_reduce(there(torch.ones(2, dtype=torch.int16))), "NCCL has no type for"),
        (lambda: dist.all_reduce(there(torch.ones(4))[::2]), "must be contiguous"),
        (lambda: dist.recv(there(torch.ones(2))), "NCCL receives from a process that is named"),
        (
            lambda: dist.all_gather([there(torch.ones(2)), *[torch.ones(2)] * (SIZE - 1)], torch.ones(2)),
            "expected one",
        ),
    ):
        try:
            wrong()
        except (TypeError, ValueError) as error:
            assert text in str(error), error
        else:
            raise AssertionError(text)
    tensor = there(torch.ones(2))
    dist.all_reduce(tensor)
    same(tensor, torch.full((2,), float(SIZE)))


def failed(text: str, tensor: Any) -> None:
    """Everything afterwards says what went wrong."""
    for after in (lambda: dist.all_reduce(tensor), dist.barrier):
        try:
            after()
        except dist.DistBackendError as error:
            assert "the group has failed before: " in str(error) and text in str(error), error
        else:
            raise AssertionError(text)


def late() -> None:
    """The last process does not come: the others are told after the time of the group."""
    tensor = there(torch.ones(2))
    dist.all_reduce(tensor)
    if RANK == SIZE - 1:
        time.sleep(6)
        os._exit(0)
    dist.group.WORLD.set_timeout(timedelta(seconds=1))
    try:
        dist.all_reduce(tensor)
    except dist.DistBackendError as error:
        assert "all_reduce: " in str(error) and ("in time" in str(error) or "not done after" in str(error)), (
            error
        )
    else:
        raise AssertionError
    failed("all_reduce: ", tensor)
    os._exit(0)


def stalled() -> None:
    """Work that is on its way and never ends: whoever waits for the device is told."""
    tensor = there(torch.ones(2))
    dist.all_reduce(tensor)
    os.environ["FAKE_NCCL_STALLS"] = os.environ["FAKE_BUSY"] = "1"
    dist.group.WORLD.set_timeout(timedelta(seconds=1))
    work = dist.all_reduce(tensor, async_op=True)
    assert not work.is_completed()
    time.sleep(2)
    try:
        tensor.cpu()
    except RuntimeError as error:
        assert "NCCL: all_reduce: not done after 1 seconds" in str(error), error
    else:
        raise AssertionError
    try:
        work.wait()
    except dist.DistBackendError as error:
        assert "not done after 1 seconds" in str(error), error
    else:
        raise AssertionError
    failed("not done after 1 seconds", tensor)
    os._exit(0)


def limited() -> None:
    """A wait with a limit of its own."""
    tensor = there(torch.ones(2))
    dist.all_reduce(tensor)
    os.environ["FAKE_NCCL_STALLS"] = os.environ["FAKE_BUSY"] = "1"
    work = dist.all_reduce(tensor, async_op=True)
    try:
        work.wait(timedelta(seconds=0.2))
    except dist.DistBackendError as error:
        assert "all_reduce: not done after 0.2 seconds" in str(error), error
    else:
        raise AssertionError
    os._exit(0)


def remote() -> None:
    """Another member fails: the text is the library's."""
    tensor = there(torch.ones(2))
    dist.all_reduce(tensor)
    os.environ["FAKE_NCCL_STALLS"] = os.environ["FAKE_BUSY"] = "1"
    work = dist.all_reduce(tensor, async_op=True)
    os.environ["FAKE_NCCL_FAILS"], os.environ["FAKE_NCCL_WHEN"] = str(RANK), "/"
    time.sleep(1)
    try:
        work.wait()
    except dist.DistBackendError as error:
        assert "NCCL: remote process exited or there was a network error: its socket is closed" in str(
            error
        ), error
    else:
        raise AssertionError
    os._exit(0)


def aborted() -> None:
    """The program ends what the devices do."""
    tensor = there(torch.ones(2))
    dist.all_reduce(tensor)
    dist.group.WORLD.abort()
    failed("the program aborted it", tensor)
    os._exit(0)


def absent() -> None:
    """Without the library tensors of devices go through the host."""
    tensor = there(torch.ones(2))
    assert torch.cuda.nccl.unavailable_reason() and not torch.cuda.nccl.is_available([tensor])
    assert type(dist.group.WORLD).__name__ == "ProcessGroup"
    dist.broadcast(tensor, 0)
    same(tensor, torch.ones(2))


def facts() -> None:
    """What programs ask."""
    reason = torch.cuda.nccl.unavailable_reason()
    assert not reason and torch.cuda.nccl.version() == (2, 28, 3), reason
    assert torch.cuda.nccl.is_available([there(torch.ones(1))])
    assert dist.get_backend() == "nccl" and dist.is_nccl_available()


if __name__ == "__main__":
    limit = timedelta(seconds=60)
    dist.init_process_group("nccl", timeout=limit)
    globals()[sys.argv[1]]()
    dist.destroy_process_group()
