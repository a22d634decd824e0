"""Details of files that programs written for PyTorch rely on."""

import io
import pickle
import sys
import zipfile

import numpy as np
import pytest

import taeda
from taeda import nn


class Both(dict):
    pass


def test_files_keep_what_tensors_and_containers_are():
    weight = nn.Parameter(taeda.ones(2))
    kept = {
        "weight": weight,
        "needs": taeda.ones(1, requires_grad=True),
        "meta": taeda.empty(2, device="meta"),
    }
    file = io.BytesIO()
    taeda.save(kept, file)
    file.seek(0)
    loaded = taeda.load(file)
    assert type(loaded["weight"]) is nn.Parameter and loaded["needs"].requires_grad
    assert loaded["meta"].device.type == "meta"
    file = io.BytesIO()
    taeda.save(Both(a=taeda.ones(1)), file)
    file.seek(0)
    assert type(taeda.load(file, weights_only=False)) is Both


def test_files_that_are_open_have_all_bytes(tmp_path):
    with open(tmp_path / "file", "wb") as file:
        taeda.save([taeda.arange(3)], file)
        assert taeda.load(tmp_path / "file")[0].tolist() == [0, 1, 2]


def test_loading_takes_the_encoding_of_older_programs(tmp_path):
    taeda.save({"a": taeda.ones(1)}, tmp_path / "file.pt")
    assert taeda.load(tmp_path / "file.pt", encoding="latin1")["a"].item() == 1.0
    with pytest.raises(TypeError, match="colour"):
        taeda.load(tmp_path / "file.pt", colour="red")


def test_records_of_a_file_are_read_one_by_one(tmp_path):
    path = tmp_path / "saved.pt"
    taeda.save({"a": taeda.arange(5.0), "b": taeda.tensor([[1, 2], [3, 4]])}, path)
    for file in (str(path), io.BytesIO(path.read_bytes())):
        reader = taeda.PyTorchFileReader(file)
        assert {"data.pkl", "data/0", "data/1", "version"} <= set(reader.get_all_records())
        assert reader.has_record("data.pkl") and not reader.has_record("data/2")
        assert reader.get_record_size("data/0") == 20
        assert reader.get_storage_from_record("data/0", 5, taeda.float32).tolist() == [
            0.0,
            1.0,
            2.0,
            3.0,
            4.0,
        ]
        raw = reader.get_storage_from_record("data/1", 32, taeda.UntypedStorage)
        assert raw.view(taeda.int64).tolist() == [1, 2, 3, 4]
        begin = reader.get_record_offset("data/0")
        assert path.read_bytes()[begin : begin + 20] == np.arange(5, dtype=np.float32).tobytes()
        with pytest.raises(RuntimeError, match="no record 'data/2'"):
            reader.get_record("data/2")
        with pytest.raises(RuntimeError, match="'data/0' has 20 bytes, expected 6"):
            reader.get_storage_from_record("data/0", 6, taeda.float32)
        with pytest.raises(TypeError, match="int"):
            reader.get_record(3)
    for wrong, content in (("absent.pt", None), ("text.pt", b"no archive")):
        if content is not None:
            (tmp_path / wrong).write_bytes(content)
        with pytest.raises(RuntimeError, match=wrong):
            taeda.PyTorchFileReader(str(tmp_path / wrong))
    damaged = bytearray(path.read_bytes())
    damaged[begin] ^= 1
    reader = taeda.PyTorchFileReader(io.BytesIO(damaged))
    with pytest.raises(RuntimeError, match="checksum"):
        reader.get_storage_from_record("data/0", 5, taeda.float32)
    assert taeda._C.PyTorchFileReader is taeda.PyTorchFileReader


def test_loaders_of_programs_are_made_of_the_parts_of_the_reader(tmp_path):
    parts = taeda.serialization
    path = tmp_path / "model.pt"
    taeda.save({"weight": taeda.arange(4.0)}, path)
    assert parts._maybe_decode_ascii(b"cpu") == parts._maybe_decode_ascii("cpu") == "cpu"
    kind = parts.StorageType("FloatStorage")
    assert kind.dtype is taeda.float32 and "float32" in str(kind)
    with pytest.raises(KeyError):
        parts.StorageType("WideStorage")
    for place in (None, "cpu", taeda.device("cpu"), {"cpu": "cpu"}, lambda storage, location: None):
        with parts._open_file_like(path, "rb") as file:
            assert parts._is_zipfile(file)
            with parts._open_zipfile_reader(file) as reader:
                assert not parts._is_torchscript_zip(reader)
                record = reader.get_storage_from_record("data/0", 16, taeda.UntypedStorage)
                storage = record._typed_storage()._untyped_storage
        assert file.closed
        placed = parts._get_restore_location(place)(storage, "cpu")
        typed = taeda.storage.TypedStorage(wrap_storage=placed, dtype=kind.dtype, _internal=True)
        assert typed.tolist() == [0, 1, 2, 3]
    buffer = io.BytesIO()
    with parts._open_file_like(buffer, "wb") as file:
        assert file is buffer
    assert not buffer.closed
    writer = taeda.PyTorchFileWriter(str(path))
    writer.write_record("constants.pkl", b"content", 7)
    writer.write_end_of_file()
    with parts._open_zipfile_reader(str(path)) as reader:
        assert parts._is_torchscript_zip(reader)


