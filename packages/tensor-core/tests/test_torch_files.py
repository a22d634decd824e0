"""PyTorch's zip format, written and read here: sharing, strides, whole objects, declared classes, shards, mapping."""

import collections
import copy
import fractions
import io
import json
import mmap
import pickle
import re
import subprocess
import sys
import types
import zipfile

import numpy as np
import pytest

import taeda_tensor_core as tc
from taeda_tensor_core import serialization
from taeda_tensor_core.checkpoint import write_torch
from taeda_tensor_core.serialization import CheckpointError, load, save, save_sharded

DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 complex128"


def written(obj, **options):
    file = io.BytesIO()
    save(obj, file, format="torch", **options)
    file.seek(0)
    return file


@pytest.mark.parametrize("dtype", DTYPES.split())
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3, 4)])
def test_every_dtype_survives(dtype, shape):
    x = (tc.arange(int(np.prod(shape))).reshape(shape) % 2).to(getattr(tc, dtype))
    loaded = load(written({"x": x}))["x"]
    assert (loaded.dtype, tuple(loaded.shape)) == (x.dtype, shape)
    assert loaded.tolist() == x.tolist()


def test_sharing_strides_and_offsets_survive():
    base = tc.arange(12.0).reshape(3, 4)
    obj = [base, base.t(), base[1:, ::2], base.view(tc.int32), base.expand(2, 3, 4), base.flip(0), tc.ones(2)]
    loaded = load(written(obj))
    for mine, theirs in zip(loaded, obj, strict=True):
        assert tuple(mine.stride()) == tuple(theirs.stride())
        assert mine.storage_offset() == theirs.storage_offset()
        assert mine.tolist() == theirs.tolist()
    loaded[0][1, 2] = 50
    assert (loaded[1][2, 1], loaded[2][0, 1], loaded[4][1, 1, 2]) == (50, 50, 50)
    assert loaded[3][1, 2] == loaded[0].view(tc.int32)[1, 2]
    assert loaded[5][1, 2] == 6


def test_steps_that_go_back_become_copies():
    x = tc.from_numpy(np.arange(6.0)[::-1])
    assert load(written(x)).tolist() == x.tolist()


def test_one_object_stays_one():
    w = tc.ones(2)
    both = [w]
    loaded = load(written([both, both, w]))
    assert loaded[0] is loaded[1]
    assert loaded[0][0] is loaded[2]


def test_containers_and_values():
    obj = {
        "ordered": collections.OrderedDict(b=1, a=2), "counter": collections.Counter("aab"), "set": {1, "x"},
        "tuple": (1, 2.5, None, True, 1j, 2**70), 3: [float("inf"), b"\0\xff", bytearray(b"x")], (1, "k"): "é",
        "dtype": tc.bfloat16, "size": tc.Size([2, 3]), "device": tc.device("cpu"), "empty": [b"", (), {}, []],
        "qscheme": [tc.per_tensor_affine, tc.per_channel_symmetric],
    }  # fmt: skip
    loaded = load(written(obj))
    assert loaded == obj
    assert list(loaded["ordered"]) == ["b", "a"]
    assert {key: type(value) for key, value in loaded.items()} == {
        key: type(value) for key, value in obj.items()
    }


def test_tensors_without_memory():
    loaded = load(written(tc.empty((2, 3), dtype=tc.float16, device="meta")))
    assert (loaded.device.type, tuple(loaded.shape), loaded.dtype) == ("meta", (2, 3), tc.float16)


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        *(("m.pt", "m"), ("m.pth.tar", "m.pth"), ("m", "m"), ("m.", "m"), ("m.npz", "m"), ("a b.x/m", "m")),
        *((".m", "m"), ("mü.pt", "archive")),
    ],
)
def test_archives_are_written_whatever_the_name_and_have_it_inside(tmp_path, name, folder):
    (tmp_path / "a b.x").mkdir()
    save({"x": tc.ones(2)}, tmp_path / name)
    with zipfile.ZipFile(tmp_path / name) as file:
        names = file.namelist()
        identity = file.read(f"{folder}/.data/serialization_id")
    assert names[0] == f"{folder}/data.pkl"
    assert all(entry.startswith(folder + "/") for entry in names)
    assert re.fullmatch(rb"\d{40}", identity)
    assert load(tmp_path / name)["x"].tolist() == [1, 1]
    save({"x": tc.ones(2)}, tmp_path / name, format="safetensors")
    assert not zipfile.is_zipfile(tmp_path / name)
    assert load(tmp_path / name)["x"].tolist() == [1, 1]


