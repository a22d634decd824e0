"""Three processes on taeda beside three on PyTorch: collective operations, gradients through them, and training."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="what processes find is compared with PyTorch, which is not installed")

WORKER = Path(__file__).with_name("distributed_worker.py")
sys.path.insert(0, str(WORKER.parent))
from test_libraries import agree  # noqa: E402

PROCESSES = 3


def test_three_processes_find_the_same(tmp_path: Path) -> None:
    found = {}
    for library in ("torch", "taeda"):
        command = [
            sys.executable,
            "-W",
            "ignore",
            str(WORKER),
            library,
            str(PROCESSES),
            str(tmp_path / "store"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stderr[-4000:]
        Path(tmp_path, "store").unlink(missing_ok=True)
        files = [tmp_path / f"store.{library}.{rank}" for rank in range(PROCESSES)]
        found[library] = [pickle.loads(file.read_bytes()) for file in files]
    agree(found["taeda"], found["torch"], "processes", 1e-9)
