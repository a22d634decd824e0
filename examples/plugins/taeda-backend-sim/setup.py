"""Compiles the shared library with nothing but the C compiler and taeda's header."""

from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

import taeda_registry


class BuildLibrary(build_ext):
    """A plain shared library: it knows nothing of Python, so its name has no tag of an interpreter."""

    def get_ext_filename(self, fullname: str) -> str:
        return fullname.replace(".", "/") + ".so"

    def get_export_symbols(self, ext: Extension) -> list[str]:
        return []


class AnyPython(bdist_wheel):
    """One wheel for every Python on this platform."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


library = Extension(
    "taeda_backend_sim.libsim",
    sources=sorted(str(path) for path in Path("csrc").rglob("*.c")),
    depends=sorted(str(path) for path in Path("csrc").glob("*.h")),
    include_dirs=["csrc", taeda_registry.include_dir()],
    extra_compile_args=["-std=c11", "-O2", "-fvisibility=hidden", "-fno-strict-aliasing", "-fwrapv"],
    libraries=["m", "pthread"],
)
setup(ext_modules=[library], cmdclass={"build_ext": BuildLibrary, "bdist_wheel": AnyPython})
