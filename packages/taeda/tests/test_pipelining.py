"""Pipelines: how arguments are cut, how models are cut, and programs of several processes that train through stages."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import taeda as torch
import taeda.distributed as dist
from taeda import nn
from taeda.distributed.pipelining import (
    Pipe,
    PipelineStage,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleZBVZeroBubble,
    SplitPoint,
    _orders,
    build_stage,
    pipe_split,
    pipeline,
)
from taeda.distributed.pipelining.microbatch import (
    TensorChunkSpec,
    _CustomReducer,
    _Replicate,
    merge_chunks,
    split_args_kwargs_into_chunks,
)
from taeda.distributed.pipelining.schedules import PipelineScheduleMulti, get_schedule_class
from taeda.nn.attention.flex_attention import create_block_mask

PROGRAM = Path(__file__).with_name("pipelining_program.py")
# Of processes that begin on a machine that does other things.
LIMIT = 300


@pytest.mark.parametrize(
    ("part", "processes"),
    [
        ("single", 2),
        ("looped", 2),
        ("folded", 2),
        ("read_orders", 2),
        ("traced", 2),
        ("named_points", 2),
        ("evaluation", 2),
        ("training", 2),
        ("misuse", 2),
        ("single", 3),
        ("looped", 3),
        ("folded", 3),
        ("replicas", 4),
    ],
)
def test_processes(part: str, processes: int) -> None:
    command = [sys.executable, "-m", "taeda.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    done = subprocess.run(
        [*command, str(PROGRAM), part], capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]


@pytest.fixture
def alone() -> Iterator[None]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


# Arguments


def test_arguments_are_cut() -> None:
    x, mask = torch.arange(12.0).view(6, 2), torch.ones(2, 3)
    args, kwargs = split_args_kwargs_into_chunks((x, [x, 3]), {"flag": True, "pair": {"a": x}}, 4)
    assert [part[0].shape[0] for part in args] == [2, 2, 1, 1]  # as tensor_split does
    assert [part[1][1] for part in args] == [3] * 4 and isinstance(args[0][1], list)
    assert [part["flag"] for part in kwargs] == [True] * 4
    for parts in ([part[0] for part in args], [part["pair"]["a"] for part in kwargs]):
        assert torch.equal(torch.cat(parts), x)
    args, kwargs = split_args_kwargs_into_chunks(
        (x, mask), {"whole": mask, "b": x}, 2, TensorChunkSpec.from_tuple((0, 1)),
        {"b": TensorChunkSpec(1), "whole": _Replicate},
    )  # fmt: skip
    assert [tuple(part[1].shape) for part in args] == [(2, 2), (2, 1)]
    assert kwargs[0]["whole"] is mask and tuple(kwargs[1]["b"].shape) == (6, 1)
    assert split_args_kwargs_into_chunks((), None, 3) == ([()] * 3, [{}] * 3)
    # A short tensor gives fewer.
    args, kwargs = split_args_kwargs_into_chunks((5,), {"x": torch.ones(2)}, 4)
    assert len(args) == len(kwargs) == 2
    leaf = torch.ones(4, requires_grad=True)
    args, _ = split_args_kwargs_into_chunks((leaf,), None, 2)
    (2 * args[0][0]).sum().backward()
    assert args[0][0].grad.tolist() == [2, 2] and leaf.grad.tolist() == [2, 2, 0, 0]


def test_a_block_mask_is_cut() -> None:
    table = torch.arange(4)

    def causal(b: Any, h: Any, q: Any, k: Any) -> Any:
        return q >= k + table[b]

    mask = create_block_mask(causal, 4, 1, 128, 128, device="cpu")
    args, _ = split_args_kwargs_into_chunks((mask,), None, 2)
    index = torch.tensor([0, 1])
    for start, (part,) in zip((0, 2), args, strict=True):
        assert part.kv_num_blocks.shape[0] == 2
        found = part.mask_mod(index, 0, torch.tensor(2), torch.tensor(0))
        assert torch.equal(found, causal(index + start, 0, torch.tensor(2), torch.tensor(0)))
    with pytest.raises(ValueError, match="along dimension 0 only, found 1"):
        split_args_kwargs_into_chunks((mask,), None, 2, (TensorChunkSpec(1),))


def test_arguments_that_do_not_fit() -> None:
    x = torch.ones(4)
    with pytest.raises(
        ValueError, match=r"args_chunk_spec: expected one entry for each of 2 values, found 1"
    ):
        split_args_kwargs_into_chunks((x, x), None, 2, (TensorChunkSpec(0),))
    with pytest.raises(ValueError, match=r"kwargs_chunk_spec: expected entries for \['a'\], found \['b'\]"):
        split_args_kwargs_into_chunks((), {"a": x}, 2, None, {"b": TensorChunkSpec(0)})
    with pytest.raises(
        ValueError, match=r"expected TensorChunkSpec for a tensor .* found 3 for a value of type"
    ):
        split_args_kwargs_into_chunks((x,), None, 2, (3,))
    with pytest.raises(ValueError, match=r"has dimension 1, found one of shape \(4,\)"):
        split_args_kwargs_into_chunks((x,), None, 2, (TensorChunkSpec(1),))
    with pytest.raises(ValueError, match="argument chunks: expected a number from 1, found 0"):
        split_args_kwargs_into_chunks((x,), None, 0)
    with pytest.raises(TypeError, match="argument split_dim: expected an int, found 'a'"):
        TensorChunkSpec("a")


def test_results_are_joined() -> None:
    chunks = [{"a": torch.ones(2, 1), "n": 3}, {"a": torch.zeros(2, 2), "n": 3}]
    found = merge_chunks(chunks, {"a": TensorChunkSpec(1), "n": None})
    assert found["a"].shape == (2, 3) and found["n"] == 3
    assert merge_chunks([(torch.ones(1), 2), (torch.ones(2), 2)], None)[0].shape == (3,)
    assert merge_chunks([torch.tensor(1.0), torch.tensor(2.0)], _CustomReducer(4.0, lambda a, b: a + b)) == 7
    with pytest.raises(ValueError, match="expected the same value in all chunks, found 1 and 2"):
        merge_chunks([1, 2], None)
    with pytest.raises(ValueError, match=r"expected 2 values in each, .* found 1"):
        merge_chunks([1], (None, None))
    assert (
        repr(TensorChunkSpec(2)).endswith("microbatch.TensorChunkSpec(2)")
        and str(TensorChunkSpec(2)) == "TensorChunkSpec(2)"
    )
    assert [spec.split_dim for spec in TensorChunkSpec.from_dict({"a": 0, "b": 1}).values()] == [0, 1]


# Models


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))
        self.norm = nn.BatchNorm1d(3)
        self.register_buffer("shift", torch.ones(3), persistent=False)

    def forward(self, x: Any, *, mask: Any = None) -> Any:
        pipe_split()  # before anything: none
        early = self.layers[0](x)
        pipe_split()
        pipe_split()  # twice in the same place: one
        late = self.norm(self.layers[1](early) + self.shift)
        if mask is not None:
            late = late * mask
        pipe_split()
        return {"late": self.layers[2](late).view(late.shape[0], -1), "early": early}


def test_a_model_is_cut_at_its_marks() -> None:
    net, x, mask = Net(), torch.randn(4, 3), torch.rand(4, 3)
    pipe = pipeline(net, (x,), {"mask": mask})
    assert isinstance(pipe, Pipe) and pipe.num_stages == 3 and pipe.info().num_stages == 3
    names = [list(pipe.get_stage_module(i).state_dict()) for i in range(3)]
    assert names[0] == ["layers.0.weight", "layers.0.bias"] and names[2] == [
        "layers.2.weight",
        "layers.2.bias",
    ]
    assert set(names[1]) <= set(net.state_dict()) and len(names[1]) == 7
    assert pipe.get_stage_module(0).get_parameter("layers.0.weight") is net.layers[0].weight
    late, early = pipe(x, mask=mask)
    expected = net(x, mask=mask)
    assert torch.allclose(late, expected["late"]) and torch.allclose(early, expected["early"])
    with pytest.raises(RuntimeError, match="invoke the Pipe object directly"):
        pipe.split_gm(x)
    with pytest.raises(ValueError, match="Invalid stage index 3"):
        pipe.get_stage_module(3)
    with pytest.raises(TypeError, match=r"missing \['mask'\]"):
        pipe(x)
    assert "submod_pp_2" in str(pipe) and pipe_split() is None


def test_a_model_is_cut_at_submodules_or_by_a_policy() -> None:
    net = nn.Sequential(nn.Sequential(nn.Linear(3, 3), nn.ReLU()), nn.Linear(3, 3), nn.Linear(3, 2))
    x = torch.randn(4, 3)
    spec = {"0.1": SplitPoint.BEGINNING, "1": SplitPoint.END, "2": SplitPoint.BEGINNING}
    pipe = pipeline(net, (x,), split_spec=spec)
    assert [list(pipe.get_stage_module(i).state_dict()) for i in range(pipe.num_stages)] == [
        ["0.0.weight", "0.0.bias"],
        ["1.weight", "1.bias"],
        ["2.weight", "2.bias"],
    ]
    assert all("forward" not in vars(module) for module in net.modules())

    def policy(graph_module: Any) -> Any:
        relu = next(node for node in graph_module.graph.nodes if "relu" in node.name)
        with graph_module.graph.inserting_after(relu):
            graph_module.graph.call_function(pipe_split, ())
        return graph_module

    halves = pipeline(net, (x,), split_policy=policy)
    assert halves.num_stages == 2
    for found in (pipe, halves, pipeline(net, (x,))):
        assert torch.allclose(found(x)[0], net(x))


def test_models_that_cannot_be_cut() -> None:
    net, x = nn.Sequential(nn.Linear(2, 2)), torch.ones(1, 2)
    with pytest.raises(AttributeError, match=r"argument split_spec: .* found '0\.weight'"):
        pipeline(net, (x,), split_spec={"0.weight": SplitPoint.END})
    with pytest.raises(ValueError, match="expected a SplitPoint for '0', found 1"):
        pipeline(net, (x,), split_spec={"0": 1})
    with pytest.raises(ValueError, match="Cannot specify both"):
        pipeline(net, (x,), split_spec={}, split_policy=lambda g: g)
    with pytest.raises(TypeError, match="argument module: expected a Module, found function"):
        pipeline(policy_free, (x,))

    class Branch(nn.Module):
        def forward(self, x: Any) -> Any:
            return x if x.sum() > 0 else -x

    with pytest.raises(RuntimeError, match="argument module: expected a model that can be exported"):
        pipeline(Branch(), (x,))

    class Weight(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.ones(2))

        def forward(self, x: Any) -> Any:
            return x + self.w, self.w

    with pytest.raises(ValueError, match=r"results that a stage computes, found \['w'\]"):
        pipeline(Weight(), (x,))


def policy_free(x: Any) -> Any:
    return x


# Schedules


def test_names_of_schedules() -> None:
    assert get_schedule_class("1f1b").__name__ == "Schedule1F1B"
    assert get_schedule_class("ZBVZeroBubble") is ScheduleZBVZeroBubble
    with pytest.raises(ValueError, match="Unknown schedule name 'none'"):
        get_schedule_class("none")


def test_orders() -> None:
    assert list(map(repr, _orders.one_forward_one_backward(0, 2, 3))) == [
        "0F0",
        "0F1",
        "0B0",
        "0F2",
        "0B1",
        "0B2",
    ]
    assert _orders.v_places(2, 4) == {0: 0, 1: 1, 2: 1, 3: 0}
    assert _orders.loop_places(2, 4) == {0: 0, 1: 1, 2: 0, 3: 1}
    with pytest.raises(ValueError, match="evenly divisible"):
        _orders.v_places(2, 3)
    for text in ("2F0", "1UNSHARD", "3SEND_F1", "(0F1;3B0)OVERLAP_F_B"):
        assert repr(_orders._Action.from_str(text)) == text
    with pytest.raises(RuntimeError, match="Invalid action string: F0"):
        _orders._Action.from_str("F0")
    with pytest.raises(RuntimeError, match="Invalid computation type X"):
        _orders._Action.from_str("0X1")


@pytest.mark.parametrize("processes", [1, 2, 3, 4, 5])
def test_orders_end(processes: int) -> None:
    for n in range(1, 14):
        rounds = max(1, n // processes)
        each = n // rounds
        for local in (1, 2, 3):
            places = _orders.loop_places(processes, processes * local)
            made = [{p: _orders.breadth_first(p, processes, local, n) for p in range(processes)}]
            if n % rounds == 0:
                made += [
                    {p: _orders.depth_first(p, processes, local, n, each, zero) for p in range(processes)}
                    for zero in (False, True)
                ]
            for orders in made:
                _orders.check(orders, places, n, "looped")
        places = _orders.v_places(processes, 2 * processes)
        _orders.check({p: _orders.zero_bubble_v(p, processes, n) for p in range(processes)}, places, n, "ZBV")
        if n >= 2 * processes:
            orders = {p: _orders.dual_pipe_v(p, processes, n) for p in range(processes)}
            _orders.check(orders, places, n, "DualPipeV")
        places = _orders.loop_places(processes, processes)
        for make in (
            lambda p, n=n: _orders.gpipe(p, n),
            lambda p, n=n: _orders.one_forward_one_backward(p, processes, n),
        ):
            _orders.check({p: make(p) for p in range(processes)}, places, n, "single")


def test_one_process(alone: None) -> None:
    net, x, mask = Net().double(), torch.randn(8, 3).double(), torch.rand(8, 3).double()
    net.eval()
    y = torch.randn(8, 3).double()
    expected = net(x, mask=mask)["late"]
    (expected - y).square().mean().backward()
    wanted = {name: p.grad for name, p in net.named_parameters()}
    for kind, indices in ((ScheduleInterleaved1F1B, [0, 1, 2]), (PipelineScheduleMulti, [2, 0, 1])):
        net.zero_grad()
        pipe = pipeline(net, (x[:2],), {"mask": mask[:2]})
        stages = [build_stage(pipe.get_stage_module(i), i, pipe.info(), "cpu") for i in indices]
        schedule = kind(stages, 4, loss_fn=lambda found, y: (found - y).square().mean())
        if kind is PipelineScheduleMulti:
            with pytest.raises(NotImplementedError, match="PipelineScheduleMulti has no order"):
                schedule.step(x, mask=mask, target=y)
            order = [f"{s}F{i}" for i in range(4) for s in range(3)]
            order += [f"{s}B{i}" for i in range(4) for s in (2, 1, 0)]
            schedule._prepare_schedule_with_comms({0: [_orders._Action.from_str(text) for text in order]})
        losses: list[Any] = []
        found = schedule.step(x, mask=mask, target=y, losses=losses)
        assert torch.allclose(found, expected.detach(), rtol=1e-10, atol=1e-10) and len(losses) == 4
        for stage in stages:
            for name, parameter in stage.submod.named_parameters():
                assert torch.allclose(parameter.grad, wanted[name], rtol=1e-10, atol=1e-10), name
    with pytest.raises(
        TypeError, match=r"expected arguments named \['x', 'mask'\], once each, found \['m'\]"
    ):
        schedule.eval(x, m=mask)
    with pytest.raises(
        TypeError, match="argument mask: expected it in the step of stage 1, by name, or in that"
    ):
        schedule.eval(x)


def test_what_stages_may_send(alone: None) -> None:
    class Odd(nn.Module):
        def forward(self, x: Any) -> Any:
            return x, 3, None, "text"

    class Even(nn.Module):
        def forward(self, x: Any, number: Any, nothing: Any, text: Any) -> Any:
            assert (number, nothing, text) == (3, None, "text")
            return x * number

    stages = [PipelineStage(Odd(), 0, 2, "cpu"), PipelineStage(Even(), 1, 2, "cpu")]
    found = ScheduleInterleaved1F1B(stages, 2).step(torch.ones(4))
    assert found.tolist() == [3] * 4

    class Failing(nn.Module):
        def forward(self, *args: Any) -> Any:
            raise ZeroDivisionError("on purpose")

    stages[1] = PipelineStage(Failing(), 1, 2, "cpu")
    with pytest.raises(ZeroDivisionError, match="on purpose") as error:
        ScheduleInterleaved1F1B(stages, 2).step(torch.ones(4))
    assert error.value.__notes__[-1] == "in stage 1 of 2, microbatch 0"
    with pytest.raises(RuntimeError, match="expected its forward before, found those of"):
        stages[0].has_backward = True
        stages[0].backward_one_chunk(7)
    with pytest.raises(ValueError, match="ZBV requires exactly 2 stages per rank, but got 3"):
        ScheduleZBVZeroBubble([PipelineStage(Odd(), i, 3, "cpu") for i in range(3)], 2)
    with pytest.raises(ValueError, match="one of 1 stages, as there are processes, found 2"):
        ScheduleGPipe(stages[0], 2)


def test_pipelines_need_processes() -> None:
    with pytest.raises(ValueError, match="process group"):
        PipelineStage(nn.Linear(1, 1), 0, 1, "cpu")
