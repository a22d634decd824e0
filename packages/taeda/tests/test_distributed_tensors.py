"""Tensors that lie over processes, layers and modules made of them: programs of two processes, beside one alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("distributed_tensor_program.py")
PARTS = (
    "meshes", "layouts", "grids", "parallel_layers", "fully_sharded", "flattened", "checkpoints", "shared_states",
    "different_lengths", "recomputed", "exchanges",
)  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
def test_two_processes(part: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "taeda.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [*command, str(PROGRAM), part, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
