"""A folder of installed strangers for each test, and the simulated accelerator compiled for it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from strangers import EXAMPLES, Site

import taeda_registry

FLAGS = ["-std=c11", "-O1", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-strict-aliasing", "-fwrapv"]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """An empty site."""
    folder = tmp_path / "site"
    folder.mkdir()
    return Site(folder)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package's folder with the library in it."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("needs a C compiler")
    folder = tmp_path_factory.mktemp("sim") / "taeda_backend_sim"
    shutil.copytree(
        EXAMPLES / "taeda-backend-sim" / "src" / "taeda_backend_sim",
        folder,
        ignore=shutil.ignore_patterns("*.so"),
    )
    sources = sorted(map(str, (EXAMPLES / "taeda-backend-sim" / "csrc").rglob("*.c")))
    include = f"-I{taeda_registry.include_dir()}"
    command = [compiler, *FLAGS, include, *sources, "-o", str(folder / "libsim.so"), "-lm", "-lpthread"]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return folder


@pytest.fixture
def sim(site: Site, built: Path) -> Site:
    """A site where the device is installed."""
    site.install("taeda-backend-sim", {"taeda.backends": {"sim": "taeda_backend_sim"}})
    site.paths.append(built.parent)
    return site
