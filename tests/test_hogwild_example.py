"""Processes that share a network's parameters learn the digits, however they start."""

import subprocess
import sys
from pathlib import Path

import pytest

MAIN = Path(__file__).parents[1] / "examples" / "hogwild" / "main.py"


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_two_processes_learn_the_digits(method):
    done = subprocess.run(
        [sys.executable, str(MAIN), "--num-processes", "2", "--start-method", method],
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.stderr == "" and done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert len({line.split()[1] for line in lines if line.startswith("process ")}) == 2
    assert done.stdout.count(" epoch ") == 24  # whose lines may run into each other
