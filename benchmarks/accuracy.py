"""Error of float32 reductions, scans and statistics against float64, by length and by mean: taeda beside PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from _measure import load, machine, parser, table

LENGTHS = tuple(10**k for k in range(2, 9))

Values = Callable[[np.random.Generator, int], np.ndarray]
Function = Callable[[Any, Any], Any]
Row = tuple[str, Values, Function, Callable[[np.ndarray], Any]]


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


PLACES = 4


def places(n: int) -> np.ndarray:
    """The indexed place of each of n numbers: each place is hit equally often."""
    return np.arange(n) % PLACES


def into_places(make: Callable[[Any, Any, Any], Any]) -> Function:
    """`make(library, index, x)` with the index of each element."""
    return lambda t, x: make(t, t.from_numpy(places(len(x))), x)


def summed(x: np.ndarray) -> np.ndarray:
    """What sums into places are."""
    return np.bincount(places(len(x)), x, PLACES)


def embedded(t: Any, index: Any, x: Any) -> Any:
    """The gradient of a table by its rows."""
    table = t.zeros(PLACES, 1, requires_grad=True)
    t.nn.functional.embedding(index, table).backward(x.reshape(-1, 1))
    return table.grad.reshape(-1)


def pair_loss(name: str, exact: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Row:
    """The mean of an element-wise loss of numbers and the same ones in reversed order."""
    return (
        name,
        uniform,
        lambda t, x: getattr(t.nn.functional, name)(x, x.flip(0)),
        lambda x: exact(x, x[::-1]).mean(),
    )


def classes(x: Any) -> Any:
    """Logits of ten classes; the wanted one is the first."""
    return x.reshape(-1, 10)


def by_class(name: str) -> Function:
    """The mean of a loss of logits, or of what stands for log-probabilities."""
    return lambda t, x: getattr(t.nn.functional, name)(classes(x), t.zeros(len(x) // 10, dtype=t.int64))


def log_sum_exp(x: np.ndarray, axis: int = 0) -> Any:
    """Without regard for overflow."""
    return np.log(np.exp(x).sum(axis))


def smooth(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Both smooth_l1_loss and huber_loss with their defaults, for differences below 1."""
    return (x - y) ** 2 / 2


