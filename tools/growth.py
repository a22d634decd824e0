"""Plug-ins built today run on a taeda that has grown: the promise of the C ABI, tried out.

Compiles the tests' C plug-ins and the simulated device against today's header, copies the sources, appends members to
every struct of the copy's header that may grow and an operator to its table, raises the minor version, lets the check
of the header judge that, builds the copy's tensor-core, and runs the plug-ins' tests on it with the binaries made
before. Run as `python -m nox -s growth`.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("packages/registry", "packages/tensor-core", "packages/testing", "tools/codegen", "tools/checks")
HEADER = "packages/registry/src/taeda_registry/include/taeda/abi.h"
PLUGINS = ("contract", "kernels", "observer", "operators", "probe", "device", "vendor", "watcher")
TESTS = [
    f"packages/tensor-core/tests/test_{name}.py"
    for name in (
        "abi_contract",
        "abi_kernels",
        "abi_layers",
        "abi_observers",
        "abi_operators",
        "abi_values",
        "abi_vendor",
        "fallback",
    )
]
# Its name comes before all others, so that the numbers of all operators move.
OPERATOR = """- op: aaa_grown
  schema: 'aaa_grown(Tensor self) -> Tensor'
  forms: [function, method, inplace, out]
  kind: structured
  infer: unary
  doc: |
    An operator of a later version.
"""
# On the grown build: what grew is there.
PROGRAM = """
import ctypes
import taeda_tensor_core as taeda
from taeda_tensor_core import library

get = ctypes.pythonapi.PyCapsule_GetPointer
get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
table = get(taeda.abi_capsule(), b"taeda.abi")
size = ctypes.c_size_t.from_address(table).value
version = tuple((ctypes.c_uint32 * 2).from_address(table + 8))
assert (size, version) == ({size}, ({major}, {minor})), (size, version)
assert library.op("aaa_grown") in tuple(library.operators())
"""
# On either build: the simulated device at the path given works.
DEVICE = """
import sys
import taeda_tensor_core as taeda
from taeda_tensor_core import backends

backends.load(sys.argv[1])
x = taeda.arange(12, dtype=taeda.float32).reshape(3, 4)
y = x.to("sim")
for call in (
    lambda t: t + t * 2,
    lambda t: t.exp().sum(1),
    lambda t: t @ t.T,
    lambda t: t.T[::-1].contiguous(),
    lambda t: t.softmax(-1).max(0)[1],
    lambda t: t[:, 1:3].clone().mul_(3),
):
    assert taeda.allclose(call(y).cpu(), call(x)), call
