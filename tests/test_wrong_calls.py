"""No wrong call ends the process, and none that is accepted does so when it is differentiated."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from taeda_testing.survival import crashes

SEED = 20261121


def test_no_mutated_call_ends_the_process(tmp_path):
    print("seed", SEED)
    assert crashes(["-m", "taeda_testing.mutated", str(SEED), "1", "cpu"], tmp_path / "call") == []


def test_no_call_of_a_compiled_function_ends_the_process(tmp_path):
    command = [sys.executable, Path(__file__).with_name("native_calls.py")]
    found = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=True, cwd=tmp_path)
    *ended, last = found.stdout.splitlines()
    assert ended == [] and int(last.split()[0]) > 700
