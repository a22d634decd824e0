"""Whether wrong calls end the process: runs programs that make them, and lists the calls that did."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

# Requests for absurd sizes fail at once instead of filling the machine. A sanitizer reserves terabytes of addresses for
# itself and has a limit of its own.
MEMORY = 8 << 30
#: The patience of those who say none: for machines on which other tests run as well.
PATIENCE = 600
SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")
LIMITED = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":max_allocation_size_mb=2048"}


def crashes(program: Sequence[str], log: Path, patience: float = PATIENCE) -> list[str]:
    """Calls that ended the process, at most one for each operator.

    Args:
        program: Arguments of the interpreter. Two more follow: the file ``log``, into which the program writes
            ``NUMBER CALL`` before each call, and the number of the operator to begin with.
        log: That file.
        patience: Seconds after which a call counts as one that does not come back.

    Returns:
        A line for each call: what was called, how the process ended and what it said last. A call that has not come
        back in time is among them, and its process killed.

    Raises:
        RuntimeError: The program ended badly before its first call.

    Example::

        crashes(["-m", "taeda_testing.mutated", "1", "2", "cpu"], tmp_path / "call")
    """
    found: list[str] = []
    first = 0
    while True:
        log.write_text("", encoding="utf-8")
        command = [sys.executable, *program, str(log), str(first)]
        status, said = _run(command, log, patience)
        if status == 0:
            return found
        at, _, call = log.read_text(encoding="utf-8").partition(" ")
        if not call:
            raise RuntimeError(f"{program}: {status} before the first call: {said[-2000:]}")
        found.append(f"{call}: {status}: {said[-300:]}")
        first = int(at) + 1


def _run(command: list[str], log: Path, patience: float) -> tuple[int | str, str]:
    """0 or how the process ended, and what it wrote to its standard error."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            env=os.environ | LIMITED,
            preexec_fn=_limit,
        )
        try:
            status = _watched(process, log, patience)
        finally:
            process.kill()
            process.wait()
        said.seek(0)
        return status, said.read()


def _watched(process: subprocess.Popen[bytes], log: Path, patience: float) -> int | str:
    """How the process ended by itself, or that its call under way did not."""
    call, since = log.read_text(encoding="utf-8"), time.monotonic()
    while True:
        try:
            status = process.wait(1)
            return f"ended with {status}" if status else 0
        except subprocess.TimeoutExpired:
            if (now := log.read_text(encoding="utf-8")) != call:
                call, since = now, time.monotonic()
            elif time.monotonic() - since > patience:
                return f"did not end within {patience} s"


def _limit() -> None:
    if not SANITIZED:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
