"""What test_pipelining.py starts in several processes: one of the parts below, which fails where something is wrong.

python -m taeda.distributed.run --standalone --nproc-per-node=2 pipelining_program.py PART
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import taeda as torch
import taeda.distributed as dist
from taeda import nn
from taeda.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleDualPipeV,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS,
    ScheduleZBVZeroBubble,
    SplitPoint,
    _ScheduleForwardOnly,
    pipe_split,
    pipeline,
)
from taeda.distributed.pipelining.microbatch import TensorChunkSpec, _Replicate
from taeda.distributed.pipelining.schedules import _PipelineScheduleRuntime

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
WIDTH, BATCH = 6, 12


def same(found: object, expected: object) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    source = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=source, dtype=torch.float64)


def refused(call: Callable[[], object], kind: type[BaseException], *texts: str) -> None:
    try:
        call()
    except kind as error:
        for text in texts:
            assert text in str(error), (text, str(error))
        return
    raise AssertionError(f"nothing was raised: {texts}")


class Block(nn.Module):
    """A layer with a residual: as a stage, it gets one tensor and returns one."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(WIDTH, WIDTH, dtype=torch.float64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.tanh(self.inner(x))


def blocks(count: int) -> nn.Sequential:
    """The same layers in all processes."""
    torch.manual_seed(3)
    return nn.Sequential(*(Block() for _ in range(count)))


def mean_loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return (output - target).square().mean()


def step(schedule: Any, x: Any, y: Any, first: bool, last: bool, **more: Any) -> Any:
    """A step of any process: only the ends of the pipeline are given anything."""
    given = (x,) if first else ()
    return schedule.step(*given, **({"target": y} if last else {}), **more)


def same_gradients(stages: list[Any], whole: nn.Sequential) -> None:
    for stage in stages:
        expected = dict(whole[stage.stage_index].named_parameters())
        for name, parameter in stage.submod.named_parameters():
            same(parameter.grad, expected[name].grad)


def compare(make: Any, indices: list[int], count: int, microbatches: int, **more: Any) -> None:
    """A schedule against the whole model in this process: results, losses and gradients of two steps."""
    whole, parts = blocks(count), blocks(count)
    stages = [PipelineStage(parts[i], i, count, "cpu", **more) for i in indices]
    schedule = make(stages, microbatches)
    first, last = 0 in indices, count - 1 in indices
    for turn in range(2):
        x, y = numbers(BATCH, WIDTH, seed=turn), numbers(BATCH, WIDTH, seed=10 + turn)
        whole.zero_grad()
        parts.zero_grad()
        output = whole(x)
        loss = mean_loss(output, y)
        loss.backward()
        losses: list[Any] = [None]
        found = step(schedule, x, y, first, last, losses=losses)
        assert (found is not None) == last
        if last:
            same(found, output.detach())
            assert len(losses) == microbatches
            same(sum(losses) / microbatches, loss)
        else:
            assert losses == [None]
        same_gradients(stages, whole)


def single() -> None:
    """One stage in each process."""
    for kind in (ScheduleGPipe, Schedule1F1B):
        for microbatches in (SIZE, 4, 6):
            compare(lambda s, n, kind=kind: kind(s[0], n, loss_fn=mean_loss), [RANK], SIZE, microbatches)
    like = torch.empty(3, WIDTH, dtype=torch.float64)
    compare(
        lambda s, n: ScheduleGPipe(s[0], n, mean_loss), [RANK], SIZE, 4, input_args=like, output_args=like
    )


def looped() -> None:
    """Two and three stages in each process, dealt out round and round."""
    for kind in (ScheduleLoopedBFS, ScheduleInterleaved1F1B, ScheduleInterleavedZeroBubble):
        for local, microbatches in ((2, 4), (3, 2), (2, 6)):
            indices = [RANK + SIZE * turn for turn in range(local)]
            compare(
                lambda s, n, kind=kind: kind(s, n, loss_fn=mean_loss), indices, SIZE * local, microbatches
            )


