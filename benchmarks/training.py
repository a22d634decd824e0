"""Training steps of whole networks in turn, and whether the losses agree from the same weights."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator
from statistics import median
from types import ModuleType
from typing import Any

import numpy as np
from _measure import REST, failure, load, parser, ratio, table

MODELS = (
    "mlp", "digits", "alexnet", "vgg19", "resnet50", "mobilenet_v1", "gnmt", "ncf", "vit_tiny", "gpt2", "bert_layer",
    "lstm",
)  # fmt: skip
SEED = 1


def copy_weights(source: Any, target: Any, torch: ModuleType) -> None:
    """Gives ``target``, of library ``torch``, the weights of ``source``, of another library."""
    state = {name: torch.from_numpy(value.numpy().copy()) for name, value in source.state_dict().items()}
    target.load_state_dict(state)


def make_step(program: ModuleType, torch: ModuleType, model: Any, dtype: str) -> Callable[[int], float]:
    """A function that makes one training step on the batch of the given number and returns the loss."""
    optimizer = program.make_optimizer(torch, model)

    def step(number: int) -> float:
        inputs, target = program.make_batch(torch, np.random.default_rng(SEED + number))
        *inputs, target = (
            x.to(getattr(torch, dtype)) if x.is_floating_point() else x for x in (*inputs, target)
        )
        optimizer.zero_grad()
        loss = program.loss(torch, model(*inputs), target)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def make_steps(
    program: ModuleType, libraries: dict[str, ModuleType], dtype: str = "float32", **options: Any
) -> dict[str, Callable]:
    """For every library a step function, all starting from the same float32 weights."""
    steps, first = {}, None
    for name, torch in libraries.items():
        torch.manual_seed(SEED)
        model = program.build(torch, **options)
        if first is None:
            first = model
        else:
            copy_weights(first, model, torch)
        model = model.to(getattr(torch, dtype)).train()
        steps[name] = make_step(program, torch, model, dtype)
    return steps


def step_times(steps: dict[str, Callable], repeats: int) -> dict[str, float]:
    """Median seconds of a step; the libraries take turns, after one step each that does not count."""
    samples: dict[str, list[float]] = {name: [] for name in steps}
    for number in range(repeats + 1):
        for name, step in steps.items():
            time.sleep(REST)
            start = time.perf_counter()
            step(0)
            if number:
                samples[name].append(time.perf_counter() - start)
    return {name: median(values) for name, values in samples.items()}


def losses(steps: dict[str, Callable], count: int) -> list[np.ndarray]:
    """The losses of ``count`` steps of every library."""
    return [np.array([step(number) for number in range(count)]) for step in steps.values()]


def difference(a: np.ndarray, b: np.ndarray) -> str:
    """Greatest relative difference."""
    return f"{np.max(np.abs(a / b - 1)):.1e}"


def agreement(program: ModuleType, libraries: dict[str, ModuleType], count: int) -> list[str]:
    """How far the losses of the libraries are apart in float64 and in float32, and what rounding alone does.

    The last figure is how far the last library's own float32 losses are from its float64 ones: where a network
    amplifies rounding errors, two right programs cannot be nearer than that in float32.
    """
    exact = losses(make_steps(program, libraries, "float64", dropout=0.0), count)
    single = losses(make_steps(program, libraries, dropout=0.0), count)
    return [
        difference(exact[0], exact[-1]),
        difference(single[0], single[-1]),
        difference(single[-1], exact[-1]),
        f"{single[0][0]:.4f} to {single[0][-1]:.4f}",
    ]


def rows(libraries: dict[str, ModuleType], names: list[str], repeats: int, count: int) -> Iterator[list[str]]:
    """One row for every model."""
    for name in names:
        program = importlib.import_module(f"models.{name}")
        try:
            times = step_times(make_steps(program, libraries), repeats)
            shown = [f"{seconds * 1e3:.1f}" for seconds in times.values()]
            agreed = agreement(program, libraries, count) if count else [""] * 4
        except Exception as error:
            yield [name, *[""] * len(libraries), failure(error), *[""] * 4]
            continue
        yield [name, *shown, ratio(times), *agreed]


def main() -> None:
    """Prints the table."""
    options = parser(__doc__)
    options.add_argument("models", nargs="*", default=list(MODELS), help=f"some of: {', '.join(MODELS)}")
    options.add_argument("--repeats", type=int, default=5, help="steps to time")
    options.add_argument(
        "--losses", type=int, default=20, help="steps whose losses are compared, without dropout"
    )
    chosen = options.parse_args()
    names = chosen.libraries.split(",")
    header = ["model", *(f"{name} ms" for name in names), "ratio"]
    header += ["losses apart, float64", "losses apart, float32", f"{names[-1]} float32 from float64", "loss"]
    table("Training steps", header, rows(load(names), chosen.models, chosen.repeats, chosen.losses))


if __name__ == "__main__":
    main()
