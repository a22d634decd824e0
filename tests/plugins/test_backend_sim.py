"""The simulated accelerator: compiled here against one header, then used as a stranger's package."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from strangers import EXAMPLES, Site

import taeda_registry

FOLDER = EXAMPLES / "taeda-backend-sim"
FLAGS = ["-std=c11", "-O1", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-strict-aliasing", "-fwrapv"]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package's folder with the library in it."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("needs a C compiler")
    folder = tmp_path_factory.mktemp("sim") / "taeda_backend_sim"
    shutil.copytree(FOLDER / "src" / "taeda_backend_sim", folder, ignore=shutil.ignore_patterns("*.so"))
    sources = sorted(map(str, (FOLDER / "csrc").glob("*.c")))
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


def test_its_binary_has_c_symbols_only(built):
    listed = subprocess.run(
        ["nm", "-DC", str(built / "libsim.so")], capture_output=True, text=True, check=True
    ).stdout
    symbols = [line.split()[-1].partition("@")[0] for line in listed.splitlines()]
    ours = sorted(s for s in symbols if "taeda" in s or s.startswith("sim_"))
    assert ours == ["sim_fail", "sim_hold", "sim_resume", "taeda_plugin_describe"]
    assert not [line for line in listed.splitlines() if "::" in line or "(" in line]


def test_the_host_cannot_read_its_memory(sim):
    program = """
        import ctypes, taeda
        x = taeda.ones(4).to("sim")
        print(x.cpu().tolist(), flush=True)
        ctypes.string_at(x.data_ptr(), 4)
    """
    result = sim.run(program)
    assert result.stdout == "[1.0, 1.0, 1.0, 1.0]\n"
    assert result.returncode == -11, result.stderr


def test_there_are_two_devices(sim):
    program = """
        import taeda
        x = taeda.ones(2, device="sim:1")
        print(x.device, (x + x).to("sim:0").device, (x + x).to("sim:0").cpu().tolist())
        print(taeda.backends.device_count("sim"), taeda.backends.properties("sim:1")["name"])
        try:
            x + x.to("sim:0")
        except RuntimeError as error:
            print("same device" in str(error))
    """
    assert sim.lines(program) == ["sim:1 sim:0 [2.0, 2.0]", "2 simulated device 1", "True"]
