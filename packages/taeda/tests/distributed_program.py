"""What test_distributed.py starts in several processes: one of the parts below, which fails where something is wrong.

python -m taeda.distributed.run --standalone --nproc-per-node=3 distributed_program.py PART [FILE]
"""

from __future__ import annotations

import os
import sys
import time
from datetime import timedelta

import taeda as torch
import taeda.distributed as dist
from taeda import nn
from taeda.distributed.algorithms.ddp_comm_hooks import default_hooks
from taeda.distributed.nn import functional as differentiable
from taeda.nn.parallel import DistributedDataParallel

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def numbers(rank: int, *shape: int) -> torch.Tensor:
    """The numbers of one process, which all can compute."""
    source = torch.Generator().manual_seed(100 * rank + sum(shape))
    return torch.randn(*shape, generator=source, dtype=torch.float64)


def every(*shape: int) -> list[torch.Tensor]:
    """The numbers of all."""
    return [numbers(rank, *shape) for rank in range(SIZE)]


def same(found: object, expected: object) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def collectives() -> None:
    """Every operation on tensors, small and large."""
    for length in (0, 5, 50_000):
        whole = torch.stack(every(length))
        for op, expected in (
            ("SUM", whole.sum(0)), ("AVG", whole.mean(0)), ("PRODUCT", whole.prod(0)),
            ("MIN", whole.amin(0)), ("MAX", whole.amax(0)),
        ):  # fmt: skip
            tensor = numbers(RANK, length)
            assert dist.all_reduce(tensor, getattr(dist.ReduceOp, op)) is None
            same(tensor, expected)
        tensor = numbers(RANK, length)
        dist.reduce(tensor, 1)
        if RANK == 1:
            same(tensor, whole.sum(0))
        dist.broadcast(tensor := numbers(RANK, length), src=SIZE - 1)
        same(tensor, whole[-1])
    bits = torch.tensor([RANK + 5, 3 * RANK])
    dist.all_reduce(bits, dist.ReduceOp.BOR)
    same(bits, torch.tensor([5 | 6 | 7, 0 | 3 | 6]))
    for dtype in (torch.bfloat16, torch.bool, torch.complex64, torch.uint8):
        value = torch.ones(3).to(dtype)
        room = [torch.zeros(3).to(dtype) for _ in range(SIZE)]
        dist.all_gather(room, value)
        assert all(torch.equal(part, value) for part in room), dtype
    pairs = torch.full((2,), 1 + 2j)
    dist.all_reduce(pairs)
    same(pairs, torch.full((2,), SIZE * (1 + 2j)))
    across = numbers(RANK, 4, 3).t()
    dist.all_reduce(across)
    same(across, sum(every(4, 3)).t())


