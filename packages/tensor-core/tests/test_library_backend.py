"""Devices defined from Python: memory of the host, kernels as Python functions."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import taeda_tensor_core as tc
from taeda_tensor_core import library


@pytest.fixture(scope="module")
def backend():
    made = library.Backend(
        "testdev", device_count=2, capabilities={"dtypes": ["bfloat16"]}, properties={"speed": "low"}
    )
    array = made.array

    @made.kernel("copy_same_")
    def copy(outputs, inputs):
        array(inputs[0])[...] = array(inputs[1])

    @made.kernel("fill_")
    def fill(outputs, inputs):
        array(inputs[0])[...] = array(inputs[1])

    @made.kernel("clone", "cast")
    def clone(outputs, inputs):
        array(outputs[0])[...] = array(inputs[0])

    @made.kernel("add")
    def add(outputs, inputs):
        a, b, alpha = inputs
        array(outputs[0])[...] = array(a) + alpha * array(b)

    @made.kernel("nonzero")
    def nonzero(outputs, inputs):
        assert outputs == ()
        return tc.from_numpy(np.argwhere(array(inputs[0]))).to("testdev")

    yield made
    made.remove()


def test_memory_is_the_devices_own(backend):
    x = tc.tensor([[1.0, 2.0], [3.0, 4.0]]).to("testdev")
    assert x.device.type == "testdev" and x.cpu().tolist() == [[1.0, 2.0], [3.0, 4.0]]
    shown = backend.array(x.t()[1:])
    shown[0, 1] = 9.0
    assert x.cpu().tolist() == [[1.0, 2.0], [3.0, 9.0]]
    assert not np.shares_memory(backend.array(x), backend.array(x + 0))


def test_all_forms_use_one_kernel(backend):
    x = tc.ones(2, 3, device="testdev")
    assert (x + 1).cpu().tolist() == [[2.0] * 3] * 2
    x.add_(tc.ones(3, device="testdev"), alpha=4)
    assert x.cpu().tolist() == [[5.0] * 3] * 2
    out = tc.empty(3, 2, device="testdev").t()
    tc.add(x, 1, out=out)
    assert out.cpu().tolist() == [[6.0] * 3] * 2
    assert x.nonzero().shape == (6, 2)


def test_missing_kernels_are_named(backend):
    with pytest.raises(
        NotImplementedError, match=r"mul: backend 'testdev' has no kernel for this operator.*cpu"
    ):
        tc.ones(2, device="testdev") * 2
    missing = backend.missing()
    assert "mul" in missing and "add" not in missing and "fill_" not in missing
    assert library.op("add").kernels()["testdev"].startswith("testdev")


def test_devices_of_one_backend_stay_apart(backend):
    first, second = tc.ones(2, device="testdev"), tc.ones(2, device="testdev:1")
    assert (second + second).device == tc.device("testdev:1")
    with pytest.raises(RuntimeError, match="same device"):
        first + second
    with pytest.raises(RuntimeError, match="same device"):
        first + tc.ones(2)
    with pytest.raises(RuntimeError, match="out of range"):
        tc.ones(1, device="testdev:2")


def test_facts(backend):
    assert backend.properties == {"name": "testdev", "memory": "host", "speed": "low"}
    assert backend.capabilities == {"dtypes": ["bfloat16"]}


def test_errors_of_kernels_come_out_and_leave_the_device_usable(backend):
    def fails(outputs, inputs):
        raise ArithmeticError("inside the kernel")

    x = tc.ones(2, device="testdev")
    handle = library.Library("other").kernel("exp", "testdev")(fails)
    with handle, pytest.raises(ArithmeticError, match="inside the kernel"):
        tc.exp(x)
    with pytest.raises(NotImplementedError):
        tc.exp(x)
    assert (x + 1).cpu().tolist() == [2.0, 2.0]


def test_the_memory_of_other_devices_is_not_shown():
    with pytest.raises(RuntimeError, match="the memory of device 'meta' cannot be read"):
        library.Backend.array(tc.ones(2, device="meta"))


@pytest.mark.parametrize("name, count", [("", 1), ("a:b", 1), ("testdev2", 0)])
def test_wrong_definitions(name, count):
    with pytest.raises(ValueError, match="Backend: argument"):
        library.Backend(name, device_count=count)


def test_names_of_others_are_refused():
    with pytest.raises(ValueError, match="'cpu' is registered already"):
        library.Backend("cpu")


def test_backends_may_be_registered_while_others_are_used():
    # In a process of its own: a backend stays for its life, and the first one to come is the interesting one.
    program = """
        import threading
        import taeda_tensor_core as tc
        from taeda_tensor_core import backends, library
        failed, done = [], threading.Event()
        def use():
            try:
                while not done.is_set():
                    assert tc.empty(3, device="meta").device.type == "meta" and backends.names()[:2] == ["cpu", "meta"]
                    assert (tc.ones(100).to("cpu") + 1).sum().item() == 200
            except BaseException as error:
                failed.append(error)
        threads = [threading.Thread(target=use) for _ in range(4)]
        for thread in threads:
            thread.start()
        for i in range(10):
            library.Backend(f"late{i}", device_count=2)
        done.set()
        for thread in threads:
            thread.join()
        print(failed, len(backends.names()))
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.stdout, result.returncode) == ("[] 12\n", 0), result.stderr
