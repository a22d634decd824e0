"""Packages: code and data in one file, loaded without the code."""

import contextlib
import io
import pickle
import random
import sys
import zipfile

import pytest

import taeda
from taeda.package import (
    EmptyMatchError,
    GlobGroup,
    PackageExporter,
    PackageImporter,
    PackagingError,
    is_from_package,
    sys_importer,
)

SOURCES = {
    "__init__.py": "",
    "layers.py": """
import taeda
from . import util
from .sub.deep import NUMBER
class Net(taeda.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = taeda.nn.Linear(2, 2)
    def forward(self, x):
        return util.twice(self.layer(x)) + NUMBER
""",
    "util.py": "import math\ndef twice(x):\n    return x * 2\n",
    "sub/__init__.py": "",
    "sub/deep.py": "NUMBER = 3\n",
}


@pytest.fixture
def net(tmp_path, monkeypatch):
    for name, text in SOURCES.items():
        file = tmp_path / "packedcode" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    from packedcode.layers import Net

    yield Net()
    for name in [name for name in sys.modules if name.partition(".")[0] == "packedcode"]:
        del sys.modules[name]


def packed(fill, **options):
    file = io.BytesIO()
    with PackageExporter(file, **options) as exporter:
        fill(exporter)
    return io.BytesIO(file.getvalue())


def with_code(exporter, net, *patterns):
    exporter.intern("packedcode.**")
    exporter.save_pickle("model", "model.pkl", net)


def test_a_model_brings_its_code_along(net):
    x = taeda.ones(1, 2)
    importer = PackageImporter(packed(lambda e: with_code(e, net)))
    made = importer.load_pickle("model", "model.pkl")
    assert taeda.equal(made(x), net(x)) and type(made) is not type(net) and type(made).__name__ == "Net"
    assert is_from_package(made) and is_from_package(type(made)) and not is_from_package(net)
    assert importer.import_module("packedcode.layers").Net is type(made)
    assert importer.import_module("packedcode.sub.deep").NUMBER == 3
    assert type(made).__module__ == f"{importer.id()}.packedcode.layers"
    assert "packedcode.layers" in sys.modules and not any(
        name.startswith("<torch_package") for name in sys.modules
    )


def test_what_comes_from_a_package_is_packed_again(net):
    x = taeda.ones(1, 2)
    first = PackageImporter(packed(lambda e: with_code(e, net)))
    made = first.load_pickle("model", "model.pkl")
    again = packed(lambda e: with_code(e, made), importer=(first, sys_importer))
    assert taeda.equal(PackageImporter(again).load_pickle("model", "model.pkl")(x), net(x))
    with pytest.raises(pickle.PicklingError, match="importer="):
        packed(lambda e: with_code(e, made))


def test_modules_that_nothing_was_said_of_are_an_error(net, tmp_path):
    with pytest.raises(PackagingError, match=r"(?s)did not match.*packedcode\.layers"):
        packed(lambda e: e.save_pickle("model", "model.pkl", net))
    with pytest.raises(PackagingError, match="denied"):
        packed(lambda e: (e.deny("packedcode.util"), with_code(e, net)))
    with pytest.raises(EmptyMatchError, match="nothing"):
        packed(lambda e: e.intern("nothing.**", allow_empty=False))
    with pytest.raises(PackagingError, match="C extension"):
        packed(
            lambda e: (
                e.intern("numpy.**"),
                e.save_source_string("a", "import numpy._core._multiarray_umath"),
            )
        )
    file = tmp_path / "kept.pt"
    with pytest.raises(ZeroDivisionError), PackageExporter(file):
        raise ZeroDivisionError
    assert not file.exists()


def test_stand_ins_fail_when_they_are_called(net):
    file = packed(lambda e: (e.mock("packedcode.util"), with_code(e, net), seen.extend(e.mocked_modules())))
    made = PackageImporter(file).load_pickle("model", "model.pkl")
    with pytest.raises(NotImplementedError, match=r"packedcode\.util\.twice"):
        made(taeda.ones(1, 2))
    assert seen == ["packedcode.util"]


seen: list = []


def test_modules_are_left_to_the_program():
    source = (
        "import numpy as np\nimport os.path\ndef f():\n    return np.ones(2).sum(), os.path.basename('a/b')\n"
    )
    hooked = []

    def fill(exporter):
        exporter.register_extern_hook(lambda _, name: hooked.append(name))
        exporter.extern("numpy.**")
        exporter.save_source_string("a.b", source)
        assert exporter.externed_modules() == ["numpy"] and exporter.get_rdeps("numpy") == ["a.b"]
        assert '"a.b" -> "numpy"' in exporter.dependency_graph_string()

    file = packed(fill)
    assert PackageImporter(file).import_module("a.b").f() == (2.0, "b") and hooked == ["numpy"]
    with pytest.raises(ImportError, match="not allowed"):
        PackageImporter(file, lambda name: name != "numpy")
    with pytest.raises(ModuleNotFoundError, match="self-contained"):
        PackageImporter(file).import_module("scipy")


