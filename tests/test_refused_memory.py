"""Memory that runs out, wherever: the call says so, what it was given stays, and the next one is right."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def heap(tmp_path_factory):
    library = tmp_path_factory.mktemp("heap") / "refusing_heap.so"
    source = HERE.parent / "tools/refusing_heap.c"
    subprocess.run(
        ["cc", "-O1", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True, timeout=60
    )
    return library


@pytest.mark.parametrize("what", ["records", "programs"])
def test_a_refused_request_for_memory_leaves_all_as_it_was(heap, what):
    seed = os.environ.get("TAEDA_TEST_SEED", "1")
    print("seed", seed)
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "refused_memory.py", what, seed],
        cwd=HERE,
        env=os.environ | {"LD_PRELOAD": str(heap)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == []
