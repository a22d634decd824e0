"""Compiles the plug-in's library with nothing but the compiler and taeda's header."""

from __future__ import annotations

from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

import taeda_registry

ROOT = Path(__file__).resolve().parent


class BuildLibrary(build_ext):
    """A plain shared library: it knows nothing of Python, so its name has no tag of an interpreter."""

    def get_ext_filename(self, fullname: str) -> str:
        """Where the library lies in the package."""
        return fullname.replace(".", "/") + ".so"

    def get_export_symbols(self, ext: Extension) -> list[str]:
        """None: what is exported is marked in the code."""
        return []


class AnyPython(bdist_wheel):
    """One wheel for every Python on this platform."""

    def get_tag(self) -> tuple[str, str, str]:
        """Neither a version of Python nor its ABI."""
        return "py3", "none", super().get_tag()[2]


library = Extension(
    "taeda_tensor_cuda.libtaeda_cuda",
    sources=sorted(str(path.relative_to(ROOT)) for path in (ROOT / "csrc").rglob("*.cpp")),
    depends=sorted(str(path.relative_to(ROOT)) for path in (ROOT / "csrc").rglob("*.h")),
    include_dirs=["csrc", taeda_registry.include_dir()],
    extra_compile_args=["-std=c++20", "-O2", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wno-parentheses"],
    libraries=["dl", "pthread"],
    language="c++",
)
setup(ext_modules=[library], cmdclass={"build_ext": BuildLibrary, "bdist_wheel": AnyPython})
