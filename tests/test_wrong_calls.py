"""No wrong call ends the process, and none that is accepted does so when it is differentiated."""

from __future__ import annotations

from taeda_testing.survival import crashes

SEED = 20261121


def test_no_mutated_call_ends_the_process(tmp_path):
    print("seed", SEED)
    assert crashes(["-m", "taeda_testing.mutated", str(SEED), "1", "cpu"], tmp_path / "call") == []