def test_texts_bytes_and_folders(tmp_path):
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text(f"NAME = {name!r}\n")

    def fill(exporter):
        exporter.save_text("data.texts", "a.txt", "hello")
        exporter.save_binary("data", "b.bin", b"\x00\x01")
        exporter.save_source_file("folder", str(tmp_path))
        exporter.save_pickle("data", "x.pkl", {"x": taeda.arange(3), "n": [1, None]})

    importer = PackageImporter(packed(fill))
    assert (
        importer.load_text("data.texts", "a.txt") == "hello"
        and importer.load_binary("data", "b.bin") == b"\x00\x01"
    )
    assert importer.import_module("folder.two").NAME == "two.py"
    loaded = importer.load_pickle("data", "x.pkl")
    assert loaded["x"].tolist() == [0, 1, 2] and loaded["n"] == [1, None]
    files = importer.file_structure(include="data/**")
    assert files.has_file("data/texts/a.txt") and not files.has_file("folder/two.py") and "└── " in str(files)
    with pytest.raises(FileNotFoundError, match="missing"):
        importer.load_text("data", "missing")
    assert importer.python_version().startswith(f"{sys.version_info[0]}.")


def test_files_of_others_are_refused(tmp_path):
    with pytest.raises(RuntimeError, match="no package"):
        PackageImporter(io.BytesIO(b"nothing"))
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.py", "")
    with pytest.raises(RuntimeError, match="no package"):
        PackageImporter(tmp_path / "a.zip")


def test_damaged_files_are_named(tmp_path):
    """Bytes that are changed, cut off and put in: the package is read, or an error says which it was."""
    path = tmp_path / "damaged.pkg"
    with PackageExporter(path) as exporter:
        exporter.save_pickle("data", "numbers.pkl", [1, {"a": 2.5}])
    good, chosen = path.read_bytes(), random.Random(7)
    for _ in range(400):
        at, byte = chosen.randrange(len(good)), bytes([chosen.randrange(256)])
        path.write_bytes(
            chosen.choice([good[:at] + byte + good[at + 1 :], good[:at], good[:at] + byte + good[at:]])
        )
        try:
            importer = PackageImporter(path)
        except RuntimeError as error:
            assert path.name in str(error)
            continue
        with contextlib.suppress(FileNotFoundError):  # the name in the archive is another
            assert importer.load_pickle("data", "numbers.pkl") == [1, {"a": 2.5}]


def test_pickles_that_cannot_be_read_are_named(tmp_path):
    path = tmp_path / "damaged.pkg"
    with PackageExporter(path) as exporter:
        exporter.save_binary("data", "numbers.pkl", b"no pickle")
    with pytest.raises(pickle.UnpicklingError) as caught:
        PackageImporter(path).load_pickle("data", "numbers.pkl")
    assert "numbers.pkl" in caught.value.__notes__[0] and str(path) in caught.value.__notes__[0]


def test_patterns_of_names():
    group = GlobGroup(["a.**", "b.*x"], exclude="a.c")
    names = ("a", "a.b", "a.b.c", "a.c", "b", "b.x", "b.cx", "b.c.x")
    assert [name for name in names if group.matches(name)] == ["a", "a.b", "a.b.c", "b.x", "b.cx"]
    with pytest.raises(ValueError, match="segment"):
        GlobGroup("a**")


def written(**sources):
    file = io.BytesIO()
    with PackageExporter(file) as exporter:
        for name, source in sources.items():
            exporter.save_source_string(name.replace("__", "."), source)
        exporter.save_text("texts", "a.txt", "hello")
    return file


def test_modules_find_their_importer_and_resources():
    source = """
import importlib.resources
import texts
import torch_package_importer as importer
def both():
    return importer.load_text("texts", "a.txt"), importlib.resources.files(texts).joinpath("a.txt").read_text()
"""
    importer = PackageImporter(io.BytesIO(written(mine=source).getvalue()))
    assert importer.import_module("mine").both() == ("hello", "hello")
    reader = importer.get_resource_reader("texts")
    assert list(reader.contents()) == ["a.txt"] and reader.is_resource("a.txt")
    assert importer.get_resource_reader("others") is None


def test_packages_that_were_unpacked(tmp_path):
    with zipfile.ZipFile(written(mine="result = 3")) as archive:
        archive.extractall(tmp_path / "folder")
    assert PackageImporter(tmp_path / "folder").import_module("mine").result == 3
    around = io.BytesIO()  # as PyTorch writes them
    with zipfile.ZipFile(around, "w") as archive:
        for path in (tmp_path / "folder").rglob("*"):
            if path.is_file():
                archive.write(path, f"archive/{path.relative_to(tmp_path / 'folder')}")
    assert PackageImporter(around).import_module("mine").result == 3


def test_scripted_modules_bring_their_code_along():
    class Twice(taeda.nn.Module):
        def forward(self, x):
            return x * 2

    file = io.BytesIO()
    scripted = taeda.jit.script(Twice())
    with PackageExporter(file) as exporter:
        exporter.save_pickle("model", "model.pkl", [scripted, scripted])
    first, second = PackageImporter(io.BytesIO(file.getvalue())).load_pickle("model", "model.pkl")
    assert first is second and first(taeda.ones(1)).item() == 2


def test_calls_of_import_and_modules_that_are_not_there():
    file = io.BytesIO()
    with PackageExporter(file) as exporter:
        exporter.save_source_string("a.b", "x = 1")
        exporter.save_source_string(
            "a.c", "__import__('b', globals(), locals(), [], 1)\nimport no_such_module"
        )
        assert exporter.get_rdeps("a.b") == ["a.c"] and exporter.get_rdeps("no_such_module") == []
    with pytest.raises(PackagingError, match="beyond top-level"):
        written(mine="from ..... import x")
    with pytest.raises(ModuleNotFoundError):
        PackageExporter(io.BytesIO()).save_module("no_such_module")
