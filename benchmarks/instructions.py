"""Instructions of every call of the overhead table, counted under callgrind: the same number each time.

What a call costs in time hangs on the machine, its neighbours and where the linker put what; two states of the library
are compared by what they execute. Prints a table, or, given the output of an earlier run, how the rows have changed.
Needs valgrind with its headers, a C compiler and the `overhead.py` beside this file.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import math
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import overhead
from _measure import table

MARKS = """
#include <valgrind/callgrind.h>
void zero(void) { CALLGRIND_ZERO_STATS; }
void dump(const char* label) { CALLGRIND_DUMP_STATS_AT(label); }
"""
# Executions that are not counted, and the two numbers of them whose difference is.
WARM, FEW, MANY = 15, 1, 11


def counted(marks: str) -> None:
    """Runs all rows within valgrind; each leaves two files, named after its number in the table."""
    import taeda

    library = ctypes.CDLL(marks)
    taeda.set_num_threads(1)
    for number, (_label, setup, statement, _times) in enumerate(overhead.ROWS):
        space = {"torch": taeda, "nn": taeda.nn, "F": taeda.nn.functional}
        exec(f"{setup}\ndef run_row(times):\n    for _ in range(times):\n        {statement}", space)
        run = space["run_row"]
        run(WARM)
        gc.disable()
        for times in (FEW, MANY, FEW, MANY):  # what happens only once counts in one of both at most
            library.zero()
            run(times)
            library.dump(f"row {number} {times}".encode())
        gc.enable()


def count_all() -> dict[str, float]:
    """Instructions of one execution of each row."""
    with tempfile.TemporaryDirectory() as place:
        source, marks = Path(place, "marks.c"), Path(place, "marks.so")
        source.write_text(MARKS, encoding="utf-8")
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", source, "-o", marks], check=True)
        command = [
            "valgrind",
            "--tool=callgrind",
            f"--callgrind-out-file={place}/counts",
            sys.executable,
            __file__,
        ]
        subprocess.run([*command, "--within", str(marks)], check=True, stderr=subprocess.DEVNULL)
        found: dict[tuple[int, int], int] = {}
        for file in Path(place).glob("counts.*"):
            text = file.read_text(errors="replace", encoding="utf-8")
            label = re.search(r"^desc: Trigger: .*row (\d+) (\d+)$", text, re.MULTILINE)
            total = re.search(r"^(?:summary|totals): (\d+)", text, re.MULTILINE)
            if label and total:
                key = int(label[1]), int(label[2])
                found[key] = min(found.get(key, int(total[1])), int(total[1]))
    times = [times for *_, times in overhead.ROWS]
    return {
        label: (found[number, MANY] - found[number, FEW]) / (MANY - FEW) / times[number]
        for number, (label, *_) in enumerate(overhead.ROWS)
        if found.get((number, MANY), 0) > found.get((number, FEW), 0)
    }


def main() -> None:
    """Prints the counts, or the change since an earlier run."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--save", type=Path, help="where to write the counts as JSON")
    options.add_argument("--since", type=Path, help="counts of an earlier run, to compare with")
    options.add_argument("--within", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.within:
        return counted(given.within)
    counts = count_all()
    if given.save:
        given.save.write_text(json.dumps(counts), encoding="utf-8")
    if given.since is None:
        table(
            "Instructions of calls",
            ["operation", "instructions"],
            ([k, f"{v:.0f}"] for k, v in counts.items()),
        )
        return None
    before = json.loads(given.since.read_text(encoding="utf-8"))
    shared = sorted((k for k in counts if k in before), key=lambda k: before[k] / counts[k])
    rows = ([k, f"{before[k]:.0f}", f"{counts[k]:.0f}", f"{counts[k] / before[k]:.3f}"] for k in shared)
    table("Instructions of calls", ["operation", "before", "now", "ratio"], rows)
    mean = math.exp(sum(math.log(counts[k] / before[k]) for k in shared) / len(shared))
    print(f"\n{len(shared)} rows: geometric mean {mean:.3f}")
    return None


if __name__ == "__main__":
    main()
