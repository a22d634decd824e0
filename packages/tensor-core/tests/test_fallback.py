"""What happens where a device lacks a kernel: an error, or, where the user chose so, the same on the cpu."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys

import numpy as np
import pytest

import taeda_tensor_core as taeda
from taeda_tensor_core import backends, library


@pytest.fixture(scope="module")
def bare(request):
    path = request.getfixturevalue("shared_plugin")("device")
    backends.load(path)
    made = ctypes.CDLL(str(path))
    made.live_blocks.restype = ctypes.c_int64
    return made


@pytest.fixture
def falling(bare):
    """The device with the fallback on; counts from zero."""
    backends.reset_fallback_counts("bare")
    backends.fallback("bare", "cpu")
    yield bare
    backends.fallback("bare", "error")


BASE = np.random.default_rng(5).uniform(0.5, 2, (4, 6))


def on_device(array=BASE, dtype=taeda.float64):
    return taeda.tensor(array.tolist(), dtype=dtype).to("bare")


def test_without_a_choice_a_missing_kernel_is_an_error(bare):
    x = on_device(dtype=taeda.float32)
    assert (-x).cpu().tolist() == (-x.cpu()).tolist()
    with pytest.raises(NotImplementedError, match=r"exp: backend 'bare' has no kernel .* cpu"):
        x.exp()
    assert backends.fallback_counts("bare").get("exp") is None


VIEWS = {
    "plain": lambda x: x,
    "transposed": lambda x: x.T,
    "reversed": lambda x: x[::-1, ::-2],
    "steps": lambda x: x[1:, ::3],
    "expanded": lambda x: x[0].expand(3, 6),
    "0-d": lambda x: x[2, 3],
    "empty": lambda x: x[:0],
}
CALLS = {
    "exp": lambda x: x.exp(),
    "exp_": lambda x: x.exp_(),
    "add": lambda x: x + x * 2,
    "clone": lambda x: x.clone(),
    "sum": lambda x: x.sum(),
    "sort": lambda x: x.reshape(-1).sort()[0],
    "to": lambda x: x.to(taeda.float32),
    "indexed": lambda x: x[x > 1],
    "picked": lambda x: x[True] if x.dim() == 0 else x[:, taeda.tensor([1, 0]).to(x.device)],
    "cat": lambda x: taeda.cat([x, x]) if x.dim() else x,
    "contiguous": lambda x: x.contiguous(),
    "softmax": lambda x: x.softmax(-1) if x.dim() else x,
}


# An expanded tensor cannot be written to.
PAIRS = [(call, view) for call in CALLS for view in VIEWS if (call, view) != ("exp_", "expanded")]


@pytest.mark.parametrize(("call", "view"), PAIRS)
def test_the_cpu_gives_the_same(falling, call, view):
    x = on_device()
    y = x.cpu()
    result, wanted = CALLS[call](VIEWS[view](x)), CALLS[call](VIEWS[view](y))
    assert (result.device.type, result.dtype, result.shape) == ("bare", wanted.dtype, wanted.shape)
    np.testing.assert_allclose(result.cpu().numpy(), wanted.numpy())
    np.testing.assert_allclose(x.cpu().numpy(), y.numpy())


WRITES = {
    "fill": lambda x, z: x.fill_(3),
    "copy": lambda x, z: x.copy_(z),
    "add": lambda x, z: x.add_(z),
    "item": lambda x, z: x.__setitem__((0, slice(None, None, 2)), 9),
    "mask": lambda x, z: x.masked_fill_(x > 1, 0),
    "out": lambda x, z: taeda.mul(x, z, out=x),
    "index_put": lambda x, z: x.__setitem__(taeda.tensor([1, 0]).to(x.device), z[:2]),
}


@pytest.mark.parametrize("view", ["plain", "transposed", "reversed", "steps"])
@pytest.mark.parametrize("write", WRITES)
def test_writing_into_views_writes_where_they_lie(falling, write, view):
    x = on_device()
    y = x.cpu()
    here, there = VIEWS[view](y), VIEWS[view](x)
    z = taeda.ones_like(here) * 1.5
    version = x._version
    WRITES[write](there, z.to("bare"))
    WRITES[write](here, z)
    np.testing.assert_allclose(x.cpu().numpy(), y.numpy())
    assert x._version > version


def test_calls_are_counted_by_operator(falling):
    x = on_device(dtype=taeda.float32)
    for _ in range(3):
        x.exp()
    x.sum()
    x.neg()
    counts = backends.fallback_counts("bare")
    assert counts == {"exp": 3, "sum": 1}
    assert (
        backends.fallback_summary("bare")
        == "taeda: 4 call(s) on device 'bare' fell back to the cpu: exp 3, sum 1"
    )
    backends.reset_fallback_counts("bare")
    assert backends.fallback_summary("bare") == ""


def test_operators_of_plugins_fall_back_too(falling):
    x, y = on_device(), on_device()
    result = taeda.ops.bare.sum(x, y)
    assert result.device.type == "bare"
    np.testing.assert_allclose(result.cpu().numpy(), 2 * BASE)
    assert backends.fallback_counts("bare") == {"bare::sum": 1}
    # What the cpu cannot compute either is an error in the device's name.
    with pytest.raises(NotImplementedError, match="bare::made: backend 'bare' has no kernel"):
        taeda.ops.bare.made(x, y)
    backends.fallback("bare", "error")
    with pytest.raises(NotImplementedError, match="bare::sum: backend 'bare' has no kernel"):
        taeda.ops.bare.sum(x, y)


def test_operators_of_python_fall_back_too(falling):
    with library.Library("fallpy") as lib:
        operator = lib.define("fallpy::twice(Tensor self) -> (Tensor a, Tensor b)")
        operator.kernel("cpu")(lambda outputs, inputs: (inputs[0] * 2, inputs[0]))
        a, b = operator(on_device().T)
        np.testing.assert_allclose(a.cpu().numpy(), 2 * BASE.T)
        assert (a.device.type, b.device.type) == ("bare", "bare")
        assert backends.fallback_counts("bare")["fallpy::twice"] == 1


def test_the_second_device_of_a_backend_falls_back_to_itself(falling):
    x = taeda.tensor([1.0, 2.0]).to("bare:1")
    assert str((x + 1).device) == "bare:1"
    assert (x.to("bare:0") + 1).cpu().tolist() == [2, 3]
    with pytest.raises(RuntimeError, match="same device"):
        x + x.to("bare:0")


def test_errors_of_a_call_that_falls_back_are_its_own(falling):
    x = on_device()
    with pytest.raises(RuntimeError, match="add"):
        x + taeda.ones(5).to("bare")
    with pytest.raises(IndexError, match="sort"):
        x.sort(7)
    assert x.cpu().tolist() == BASE.tolist()


def test_memory_is_given_back(falling):
    before = falling.live_blocks()
    x = on_device()
    y = (x.exp() + x.T.sum()).contiguous()
    assert falling.live_blocks() > before
    del x, y
    assert falling.live_blocks() == before


def test_a_second_device_of_the_name_is_refused(bare, plugin):
    with pytest.raises(
        RuntimeError, match=r"taeda-test-bare registers device 'bare', .* registered by taeda-test-bare"
    ):
        backends.load(plugin("device"))
    assert (-on_device(dtype=taeda.float32)).cpu().shape == (4, 6)


@pytest.mark.parametrize(
    ("device", "policy", "exception", "words"),
    [
        ("bare", "gpu", ValueError, "'policy' must be 'error' or 'cpu', found 'gpu'"),
        ("cpu", "cpu", ValueError, "the cpu itself has nothing to fall back to"),
        ("nobody", "cpu", RuntimeError, "unknown device 'nobody'"),
    ],
)
def test_wrong_choices(bare, device, policy, exception, words):
    with pytest.raises(exception, match=words):
        backends.fallback(device, policy)


def test_what_the_device_says_of_itself(bare):
    assert backends.lacks("bare") == {"streams": "one queue", "complex": "reals only"}
    assert backends.device_count("bare") == 2
    assert backends.properties("bare:1")["name"] == "bare"
    assert library.op("neg").kernels()["bare"] == "bare"


SUMMARY = """
import taeda_tensor_core as taeda
from taeda_tensor_core import backends
backends.load({path!r})
backends.fallback("bare", {policy!r})
x = taeda.ones(2).to("bare")
{body}
"""


@pytest.mark.parametrize(
    ("policy", "body", "wanted"),
    [
        (
            "cpu",
            "x + x, x.exp(), x.exp()",
            "taeda: 3 call(s) on device 'bare' fell back to the cpu: exp 2, add 1\n",
        ),
        ("cpu", "-x", ""),
        ("error", "", ""),
        (
            "cpu",
            "x.exp(); backends.fallback('bare', 'error')",
            "taeda: 1 call(s) on device 'bare' fell back to the cpu: exp 1\n",
        ),
    ],
)
def test_one_line_at_the_end_sums_up(shared_plugin, policy, body, wanted):
    program = SUMMARY.format(path=str(shared_plugin("device")), policy=policy, body=body)
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (result.stdout, result.stderr) == ("", wanted)


@pytest.mark.parametrize(
    ("more", "found"),
    [("{", "'{'"), ("[1]", r"'\[1\]'"), ('\\"\\xff\\"', "'\"\ufffd\"'")],
    ids=["cut", "list", "bytes"],
)
def test_facts_that_are_no_json_name_the_device(plugin, request, more, found):
    # In a process of its own: a backend stays registered for the life of the process, and there is room for few.
    name = f"facts_{request.node.callspec.id}"
    path = plugin("device", f'-DDEVICE_NAME="{name}"', f'-DMORE="{more}"')
    program = f"""
from taeda_tensor_core import backends
backends.load({str(path)!r})
try:
    backends.properties({name!r})
except ValueError as error:
    print(error)
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert re.search(f"device '{name}' must add a JSON object or nothing, found {found}", result.stdout)
