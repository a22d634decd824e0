"""Compiles the recorder with nothing but the compiler and taeda's header."""

from __future__ import annotations

from pathlib import Path

from setuptools import Extension, setup

import taeda_registry

ROOT = Path(__file__).resolve().parent

recorder = Extension(
    "taeda_profiler._C",
    sources=sorted(str(path.relative_to(ROOT)) for path in (ROOT / "csrc").glob("*.cpp")),
    depends=sorted(str(path.relative_to(ROOT)) for path in (ROOT / "csrc").glob("*.h")),
    include_dirs=["csrc", taeda_registry.include_dir()],
    extra_compile_args=["-std=c++20", "-O2", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wno-parentheses"],
    language="c++",
)
setup(ext_modules=[recorder])
