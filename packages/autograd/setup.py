"""Builds the graph engine and the derivative layer with CMake, against the installed taeda-tensor-core."""

from __future__ import annotations

from pathlib import Path

from setuptools import setup

import taeda_tensor_core
from taeda_tensor_core import cmake_build

ROOT = Path(__file__).resolve().parent
CORE = Path(taeda_tensor_core.__file__).resolve().parent


def definitions() -> dict[str, str]:
    """CMake variables: the folder with tensor-core's headers and library."""
    return {"TAEDA_CORE": str(CORE)}


def generate() -> None:
    """Write the sources that follow from the derivative formulas and the operator declarations."""
    cmake_build.run_generator(
        ROOT,
        "generate_autograd.py",
        *("--ops", str(CORE / "ops")),
        *("--derivatives", str(ROOT / "derivatives")),
    )


setup(**cmake_build.Project(ROOT, "taeda_autograd", definitions, generate).setup_arguments())
