"""Files that PyTorch wrote, read by our own reader: the same data, nothing else, and errors for everything else."""

import contextlib
import io
import pickle
import random
import warnings
import zipfile
from collections import Counter, OrderedDict

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the reference is PyTorch")
tc = pytest.importorskip("taeda_tensor_core", reason="the reader belongs to the first-party tensors")

import taeda  # noqa: E402
from taeda_tensor_core.serialization import CheckpointError, load, save  # noqa: E402

NAMES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
NAMES += ["bfloat16", "uint16", "uint32", "uint64"]


def written(obj):
    file = io.BytesIO()
    torch.save(obj, file)
    file.seek(0)
    return file


def legacy(obj):
    file = io.BytesIO()
    torch.save(obj, file, _use_new_zipfile_serialization=False)
    file.seek(0)
    return file


def same(mine, theirs):
    assert str(mine.dtype).rpartition(".")[2] == str(theirs.dtype).rpartition(".")[2]
    assert tuple(mine.shape) == tuple(theirs.shape)
    np.testing.assert_array_equal(np.array(mine.detach().tolist()), np.array(theirs.detach().tolist()))


@pytest.mark.parametrize("name", NAMES)
def test_dtypes(name):
    theirs = torch.arange(6).reshape(2, 3).to(getattr(torch, name))
    same(load(written(theirs)), theirs)
    same(load(legacy(theirs)), theirs)


def test_state_of_a_network_and_its_optimizer():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.Linear(4, 2))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    net(torch.randn(2, 1, 3, 6)).sum().backward()
    optimizer.step()
    saved = {
        "net": net.state_dict(),
        "optimizer": optimizer.state_dict(),
        "epoch": 3,
        "name": "é",
        "losses": [0.5, None],
    }
    loaded = load(written(saved))
    assert list(loaded) == list(saved)
    assert list(loaded["net"]) == list(saved["net"])
    for name, value in saved["net"].items():
        same(loaded["net"][name], value)
    for number, state in saved["optimizer"]["state"].items():
        for name, value in state.items():
            same(loaded["optimizer"]["state"][number][name], value)
    assert loaded["optimizer"]["param_groups"] == saved["optimizer"]["param_groups"]
    assert (loaded["epoch"], loaded["name"], loaded["losses"]) == (3, "é", [0.5, None])


def test_views_parameters_and_sharing():
    base = torch.arange(12.0).reshape(3, 4)
    weight = torch.nn.Parameter(torch.ones(2))
    loaded = load(written([base, base.t()[1:], base[::2], weight, torch.empty(0, 3), torch.tensor(2.5)]))
    for mine, theirs in zip(loaded, [base, base.t()[1:], base[::2], weight, torch.empty(0, 3)], strict=False):
        same(mine, theirs)
    loaded[0][0, 1] = 9
    assert loaded[1][0, 0].item() == 9
    assert loaded[5].item() == 2.5


def test_containers_and_numbers():
    obj = OrderedDict(
        a=(1, -5, 2**40, -(2**70), True),
        b={"c": {1, 2}, 3: [1.5, float("inf")]},
        d=b"xy",
        e=torch.Size([2, 3]),
    )
    loaded = load(written(obj))
    assert loaded["a"] == obj["a"]
    assert loaded["b"] == obj["b"]
    assert (loaded["d"], loaded["e"]) == (b"xy", (2, 3))


def test_dtypes_and_devices_as_values():
    loaded = load(written({"dtype": torch.float32, "device": torch.device("cpu")}))
    assert loaded == {"dtype": tc.float32, "device": tc.device("cpu")}


class Evil:
    def __reduce__(self):
        import os

        return os.system, ("exit 3",)


def archive(data, extra=(), compress=zipfile.ZIP_STORED, root="archive/"):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compress) as out:
        out.writestr(f"{root}data.pkl", data)
        for name, content in extra:
            out.writestr(f"archive/{name}", content)
    file.seek(0)
    return file


