"""Other people's unmodified libraries on taeda beside PyTorch: a small program over each, and what it finds.

Each program runs in a process of its own, once with each library under the name torch. Libraries that are not
installed are skipped, one by one; nox -s parity installs them.
"""

from __future__ import annotations

import importlib.util
import math
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="the programs are compared with PyTorch, which is not installed")

WORKER = Path(__file__).with_name("libraries_worker.py")
sys.path.insert(0, str(WORKER.parent))
from libraries import LIBRARIES  # noqa: E402

# Numbers of programs in single precision, and of those that stop when they are close enough.
TOLERANCE = 2e-5
LIMIT = 600


def run(library: str, name: str, folder: Path) -> object:
    command = [sys.executable, "-W", "ignore", str(WORKER), library, name, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 0, f"{library}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
    found = pickle.loads(Path(folder, f"{library} {name}").read_bytes())
    assert not (isinstance(found, dict) and "error" in found), f"{library}: {found['error']}"
    return found


def agree(mine: object, theirs: object, where: str, tolerance: float) -> None:
    """Assert that both found the same: texts and whole numbers exactly, others within the tolerance of the largest."""
    if isinstance(theirs, dict):
        assert list(mine) == list(theirs), where
        for key, value in theirs.items():
            agree(mine[key], value, f"{where}[{key!r}]", tolerance)
    elif isinstance(theirs, list):
        assert len(mine) == len(theirs), where
        for place, (a, b) in enumerate(zip(mine, theirs, strict=True)):
            agree(a, b, f"{where}[{place}]", tolerance)
    elif isinstance(theirs, np.ndarray) and theirs.dtype.kind in "fc":
        assert mine.shape == theirs.shape and mine.dtype == theirs.dtype, where
        finite = np.abs(theirs[np.isfinite(theirs)])
        scale = float(finite.max()) if finite.size else 0.0
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=tolerance * scale + 1e-10, err_msg=where)
    elif isinstance(theirs, (float, np.floating)):
        assert math.isclose(mine, theirs, rel_tol=tolerance, abs_tol=1e-10) or (
            mine != mine and theirs != theirs
        ), where
    elif isinstance(theirs, np.ndarray):
        np.testing.assert_array_equal(mine, theirs, err_msg=where)
    else:
        assert mine == theirs, where


@pytest.mark.parametrize("name", sorted(LIBRARIES))
def test_program(name: str, tmp_path: Path) -> None:
    module = LIBRARIES[name][0]
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")
    theirs, mine = run("torch", name, tmp_path), run("taeda", name, tmp_path)
    agree(mine, theirs, name, TOLERANCE)
