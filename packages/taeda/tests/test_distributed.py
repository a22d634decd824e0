"""Groups of processes: stores, one process alone, and programs of three."""

from __future__ import annotations

import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest

import taeda as torch
import taeda.distributed as dist
from taeda import nn

PROGRAM = Path(__file__).with_name("distributed_program.py")
# Of three processes that begin on a machine that does other things.
LIMIT = 300


def start(*arguments: str, processes: int = 3) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "taeda.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    return subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=LIMIT, check=False)


@pytest.mark.parametrize(
    "part",
    [
        "collectives",
        "movements",
        "objects",
        "gradients",
        "operators",
        "training",
        "unused",
        "normalisation",
        "misuse",
        "compression",
        "leaving",
    ],
)
def test_three_processes(part: str) -> None:
    done = start(str(PROGRAM), part)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]


def test_meeting_in_a_file(tmp_path: Path) -> None:
    done = start(str(PROGRAM), "objects", str(tmp_path / "store"))
    assert done.returncode == 0, done.stderr[-6000:]
    assert not (tmp_path / "store").exists()  # the last process removes it


def test_a_failing_process_ends_the_others() -> None:
    done = start(str(PROGRAM), "failing")
    assert done.returncode == 1
    assert "on purpose" in done.stderr and "local rank 1 ended with exit code 1" in done.stderr