def movements() -> None:
    """Tensors that change places, some of different lengths."""
    lengths = [rank + 1 for rank in range(SIZE)]
    room = [torch.zeros(n, 2, dtype=torch.float64) for n in lengths]
    dist.all_gather(room, numbers(RANK, RANK + 1, 2))
    for rank, part in enumerate(room):
        same(part, numbers(rank, rank + 1, 2))
    joined = torch.zeros(2 * SIZE, 3, dtype=torch.float64)
    dist.all_gather_into_tensor(joined, numbers(RANK, 2, 3))
    same(joined, torch.cat(every(2, 3)))
    room = [torch.zeros(3, dtype=torch.float64) for _ in range(SIZE)] if RANK == 1 else None
    dist.gather(numbers(RANK, 3), room, dst=1)
    if room is not None:
        same(torch.stack(room), torch.stack(every(3)))
    part = torch.zeros(3, dtype=torch.float64)
    dist.scatter(part, [numbers(10 + rank, 3) for rank in range(SIZE)] if RANK == 1 else None, src=1)
    same(part, numbers(10 + RANK, 3))
    dist.reduce_scatter(part, [numbers(RANK, 3) * rank for rank in range(SIZE)])
    same(part, sum(every(3)) * RANK)
    dist.reduce_scatter_tensor(part, numbers(RANK, 3 * SIZE))
    same(part, sum(every(3 * SIZE))[3 * RANK : 3 * RANK + 3])
    swapped = torch.zeros(SIZE, 2, dtype=torch.float64)
    dist.all_to_all_single(swapped, numbers(RANK, SIZE, 2))
    same(swapped, torch.stack([value[RANK] for value in every(SIZE, 2)]))
    taken = torch.zeros(SIZE * (RANK + 1), dtype=torch.float64)
    dist.all_to_all_single(taken, numbers(RANK, sum(lengths)), [RANK + 1] * SIZE, lengths)
    same(taken, torch.cat([value.split(lengths)[RANK] for value in every(sum(lengths))]))
    ring = [
        dist.P2POp(dist.isend, numbers(RANK, 2), (RANK + 1) % SIZE),
        dist.P2POp(dist.irecv, received := torch.zeros(2, dtype=torch.float64), (RANK - 1) % SIZE),
    ]
    for work in dist.batch_isend_irecv(ring):
        assert work.wait()
    same(received, numbers((RANK - 1) % SIZE, 2))
    if RANK == 0:
        for tag in (7, 8):
            dist.send(torch.tensor([tag]), dst=1, tag=tag)
    if RANK == 1:
        number = torch.zeros(1, dtype=torch.int64)
        assert dist.recv(number, src=0, tag=8) == 0 and number.item() == 8
        assert dist.recv(number, tag=7) == 0 and number.item() == 7


def objects() -> None:
    """Any objects, and groups of some processes."""
    found = [None] * SIZE
    dist.all_gather_object(found, {"rank": RANK, "text": "x" * RANK})
    assert found == [{"rank": rank, "text": "x" * rank} for rank in range(SIZE)]
    given = ["a", {"b": 2}] if RANK == 1 else [None, None]
    dist.broadcast_object_list(given, src=1)
    assert given == ["a", {"b": 2}]
    mine: list[object] = [None]
    dist.scatter_object_list(mine, [f"for {rank}" for rank in range(SIZE)] if RANK == 0 else None)
    assert mine == [f"for {RANK}"]
    room = [None] * SIZE if RANK == 0 else None
    dist.gather_object(RANK, room)
    assert room == (list(range(SIZE)) if RANK == 0 else None)
    if RANK == 0:
        dist.send_object_list(["one", 2], dst=1)
    if RANK == 1:
        dist.recv_object_list(two := [None, None], src=0)
        assert two == ["one", 2]
    group = dist.new_group([0, 2])
    if RANK == 1:
        assert group == dist.GroupMember.NON_GROUP_MEMBER and dist.get_rank(group) == -1
    else:
        number = torch.tensor([RANK])
        dist.all_reduce(number, group=group)
        assert number.item() == 2 and dist.get_rank(group) == RANK // 2
        assert dist.get_process_group_ranks(group) == [0, 2] and dist.get_global_rank(group, 1) == 2
        dist.broadcast(number := torch.tensor([RANK]), group=group, group_src=1)
        assert number.item() == 2
    work = dist.all_reduce(late := torch.ones(3), async_op=True)
    dist.all_reduce(early := torch.ones(3))  # goes on while the other one runs
    assert work.wait() and work.is_completed() and work.result()[0] is not None
    assert late.tolist() == early.tolist() == [SIZE] * 3
    assert work.get_future().value() == work.result()
    assert list(torch.utils.data.DistributedSampler(range(7), shuffle=False)) == [
        RANK,
        RANK + 3,
        (RANK + 6) % 7,
    ]


