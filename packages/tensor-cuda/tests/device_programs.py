"""Programs of tests, each in a process of its own, as a device is loaded once."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

# What many heads begin with: SEED is check()'s, TOLERANCE is filled in by compared().
_COMPARED = """
import numpy as np
import taeda_tensor_core as tc
rng = np.random.default_rng(SEED)
kind = tc.get_device_module("cuda")
tried = 0

def there(value):
    return tc.from_numpy(np.array(value)).to("cuda")

def near(found, expected, tolerance=TOLERANCE):
    global tried
    tried += 1
    found, expected = found.cpu().to(tc.float64).numpy(), np.asarray(expected)
    assert found.shape == expected.shape, (found.shape, expected.shape)
    assert np.allclose(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True), abs(found - expected).max()
"""
_LAUNCHES = """
def counted(work):
    kind = tc.get_device_module("cuda")
    start, end = (kind.Event(enable_timing=True) for _ in range(2))
    start.record()
    result = work()
    end.record()
    end.synchronize()
    return result, round(start.elapsed_time(end) * 1000 / 2)

def launches(work):
    WARM
    return counted(work)[1]
"""


def compared(tolerance: float) -> str:
    """The head of programs that compare results of a device with NumPy's: `there`, `near` and `tried`."""
    return _COMPARED.replace("TOLERANCE", repr(tolerance))


def launches(warm: bool = False) -> str:
    """Source of `launches(work)`: how many a call makes, as one of few items takes two microseconds of simulated time.

    And of `counted(work)`: what the call gives, too. `warm`: launches of a second call.
    """
    return _LAUNCHES.replace("WARM", "work()" if warm else "pass")


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
