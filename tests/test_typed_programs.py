"""The programs that type checkers are shown (tests/typing, checked by lint) also run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = sorted(Path(__file__).parent.joinpath("typing").glob("*.py"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program_runs(path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-W", "error", str(path)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
