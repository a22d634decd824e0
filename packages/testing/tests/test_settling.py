"""Checks are repeated until they hold, and what is counted is a process's own."""

import gc
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from taeda_testing.settling import (
    children,
    descriptors,
    eventually,
    shared_names,
    shared_names_since,
    without_collector,
)


def test_a_check_is_repeated_until_it_holds():
    rounds = iter(range(10))

    def in_the_fourth():
        number = next(rounds)
        assert number == 3
        return number

    assert eventually(in_the_fourth) == 3


def test_what_never_holds_fails_with_the_last_reason():
    rounds = []

    def never():
        rounds.append(1)
        assert not rounds, f"round {len(rounds)}"

    with pytest.raises(AssertionError) as info:
        eventually(never, within=0.05)
    assert len(rounds) > 2 and f"round {len(rounds)}" in str(info.value)


def test_other_errors_are_raised_at_once():
    rounds = []

    def broken():
        rounds.append(1)
        raise KeyError("broken")

    with pytest.raises(KeyError):
        eventually(broken)
    assert len(rounds) == 1


def test_children_are_those_that_nobody_has_waited_for():
    process = subprocess.Popen([sys.executable, "-c", ""])
    assert process.pid in children()
    process.wait()
    assert process.pid not in children()


def test_descriptors_are_told_with_what_they_stand_for(tmp_path):
    before = descriptors()
    with open(tmp_path / "file", "wb") as file:
        assert descriptors() == {**before, file.fileno(): str(tmp_path / "file")}
    assert descriptors() == before


STRANGER = """
import mmap, sys
with open(sys.argv[1], "w+b") as file:
    file.truncate(100)
    held = mmap.mmap(file.fileno(), 100)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("stranger", [False, True])
def test_names_of_other_programs_do_not_count(stranger):
    name = f"taeda_test_{uuid.uuid4().hex}"
    before, path = shared_names(), Path("/dev/shm", name)
    process = subprocess.Popen(
        [sys.executable, "-c", STRANGER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=stranger,
    )
    try:
        assert process.stdout.readline() == b"ready\n"
        assert name in shared_names()
        assert (name in shared_names_since(before)) is not stranger
    finally:
        process.communicate()
        path.unlink()
    assert name not in shared_names_since(before)


def test_nothing_is_collected_within():
    assert gc.isenabled()
    with without_collector():
        assert not gc.isenabled()
        with without_collector():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