def folded() -> None:
    """Two stages in each process, dealt out forth and back."""
    for kind in (ScheduleZBVZeroBubble, ScheduleDualPipeV):
        for microbatches in (2 * SIZE, 12):
            indices = [RANK, 2 * SIZE - 1 - RANK]
            compare(lambda s, n, kind=kind: kind(s, n, loss_fn=mean_loss), indices, 2 * SIZE, microbatches)
    compare(lambda s, n: ScheduleZBVZeroBubble(s, n, mean_loss), [RANK, 2 * SIZE - 1 - RANK], 2 * SIZE, 1)


def read_orders() -> None:
    """An order from a file, in which stages lie as they like."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "orders.csv")
        path.write_text(
            "0F0,1F0,0F1,1F1,,1B0,0B0,1B1,0B1\n2F0,3F0,(2F1;3B0)OVERLAP_F_B,3F1,2B0,3B1,2B1\n",
            encoding="utf-8",
        )
        schedules = []

        def make(stages: Any, microbatches: int) -> Any:
            schedule = _PipelineScheduleRuntime(stages, microbatches, mean_loss)
            schedule._load_csv(str(path))
            schedules.append(schedule)
            return schedule

        compare(make, [2 * RANK, 2 * RANK + 1], 4, 2)
        again = Path(folder, "again.csv")
        schedules[0]._dump_csv(str(again))
        assert again.read_text(encoding="utf-8").splitlines() == path.read_text(encoding="utf-8").splitlines()
        path.write_text("0F0,0B0,1F0,1B0\n2F0,3F0,3B0,2B0\n", encoding="utf-8")
        stages = [PipelineStage(Block(), i, 4, "cpu") for i in (2 * RANK, 2 * RANK + 1)]
        schedule = _PipelineScheduleRuntime(stages, 1, mean_loss)
        refused(lambda: schedule._load_csv(str(path)), RuntimeError, "wait for each other", "0B0")
        path.write_text("0F0,1F0,0B0\n2F0,3F0,3B0,2B0\n", encoding="utf-8")
        refused(lambda: schedule._load_csv(str(path)), RuntimeError, "wait for each other")
        path.write_text("0F0,0F0,1F0\n2F0,3F0,3B0,2B0\n", encoding="utf-8")
        refused(lambda: schedule._load_csv(str(path)), ValueError, "rank 0", "expected each action once")


class Skipping(nn.Module):
    """Values of the first stage, and inputs of the model, that later stages need; one parameter used twice."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.embed = nn.Linear(WIDTH, WIDTH, dtype=torch.float64)
        self.layers = nn.ModuleList(Block() for _ in range(4))
        self.head = nn.Linear(WIDTH, WIDTH, dtype=torch.float64)
        self.register_buffer("factor", torch.full((WIDTH,), 0.5, dtype=torch.float64))

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        first = torch.relu(self.embed(x))
        rows = first.shape[0]
        h = self.layers[0](first)
        pipe_split()
        side = self.layers[1](h)
        pipe_split()
        h = self.layers[2](side + first) * self.factor
        pipe_split()
        h = self.layers[3](h) + first * scale
        return self.head(h.reshape(rows, WIDTH) + side)


