"""What a profiler that is off costs an addition: two processes in turn, one of which has used it.

First, where valgrind is installed, the instructions of one addition before any profile and after one, which do not
depend on what else the machine does. Then times: both processes stay on one core and take turns block by block, so that
the machine's other work meets both alike. Printed are the ratios of the medians and of the minima, and for scale the
ratio of two processes that never saw one.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from statistics import median

ADDITIONS = 20_000
CHILD = """
import sys, time
import taeda
if sys.argv[1] == "used":
    with taeda.profiler.profile(record_shapes=True, profile_memory=True, with_stack=True):
        taeda.ones(2) + 1
taeda.set_num_threads(1)
a, b = taeda.ones(8), taeda.ones(8)
count = range(int(sys.argv[2]))
for _ in sys.stdin:
    start = time.process_time_ns()
    for _ in count:
        a + b
    print(time.process_time_ns() - start, flush=True)
"""


class Child:
    """A process that measures when it is told to."""

    def __init__(self, kind: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", CHILD, kind, str(ADDITIONS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def measure(self) -> float:
        """Nanoseconds of the processor for one addition."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline()) / ADDITIONS

    def end(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def compare(first: str, second: str, rounds: int) -> tuple[float, float]:
    """The second's time by the first's: of the medians, and of the minima."""
    children = Child(first), Child(second)
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(rounds + 5):
        for place in (0, 1) if turn % 2 else (1, 0):
            spent = children[place].measure()
            if turn >= 5:
                times[place].append(spent)
    for child in children:
        child.end()
    return median(times[1]) / median(times[0]), min(times[1]) / min(times[0])


SETUPS = {
    "before any profile": "import taeda",
    "after a profile": (
        "import taeda\nwith taeda.profiler.profile(record_shapes=True, profile_memory=True, with_stack=True):\n"
        "    taeda.ones(2) + 1"
    ),
}


def instructions() -> None:
    """Prints how many instructions an addition takes, before any profile and after one."""
    from taeda.utils.benchmark import Timer

    print("| addition | instructions |\n|---|---:|", flush=True)
    for text, setup in SETUPS.items():
        timer = Timer("a + b", f"{setup}\na, b = taeda.ones(8), taeda.ones(8)\na + b")
        counted = timer.collect_callgrind(number=2000, collect_baseline=False)
        print(f"| {text} | {counted.counts() / 2000:.3f} |", flush=True)


def main() -> None:
    """Prints the tables."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=100)
    options.add_argument("--repeats", type=int, default=3, help="pairs of processes of each kind")
    chosen = options.parse_args()
    if shutil.which("valgrind"):
        instructions()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print("| compared | medians | minima |\n|---|---:|---:|", flush=True)
    for _ in range(chosen.repeats):
        for second, text in (
            ("fresh", "two that never saw a profiler"),
            ("used", "one that used it, and one that did not"),
        ):
            medians, minima = compare("fresh", second, chosen.rounds)
            print(f"| {text} | {medians:.4f} | {minima:.4f} |", flush=True)


if __name__ == "__main__":
    main()