def test_equal_content_has_one_identity_and_other_content_another():
    def identity(obj):
        with zipfile.ZipFile(written(obj)) as file:
            return file.read("archive/.data/serialization_id")

    assert identity({"x": tc.ones(2)}) == identity({"x": tc.ones(2)})
    assert len({identity({"x": tc.ones(2)}), identity({"x": tc.zeros(2)}), identity({"y": tc.ones(2)})}) == 3


@pytest.mark.parametrize("weights_only", [True, False])
def test_the_older_form_is_written_where_it_is_asked_for(weights_only):
    base = tc.arange(10.0)
    data = written([base, base[3:5], {"h": tc.ones(2, dtype=tc.bfloat16)}, tc.ones(3, dtype=tc.uint16), "text"],
                   _use_new_zipfile_serialization=False)  # fmt: skip
    assert pickle.load(data) == 0x1950A86A20F9469CFC6C
    assert pickle.load(data) == 1001
    assert pickle.load(data)["little_endian"] is True
    data.seek(0)
    loaded = load(data, weights_only=weights_only)
    assert loaded[0].equal(base)
    assert loaded[2]["h"].equal(tc.ones(2, dtype=tc.bfloat16))
    assert loaded[3].equal(tc.ones(3, dtype=tc.uint16))
    assert loaded[4] == "text"
    loaded[0][4] = -1
    assert loaded[1].tolist() == [3, -1]
    with pytest.raises(ValueError, match="older form"):
        save(base, io.BytesIO(), None, 2, False, format="safetensors")


def test_the_archive_is_a_plain_zip_file_with_aligned_entries():
    data = written([tc.arange(100), tc.ones(3, dtype=tc.int8)]).getvalue()
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        assert file.testzip() is None
        assert file.read("archive/data/0") == np.arange(100).tobytes()
    assert data.index(np.arange(100).tobytes()) % 64 == 0


def test_large_archives_have_wide_numbers(monkeypatch):
    expected = load(written({"x": tc.arange(300)}))["x"]
    monkeypatch.setattr(write_torch, "_FULL", 200)
    parts = b"".join(write_torch.zipped({f"data/{i}": bytes(i * 50) for i in range(6)}))
    monkeypatch.undo()
    # The short fields hold a number below the mark here, so only this reader's own look at the wide ones is tested.
    assert b"PK\6\6" in parts
    assert b"PK\6\7" in parts
    assert expected.tolist() == list(range(300))


class Thing:
    """What a program defines for itself."""

    def __init__(self, value):
        self.value = value


class Slotted:
    """With slots instead of a dict."""

    __slots__ = ("value",)


def test_whole_objects_go_to_pytorchs_format_and_load_when_asked_for():
    file = io.BytesIO()
    save({"thing": Thing(tc.ones(2)), "array": np.arange(3)}, file)
    file.seek(0)
    with pytest.raises(CheckpointError, match=r"Thing.*add_safe_globals.*weights_only=False"):
        load(file)
    file.seek(0)
    loaded = load(file, weights_only=False)
    assert loaded["thing"].value.tolist() == [1, 1]
    assert loaded["array"].tolist() == [0, 1, 2]


def test_names_that_a_file_needs_declared():
    file = written([Thing([tc.ones(2)]), Slotted(), tc.zeros(1), Thing([])])
    needed = serialization.get_unsafe_globals_in_checkpoint
    names = [f"{cls.__module__}.{cls.__qualname__}" for cls in (Thing, Slotted)]
    assert needed(file) == names
    with serialization.safe_globals([Thing]):
        assert needed(file) == names[1:]
    with pytest.raises(ValueError, match="expected a file that save wrote as an archive"):
        needed(io.BytesIO(b"no archive"))


