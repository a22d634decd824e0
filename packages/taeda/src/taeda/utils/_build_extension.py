"""The build step of setuptools for extensions of C++."""

from __future__ import annotations

from typing import Any

from setuptools import Extension
from setuptools.command.build_ext import build_ext

from taeda.utils.cpp_extension import FLAGS


class BuildExtension(build_ext):
    """Builds extensions of C++: the standard, the visibility of names, and `TAEDA_EXTENSION_NAME` are added."""

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
        name = ext.name.rpartition(".")[2]
        defined = [f"-DTAEDA_EXTENSION_NAME={name}", f"-DTORCH_EXTENSION_NAME={name}"]
        ext.extra_compile_args = [*FLAGS, *defined, *flags]
        super().build_extension(ext)

    def get_ext_filename(self, fullname: str) -> str:
        """Name of the file of a module."""
        name = super().get_ext_filename(fullname)
        if not self._plain_suffix:
            return name
        first, *_, last = name.split(".")
        return f"{first}.{last}"
