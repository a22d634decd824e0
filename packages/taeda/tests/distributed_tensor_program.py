"""What test_distributed_tensors.py starts in two processes: one of the parts below, which fails if something is wrong.

Everything is compared with what one process computes of whole tensors.
"""

from __future__ import annotations

import copy
import itertools
import os
import sys

import pytest

import taeda as torch
import taeda.distributed as dist
import taeda.distributed.checkpoint as dcp
import taeda.nn.functional as F
from taeda import nn
from taeda.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointWrapper,
    apply_activation_checkpointing,
)
from taeda.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from taeda.distributed.checkpoint.format_utils import dcp_to_torch_save
from taeda.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_state_dict,
    set_model_state_dict,
    set_state_dict,
)
from taeda.distributed.device_mesh import DeviceMesh, init_device_mesh
from taeda.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy, StateDictType, fully_shard
from taeda.distributed.fsdp.wrap import ModuleWrapPolicy
from taeda.distributed.optim import ZeroRedundancyOptimizer
from taeda.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
)
from taeda.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    loss_parallel,
    parallelize_module,
)
from taeda.distributed.tensor.placement_types import _StridedShard

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
PLACES = (Shard(0), Shard(1), Replicate(), _StridedShard(0, 2), _StridedShard(1, 2))


def numbers(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def same(found: object, expected: object) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def whole(value: object) -> torch.Tensor:
    return value.full_tensor() if isinstance(value, DTensor) else value


def meshes() -> None:
    """Groups, parts and names of meshes."""
    mesh = init_device_mesh("cpu", (SIZE, 1), mesh_dim_names=("dp", "tp"))
    assert mesh.shape == (SIZE, 1) and mesh.get_coordinate() == (RANK, 0) and mesh.size() == SIZE
    assert repr(mesh) == f"DeviceMesh((dp={SIZE}, tp=1), 'cpu', stride=(1, 1))"
    assert mesh["dp"].get_group() is mesh.get_group("dp") and mesh["dp"].get_local_rank() == RANK
    assert mesh["tp"].size() == 1 and dist.get_world_size(mesh["tp"].get_group()) == 1
    assert mesh._flatten("all").size() == SIZE and mesh["all"].get_local_rank() == RANK
    assert mesh["dp"] == mesh["dp"] and len({mesh, mesh["dp"]}) == 2
    again = DeviceMesh.from_group(mesh.get_group("dp"), "cpu")
    assert again.mesh.tolist() == list(range(SIZE)) and copy.deepcopy(mesh) is mesh


def layouts() -> None:
    """Products, sums and others of every way of lying, with gradients."""
    mesh = init_device_mesh("cpu", (SIZE,))
    values = [numbers(1, 4, 6), numbers(2, 5, 6), numbers(3, 5)]
    for places in itertools.product(PLACES, PLACES, (Shard(0), Replicate())):
        plain = [value.clone().requires_grad_() for value in values]
        spread = [
            distribute_tensor(value.clone().requires_grad_(), mesh, [place])
            for value, place in zip(values, places, strict=True)
        ]
        results = []
        for x, w, b in (plain, spread):
            y = F.linear(x, w, b)
            z = F.layer_norm(y.relu() * 2 + y, (5,)).softmax(-1) + y.mean(0)
            loss = (
                (z.t().reshape(5, 2, 2).sum(1) * z[0, 0]).square().sum()
                + y.amax()
                + torch.cat([y, y], 0).norm()
            )
            loss.backward()
            results.append([y, z, loss, x.grad, w.grad, b.grad])
        for mine, expected in zip(results[1], results[0], strict=True):
            same(whole(mine).detach(), expected.detach())
            assert tuple(mine.shape) == tuple(expected.shape)
    x = distribute_tensor(values[0], mesh, [Shard(0)])
    assert (x + x).placements == (Shard(0),) and x.sum().placements == (Partial(),)
    assert x.t().placements == (Shard(1),) and x.redistribute(placements=[Shard(1)]).to_local().shape == (
        4,
        3,
    )
    same(DTensor.from_local(numbers(RANK, 2), mesh, [Partial()]).full_tensor(), numbers(0, 2) + numbers(1, 2))
    uneven = distribute_tensor(torch.arange(3.0), mesh, [Shard(0)])
    assert uneven.to_local().shape == (2 if RANK == 0 else 1,) and uneven.full_tensor().tolist() == [0, 1, 2]
    assert (uneven * 2).sum().item() == 6 and torch.equal(uneven, uneven)
    places = [_StridedShard(-1, 3)]
    strided = distribute_tensor(torch.arange(7.0), mesh, places)
    assert strided.to_local().tolist() == [[0, 1, 3, 4, 6], [2, 5]][RANK] and strided.placements == (
        _StridedShard(0, 3),
    )
    assert (
        strided.full_tensor().tolist() == [0, 1, 2, 3, 4, 5, 6]
        and (strided + 1).placements == strided.placements
    )
    joined = DTensor.from_local(strided.to_local()[:2] - RANK, mesh, [_StridedShard(0, 2)])
    assert joined.full_tensor().tolist() == [0, 1, 1, 4]
    try:
        x + values[0]
    except RuntimeError as error:
        assert "mixed torch.Tensor and DTensor" in str(error)
    else:
        raise AssertionError("a plain tensor was taken")


def grids() -> None:
    """Tensors over a mesh of two dimensions, one of them cut twice."""
    mesh = init_device_mesh("cpu", (SIZE, 1))
    value = numbers(4, 6, 4)
    for places in itertools.product(PLACES, repeat=2):
        spread = distribute_tensor(value, mesh, places)
        for wanted in itertools.product(PLACES, repeat=2):
            moved = spread.redistribute(placements=wanted)
            assert moved.placements == wanted
            same(moved.full_tensor(), value)
        same((spread @ spread.t()).full_tensor(), value @ value.t())


class Net(nn.Module):
    """Layers of several kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 6)
        self.up, self.down = nn.Linear(6, 8), nn.Linear(8, 6)
        self.end = nn.Sequential(nn.Linear(6, 3), nn.LayerNorm(3))
        self.double()
        with torch.no_grad():
            for seed, value in enumerate(self.parameters()):
                value.copy_(numbers(seed, *value.shape))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.end(self.down(torch.tanh(self.up(self.table(rows)))))


def rows(rank: int, step: int) -> torch.Tensor:
    return torch.arange(4).reshape(2, 2) + rank + step


def parallel_layers() -> None:
    """Layers cut by rows and columns, with an optimizer."""
    mesh = init_device_mesh("cpu", (SIZE,))
    alone, net = Net(), Net()
    plan = {
        "table": RowwiseParallel(input_layouts=Replicate()),
        "up": ColwiseParallel(),
        "down": RowwiseParallel(),
    }
    parallelize_module(net, mesh, plan)
    assert net.up.weight.placements == (Shard(0),) and isinstance(net.up.weight, nn.Parameter)
    assert net.up.weight.to_local().shape == (4, 6)
    for foreach in (False, True):
        steps = [torch.optim.AdamW(m.parameters(), lr=0.05, foreach=foreach) for m in (alone, net)]
        for step in range(3):
            losses, norms = [], []
            for model, optimizer in zip((alone, net), steps, strict=True):
                loss = model(rows(0, step)).square().mean()
                optimizer.zero_grad()
                loss.backward()
                norms.append(whole(nn.utils.clip_grad_norm_(model.parameters(), 0.3)))
                optimizer.step()
                losses.append(loss.detach())
            same(losses[1], losses[0])
            same(norms[1], norms[0])
    for name, value in net.state_dict().items():
        same(whole(value), alone.state_dict()[name])
    spread = distribute_module(Net(), mesh)
    everywhere = [Replicate()]
    state = {
        name: value if isinstance(value, DTensor) else distribute_tensor(value, mesh, everywhere)
        for name, value in net.state_dict().items()
    }
    spread.load_state_dict(state)
    same(whole(spread.up.weight), alone.up.weight.detach())


def trained_alone(accumulate: bool = False) -> Net:
    """The network that one process trains with the data of all."""
    net = Net()
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.05)
    for step in range(3):
        for rank in range(SIZE):
            for at in (step, 5) if accumulate else (step,):
                (net(rows(rank, at)).square().mean() / SIZE).backward()
        optimizer.step()
        optimizer.zero_grad()
    return net


def fully_sharded() -> None:
    """`fully_shard`, with kept back gradients too."""
    for accumulate in (False, True):
        net = Net()
        fully_shard(net.end)
        fully_shard(net)
        assert isinstance(net, Net) and net.up.weight.placements == (Shard(0),)
        optimizer = torch.optim.AdamW(net.parameters(), lr=0.05)
        for step in range(3):
            if accumulate:
                net.set_requires_gradient_sync(False)
                net(rows(RANK, 5)).square().mean().backward()
                net.set_requires_gradient_sync(True)
            net(rows(RANK, step)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        expected = trained_alone(accumulate).state_dict()
        for name, value in net.state_dict().items():
            same(whole(value), expected[name])
        net.unshard()
        found = dict(net.named_parameters())
        assert type(found["up.weight"]) is nn.Parameter and found["up.weight"].shape == (8, 6)
        net.reshard()
        assert net.up.weight.placements == (Shard(0),)


def flattened() -> None:
    """`FullyShardedDataParallel`, its states and those of its optimizer."""
    cls = FullyShardedDataParallel
    for names, strategy in ((True, "FULL_SHARD"), (False, "FULL_SHARD"), (True, "NO_SHARD")):
        kind = ShardingStrategy[strategy]

        def made(names: bool = names, kind: ShardingStrategy = kind) -> FullyShardedDataParallel:
            policy = ModuleWrapPolicy({nn.Sequential})
            return cls(Net(), auto_wrap_policy=policy, use_orig_params=names, sharding_strategy=kind)

        net = made()
        optimizer = torch.optim.AdamW(net.parameters(), lr=0.05)

        def train(model: nn.Module, steps: torch.optim.Optimizer, accumulate: bool = False) -> None:
            for step in range(3):
                if accumulate:
                    with model.no_sync():
                        model(rows(RANK, 5)).square().mean().backward()
                model(rows(RANK, step)).square().mean().backward()
                steps.step()
                steps.zero_grad()

        train(net, optimizer, accumulate=True)
        state, expected = net.state_dict(), trained_alone(True).state_dict()
        assert list(state) == list(expected)
        for name, value in state.items():
            same(value, expected[name])
        kept = cls.optim_state_dict(net, optimizer)
        assert kept["state"]["up.weight"]["exp_avg"].shape == (8, 6)
        with cls.summon_full_params(net):
            same(net.module.up.weight.detach(), expected["up.weight"])
        second = made()
        second.load_state_dict(state)
        other = torch.optim.AdamW(second.parameters(), lr=0.05)
        other.load_state_dict(cls.optim_state_dict_to_load(second, other, kept))
        spread = cls.sharded_optim_state_dict(net, optimizer, None)
        assert isinstance(spread["state"]["up.weight"]["exp_avg"], DTensor)
        same(whole(spread["state"]["up.weight"]["exp_avg"]), kept["state"]["up.weight"]["exp_avg"])
        other.load_state_dict(
            cls.flatten_sharded_optim_state_dict(sharded_optim_state_dict=spread, model=second, optim=other)
        )
        train(net, optimizer)
        train(second, other)
        for name, value in second.state_dict().items():
            same(value, net.state_dict()[name])
        with cls.state_dict_type(net, StateDictType.SHARDED_STATE_DICT):
            parts = net.state_dict()
            assert isinstance(parts["up.weight"], DTensor)
            second.load_state_dict({name: torch.zeros_like(whole(value)) for name, value in parts.items()})
            cls.set_state_dict_type(second, StateDictType.SHARDED_STATE_DICT)
            second.load_state_dict(parts)
        same(second(rows(0, 0)), net(rows(0, 0)))
        net(rows(RANK, 0)).square().mean().backward()
        norm = net.clip_grad_norm_(1e-3)
        assert norm > 1e-3


def checkpoints() -> None:
    """States of models and optimizers, saved by some and loaded by others."""
    folder = os.path.join(sys.argv[2], "saved")

    def made(kind: str, seed: int) -> tuple[nn.Module, torch.optim.Optimizer]:
        net = Net()
        with torch.no_grad():
            for value in net.parameters():
                value.add_(seed)
        if kind == "flat":
            net = FullyShardedDataParallel(net, auto_wrap_policy=ModuleWrapPolicy({nn.Sequential}))
        elif kind == "rows":
            fully_shard(net)
        optimizer = torch.optim.AdamW(net.parameters(), lr=0.05)
        net(rows(0, 0)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        return net, optimizer

    options = StateDictOptions(full_state_dict=True)
    expected = [
        get_state_dict(*made("alone", 0), options=options),
        get_state_dict(*made("alone", 1), options=options),
    ]
    kinds = ("alone", "rows", "flat")
    for source, target in itertools.product(kinds, kinds):
        model, steps = get_state_dict(*made(source, 1))
        job = dcp.async_save({"model": model, "optim": steps, "step": 7}, checkpoint_id=folder)
        job.result()
        net, optimizer = made(target, 0)
        model, steps = get_state_dict(net, optimizer)
        state = {"model": model, "optim": steps, "step": 0}
        dcp.load(state, checkpoint_id=folder)
        set_state_dict(net, optimizer, model_state_dict=state["model"], optim_state_dict=state["optim"])
        assert state["step"] == 7
        found = get_state_dict(net, optimizer, options=options)
        assert list(found[0]) == list(expected[1][0])
        same(found[0], expected[1][0])
        for name, own in expected[1][1]["state"].items():
            same(found[1]["state"][name], own)
    try:
        dcp.load({"none": torch.ones(2)}, checkpoint_id=folder)
    except dcp.CheckpointException as error:
        assert "Missing key in checkpoint state_dict: none" in str(error)
    else:
        raise AssertionError("a missing name was loaded")
    with torch.device("meta"):
        layer = nn.Linear(6, 8)
    fully_shard(layer, mesh=init_device_mesh("cpu", (1, SIZE)))
    layer.to_empty(device="cpu")
    first = {"weight": numbers(1, 8, 6).float(), "bias": numbers(2, 8).float()} if RANK == 0 else {}
    set_model_state_dict(
        layer, first, options=StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    )
    same(whole(layer.weight).detach(), numbers(1, 8, 6).float())
    assert layer.weight.placements == (Replicate(), Shard(0))
    dcp_to_torch_save(folder, f"{folder}.{RANK}.pt")
    same(torch.load(f"{folder}.{RANK}.pt", weights_only=False)["model"], expected[1][0])


def shared_states() -> None:
    """`ZeroRedundancyOptimizer`: what one process would find, and states that are brought together."""
    net, alone = Net(), trained_alone()
    steps = ZeroRedundancyOptimizer(net.parameters(), torch.optim.AdamW, lr=0.05)
    model = nn.parallel.DistributedDataParallel(net)
    for step in range(3):
        model(rows(RANK, step)).square().mean().backward()
        steps.step()
        steps.zero_grad()
    for name, value in net.state_dict().items():
        same(value, alone.state_dict()[name])
    assert 0 < len(steps.optim.state) < len(list(net.parameters()))
    steps.consolidate_state_dict(0)
    box = [steps.state_dict() if RANK == 0 else None]
    dist.broadcast_object_list(box)
    assert len(box[0]["state"]) == len(list(net.parameters()))
    other = ZeroRedundancyOptimizer(net.parameters(), torch.optim.AdamW, lr=0.05)
    other.load_state_dict(box[0])
    assert [len(s) for s in other.optim.state.values()] == [len(s) for s in steps.optim.state.values()]


def different_lengths() -> None:
    """`DistributedDataParallel.join`: the gradients of those that are done count as zeros."""
    for by_all in (True, False):
        net, alone = Net(), Net()
        model = nn.parallel.DistributedDataParallel(net)
        steps = [torch.optim.SGD(m.parameters(), lr=0.01) for m in (net, alone)]
        with model.join(divide_by_initial_world_size=by_all):
            for step in range(2 + 3 * RANK):
                model(rows(RANK, step)).square().mean().backward()
                steps[0].step()
                steps[0].zero_grad()
        for step in range(2 + 3 * (SIZE - 1)):
            running = [rank for rank in range(SIZE) if step < 2 + 3 * rank]
            for rank in running:
                (alone(rows(rank, step)).square().mean() / (SIZE if by_all else len(running))).backward()
            steps[1].step()
            steps[1].zero_grad()
        for name, value in net.state_dict().items():
            same(value, alone.state_dict()[name])


def recomputed() -> None:
    """Modules computed again in the backward, alone and inside units; parameters averaged now and then."""
    net, alone = Net(), Net()
    apply_activation_checkpointing(net, check_fn=lambda part: isinstance(part, nn.Linear))
    assert isinstance(net.up, CheckpointWrapper) and list(net.state_dict()) == list(alone.state_dict())
    net.load_state_dict(alone.state_dict())
    for model in (net, alone):
        model(rows(0, 0)).square().mean().backward()
    for mine, expected in zip(net.parameters(), alone.parameters(), strict=True):
        same(mine.grad, expected.grad)
    unit = FullyShardedDataParallel(net, auto_wrap_policy=ModuleWrapPolicy({nn.Sequential}))
    same(unit(rows(0, 0)), alone(rows(0, 0)))
    averager = PeriodicModelAverager(2)
    value = nn.Parameter(torch.tensor([float(RANK)]))
    for expected in (0.5, RANK, 0.5):
        value.data.fill_(float(RANK))
        value.grad = torch.zeros(1)
        averager.average_parameters([value])
        assert value.item() == expected


def exchanges() -> None:
    """How often parallel layers exchange tensors, forward and backward, and by which module."""
    from taeda.distributed.tensor.debug import CommDebugMode

    mesh, operators = init_device_mesh("cpu", (SIZE,)), torch.ops.c10d_functional
    net = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 4)).double()
    parallelize_module(net, mesh, {"0": ColwiseParallel(), "1": RowwiseParallel()})
    with CommDebugMode() as mode:
        made = net(numbers(1, 2, 4).requires_grad_())
    assert mode.get_total_counts() == 1 and mode.get_comm_counts() == {operators.all_reduce: 1}
    assert mode.comm_module_counts["Sequential"]["forward"] == {operators.all_reduce: 1}
    assert mode.get_comm_counts()[operators.broadcast] == 0
    assert "all_reduce: 1" in mode.generate_comm_debug_tracing_table()
    with mode:
        made.sum().backward()
        dist.all_gather([torch.zeros(1)] * SIZE, torch.ones(1))
    assert mode.get_comm_counts()[operators.all_gather_into_tensor] == 1
    net(numbers(1, 2, 4))
    assert mode.get_total_counts() == sum(mode.get_comm_counts().values())
    group, operators = dist.group.WORLD.group_name, torch.ops._c10d_functional
    assert operators.all_reduce(torch.ones(2), "sum", group).tolist() == [SIZE, SIZE]
    assert operators.all_gather_into_tensor(torch.ones(1), SIZE, group).shape == (SIZE,)
    assert operators.reduce_scatter_tensor(torch.ones(SIZE), "sum", SIZE, group).tolist() == [SIZE]
    together = torch.distributed._functional_collectives
    for chosen in (mesh, (mesh, 0), list(range(SIZE)), [list(range(SIZE))], group, dist.group.WORLD):
        assert together.all_reduce(torch.ones(2), "sum", chosen).tolist() == [SIZE, SIZE]
        assert together.all_gather_tensor(torch.ones(1, 2), 1, chosen).shape == (1, 2 * SIZE)
    turned = together.permute_tensor(torch.full((2, 1), float(RANK)), [1, 0], mesh)
    assert turned.tolist() == [[1 - RANK]] * 2
    first, second = together.reduce_scatter_tensor_coalesced(
        [torch.ones(SIZE), torch.ones(3, SIZE)], "sum", [0, 1], mesh
    )
    assert first.tolist() == [SIZE] and second.shape == (3, 1)
    shapes = torch.ones(2, 4, device="meta")
    assert together.all_gather_tensor(shapes, 0, mesh).shape == (2 * SIZE, 4)
    assert together.reduce_scatter_tensor(shapes, "sum", 0, mesh).shape == (2 // SIZE, 4)
    for wrong in ([7], "none"):
        try:
            together.all_reduce(torch.ones(1), "sum", wrong)
        except ValueError as error:
            assert "there is no group" in str(error)
        else:
            raise AssertionError(wrong)
    assert (dist.new_group([0], use_local_synchronization=True) is None) == (RANK != 0)


def made_anew() -> None:
    """Tensors that are made of others, and tensors without elements."""
    mesh = init_device_mesh("cpu", (SIZE,))
    whole = distribute_tensor(numbers(1, 12, 8), mesh, [Shard(0)])
    for make in (lambda size: whole.new_full(size, 3.0), whole.new_zeros, whole.new_ones, whole.new_empty):
        assert make((12, 8)).placements == (Shard(0),) and make((4, 2)).placements == (Replicate(),)
        assert make((12, 8)).to_local().shape == (12 // SIZE, 8) and make((4, 2)).to_local().shape == (4, 2)
    assert whole.new_full((12, 8), 3.0).full_tensor().eq(3).all()
    for placement, rows in ((Shard(0), 16 // SIZE), (Replicate(), 16)):
        bare = distribute_tensor(torch.empty(16, 8, device="meta"), mesh, [placement])
        assert bare.is_meta and bare.to_local().shape == (rows, 8)
        made = torch.empty_like(bare, device="cpu")
        nn.init.constant_(made, 1.5)
        assert made.to_local().shape == (rows, 8) and made.full_tensor().eq(1.5).all()
    with torch.device("meta"):
        net = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 4))
    parallelize_module(net, mesh, {"0": ColwiseParallel(), "1": RowwiseParallel()})
    net.to_empty(device="cpu")
    for parameter in net.parameters():
        nn.init.constant_(parameter, 0.5)
    assert net(torch.ones(1, 4)).tolist() == [[8 * 2.5 * 0.5 + 0.5] * 4]


def losses() -> None:
    """Scores that are cut by classes, with plain labels and weights."""
    mesh = init_device_mesh("cpu", (SIZE,))
    alone = numbers(1, 3, 4).requires_grad_()
    scores = distribute_tensor(alone.detach(), mesh, [Shard(1)]).requires_grad_()
    labels, weights = torch.tensor([0, 1, 3]), numbers(2, 4).exp()
    expected = F.cross_entropy(alone, labels, weights)
    expected.backward()
    with loss_parallel():
        loss = F.cross_entropy(scores, labels, weights)
        loss.backward()
    same(loss.full_tensor(), expected)
    same(scores.grad.full_tensor(), alone.grad)
    assert scores.grad.placements == (Shard(1),)
    with pytest.raises(RuntimeError, match="mixed"):
        F.cross_entropy(scores, labels)


def composed() -> None:
    """Ways of training that leave a module what it is; gradients averaged over a mesh."""
    from taeda.distributed._composable import checkpoint
    from taeda.distributed._composable.contract import _get_registry
    from taeda.distributed._composable.replicate import replicate

    def equal_everywhere(value: torch.Tensor) -> bool:
        room = [torch.empty_like(value) for _ in range(SIZE)]
        dist.all_gather(room, value)
        return all(torch.equal(room[0], other) for other in room)

    mesh, alone = init_device_mesh("cpu", (SIZE,)), Net()
    net = Net()
    net.load_state_dict(alone.state_dict())
    assert replicate(checkpoint(net), device_mesh=mesh, bucket_cap_mb=1) is net and isinstance(net, Net)
    assert list(net.state_dict()) == list(alone.state_dict())
    assert set(_get_registry(net)) == {"checkpoint", "replicate"} and _get_registry(alone) == {}
    for model, batches in ((net, [RANK]), (alone, range(SIZE))):
        for rank in batches:
            (model(rows(0, rank)).square().mean() / len(batches)).backward()
    for mine, expected in zip(net.parameters(), alone.parameters(), strict=True):
        same(mine.grad, expected.grad)
    net.zero_grad()
    net.set_requires_gradient_sync(False)
    net(rows(0, RANK)).square().mean().backward()
    assert not equal_everywhere(next(net.parameters()).grad)
    try:
        replicate(net)
    except AssertionError as error:
        assert "applied to this" in str(error)
    else:
        raise AssertionError("replicated twice")
    pair = init_device_mesh("cpu", (SIZE, 1), mesh_dim_names=("rows", "own"))
    mine = nn.parallel.DistributedDataParallel(nn.Linear(2, 1), device_mesh=pair["own"])
    mine(torch.full((1, 2), 1.0 + RANK)).sum().backward()
    assert mine.module.weight.grad.tolist() == [[1.0 + RANK] * 2]
    for wrong in ({"device_mesh": pair}, {"device_mesh": pair["own"], "process_group": dist.group.WORLD}):
        try:
            nn.parallel.DistributedDataParallel(nn.Linear(2, 1), **wrong)
        except RuntimeError as error:
            assert "device mesh" in str(error) or "device_mesh" in str(error)
        else:
            raise AssertionError(wrong)


def main() -> None:
    dist.init_process_group("gloo")
    globals()[sys.argv[1]]()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
