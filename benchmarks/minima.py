"""Least times of every call of the overhead table, of the installed library alone: for two states of the library.

Rounds over all rows, so that a moment of other work touches a few samples of many rows and not all of one; the least
sample counts. Run both states in turn, some three times each: ``--save`` adds to the minima that a file holds already,
``--since`` prints the rows beside those of another file, with the difference as a part of PyTorch's time.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import time
from collections.abc import Callable
from pathlib import Path

import overhead
from _measure import statements_in_turn, table

ROUNDS, SAMPLE_SECONDS = 12, 0.004


def functions(library: object) -> dict[str, tuple[Callable[[int], None], int]]:
    """For each row a function that executes it so many times, and how many calls an execution stands for."""
    made = {}
    for label, setup, statement, inside in overhead.ROWS:
        space = {"torch": library, "nn": library.nn, "F": library.nn.functional}
        exec(f"{setup}\ndef run_row(times):\n    for _ in range(times):\n        {statement}", space)
        made[label] = space["run_row"], inside
    return made


def minima() -> dict[str, float]:
    """Microseconds of each row."""
    import taeda

    taeda.set_num_threads(1)
    rows = functions(taeda)
    counts: dict[str, int] = {}
    least: dict[str, float] = {}
    gc.collect()
    gc.freeze()
    for _round in range(ROUNDS):
        for label, (run, inside) in rows.items():
            if label not in counts:
                run(20)
                counts[label] = max(20, int(SAMPLE_SECONDS / (_seconds(run, 200) / 200)))
            for _sample in range(2):
                spent = _seconds(run, counts[label]) / counts[label] / inside * 1e6
                least[label] = min(least.get(label, math.inf), spent)
    return least


def _seconds(run: Callable[[int], None], times: int) -> float:
    begin = time.perf_counter()
    run(times)
    return time.perf_counter() - begin


def torch_times() -> dict[str, float]:
    """PyTorch's microseconds."""
    import torch

    torch.set_num_threads(1)
    return {
        label: statements_in_turn({"torch": torch}, setup, statement)["torch"] / inside * 1e6
        for label, setup, statement, inside in overhead.ROWS
    }


def main() -> None:
    """Prints the minima, or how they have changed."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--save", type=Path, help="file of minima (JSON) to write, or to add to")
    options.add_argument(
        "--since", type=Path, help="minima of another state; nothing is measured but PyTorch"
    )
    given = options.parse_args()
    known = json.loads(given.save.read_text(encoding="utf-8")) if given.save and given.save.exists() else {}
    if given.since is None:
        for label, spent in minima().items():
            known[label] = min(spent, known.get(label, math.inf))
        if given.save:
            given.save.write_text(json.dumps(known), encoding="utf-8")
        table("Least times of calls", ["operation", "us"], ([k, f"{v:.4f}"] for k, v in known.items()))
        return
    before, theirs = json.loads(given.since.read_text(encoding="utf-8")), torch_times()
    shared = [label for label in known if label in before and label in theirs]
    shared.sort(key=lambda label: (before[label] - known[label]) / theirs[label])
    rows = (
        [k, f"{before[k]:.4f}", f"{known[k]:.4f}", f"{(known[k] - before[k]) / theirs[k]:.4f}"]
        for k in shared
    )
    table("Least times of calls", ["operation", "then us", "now us", "difference / torch"], rows)
    mean = math.exp(sum(math.log(known[k] / before[k]) for k in shared) / len(shared))
    over = sum((known[k] - before[k]) / theirs[k] > 0.01 for k in shared)
    print(f"\n{len(shared)} rows: geometric mean {mean:.3f}, {over} over by more than 0.010")


if __name__ == "__main__":
    main()