def traced() -> None:
    """Stages of one graph: what skips stages arrives, gradients of several users add up."""
    x, y, scale = (
        numbers(BATCH, WIDTH),
        numbers(BATCH, WIDTH, seed=1),
        numbers(BATCH, 1, seed=2).requires_grad_(),
    )
    x.requires_grad_()
    whole = Skipping()
    output = whole(x, scale)
    loss = mean_loss(output, y)
    loss.backward()
    expected = {name: p.grad for name, p in whole.named_parameters()}
    wanted = (x.grad, scale.grad)
    kinds: list[tuple[Any, list[int]]] = [
        (ScheduleInterleaved1F1B, [RANK, RANK + 2]),
        (ScheduleLoopedBFS, [RANK, RANK + 2]),
        (ScheduleZBVZeroBubble, [RANK, 3 - RANK]),
        (ScheduleDualPipeV, [RANK, 3 - RANK]),
    ]
    for kind, indices in kinds:
        pipe = pipeline(Skipping(), (x[:2].detach(), scale[:2].detach()))
        assert pipe.num_stages == 4 and pipe.replicated_params == []
        assert list(pipe.get_stage_module(2).state_dict()) == [
            "factor",
            "layers.2.inner.weight",
            "layers.2.inner.bias",
        ]
        stages = [pipe.build_stage(i, "cpu") for i in indices]
        schedule = kind(stages, 4, loss_fn=mean_loss)
        for by_name in (False, True):
            last = 3 in indices
            x.grad = scale.grad = None
            for stage in stages:
                stage.submod.zero_grad()
            own = scale.detach().requires_grad_()
            given: dict[str, Any] = {"target": y} if last else {}
            if last and by_name:
                given["scale"] = own
            found = schedule.step(*((x,) if by_name else (x, scale)) if RANK == 0 else (), **given)
            if last:
                same(found, output.detach())
            for stage in stages:
                for name, parameter in stage.submod.named_parameters():
                    same(parameter.grad, expected[name])
            # The model's arguments get the gradients of losses that are not divided.
            if RANK == 0:
                same(x.grad / 4, wanted[0])
            if last and by_name:
                same(own.grad / 4, wanted[1])
            elif RANK == 0 and not by_name:
                same(scale.grad / 4, wanted[1])


def named_points() -> None:
    """A split at submodules, one stage in each process, a parameter that both use."""
    torch.manual_seed(6)
    shared = nn.Linear(WIDTH, WIDTH, dtype=torch.float64)
    model = nn.Sequential(shared, nn.Tanh(), shared)
    x, y = numbers(BATCH, WIDTH), numbers(BATCH, WIDTH, seed=1)
    loss = mean_loss(model(x), y)
    loss.backward()
    wanted = {name: p.grad.clone() for name, p in shared.named_parameters()}
    for spec in ({"1": SplitPoint.BEGINNING}, {"1": SplitPoint.END}):
        model.zero_grad()
        pipe = pipeline(model, (x[:2],), split_spec=spec)
        assert pipe.num_stages == 2 and len(pipe.replicated_params) == 2
        assert "forward" not in model[1].__dict__
        same(pipe(x)[0], model(x))
        stage = pipe.build_stage(RANK, "cpu")
        schedule = Schedule1F1B(stage, 4, loss_fn=mean_loss)
        step(schedule, x, y, RANK == 0, RANK == 1)
        for name, parameter in stage.submod.named_parameters():
            dist.all_reduce(parameter.grad)
            same(parameter.grad, wanted[name.rpartition(".")[2]])