def gradients() -> None:
    """Operations through which gradients flow."""
    weights = torch.arange(1.0, 2 * SIZE + 1, dtype=torch.float64)
    x = numbers(RANK, 2).requires_grad_()
    joined = torch.cat(differentiable.all_gather(x))
    ((RANK + 1) * weights * joined * joined).sum().backward()
    same(x.grad, 2 * sum(range(1, SIZE + 1)) * weights[2 * RANK : 2 * RANK + 2] * x.detach())
    x = numbers(RANK, 3).requires_grad_()
    differentiable.all_reduce(x).pow(2).sum().backward()
    same(x.grad, SIZE * 2 * sum(every(3)))
    x = numbers(RANK, 3).requires_grad_()
    differentiable.broadcast(x, 1).mul(RANK + 1).sum().backward()
    same(x.grad, torch.full((3,), float(sum(range(1, SIZE + 1)) if RANK == 1 else 0)).double())
    parts = list(numbers(RANK, SIZE, 2).requires_grad_().unbind())
    result = differentiable.reduce_scatter(torch.zeros(2, dtype=torch.float64), parts)
    same(result.detach(), sum(every(SIZE, 2))[RANK])


def operators() -> None:
    """The same under the names that graphs have, of all and of some processes."""
    ops, old, name = torch.ops._c10d_functional, torch.ops.c10d_functional, dist.group.WORLD.group_name
    everyone = list(range(SIZE))
    x, whole = numbers(RANK, SIZE, 2), torch.stack(every(SIZE, 2))
    wait = ops.wait_tensor
    same(wait(ops.all_reduce(x, "sum", name)), whole.sum(0))
    same(old.all_reduce(x, "max", "", everyone, SIZE), whole.amax(0))
    for found, factor in zip(ops.all_reduce_coalesced([x, 2 * x], "avg", name), (1, 2), strict=True):
        same(wait(found), factor * whole.mean(0))
    given = x.clone()
    assert ops.all_reduce_(given, "sum", name) is given
    same(given, whole.sum(0))
    same(ops.all_reduce_coalesced_([given := x.clone()], "sum", name), [given])
    same(given, whole.sum(0))
    same(wait(ops.broadcast(x, SIZE - 1, name)), whole[-1])
    same(ops.broadcast_(x.clone(), 1, name), whole[1])
    joined = torch.cat(every(SIZE, 2))
    same(wait(ops.all_gather_into_tensor(x, SIZE, name)), joined)
    same(ops.all_gather_into_tensor_out(x, SIZE, name, out=torch.zeros_like(joined)), joined)
    same(ops.all_gather_into_tensor_coalesced([x], SIZE, name)[0], joined)
    same(wait(ops.reduce_scatter_tensor(x, "sum", SIZE, name)), whole.sum(0)[RANK : RANK + 1])
    same(ops.reduce_scatter_tensor_coalesced([x], "sum", SIZE, name)[0], whole.sum(0)[RANK : RANK + 1])
    same(ops.all_to_all_single(x, [1] * SIZE, [1] * SIZE, name), whole[:, RANK])
    same(old.all_to_all_single(x, None, None, "", everyone, SIZE), whole[:, RANK])
    columns = torch.ops._dtensor.shard_dim_alltoall(x.t().contiguous(), 0, 1, name)  # 2 x SIZE to 2 SIZE x 1
    same(columns, torch.cat([value.t()[:, RANK : RANK + 1] for value in every(SIZE, 2)]))
    leaf = x.clone().requires_grad_()
    torch.ops._c10d_functional_autograd.all_gather_into_tensor(leaf, SIZE, name).sum().backward()
    same(leaf.grad, torch.full_like(x, SIZE))
    world, given, room = dist.group.WORLD, x.clone(), torch.zeros(SIZE * SIZE, 2, dtype=torch.float64)
    torch.ops.c10d.allreduce_([given], world, dist.ReduceOp.SUM, None)[1].wait()
    same(given, whole.sum(0))
    torch.ops.c10d._allgather_base_.default(room, x, world)[1].wait()
    same(room, joined)
    torch.ops.c10d.scatter_([given], [list(whole)] if RANK == 1 else [], world, 1)[1].wait()
    same(given, whole[RANK])
    torch.ops.c10d.alltoall_base_(given, x, world, [], []).wait()
    same(given, whole[:, RANK])
    pair = dist.new_group([0, 2])
    if RANK != 1:
        same(ops.broadcast(x, 1, pair.group_name), whole[2])
        same(old.all_gather_into_tensor(x, "", [0, 2], 2), torch.cat([whole[0], whole[2]]))
        try:
            ops.all_gather_into_tensor(x, SIZE, pair.group_name)
        except ValueError as error:
            assert "group_size" in str(error)


