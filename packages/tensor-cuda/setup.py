"""Compiles the plug-in's library: host code by the C++ compiler, kernels by it and by nvcc.

Kernels (csrc/kernels/*.cu) are compiled twice: for the host, where the simulated driver runs them, and for devices, as
images that lie in the library. TAEDA_CUDA_ARCHITECTURES says for which devices, as in "80;90;100"; what is not named is
reached by the PTX of the lowest one. "none" leaves the images out, so that only the simulated driver works.
TAEDA_CUDA_SANITIZE=address,undefined compiles the host's side, kernels of the simulated driver included, for these
sanitizers (docs/design/cuda.md).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

import taeda_registry

ROOT = Path(__file__).resolve().parent
# The arithmetic that the cpu's loops are made of.
SCALAR = ROOT.parent / "tensor-core" / "src"
# PTX of the first runs on all later devices; the H200 gets code of its own.
VIRTUAL, DEFAULT = "80", "90"
DEFINITIONS = ["-DTAEDA_ISA=device"]
INCLUDES = ["-Icsrc", f"-I{SCALAR}", f"-I{taeda_registry.include_dir()}"]
HOST = ["-std=c++20", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wno-parentheses"]
HOST += ["-fno-strict-aliasing", "-fwrapv", "-ffp-contract=off", *DEFINITIONS, *INCLUDES]
SANITIZERS = os.environ.get("TAEDA_CUDA_SANITIZE")
SANITIZED = [f"-fsanitize={SANITIZERS}", "-fno-sanitize-recover=all", "-g1"] if SANITIZERS else []
HOST += SANITIZED
DEVICE = [
    "-fatbin",
    "-std=c++20",
    "-O3",
    "-fmad=false",
    "--expt-relaxed-constexpr",
    "-Xfatbin",
    "-compress-all",
]
DEVICE += [
    "-Werror",
    "cross-execution-space-call",
    "-diag-suppress",
    "1046,1675",
    "-DTAEDA_HD=__host__ __device__",
]
DEVICE += ["-DTAEDA_TABLE=static constexpr __device__", "-Icsrc/kernels/device", *DEFINITIONS, *INCLUDES]


def nvcc() -> str | None:
    """The compiler for devices: of CUDA_HOME, on the path, or where NVIDIA's installers put it."""
    home = os.environ.get("CUDA_HOME")
    places = [f"{home}/bin/nvcc"] if home else []
    found = shutil.which("nvcc")
    places += [found] if found else []
    places += ["/usr/local/cuda/bin/nvcc"]
    return next((place for place in places if Path(place).is_file()), None)


def architectures() -> list[str]:
    """What nvcc is told of the devices to compile for; empty: none."""
    wanted = os.environ.get("TAEDA_CUDA_ARCHITECTURES") or DEFAULT
    if wanted == "none":
        return []
    numbers = sorted(wanted.replace(",", ";").split(";"), key=int)
    virtual = min([VIRTUAL, numbers[0]], key=int)
    codes = ",".join([*(f"sm_{number}" for number in numbers), f"compute_{virtual}"])
    return ["-gencode", f"arch=compute_{virtual},code=[{codes}]"]


def stale(target: Path, command: list[str]) -> bool:
    """Whether a file has to be made (anew): its command or something that it was made of has changed."""
    needs, said = target.with_suffix(".d"), target.with_suffix(".command")
    if not (target.is_file() and needs.is_file() and said.is_file()) or said.read_text(
        encoding="utf-8"
    ) != " ".join(command):
        return True
    words = needs.read_text(encoding="utf-8").replace("\\\n", " ").split(":", 1)[1].split()
    made = target.stat().st_mtime
    return any(not Path(word).is_file() or Path(word).stat().st_mtime > made for word in words)


def run_time_headers() -> list[tuple[str, Path, bool]]:
    """What the text of kernels that are written at run time includes, with what it includes: names and files.

    Those with True stand in the place of the host's headers, and of one of the tensor core's, for NVRTC.
    """
    roots = [Path("csrc"), SCALAR, Path(taeda_registry.include_dir())]
    stand_ins = Path("csrc/kernels/runtime")
    families = ["arith", "compare", "unary", "activation"]
    wanted = ["kernels/fused_fold.h", "kernels/functors.inc", "kernels/own.h", "kernels/own.inc"]
    wanted += [f"scalar/{family}.{kind}" for family in families for kind in ("h", "inc")]
    found: dict[str, Path] = {}
    while wanted:
        name = wanted.pop()
        path = next((root / name for root in roots if (root / name).is_file()), None)
        if name in found or path is None:
            continue
        found[name] = path.resolve()
        wanted += re.findall(r'#include "([^"]+)"', path.read_text(encoding="utf-8"))
    own = [path for path in sorted(stand_ins.rglob("*")) if path.is_file()]
    listed = [(str(path.relative_to(stand_ins)), path.resolve(), True) for path in own]
    return listed + [(name, path, False) for name, path in sorted(found.items())]


