"""Builds libtaeda and the extension module with CMake; everything else stands in pyproject.toml."""

from __future__ import annotations

import importlib.util
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).resolve().parent
PACKAGE = "taeda_tensor_core"


def load_build_module():
    """Load the build step by path: the package it belongs to cannot be imported before it is built."""
    path = ROOT / "src" / PACKAGE / "cmake_build.py"
    spec = importlib.util.spec_from_file_location("cmake_build", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def installed_file(distribution: str, ending: str) -> Path | None:
    """Find a file of an installed distribution, also in the isolated environments that pip makes."""
    try:
        listed = files(distribution) or []
    except PackageNotFoundError:
        return None
    found = next((file for file in listed if file.as_posix().endswith(ending)), None)
    return Path(found.locate()).resolve() if found is not None else None


cmake_build = load_build_module()


def vendor_file(library: str, distribution: str, ending: str) -> Path | None:
    """A file of a vendor library's package, None when the library is not to be used or not there."""
    return None if cmake_build.without(library) else installed_file(distribution, ending)


def pocketfft() -> Path | None:
    """The header of pocketfft, which the package of Pythran carries; it belongs to no vendor and is never left out."""
    return installed_file("pythran", "numpy/fft/pocketfft.hpp")


def pocketfft_licence() -> Path | None:
    """The comment that the header begins with, as a file: its licence."""
    header = pocketfft()
    if header is None:
        return None
    text = ROOT / "build" / "pocketfft-LICENSE.txt"
    text.parent.mkdir(exist_ok=True)
    text.write_text(
        header.read_text(encoding="utf-8").partition("*/")[0].removeprefix("/*").strip() + "\n",
        encoding="utf-8",
    )
    return text


def definitions() -> dict[str, str]:
    """CMake variables: where the vendor libraries are, empty for none."""
    dnnl = vendor_file("onednn", "onednn-devel-cpu-gomp", "include/dnnl.hpp")
    blas = vendor_file("openblas", "scipy-openblas32", "scipy_openblas32/__init__.py")
    fft = pocketfft()
    return {
        "TAEDA_DNNL_ROOT": str(dnnl.parents[1]) if dnnl else "",
        "TAEDA_POCKETFFT_DIR": str(fft.parent) if fft else "",
        "TAEDA_OPENBLAS_ROOT": str(blas.parent) if blas else "",
    }


def notices() -> dict[str, Path]:
    """Licence texts of the vendor libraries in the package."""
    texts = {
        "oneDNN-LICENSE.txt": vendor_file("onednn", "onednn-devel-cpu-gomp", "onednn/LICENSE"),
        "oneDNN-THIRD-PARTY-PROGRAMS.txt": vendor_file(
            "onednn", "onednn-devel-cpu-gomp", "onednn/THIRD-PARTY-PROGRAMS"
        ),
        "OpenBLAS-LICENSE.txt": vendor_file("openblas", "scipy-openblas32", "LICENSE.txt"),
        "pocketfft-LICENSE.txt": pocketfft_licence(),
    }
    return {name: path for name, path in texts.items() if path is not None}


def generate() -> None:
    """Write the sources that follow from the operator declarations."""
    cmake_build.run_generator(ROOT, "generate.py", "--ops", str(ROOT / "ops"))


setup(**cmake_build.Project(ROOT, PACKAGE, definitions, generate, notices).setup_arguments())
