"""Error of float32 reductions, scans and statistics against float64, by length and by mean: taeda beside PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from _measure import load, machine, parser, table

LENGTHS = tuple(10**k for k in range(2, 9))

Values = Callable[[np.random.Generator, int], np.ndarray]
Function = Callable[[Any, Any], Any]


def normal(mean: float) -> Values:
    """Normal numbers of spread 1 about a mean."""
    return lambda rng, n: (rng.standard_normal(n, np.float32) + np.float32(mean)).astype(np.float32)


def uniform(rng: np.random.Generator, n: int) -> np.ndarray:
    """Positive numbers, whose sums never cancel."""
    return rng.random(n, np.float32)


def ones(_rng: np.random.Generator, n: int) -> np.ndarray:
    """Equal numbers, whose running sums lose every last bit the same way."""
    return np.ones(n, np.float32)


def near_one(rng: np.random.Generator, n: int) -> np.ndarray:
    """Factors whose product stays in range."""
    return (1 + rng.standard_normal(n) / n**0.5 / 4).astype(np.float32)


def batch(torch: Any, x: Any) -> Any:
    """The beginning of one normalised channel."""
    return torch.nn.functional.batch_norm(x.reshape(1, 1, -1), None, None, training=True).reshape(-1)[:64]


def wide(x: Any) -> Any:
    """Four long rows."""
    return x.reshape(4, -1)


def columns(x: Any) -> Any:
    """Ten long columns."""
    return x.reshape(-1, 10)


def standard(x: np.ndarray) -> np.ndarray:
    """Normalised as layers do it."""
    return ((x - x.mean()) / np.sqrt(x.var() + 1e-5))[:64]


def grouped(torch: Any, x: Any) -> Any:
    """The beginning of the first of two groups."""
    return torch.nn.functional.group_norm(x.reshape(1, 2, -1), 2)[0, 0, :64]


def zeros(_rng: np.random.Generator, n: int) -> np.ndarray:
    """Logarithms of ones."""
    return np.zeros(n, np.float32)


def variance(x: np.ndarray) -> Any:
    """Along the first dimension."""
    return x.var(0, ddof=1)


# Label, values, what is computed (`t` stands for each library), and the reference in float64.
ROWS: list[tuple[str, Values, Function, Callable[[np.ndarray], Any]]] = [
    ("sum of ones", ones, lambda t, x: x.sum(), np.sum),
    ("sum, uniform", uniform, lambda t, x: x.sum(), np.sum),
    ("sum of columns, uniform", uniform, lambda t, x: columns(x).sum(0), lambda x: columns(x).sum(0)),
    ("mean, N(1e6, 1)", normal(1e6), lambda t, x: x.mean(), np.mean),
    ("var, N(0, 1)", normal(0), lambda t, x: x.var(), variance),
    ("var, N(1e4, 1)", normal(1e4), lambda t, x: x.var(), variance),
    ("var, N(1e6, 1)", normal(1e6), lambda t, x: x.var(), variance),
    (
        "var of columns, N(1e4, 1)",
        normal(1e4),
        lambda t, x: columns(x).var(0),
        lambda x: variance(columns(x)),
    ),
    ("norm", normal(0), lambda t, x: x.norm(), np.linalg.norm),
    ("prod", near_one, lambda t, x: x.prod(), np.prod),
    ("logsumexp", normal(0), lambda t, x: x.logsumexp(0), lambda x: np.log(np.exp(x).sum())),
    ("cumsum, uniform", uniform, lambda t, x: x.cumsum(0)[-1], np.sum),
    ("cumprod", near_one, lambda t, x: x.cumprod(0)[-1], np.prod),
    ("logcumsumexp of zeros", zeros, lambda t, x: x.logcumsumexp(0)[-1], lambda x: np.log(float(x.size))),
    ("dot, uniform", uniform, lambda t, x: x.dot(x), lambda x: x @ x),
    ("matrix times vector", uniform, lambda t, x: wide(x) @ wide(x)[0], lambda x: wide(x) @ wide(x)[0]),
    ("matmul", uniform, lambda t, x: wide(x) @ wide(x).T, lambda x: wide(x) @ wide(x).T),
    ("softmax", normal(0), lambda t, x: x.softmax(0)[:64], lambda x: np.exp(x[:64]) / np.exp(x).sum()),
    (
        "log_softmax",
        normal(0),
        lambda t, x: x.log_softmax(0)[:64],
        lambda x: x[:64] - np.log(np.exp(x).sum()),
    ),
    (
        "mse_loss",
        uniform,
        lambda t, x: t.nn.functional.mse_loss(x, x.flip(0)),
        lambda x: ((x - x[::-1]) ** 2).mean(),
    ),
    ("batch_norm, N(1e4, 1)", normal(1e4), batch, standard),
    (
        "layer_norm, N(1e4, 1)",
        normal(1e4),
        lambda t, x: t.nn.functional.layer_norm(x, x.shape)[:64],
        standard,
    ),
    ("group_norm, N(1e4, 1)", normal(1e4), grouped, lambda x: standard(x[: x.size // 2])),
]


def error(found: Any, right: Any) -> float:
    """The largest error over the largest value."""
    right = np.asarray(right, np.float64)
    return float(np.abs(found.detach().double().numpy() - right).max() / max(np.abs(right).max(), 1e-300))


def rows(libraries: dict[str, Any], lengths: list[int]) -> Iterator[list[str]]:
    """One row per function and library."""
    for label, values, compute, exact in ROWS:
        cells: dict[str, list[str]] = {name: [] for name in libraries}
        for n in lengths:
            x = values(np.random.default_rng(n), n)
            right = exact(x.astype(np.float64))
            for name, library in libraries.items():
                cells[name].append(f"{error(compute(library, library.from_numpy(x)), right):.1e}")
        for name, found in cells.items():
            yield [label, name, *found]


def main() -> None:
    made = parser(__doc__ or "")
    made.add_argument("--longest", type=float, default=1e8, help="1e8 takes 4 GB and some minutes")
    options = made.parse_args()
    lengths = [n for n in LENGTHS if n <= options.longest]
    print(machine())
    libraries = load(options.libraries.split(","))
    table(
        "Relative error in float32",
        ["function", "library", *(f"{n:.0e}".replace("e+0", "e") for n in lengths)],
        rows(libraries, lengths),
    )


if __name__ == "__main__":
    main()
