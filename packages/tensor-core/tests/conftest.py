"""What several tests share: compiling C plug-ins."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import taeda_registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

SOURCES = Path(__file__).parent / "abi"


def build(name: str, folder: Path, *options: str) -> Path:
    """A shared library from abi/<name>.c, compiled against the header alone, or one that was made elsewhere."""
    library = folder / f"lib{name}.so"
    if (made := os.environ.get("TAEDA_TEST_PLUGINS")) and not options:
        shutil.copyfile(Path(made) / library.name, library)
        return library
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no compiler: cc is not on the path")
    command = [
        compiler,
        "-std=c11",
        "-O1",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-pedantic",
        "-shared",
        "-fPIC",
        "-fvisibility=hidden",
    ]
    command += [
        *options,
        f"-I{taeda_registry.include_dir()}",
        str(SOURCES / f"{name}.c"),
        "-o",
        str(library),
        "-lm",
        "-lpthread",
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return library


@pytest.fixture
def plugin(tmp_path: Path) -> Callable[..., Path]:
    """`plugin(name, *options)` gives a fresh library from abi/<name>.c."""
    return lambda name, *options: build(name, tmp_path, *options)


@pytest.fixture(scope="session")
def shared_plugin(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """The same, once for all tests: a backend stays registered for the life of the process."""
    made: dict[tuple[str, ...], Path] = {}

    def get(name: str, *options: str) -> Path:
        key = (name, *options)
        if key not in made:
            made[key] = build(name, tmp_path_factory.mktemp(name), *options)
        return made[key]

    return get
