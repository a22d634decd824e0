"""oneDNN's library: loaded by what computes with it, and missed by nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import taeda_tensor_core as tc

FOLDER = Path(tc.__file__).parent
pytestmark = pytest.mark.skipif(
    not (FOLDER / "lib" / "libdnnl.so.3").exists() or not sys.platform.startswith("linux"),
    reason="built without oneDNN, or a system that does not list its libraries in /proc",
)

MAPPED = """
def mapped():
    with open("/proc/self/maps") as maps:
        return "libdnnl" in maps.read()
"""


def run(program: str, **environment: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_small_work_does_not_load_it_and_convolutions_do() -> None:
    program = f"""{MAPPED}
import taeda_tensor_core as tc
a = tc.ones((4, 4))
assert tc.matmul(a, a).tolist() == [[4.0] * 4] * 4
assert tc.softmax(a, 1).tolist() == [[0.25] * 4] * 4
before = mapped()
tc.conv2d(tc.ones((8, 16, 32, 32)), tc.ones((32, 16, 3, 3)), None)
print(before, mapped())
"""
    assert run(program) == "False True"


def test_children_forked_while_it_loads_compute() -> None:
    program = """
import os, threading
import taeda_tensor_core as tc
a = tc.ones((256, 256))
started = threading.Event()
def product():
    started.set()
    tc.matmul(a, a)
thread = threading.Thread(target=product)
thread.start()
started.wait()
children = []
for _ in range(8):
    child = os.fork()
    if child == 0:
        os._exit(0 if tc.matmul(a, a)[3, 4].item() == 256 else 1)
    children.append(child)
thread.join()
print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])
"""
    assert run(program) == str([0] * 8)


def test_a_library_that_is_not_there_is_named(tmp_path: Path) -> None:
    package = tmp_path / FOLDER.name
    (package / "lib").mkdir(parents=True)
    for entry in FOLDER.iterdir():
        if entry.name.startswith("_C."):
            shutil.copy(entry, package)
        elif entry.name != "lib":
            (package / entry.name).symlink_to(entry)
    for entry in (FOLDER / "lib").iterdir():
        if entry.name.startswith("libtaeda"):
            shutil.copy(entry, package / "lib")
        elif not entry.name.startswith("libdnnl"):
            (package / "lib" / entry.name).symlink_to(entry)
    program = """
import taeda_tensor_core as tc
assert (tc.ones(3) + 1).tolist() == [2.0, 2.0, 2.0]
for _ in range(2):
    try:
        tc.conv2d(tc.ones((8, 16, 32, 32)), tc.ones((32, 16, 3, 3)), None)
    except RuntimeError as error:
        print(error)
"""
    said = run(program, PYTHONPATH=str(tmp_path)).splitlines()
    assert len(said) == 2
    for line in said:
        assert f"oneDNN's library at {package / 'lib' / 'libdnnl.so.3'} cannot be loaded" in line
