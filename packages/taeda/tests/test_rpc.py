"""Calls of other processes: programs of three, and what one process alone can say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import taeda as torch
from taeda.distributed import autograd, rpc

PROGRAM = Path(__file__).with_name("rpc_program.py")
# Of three processes that begin on a machine that does other things.
LIMIT = 300


@pytest.mark.parametrize(
    "part", ["calls", "references", "errors", "gradients", "training", "together", "leaving"]
)
def test_three_processes(part: str) -> None:
    command = [
        sys.executable,
        "-m",
        "taeda.distributed.run",
        "--standalone",
        "--nproc-per-node=3",
        str(PROGRAM),
        part,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]


@pytest.fixture
def alone(tmp_path: Path):
    options = rpc.TensorPipeRpcBackendOptions(init_method=f"file://{tmp_path}/store")
    rpc.init_rpc("me", rank=0, world_size=1, rpc_backend_options=options)
    yield
    rpc.shutdown()


def test_one_process_calls_itself(alone: None) -> None:
    assert rpc.is_available() and autograd.is_available()
    assert rpc.rpc_sync("me", torch.add, (torch.ones(2), 1)).tolist() == [2, 2]
    x = torch.ones(3, requires_grad=True)
    with autograd.context() as context:
        y = rpc.rpc_sync("me", torch.mul, (x * 2, 5))
        autograd.backward(context, [y.sum()])
        assert autograd.get_gradients(context)[x].tolist() == [10] * 3


def test_functions_that_need_it(tmp_path: Path) -> None:
    @rpc.api._require_initialized
    def doubled(x: int) -> int:
        return 2 * x

    with pytest.raises(RuntimeError, match="not been initialized"):
        doubled(3)
    options = rpc.TensorPipeRpcBackendOptions(init_method=f"file://{tmp_path}/store")
    rpc.init_rpc("me", rank=0, world_size=1, rpc_backend_options=options)
    assert doubled(3) == 6 and torch._C._distributed_rpc._is_current_rpc_agent_set()
    assert isinstance(rpc.RRef(3), torch._C._distributed_rpc.PyRRef)
    rpc.shutdown()


def test_before_it_begins() -> None:
    for call in (
        lambda: rpc.rpc_sync("me", len, ([],)),
        lambda: rpc.remote("me", len, ([],)),
        lambda: rpc.RRef(3),
        rpc.get_worker_info,
        lambda: autograd.context().__enter__(),
    ):
        with pytest.raises(RuntimeError, match="RPC has not been initialized"):
            call()


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"name": ""}, ValueError, "argument 'name' is ''"),
        ({"name": "a b"}, ValueError, "argument 'name' is 'a b'"),
        ({"name": "a", "backend": "gloo"}, TypeError, "member of BackendType, found 'gloo'"),
        ({"name": "a", "rpc_backend_options": {}}, TypeError, "instance of RpcBackendOptions"),
    ],
)
def test_wrong_settings(settings: dict, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        rpc.init_rpc(**settings, rank=0, world_size=1)


def test_options() -> None:
    options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=4, rpc_timeout=20)
    assert (options.num_worker_threads, options.rpc_timeout, options.init_method) == (4, 20, "env://")
    options.set_device_map("other", {0: 1})
    assert options.device_maps == {"other": {torch.device("cuda:0"): torch.device("cuda:1")}}
    with pytest.raises(ValueError, match="1-to-1"):
        options.set_device_map("other", {1: 1})
    with pytest.raises(ValueError, match="must be positive"):
        rpc.TensorPipeRpcBackendOptions(num_worker_threads=0)
    with pytest.raises(ValueError, match="do not take the cpu"):
        options.set_devices(["cpu"])