@pytest.mark.parametrize(
    ("text", "file"),
    [
        ("posix.system", lambda: written({"x": Evil()})),
        ("collections.deque", lambda: archive(b"\x80\x02ccollections\ndeque\n.")),
        ("numpy", lambda: written({"x": np.float64(3)})),
        ("torch.nn.modules.linear.Linear", lambda: written(torch.nn.Linear(1, 1))),
        ("opcode", lambda: archive(b"\x80\x02(i__builtin__\neval\n.")),
        ("object of torch.Size", lambda: archive(b"\x80\x02ctorch\nSize\n)\x81.")),
        ("attributes", lambda: archive(b"\x80\x02]}b.")),
        ("big-endian|little-endian", lambda: archive(b"\x80\x02N.", [("byteorder", "big")])),
        ("compressed", lambda: archive(b"\x80\x02N.", compress=zipfile.ZIP_DEFLATED)),
        ("data.pkl", lambda: archive(b"\x80\x02N.", root="a/b/")),
        ("holds", lambda: archive(b"\x80\x02ctorch\nSize\n.")),
        ("malformed", lambda: archive(b"\x80\x02h\x05.")),
    ],
)
def test_everything_else_is_a_named_error(text, file):
    with pytest.raises(CheckpointError, match=text):
        load(file())


def test_files_before_zip_archives():
    base = torch.arange(12.0).reshape(3, 4)
    weight = torch.nn.Parameter(torch.ones(2, dtype=torch.bfloat16))
    obj = OrderedDict(
        a=base,
        b=[base.t()[1:], weight],
        c={"n": 1.5},
        e=torch.empty(0, 3),
        u=torch.ones(3, dtype=torch.uint8),
    )
    loaded = load(legacy(obj))
    assert list(loaded) == list(obj)
    for mine, theirs in ((loaded["a"], base), (loaded["b"][0], obj["b"][0]), (loaded["b"][1], weight)):
        same(mine, theirs)
    loaded["a"][0, 1] = 9
    assert loaded["b"][0][0, 0].item() == 9
    assert loaded["c"] == obj["c"]
    data = legacy(obj).getvalue()
    for cut in range(0, len(data), 7):
        with pytest.raises(CheckpointError):
            load(io.BytesIO(data[:cut]))


def test_pickles_of_others_are_refused():
    with pytest.raises(CheckpointError):
        load(io.BytesIO(pickle.dumps({"a": 1}, protocol=2)))


def test_what_only_newer_files_have():
    state = torch.nn.BatchNorm1d(2).state_dict()
    obj = [
        torch.tensor([1 + 2j]).conj(),
        torch.ones(2, 3, device="meta"),
        state,
        Counter({3: 2}),
        1j,
        bytearray(b"ab"),
        b"",
    ]
    loaded = load(written(obj))
    assert loaded[0].tolist() == [1 - 2j]
    assert (loaded[1].device.type, tuple(loaded[1].shape)) == ("meta", (2, 3))
    assert loaded[2]._metadata == state._metadata
    assert [type(item) for item in loaded[3:]] == [Counter, complex, bytearray, bytes]
    assert loaded[3:] == obj[3:]


def test_checksums_may_be_left_out_but_not_wrong():
    before = torch.serialization.get_crc32_options()
    torch.serialization.set_crc32_options(False)
    try:
        file = written(torch.arange(3.0))
    finally:
        torch.serialization.set_crc32_options(before)
    assert load(file).tolist() == [0, 1, 2]
    data = written(torch.arange(3.0)).getvalue()
    place = data.index(np.arange(3.0, dtype=np.float32).tobytes())
    with pytest.raises(CheckpointError, match="checksum"):
        load(io.BytesIO(data[: place + 4] + b"x" + data[place + 5 :]))


@pytest.mark.parametrize(
    "where",
    ["cpu", tc.device("cpu"), {"cpu": "cpu"}, lambda memory, place: memory if place == "cpu" else None],
)
def test_map_location(where):
    obj = [torch.ones(2), torch.ones(2, dtype=torch.int64)]
    for mine, theirs in zip(load(written(obj), map_location=where), obj, strict=True):
        same(mine, theirs)