def test_records_of_a_file_are_written_one_by_one(tmp_path):
    whole = tmp_path / "whole.pt"
    taeda.save({"a": taeda.arange(5.0)}, whole)
    pickled = taeda.PyTorchFileReader(str(whole)).get_record("data.pkl")
    path, buffer = tmp_path / "parts.pt", io.BytesIO()
    for file in (str(path), path, buffer):
        writer = taeda.PyTorchFileWriter(file)
        writer.write_record("data/0", taeda.arange(5.0).untyped_storage(), 20)
        with pytest.raises(RuntimeError, match="'data/0' was written already"):
            writer.write_record("data/0", b"", 0)
        with pytest.raises(TypeError, match="found int"):
            writer.write_record("data.pkl", 3, 1)
        with pytest.raises(ValueError, match="is 4, expected at most 3"):
            writer.write_record("text", "abc", 4)
        writer.write_record("data.pkl", pickled, len(pickled))
        writer.write_end_of_file()
        with pytest.raises(RuntimeError, match="after the end"):
            writer.write_record("late", b"", 0)
        assert writer.get_all_written_records() == ["data/0", "data.pkl", "version", ".data/serialization_id"]
        assert writer.archive_name() == ("archive" if file is buffer else "parts")
    for file in (path, io.BytesIO(buffer.getvalue())):
        assert taeda.load(file)["a"].tolist() == [0, 1, 2, 3, 4]
    with zipfile.ZipFile(buffer) as archive:
        assert archive.testzip() is None
        assert archive.read("archive/data/0") == np.arange(5, dtype=np.float32).tobytes()
        assert archive.read("archive/.data/serialization_id").decode() == writer.serialization_id()
    with pytest.raises(RuntimeError, match="cannot be written"):
        taeda.PyTorchFileWriter(str(tmp_path / "absent" / "a.pt"))
    assert taeda._C.PyTorchFileWriter is taeda.PyTorchFileWriter


def test_states_hold_what_stands_for_tensors_until_they_are_copied():
    class Later:
        def __init__(self, value):
            self.value = value
            self.shape = value.shape

        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return function(*(a.value if isinstance(a, cls) else a for a in args), **(kwargs or {}))

    layer = nn.Linear(2, 3)
    state = {"weight": Later(taeda.full((3, 2), 2.0)), "bias": Later(taeda.full((3,), 0.5))}
    with pytest.raises(RuntimeError, match=r"expected torch\.Tensor"):
        layer.load_state_dict(state, assign=True)
    layer.load_state_dict(state)
    assert layer.weight.tolist() == [[2.0, 2.0]] * 3 and layer.bias.tolist() == [0.5] * 3
    with pytest.raises(RuntimeError, match="size mismatch for bias"):
        layer.load_state_dict({**state, "bias": Later(taeda.ones(4))})
    with pytest.raises(RuntimeError, match=r"expected torch\.Tensor"):
        layer.load_state_dict({**state, "bias": [0.0] * 3})


def test_a_folder_that_is_not_there(tmp_path):
    for kind in (RuntimeError, FileNotFoundError):
        with pytest.raises(kind, match="Parent directory"):
            taeda.save({}, tmp_path / "missing" / "model.pt")
        with pytest.raises(kind, match="Parent directory"):
            taeda.jit.save(taeda.jit.script(nn.Linear(1, 1)), str(tmp_path / "missing" / "model.pt"))


class Link:
    """One of a chain of objects."""

    def __init__(self, after):
        self.after = after


def test_chains_of_objects_are_saved_as_deep_as_the_library_s_own_pickler_goes():
    limit, chain = sys.getrecursionlimit(), None
    for _ in range(250):
        chain = Link(chain)
    pickle.dumps(chain, 2)
    file = io.BytesIO()
    taeda.save(chain, file)
    file.seek(0)
    found, length = taeda.load(file, weights_only=False), 0
    while found is not None:
        found, length = found.after, length + 1
    assert length == 250 and sys.getrecursionlimit() == limit
    for _ in range(20_000):
        chain = Link(chain)
    with pytest.raises(ValueError, match="nested too deeply"):
        taeda.save(chain, io.BytesIO())
    assert sys.getrecursionlimit() == limit
    while chain is not None:  # one by one: freed as a whole they would be followed by recursion
        chain = chain.after
