"""Build step for packages with native code: setuptools drives CMake and Ninja.

Used by this package's own ``setup.py`` and, installed, by packages that link ``libtaeda``. It imports nothing of the
library, so that it also works while the library is being built.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

from setuptools import Extension
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

Definitions = dict[str, str]


class Project:
    """One CMake project that fills a Python package.

    Args:
        root: Folder with ``CMakeLists.txt`` and ``setup.py``.
        package: Import name of the package, found below ``src``.
        definitions: Returns the ``-D`` variables; called when the build starts.
        generate: Writes the generated sources into ``root / "generated"``; called before a build and before an
            sdist is packed. It does nothing where the sources came with an sdist.
        notices: Returns licence texts of the vendor libraries that travel in the package, by file name.
    """

    def __init__(
        self,
        root: Path,
        package: str,
        definitions: Callable[[], Definitions],
        generate: Callable[[], None],
        notices: Callable[[], dict[str, Path]] = dict,
    ) -> None:
        self.root = root
        self.package = package
        self.definitions = definitions
        self.generate = generate
        self.notices = notices

    def setup_arguments(self) -> dict[str, object]:
        """Arguments for ``setuptools.setup``."""
        project = self

        class CMakeBuild(build_ext):
            def run(self) -> None:
                in_place = bool(self.inplace or getattr(self, "editable_mode", False))
                base = project.root / "src" if in_place else Path(self.build_lib).resolve()
                project.build(base / project.package, strip=not in_place)

        class SourcesWithGenerated(sdist):
            def run(self) -> None:
                project.generate()
                super().run()

        return {
            "ext_modules": [Extension(f"{self.package}._C", sources=[])],
            "cmdclass": {"build_ext": CMakeBuild, "sdist": SourcesWithGenerated},
        }

    def build(self, prefix: Path, *, strip: bool) -> None:
        """Generate, configure, compile what changed, and install into ``prefix``."""
        self.generate()
        folder = self.build_folder()
        folder.mkdir(parents=True, exist_ok=True)
        variables = {
            "CMAKE_BUILD_TYPE": "Release",
            "CMAKE_MAKE_PROGRAM": _tool("ninja"),
            "TAEDA_PYTHON": sys.executable,
            "TAEDA_GENERATED": str(self.root / "generated"),
            "TAEDA_SANITIZE": sanitizer(),
            **self.definitions(),
        }
        extra = os.environ.get("TAEDA_CMAKE_ARGS", "").split()
        cmake = _tool("cmake")
        _run(
            [
                cmake,
                *("-S", str(self.root), "-B", str(folder), "-G", "Ninja"),
                *(f"-D{name}={value}" for name, value in variables.items()),
                *extra,
            ]
        )
        _run([cmake, "--build", str(folder), "--parallel", str(jobs())])
        for stale in ("include", "lib", "ops"):
            shutil.rmtree(prefix / stale, ignore_errors=True)
        stripping = ["--strip"] if strip and not sanitizer() else []
        _run([cmake, "--install", str(folder), "--prefix", str(prefix), *stripping])
        for name, text in self.notices().items():
            folder = prefix / "lib" / "licenses"
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(text, folder / name)

    def build_folder(self) -> Path:
        """Where objects are kept between builds, one folder per interpreter and kind of build."""
        tag = f"{sys.implementation.cache_tag}-{sysconfig.get_platform()}"
        return self.root / "build" / (f"{tag}-{sanitizer()}" if sanitizer() else tag)


def sanitizer() -> str:
    """What ``TAEDA_SANITIZE`` asks for: ``address`` (with undefined behaviour; also ``1``), ``thread``, or nothing.

    Raises:
        ValueError: It asks for something else.
    """
    given = os.environ.get("TAEDA_SANITIZE", "0")
    known = {"": "", "0": "", "1": "address", "address": "address", "thread": "thread"}
    if given not in known:
        raise ValueError(f"TAEDA_SANITIZE is {given!r}, expected one of {', '.join(sorted(known))}")
    return known[given]


def jobs() -> int:
    """Number of compilers to run at once: ``CMAKE_BUILD_PARALLEL_LEVEL``, or the processors this process may use."""
    given = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL")
    return int(given) if given else len(os.sched_getaffinity(0))


def without(library: str) -> bool:
    """Whether ``TAEDA_WITHOUT`` (comma-separated) excludes a vendor library from the build."""
    return library in {name.strip() for name in os.environ.get("TAEDA_WITHOUT", "").split(",")}


def run_generator(root: Path, script: str, *arguments: str) -> None:
    """Run one of the repository's generators, or accept the output that an sdist carries.

    Raises:
        RuntimeError: Neither the generator nor generated sources are there.
    """
    generator = root.parents[1] / "tools" / "codegen" / script
    output = root / "generated"
    if generator.is_file():
        _run([sys.executable, str(generator), *arguments, "--out", str(output)])
    elif not output.is_dir():
        raise RuntimeError(
            f"cannot build {root.name}: neither {generator} nor generated sources in {output} exist"
        )


def _tool(name: str) -> str:
    """Path of a build tool, preferring the one installed beside this interpreter."""
    beside = shutil.which(name, path=sysconfig.get_path("scripts"))
    found = beside or shutil.which(name)
    if found is None:
        raise RuntimeError(f"{name} was not found; pip install {name}")
    return found


def _run(command: list[str]) -> None:
    print("+", " ".join(command), flush=True)
    subprocess.run(command, check=True)
