"""What profiling costs: nothing when off, by operation when on, in a training loop, in memory, and for the table."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from statistics import median
from types import ModuleType
from typing import Any

from _measure import load, parser, table

ADDITIONS = 20_000
STEPS = 1_000


def seconds_of(function: Callable[[], object]) -> float:
    """Seconds of the processor of one call: what else runs on the machine counts less than by the clock."""
    start = time.process_time()
    function()
    return time.process_time() - start


def additions(library: ModuleType) -> Callable[[], None]:
    """Many additions of small tensors."""
    a, b = library.ones(8), library.ones(8)

    def run() -> None:
        for _ in range(ADDITIONS):
            a + b

    return run


def training(library: ModuleType, steps: int) -> Callable[[], None]:
    """Steps of a tiny network."""
    nn = library.nn
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    optimizer = library.optim.SGD(net.parameters(), lr=1e-3)
    x, y = library.randn(2, 8), library.tensor([1, 2])

    def run() -> None:
        for _ in range(steps):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x), y).backward()
            optimizer.step()

    return run


def profiled(library: ModuleType, function: Callable[[], object], **options: Any) -> tuple[float, Any]:
    """Seconds of a call within a profile, and the profile."""
    with library.profiler.profile(**options) as prof:
        spent = seconds_of(function)
    return spent, prof


def in_turn(
    measure: Callable[[ModuleType], float], libraries: dict[str, ModuleType], repeats: int
) -> dict[str, float]:
    """The median of a number for each library, measured in turn."""
    found: dict[str, list[float]] = {name: [] for name in libraries}
    for _round in range(repeats):
        for name, library in libraries.items():
            found[name].append(measure(library))
    return {name: median(values) for name, values in found.items()}


def addition_before_any(library: ModuleType) -> float:
    """Microseconds of an addition."""
    return seconds_of(additions(library)) / ADDITIONS * 1e6


def more_by_addition(library: ModuleType, **options: Any) -> float:
    """Microseconds that an addition takes more within a profile."""
    run = additions(library)
    off = min(seconds_of(run) for _ in range(3))
    on = min(profiled(library, run, **options)[0] for _ in range(3))
    return (on - off) / ADDITIONS * 1e6


def slower_training(library: ModuleType) -> float:
    """How many times a training loop takes with shapes, memory and stacks."""
    run = training(library, 200)
    off = min(seconds_of(run) for _ in range(3))
    options = {"record_shapes": True, "profile_memory": True, "with_stack": True}
    return min(profiled(library, run, **options)[0] for _ in range(3)) / off


def megabytes_of_training(library: ModuleType) -> float:
    """How much the process grows by a profile of many steps, tables not made."""
    run = training(library, STEPS)
    run()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _, prof = profiled(library, run)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    del prof
    return grown


def seconds_of_table(library: ModuleType) -> float:
    """Microseconds of the table by event that it sums up."""
    _, prof = profiled(library, additions(library))
    return seconds_of(lambda: prof.key_averages().table(sort_by="self_cpu_time_total")) / ADDITIONS * 1e6


def main() -> None:
    """Prints one table."""
    libraries = load(parser(__doc__).parse_args().libraries.split(","), threads=1)
    for library in libraries.values():
        additions(library)()
    before = in_turn(addition_before_any, libraries, 7)
    rows = [("memory of 1,000 steps, MB", {n: megabytes_of_training(lib) for n, lib in libraries.items()})]
    for library in libraries.values():
        profiled(library, additions(library))
    after = in_turn(addition_before_any, libraries, 7)
    rows += [
        ("addition, no profile yet, us", before),
        ("addition, after a profile, us", after),
        ("addition, more within a profile, us", in_turn(more_by_addition, libraries, 5)),
        ("training with shapes, memory, stacks, times", in_turn(slower_training, libraries, 3)),
        ("table, us for each event", in_turn(seconds_of_table, libraries, 3)),
    ]
    names = list(libraries)
    table(
        "Profiling", ["what", *names], [[what, *(f"{found[n]:.3f}" for n in names)] for what, found in rows]
    )


if __name__ == "__main__":
    main()
