"""repr of tensors."""

import math
import struct

import numpy as np
import pytest

import taeda_tensor_core as taeda

NAMES = {"tensor": taeda.tensor, "taeda": taeda, "inf": math.inf, "nan": math.nan}


@pytest.fixture(autouse=True)
def default_options():
    yield
    taeda.set_printoptions(profile="default")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ([1, 2], "tensor([1, 2])"),
        ([1, -20], "tensor([  1, -20])"),
        ([1.0, 2.0], "tensor([1., 2.])"),
        ([0.5, 10], "tensor([ 0.5000, 10.0000])"),
        (3.5, "tensor(3.5000)"),
        (True, "tensor(True)"),
        ([True, False], "tensor([ True, False])"),
        ([[1, 2], [3, 4]], "tensor([[1, 2],\n        [3, 4]])"),
        ([[[1]], [[2]]], "tensor([[[1]],\n\n        [[2]]])"),
        ([1.00001, 0.99999], "tensor([1.00001, 0.99999])"),
        (1.0000001, "tensor(1.0000001)"),
        ([1e-10, 1.0], "tensor([1.0000e-10, 1.0000e+00])"),
        ([math.inf, math.nan, 1.5], "tensor([   inf,    nan, 1.5000])"),
        ([1 + 2j, 1.5 - 1j], "tensor([1.0000+2.j, 1.5000-1.j])"),
        ([], "tensor([])"),
    ],
)
def test_layout(data, text):
    assert repr(taeda.tensor(data)) == text


def test_suffixes():
    assert repr(taeda.zeros(1, dtype=taeda.float64)) == "tensor([0.], dtype=taeda.float64)"
    assert repr(taeda.zeros(0, 3)) == "tensor([], size=(0, 3))"
    assert repr(taeda.empty(2, device="meta")) == "tensor(..., device='meta', size=(2,))"
    indices = taeda.empty(2, device="meta", dtype=taeda.int64)  # whose elements say nothing of their dtype
    assert repr(indices) == "tensor(..., device='meta', size=(2,), dtype=taeda.int64)"
    assert repr(taeda.zeros(0, dtype=taeda.int64)) == "tensor([], dtype=taeda.int64)"


def test_subclass_name():
    class Special(taeda.Tensor):
        pass

    assert repr(taeda.Tensor._make_subclass(Special, taeda.ones(1))) == "Special([1.])"


def test_summary():
    text = repr(taeda.arange(10000))
    assert text == "tensor([   0,    1,    2,  ..., 9997, 9998, 9999])"
    assert repr(taeda.zeros(100, 100)).count("...") == 7
    assert len(repr(taeda.zeros(1).expand(10**9))) < 100


def test_line_width():
    assert all(len(line) <= 80 for line in repr(taeda.arange(200)).splitlines())


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_repr_reads_back_bit_for_bit(name):
    rng = np.random.default_rng(3)
    bits = {"float16": np.uint16, "bfloat16": np.uint16, "float32": np.uint32, "float64": np.uint64}[name]
    dtype = getattr(taeda, name)
    for scale in (None, 1.0, 1e-3):
        if scale is None:  # any bit pattern that is a number
            raw = rng.integers(0, np.iinfo(bits).max, size=200, dtype=bits)
            t = taeda.from_numpy(raw).view(dtype)
            t = t[taeda.isfinite(t)]
        else:
            t = taeda.tensor(rng.standard_normal(200) * scale).to(dtype)
        back = eval(repr(t), NAMES)
        integer = {2: taeda.int16, 4: taeda.int32, 8: taeda.int64}[dtype.itemsize]
        assert back.dtype is dtype and back.view(integer).tolist() == t.view(integer).tolist()


def test_repr_of_complex_and_ints_reads_back():
    rng = np.random.default_rng(4)
    for array in (
        rng.standard_normal(20) + 1j * rng.standard_normal(20),
        rng.integers(-(2**62), 2**62, 20),
        rng.random((4, 5)) < 0.5,
    ):
        t = taeda.tensor(array)
        assert np.array_equal(eval(repr(t), NAMES).numpy(), array)


def test_options():
    t = taeda.tensor([1 / 3, 2.0])
    taeda.set_printoptions(precision=2)
    assert repr(t) == "tensor([0.33, 2.00])"
    taeda.set_printoptions(sci_mode=True)
    assert repr(t) == "tensor([3.33e-01, 2.00e+00])"
    taeda.set_printoptions(profile="full", threshold=2, edgeitems=1)
    assert repr(taeda.arange(5)) == "tensor([0,  ..., 4])"
    taeda.set_printoptions(profile="short")
    with pytest.warns(UserWarning, match="'long' changes nothing"):
        taeda.set_printoptions(profile="long")  # programs name it; PyTorch has no such profile either


def test_float32_shortest():
    value = struct.unpack("f", struct.pack("f", 0.1))[0]
    assert repr(taeda.tensor(value)) == "tensor(0.1000)"


def test_a_precision_does_not_cut_small_numbers_off():
    taeda.set_printoptions(precision=3)
    assert repr(taeda.tensor([1.0, 2000.5, 0.001])) == "tensor([1.000e+00, 2.000e+03, 1.000e-03])"
    assert repr(taeda.tensor([1.5, 20.0])) == "tensor([ 1.500, 20.000])"


def test_lines_are_filled_to_their_width():
    first = repr(taeda.arange(100000, 100009)).splitlines()
    assert first == ["tensor([100000, 100001, 100002, 100003, 100004, 100005, 100006, 100007, 100008])"]


@pytest.mark.parametrize(
    "make",
    [
        lambda x: taeda.quantize_per_tensor(x, 0.5, 0, taeda.quint8),
        lambda x: taeda.masked.masked_tensor(x, taeda.ones_like(x, dtype=taeda.bool)),
        lambda x: x.to(taeda.int4),
    ],
)
def test_formatted_strings_have_the_text_of_tensors_of_other_classes(make):
    x = make(taeda.ones(2))
    assert f"<{x}>" == f"<{x!r}>"
    with pytest.raises(TypeError, match=r"'\.2f' needs a tensor of no dimension, found shape \(2,\)"):
        f"{x:.2f}"
    if x.dtype is not taeda.int4:
        assert f"{make(taeda.tensor(1.0)):.2f}" == "1.00"
