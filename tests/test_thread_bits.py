"""The same bits with one, two and four threads: every record, and what libraries of vendors compute."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHILD = Path(__file__).with_name("thread_bits.py")
COUNTS = (1, 2, 4)


def by_vendor(name):
    """Convolutions in float32 and the halves, unless deterministic algorithms are asked for: oneDNN cuts their sums by
    the number of threads (docs/design/core.md)."""
    return name.startswith("conv") and "float64" not in name


@pytest.fixture(scope="module")
def digests():
    """By number of threads: digest by name."""
    found = {}
    for count in COUNTS:
        environment = {**os.environ, "OMP_NUM_THREADS": str(count)}
        run = subprocess.run(
            [sys.executable, CHILD, str(count)], capture_output=True, text=True, timeout=1800, env=environment
        )
        assert run.returncode == 0, run.stderr[-2000:]
        found[count] = dict(line.split("\t") for line in run.stdout.splitlines())
    return found


def test_the_same_bits_whatever_the_number_of_threads(digests):
    names = digests[1].keys()
    assert len(names) > 500
    print(len(names), "computations, each under", COUNTS, "threads")
    assert all(digests[count].keys() == names for count in COUNTS)
    different = [n for n in names if len({digests[count][n] for count in COUNTS}) > 1]
    print("different:", different)
    assert not [n for n in different if not by_vendor(n)]
