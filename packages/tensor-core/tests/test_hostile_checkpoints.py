"""Checkpoints changed by chance or made to hurt: each loads or is refused by name, in bounded memory and time.

``TAEDA_FUZZ_FILES`` sets how many changed files are tried (2,400; 10,000 is a longer run).
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("checkpoint_fuzz.py")
SEED = 20261122
COUNT = int(os.environ.get("TAEDA_FUZZ_FILES", "2400"))


def run(*args):
    # A thread more, and there may be one for each core, takes addresses, which are limited.
    one = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(PROGRAM), *args]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=one)


def test_changed_files_load_or_are_refused(tmp_path):
    log = tmp_path / "file"
    done = run("mutated", str(SEED), str(COUNT), str(log))
    print("seed", SEED)
    assert done.returncode == 0, f"seed {SEED}: {log.read_text()[:5000]}: {done.stderr[-3000:]}"
    ends = json.loads(done.stdout)
    print(ends)
    assert sum(ends.values()) == COUNT
    for kind in ("flat", "nested", "zip", "written", "legacy"):
        assert ends[f"{kind} refused"] > COUNT // 20
        assert ends[f"{kind} loaded"] > 0


def names():
    source = PROGRAM.read_text()
    inside = source[source.index("HOSTILE = {") : source.index("}  # fmt: skip")]
    return [line.split('"')[1] for line in inside.splitlines() if line.startswith('    "')]


@pytest.fixture(scope="module")
def ends():
    """What became of each file; a process goes on behind the one that ended it."""
    found = {}
    while len(found) < len(names()):
        done = run("hostile", str(len(found)))
        found |= dict(map(json.loads, done.stdout.splitlines()))
        if len(found) < len(names()):
            found[names()[len(found)]] = f"ended with {done.returncode}: {done.stderr[-2000:]}"
    return found


@pytest.mark.parametrize("name", names())
def test_files_made_to_hurt_are_refused(name, ends):
    assert ends[name].startswith("load: ")
    assert len(ends[name]) < 600