class Halves(nn.Module):
    """A network of which a call uses one of two ends."""

    def __init__(self, norm: type[nn.Module] = nn.Identity) -> None:
        super().__init__()
        self.start, self.norm, self.ends = (
            nn.Linear(4, 8),
            norm(8),
            nn.ModuleList([nn.Linear(8, 3) for _ in range(2)]),
        )

    def forward(self, x: torch.Tensor, end: int = 0) -> dict[str, torch.Tensor]:
        return {"out": self.ends[end](self.norm(self.start(x)).tanh())}


def made(kind: type[nn.Module] = nn.Identity) -> Halves:
    """A network that begins with the same numbers everywhere."""
    torch.manual_seed(7)
    return Halves(kind).double()


def training() -> None:
    """Averaged gradients are those of the whole batch in one process."""
    for settings in (
        {},
        {"bucket_cap_mb": 1e-5},
        {"static_graph": True},
        {"hook": default_hooks.allreduce_hook},
    ):
        hook = settings.pop("hook", None)
        alone, together = made(), made()
        torch.manual_seed(RANK)
        if RANK:
            together.start.weight.data.normal_()  # the first process's numbers replace these
        net = DistributedDataParallel(
            together, find_unused_parameters="static_graph" not in settings, **settings
        )
        if hook is not None:
            net.register_comm_hook(None, hook)
        optimizers = [torch.optim.SGD(m.parameters(), 0.1, momentum=0.9) for m in (alone, net)]
        for step in range(3):
            batches = [numbers(10 * step + rank, 5, 4) for rank in range(SIZE)]
            for optimizer in optimizers:
                optimizer.zero_grad()
            with net.no_sync():
                net(batches[RANK])["out"].pow(2).mean().backward()
                last = net(batches[RANK])["out"]
            if step == 1:
                net.reducer.prepare_for_backward(
                    [last]
                )  # a backward that averages after a forward that did not
            else:
                last = net(batches[RANK])["out"]
            last.pow(2).mean().backward()
            (2 * alone(torch.cat(batches))["out"].pow(2).mean()).backward()
            for optimizer in optimizers:
                optimizer.step()
        for mine, theirs in zip(alone.parameters(), together.parameters(), strict=True):
            same(theirs, mine)
        assert together.ends[1].weight.grad is None
        assert list(net.state_dict()) == [f"module.{name}" for name in alone.state_dict()]


def unused() -> None:
    """Parameters that one process uses and others do not; and those that nobody expected to be unused."""
    net = DistributedDataParallel(made(), find_unused_parameters=True)
    net(numbers(RANK, 5, 4), end=int(RANK == 0))["out"].sum().backward()
    reference = made()
    sum(
        reference(numbers(rank, 5, 4), end=int(rank == 0))["out"].sum() / SIZE for rank in range(SIZE)
    ).backward()
    for mine, theirs in zip(reference.parameters(), net.parameters(), strict=True):
        same(theirs.grad, mine.grad)
    strict = DistributedDataParallel(made())
    strict(numbers(RANK, 5, 4))["out"].sum().backward()
    try:
        strict(numbers(RANK, 5, 4))
    except RuntimeError as error:
        assert "finished reduction" in str(error) and "ends.1.weight" in str(error)
    else:
        raise AssertionError("parameters without a gradient went unnoticed")
    half = DistributedDataParallel(nn.Linear(3, 2).double(), broadcast_buffers=False)
    half.register_comm_hook(None, default_hooks.bf16_compress_hook)
    half(numbers(RANK, 4, 3)).sum().backward()
    expected = sum(x.sum(0) for x in every(4, 3)) / SIZE
    torch.testing.assert_close(half.module.weight.grad[0], expected, rtol=0.05, atol=0.05)


