"""Times operators on a GPU with taeda and, where it is installed, with PyTorch, in turns; medians of device time.

python tools/gpu_check/measure.py FIGURES.json
"""

from __future__ import annotations

import importlib.util
import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Work = Callable[[], Any]
ROUNDS, REPEATS, LARGE = 15, 20, 1 << 26


def cases(torch: Any) -> dict[str, Work]:
    """What is measured, with one library's tensors."""
    torch.manual_seed(0)
    x, y = (torch.rand(LARGE, device="cuda") for _ in range(2))
    half = x.to(torch.bfloat16)
    square = x.reshape(8192, 8192)
    a, b = square[:4096, :4096].contiguous(), square[4096:, 4096:].contiguous()
    small = torch.rand(16, device="cuda")
    images, weight = torch.rand(32, 64, 56, 56, device="cuda"), torch.rand(64, 64, 3, 3, device="cuda")
    places = torch.arange(LARGE, device="cuda") % 1000003
    return {
        "copy, 64 Mi float32": lambda: x.clone(),
        "add, 64 Mi float32": lambda: x + y,
        "add, 64 Mi bfloat16": lambda: half + half,
        "add, transposed": lambda: square + square.t(),
        "exp, 64 Mi float32": lambda: x.exp(),
        "sum, all of 64 Mi": lambda: x.sum(),
        "sum, rows of 8192": lambda: square.sum(1),
        "sum, columns of 8192": lambda: square.sum(0),
        "softmax, rows of 8192": lambda: square.softmax(1),
        "index_select, 64 Mi": lambda: x.index_select(0, places),
        "matmul, 4096, float32": lambda: a @ b,
        "conv2d, 32 x 64 x 56 x 56": lambda: torch.nn.functional.conv2d(images, weight, padding=1),
        "sort, 1 Mi": lambda: x[: 1 << 20].sort(),
        "add, 16 elements": lambda: small + small,
    }


def once(torch: Any, work: Work) -> float:
    """Microseconds of a call, of which several are queued."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(REPEATS):
        work()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) * 1000 / REPEATS


def main(target: Path) -> None:
    """Measures everything and writes it."""
    import taeda

    libraries = {"taeda": taeda}
    if importlib.util.find_spec("torch") is not None:
        import torch

        libraries["torch"] = torch
    figures = []
    work = {name: cases(library) for name, library in libraries.items()}
    for case in work["taeda"]:
        times: dict[str, list[float]] = {name: [] for name in libraries}
        for _ in range(ROUNDS):
            for name, library in libraries.items():
                times[name].append(once(library, work[name][case]))
        medians = {name: statistics.median(found[2:]) for name, found in times.items()}
        figures.append({"name": case, "taeda_us": medians["taeda"], "torch_us": medians.get("torch", 0.0)})
        print(figures[-1], flush=True)
    target.write_text(json.dumps(figures))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
