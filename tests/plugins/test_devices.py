"""Devices from strangers' packages: two in one process, incomplete ones, and what the conformance kit says of them."""

from __future__ import annotations

import json

import pytest

DEVICE = """
    import numpy as np
    import taeda
    from taeda import library

    def arrays(values, backend):
        return [backend.array(v) if isinstance(v, taeda.Tensor) else v for v in values]

    def make(name):
        backend = library.Backend(name)

        @backend.kernel("copy_same_")
        def copy(outputs, inputs):
            to, source = arrays(inputs, backend)
            to[...] = source

        @backend.kernel("add")
        def add(outputs, inputs):
            a, b, alpha = arrays(inputs, backend)
            backend.array(outputs[0])[...] = a + alpha * b

        @backend.kernel("exp")
        def exp(outputs, inputs):
            out = backend.array(outputs[0])
            np.exp(arrays(inputs, backend)[0], out=out, dtype=out.dtype)

        @backend.kernel("clone")
        def clone(outputs, inputs):
            backend.array(outputs[0])[...] = backend.array(inputs[0])

        @backend.kernel("log")
        def log(outputs, inputs):
            raise KeyError("on purpose")

        return backend
"""


@pytest.fixture
def devices(site):
    """A site with a module that makes devices."""
    site.install("strange-devices", {}, {"strange_devices": DEVICE})
    return site


def test_two_devices_live_in_one_process_and_tensors_move_between_them(devices):
    program = """
        import taeda, strange_devices
        strange_devices.make("first"), strange_devices.make("second")
        x = taeda.tensor([1.0, 2.0]).to("first")
        y = (x + x).to("second")
        z = y + taeda.tensor([10.0, 10.0]).to("second")
        print(x.device.type, y.device.type, z.to("first").cpu().tolist(), z.cpu().tolist())
        try:
            x + y
        except RuntimeError as error:
            print("first" in str(error), "second" in str(error))
    """
    assert devices.lines(program) == ["first second [12.0, 14.0] [12.0, 14.0]", "True True"]


@pytest.mark.parametrize(
    "call", ["x.sub(x)", "x.sub_(x)", "taeda.sub(x, x, out=x)", "x.sqrt()", "x.sqrt_()", "x - x"]
)
def test_a_missing_kernel_is_named_in_every_form(devices, call):
    program = f"""
        import taeda, strange_devices
        strange_devices.make("mydev")
        x = taeda.tensor([1.0, 2.0]).to("mydev")
        try:
            {call}
        except NotImplementedError as error:
            print(error)
        print(x.cpu().tolist())
    """
    error, unchanged = devices.lines(program)
    assert ("sub" in error or "sqrt" in error) and "'mydev' has no kernel" in error and "cpu" in error
    assert unchanged == "[1.0, 2.0]"


def test_a_kernel_that_raises_keeps_its_exception(devices):
    program = """
        import taeda, strange_devices
        strange_devices.make("mydev")
        x = taeda.tensor([1.0, 2.0]).to("mydev")
        try:
            x.log()
        except KeyError as error:
            print(error)
        print((x + x).cpu().tolist())
    """
    assert devices.lines(program) == ["'on purpose'", "[2.0, 4.0]"]


def test_the_kit_says_what_an_incomplete_device_lacks(devices):
    program = """
        import json, strange_devices
        strange_devices.make("mydev")
        from taeda_testing.conformance import run_backend
        lacks = {"gradients": "not yet", "complex": "reals only"}
        report = run_backend("mydev", lacks, only=["exp", "log", "sqrt", "logsumexp", "round trip", "fills"])
        print(json.dumps({item.name: [item.outcome, item.needs, len(item.skips)] for item in report.items}))
    """
    found = json.loads(devices.lines(program)[-1])
    outcomes = {name: item[0] for name, item in found.items()}
    assert outcomes == {
        "exp": "passed",
        "log": "failed",
        "sqrt": "missing",
        "logsumexp": "waiting",
        "round trip": "passed",
        "fills": "missing",
    }
    assert found["sqrt"][1] == ["sqrt"]
    assert found["exp"][2] > 0


def test_the_kit_finds_an_installed_device_by_its_entry_point(site):
    site.example("taeda-backend-numpy")
    program = """
        from taeda_testing.__main__ import main
        raise SystemExit(main(["backend", "numpy", "--only", "add", "--only", "sum", "--only", "training"]))
    """
    result = site.run(program)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "nothing is left to do" in result.stdout