def test_files_of_absent_devices_say_so():
    file = written(torch.ones(2)).getvalue()
    pickled = (
        zipfile.ZipFile(io.BytesIO(file))
        .read("archive/data.pkl")
        .replace(b"\x03\0\0\0cpu", b"\x06\0\0\0cuda:7")
    )
    moved = archive(pickled, [("data/0", np.ones(2, np.float32).tobytes())])
    with pytest.raises(CheckpointError, match="'cuda:7', which is not here; map_location='cpu'"):
        load(moved)
    moved.seek(0)
    assert load(moved, map_location={"cuda:7": "cpu"}).tolist() == [1, 1]


@pytest.mark.parametrize("zipped", [True, False])
def test_memory_maps(tmp_path, zipped):
    obj = {"w": torch.arange(10_000.0), "b": torch.ones(3, dtype=torch.bool)}
    torch.save(obj, tmp_path / "file", _use_new_zipfile_serialization=zipped)
    loaded = load(tmp_path / "file", mmap=True)
    for name, theirs in obj.items():
        same(loaded[name], theirs)
    loaded["w"][0] = 7
    assert load(tmp_path / "file")["w"][0].item() == 0
    with pytest.raises(ValueError, match="needs a path"):
        load(written(obj), mmap=True)


def test_damaged_pickles_only_raise_checkpoint_errors():
    with zipfile.ZipFile(
        written({"a": torch.ones(2, 3), "b": [torch.arange(4), 1.5, "x"], "c": (None, True)})
    ) as file:
        entries = {name.partition("/")[2]: file.read(name) for name in file.namelist()}
    good = entries.pop("data.pkl")
    seed = 20240818
    source = random.Random(seed)
    print("seed", seed)
    refused = 0
    for _ in range(1500):
        data = bytearray(good)
        for _ in range(source.randrange(1, 4)):
            data[source.randrange(len(data))] = source.randrange(256)
        if source.random() < 0.2:
            del data[source.randrange(len(data)) :]
        try:
            load(archive(bytes(data), entries.items()))
        except CheckpointError:
            refused += 1
    assert refused > 500


def test_damaged_archives_only_raise_checkpoint_errors():
    good = written({"a": torch.ones(2, 3), "b": [torch.arange(4)]}).getvalue()
    seed = 20240819
    source = random.Random(seed)
    print("seed", seed)
    for _ in range(1500):
        data = bytearray(good)
        for _ in range(source.randrange(1, 4)):
            data[source.randrange(4, len(data))] = source.randrange(256)
        with contextlib.suppress(CheckpointError):
            load(io.BytesIO(bytes(data)))


def saved(obj):
    file = io.BytesIO()
    save(obj, file, format="torch")
    file.seek(0)
    return file


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_pytorch_opens_every_dtype(name, shape):
    mine = (tc.arange(int(np.prod(shape))).reshape(shape) % 2).to(getattr(tc, name))
    same(torch.load(saved({"x": mine}), weights_only=True)["x"], mine)


def test_pytorch_opens_views_with_their_sharing_and_strides():
    base = tc.arange(12.0).reshape(3, 4)
    obj = [base, base.t(), base[1:, ::2], base.expand(2, 3, 4), base.view(tc.int32), tc.ones(2)]
    loaded = torch.load(saved(obj), weights_only=True)
    for theirs, mine in zip(loaded, obj, strict=True):
        same(theirs, mine)
        assert theirs.stride() == tuple(mine.stride())
        assert theirs.storage_offset() == mine.storage_offset()
    loaded[0][1, 2] = 50
    assert (loaded[1][2, 1], loaded[2][0, 1], loaded[3][1, 1, 2]) == (50, 50, 50)
    assert loaded[4][1, 2] == loaded[0].view(torch.int32)[1, 2]


