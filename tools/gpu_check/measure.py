"""Times operators and training on a GPU with taeda and, where it is installed, with PyTorch, in turns.

python tools/gpu_check/measure.py FIGURES.json [--small] [--kind KIND ...] [--more TEXT]

Operators: medians of device time. Training: the host's time for steps that it waits for at the end. Queues: the host's
time to hand an operation over. What fails is written down, and the rest goes on. Figures are added to the file's.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import json
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import training

Work = Callable[[], Any]


class Sizes(NamedTuple):
    """How much is measured: enough to fill a GPU, or as much as shows that everything runs."""

    elements: int
    side: int
    images: tuple[int, ...]
    rows: int
    rounds: int
    repeats: int
    queued: int


LARGE = Sizes(1 << 26, 4096, (32, 64, 56, 56), 2048, 15, 20, 500)
SMALL = Sizes(1 << 10, 16, (2, 4, 8, 8), 16, 3, 2, 20)


def attention(torch: Any, rows: int) -> dict[str, tuple[int, Work]]:
    """Attention in bfloat16, and with gradients, of heads that lie beside each other as layers make them."""

    def there(tensors: list[Any], causal: bool) -> Any:
        return torch.nn.functional.scaled_dot_product_attention(*tensors, is_causal=causal)

    def there_and_back(tensors: list[Any], causal: bool) -> Any:
        return torch.autograd.grad(there(tensors, causal), tensors, tensors[0].detach())

    work: dict[str, tuple[int, Work]] = {}
    for width in (64, 128):
        made = [torch.rand(4, rows, 16, width, device="cuda") - 0.5 for _ in range(3)]
        plain = [t.to(torch.bfloat16).transpose(1, 2) for t in made]
        leaves = [t.clone().requires_grad_() for t in plain]
        for causal in (False, True):
            name = f"attention of {width}{', causal' if causal else ''}"
            work[name] = 0, functools.partial(there, plain, causal)
            work[name + ", gradients"] = 0, functools.partial(there_and_back, leaves, causal)
    return work


def indexing(torch: Any, square: Any, rows: int) -> dict[str, tuple[int, Work]]:
    """Rows of a matrix by an index tensor that meets each of them about once, or one of ten of them again and again."""
    index = torch.arange(rows, device="cuda") * 7919 % rows
    n, to, values = square.numel(), square.clone(), square.clone()
    one = values[:, :1].contiguous()
    few = torch.zeros(10, 1, device="cuda")
    return {
        "index": (8 * n, lambda: square[index]),
        "index_put_": (8 * n, lambda: to.index_put_((index,), values)),
        "index_put_, accumulate": (12 * n, lambda: to.index_put_((index,), values, accumulate=True)),
        "index_add": (20 * n, lambda: square.index_add(0, index, values)),
        "index_add to ten": (4 * rows, lambda: few.index_add(0, index % 10, one)),
        "mask": (5 * n, lambda: square[square > 0.5]),
    }


def more_kernels(torch: Any, sizes: Sizes) -> dict[str, tuple[int, Work]]:
    """Volumes, triangular systems, many small matrices, and gradients of a table of which one row is met often."""
    functional, linalg = torch.nn.functional, torch.linalg
    images, side = sizes.images, sizes.side
    volumes = torch.rand(images[0], images[1], 4, *images[2:], device="cuda")
    weight = torch.rand(images[1], images[1], 3, 3, 3, device="cuda")
    a = torch.rand(side, side, device="cuda") / side + torch.eye(side, device="cuda")
    small = torch.rand(side, 4, 4, device="cuda") + torch.eye(4, device="cuda") * 4
    table = torch.rand(1000, 256, device="cuda", requires_grad=True)
    tokens = torch.arange(sizes.rows * 16, device="cuda") % 1000
    tokens[::2] = 7
    found = functional.embedding(tokens, table)
    up = found.detach()
    return {
        "conv3d, 3 x 3 x 3": (0, lambda: functional.conv3d(volumes, weight, padding=1)),
        "solve_triangular": (0, lambda: linalg.solve_triangular(a, a, upper=False)),
        "inv of many, 4 x 4": (0, lambda: linalg.inv(small)),
        "embedding, gradients": (
            4 * up.numel(),
            lambda: torch.autograd.grad(found, table, up, retain_graph=True),
        ),
    }


def chains(torch: Any, x: Any, y: Any, half: Any) -> dict[str, tuple[int, Work]]:
    """Element-wise operators one after the other, by themselves and in one kernel where the library writes one."""

    def five(a: Any, b: Any) -> Any:
        return ((a + b) * 0.5).tanh() * a - b

    def gated(a: Any, b: Any) -> Any:
        return torch.nn.functional.silu(a) * b + a

    work: dict[str, tuple[int, Work]] = {}
    compiled = getattr(torch.backends, "compile_graph", None)
    for name, chain, a, b in (("five", five, x, y), ("gate, bfloat16", gated, half, half)):
        together = compiled(chain, a, b) if compiled else chain
        nbytes = 3 * a.element_size() * a.numel()
        work[f"chain: {name}"] = nbytes, functools.partial(together, a, b)
        work[f"chain: {name}, one by one"] = nbytes, functools.partial(chain, a, b)
    return work


def operators(torch: Any, sizes: Sizes) -> dict[str, tuple[int, Work]]:
    """What is measured, with one library's tensors: bytes that have to move, and the call."""
    torch.manual_seed(0)
    n, rows = sizes.elements, int(sizes.elements**0.5)
    x, y = (torch.rand(n, device="cuda") for _ in range(2))
    half = x.to(torch.bfloat16)
    square = x.reshape(rows, rows)
    a, b = (torch.rand(sizes.side, sizes.side, device="cuda") for _ in range(2))
    ah, bh = a.to(torch.bfloat16), b.to(torch.bfloat16)
    images = torch.rand(*sizes.images, device="cuda")
    weight = torch.rand(sizes.images[1], sizes.images[1], 3, 3, device="cuda")
    places = torch.arange(n, device="cuda") % 1000003 % n
    edges = torch.arange(1024, device="cuda") / 1024
    logits, classes = square.clone(), torch.arange(rows, device="cuda") % rows
    functional = torch.nn.functional
    return {
        "copy, float32": (8 * n, lambda: x.clone()),
        "add, float32": (12 * n, lambda: x + y),
        "add, bfloat16": (6 * n, lambda: half + half),
        "add, transposed": (12 * n, lambda: square + square.t()),
        "exp, float32": (8 * n, lambda: x.exp()),
        "sum of all": (4 * n, lambda: x.sum()),
        "sum of rows": (4 * n, lambda: square.sum(1)),
        "sum of columns": (4 * n, lambda: square.sum(0)),
        "softmax of rows": (8 * n, lambda: square.softmax(1)),
        "layer_norm of rows": (8 * n, lambda: functional.layer_norm(square, (rows,))),
        "cross_entropy of rows": (4 * n, lambda: functional.cross_entropy(logits, classes)),
        "index_select": (16 * n, lambda: x.index_select(0, places)),
        **indexing(torch, square, rows),
        "var of rows": (4 * n, lambda: square.var(1)),
        "norm of all": (4 * n, lambda: x.norm()),
        "tril": (8 * n, lambda: square.tril()),
        "mse_loss": (8 * n, lambda: functional.mse_loss(x, y)),
        "bce_with_logits": (8 * n, lambda: functional.binary_cross_entropy_with_logits(x, y)),
        "searchsorted": (12 * n, lambda: torch.searchsorted(edges, x)),
        "multinomial": (4 * n, lambda: torch.multinomial(square, 1)),
        "matmul, float32": (0, lambda: a @ b),
        "matmul, bfloat16": (0, lambda: ah @ bh),
        "conv2d, 3 x 3": (0, lambda: functional.conv2d(images, weight, padding=1)),
        "sort": (0, lambda: x[: n >> 6].sort()),
        **chains(torch, x, y, half),
        **attention(torch, sizes.rows),
        **more_kernels(torch, sizes),
    }


