"""What a library weighs: import time, resident memory after import, modules loaded, installed size."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from statistics import median

from _measure import parser, table

PROBE = """
import sys, time
start = time.perf_counter()
{statement}
spent = time.perf_counter() - start
with open("/proc/self/status") as file:
    rss = next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))
print(spent, rss / 1024, len(sys.modules))
"""
STATEMENTS = {
    "bare Python": ("pass",),
    "NumPy": ("import numpy",),
    "taeda": (
        "import taeda",
        "import taeda; taeda.zeros(1)",
        "import taeda; taeda.nn, taeda.optim, taeda.utils.data",
    ),
    "torch": (
        "import torch",
        "import torch; torch.zeros(1)",
        "import torch; torch.nn, torch.optim, torch.utils.data",
    ),
}


def probe(statement: str, repeats: int = 7) -> tuple[float, float, int]:
    """Medians of seconds, MiB and modules over fresh interpreters."""
    runs = []
    for _round in range(repeats):
        command = [sys.executable, "-c", PROBE.format(statement=statement)]
        result = subprocess.run(command, capture_output=True, text=True, check=True)
        runs.append([float(part) for part in result.stdout.split()])
    seconds, memory, modules = (median(column) for column in zip(*runs, strict=True))
    return seconds, memory, int(modules)


def distributions(root: str) -> set[str]:
    """A distribution and all that it requires, installed here."""
    found: set[str] = set()
    waiting = [root]
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        if name in found:
            continue
        try:
            requirements = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        found.add(name)
        for requirement in requirements:
            if "extra ==" not in requirement:
                end = next((i for i, c in enumerate(requirement) if not (c.isalnum() or c in "-_.")), None)
                waiting.append(requirement[:end])
    return found


def installed_size(names: set[str]) -> float:
    """MiB of the files of these distributions."""
    total = 0
    for name in names:
        for file in metadata.files(name) or []:
            path = file.locate()
            if path.is_file():
                total += path.stat().st_size
    return total / 2**20


def import_rows(libraries: list[str]) -> Iterator[list[str]]:
    """One row for every statement."""
    for name in ("bare Python", "NumPy", *libraries):
        for statement in STATEMENTS.get(name, (f"import {name}",)):
            try:
                seconds, memory, modules = probe(statement)
            except subprocess.CalledProcessError as error:
                yield [f"`{statement}`", error.stderr.strip().splitlines()[-1][:70].replace("|", "/"), "", ""]
                continue
            yield [f"`{statement}`", f"{seconds * 1e3:.0f}", f"{memory:.0f}", str(modules)]


def size_rows(libraries: list[str]) -> Iterator[list[str]]:
    """One row for every library and what it needs; NumPy is counted with those that require it."""
    for name in libraries:
        names = distributions(name)
        if not names:
            yield [name, "not installed as a distribution", ""]
            continue
        own = {n for n in names if n == name or n.startswith(f"{name}-")}
        yield [
            name,
            f"{installed_size(own):.0f}",
            f"{installed_size(names):.0f} ({len(names)} distributions)",
        ]


def main() -> None:
    """Prints the tables."""
    libraries = parser(__doc__).parse_args().libraries.split(",")
    table("Import", ["statement", "ms", "resident MiB", "modules"], import_rows(libraries))
    table("Installed size", ["library", "own MiB", "with dependencies MiB"], size_rows(libraries))


if __name__ == "__main__":
    main()