def test_declared_classes_load_without_running_others():
    thing, slotted = Thing([tc.ones(2)]), Slotted()
    slotted.value = 3
    file = written([thing, slotted])
    with serialization.safe_globals([Thing, Slotted]):
        assert set(serialization.get_safe_globals()) >= {Thing, Slotted}
        loaded = load(file)
    assert loaded[0].value[0].tolist() == [1, 1]
    assert loaded[1].value == 3
    file.seek(0)
    with pytest.raises(CheckpointError, match="Thing"):
        load(file)
    with pytest.raises(TypeError, match="expected"):
        serialization.add_safe_globals([(Thing, 3)])
    with serialization.safe_globals([thing]):  # an object allows nothing
        assert thing in serialization.get_safe_globals()
        file.seek(0)
        with pytest.raises(CheckpointError, match="Thing"):
            load(file)
    assert thing not in serialization.get_safe_globals()


def test_declared_classes_and_functions_are_read_themselves():
    file = written({"kind": Thing, "how": [written], Thing: 1})
    with serialization.safe_globals([Thing, written]):
        loaded = load(file)
    assert loaded == {"kind": Thing, "how": [written], Thing: 1}
    file.seek(0)
    with serialization.safe_globals([Thing]), pytest.raises(CheckpointError, match="written"):
        load(file)


def test_declared_functions_are_called_by_the_name_that_files_have():
    data = b"\x80\x02csomewhere\nsquare\nK\x07\x85R."
    file = io.BytesIO(b"".join(write_torch.zipped({"data.pkl": data})))
    with serialization.safe_globals([(lambda x: x * x, "somewhere.square")]):
        assert load(file) == 49


def test_functions_of_pytorchs_compiled_parts_are_found():
    """Modules keep them as attributes: `nn.functional.gelu` is one of `torch._C._nn`."""
    for home in (b"torch._C._nn", b"torch._C"):
        data = b"\x80\x02c" + home + (b"\ngelu\n." if home.endswith(b"nn") else b"\n_nn.gelu\n.")
        file = io.BytesIO(b"".join(write_torch.zipped({"data.pkl": data})))
        assert load(file, weights_only=False)(tc.zeros(1)).tolist() == [0]


def test_what_cannot_be_saved_leaves_the_old_file(tmp_path):
    path = tmp_path / "m.pt"
    save({"x": tc.ones(1)}, path)
    before = path.read_bytes()
    for obj in ({"x": (lambda: 1)}, {"x": open(path, "rb")}):  # noqa: SIM115
        with pytest.raises((TypeError, AttributeError, pickle.PicklingError)):
            save(obj, path)
        assert path.read_bytes() == before
    obj["x"].close()
    with pytest.raises(TypeError, match="cannot store Thing"):
        save({"x": Thing(1)}, tmp_path / "m.safetensors")
    with pytest.raises(ValueError, match="format"):
        save({}, path, format="hdf5")
    assert [p.name for p in tmp_path.iterdir()] == ["m.pt"]


@pytest.mark.parametrize("format", ["safetensors", "torch"])
def test_nesting_without_end_is_an_error(format):
    value = []
    value.append(value)
    if format == "torch":
        deep = []
        for _ in range(100_000):
            deep = [deep]
    else:
        deep = value
    with pytest.raises(ValueError, match="nested"):
        save(deep, io.BytesIO(), format=format)


@pytest.mark.parametrize("weights_only", [True, False])
def test_containers_that_contain_themselves(weights_only):
    value = {"x": tc.ones(2), "list": [1]}
    value["self"] = value
    value["list"].append(value["list"])
    file = io.BytesIO()
    save(value, file)
    file.seek(0)
    found = load(file, weights_only=weights_only)
    assert found["self"] is found and found["list"][1] is found["list"] and found["x"].tolist() == [1, 1]


