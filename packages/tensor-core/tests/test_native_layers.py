"""Observers and levels from C++, by a library that is compiled against the public headers (native/layers.cpp)."""

import ctypes
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

import taeda_tensor_core as taeda
from taeda_tensor_core import library

SOURCE = Path(__file__).parent / "native" / "layers.cpp"


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no compiler: c++ is not on the path")
    made = tmp_path_factory.mktemp("native") / "liblayers.so"
    folder = taeda.get_library_dir()
    command = [compiler, "-std=c++20", "-O1", "-fPIC", "-shared", "-fvisibility=hidden", str(SOURCE)]
    command += [f"-I{taeda.get_include()}", f"-L{folder}", f"-Wl,-rpath,{folder}", "-ltaeda", "-o", str(made)]
    subprocess.run(command, check=True)
    loaded = ctypes.CDLL(str(made))
    loaded.read_journal.restype = ctypes.c_char_p
    loaded.cube.argtypes = [ctypes.c_double, ctypes.POINTER(ctypes.c_double)]
    return loaded


class Journal:
    def __init__(self, native, boxes=False, calls=False):
        self.native, self.options = native, (int(boxes), int(calls))

    def __enter__(self):
        self.native.read_journal()
        self.native.watch(*self.options)
        return self

    def __exit__(self, *_):
        self.native.unwatch()

    def read(self):
        return self.native.read_journal().decode().splitlines()


def test_observers_see_calls_and_shapes(native):
    x, y = taeda.ones(2, 3), taeda.ones(3)
    with Journal(native) as journal:
        x + y
        taeda.cat([x, x])
        x.mul_(2)
        taeda.empty(4)
    x + y
    assert journal.read() == ["0 add (2, 3) (3,)", "0 cat (2, 3) (2, 3)", "0 mul_ (2, 3) ()", "0 empty"]


def test_observers_may_read_all_arguments(native):
    with Journal(native, boxes=True) as journal:
        taeda.ones(2, 3).sum(0)
    assert journal.read()[-1] == "0 sum (2, 3) #4"


def test_parts_of_a_composite_are_calls_within_it(native):
    with Journal(native) as journal:
        taeda.matmul(taeda.ones(2, 3), taeda.ones(3, 4))
    assert journal.read()[-2:] == ["1 mm (2, 3) (3, 4)", "0 matmul (2, 3) (3, 4)"]


def test_a_call_that_layers_pass_on_is_one_call(native):
    class Passes(library.Layer):
        def __call__(self, op, args, kwargs):
            return op(*args, **kwargs)

    x = taeda.ones(2)
    layer = Passes("passes", 9, ["exp"])
    try:
        with layer, Journal(native) as journal:
            taeda.exp(x)
    finally:
        layer.remove()
    assert journal.read() == ["0 exp (2,)"]


def test_failed_calls_end_too(native):
    x, y = taeda.ones(2), taeda.ones(3)
    with Journal(native) as journal:
        with pytest.raises(RuntimeError):
            x + y
        x.exp()
    assert journal.read() == ["0 add (2,) (3,) failed", "0 exp (2,)"]


def test_operators_of_libraries_are_observed(native):
    with library.Library("native_tests") as lib, Journal(native, boxes=True) as journal:

        @lib.operator("native_tests::twice(Tensor x) -> Tensor")
        def twice(x):
            return x * 2

        twice(taeda.ones(2))
    assert journal.read()[-2:] == ["1 mul (2,) () #2", "0 native_tests::twice (2,) #1"]


def test_what_an_observer_calls_is_not_observed(native):
    x = taeda.ones(2)
    with Journal(native, calls=True) as journal:
        x.exp()
    assert journal.read() == ["0 exp (2,)"]


def test_observers_are_the_threads_own_and_come_and_go(native):
    x = taeda.ones(1)

    def elsewhere():
        x.exp()

    before = native.calls_seen_by_second()
    with Journal(native) as journal:
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        native.watch_too()
        x.sin()
        native.unwatch_too()
        x.cos()
    x.tan()
    assert journal.read() == ["0 sin (1,)", "0 cos (1,)"]
    assert native.calls_seen_by_second() == before + 1


def test_levels_of_cplusplus_nest(native):
    found = (ctypes.c_double * 3)()
    native.cube(1.5, found)
    assert list(found) == [1.5**3, 3 * 1.5**2, 6 * 1.5]


def test_payloads_of_cplusplus(native):
    assert native.payloads() == 0
