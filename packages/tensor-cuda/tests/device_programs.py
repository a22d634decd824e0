"""Programs of tests, each in a process of its own, as a device is loaded once."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap


def run(program: str, head: str = "", driver: str = "simulated", **environment: str) -> str:
    """What a program prints; it must end well, and without a warning."""
    given = {**os.environ, "TAEDA_CUDA_DRIVER": driver, **environment}
    command = [sys.executable, "-W", "error", "-c", head + textwrap.dedent(program)]
    made = subprocess.run(command, capture_output=True, text=True, env=given, check=False, timeout=600)
    assert made.returncode == 0, made.stderr
    return made.stdout


def check(program: str, head: str, least: int, seed: int = 1, **environment: str) -> None:
    """Runs a program whose head takes a SEED and counts in `tried` what was compared: so many at least."""
    print(f"seed {seed}")
    text = textwrap.dedent(program) + f"\nassert tried >= {least}, tried\n"
    run(text, head.replace("SEED", str(seed)), **environment)
