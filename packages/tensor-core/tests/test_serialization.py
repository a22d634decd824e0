"""Checkpoints: round trips, sharing, size, atomic writing, and thousands of damaged files."""

import io
import random

import numpy as np
import pytest
import taeda_tensor_core as tc
from taeda_tensor_core.serialization import CheckpointError, load, save

DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
]
DTYPES += ["float64", "complex64", "complex128"]


def round_trip(obj):
    file = io.BytesIO()
    save(obj, file)
    file.seek(0)
    return load(file)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3, 4)])
def test_every_dtype_survives(dtype, shape):
    array = (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 5).astype(dtype)
    loaded = round_trip({"x": tc.from_numpy(array)})["x"]
    assert loaded.numpy().dtype == array.dtype
    np.testing.assert_array_equal(loaded.numpy(), array)


def test_bfloat16_survives():
    x = tc.tensor([1.5, -2.0, 3.25], dtype=tc.bfloat16)
    loaded = round_trip({"x": x})["x"]
    assert loaded.dtype is tc.bfloat16
    assert loaded.tolist() == [1.5, -2.0, 3.25]


def test_nested_objects_survive():
    obj = {
        "state": {0: {"step": 3, "m": tc.ones(2)}},
        "groups": [{"lr": 0.1, "betas": (0.9, 0.999), "name": None}],
    }
    loaded = round_trip(obj)
    assert loaded["state"][0]["step"] == 3
    assert loaded["groups"][0] == {"lr": 0.1, "betas": (0.9, 0.999), "name": None}
    assert loaded["state"][0]["m"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), 1e-320, 0.1, -0.0])
def test_floats_survive_exactly(value):
    assert repr(round_trip({"v": value, "t": tc.ones(1)})["v"]) == repr(value)


def test_a_view_costs_its_visible_elements():
    file = io.BytesIO()
    save({"x": tc.zeros(1_000_000)[:10]}, file)
    assert len(file.getvalue()) < 2000


def test_tied_tensors_stay_shared():
    w = tc.ones(3, 4)
    loaded = round_trip({"a": w, "b": w})
    assert loaded["a"] is loaded["b"]


def test_other_objects_are_refused():
    with pytest.raises(TypeError, match="cannot store object"):
        save({"x": object()}, io.BytesIO())


def test_saving_to_a_path_is_atomic(tmp_path):
    path = tmp_path / "model.safetensors"
    save({"x": tc.ones(2)}, path)
    before = path.read_bytes()
    with pytest.raises(TypeError):
        save({"x": tc.ones(2), "y": object()}, path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model.safetensors"]


def test_weights_only_cannot_be_switched_off():
    with pytest.raises(ValueError, match="weights_only"):
        load(io.BytesIO(), weights_only=False)


def test_damaged_files_only_raise_checkpoint_errors():
    file = io.BytesIO()
    save({"a": tc.arange(6).reshape(2, 3), "n": {"lr": 0.5, "b": [tc.ones(4)]}}, file)
    good = file.getvalue()
    seed = 20240817
    source = random.Random(seed)
    print("seed", seed)
    damaged = 0
    for _ in range(3000):
        data = bytearray(good)
        kind = source.randrange(3)
        if kind == 0:
            data = data[: source.randrange(len(data))]
        else:
            for _ in range(source.randrange(1, 5)):
                data[source.randrange(len(data))] = source.randrange(256)
        if kind == 2:
            data += bytes(source.randrange(1, 9))
        try:
            load(io.BytesIO(bytes(data)))
        except CheckpointError:
            damaged += 1
    assert damaged > 1000