def test_tensors_with_attributes_and_of_subclasses():
    class_ = type("Marked", (tc.Tensor,), {})
    globals()["Marked"] = class_
    class_.__module__, class_.__qualname__ = __name__, "Marked"
    x = tc.ones(2)
    x.note = "n"
    assert load(written(x)).note == "n"
    file = io.BytesIO()
    save({"x": x, "plain": tc.zeros(1)}, file)  # in the format that keeps it
    file.seek(0)
    assert load(file)["x"].note == "n"
    marked = tc.Tensor._make_subclass(class_, tc.ones(3), False)
    with pytest.raises(CheckpointError, match="Marked"):
        load(written(marked))
    loaded = load(written(marked), weights_only=False)
    assert type(loaded) is class_
    assert loaded.tolist() == [1, 1, 1]


class Unbuffered(io.RawIOBase):
    """A file that gives few bytes at once and cannot go back."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def readable(self):
        return True

    def readinto(self, target):
        part = self.data[self.at : self.at + min(len(target), 1000)]
        target[: len(part)] = part
        self.at += len(part)
        return len(part)


@pytest.mark.parametrize("format", ["safetensors", "torch"])
def test_files_of_every_kind(tmp_path, format):
    obj = {"x": tc.arange(5000), "n": [1]}
    file = io.BytesIO()
    save(obj, file, format=format)
    data = file.getvalue()
    (tmp_path / "plain").write_bytes(data)
    assert load(Unbuffered(data))["x"].equal(obj["x"])
    later = io.BytesIO(b"before" + data)
    later.seek(6)
    assert load(later)["x"].equal(obj["x"])
    assert later.tell() == 6 + len(data)
    with open(tmp_path / "plain", "rb", buffering=0) as raw:
        assert load(raw)["x"].equal(obj["x"])
    with pytest.raises(TypeError, match="binary"):
        load(io.StringIO("x"))
    mapped = load(tmp_path / "plain", mmap=True)
    mapped["x"][0] = 9
    assert load(tmp_path / "plain")["x"].equal(obj["x"])
    assert mapped["x"][1:].equal(obj["x"][1:])


@pytest.mark.parametrize("name", ["shared.pt", "shared.safetensors"])
def test_what_is_written_to_mapped_tensors_goes_to_the_file_where_that_is_asked_for(tmp_path, name):
    place = tmp_path / name
    save({"x": tc.arange(100.0)}, place)
    with tc.serialization.set_default_mmap_options(mmap.MAP_SHARED):
        load(place, mmap=True)["x"][3] = -1
        load(place)["x"][4] = -1
    load(place, mmap=True)["x"][5] = -1
    assert load(place)["x"][:6].tolist() == [0, 1, 2, -1, 4, 5]
    with pytest.raises(ValueError, match=r"'flags' must be .* or .*MAP_SHARED, found 7"):
        tc.serialization.set_default_mmap_options(7)


def test_map_location_may_be_a_function():
    seen = []
    load(
        written([tc.ones(2), tc.zeros(3)]),
        map_location=lambda memory, place: seen.append((memory.numel(), place)),
    )
    assert sorted(seen) == [(8, "cpu"), (12, "cpu")]
    with pytest.raises(TypeError, match="map_location"):
        load(written(tc.ones(2)), map_location=lambda memory, place: 3)


def test_shards(tmp_path):
    tied = tc.arange(100.0)
    state = {f"layer{i}.weight": tc.full((10, 10), float(i)) for i in range(5)}
    state |= {"tied.a": tied, "big": tc.zeros(1000), "tied.b": tied.reshape(10, 10)}
    path = tmp_path / "model.safetensors.index.json"
    save_sharded(state, path, 1000)
    index = json.loads(path.read_text())
    assert index["metadata"]["total_size"] == sum(t.numel() * 4 for t in state.values()) - 400
    assert index["weight_map"]["tied.a"] == index["weight_map"]["tied.b"]
    assert sorted(p.name for p in tmp_path.iterdir())[0] == "model-00001-of-00005.safetensors"
    loaded = load(path)
    assert sorted(loaded) == sorted(state)
    for name, value in state.items():
        assert loaded[name].equal(value)
    loaded["tied.a"][0] = 7
    assert loaded["tied.b"][0, 0] == 7
    with pytest.raises(TypeError, match="tensors by name"):
        save_sharded({"x": 3}, path)


@pytest.mark.parametrize(
    ("index", "text"),
    [
        ({}, "no weight_map"),
        ({"weight_map": {"a": 3}}, "no weight_map"),
        ({"weight_map": {"a": "../outside"}}, "not beside it"),
        ({"weight_map": {"b": "one.safetensors"}}, "which lacks it"),
    ],
)
def test_wrong_indexes(tmp_path, index, text):
    save({"a": tc.ones(1)}, tmp_path / "one.safetensors")
    (tmp_path / "x.index.json").write_text(json.dumps(index))
    with pytest.raises(CheckpointError, match=text):
        load(tmp_path / "x.index.json")


def test_pickles_and_copies_of_small_things():
    generator = tc.Generator().manual_seed(3)
    for value in (
        tc.float32,
        tc.bfloat16,
        tc.device("cpu"),
        tc.Size([2, 3]),
        tc.contiguous_format,
        tc.channels_last,
    ):
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            again = pickle.loads(pickle.dumps(value, protocol))
            assert again == value
            assert type(again) is type(value)
        assert copy.deepcopy(value) == copy.copy(value) == value
    again = pickle.loads(pickle.dumps(generator))
    assert again.get_state().equal(generator.get_state())


def test_files_under_strict_bytes(tmp_path):
    """With ``-bb`` a comparison of text with bytes is an error; formats of `struct` are remembered for all modules."""
    program = f"""