def device_time(torch: Any, work: Work, repeats: int) -> float:
    """Microseconds of a call, of which several are queued."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(repeats):
        work()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) * 1000 / repeats


def queue_time(torch: Any, work: Work, count: int) -> float:
    """Microseconds of the host to hand a call over; fewer than a device's queue holds, so nothing makes it wait."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(count):
        work()
    taken = time.perf_counter() - begin
    torch.cuda.synchronize()
    return taken * 1e6 / count


def small_calls(torch: Any) -> dict[str, Work]:
    """Operations that a device does at once."""
    x, m = torch.rand(16, device="cuda"), torch.rand(4, 4, device="cuda")
    return {"add": lambda: x + x, "relu": lambda: x.relu(), "sum": lambda: x.sum(), "mm": lambda: m @ m}


def in_turns(libraries: dict[str, Any], rounds: int, once: Callable[[str], float]) -> dict[str, float]:
    """Medians by library, which take turns; the first two rounds do not count."""
    times: dict[str, list[float]] = {name: [] for name in libraries}
    for _ in range(rounds):
        for name in libraries:
            times[name].append(once(name))
    return {name: statistics.median(found[2:]) for name, found in times.items()}


def row(kind: str, name: str, measured: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """A figure, or what went wrong."""
    try:
        made = {"kind": kind, "name": name, **measured()}
    except Exception as error:
        made = {"kind": kind, "name": name, "error": f"{type(error).__name__}: {error}"}
    print(made, flush=True)
    return made


def operator_rows(libraries: dict[str, Any], small: bool) -> Iterator[dict[str, Any]]:
    """Device time."""
    sizes = SMALL if small else LARGE
    work = {name: operators(library, sizes) for name, library in libraries.items()}
    for case, (nbytes, _) in work["taeda"].items():

        def once(name: str, case: str = case) -> float:
            return device_time(libraries[name], work[name][case][1], sizes.repeats)

        def measured(nbytes: int = nbytes, once: Any = once) -> dict[str, Any]:
            times = in_turns(libraries, sizes.rounds, once)
            return {"us": times, "gigabytes_per_second": nbytes / times["taeda"] / 1000 if nbytes else None}

        yield row("operator", case, measured)


def queue_rows(libraries: dict[str, Any], small: bool) -> Iterator[dict[str, Any]]:
    """The host's time to hand operations over."""
    sizes = SMALL if small else LARGE
    calls = {name: small_calls(library) for name, library in libraries.items()}
    for case in calls["taeda"]:

        def queued(name: str, case: str = case) -> float:
            return queue_time(libraries[name], calls[name][case], sizes.queued)

        yield row("queue", case, lambda queued=queued: {"us": in_turns(libraries, sizes.rounds, queued)})


def training_rows(libraries: dict[str, Any], small: bool) -> Iterator[dict[str, Any]]:
    """Steps of the paper's networks."""
    for name, precision in training.cases(small):
        yield row(
            "training",
            f"{name}, {precision}",
            lambda name=name, precision=precision: training.measured(libraries, name, precision, small),
        )


KINDS = {"operator": operator_rows, "queue": queue_rows, "training": training_rows}


def main() -> int:
    """Measures everything and writes it; 1 where something failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("target", type=Path)
    parser.add_argument("--small", action="store_true", help="sizes that show that everything runs")
    parser.add_argument("--kind", action="append", choices=list(KINDS), help="of several; all without it")
    parser.add_argument("--more", default="", help="what stands behind the names of figures")
    options = parser.parse_args()
    import taeda

    libraries: dict[str, Any] = {"taeda": taeda}
    if not options.small and importlib.util.find_spec("torch") is not None:
        import torch

        if torch.cuda.is_available():
            libraries["torch"] = torch
    found = [each for kind in options.kind or KINDS for each in KINDS[kind](libraries, options.small)]
    for each in found:
        each["name"] += options.more
    earlier = json.loads(options.target.read_text(encoding="utf-8")) if options.target.is_file() else []
    options.target.write_text(json.dumps(earlier + found), encoding="utf-8")
    return int(any("error" in each for each in found))


if __name__ == "__main__":
    raise SystemExit(main())