def normalisation() -> None:
    """SyncBatchNorm of shares is batch normalisation of the whole batch."""
    whole = torch.cat(every(6, 4)).requires_grad_()
    mine = numbers(RANK, 6, 4).requires_grad_()
    alone = made(nn.BatchNorm1d)
    shared = DistributedDataParallel(
        nn.SyncBatchNorm.convert_sync_batchnorm(made(nn.BatchNorm1d)), find_unused_parameters=True
    )
    expected = alone(whole)["out"]
    found = shared(mine)["out"]
    expected.pow(2).mean().backward()
    found.pow(2).mean().backward()
    rows = slice(6 * RANK, 6 * RANK + 6)
    torch.testing.assert_close(found, expected[rows])
    torch.testing.assert_close(mine.grad, SIZE * whole.grad[rows])
    for a, b in zip(alone.parameters(), shared.parameters(), strict=True):
        torch.testing.assert_close(b.grad, a.grad)
    for a, b in zip(alone.buffers(), shared.buffers(), strict=True):
        torch.testing.assert_close(b, a)


def misuse() -> None:
    """Processes that do not agree are told so, and those that wait too long."""
    group = dist.new_group(timeout=timedelta(seconds=20))
    try:
        if RANK == 0:
            dist.broadcast(torch.ones(2), 0, group)
        else:
            dist.all_reduce(torch.ones(2), group=group)
    except RuntimeError as error:
        assert "calls" in str(error), error
    else:
        assert RANK == 0
    group = dist.new_group()
    try:
        dist.all_reduce(torch.ones(2 + RANK), group=group)
    except RuntimeError as error:
        assert "the same in all processes" in str(error), error
    else:
        raise AssertionError("different shapes went unnoticed")
    dist.barrier()
    late = dist.new_group(timeout=timedelta(seconds=0.2))
    if RANK == 0:
        try:
            dist.barrier(late)
        except dist.DistBackendError as error:
            assert "Timed out waiting 200ms" in str(error), error
        else:
            raise AssertionError("nobody came, and nobody noticed")
    dist.barrier()
    try:
        DistributedDataParallel(nn.Linear(2 + RANK, 2))
    except RuntimeError as error:
        assert "expects same model" in str(error)
    else:
        raise AssertionError("different networks went unnoticed")


