"""Training of the six networks of the paper on a GPU: time of a step, memory, and what the driver is asked for."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

PRECISIONS = ("float32", "bf16 autocast")
#: Batches that keep a GPU busy, in place of those for a processor.
LARGE: dict[str, dict[str, int]] = {
    "alexnet": {"BATCH": 256},
    "vgg19": {"BATCH": 64},
    "resnet50": {"BATCH": 128},
    "mobilenet_v1": {"BATCH": 128},
    "gnmt": {"BATCH": 128},
    "ncf": {"BATCH": 65536},
}
#: What a simulated device can train within seconds.
SMALL: dict[str, dict[str, Any]] = {
    "gnmt": {"BATCH": 2, "VOCABULARY": 11, "HIDDEN": 4, "LAYERS": 4, "SOURCE": 3, "TARGET": 3},
    "ncf": {"BATCH": 4, "USERS": 10, "ITEMS": 10, "FACTORS": 4, "LAYERS": (8, 8, 4)},
    "digits": {"BATCH": 2},
}
WARM, STEPS = 5, 20


def cases(small: bool) -> list[tuple[str, str]]:
    """Networks and precisions."""
    return [(name, precision) for name in (SMALL if small else LARGE) for precision in PRECISIONS]


def program(name: str, small: bool) -> ModuleType:
    """A network's module with the sizes that are meant for the device."""
    module = importlib.import_module(f"models.{name}")
    for constant, value in (SMALL if small else LARGE)[name].items():
        if not hasattr(module, constant):
            raise AttributeError(f"models.{name} has no {constant}")
        setattr(module, constant, value)
    return module


def make_step(torch: Any, module: ModuleType, precision: str) -> Callable[[], Any]:
    """One training step on a batch that lies on the device."""
    torch.manual_seed(1)
    model = module.build(torch).to("cuda").train()
    optimizer = module.make_optimizer(torch, model)
    inputs, target = module.make_batch(torch, np.random.default_rng(1))
    on_host = getattr(module, "ON_HOST", ())
    inputs = [part if place in on_host else part.to("cuda") for place, part in enumerate(inputs)]
    target = target.to("cuda")

    def step() -> Any:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=precision != "float32"):
            loss = module.loss(torch, model(*inputs), target)
        loss.backward()
        optimizer.step()
        return loss

    return step


def timed(torch: Any, step: Callable[[], Any], count: int) -> float:
    """Milliseconds of a step."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(count):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) * 1e3 / count


def driver_calls(torch: Any) -> int:
    """How often the driver was asked for memory, or given some back."""
    stats = torch.cuda.memory_stats()
    return int(stats.get("num_device_alloc", 0) + stats.get("num_device_free", 0))


def as_graph(torch: Any, step: Callable[[], Any]) -> Callable[[], Any]:
    """The step as a graph; it has been run."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay  # type: ignore[no-any-return]


def measured(libraries: dict[str, Any], name: str, precision: str, small: bool) -> dict[str, Any]:
    """Milliseconds of a step by library; of taeda also its peak of memory, calls of the driver, and time as a graph."""
    module, warm, count = program(name, small), *((1, 2) if small else (WARM, STEPS))
    times, more = {}, {}
    for library, torch in libraries.items():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        step = make_step(torch, module, precision)
        losses = [float(step().item()) for _ in range(warm)]
        if not all(np.isfinite(losses)):
            raise ValueError(f"the losses of {library} are {losses}")
        before = driver_calls(torch)
        times[library] = timed(torch, step, count)
        if library == "taeda":
            more = {
                "driver_calls": driver_calls(torch) - before,
                "peak_mebibytes": torch.cuda.max_memory_allocated() / 2**20,
                "loss": losses[-1],
                **graphed(torch, step, count),
            }
    return {"ms": times, **more}


def graphed(torch: Any, step: Callable[[], Any], count: int) -> dict[str, Any]:
    """Milliseconds of a step as a graph, or why it is none."""
    try:
        return {"graph_ms": timed(torch, as_graph(torch, step), count)}
    except RuntimeError as error:
        return {"graph_ms": None, "no_graph": str(error)}
