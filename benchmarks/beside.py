"""Training beside other work: steps a second when it is quiet, with busy processes, loader workers, a second thread.

Each library runs in a process of its own, and they take turns, so that the waiting threads of one are no load for
the other.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from statistics import median
from typing import Any

import numpy as np
from _measure import load, parser, table
from _served import Served
from training import make_steps

MODELS = ("alexnet", "vgg19", "resnet50", "mobilenet_v1", "gnmt", "ncf")
# What runs beside: foreign busy processes, and how the steps are made.
CONDITIONS = {
    "quiet": (0, "alone"),
    "1 busy process": (1, "alone"),
    "2 busy processes": (2, "alone"),
    "2 loader workers": (0, "loader"),
    "2 training threads": (0, "threads"),
}
BATCH, SIDE = 16, 64


class Images:
    """Images that take a worker a millisecond each: noise, cut out, mirrored and normalised with NumPy."""

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, index: int) -> np.ndarray:
        rng = np.random.default_rng(index)
        image = rng.standard_normal((3, 2 * SIDE, 2 * SIDE), dtype=np.float32)
        top, left = rng.integers(0, SIDE, 2)
        image = image[:, top : top + SIDE, left : left + SIDE][:, :, ::-1]
        return np.ascontiguousarray((image - image.mean()) / image.std())


def rate(step: Callable[[], object], seconds: float) -> float:
    """Steps a second: at least two, for at least the given time."""
    start, count = time.perf_counter(), 0
    while count < 2 or time.perf_counter() - start < seconds:
        step()
        count += 1
    return count / (time.perf_counter() - start)


def serve(library: str, model: str) -> None:
    """The process of one library: reads `HOW SECONDS` and answers with steps a second."""
    libraries = load([library])
    torch = libraries[library]
    program = importlib.import_module(f"models.{model}")
    data = importlib.import_module(f"{library}.utils.data")
    (step,) = make_steps(program, libraries).values()
    step(0)
    others: list[Callable] = []
    print("ready", flush=True)
    for line in sys.stdin:
        how, seconds = line.split()[0], float(line.split()[1])
        if how == "alone":
            found = rate(lambda: step(0), seconds)
        elif how == "loader":
            loader = data.DataLoader(Images(), batch_size=BATCH, num_workers=2)
            batches = iter(loader)
            for _ in range(2):  # pages that the workers share are copied when they are first written to
                next(batches), step(0)
            found = rate(lambda batches=batches: (next(batches), step(0)), seconds)
            del batches, loader
        else:
            if not others:
                others += make_steps(program, {library: torch}).values()
                others[0](0)
            found = sum(side_by_side([step, others[0]], seconds))
        print(found, flush=True)


def side_by_side(steps: list[Callable], seconds: float) -> list[float]:
    """Steps a second of each, in as many threads."""
    found = [0.0] * len(steps)

    def run(number: int) -> None:
        found[number] = rate(lambda: steps[number](0), seconds)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(steps))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Foreign processes that want a core each."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        time.sleep(0.3 if count else 0)
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def rows(
    libraries: list[str], models: list[str], conditions: list[str], seconds: float, repeats: int
) -> Iterator[list[Any]]:
    """One row for every model and condition."""
    for model in models:
        with ExitStack() as stack:
            served = {name: stack.enter_context(Served(__file__, name, model)) for name in libraries}
            quiet: dict[str, float] = {}
            for condition in conditions:
                others, how = CONDITIONS[condition]
                samples: dict[str, list[float]] = {name: [] for name in libraries}
                with busy(others):
                    for _round in range(repeats):
                        for name, process in served.items():
                            samples[name].append(float(process.ask(how, seconds)))
                            time.sleep(0.05)
                rates = {name: median(values) for name, values in samples.items()}
                quiet = quiet or rates
                yield [
                    model,
                    condition,
                    *(f"{value:.3g}" for value in rates.values()),
                    f"{rates[libraries[0]] / rates[libraries[-1]]:.2f}",
                    *(f"{rates[name] / quiet[name]:.2f}" for name in libraries),
                ]


def main() -> None:
    """Prints the table, or serves."""
    if sys.argv[1:2] == ["--serve"]:
        return serve(*sys.argv[2:])
    options = parser(__doc__)
    options.add_argument("models", nargs="*", default=list(MODELS), help=f"some of: {', '.join(MODELS)}")
    options.add_argument("--conditions", default=",".join(CONDITIONS), help="comma-separated")
    options.add_argument("--seconds", type=float, default=4.0, help="for each measurement")
    options.add_argument("--repeats", type=int, default=3, help="measurements, whose median counts")
    chosen = options.parse_args()
    names, conditions = chosen.libraries.split(","), ["quiet", *chosen.conditions.split(",")]
    header = ["model", "beside", *(f"{name} steps/s" for name in names), f"{names[0]} / {names[-1]}"]
    header += [f"{name} of quiet" for name in names]
    wanted = list(dict.fromkeys(conditions))
    table("Beside other work", header, rows(names, chosen.models, wanted, chosen.seconds, chosen.repeats))
    return None


if __name__ == "__main__":
    main()
