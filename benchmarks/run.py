"""Runs all benchmarks, or those named: overhead, operators, accuracy, training, footprint, plugin_kernel, profiler,
loading, beside."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from _measure import LIBRARIES, machine

ALL = (
    "footprint", "overhead", "operators", "accuracy", "training", "plugin_kernel", "profiler", "loading", "beside",
)  # fmt: skip
FILES = {"operators": ("operators", "database")}  # those of more than one file


def main() -> int:
    """Runs the benchmarks in fresh interpreters; returns the number that failed."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("benchmarks", nargs="*", default=list(ALL), help=f"some of: {', '.join(ALL)}")
    options.add_argument("--libraries", default=",".join(LIBRARIES), help="comma-separated import names")
    chosen = options.parse_args()
    unknown = set(chosen.benchmarks) - set(ALL)
    if unknown:
        options.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    print(f"# Benchmarks\n\n{machine()}", flush=True)
    folder = Path(__file__).parent
    failed = 0
    for name in chosen.benchmarks:
        for file in FILES.get(name, (name,)):
            command = [sys.executable, str(folder / f"{file}.py"), "--libraries", chosen.libraries]
            failed += subprocess.run(command, check=False).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