def test_pytorch_opens_containers_and_values():
    plain = {
        "o": OrderedDict(b=1, a=(2, None)),
        "c": Counter("aab"),
        "s": {1},
        3: [2.5, True, 1j, 2**70, b"x", bytearray(b"y")],
    }
    obj = plain | {
        "d": tc.float16,
        "z": tc.Size([2]),
        "v": tc.device("cpu"),
        "m": tc.empty(2, 3, device="meta"),
    }
    loaded = torch.load(saved(obj), weights_only=True)
    meta = loaded.pop("m")
    assert (meta.device.type, tuple(meta.shape)) == ("meta", (2, 3))
    assert loaded == plain | {"d": torch.float16, "z": torch.Size([2]), "v": torch.device("cpu")}


def test_pytorch_opens_state_of_a_network_and_its_optimizer(tmp_path):
    net = taeda.nn.Sequential(taeda.nn.Conv2d(1, 2, 3), taeda.nn.BatchNorm2d(2), taeda.nn.Linear(4, 2))
    optimizer = taeda.optim.Adam(net.named_parameters(), lr=0.1)
    net(taeda.randn(2, 1, 3, 6)).sum().backward()
    optimizer.step()
    save(
        {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "p": net[2].weight},
        tmp_path / "state.pt",
    )
    loaded = torch.load(tmp_path / "state.pt", weights_only=True, mmap=True)
    theirs = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.Linear(4, 2))
    theirs.load_state_dict(loaded["net"])
    torch.optim.Adam(theirs.named_parameters()).load_state_dict(loaded["optimizer"])
    for name, value in net.state_dict().items():
        same(theirs.state_dict()[name], value)
    assert type(loaded["p"]) is torch.nn.Parameter


def network(space):
    nn = space.nn
    convolutions = nn.Conv2d(2, 3, 3, padding=1), nn.Conv2d(3, 3, 3, padding="same", padding_mode="reflect")
    rest = (
        nn.ConvTranspose2d(3, 2, 2),
        nn.GELU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.LayerNorm(8),
        nn.Linear(8, 2),
        nn.Softmax(-1),
    )
    net = nn.Sequential(*convolutions, nn.BatchNorm2d(3), nn.ReLU(inplace=True), nn.Dropout(0.5), *rest)
    net.register_buffer("extra", space.ones(2), persistent=False)
    return net.eval()


def encoder(space):
    """A transformer's encoder, whose layers hold functions and classes of modules that no namespace lists."""
    layer = space.nn.TransformerEncoderLayer(4, 2, 8, 0.0, activation="gelu", batch_first=True)
    return space.nn.TransformerEncoder(layer, 2, space.nn.LayerNorm(4))


def averaged(space):
    return space.optim.swa_utils.AveragedModel(space.nn.Linear(4, 3))


MODULES = {
    "attention": (encoder, (2, 3, 4)),
    "averaged": (averaged, (2, 4)),
    "network": (network, (2, 2, 3, 3)),
    "lstm": (lambda space: space.nn.LSTM(3, 4, num_layers=2, bidirectional=True), (5, 2, 3)),
    "list": (lambda space: space.nn.Sequential(space.nn.ModuleDict({"a": space.nn.Identity()})["a"]), (2, 3)),
}


@pytest.mark.parametrize("kind", MODULES)
@pytest.mark.parametrize("forth", [True, False])
def test_whole_modules_go_both_ways(kind, forth, tmp_path):
    build, shape = MODULES[kind]
    here, there = (taeda, torch) if forth else (torch, taeda)
    net = build(here)
    here.save(net, tmp_path / "net.pt")
    again = there.load(tmp_path / "net.pt", weights_only=False)
    assert type(again).__name__ == type(net).__name__
    assert list(again.state_dict()) == list(net.state_dict())
    x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    first, second = net(here.from_numpy(x)), again(there.from_numpy(x))
    first, second = (y[0] if isinstance(y, tuple) else y for y in (first, second))
    np.testing.assert_allclose(first.detach().numpy(), second.detach().numpy(), rtol=1e-5, atol=1e-6)
    if kind == "network":
        assert again.extra.tolist() == [1, 1]
        assert not again.training