def entropy(p: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Binary cross entropy of probabilities."""
    return -(t * np.maximum(np.log(p), -100) + (1 - t) * np.maximum(np.log1p(-p), -100))


# Label, values, what is computed (`t` stands for each library), and the reference in float64.
ROWS: list[Row] = [
    ("sum of ones", ones, lambda t, x: x.sum(), np.sum),
    ("sum, uniform", uniform, lambda t, x: x.sum(), np.sum),
    ("sum of columns, uniform", uniform, lambda t, x: columns(x).sum(0), lambda x: columns(x).sum(0)),
    ("mean, N(1e6, 1)", normal(1e6), lambda t, x: x.mean(), np.mean),
    ("var, N(0, 1)", normal(0), lambda t, x: x.var(), variance),
    ("var, N(1e4, 1)", normal(1e4), lambda t, x: x.var(), variance),
    ("var, N(1e6, 1)", normal(1e6), lambda t, x: x.var(), variance),
    ("var of columns, N(0, 1)", normal(0), lambda t, x: columns(x).var(0), lambda x: variance(columns(x))),
    (
        "var of columns, N(1e4, 1)",
        normal(1e4),
        lambda t, x: columns(x).var(0),
        lambda x: variance(columns(x)),
    ),
    ("std, N(1e4, 1)", normal(1e4), lambda t, x: x.std(), lambda x: variance(x) ** 0.5),
    ("norm", normal(0), lambda t, x: x.norm(), np.linalg.norm),
    ("norm of order 1", normal(0), lambda t, x: t.linalg.vector_norm(x, 1), lambda x: np.abs(x).sum()),
    ("prod", near_one, lambda t, x: x.prod(), np.prod),
    ("prod of columns", near_one, lambda t, x: columns(x).prod(0), lambda x: columns(x).prod(0)),
    ("logsumexp", normal(0), lambda t, x: x.logsumexp(0), log_sum_exp),
    ("cumsum, uniform", uniform, lambda t, x: x.cumsum(0)[-1], np.sum),
    ("cumprod", near_one, lambda t, x: x.cumprod(0)[-1], np.prod),
    ("logcumsumexp of zeros", zeros, lambda t, x: x.logcumsumexp(0)[-1], lambda x: np.log(float(x.size))),
    ("dot, uniform", uniform, lambda t, x: x.dot(x), lambda x: x @ x),
    ("matrix times vector", uniform, lambda t, x: wide(x) @ wide(x)[0], lambda x: wide(x) @ wide(x)[0]),
    ("matmul", uniform, lambda t, x: wide(x) @ wide(x).T, lambda x: wide(x) @ wide(x).T),
    ("softmax", normal(0), lambda t, x: x.softmax(0)[:64], lambda x: np.exp(x[:64] - log_sum_exp(x))),
    ("log_softmax", normal(0), lambda t, x: x.log_softmax(0)[:64], lambda x: x[:64] - log_sum_exp(x)),
    pair_loss("mse_loss", lambda x, y: (x - y) ** 2),
    pair_loss("l1_loss", lambda x, y: np.abs(x - y)),
    pair_loss("smooth_l1_loss", smooth),
    pair_loss("huber_loss", smooth),
    pair_loss("binary_cross_entropy", entropy),
    pair_loss("binary_cross_entropy_with_logits", lambda x, y: np.log1p(np.exp(-x)) + (1 - y) * x),
    (
        "kl_div",
        uniform,
        lambda t, x: t.nn.functional.kl_div(x, x.flip(0), reduction="batchmean"),
        lambda x: (x[::-1] * (np.log(np.maximum(x[::-1], 1e-300)) - x)).mean(),
    ),
    pair_loss("poisson_nll_loss", lambda x, y: np.exp(x) - y * x),
    ("nll_loss", uniform, by_class("nll_loss"), lambda x: -classes(x)[:, 0].mean()),
    (
        "cross_entropy",
        normal(0),
        by_class("cross_entropy"),
        lambda x: (log_sum_exp(classes(x), 1) - classes(x)[:, 0]).mean(),
    ),
    ("batch_norm, N(1e4, 1)", normal(1e4), batch, standard),
    (
        "layer_norm, N(1e4, 1)",
        normal(1e4),
        lambda t, x: t.nn.functional.layer_norm(x, x.shape)[:64],
        standard,
    ),
    ("group_norm, N(1e4, 1)", normal(1e4), grouped, lambda x: standard(x[: x.size // 2])),
    (
        "rms_norm, N(1, 1)",
        normal(1),
        lambda t, x: t.nn.functional.rms_norm(x, x.shape, eps=1e-5)[:64],
        lambda x: (x / np.sqrt((x * x).mean() + 1e-5))[:64],
    ),
    ("scatter_add", uniform, into_places(lambda t, i, x: t.zeros(PLACES).scatter_add(0, i, x)), summed),
    ("index_add", uniform, into_places(lambda t, i, x: t.zeros(PLACES).index_add(0, i, x)), summed),
    (
        "index_put_ that accumulates",
        uniform,
        into_places(lambda t, i, x: t.zeros(PLACES).index_put_((i,), x, accumulate=True)),
        summed,
    ),
    (
        "scatter_reduce, mean",
        uniform,
        into_places(lambda t, i, x: t.zeros(PLACES).scatter_reduce(0, i, x, "mean", include_self=False)),
        lambda x: summed(x) / np.bincount(places(len(x))),
    ),
    (
        "scatter_reduce, prod",
        near_one,
        into_places(lambda t, i, x: t.ones(PLACES).scatter_reduce(0, i, x, "prod")),
        lambda x: x.reshape(-1, PLACES).prod(0),
    ),
    ("gradient of embedding", uniform, into_places(embedded), summed),
    ("bincount of weights", uniform, into_places(lambda t, i, x: t.bincount(i, x)), summed),
]


def error(found: Any, right: Any) -> float:
    """The largest error over the largest value."""
    right = np.asarray(right, np.float64)
    return float(np.abs(found.detach().double().numpy() - right).max() / max(np.abs(right).max(), 1e-300))


def rows(libraries: dict[str, Any], lengths: list[int], only: str) -> Iterator[list[str]]:
    """One row per function and library."""
    for label, values, compute, exact in ROWS:
        if only not in label:
            continue
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
    made.add_argument("--longest", type=float, default=1e8, help="1e8 takes 6 GB and many minutes")
    made.add_argument("--only", default="", help="rows whose label has this in it")
    options = made.parse_args()
    lengths = [n for n in LENGTHS if n <= options.longest]
    print(machine())
    libraries = load(options.libraries.split(","))
    table(
        "Relative error in float32",
        ["function", "library", *(f"{n:.0e}".replace("e+0", "e") for n in lengths)],
        rows(libraries, lengths, options.only),
    )


if __name__ == "__main__":
    main()
