"""Formats of numbers, operators that write and kernels of composites through the C ABI."""

from __future__ import annotations

import ctypes
import io
import itertools

import numpy as np
import pytest

import taeda_tensor_core as taeda
from taeda_tensor_core import backends, library
from taeda_tensor_core.serialization import load, save

REPLACE, RECORDED = 1, 2
VALUE, RUNTIME = 2, 4
names = (f"quarters{i}" for i in itertools.count())


@pytest.fixture(scope="module")
def vendor(shared_plugin):
    path = shared_plugin("vendor")
    backends.load(path)
    opened = ctypes.CDLL(str(path))
    opened.error_text.restype = ctypes.c_char_p
    opened.times_asked.restype = ctypes.c_int64
    return opened


@pytest.fixture(scope="module")
def quarters(vendor):
    name = next(names)
    assert vendor.define(name.encode(), 8) == 0
    return getattr(taeda, name)


def test_a_format_from_c_goes_round(quarters):
    x = taeda.tensor([[0.3, -1.1], [31.8, -99.0]])
    y = x.to(quarters)
    assert y.dtype is quarters and y.element_size() == 1 and quarters.is_floating_point
    assert y.tolist() == [[0.25, -1.0], [31.75, -32.0]]
    assert y.to(taeda.float64).tolist() == y.tolist() and y.to(taeda.int32).tolist() == [[0, -1], [31, -32]]
    assert taeda.tensor([1.5, 2.0], dtype=quarters).view(taeda.uint8).tolist() == [6, 8]
    assert y.t()[1].tolist() == [-1.0, -32.0] and taeda.cat([y, y]).shape == (4, 2)
    assert f"dtype=taeda.{quarters.name}" in repr(y) and "31.75" in repr(y)
    large = taeda.arange(2000.0).sub(1000).div(40)
    assert np.abs(large.to(quarters).float().numpy() - large.numpy()).max() <= 0.125


def test_what_computes_refuses_it_by_name(quarters):
    x = taeda.ones(2, dtype=quarters)
    with pytest.raises(NotImplementedError, match=f"not implemented for dtype {quarters.name}"):
        x.sigmoid()
    with pytest.raises(RuntimeError, match=f"promotion of dtypes of plug-ins .*{quarters.name} and float32"):
        taeda.promote_types(quarters, taeda.float32)
    with pytest.raises(BufferError, match=quarters.name):
        x.__dlpack__()
    with pytest.raises(TypeError, match=f"NumPy has no {quarters.name}"):
        x.numpy()


def test_it_is_saved_and_found_again(quarters, tmp_path):
    x = taeda.tensor([0.5, -2.25]).to(quarters)
    save({"x": x, "plain": taeda.ones(1)}, tmp_path / "kept.safetensors")
    found = load(tmp_path / "kept.safetensors")
    assert found["x"].dtype is quarters and found["x"].tolist() == [0.5, -2.25]
    file = io.BytesIO()
    save({"x": x, "number": 3}, file)
    file.seek(0)
    assert load(file)["x"].tolist() == [0.5, -2.25]


def test_names_and_sizes_of_formats_are_checked(vendor, quarters):
    assert vendor.define(quarters.name.encode(), 8) == RUNTIME
    assert b"which is there already, defined by the vendor's test" in vendor.error_text()
    assert vendor.define(b"float32", 8) == RUNTIME
    assert b"defined by taeda-tensor-core" in vendor.error_text()
    for name, bits in ((b"", 8), (b"a b", 8), (b"9lives", 8), (b"wide", 9), (b"none", 0)):
        assert vendor.define(name, bits) == VALUE
    assert vendor.defined_code(quarters.name.encode()) >= 20
    assert vendor.defined_code(b"float8_e5m2") == 16 and vendor.defined_code(b"nonsense") == -1


def test_writes_of_an_operator_of_c_are_checked_and_counted(vendor):
    raise_ = taeda.ops.vendor.raise_
    x = taeda.zeros(3, dtype=taeda.float64)
    assert raise_(x, 2.0) is None and x.tolist() == [2.0] * 3 and x._version == 1
    assert library.op("vendor::raise_").arguments[0].written
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    with pytest.raises(RuntimeError, match="vendor::raise_: argument 'self' is read-only memory"):
        raise_(taeda.from_numpy(frozen))
    with pytest.raises(TypeError, match="raise_: contiguous float64 only"):
        raise_(taeda.zeros(3))


def test_a_kernel_of_a_composite_may_decline(vendor):
    flat, square = taeda.tensor([1.0, -3.0]), taeda.tensor([[1.0, -3.0]])
    assert vendor.put(b"softsign", 0) == 0
    try:
        before = vendor.times_asked()
        assert taeda.ops.softsign(flat + 0).tolist() == [3.0, -9.0]
        assert taeda.ops.softsign(square + 0).tolist() == [[0.5, -0.75]]
        assert vendor.times_asked() == before + 2
    finally:
        vendor.take()
    assert taeda.ops.softsign(flat + 0).tolist() == [0.5, -0.75]


def test_a_kernel_that_declines_where_nothing_else_computes_is_an_error(vendor):
    assert vendor.put(b"exp", REPLACE) == 0
    try:
        with pytest.raises(NotImplementedError, match="exp: the kernel has no way for these arguments"):
            taeda.exp(taeda.ones(2))
    finally:
        vendor.take()


def test_the_current_device_is_told(vendor):
    with library.Backend("passingdev", device_count=3) as backend:
        module = taeda.get_device_module("passingdev")
        module.set_device(2)
        assert vendor.current_device(backend.index) == 2
        module.set_device(0)
        assert vendor.current_device(backend.index) == 0
    assert vendor.current_device(-1) == vendor.current_device(99) == 0