class Pair(nn.Module):
    """Returns two tensors; the second wants no gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Block()

    def forward(self, x: Any, extra: Any = None, *, bias: Any = 0.0) -> Any:
        out = self.inner(x) + bias
        return (out, x.argmax(-1)) if extra is None else out + extra.unsqueeze(-1)


def evaluation() -> None:
    """Forwards only, batches that microbatches do not divide, tuples between stages, arguments by name."""
    whole, parts = blocks(SIZE), blocks(SIZE)
    stage = PipelineStage(parts[RANK], RANK, SIZE, "cpu")
    schedule = Schedule1F1B(stage, 2, loss_fn=mean_loss)
    for rows in (5, 2, 6):
        x, y = numbers(rows, WIDTH, seed=rows), numbers(rows, WIDTH, seed=9)
        for gradients in (True, False):
            losses: list[Any] = []
            with torch.set_grad_enabled(gradients):
                given = {"target": y, "losses": losses} if RANK == SIZE - 1 else {}
                found = schedule.eval(*((x,) if RANK == 0 else ()), **given)
            if RANK == SIZE - 1:
                same(found, whole(x))
                cuts = torch.tensor_split(whole(x), 2), torch.tensor_split(y, 2)
                same(
                    torch.stack(losses),
                    torch.stack([mean_loss(a, b) for a, b in zip(*cuts, strict=True)]),
                )
        found = schedule.eval(*((x,) if RANK == 0 else ()))  # without a target there are no losses
        if RANK == SIZE - 1:
            same(found, whole(x))
    assert all(p.grad is None for p in parts.parameters())
    step(schedule, x, y, RANK == 0, RANK == SIZE - 1)
    assert all(p.grad is not None for p in parts[RANK].parameters())
    forward = _ScheduleForwardOnly(stage, 3)
    found = forward.step(*((x,) if RANK == 0 else ()))
    assert found is None if RANK == 0 else torch.allclose(found, whole(x))

    torch.manual_seed(7)
    pairs = [Pair(), Pair()]
    x, bias = numbers(BATCH, WIDTH), numbers(WIDTH, seed=4)
    stage = PipelineStage(pairs[RANK], RANK, 2, "cpu")
    spec = {"bias": _Replicate}
    schedule = ScheduleGPipe(
        stage, 4, loss_fn=mean_loss, args_chunk_spec=TensorChunkSpec.from_tuple((0,)) if RANK == 0 else None,
        kwargs_chunk_spec=spec, scale_grads=False,
    )  # fmt: skip
    found = step(schedule, x, x, RANK == 0, RANK == 1, bias=bias)
    gradients = [p.grad for p in pairs[RANK].parameters()]
    for pair in pairs:
        pair.zero_grad()
    output = pairs[1](*pairs[0](x, bias=bias), bias=bias)
    (4 * mean_loss(output, x)).backward()
    for gradient, parameter in zip(gradients, pairs[RANK].parameters(), strict=True):
        same(gradient, parameter.grad)
    if RANK == 1:
        same(found, output.detach())


def training() -> None:
    """Some steps of an optimizer; a stage that completes gradients of weights itself; frozen stages."""
    whole, parts = blocks(4), blocks(4)
    indices = [RANK, RANK + 2]
    called = [0]

    def builder() -> Callable[[], None]:
        def run() -> None:
            called[0] += 1

        return run

    stages = [PipelineStage(parts[i], i, 4, "cpu", dw_builder=builder) for i in indices]
    schedule = ScheduleInterleavedZeroBubble(stages, 4, loss_fn=mean_loss)
    mine = [p for stage in stages for p in stage.submod.parameters()]
    optimizers = [torch.optim.SGD(ps, lr=0.1, momentum=0.9) for ps in (list(whole.parameters()), mine)]
    x, y = numbers(BATCH, WIDTH), numbers(BATCH, WIDTH, seed=1)
    for _ in range(5):
        for optimizer in optimizers:
            optimizer.zero_grad()
        mean_loss(whole(x), y).backward()
        step(schedule, x, y, RANK == 0, RANK == 1)
        for optimizer in optimizers:
            optimizer.step()
    assert called == [5 * 4 * 2]
    for i in indices:
        for found, expected in zip(parts[i].parameters(), whole[i].parameters(), strict=True):
            same(found, expected)
    parts[0].requires_grad_(False)
    parts[1].requires_grad_(False)
    for optimizer in optimizers:
        optimizer.zero_grad()
    whole[:2].requires_grad_(False)
    mean_loss(whole(x), y).backward()
    step(schedule, x, y, RANK == 0, RANK == 1)
    same_gradients(stages[1:], whole)
    assert all(p.grad is None for p in stages[0].submod.parameters())


def replicas() -> None:
    """Two pipelines of two processes whose stages train together."""
    lines = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    twins = [dist.new_group([0, 2]), dist.new_group([1, 3])]
    line, place = RANK // 2, RANK % 2
    whole, parts = blocks(2), blocks(2)
    net = nn.parallel.DistributedDataParallel(parts[place], process_group=twins[place])
    stage = PipelineStage(net, place, 2, "cpu", group=lines[line])
    schedule = Schedule1F1B(stage, 4, loss_fn=mean_loss)
    for turn in range(2):
        x, y = numbers(2 * BATCH, WIDTH, seed=turn), numbers(2 * BATCH, WIDTH, seed=5)
        whole.zero_grad()
        parts.zero_grad()
        mean_loss(whole(x), y).backward()
        rows = slice(line * BATCH, (line + 1) * BATCH)
        step(schedule, x[rows], y[rows], place == 0, place == 1)
        for found, expected in zip(parts[place].parameters(), whole[place].parameters(), strict=True):
            same(found.grad, expected.grad)


def misuse() -> None:
    """Calls that are refused, in words."""
    block = blocks(1)
    refused(lambda: PipelineStage(block, 2, 2, "cpu"), ValueError, "Stage index 2 is out of range of 2")
    refused(lambda: PipelineStage(block, 0, 1, "cpu"), RuntimeError, "Pipeline group size 2", "stages 1")
    refused(lambda: PipelineStage(3, 0, 2, "cpu"), TypeError, "PipelineStage", "submodule", "Module", "int")
    refused(
        lambda: PipelineStage(block, 0, 2, "cpu", input_args=[1]), TypeError, "input_args", "a tensor", "int"
    )
    stage = PipelineStage(block, RANK, 2, "cpu", input_args=torch.ones(3, WIDTH, dtype=torch.float64))
    other = PipelineStage(block, RANK + 2, 4, "cpu")
    refused(lambda: ScheduleGPipe([stage], 2), TypeError, "ScheduleGPipe: argument stage", "list")
    refused(lambda: ScheduleGPipe(stage, 0), ValueError, "argument n_microbatches", "from 1", "found 0")
    refused(lambda: ScheduleGPipe(stage, 2, 3), TypeError, "argument loss_fn", "a function", "int")
    refused(lambda: ScheduleGPipe(other, 2), ValueError, "one of 2 stages", "found 4")
    refused(lambda: Schedule1F1B(stage, 1), ValueError, "Number of microbatches (1)", "stages (2)")
    refused(lambda: ScheduleLoopedBFS(other, 1), TypeError, "argument stages", "list", "PipelineStage")
    refused(
        lambda: ScheduleLoopedBFS([other], 2), ValueError, f"stages [{RANK}, {RANK + 2}]", f"[{RANK + 2}]"
    )
    folded = [PipelineStage(block, i, 4, "cpu") for i in (RANK, 3 - RANK)]
    refused(
        lambda: ScheduleInterleaved1F1B(folded, 2),
        ValueError,
        "expected stages",
        f"found {sorted((RANK, 3 - RANK))}",
    )
    refused(lambda: ScheduleDualPipeV(folded, 2), ValueError, "2 microbatches and 4 stages")
    looped = [PipelineStage(block, i, 4, "cpu") for i in (RANK, RANK + 2)]
    refused(lambda: ScheduleInterleaved1F1B(looped, 5), ValueError, "number of rounds (2)", "got 5")
    schedule = ScheduleGPipe(stage, 2, loss_fn=mean_loss)
    with torch.no_grad():
        refused(lambda: schedule.step(), RuntimeError, "requires gradients to be enabled")
    x = numbers(1, WIDTH)
    refused(lambda: schedule.step(x, target=x), ValueError, "Expecting 2 arg_mbs but got 1")
    refused(lambda: schedule.step(losses=()), TypeError, "losses must be a list")
    if RANK == 1:
        refused(lambda: schedule.step(), ValueError, "ScheduleGPipe.step: argument target", "found None")
    else:
        refused(
            lambda: schedule.step(numbers(8, WIDTH)),
            ValueError,
            "argument input_args",
            "float64[3, 6]",
            "found float64[4, 6]",
        )
    only = _ScheduleForwardOnly(stage, 2)
    refused(lambda: only.step(target=numbers(2, WIDTH)), RuntimeError, "Forward-only")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    try:
        globals()[sys.argv[1]]()
    finally:
        dist.destroy_process_group()
