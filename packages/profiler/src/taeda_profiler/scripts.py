"""Running a script as the interpreter would."""

from __future__ import annotations

import contextlib
import os
import runpy
import sys
from collections.abc import Iterator, Sequence


def run_script(script: str, arguments: Sequence[str] = ()) -> None:
    """Runs a script as ``python script arguments`` would; a plain end by ``sys.exit`` is none of the caller's.

    Raises:
        SystemExit: The script ended with another status than 0.
        OSError: It cannot be read.
    """
    with _command_line(script, arguments):
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit as end:
            if end.code not in (None, 0):
                raise


@contextlib.contextmanager
def _command_line(script: str, arguments: Sequence[str]) -> Iterator[None]:
    argv, path = sys.argv, list(sys.path)
    sys.argv = [script, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    try:
        yield
    finally:
        sys.argv = argv
        sys.path[:] = path
