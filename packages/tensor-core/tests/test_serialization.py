"""Checkpoints: round trips, sharing, size, atomic writing, and thousands of damaged files."""

import enum
import io
import json
import random
from collections import OrderedDict

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


def round_trip(obj, format="safetensors"):
    file = io.BytesIO()
    save(obj, file, format=format)
    file.seek(0)
    return load(file)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3, 4)])
def test_every_dtype_survives(dtype, shape):
    array = np.asarray(np.arange(np.prod(shape, dtype=int)).reshape(shape) % 5, dtype)
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


class Colour(enum.IntEnum):
    RED = 3


class Name(str):
    """A string of a class of its own."""


@pytest.mark.parametrize("value", [Colour.RED, Name("a"), tc.sparse_csr, tc.channels_last], ids=repr)
def test_numbers_and_strings_keep_their_class(value):
    for obj in ({"t": tc.ones(1), "v": value}, {"t": tc.ones(1), value: 1}):
        file = io.BytesIO()
        save(obj, file)
        file.seek(0)
        found = [x for x in (*load(file, weights_only=False).items(),) if x[0] != "t"][0]
        item = found[1] if "v" in obj else found[0]
        assert type(item) is type(value)
        assert item == value


def test_layouts_and_orders_are_data():
    loaded = round_trip({"layout": tc.sparse_coo, "order": tc.channels_last_3d}, "torch")
    assert loaded["layout"] is tc.sparse_coo
    assert loaded["order"] is tc.channels_last_3d


def test_a_view_costs_its_visible_elements():
    file = io.BytesIO()
    save({"x": tc.zeros(1_000_000)[:10]}, file, format="safetensors")
    assert len(file.getvalue()) < 2000


def test_tied_tensors_stay_shared():
    w = tc.ones(3, 4)
    loaded = round_trip({"a": w, "b": w})
    assert loaded["a"] is loaded["b"]


def test_other_objects_are_refused():
    with pytest.raises(TypeError, match="cannot store object"):
        save({"x": object()}, io.BytesIO(), format="safetensors")