import io, struct, zipfile
import taeda_tensor_core as tc
for form in ("<HH", "<2H", "<HHQQ", "<5H3L", "<5H2L", "<4s4H2LH", "<2sH", "<Q"):
    struct.calcsize(form.encode())
for format in ("torch", "safetensors"):
    path = {str(tmp_path / "file")!r}
    tc.save({{"a": tc.ones(2), "b": [1.5, 2]}}, path, format=format)
    assert tc.load(path)["b"] == [1.5, 2]
"""
    ended = subprocess.run([sys.executable, "-bb", "-c", program], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("weights_only", [True, False])
def test_storages_by_themselves(weights_only):
    x, y = tc.arange(6.0), tc.arange(3)
    obj = {"x": x[1:3], "typed": x.storage(), "none": tc.FloatStorage(), "untyped": [y.untyped_storage()]}
    loaded = load(written(obj), weights_only=weights_only)
    loaded["x"].fill_(9)
    assert loaded["typed"].dtype is tc.float32
    assert loaded["typed"].tolist() == [0, 9, 9, 3, 4, 5]  # the memory that the tensor shows
    assert loaded["none"].tolist() == []
    assert isinstance(loaded["untyped"][0], tc.UntypedStorage)
    assert loaded["untyped"][0].tolist() == y.untyped_storage().tolist()


def legacy_parts(count):
    """A file as PyTorch 0.3 wrote it, of the part of a storage of four numbers from the second on."""
    kind = write_torch._Global("torch", "FloatStorage")
    reference = write_torch._Reference(kind, "7", "cpu", 4)
    reference.id += (("8", 1, count),)
    file = io.BytesIO()
    for obj in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}, [reference, reference], ["7"]):
        write_torch.Pickler(file, 2).dump(obj)
    file.write((4).to_bytes(8, "little") + np.arange(4, dtype="<f4").tobytes())
    file.seek(0)
    return file


@pytest.mark.parametrize("weights_only", [True, False])
def test_parts_of_storages_in_old_files(weights_only):
    one, other = load(legacy_parts(2), weights_only=weights_only)
    one[0] = 5
    assert (one.tolist(), other.tolist()) == ([5, 2], [5, 2])
    with pytest.raises(CheckpointError, match="elements 1 to 5 of a storage of 4"):
        load(legacy_parts(4), weights_only=weights_only)


@pytest.mark.parametrize("weights_only", [True, False])
def test_old_files_one_after_another(weights_only):
    file = io.BytesIO(b"first" + legacy_parts(2).read() + legacy_parts(3).read() + b"last")
    assert file.read(5) == b"first"
    assert load(file, weights_only=weights_only)[0].tolist() == [1, 2]
    assert load(file, weights_only=weights_only)[0].tolist() == [1, 2, 3]
    assert file.read() == b"last"


def test_slices_of_typed_storages_are_refused():
    x = tc.arange(4.0)
    assert x.untyped_storage()[4:8].tolist() == [0, 0, 128, 63]
    with pytest.raises(RuntimeError, match="only an UntypedStorage has slices"):
        x.storage()[1:3]
    with pytest.raises(RuntimeError, match="of step 1"):
        x.untyped_storage()[::2]


OLD_TEXT = (  # [text, zeros(1), 2], as Python 2 and PyTorch 0.4 wrote it
    b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}U\rlittle_endian\x88s."
    b"\x80\x02](U\x04\xc5\xbc\xc4\x85ctorch._utils\n_rebuild_tensor_v2\n((U\x07storagectorch\nFloatStorage\n"
    b"U\x014U\x03cpuK\x01NtQK\x00K\x01\x85K\x01\x85\x89NtRK\x02e.\x80\x02]U\x014a."
    + (1).to_bytes(8, "little") + bytes(4)
)  # fmt: skip


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("encoding", ["utf-8", "latin1", "bytes"])
def test_encodings_of_old_text(weights_only, encoding):
    text, zeros, two = load(io.BytesIO(OLD_TEXT), weights_only=weights_only, encoding=encoding)
    data = b"\xc5\xbc\xc4\x85"
    assert text == (data if encoding == "bytes" else data.decode(encoding))
    assert (zeros.tolist(), two) == ([0], 2)


def test_text_that_is_not_of_the_encoding():
    with pytest.raises(CheckpointError, match="ascii"):
        load(io.BytesIO(OLD_TEXT), encoding="ascii")


def test_errors_of_files_and_of_places():
    file = io.BytesIO()
    save({"a": tc.arange(1000.0)}, file)
    for wrong in (b"", b"PK\3\4", file.getvalue()[:500], b"hello world" * 20):
        for kind in (RuntimeError, ValueError, pickle.UnpicklingError):
            with pytest.raises(kind, match="load: "):
                load(io.BytesIO(wrong))
    with pytest.raises(EOFError):
        load(io.BytesIO())
    with pytest.raises(RuntimeError, match=r"^device: unknown device 'nowhere'"):
        load(io.BytesIO(file.getvalue()), map_location=tc.device("nowhere"))


def test_storages_convert_their_elements():
    memory = tc.tensor([1.5, 2.0]).untyped_storage()
    assert memory.byte().tolist() == memory.tolist() == memory.float().tolist()
    assert memory.int().dtype is tc.int32 and tc.tensor([1.5]).storage().float8_e5m2().tolist() == [1.5]
    twin = copy.copy(memory)
    assert twin.tolist() == memory.tolist() and twin.data_ptr() != memory.data_ptr()
    assert memory.resizable()
    made = tc.ones(1).new_tensor([1, 2], layout=tc.strided, pin_memory=False)
    assert made.dtype is tc.float32
    with pytest.raises(RuntimeError, match="argument 'layout'"):
        tc.ones(1).new_tensor([1, 2], layout=tc.sparse_coo)


class Doubling(pickle.Pickler):
    """A pickler on the compiled one, as cloudpickle's: functions by what they do."""

    def reducer_override(self, obj):
        return (Doubling.make, (2,)) if getattr(obj, "__name__", "") == "<lambda>" else NotImplemented

    @staticmethod
    def make(factor):
        return lambda x: x * factor


