"""Many epochs with two workers: resident memory and descriptors of the loader's process, which should stay the same."""

from __future__ import annotations

import argparse
import importlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from _measure import table
from loading import Images


def resident() -> float:
    """MiB of this process's memory."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def rows(library: str, epochs: int, persistent: bool) -> Iterator[list[str]]:
    """One row now and then."""
    data = importlib.import_module(f"{library}.utils.data")
    loader = data.DataLoader(
        Images(640), batch_size=64, num_workers=2, shuffle=True, persistent_workers=persistent
    )
    start = time.perf_counter()
    for epoch in range(1, epochs + 1):
        for _batch in loader:
            pass
        if epoch in (1, 10) or epoch % (epochs // 5 or 1) == 0:
            open_now = len(os.listdir("/proc/self/fd"))
            threads = len(os.listdir("/proc/self/task"))
            shown = [f"{resident():.1f}", open_now, threads, f"{time.perf_counter() - start:.0f}"]
            yield [str(epoch), *map(str, shown)]


def main() -> None:
    """Prints the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--library", default="taeda", help="import name")
    options.add_argument("--epochs", type=int, default=200)
    options.add_argument("--persistent", action="store_true", help="workers stay between epochs")
    chosen = options.parse_args()
    found = rows(chosen.library, chosen.epochs, chosen.persistent)
    table("Soak", ["epoch", "resident MiB", "descriptors", "threads", "s"], found)


if __name__ == "__main__":
    main()
