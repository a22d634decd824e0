"""The build step of setuptools for extensions of C++."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from typing import Any

from setuptools import Extension
from setuptools.command.build_ext import build_ext

from taeda.utils import _cuda_toolkit
from taeda.utils.cpp_extension import FLAGS


class BuildExtension(build_ext):
    """Builds extensions of C++ and CUDA; the standard, the visibility of names and `TAEDA_EXTENSION_NAME` are added."""

    def __init__(self, *args: Any, no_python_abi_suffix: bool = False, **kwargs: Any) -> None:
        kwargs.pop("use_ninja", None)
        super().__init__(*args, **kwargs)
        self._plain_suffix = no_python_abi_suffix

    @classmethod
    def with_options(cls, **options: Any) -> type[BuildExtension]:
        """The class with options given: `no_python_abi_suffix` (the file's name has no tag of Python's)."""

        class WithOptions(cls):  # type: ignore[valid-type, misc]
            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__(*args, **{**kwargs, **options})

        return WithOptions

    def build_extension(self, ext: Extension) -> None:
        """Build one, with what it needs beside its own options."""
        own = ext.extra_compile_args or []
        flags = own.get("cxx", []) if isinstance(own, dict) else own
        device_flags = own.get("nvcc", []) if isinstance(own, dict) else []
        name = ext.name.rpartition(".")[2]
        defined = [f"-DTAEDA_EXTENSION_NAME={name}", f"-DTORCH_EXTENSION_NAME={name}"]
        ext.extra_compile_args = [*FLAGS, *defined, *flags]
        host = self.compiler._compile
        if any(str(source).endswith(".cu") for source in ext.sources):
            self.compiler.src_extensions = [*self.compiler.src_extensions, ".cu"]
            self.compiler._compile = _compiled_by_kind(host, [*defined, *device_flags])
        try:
            super().build_extension(ext)
        finally:
            self.compiler._compile = host

    def get_ext_filename(self, fullname: str) -> str:
        """Name of the file of a module."""
        name = super().get_ext_filename(fullname)
        if not self._plain_suffix:
            return name
        first, *_, last = name.split(".")
        return f"{first}.{last}"


def _compiled_by_kind(host: Callable[..., None], device_flags: Sequence[str]) -> Callable[..., None]:
    """The step of setuptools' compiler: nvcc for sources of CUDA, the host's compiler for others."""
    command = _cuda_toolkit.command(device_flags)

    def compile_one(
        made: str, source: str, suffix: str, flags: list[str], after: list[str], options: list[str]
    ) -> None:
        if suffix != ".cu":
            host(made, source, suffix, flags, after, options)
            return
        # `options` has the folders of headers and what is defined; the rest is the host's.
        subprocess.run([*command, *options, "-c", source, "-o", made], check=True)

    return compile_one
