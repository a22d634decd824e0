"""Builds the graph engine and the derivative layer with CMake, against the installed taeda-tensor-core."""

from __future__ import annotations

from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).resolve().parent
# Found without importing it: a build needs no working library, only its headers and declarations.
CORE = Path(find_spec("taeda_tensor_core").origin).resolve().parent


def load_build_module():
    """The build step that tensor-core brings."""
    spec = spec_from_file_location("cmake_build", CORE / "cmake_build.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


cmake_build = load_build_module()


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
