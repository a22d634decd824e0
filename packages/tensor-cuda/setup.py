"""Compiles the plug-in's library: host code by the C++ compiler, kernels by it and by nvcc.

Kernels (csrc/kernels/*.cu) are compiled twice: for the host, where the simulated driver runs them, and for devices, as
images that lie in the library. TAEDA_CUDA_ARCHITECTURES says for which devices, as in "80;90;100"; what is not named is
reached by the PTX of the lowest one. "none" leaves the images out, so that only the simulated driver works.
TAEDA_CUDA_SANITIZE=address,undefined compiles the host's side, kernels of the simulated driver included, for these
sanitizers (docs/design/cuda.md).
"""

from __future__ import annotations

import os
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
        for source in [*kernels, *sorted(Path("csrc").rglob("*.cpp"))]:
            target = folder / (str(source.with_suffix("")).replace("/", "_") + ".o")
            objects.append(target)
            extra = ["-O1"] if source.suffix == ".cu" else ["-O2", f'-DTAEDA_IMAGES="{listed}"']
            made.append(
                (target, [compiler, *HOST, *extra, "-x", "c++", "-c", str(source), "-o", str(target)])
            )
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            list(pool.map(self._make, made))
        objects += [self._embedded(compiler, folder, images)] if images else []
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
        source, target = folder / "images.S", folder / "images.o"
        text = '.section .rodata,"a"\n'
        for image in images:
            name = f"taeda_image_{image.stem}"
            text += f'.balign 16\n.globl {name}\n.hidden {name}\n{name}:\n.incbin "{image}"\n'
        source.write_text(text + '.section .note.GNU-stack,"",%progbits\n', encoding="utf-8")
        subprocess.run([compiler, "-c", str(source), "-o", str(target)], check=True)
        return target


class AnyPython(bdist_wheel):
    """One wheel for every Python on this platform."""

    def get_tag(self) -> tuple[str, str, str]:
        """Neither a version of Python nor its ABI."""
        return "py3", "none", super().get_tag()[2]


library = Extension("taeda_tensor_cuda.libtaeda_cuda", sources=[], language="c++")
setup(ext_modules=[library], cmdclass={"build_ext": BuildLibrary, "bdist_wheel": AnyPython})