def test_the_launcher_says_who_is_who(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR")
    script.write_text(
        f"import os, sys; sys.stdout.write(' '.join([os.environ[n] for n in {names}] + sys.argv[1:]) + '\\n')"
    )
    done = start(str(script), "--lr", "1", processes=2)
    assert sorted(done.stdout.splitlines()) == ["0 0 2 2 127.0.0.1 --lr 1", "1 1 2 2 127.0.0.1 --lr 1"]
    command = [sys.executable, "-m", "taeda.distributed.launch", "--standalone", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=True)
    assert done.stdout.split()[-1] == "--local-rank=0"


def stores(tmp_path: Path) -> dict[str, dist.Store]:
    return {
        "hash": dist.HashStore(),
        "file": dist.FileStore(str(tmp_path / "store"), 1),
        "tcp": dist.TCPStore("localhost", 0, 1, True),
        "prefix": dist.PrefixStore("here", dist.HashStore()),
    }


@pytest.mark.parametrize("kind", ["hash", "file", "tcp", "prefix"])
def test_stores(kind: str, tmp_path: Path) -> None:
    store = stores(tmp_path)[kind]
    store.set("a", "text")
    store.set("b", b"\0bytes")
    assert store.get("a") == b"text" and store.get("b") == b"\0bytes"
    assert [store.add("n", 2), store.add("n", -5), store.get("n")] == [2, -3, b"-3"]
    assert store.check(["a", "n"]) and not store.check(["a", "none"])
    assert store.compare_set("a", "other", "new") == b"text"
    assert store.compare_set("a", "text", "new") == b"new" == store.get("a")
    assert store.compare_set("none", "old", "new") == b"old" and store.compare_set("c", "", "x") == b"x"
    assert store.delete_key("c") and not store.delete_key("c")
    store.append("a", "er")
    assert store.get("a") == b"newer"
    store.multi_set(["x", "y"], ["1", "2"])
    assert store.multi_get(["y", "x"]) == [b"2", b"1"]
    threading.Timer(0.05, store.set, ("later", "here")).start()
    store.wait(["later"], timedelta(seconds=60))
    store.set_timeout(timedelta(milliseconds=20))
    assert store.timeout == timedelta(milliseconds=20)
    with pytest.raises(dist.DistStoreError, match=r"wait timeout after 20ms, keys: .*none"):
        store.get("none")
    with pytest.raises(TypeError, match="expected a timedelta"):
        store.set_timeout(1)
    with pytest.raises(TypeError, match="values are str or bytes, found int"):
        store.set("a", 1)
    assert {"a", "b", "n"} <= set(store.list_keys())


@pytest.mark.parametrize("kind", ["hash", "tcp"])
def test_queues(kind: str, tmp_path: Path) -> None:
    store = stores(tmp_path)[kind]
    store.queue_push("q", "one")
    store.queue_push("q", "two")
    assert [store.queue_len("q"), store.queue_pop("q"), store.queue_pop("q"), store.queue_len("q")] == [
        2,
        b"one",
        b"two",
        0,
    ]
    with pytest.raises(dist.QueueEmptyError):
        store.queue_pop("q", block=False)
    store.set_timeout(timedelta(milliseconds=20))
    with pytest.raises(dist.DistStoreError, match="queue: q"):
        store.queue_pop("q")


def test_a_port_that_is_taken_or_silent() -> None:
    store = dist.TCPStore("localhost", 0, 1, True)
    with pytest.raises(dist.DistNetworkError, match="failed to listen"):
        dist.TCPStore("localhost", store.port, 1, True)
    assert dist.TCPStore("localhost", store.port, wait_for_workers=False).compare_set("k", "", "v") == b"v"
    assert store.clone().get("k") == b"v"
    port = store.port
    del store
    with pytest.raises(dist.DistNetworkError, match="timed out after 100ms"):
        dist.TCPStore("localhost", port, timeout=timedelta(milliseconds=100))


@pytest.fixture
def alone():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def test_one_process(alone) -> None:
    assert dist.is_available() and dist.is_initialized() and dist.is_gloo_available()
    assert (dist.get_rank(), dist.get_world_size(), dist.get_pg_count()) == (0, 1, 1)
    assert dist.group.WORLD is dist.GroupMember.WORLD is not None
    tensor = torch.ones(3)
    dist.all_reduce(tensor)
    dist.broadcast(tensor, 0)
    dist.all_gather(room := [torch.zeros(3)], tensor)
    dist.barrier()
    assert tensor.tolist() == room[0].tolist() == [1, 1, 1]
    dist.all_gather_object(found := [None], "x")
    assert found == ["x"]
    group = dist.new_group([0])
    assert dist.get_world_size(group) == 1 and dist.get_pg_count() == 2
    assert group in dist.distributed_c10d._pg_map and len(dist.distributed_c10d._pg_group_ranks) == 2
    dist.destroy_process_group(group)
    with pytest.raises(ValueError, match="destroyed"):
        dist.barrier(group)
    net = nn.parallel.DistributedDataParallel(nn.Linear(2, 2))
    net(torch.ones(1, 2)).sum().backward()
    assert net.module.weight.grad.tolist() == [[1, 1], [1, 1]]
    assert nn.SyncBatchNorm(2)(torch.randn(4, 2)).shape == (4, 2)


def test_wrong_calls(alone) -> None:
    with pytest.raises(ValueError, match="twice"):
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    with pytest.raises(TypeError, match=r"Expected parameter `tensor` of type torch\.Tensor"):
        dist.all_reduce(1)
    with pytest.raises(TypeError, match=r"List\[torch.Tensor\]"):
        dist.all_gather(torch.ones(1), torch.ones(1))
    with pytest.raises(ValueError, match="different dtypes"):
        dist.all_gather([torch.ones(1)], torch.ones(1, dtype=torch.int64))
    with pytest.raises(ValueError, match="'tensor_list' has 2 tensors"):
        dist.all_gather([torch.ones(1)] * 2, torch.ones(1))
    with pytest.raises(ValueError, match="complex"):
        dist.all_reduce(torch.ones(1, dtype=torch.complex64), dist.ReduceOp.MAX)
    with pytest.raises(ValueError, match="Must specify src"):
        dist.broadcast(torch.ones(1))
    with pytest.raises(ValueError, match="not part of group"):
        dist.broadcast(torch.ones(1), src=4)
    with pytest.raises(ValueError, match="Invalid destination rank"):
        dist.send(torch.ones(1), dst=0)
    with pytest.raises(ValueError, match="within the world_size"):
        dist.new_group([1])
    with pytest.raises(ValueError, match="must be contiguous"):
        dist.all_gather_into_tensor(torch.ones(2, 2).t(), torch.ones(4))
    with pytest.raises(ValueError, match="device_ids"):
        nn.parallel.DistributedDataParallel(nn.Linear(2, 2), device_ids=[0])
    with pytest.raises(RuntimeError, match="not needed"):
        nn.parallel.DistributedDataParallel(nn.ReLU())


def test_before_there_is_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not dist.is_initialized() and dist.group.WORLD is None
    for question in (dist.get_rank, dist.get_world_size, dist.barrier):
        with pytest.raises(ValueError, match="has not been initialized"):
            question()
    with pytest.raises(AssertionError, match="there is no process group"):
        dist.destroy_process_group()
    with pytest.raises(ValueError, match="has not been initialized"):
        nn.parallel.DistributedDataParallel(nn.Linear(2, 2))
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="environment variable RANK expected, but not set"):
        dist.init_process_group("gloo")
    with pytest.raises(ValueError, match="rank parameter missing"):
        dist.init_process_group("gloo", init_method="tcp://localhost:1", world_size=1)
    with pytest.raises(RuntimeError, match="No rendezvous handler for http://"):
        dist.init_process_group("gloo", init_method="http://localhost")
    with pytest.raises(ValueError, match="Invalid backend: 'pigeon'"):
        dist.init_process_group("pigeon", store=dist.HashStore(), rank=0, world_size=1)
    with pytest.raises(ValueError, match="not in a job of 2"):
        dist.init_process_group("gloo", store=dist.HashStore(), rank=2, world_size=2)
    assert not dist.is_initialized()


