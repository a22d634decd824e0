"""Loaders and queues: samples a second, first batches, round trips, memory of workers, descriptors.

Every measurement has a clean process, and the libraries take turns.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

import numpy as np
from _measure import failure, parser, table

WORKERS = 2


class Images:
    """Images of bytes that are made numbers when they are read."""

    def __init__(self, count: int = 6400) -> None:
        self.pixels = np.random.default_rng(0).integers(0, 255, (256, 3, 64, 64), dtype=np.uint8)
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        return self.pixels[index % len(self.pixels)].astype(np.float32) / np.float32(255), index % 10


class Floats:
    """Samples of four bytes."""

    def __init__(self, count: int) -> None:
        self.values = np.arange(count, dtype=np.float32)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: int) -> np.float32:
        return self.values[index]


class Names:
    """A list of two million strings; a sample is what the process that reads it has written to itself, in KiB."""

    def __init__(self) -> None:
        self.names = [f"folder/number/{i:09}.jpeg" for i in range(2_000_000)]

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: int) -> tuple[int, int]:
        self.names[index].count("/")
        return os.getpid(), own_memory() if index % 4000 < 2 else 0


def own_memory() -> int:
    """KiB that this process shares with none."""
    lines = Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


def parts(name: str) -> tuple[ModuleType, Any, Any]:
    """A library, its data sets and its multiprocessing."""
    return tuple(importlib.import_module(name + part) for part in ("", ".utils.data", ".multiprocessing"))


def speed(loader: Any, size: int) -> float:
    """Samples a second in the second epoch."""
    for epoch in range(2):
        start, count = time.perf_counter(), 0
        for _batch in loader:
            count += size
        if epoch:
            return count / (time.perf_counter() - start)
    raise AssertionError


def images(name: str, workers: int) -> float:
    """Samples a second."""
    _, data, _ = parts(name)
    options = {"num_workers": workers, "persistent_workers": workers > 0}
    return speed(data.DataLoader(Images(), batch_size=64, **options), 64)


def tiny_samples(name: str, dataset: Any) -> float:
    """Samples a second, in batches of 32."""
    _, data, _ = parts(name)
    return speed(data.DataLoader(dataset, batch_size=32), 32)


def small_batches(name: str) -> float:
    """Batches of twelve bytes a second."""
    _, data, _ = parts(name)
    loader = data.DataLoader(Floats(30_000), batch_size=3, num_workers=WORKERS, persistent_workers=True)
    return speed(loader, 1)


def first_batch(name: str, method: str) -> float:
    """Milliseconds from the iterator to its first batch."""
    _, data, _ = parts(name)
    loader = data.DataLoader(Floats(1000), batch_size=4, num_workers=WORKERS, multiprocessing_context=method)
    start = time.perf_counter()
    iterator = iter(loader)
    next(iterator)
    return (time.perf_counter() - start) * 1e3


def echo(inward: Any, outward: Any) -> None:
    """Sends back what comes."""
    while (item := inward.get()) is not None:
        outward.put(item)
        del item


def round_trip(name: str, size: int, fresh: bool) -> float:
    """Milliseconds of a tensor's way to a process and back; a fresh one has to be moved to shared memory first."""
    torch, _, multiprocessing = parts(name)
    context = multiprocessing.get_context("fork")
    there, back = context.Queue(), context.Queue()
    process = context.Process(target=echo, args=(there, back), daemon=True)
    process.start()
    tensor, times = torch.zeros(size // 4), []
    for _trip in range(30):
        if fresh:
            tensor = torch.zeros(size // 4)
        start = time.perf_counter()
        there.put(tensor)
        received = back.get()
        times.append(time.perf_counter() - start)
        del received
    there.put(None)
    process.join()
    return median(times) * 1e3


def growth(name: str) -> float:
    """MiB by which the worker that grows most grows from its first to its last sample."""
    _, data, _ = parts(name)
    seen: dict[int, list[int]] = {}
    for pids, sizes in data.DataLoader(Names(), batch_size=1000, num_workers=WORKERS):
        if values := [value for value in sizes.tolist() if value]:
            seen.setdefault(int(pids[0]), []).extend(values)
    return max(values[-1] - values[0] for values in seen.values()) / 1024


def send_many(connection: Any, name: str, count: int) -> None:
    """Sends tensors in lists of 100 and waits until the receiver is done."""
    torch = importlib.import_module(name)
    importlib.import_module(f"{name}.multiprocessing")
    for begin in range(0, count, 100):
        connection.send([torch.full((4,), float(i)) for i in range(begin, begin + 100)])
        connection.recv()
    connection.recv()


def descriptors(name: str) -> float:
    """Descriptors in use when 50,000 received tensors are kept, of which 256 are allowed."""
    resource = importlib.import_module("resource")
    _, _, multiprocessing = parts(name)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(target=send_many, args=(there, name, 50_000), daemon=True)
    process.start()
    kept: list[Any] = []
    try:
        while len(kept) < 50_000:
            kept += here.recv()
            here.send(None)
        return len(os.listdir("/proc/self/fd"))
    finally:
        process.kill()


# By name: what is measured, its unit, whether more is better, what is aimed at as a share of PyTorch's.
ROWS: dict[str, tuple[Callable[[str], float], str, str]] = {
    "images, 0 workers": (lambda name: images(name, 0), "samples/s", ""),
    "images, 2 workers": (lambda name: images(name, WORKERS), "samples/s", ">= 1.3"),
    "tiny samples of a list, in-process": (
        lambda name: tiny_samples(name, list(range(100_000))),
        "samples/s",
        ">= 2",
    ),
    "tiny samples of a class, in-process": (
        lambda name: tiny_samples(name, Floats(100_000)),
        "samples/s",
        ">= 2",
    ),
    "12-byte batches, 2 workers": (small_batches, "batches/s", ">= 4"),
    "first batch, spawn": (lambda name: first_batch(name, "spawn"), "ms", "<= 0.25"),
    "first batch, fork": (lambda name: first_batch(name, "fork"), "ms", ""),
    "round trip, 1 KB": (lambda name: round_trip(name, 1024, False), "ms", "<= 0.3"),
    "round trip, 1 KB, fresh": (lambda name: round_trip(name, 1024, True), "ms", ""),
    "round trip, 64 MB": (lambda name: round_trip(name, 64 << 20, False), "ms", "<= 0.3"),
    "round trip, 64 MB, fresh": (lambda name: round_trip(name, 64 << 20, True), "ms", ""),
    "growth of a worker, 2 M strings": (growth, "MiB", "15 MiB"),
    "descriptors, 50,000 tensors kept": (descriptors, "", ""),
}
REPEATS = {"growth of a worker, 2 M strings": 1, "descriptors, 50,000 tensors kept": 1}


def measured(row: str, library: str) -> float:
    """A row's figure for one library, from a process of its own."""
    command = [sys.executable, __file__, "--row", row, library]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise RuntimeError(lines[-1] if lines else f"exit status {done.returncode}")
    return float(done.stdout.split()[-1])


def figures(row: str, libraries: list[str], repeats: int) -> dict[str, float | Exception]:
    """The median of each library's figures, or what it failed with."""
    samples: dict[str, list[float]] = {name: [] for name in libraries}
    failed: dict[str, Exception] = {}
    for _round in range(min(repeats, REPEATS.get(row, repeats))):
        for name in libraries:
            if name in failed:
                continue
            try:
                samples[name].append(measured(row, name))
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                failed[name] = error
    return {name: failed.get(name) or median(samples[name]) for name in libraries}


def rows(libraries: list[str], chosen: list[str], repeats: int) -> Iterator[list[str]]:
    """One row for every measurement."""
    for row in chosen:
        _, unit, target = ROWS[row]
        found = figures(row, libraries, repeats)
        shown = [
            failure(value) if isinstance(value, Exception) else f"{value:,.4g}" for value in found.values()
        ]
        values = [value for value in found.values() if not isinstance(value, Exception)]
        share = f"{values[0] / values[-1]:.2f}" if len(values) == len(found) and values[-1] else ""
        yield [row, unit, *shown, share, target]


def main() -> None:
    """Prints the table, or one row's figure for one library."""
    if sys.argv[1:2] == ["--row"]:
        print(ROWS[sys.argv[2]][0](sys.argv[3]), flush=True)
        return
    options = parser(__doc__)
    options.add_argument("rows", nargs="*", default=list(ROWS), help="names of rows")
    options.add_argument("--repeats", type=int, default=5, help="measurements, whose median counts")
    chosen = options.parse_args()
    if unknown := set(chosen.rows) - set(ROWS):
        options.error(f"no such row: {', '.join(sorted(unknown))}")
    names = chosen.libraries.split(",")
    header = ["row", "unit", *names, f"{names[0]} / {names[-1]}", "aim"]
    table("Loading and sending", header, rows(names, chosen.rows, chosen.repeats))


if __name__ == "__main__":
    main()