def assembled(compiler: str, source: Path, named: dict[str, Path]) -> Path:
    """An object that holds files, each under its name and ended by a zero."""
    text = '.section .rodata,"a"\n'
    for name, path in named.items():
        text += f'.balign 16\n.globl {name}\n.hidden {name}\n{name}:\n.incbin "{path}"\n.byte 0\n'
    source.write_text(text + '.section .note.GNU-stack,"",%progbits\n', encoding="utf-8")
    target = source.with_suffix(".o")
    subprocess.run([compiler, "-c", str(source), "-o", str(target)], check=True)
    return target


class BuildLibrary(build_ext):
    """A plain shared library: it knows nothing of Python, so its name has no tag of an interpreter."""

    def get_ext_filename(self, fullname: str) -> str:
        """Where the library lies in the package."""
        return fullname.replace(".", "/") + ".so"

    def get_export_symbols(self, ext: Extension) -> list[str]:
        """None: what is exported is marked in the code."""
        return []

    def build_extension(self, ext: Extension) -> None:
        """Compiles what has changed, several files at a time, and links all of it."""
        # An editable build's own folder is gone when it ends, and what was compiled with it.
        kept = ROOT / "build" if self.editable_mode else Path(self.build_temp).resolve()
        folder = kept / "cuda"
        folder.mkdir(parents=True, exist_ok=True)
        compiler = os.environ.get("CXX") or (sysconfig.get_config_var("CXX") or "c++").split()[0]
        made: list[tuple[Path, list[str]]] = []
        objects: list[Path] = []
        kernels = sorted(Path("csrc/kernels").glob("*.cu"))
        chosen = architectures()
        device = nvcc() if chosen else None
        images: list[Path] = []
        for source in kernels:
            target = folder / f"{source.stem}.fatbin"
            if device:
                images.append(target)
                made.append((target, [device, *DEVICE, *chosen, str(source), "-o", str(target)]))
        listed = folder / "images.inc"
        text = "".join(f"TAEDA_IMAGE({image.stem})\n" for image in images)
        if not listed.is_file() or listed.read_text(encoding="utf-8") != text:
            listed.write_text(text, encoding="utf-8")
        texts = self._embedded_headers(compiler, folder)
        for source in [*kernels, *sorted(Path("csrc").rglob("*.cpp"))]:
            target = folder / (str(source.with_suffix("")).replace("/", "_") + ".o")
            objects.append(target)
            extra = ["-O1"] if source.suffix == ".cu" else ["-O2", f'-DTAEDA_IMAGES="{listed}"']
            if source.name == "headers.cpp":
                extra.append(f'-DTAEDA_HEADERS="{folder / "headers.inc"}"')
            made.append(
                (target, [compiler, *HOST, *extra, "-x", "c++", "-c", str(source), "-o", str(target)])
            )
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            list(pool.map(self._make, made))
        objects += [texts, *([self._embedded(compiler, folder, images)] if images else [])]
        library = Path(self.get_ext_fullpath(ext.name))
        library.parent.mkdir(parents=True, exist_ok=True)
        # Beside it first: a process may have the old one open.
        beside = library.with_suffix(".new")
        flags = [
            "-shared",
            *(SANITIZED or ["-Wl,-z,defs"]),
            "-o",
            str(beside),
            *map(str, objects),
            "-ldl",
            "-lpthread",
        ]
        subprocess.run([compiler, *flags], check=True)
        beside.replace(library)

    @staticmethod
    def _make(step: tuple[Path, list[str]]) -> None:
        target, command = step
        if stale(target, command):
            begin = time.time()
            subprocess.run([*command, "-MMD", "-MF", str(target.with_suffix(".d"))], check=True)
            os.utime(target, (begin, begin))  # what changes while it is compiled is newer
            target.with_suffix(".command").write_text(" ".join(command), encoding="utf-8")

    @staticmethod
    def _embedded(compiler: str, folder: Path, images: list[Path]) -> Path:
        """An object that holds the images, each under the name that driver/images.cpp knows."""
        named = {f"taeda_image_{image.stem}": image for image in images}
        return assembled(compiler, folder / "images.S", named)

    @staticmethod
    def _embedded_headers(compiler: str, folder: Path) -> Path:
        """The same of the text of headers, with the list of their names that driver/headers.cpp reads."""
        named, listed = {}, ""
        for number, (name, path, device) in enumerate(run_time_headers()):
            symbol = f"taeda_header_{number}"
            named[symbol] = path
            listed += f'TAEDA_{"DEVICE_" * device}HEADER({symbol}, "{name}")\n'
        target = folder / "headers.inc"
        if not target.is_file() or target.read_text(encoding="utf-8") != listed:
            target.write_text(listed, encoding="utf-8")
        return assembled(compiler, folder / "headers.S", named)


class AnyPython(bdist_wheel):
    """One wheel for every Python on this platform."""

    def get_tag(self) -> tuple[str, str, str]:
        """Neither a version of Python nor its ABI."""
        return "py3", "none", super().get_tag()[2]


library = Extension("taeda_tensor_cuda.libtaeda_cuda", sources=[], language="c++")
setup(ext_modules=[library], cmdclass={"build_ext": BuildLibrary, "bdist_wheel": AnyPython})
