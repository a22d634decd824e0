"""Getting in touch through the C ABI: versions that agree, and every refusal."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import pytest

import taeda_registry
import taeda_tensor_core as taeda
from taeda_tensor_core import backends

HEADER = (Path(taeda_registry.include_dir()) / "taeda" / "abi.h").read_text()
MINOR = int(re.search(r"TAEDA_ABI_MINOR (\d+)u", HEADER)[1])
VERSION_TEXT = rf"version 1\.{MINOR}"


def test_a_plugin_of_the_same_version_starts(plugin):
    backends.load(plugin("handshake"))


@pytest.mark.parametrize("minor", range(MINOR))
def test_a_plugin_of_an_earlier_minor_version_starts(plugin, minor):
    backends.load(plugin("handshake", f"-DSTATED_MINOR={minor}u"))


def test_starting_twice_does_nothing(plugin):
    library = plugin("handshake")
    backends.load(library)
    backends.load(str(library))


@pytest.mark.parametrize(
    ("major", "minor", "remedy"),
    [
        (2, 0, "pip install --upgrade taeda-tensor-core"),
        (1, MINOR + 1, "pip install --upgrade taeda-tensor-core"),
        (1, 4000000000, "pip install --upgrade taeda-tensor-core"),
        (0, 9, "pip install --upgrade taeda-handshake"),
    ],
)
def test_other_versions_are_refused_with_both_and_the_remedy(plugin, major, minor, remedy):
    library = plugin("handshake", f"-DSTATED_MAJOR={major}u", f"-DSTATED_MINOR={minor}u")
    with pytest.raises(RuntimeError, match=VERSION_TEXT) as caught:
        backends.load(library)
    text = str(caught.value)
    assert f"'taeda-handshake' was built for version {major}.{minor} of taeda's C ABI" in text
    assert text.endswith(f"try: {remedy}")


def test_a_start_that_fails_is_shown_in_its_own_words(plugin):
    with pytest.raises(RuntimeError, match="plug-in 'handshake': no licence for this machine"):
        backends.load(plugin("handshake", "-DFAILS"))


def test_a_library_that_is_missing_is_shown_in_the_loaders_words(tmp_path):
    with pytest.raises(RuntimeError, match=r"cannot be loaded: .*No such file"):
        backends.load(tmp_path / "nothing.so")


def test_a_library_that_is_no_plugin(plugin):
    with pytest.raises(
        RuntimeError, match="is no plug-in of taeda: it does not export 'taeda_plugin_describe'"
    ):
        backends.load(plugin("handshake", "-Dtaeda_plugin_describe=something_else"))


def test_a_thing_that_is_no_plugin():
    with pytest.raises(TypeError, match="expected a path, a capsule, a module or a function, found int"):
        backends.load(3)


# --- the table itself ---


class Head(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32)]


def pointer_in(capsule: object) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get(capsule, b"taeda.abi")


def test_the_capsule_holds_the_table():
    head = Head.from_address(pointer_in(taeda.abi_capsule()))
    assert (head.major, head.minor) == (1, MINOR)
    assert head.size >= 264


@pytest.mark.parametrize(("major", "minor"), [(2, 0), (1, MINOR + 1), (0, 5)])
def test_the_capsule_is_refused_to_other_versions(major, minor):
    with pytest.raises(
        RuntimeError, match=rf"'mine' was built for version {major}\.{minor}.*{VERSION_TEXT}; try: pip"
    ):
        taeda.abi_capsule(major, minor, "mine")


def test_a_version_must_be_a_number_of_a_version():
    with pytest.raises(ValueError, match="'major' and 'minor' must be numbers of a version, found -1 and 0"):
        taeda.abi_capsule(-1)


@pytest.fixture
def abi_get():
    library = ctypes.CDLL(str(Path(taeda.get_library_dir()) / "libtaeda.so"))
    function = library.taeda_abi_get
    function.restype = ctypes.c_int32
    function.argtypes = [
        ctypes.c_uint32,
        ctypes.c_uint32,
        ctypes.c_char_p,
        ctypes.POINTER(ctypes.c_void_p),
        ctypes.POINTER(ctypes.c_char_p),
    ]
    return function


def test_the_symbol_gives_the_same_table(abi_get):
    table, message = ctypes.c_void_p(), ctypes.c_char_p()
    assert abi_get(1, 0, b"mine", ctypes.byref(table), ctypes.byref(message)) == 0
    assert table.value == pointer_in(taeda.abi_capsule())
    assert message.value == b""


def test_the_symbol_refuses_other_versions(abi_get):
    table, message = ctypes.c_void_p(1), ctypes.c_char_p()
    assert abi_get(3, 7, None, ctypes.byref(table), ctypes.byref(message)) == 10
    assert table.value is None
    assert b"the plug-in was built for version 3.7" in message.value
    assert b"pip install --upgrade taeda-tensor-core" in message.value