def test_asking_loads_nothing() -> None:
    source = (
        "import sys, taeda.distributed as d; d.is_available(), d.is_initialized();"
        "assert not [m for m in sys.modules if m.startswith('taeda.distributed.')], sys.modules"
    )
    subprocess.run([sys.executable, "-c", source], check=True, timeout=LIMIT)


def test_the_steps_of_a_forward_can_be_called_and_replaced(alone) -> None:
    net = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    seen = []
    net._run_ddp_forward = lambda *inputs, **kwargs: seen.append(inputs) or net.module(*inputs, **kwargs)
    net(torch.ones(1, 2)).sum().backward()
    assert len(seen) == 1
    inputs, kwargs = net._pre_forward(torch.ones(1, 2), key=3)
    assert kwargs == {"key": 3}
    net._post_forward(net.module(*inputs)).sum().backward()
    assert net.module.weight.grad.tolist() == [[2, 2]]


@pytest.mark.parametrize(
    ("given", "text", "worker", "rank", "device"),
    [
        ("rank:1/cuda:0", "rank:1/cuda:0", None, 1, "cuda:0"),
        ("rank:0", "rank:0/cpu", None, 0, "cpu"),
        ("worker1/meta", "worker1/meta", "worker1", None, "meta"),
        ("worker1", "worker1/cpu", "worker1", None, "cpu"),
        ("cuda:1", "cuda:1", None, None, "cuda:1"),
        (torch.device("cpu"), "cpu", None, None, "cpu"),
    ],
    ids=str,
)
def test_places_in_other_processes(
    given, text: str, worker: str | None, rank: int | None, device: str
) -> None:
    place = dist._remote_device(given)
    assert (str(place), place.worker_name(), place.rank()) == (text, worker, rank)
    assert place.device() == torch.device(device)
    again = dist.remote_device._remote_device(text)
    assert place == again and hash(place) == hash(again) and place != dist._remote_device("worker2")


@pytest.mark.parametrize("given", ["", "/cpu", "a/b/c", "rank:x/cpu", "a:b/cpu", "worker1/"])
def test_places_without_a_process(given: str) -> None:
    with pytest.raises(ValueError, match="expected 'WORKER/DEVICE'"):
        dist._remote_device(given)
    with pytest.raises(TypeError, match="must be a str or a device, found int"):
        dist._remote_device(1)


class OwnStore(dist.Store):
    """A program's own store, with no more than it needs."""

    def __init__(self):
        super().__init__()
        self.values, self.asked = {}, []

    def set(self, key, value):
        self.values[key] = value

    def get(self, key):
        return self.values[key]

    def add(self, key, amount):
        self.values[key] = b"%d" % (int(self.values.get(key, b"0")) + amount)
        return int(self.values[key])

    def list_keys(self):
        return list(self.values)

    def wait(self, keys, timeout=None):
        self.asked.append(keys)


class OwnStoreOfSeveral(OwnStore):
    def multi_get(self, keys):
        self.asked.append(keys)
        return [self.values[key] for key in keys]


def test_stores_of_programs_stand_behind_prefixes():
    own = OwnStore()
    store = dist.PrefixStore("p", own)
    store.set("a", "1")
    store.append("a", b"2")
    store.multi_set(["b", "c"], ["3", b"4"])
    store.wait(["a", "b"])
    assert own.values == {"p/a": b"12", "p/b": b"3", "p/c": b"4"} and own.asked == [["p/a", "p/b"]]
    assert store.get("a") == b"12" and store.multi_get(["b", "c"]) == [b"3", b"4"]
    assert store.add("n", 2) == 2 and not store.has_extended_api()
    dist.Store.wait(own, ["p/a"])  # by what the class gets
    several = OwnStoreOfSeveral()
    store = dist.PrefixStore("p", several)
    store.set("a", b"1")
    assert store.multi_get(["a"]) == [b"1"] and several.asked == [["p/a"]] and store.has_extended_api()
    assert dist.PrefixStore("p", dist.HashStore()).has_extended_api()
    with pytest.raises(NotImplementedError, match="Store does not define get"):
        dist.Store().get("a")
