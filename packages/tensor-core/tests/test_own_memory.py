"""Devices from Python with memory of their own."""

import gc
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import taeda_tensor_core as tc
from taeda_tensor_core import backends, library

FILE = Path(__file__).with_name("own_memory.py")


@pytest.fixture(scope="module")
def module():
    spec = importlib.util.spec_from_file_location("own_memory", FILE)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    yield made
    made.device.remove()


@pytest.fixture(scope="module")
def device(module):
    return module.device


def test_tensors_live_in_it(device):
    x = tc.tensor([[1.0, 2.0], [3.0, 4.0]]).to("owndev")
    assert x.data_ptr() >= 1 << 60 and not backends.capabilities("owndev")["host-read"]
    assert (x.t() + x * 2).cpu().tolist() == [[3.0, 7.0], [8.0, 12.0]]
    x[1].add_(1)
    assert x.cpu().tolist() == [[1.0, 2.0], [4.0, 5.0]] and x[1, 0].item() == 4.0
    assert repr(x).startswith("tensor([[1., 2.],") and "owndev" in repr(x)
    assert tc.zeros(0, 3, device="owndev").cpu().shape == (0, 3)
    assert backends.properties("owndev")["memory"] == "own"
    assert tc.ones(2, device="owndev:1").to("owndev:0").cpu().tolist() == [1.0, 1.0]


def test_the_host_gets_no_array_of_it(device):
    x = tc.ones(2, device="owndev")
    with pytest.raises(RuntimeError, match="the memory of device 'owndev:0' cannot be read by the host"):
        device.array(x)
    with pytest.raises(TypeError, match="only tensors on cpu"):
        x.numpy()


def test_memory_is_counted_and_given_back(device):
    module = tc.get_device_module("owndev")
    gc.collect()
    held, blocks = module.memory_allocated(), len(device.memory.blocks)
    x = tc.empty(1000, device="owndev")
    assert module.memory_allocated() == held + 4000 and len(device.memory.blocks) == blocks + 1
    del x
    assert module.memory_allocated() == held and len(device.memory.blocks) == blocks
    assert module.max_memory_allocated() >= held + 4000
    module.reset_peak_memory_stats()
    assert module.max_memory_allocated() == held
    stats = module.memory_stats()
    assert stats["allocated_bytes.all.current"] == held and stats["allocation.all.freed"] > 0
    assert module.memory_allocated(1) == 0 and "allocated_bytes.all.peak" in module.memory_summary()


def test_what_falls_back_is_copied(device):
    backends.fallback("owndev", "cpu")
    try:
        x = tc.tensor([0.0, 1.0]).to("owndev")
        assert x.exp().cpu().tolist() == tc.tensor([0.0, 1.0]).exp().tolist()
    finally:
        backends.fallback("owndev", "error")
        backends.reset_fallback_counts("owndev")


def test_errors_of_the_memory_come_out(module):
    class Broken(module.Blocks):
        def allocate(self, index, nbytes):
            if nbytes > 1000:
                raise MemoryError("no more than a thousand bytes")
            return 0 if nbytes > 500 else super().allocate(index, nbytes)

        def write(self, index, address, data):
            self.kept = data
            raise KeyError("write")

    memory = Broken()
    with library.Backend("passingdev", memory=memory):
        with pytest.raises(MemoryError, match="a thousand bytes"):
            tc.empty(1000, device="passingdev")
        with pytest.raises(TypeError, match=r"allocate\(\) must give a positive number"):
            tc.empty(200, device="passingdev")
        with pytest.raises(KeyError, match="write"):
            tc.ones(3).to("passingdev")
        with pytest.raises(ValueError, match="released"):
            memory.kept[0]
    with pytest.raises(TypeError, match="argument 'memory' must have a method 'allocate', found object"):
        library.Backend("passingdev", memory=object())


def test_tensors_go_by_dlpack(device):
    x = tc.tensor([[1.0, 2.0], [3.0, 4.0]]).to("owndev:1")
    assert x.t().__dlpack_device__()[0] == 12  # an extension's
    y = tc.from_dlpack(x.t())
    assert (
        y.device == x.device and y.data_ptr() == x.data_ptr() and y.cpu().tolist() == [[1.0, 3.0], [2.0, 4.0]]
    )
    x.add_(1)
    assert y.cpu().tolist() == [[2.0, 4.0], [3.0, 5.0]]
    assert tc.from_dlpack(x, copy=True).data_ptr() != x.data_ptr()
    assert tc.from_dlpack(x, device="cpu").tolist() == x.cpu().tolist()
    here = tc.from_dlpack(x.__dlpack__(dl_device=(1, 0)))
    assert here.device.type == "cpu" and here.tolist() == x.cpu().tolist()
    with pytest.raises(
        BufferError, match=r"\(12, 9999\), expected \(1, 0\), the cpu, or where the tensor is"
    ):
        x.__dlpack__(dl_device=(12, 9999))
    del x
    assert y.cpu().tolist() == [[2.0, 4.0], [3.0, 5.0]]


def test_the_kit_tests_such_a_device():
    names = ("mul", "clone", "round trip", "memory is counted", "current device", "copies are copies")
    only = [f"--only={name}" for name in names]
    command = [sys.executable, "-m", "taeda_testing", "backend", "owndev", "--load", str(FILE), *only]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0 and "nothing is left to do" in done.stdout, done.stdout + done.stderr
