"""Timing in turn and printing as Markdown: what the benchmarks share."""

from __future__ import annotations

import argparse
import importlib
import math
import os
import platform
import sys
import time
import timeit
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from types import ModuleType

LIBRARIES = ("taeda", "torch")
#: Seconds between two libraries' turns. A library's threads look for work for some milliseconds after a call
#: (PyTorch's for about seven); the next one begins when they sleep, lest it be measured beside them.
REST = 0.03


def load(names: Iterable[str] = LIBRARIES, threads: int | None = None) -> dict[str, ModuleType]:
    """Imports the libraries to compare and sets their number of threads."""
    libraries = {name: importlib.import_module(name) for name in names}
    for library in libraries.values():
        if threads is not None:
            library.set_num_threads(threads)
    return libraries


def statements_in_turn(
    libraries: dict[str, ModuleType],
    setup: str,
    statement: str,
    repeats: int = 9,
    budget: float = 0.01,
    limit: float = math.inf,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Seconds per execution of ``statement`` after ``setup``, in which ``torch`` stands for each library in turn.

    Statements of which ``repeats`` samples would take longer than ``limit`` seconds are sampled less often.
    """
    timers = {}
    for name, library in libraries.items():
        space = {"torch": library, "nn": library.nn, "F": library.nn.functional}
        exec(setup, space)
        timers[name] = timeit.Timer(statement, timer=clock, globals=space)
    counts, spent = {}, 0.0
    for name, timer in timers.items():
        counts[name] = _calls_for(lambda timer=timer: timer.timeit(1), budget)
        spent += timer.timeit(counts[name])
    repeats = max(1, int(min(repeats, limit / max(spent, 1e-9))))
    samples: dict[str, list[float]] = {name: [] for name in timers}
    rest = REST if any(library.get_num_threads() > 1 for library in libraries.values()) else 0
    for _round in range(repeats):
        for name, timer in timers.items():
            time.sleep(rest)
            samples[name].append(timer.timeit(counts[name]) / counts[name])
    return {name: median(values) for name, values in samples.items()}


def _calls_for(function: Callable[[], object], budget: float) -> int:
    function()
    count = 1
    while True:
        spent = timeit.timeit(function, number=count)
        if spent >= budget / 4 or count >= 1_000_000:
            return max(1, int(count * budget / max(spent, 1e-9)))
        count *= 4


def ratio(times: dict[str, float]) -> str:
    """taeda's time over PyTorch's as text; empty when one is missing."""
    if "taeda" not in times or "torch" not in times:
        return ""
    return f"{times['taeda'] / times['torch']:.2f}"


def table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Prints a Markdown table, row by row as they come."""
    print(f"\n## {title}\n", flush=True)
    print("| " + " | ".join(header) + " |")
    print("|" + "|".join("---" if i == 0 else "---:" for i in range(len(header))) + "|", flush=True)
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |", flush=True)


def failure(error: Exception) -> str:
    """An error as a table cell."""
    text = str(error).splitlines()[0] if str(error) else ""
    return f"{type(error).__name__}: {text}"[:70].replace("|", "/")


def machine() -> str:
    """One line about the machine and the interpreter."""
    name = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            name = next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{name}, {os.cpu_count()} cores, Python {platform.python_version()}, {sys.platform}"


def parser(about: str) -> argparse.ArgumentParser:
    """A command line with the option that all benchmarks have."""
    made = argparse.ArgumentParser(description=about)
    made.add_argument("--libraries", default=",".join(LIBRARIES), help="comma-separated import names")
    return made