class Written(pickle._Pickler):
    """A pickler written in Python, as dill's."""

    dispatch = dict(pickle._Pickler.dispatch)

    def save_function(self, obj):
        if obj.__name__ == "<lambda>":
            return self.save_reduce(Doubling.make, (2,), obj=obj)
        return self.save_global(obj)

    dispatch[type(written)] = save_function


@pytest.mark.parametrize("pickler", [Doubling, Written])
def test_another_module_pickles_what_the_standard_one_cannot(pickler):
    module = types.ModuleType("picklers")
    module.Pickler = pickler
    x = tc.arange(3.0)
    file = written({"f": lambda x: x * 2, "x": x, "part": x[1:], "class": tc.Tensor}, pickle_module=module)
    loaded = load(file, weights_only=False)
    assert loaded["f"](21) == 42 and loaded["class"] is tc.Tensor
    loaded["x"][2] = 5
    assert loaded["part"].tolist() == [1, 5]
    plain = written({"x": x}, pickle_module=module)
    assert load(plain)["x"].tolist() == [0, 1, 2]  # nothing in it but names of PyTorch's


CHANGED = """
import io, pickle

def refuse(self, obj):
    raise RecursionError

pickle._Pickler.dispatch.update(dict.fromkeys([type, type(refuse), dict], refuse))  # as dill does on import
import taeda_tensor_core as tc
from taeda_tensor_core.serialization import load, save

file = io.BytesIO()
save({"class": tc.Tensor, "function": pickle.dumps, "x": tc.ones(2)}, file, format="torch")
file.seek(0)
print(load(file, weights_only=False)["x"].tolist())
"""