def test_whole_optimizers_go_both_ways(tmp_path):
    for here, there in ((taeda, torch), (torch, taeda)):
        weight = here.nn.Parameter(here.ones(2))
        optimizer = here.optim.SGD([weight], lr=0.1, momentum=0.9)
        weight.grad = here.ones(2)
        optimizer.step()
        here.save([weight, optimizer], tmp_path / "optimizer.pt")
        loaded, again = there.load(tmp_path / "optimizer.pt", weights_only=False)
        assert again.param_groups[0]["params"][0] is loaded
        for one, values in ((optimizer, weight), (again, loaded)):
            values.grad = (here if one is optimizer else there).ones(2)
            one.step()
        np.testing.assert_allclose(loaded.tolist(), weight.tolist(), rtol=1e-6)


def test_whole_objects_of_files_before_zip_archives():
    net = torch.nn.Linear(2, 3)
    again = load(legacy([net, net.weight]), weights_only=False)
    assert again[0].weight is again[1]
    same(again[0].weight, net.weight)


def of_parts(space):
    """Tensors that consist of other tensors, and what each stands for."""
    dense = space.tensor([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield "coo", dense.to_sparse()
        yield "coo_twice", space.sparse_coo_tensor(space.tensor([[1, 1]]), space.tensor([1.0, 2.0]), (3,))
        for layout in ("csr", "csc"):
            yield layout, getattr(dense, f"to_sparse_{layout}")()
        yield "quint8", space.quantize_per_tensor(dense, 0.1, 3, space.quint8)
        yield "qint32", space.quantize_per_tensor(dense, 0.1, 3, space.qint32)
        scales = space.tensor([0.1, 0.2]), space.tensor([0, 1])
        yield "channels", space.quantize_per_channel(dense, *scales, 0, space.qint8)
        yield "nested", space.nested.nested_tensor([space.arange(2.0), space.arange(3.0)])


def described(tensor, name):
    if name == "nested":
        return [part.tolist() for part in tensor.unbind()]
    if name.startswith("c") and name != "channels":
        coalesced = tensor.is_coalesced() if name.startswith("coo") else None
        return tensor.to_dense().tolist(), str(tensor.layout).rpartition(".")[2], coalesced
    return tensor.dequantize().tolist(), str(tensor.dtype).rpartition(".")[2]


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("name", ["coo", "coo_twice", "csr", "csc", "quint8", "qint32", "channels", "nested"])
def test_tensors_of_several_parts_go_both_ways(name, weights_only):
    ours, theirs = dict(of_parts(taeda))[name], dict(of_parts(torch))[name]
    expected = described(theirs, name)
    file = io.BytesIO()
    save({"x": [ours]}, file, format="torch")
    for read in (taeda, torch):
        file.seek(0)
        assert described(read.load(file, weights_only=weights_only)["x"][0], name) == expected
    assert described(load(written(theirs), weights_only=weights_only), name) == expected


def test_malformed_files_are_errors_of_pickling_too():
    """Programs catch `pickle.UnpicklingError` where a file holds more than data."""
    with pytest.raises(pickle.UnpicklingError):
        load(written(torch.nn.Linear(1, 1)))


def test_distributions_of_pytorchs_files():
    found = load(written(torch.distributions.Normal(torch.zeros(2), torch.ones(2))), weights_only=False)
    assert isinstance(found, taeda.distributions.Normal)
    assert found.loc.tolist() == [0.0, 0.0]


def doubled(module, args, output):
    return output * 2


def test_hooks_around_forward_of_whole_modules():
    theirs = torch.nn.Linear(2, 2)
    theirs.register_forward_hook(doubled)
    ours = load(written(theirs), weights_only=False)
    expected = theirs(torch.ones(1, 2)).tolist()
    np.testing.assert_allclose(ours(taeda.ones(1, 2)).tolist(), expected, rtol=1e-6)
    ours.register_forward_hook(doubled)
    np.testing.assert_allclose(ours(taeda.ones(1, 2)).tolist(), 2 * np.array(expected), rtol=1e-6)


@pytest.mark.parametrize("weights_only", [True, False])
def test_storages_by_themselves_go_both_ways(weights_only):
    warnings.simplefilter("ignore")  # of PyTorch, about typed storages
    x = torch.arange(6.0)
    for file in (written([x[1:3], x.storage()]), legacy([x[1:3], x.storage()])):
        view, storage = load(file, weights_only=weights_only)
        view.fill_(9)
        assert (str(storage.dtype), storage.tolist()) == ("taeda.float32", [0, 9, 9, 3, 4, 5])
    y = tc.arange(3)
    file = io.BytesIO()
    save([y.storage(), y.clone().untyped_storage()], file, format="torch")
    file.seek(0)
    typed, untyped = torch.load(file, weights_only=weights_only)
    assert (str(typed.dtype), typed.tolist()) == ("torch.int64", [0, 1, 2])
    assert bytes(untyped.tolist()) == np.arange(3).tobytes()


def _with_buffers(t):
    module = t.nn.Module()
    module.kept = t.nn.Buffer(t.ones(2))
    module.left = t.nn.Buffer(t.zeros(3), persistent=False)
    return module


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize(("writes", "reads"), [(taeda, torch), (torch, taeda), (taeda, taeda)])
def test_buffers_go_both_ways_as_tensors_that_are_known_as_buffers(writes, reads, weights_only):
    module, file = _with_buffers(writes), io.BytesIO()
    writes.save([dict(module.named_buffers()), module.state_dict(keep_vars=True)], file)
    file.seek(0)
    found, state = reads.load(file, weights_only=weights_only)
    assert list(found) == ["kept", "left"] and list(state) == ["kept"]
    assert type(found["left"]) is reads.Tensor and found["left"].tolist() == [0, 0, 0]
    assert isinstance(found["left"], reads.nn.Buffer) and not isinstance(reads.ones(1), reads.nn.Buffer)
    again = reads.nn.Module()
    again.kept, again.left = state["kept"], found["left"]
    assert list(again.state_dict()) == ["kept"]
    assert [name for name, _ in again.named_buffers()] == ["kept", "left"]


@pytest.mark.parametrize(("writes", "reads"), [(taeda, torch), (torch, taeda)])
def test_ways_to_quantize_go_both_ways(writes, reads):
    file = io.BytesIO()
    writes.save([writes.per_tensor_affine, writes.per_channel_symmetric], file)
    file.seek(0)
    assert reads.load(file) == [reads.per_tensor_affine, reads.per_channel_symmetric]


@pytest.mark.parametrize("weights_only", [True, False])
def test_jagged_tensors_of_pytorchs_files(weights_only):
    nested, lines = torch.nested, torch.arange(21.0).reshape(7, 3)
    made = {
        "parts": nested.nested_tensor([lines[:2], lines[:3]], layout=torch.jagged),
        "borders": nested.nested_tensor_from_jagged(lines, torch.tensor([0, 2, 5, 7])),
        "gaps": nested.nested_tensor_from_jagged(lines, torch.tensor([0, 3, 7]), torch.tensor([2, 3])),
        "columns": nested.nested_tensor_from_jagged(lines, torch.tensor([0, 1, 3]), jagged_dim=2),
        "leaf": nested.nested_tensor([lines[:2], lines[:3]], layout=torch.jagged, requires_grad=True),
    }
    made["marked"] = nested.nested_tensor([lines[:1]], layout=torch.jagged)
    made["marked"].tag = "x"
    read = load(written(made), weights_only=weights_only)
    for name, theirs in made.items():
        mine = read[name]
        assert isinstance(mine, taeda.nested.NestedTensor) and mine.layout is taeda.jagged
        assert [part.tolist() for part in mine.unbind()] == [part.tolist() for part in theirs.unbind()], name
        assert mine.requires_grad == theirs.requires_grad
    assert read["marked"].tag == "x"


def test_jagged_tensors_whose_borders_do_not_fit_are_refused():
    made = torch.nested.nested_tensor_from_jagged(torch.ones(4, 2), torch.tensor([0, 1, 4]))
    for borders in ([0, 1, 5], [-1, 1, 4], [0, 3, 2]):
        made._offsets.copy_(torch.tensor(borders))
        with pytest.raises(CheckpointError, match="jagged"):
            load(written(made))
