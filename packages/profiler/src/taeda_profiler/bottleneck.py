"""``taeda.utils.bottleneck``: where a script spends its time, by functions of Python and by operators.

As a program: ``python -m taeda_profiler.bottleneck script.py args``.
"""

from __future__ import annotations

import argparse
import cProfile
import io
import pstats
import sys
from collections.abc import Sequence
from typing import Any

from taeda_profiler.profiles import profile
from taeda_profiler.scripts import run_script

__all__ = ["main", "run_cprofile", "run_profile"]


def run_cprofile(script: str, arguments: Sequence[str] = ()) -> cProfile.Profile:
    """Runs a script under Python's own profiler."""
    found = cProfile.Profile()
    found.enable()
    try:
        run_script(script, arguments)
    finally:
        found.disable()
    return found


def run_profile(script: str, arguments: Sequence[str] = (), **options: Any) -> profile:
    """Runs a script under taeda's profiler; `options` are those of `taeda.profiler.profile`."""
    found = profile(**options)
    with found:
        run_script(script, arguments)
    return found


def _functions(found: cProfile.Profile, rows: int) -> str:
    text = io.StringIO()
    pstats.Stats(found, stream=text).sort_stats("tottime").print_stats(rows)
    return text.getvalue().strip()


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a script twice and prints both tables; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m taeda_profiler.bottleneck", description=__doc__)
    parser.add_argument("script", help="the program, which is run twice")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="its arguments")
    parser.add_argument("--rows", type=int, default=15, help="rows of each table")
    options = parser.parse_args(arguments)
    functions = run_cprofile(options.script, options.args)
    operators = run_profile(options.script, options.args)
    print(f"\nFunctions of Python, by the time in themselves\n\n{_functions(functions, options.rows)}")
    table = operators.key_averages().table(sort_by="self_cpu_time_total", row_limit=options.rows)
    print(f"\nOperators, by the time in themselves\n\n{table}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
