"""No call through the C ABI keeps a tensor: what lives after it lived before, also after errors, collector off."""

from __future__ import annotations

import contextlib
import ctypes

import pytest

import taeda_tensor_core as taeda
from taeda_tensor_core import _C, backends, library
from taeda_testing.settling import without_collector

SIZE = 50_000  # elements: big enough that what is kept cannot hide


@pytest.fixture(scope="module")
def plugins(tmp_path_factory):
    """The plug-ins under names of their own, whatever other tests have loaded."""
    from importlib.util import module_from_spec, spec_from_file_location
    from pathlib import Path

    spec = spec_from_file_location("abi_building", Path(__file__).with_name("conftest.py"))
    building = module_from_spec(spec)
    spec.loader.exec_module(building)
    made = {}
    for name in ("operators", "probe", "observer", "kernels"):
        options = (f'-DPACKAGE="mem{name}"',) if name in ("operators", "probe") else ()
        path = building.build(name, tmp_path_factory.mktemp(name), *options)
        backends.load(path)
        made[name] = ctypes.CDLL(str(path))
    return made


def tensor():
    return taeda.ones(SIZE, dtype=taeda.float64)


@contextlib.contextmanager
def nothing_kept():
    with without_collector():
        before = _C._live_bytes()
        yield
        assert _C._live_bytes() == before


CALLS = {
    "cube": lambda x, ops: ops("operators").cube(x),
    "totals": lambda x, ops: ops("operators").totals([x, x]),
    "weighed": lambda x, ops: ops("operators").weighed(x, x),
    "halved": lambda x, ops: ops("operators").halved(x),
    "swallower": lambda x, ops: ops("operators").swallower("nobody_has_this", x),
    "facts": lambda x, ops: ops("probe").facts(x),
    "view": lambda x, ops: ops("probe").view(x, [2, 2], [5, 1], 3),
    "make": lambda x, ops: ops("probe").make([SIZE], None, taeda.float32, "cpu"),
    "scribble": lambda x, ops: ops("probe").scribble(x),
    "shuffle": lambda x, ops: ops("probe").shuffle(x, 1000),
    "same": lambda x, ops: ops("probe").same(x, x + 1),
    "grow": lambda x, ops: ops("probe").grow(x, taeda.empty(0, dtype=taeda.float64)),
}


def ops(name):
    return getattr(taeda.ops, f"mem{name}")


@pytest.mark.parametrize("call", CALLS)
def test_calls_keep_nothing(plugins, call):
    with nothing_kept():
        for _ in range(3):
            CALLS[call](tensor(), ops)


ERRORS = {
    "kernel": lambda x: ops("operators").cube(x.to(taeda.float32)),
    "inference": lambda x: ops("operators").odd(x, 3),
    "strange inference": lambda x: ops("operators").odd(x, 0),
    "no result": lambda x: ops("operators").forgetful(x),
    "inner call": lambda x: ops("operators").caller("nobody_has_this", x),
    "inner operator": lambda x: ops("operators").caller("bitwise_not", x),
    "another error": lambda x: ops("operators").renamer("bitwise_not", x),
    "view": lambda x: ops("probe").view(x, [SIZE + 1], [1], 0),
    "wrap": lambda x: ops("probe").wrap(4, [5]),
    "lists": lambda x: ops("probe").shuffle(x, 1),
    "from host": lambda x: ops("probe").scribble(x, 8),
}


@pytest.mark.parametrize("call", ERRORS)
def test_errors_keep_nothing(plugins, call):
    with nothing_kept():
        for _ in range(3):
            with contextlib.suppress(Exception):
                ERRORS[call](tensor())
                pytest.fail("expected an error", pytrace=False)


def test_a_python_exception_through_c_keeps_nothing(plugins):
    with library.Library("memfail") as lib:

        @lib.operator("memfail::fail(Tensor self) -> Tensor")
        def fail(self):
            held = self + 1
            raise LookupError(str(held.shape))

        with nothing_kept():
            for name in ("caller", "renamer", "swallower"):
                with contextlib.suppress(LookupError, BufferError):
                    getattr(ops("operators"), name)("memfail::fail", tensor())


@pytest.mark.parametrize("layer", ["observe", "twice", "same", "refuse", "forget"])
def test_layers_keep_nothing(plugins, layer):
    layers = plugins["observer"]
    assert layers.put(b"exp", layer.encode(), 5) == 0 and layers.turn(5, 1) == 100
    try:
        with nothing_kept():
            for _ in range(3):
                with contextlib.suppress(IndexError, TypeError):
                    tensor().exp()
    finally:
        layers.turn(5, 0)
        assert layers.take(layer == "observe") == 0


@pytest.mark.parametrize("layer", ["observe", "reverse", "stack_list"])
def test_layers_over_lists_keep_nothing(plugins, layer):
    layers = plugins["observer"]
    assert layers.put(b"split", layer.encode(), 5) == 0 and layers.turn(5, 1) == 100
    try:
        with nothing_kept():
            for _ in range(3):
                with contextlib.suppress(TypeError):
                    tensor().split(SIZE // 4)
    finally:
        layers.turn(5, 0)
        assert layers.take(layer == "observe") == 0


@pytest.mark.parametrize("kernel", ["exp_plus", "failing", "silent"])
def test_kernels_keep_nothing(plugins, kernel):
    kernels = plugins["kernels"]
    assert kernels.put(b"exp", kernel.encode(), 1, 4) == 0
    try:
        with nothing_kept():
            for _ in range(3):
                with contextlib.suppress(RuntimeError):
                    tensor().exp()
                    tensor().exp_()
    finally:
        assert kernels.take() == 0
