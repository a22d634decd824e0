"""Libraries made for a test in the place of the driver's and of NVIDIA's others."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def build(folder: Path, texts: dict[str, str], *options: str) -> Path:
    """Compiles each text, in C, to the library of its name; with options for the compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    for name, text in texts.items():
        source = folder / f"{name}.c"
        source.write_text(text)
        command = [compiler, "-w", "-shared", "-fPIC", *options, str(source), "-o", name, "-lm"]
        subprocess.run(command, cwd=folder, check=True)
    return folder