def compression() -> None:
    """Gradients as products of thin matrices: nothing is lost for good; averages over groups of several sizes."""
    from taeda.distributed.algorithms.ddp_comm_hooks import (
        DDPCommHookType,
        post_localSGD_hook,
        powerSGD_hook,
        register_ddp_comm_hook,
    )
    from taeda.distributed.algorithms.model_averaging.hierarchical_model_averager import (
        HierarchicalModelAverager,
    )

    def model() -> nn.Module:
        torch.manual_seed(1)
        return nn.Sequential(nn.Linear(12, 9), nn.Tanh(), nn.Linear(9, 7)).double()

    def gradients(net: nn.Module, step: int) -> list[torch.Tensor]:
        net.zero_grad()
        net(numbers(RANK, 5, 12) + step).square().sum().backward()
        return [parameter.grad.clone() for parameter in net.parameters()]

    def averages(step: int) -> list[torch.Tensor]:
        found = gradients(model(), step)
        for gradient in found:
            dist.all_reduce(gradient, dist.ReduceOp.AVG)
        return found

    for hook in (powerSGD_hook.powerSGD_hook, powerSGD_hook.batched_powerSGD_hook):
        for epsilon in (0, 1e-30):
            # Of full rank: as they are.
            state = powerSGD_hook.PowerSGDState(None, 20, 2, 0.01, orthogonalization_epsilon=epsilon)
            net = DistributedDataParallel(model())
            net.register_comm_hook(state, hook)
            for step in range(4):
                torch.testing.assert_close(gradients(net, step), averages(step), rtol=1e-8, atol=1e-8)
            assert state.iter == 4
        # Of rank 1: what is lost in one step is in the next.
        state = powerSGD_hook.PowerSGDState(None, 1, 2, 1)
        net = DistributedDataParallel(model())
        net.register_comm_hook(state, hook)
        sent = [torch.zeros_like(p) for p in net.parameters()]
        wanted = [torch.zeros_like(p) for p in net.parameters()]
        for step in range(8):
            found, whole = gradients(net, step), averages(step)
            if step == 5:
                assert (found[0] - whole[0]).abs().max() > 1e-3
            for total, gradient in zip([*sent, *wanted], [*found, *whole], strict=True):
                total += gradient
        lost = sum(wanted[i] - sent[i] for i in (0,)).norm()
        kept = torch.cat(list(state.error_dict.values()))
        dist.all_reduce(kept, dist.ReduceOp.AVG)
        whole = torch.cat([(w - s).reshape(-1) for w, s in zip(wanted, sent, strict=True)])
        assert lost > 1e-3
        same(kept.sort().values[kept.sort().values.abs() > 1e-9].sum(), whole.sum())
        rate, before, after = state.compression_stats()
        assert rate == before / after > 1 and before == 6 * sum(p.numel() for p in net.parameters())
    try:
        powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=1)
    except ValueError as error:
        assert "start_powerSGD_iter" in str(error)
    else:
        raise AssertionError("one step before is too few")
    net = DistributedDataParallel(model())
    register_ddp_comm_hook(DDPCommHookType.POWER_SGD_RANK2, net)
    same(gradients(net, 0), averages(0))

    for kind in (DDPCommHookType.QUANTIZE_PER_TENSOR, DDPCommHookType.QUANTIZE_PER_CHANNEL):
        net = DistributedDataParallel(model())
        register_ddp_comm_hook(kind, net)
        found, whole = gradients(net, 1), averages(1)
        # Half a code's width away at the most, of the widest range.
        span = torch.tensor(max(2 * gradient.abs().max().item() for gradient in gradients(model(), 1)))
        dist.all_reduce(span, dist.ReduceOp.MAX)
        apart = max((a - b).abs().max().item() for a, b in zip(found, whole, strict=True))
        assert 0 < apart <= span.item() / 255 / 2 * 1.01, (apart, span)
        assert found[0].abs().sum() > 0

    alone = dist.new_subgroups(1)[0]
    for averaged in (True, False):
        state = post_localSGD_hook.PostLocalSGDState(None, alone, 2, averaged)
        net = DistributedDataParallel(model())
        net.register_comm_hook(state, post_localSGD_hook.post_localSGD_hook)
        for step in range(4):
            same(gradients(net, step), averages(step) if step < 2 else gradients(model(), step))

    averager = HierarchicalModelAverager({2: 1, 4: SIZE}, warmup_steps=1)
    value = nn.Parameter(numbers(RANK, 3))
    value.grad = torch.zeros_like(value)
    for step in range(6):
        averager.average_parameters([value])
        same(value.detach(), torch.stack(every(3)).mean(0) if step >= 4 else numbers(RANK, 3))


def leaving() -> None:
    """One process leaves; the others, which wait for it, are told."""
    if RANK == 0:
        return
    try:
        dist.recv(torch.zeros(1), src=0)
    except dist.DistBackendError as error:
        assert "process 0: " in str(error), error
    else:
        raise AssertionError("a process left, and nobody noticed")


def failing() -> None:
    """One process fails while the others would wait for a long time."""
    if RANK == 1:
        raise ValueError("on purpose")
    time.sleep(600)


def main() -> None:
    torch.set_num_threads(1)
    part, *file = sys.argv[1:]
    if part == "failing":
        failing()
    if file:
        dist.init_process_group("gloo", init_method=f"file://{file[0]}", rank=RANK, world_size=SIZE)
    else:
        dist.init_process_group()
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (RANK, SIZE, "gloo")
    globals()[part]()
    if part != "leaving":
        dist.barrier()
    dist.destroy_process_group()
    assert not dist.is_initialized()


if __name__ == "__main__":
    main()