def test_what_others_make_of_the_standard_pickler_changes_nothing():
    out = subprocess.run([sys.executable, "-c", CHANGED], capture_output=True, text=True, check=False)
    assert out.stdout == "[1.0, 1.0]\n", out.stderr


@pytest.mark.parametrize("name", ["dill", "cloudpickle"])
def test_libraries_that_pickle_functions(name):
    module, shift = pytest.importorskip(name), 3
    loaded = load(written([lambda x: x + shift, tc.ones(2)], pickle_module=module), weights_only=False)
    assert loaded[0](loaded[1]).tolist() == [4, 4]


def test_a_pickle_module_must_have_a_pickler():
    with pytest.raises(TypeError, match="argument 'pickle_module' has no class Pickler"):
        written({}, pickle_module=json)


def test_who_names_a_pickle_module_asks_for_whole_objects(monkeypatch):
    content = {"class": fractions.Fraction(1, 3), "x": tc.ones(2)}
    with pytest.raises(CheckpointError, match="Fraction"):
        load(written(content))
    assert load(written(content), None, pickle)["class"] == fractions.Fraction(1, 3)
    with pytest.raises(CheckpointError, match="Fraction"):
        load(written(content), weights_only=True)
    with pytest.raises(RuntimeError, match="argument 'pickle_module' must be None"):
        load(written(content), None, pickle, weights_only=True)
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.warns(UserWarning, match="lets files run code"):
        assert load(written(content))["class"] == fractions.Fraction(1, 3)
    with pytest.raises(CheckpointError, match="Fraction"):
        load(written(content), weights_only=True)
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "true")
    with pytest.raises(RuntimeError, match="sets both"):
        load(written(content))
    monkeypatch.delenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    with pytest.raises(CheckpointError, match="Fraction"):
        load(written(content), weights_only=False)


def test_files_without_numbers_have_room_for_them(tmp_path):
    content = {"x": tc.arange(6.0).reshape(2, 3).t(), "y": tc.ones(1000, dtype=tc.int16)}
    with serialization.skip_data():
        save(content, tmp_path / "shapes.pt")
        with serialization.skip_data(), pytest.raises(RuntimeError, match="_use_new_zipfile_serialization"):
            written(content, _use_new_zipfile_serialization=False)
        with pytest.raises(RuntimeError, match="skip_data"):
            save(content, tmp_path / "shapes.safetensors")
    assert not (tmp_path / "shapes.safetensors").exists()
    save(content, tmp_path / "whole.pt")
    sizes = [{i.filename.partition("/")[2]: i.file_size for i in zipfile.ZipFile(f).infolist()}
             for f in (tmp_path / "shapes.pt", tmp_path / "whole.pt")]  # fmt: skip
    assert sizes[0] == sizes[1]
    found = load(tmp_path / "shapes.pt")
    assert all(
        found[name].shape == x.shape and found[name].stride() == x.stride() for name, x in content.items()
    )
    assert all(found[name].dtype == x.dtype and not found[name].any() for name, x in content.items())


def test_tensors_are_made_without_their_numbers():
    file = written({"x": tc.arange(6.0), "n": 3})
    with serialization.skip_data():
        found = load(file)
    assert found["x"].shape == (6,) and found["x"].dtype == tc.float32 and found["n"] == 3
    file.seek(0)
    assert load(file)["x"].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