taeda.manual_seed(3)
assert (taeda.rand(1000).to("sim").mean() - 0.5).abs().item() < 0.1
print("the device works")
"""


def run(*command: object, folder: Path | None = None, **environment: str) -> None:
    """Run a command to its end; raises when it fails."""
    print("+", " ".join(str(part) for part in command if "\n" not in str(part)), flush=True)
    subprocess.run([str(part) for part in command], check=True, cwd=folder, env={**os.environ, **environment})


def compile_c(sources: Sequence[Path], library: Path, header: Path) -> None:
    """A plug-in's shared library, against a header."""
    options = ("-std=c11", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-fvisibility=hidden", "-fwrapv")
    run(
        "cc",
        *options,
        "-fno-strict-aliasing",
        f"-I{header.parents[1]}",
        *sources,
        "-o",
        library,
        "-lm",
        "-lpthread",
    )


def compile_device(library: Path, header: Path = ROOT / HEADER) -> None:
    """The simulated device."""
    compile_c(sorted((ROOT / "examples/plugins/taeda-backend-sim/csrc").rglob("*.c")), library, header)


def compile_plugins(folder: Path) -> None:
    """Shared libraries of the tests and of the simulated device, against today's header."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in PLUGINS:
        source = ROOT / "packages/tensor-core/tests/abi" / f"{name}.c"
        compile_c([source], folder / f"lib{name}.so", ROOT / HEADER)
    compile_device(folder / "libsim.so")


def grow(copy: Path) -> tuple[int, int, int]:
    """Append to the copy what a later version may append; returns its version and the size of its table."""
    major, minor, table = grow_header(copy / HEADER)
    family = copy / "packages/tensor-core/ops/unary.yaml"
    family.write_text(
        family.read_text(encoding="utf-8").replace("- op: ", OPERATOR + "- op: ", 1), encoding="utf-8"
    )
    return major, minor, table


def grow_header(header: Path) -> tuple[int, int, int]:
    """Append to every struct that may grow; returns the header's version then and the size of its table."""
    text = header.read_text(encoding="utf-8")
    major, minor = (int(re.search(rf"TAEDA_ABI_{part} (\d+)u", text).group(1)) for part in ("MAJOR", "MINOR"))
    text = text.replace(f"TAEDA_ABI_MINOR {minor}u", f"TAEDA_ABI_MINOR {minor + 1}u")
    growing = re.findall(r"typedef struct (\w+) \{\n  size_t size;", text)
    assert "taeda_api" in growing and len(growing) >= 8, growing
    for struct in growing:
        text = text.replace(
            f"}} {struct};", f"  void (*later_{struct})(void);\n  int64_t later_too;\n}} {struct};"
        )
    header.write_text(text, encoding="utf-8")
    table = max(map(int, re.findall(r"offsetof\(taeda_api, \w+\) == (\d+)", text))) + 8 + 16
    return major, minor + 1, table


def copy_sources(copy: Path, parts: tuple[str, ...] = COPIED) -> None:
    """The files that belong to the repository, at their times, so that a second build is short."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", *parts],
        capture_output=True,
        text=True,
        check=True,
    )
    for name in listed.stdout.split("\n"):
        if name and (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)


def build(copy: Path) -> None:
    """Build the copy's tensor-core in place, for the plainest processor alone."""
    package = copy / "packages/tensor-core"
    settings = {
        "TAEDA_CMAKE_ARGS": "-DTAEDA_ISAS=base",
        "CCACHE_BASEDIR": str(copy),
        "CCACHE_NOHASHDIR": "1",
        "CCACHE_SLOPPINESS": "time_macros,include_file_mtime,include_file_ctime",
    }
    run(sys.executable, "setup.py", "--quiet", "build_ext", "--inplace", folder=package, **settings)


def import_path(copy: Path, parts: tuple[str, ...]) -> str:
    """The path by which the copied packages are found, before what is there already."""
    sources = [str(copy / part / "src") for part in parts if part.startswith("packages/")]
    return os.pathsep.join([*sources, os.environ.get("PYTHONPATH", "")])


def try_beside(tree: Path, folder: Path) -> None:
    """The device of each of two trees, this one and another that is built, on the other's tensor-core."""
    folder.mkdir(parents=True, exist_ok=True)
    here, there = folder / "libhere.so", folder / "libthere.so"
    compile_device(here)
    sources = sorted((tree / "examples/plugins/taeda-backend-sim/csrc").rglob("*.c"))
    compile_c(sources, there, tree / HEADER)
    for plugin, core in ((there, ROOT), (here, tree)):
        path = import_path(core, ("packages/registry", "packages/tensor-core"))
        run(sys.executable, "-c", DEVICE, plugin, PYTHONPATH=path)


def main() -> None:
    """Grow, build and try; any failure ends the program with an error."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument(
        "--beside",
        type=Path,
        help="another state of the repository, built: only try the devices of the two on each other",
    )
    options.add_argument(
        "--folder", type=Path, help="where to build, kept for the next time; default: a temporary one"
    )
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = (chosen.folder or Path(scratch)).resolve()
        if chosen.beside:
            try_beside(chosen.beside.resolve(), folder)
            return
        compile_plugins(folder / "plugins")
        copy = folder / "grown"
        copy_sources(copy)
        major, minor, size = grow(copy)
        run(sys.executable, copy / "tools/checks/abi.py", "--record")
        build(copy)
        path = import_path(copy, COPIED)
        run(sys.executable, "-c", PROGRAM.format(major=major, minor=minor, size=size), PYTHONPATH=path)
        run(sys.executable, "-c", DEVICE, folder / "plugins" / "libsim.so", PYTHONPATH=path)
        tests = [copy / name for name in TESTS]
        rootdir = copy / "packages/tensor-core"
        run(
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("-c", rootdir / "pyproject.toml", "--rootdir", rootdir, *tests),
            PYTHONPATH=path,
            TAEDA_TEST_PLUGINS=str(folder / "plugins"),
        )


if __name__ == "__main__":
    main()