def test_saving_to_a_path_is_atomic(tmp_path):
    path = tmp_path / "model.safetensors"
    save({"x": tc.ones(2)}, path)
    before = path.read_bytes()
    with pytest.raises(TypeError):
        save({"x": tc.ones(2), "y": object()}, path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model.safetensors"]


def test_saving_keeps_permissions(tmp_path):
    path = tmp_path / "model.safetensors"
    save({"x": tc.ones(2)}, path)
    path.chmod(0o640)
    save({"x": tc.zeros(2)}, path)
    assert path.stat().st_mode & 0o777 == 0o640
    assert load(path)["x"].tolist() == [0.0, 0.0]


def test_views_share_memory_again():
    base = tc.arange(12.0).reshape(3, 4)
    file = io.BytesIO()
    save({"base": base, "row": base[1], "turned": base.t(), "other": tc.ones(2)}, file, format="safetensors")
    assert len(file.getvalue()) < 12 * 4 + 600
    file.seek(0)
    loaded = load(file)
    loaded["base"][1, 2] = 50
    assert loaded["row"].tolist() == [4.0, 5.0, 50.0, 7.0]
    assert loaded["turned"][2, 1].item() == 50.0
    assert loaded["other"].tolist() == [1.0, 1.0]


def test_views_without_a_common_base_share_what_they_have_in_common():
    base = tc.arange(100_000)
    loaded = round_trip([base[10:15], base[13:17], base[50:52]])
    loaded[0][3] = -1
    assert [t.tolist() for t in loaded] == [[10, 11, 12, -1, 14], [-1, 14, 15, 16], [50, 51]]


def test_interleaved_views_are_stored_apart():
    file = io.BytesIO()
    both = tc.arange(20_000).reshape(10_000, 2)
    save({"even": both[:, 0]}, file, format="safetensors")
    assert len(file.getvalue()) < 81_000
    loaded = round_trip({"even": both[:, 0], "odd": both[:, 1]})
    loaded["even"][0] = 7
    assert loaded["odd"][:2].tolist() == [1, 3]


def test_plain_dicts_are_plain_safetensors():
    file = io.BytesIO()
    save({"a": tc.ones(2), "b.c": tc.zeros(1, dtype=tc.int64)}, file, format="safetensors")
    data = file.getvalue()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    assert header == {
        "a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
        "b.c": {"dtype": "I64", "shape": [1], "data_offsets": [8, 16]},
    }
    assert data[8 + size :] == np.ones(2, np.float32).tobytes() + bytes(8)


def test_state_dicts_keep_their_class_and_versions():
    state = OrderedDict(b=tc.ones(2), a=OrderedDict({1: None}))
    state._metadata = OrderedDict({"": {"version": 2}, "inner": {}})
    loaded = round_trip({"model": state, "plain": {}}, "torch")
    assert type(loaded["plain"]) is dict
    assert type(loaded["model"]) is type(loaded["model"]["a"]) is OrderedDict
    assert list(loaded["model"]) == ["b", "a"] and loaded["model"]["b"].tolist() == [1.0, 1.0]
    assert loaded["model"]._metadata == state._metadata and not hasattr(loaded["model"]["a"], "_metadata")
    state.more = 1
    assert round_trip(state, "torch").more == 1


def test_ordered_dicts_of_older_files_are_read():
    """Files of safetensors once kept the class and the versions of state dicts."""
    versions = {"ordered": [[["", {"dict": [["version", {"value": 2}]]}]], {"value": None}]}
    structure = {"ordered": [[["b", {"tensor": "a"}], [1, {"value": None}]], versions]}
    loaded = load(file_of(described(structure, a=entry()), np.ones(1, "<f4").tobytes()))
    assert type(loaded) is OrderedDict
    assert list(loaded) == ["b", 1]
    assert loaded["b"].tolist() == [1]
    assert loaded._metadata == OrderedDict({"": {"version": 2}})


def test_state_dicts_are_plain_safetensors_where_these_are_asked_for():
    state = OrderedDict(a=tc.ones(1))
    state._metadata = OrderedDict({"": {"version": 2}})
    plain, asked = io.BytesIO(), io.BytesIO()
    save({"a": tc.ones(1)}, plain, format="safetensors")
    save(state, asked, format="safetensors")
    assert asked.getvalue() == plain.getvalue()


def file_of(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return io.BytesIO(len(text).to_bytes(8, "little") + text + data)


def entry(dtype="F32", shape=(1,), offsets=(0, 4)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def described(structure, **tensors):
    return {"__metadata__": {"taeda.structure": json.dumps(structure)}, **tensors}


MALFORMED = {
    "at least 8 bytes": io.BytesIO(b"abc"),
    "claims 100 bytes": io.BytesIO((100).to_bytes(8, "little") + b"{}"),
    "no JSON text": file_of(b"{'a'}"),
    "no JSON object": file_of([]),
    "repeats a name": file_of(b'{"a": 1, "a": 2}'),
    "must have dtype": file_of({"a": {"dtype": "F32"}}),
    "unknown dtype": file_of({"a": entry("F13")}, bytes(4)),
    "expected a list of sizes": file_of({"a": entry(shape=(-1,))}, bytes(4)),
    "expected .begin, end.": file_of({"a": entry(offsets=(0, 4.0))}, bytes(4)),
    "needs 8 bytes": file_of({"a": entry(shape=(2,))}, bytes(4)),
    "range 0 to 4 of 3": file_of({"a": entry()}, bytes(3)),
    "neither overlap nor leave gaps": file_of({"a": entry(), "b": entry()}, bytes(4)),
    "expected 0: ranges": file_of({"a": entry(offsets=(4, 8))}, bytes(8)),
    "4 bytes after the last": file_of({"a": entry()}, bytes(8)),
    "byte 0 or 1": file_of({"a": entry("BOOL", offsets=(0, 1))}, b"\x02"),
    "map names to strings": file_of({"__metadata__": {"a": 1}}),
    "malformed part 'tensor'": file_of(described({"tensor": "b"}, a=entry()), bytes(4)),
    "malformed part 'code'": file_of(described({"code": "1"})),
    "malformed number": file_of(described({"float": "x"})),
    "nested too deeply": file_of({"__metadata__": {"taeda.structure": '{"list":[' * 20_000 + "]}" * 20_000}}),
    "repeats the key 1": file_of(described({"dict": [[1, {"value": 1}], [1, {"value": 1}]]})),
    "malformed part 'ordered'": file_of(described({"ordered": [[]]})),
    "a dict in the structure must be": file_of(described({"ordered": [[1], {"value": None}]})),
    "reaches from element 0 to 1": file_of(described({"view": ["a", 0, [2], [1]]}, a=entry()), bytes(4)),
    "reaches from element -1": file_of(described({"view": ["a", 0, [2], [-1]]}, a=entry()), bytes(4)),
    "expected ints": file_of(described({"view": ["a", 0, [1], [0.5]]}, a=entry()), bytes(4)),
}  # fmt: skip


@pytest.mark.parametrize("text", MALFORMED)
def test_malformed_files_are_refused_with_the_reason(text):
    file = MALFORMED[text]
    file.seek(0)
    with pytest.raises(
        CheckpointError, match=text if "deeply" not in text else "nested too deeply|no JSON text"
    ):
        load(file)


def test_bare_pickles_are_refused():
    with pytest.raises(CheckpointError, match="bare pickle, but none"):
        load(io.BytesIO(b"\x80\x02}q\x00.\x80\x02N." + bytes(20)))


def test_device_is_checked_before_reading():
    with pytest.raises(Exception, match="nowhere"):
        load(io.BytesIO(b""), map_location="nowhere")


def test_loading_to_a_device_keeps_sharing():
    w = tc.ones(2)
    file = io.BytesIO()
    save({"a": w, "b": (w, [w])}, file)
    file.seek(0)
    loaded = load(file, map_location="cpu")
    assert loaded["a"] is loaded["b"][0] is loaded["b"][1][0]


@pytest.mark.parametrize("form", ["torch", "older", "safetensors"])
def test_damaged_files_only_raise_checkpoint_errors(form):
    file = io.BytesIO()
    asked = {"_use_new_zipfile_serialization": False} if form == "older" else {"format": form}
    save({"a": tc.arange(6).reshape(2, 3), "n": {"lr": 0.5, "b": [tc.ones(4)]}}, file, **asked)
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
