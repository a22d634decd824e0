"""The command that measures on a GPU: without one it says so, and writes nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[3] / "tools" / "gpu_check"
# What nvidia-smi says, put in its place.
EMPTY = "#!/bin/sh\necho 'No devices were found'\nexit 6\n"


def run(folder: Path, *tools: str) -> subprocess.CompletedProcess[str]:
    if not TOOL.is_dir():
        pytest.skip("needs the repository, where the command is")
    for text in tools:
        place = folder / "nvidia-smi"
        place.write_text(text)
        place.chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder}:/bin"}
    command = [sys.executable, str(TOOL), "--out", str(folder / "report")]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def test_without_a_driver_it_says_that_there_is_no_gpu(tmp_path: Path) -> None:
    if Path("/bin/nvidia-smi").exists():
        pytest.skip("this machine has a driver of NVIDIA's")
    made = run(tmp_path)
    assert made.returncode == 3 and "there is no GPU on this machine (there is no nvidia-smi" in made.stdout
    assert not (tmp_path / "report").exists()


def test_with_a_driver_and_no_device_it_says_what_the_driver_said(tmp_path: Path) -> None:
    made = run(tmp_path, EMPTY)
    assert made.returncode == 3 and "No devices were found" in made.stdout
    assert not (tmp_path / "report").exists()


def test_all_of_it_can_be_rehearsed_without_a_gpu(tmp_path: Path) -> None:
    if not TOOL.is_dir():
        pytest.skip("needs the repository, where the command is")
    for package in ("taeda", "taeda_models", "taeda_testing"):
        pytest.importorskip(package)
    command = [sys.executable, str(TOOL), "--simulated"]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 2 and "writes no figures of GPUs" in refused.stdout
    made = subprocess.run([*command, "--out", str(tmp_path)], capture_output=True, text=True, check=False)
    report = json.loads(tmp_path.joinpath("gpu.json").read_text())
    assert made.returncode == 0, [part["end"] for part in report["steps"] if part["status"]]
    text = tmp_path.joinpath("gpu.md").read_text()
    assert text.startswith("# A rehearsal on the simulated driver") and "docs" not in made.stdout
    kinds = [row["kind"] for row in report["figures"]]
    assert kinds.count("operator") == 45 and kinds.count("queue") == 8 and kinds.count("training") == 6
    for row in report["figures"]:
        assert "error" not in row, row
        assert f"| {row['name']} |" in text
        if row["kind"] == "training":
            # In steady state the driver is asked for nothing.
            assert row["driver_calls"] == 0 and row["peak_mebibytes"] > 0, row
