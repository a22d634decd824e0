"""The element-wise loops of every instruction set give the same bits: each in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHILD = Path(__file__).with_name("isa_bits.py")
ISAS = ("base", "avx2", "avx512")  # what a machine does not have counts as the best that it has


@pytest.fixture(scope="module")
def digests():
    """By instruction set: digest by name."""
    found = {}
    for isa in ISAS:
        environment = {**os.environ, "TAEDA_ISA": isa, "OMP_NUM_THREADS": "1"}
        run = subprocess.run(
            [sys.executable, CHILD],
            capture_output=True,
            text=True,
            timeout=1800,
            env=environment,
            check=False,
        )
        assert run.returncode == 0, run.stderr[-2000:]
        found[isa] = dict(line.split("\t") for line in run.stdout.splitlines())
    return found


@pytest.mark.parametrize("isa", ISAS[1:])
def test_the_same_bits_by_every_instruction_set(digests, isa):
    assert len(digests["base"]) > 500
    assert digests[isa].keys() == digests["base"].keys()
    assert [name for name, found in digests[isa].items() if found != digests["base"][name]] == []
