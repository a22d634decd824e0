"""Read-only memory: no operator writes to it, whichever of its arguments the schema says it writes to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import taeda

PROGRAM = Path(__file__).parent / "readonly_calls.py"


@pytest.mark.parametrize("kind", ["array", "map"])
def test_what_operators_write_is_refused_where_it_is_read_only(tmp_path: Path, kind: str) -> None:
    command = [sys.executable, str(PROGRAM), kind, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\nlast call: {done.stderr[-200:]}"
    print(done.stdout)
    assert "not called:\n" in done.stdout, done.stdout


def test_statistics_in_read_only_memory_may_be_read(tmp_path: Path) -> None:
    np.zeros(3, np.float32).tofile(tmp_path / "mean")
    mean = taeda.from_numpy(np.memmap(tmp_path / "mean", np.float32, "r"))
    x, var = taeda.ones(2, 3), taeda.ones(3)
    version = var._version
    still = taeda.nn.functional.batch_norm(x, mean, var, training=False)
    assert still.shape == (2, 3)
    with pytest.raises(RuntimeError, match=r"batch_norm.*'running_mean' is read-only memory"):
        taeda.nn.functional.batch_norm(x, mean, var, training=True)
    assert var.tolist() == [1.0] * 3 and var._version == version
