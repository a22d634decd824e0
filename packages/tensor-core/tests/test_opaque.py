"""Opaque layouts of a device, with operators from Python: transposed matrices as bytes."""

from __future__ import annotations

import copy
import io
import pickle

import pytest

import taeda_tensor_core as taeda
from taeda_tensor_core import backends, library, opaque
from taeda_tensor_core.opaque import OpaqueTensor
from taeda_tensor_core.serialization import load, save


@pytest.fixture
def tiles():
    made = library.Library("cpu")
    define = made.operator
    operators = [
        define("cpu::pack_tiles(Tensor self) -> Tensor")(
            lambda self: self.t().contiguous().view(taeda.uint8)
        ),
        define("cpu::unpack_tiles(Tensor packed, int[] shape, DType dtype) -> Tensor")(
            lambda packed, shape, dtype: packed.view(dtype).t().contiguous()
        ),
        define("cpu::mv_tiles(Tensor self, Tensor vec) -> Tensor")(
            lambda self, vec: vec @ self.view(taeda.float32)
        ),
    ]
    yield
    for operator in operators:
        operator.remove()


@pytest.fixture
def x():
    return taeda.arange(12.0).reshape(3, 4)


def test_a_layout_goes_round(tiles, x):
    y = backends.to_layout(x, "tiles")
    assert type(y) is OpaqueTensor and y.packed.dtype is taeda.uint8 and y.packed.shape == (4, 12)
    assert (y.shape, y.dtype, y.layout, y.nbytes, y.dim(), y.device) == (
        (3, 4),
        x.dtype,
        "tiles",
        48,
        2,
        x.device,
    )
    assert y.to_dense().tolist() == x.tolist() and type(y.to_dense()) is taeda.Tensor
    assert backends.to_layout(y, "tiles") is y and backends.to_layout(y, "strided").tolist() == x.tolist()
    assert y.to(taeda.float64).tolist() == x.tolist() and "layout=tiles" in repr(y)


def test_the_device_computes_what_it_has_operators_for(tiles, x):
    y, v = backends.to_layout(x, "tiles"), taeda.tensor([1.0, -1.0, 2.0, 0.0])
    assert taeda.mv(y, v).tolist() == (x @ v).tolist() == y.mv(v).tolist()
    for call in (lambda: y + 1, lambda: y.exp(), lambda: y.sum(), lambda: taeda.cat((y, y.to_dense()))):
        with pytest.raises(NotImplementedError, match="not defined for layout 'tiles' of device 'cpu'"):
            call()


@pytest.mark.parametrize("way", ["file", "pickle", "copy"])
def test_it_is_saved_as_a_plain_tensor(tiles, x, way):
    y = backends.to_layout(x, "tiles")
    if way == "file":
        file = io.BytesIO()
        save({"y": y}, file)
        file.seek(0)
        found = load(file)["y"]
    else:
        found = pickle.loads(pickle.dumps(y)) if way == "pickle" else copy.deepcopy(y)
    assert type(found) is OpaqueTensor and found.to_dense().tolist() == x.tolist()


def test_where_the_layout_is_not_there_a_file_gives_a_plain_tensor(tiles, x, monkeypatch):
    file = io.BytesIO()
    save(backends.to_layout(x, "tiles"), file)
    file.seek(0)
    monkeypatch.setattr(opaque, "_found", lambda *asked: None)
    found = load(file)
    assert type(found) is taeda.Tensor and found.tolist() == x.tolist()


def test_what_cannot_be_is_refused(x):
    with pytest.raises(NotImplementedError, match=r"device 'cpu' has no layout 'other': .* cpu::pack_other"):
        backends.to_layout(x, "other")
    with pytest.raises(ValueError, match="argument 'layout' must be a name"):
        backends.to_layout(x, "two words")
