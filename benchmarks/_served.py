"""A process for each library, so that the waiting threads of one are no load for the other."""

from __future__ import annotations

import subprocess
import sys


class Served:
    """A process that runs ``SCRIPT --serve ARGUMENT...``: it says one line when it is ready, then answers each line."""

    def __init__(self, script: str, *arguments: str) -> None:
        command = [sys.executable, script, "--serve", *arguments]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._answer()

    def _answer(self) -> str:
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"exit status {self._process.wait()}")
        return line.rstrip("\n")

    def ask(self, *words: object) -> str:
        """What the process answers.

        Raises:
            RuntimeError: It has ended.
        """
        print(*words, file=self._process.stdin, flush=True)
        return self._answer()

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.stdin.close()
        self._process.wait()
