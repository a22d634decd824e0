"""Whether wrong calls end the process: runs programs that make them, and lists the calls that did."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

# Requests for absurd sizes fail at once instead of filling the machine. A sanitizer reserves terabytes of addresses for
# itself and has a limit of its own.
MEMORY = 8 << 30
SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")
LIMITED = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":max_allocation_size_mb=2048"}


def crashes(program: Sequence[str], log: Path) -> list[str]:
    """Calls that ended the process, at most one for each operator.

    Args:
        program: Arguments of the interpreter. Two more follow: the file ``log``, into which the program writes
            ``NUMBER CALL`` before each call, and the number of the operator to begin with.
        log: That file.

    Returns:
        A line for each call: what was called, how the process ended and what it said last.

    Raises:
        RuntimeError: The program ended badly before its first call.

    Example::

        crashes(["-m", "taeda_testing.mutated", "1", "2", "cpu"], tmp_path / "call")
    """
    found: list[str] = []
    first = 0
    while True:
        log.write_text("")
        command = [sys.executable, *program, str(log), str(first)]
        done = subprocess.run(
            command, capture_output=True, text=True, env=os.environ | LIMITED, preexec_fn=_limit, check=False
        )
        if done.returncode == 0:
            return found
        at, _, call = log.read_text().partition(" ")
        if not call:
            raise RuntimeError(
                f"{program}: ended with {done.returncode} before the first call: {done.stderr[-2000:]}"
            )
        found.append(f"{call}: ended with {done.returncode}: {done.stderr[-300:]}")
        first = int(at) + 1


def _limit() -> None:
    if not SANITIZED:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
