"""Random numbers from NumPy's counter-based generator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from taeda_tensor_pure._functions import _sizes
from taeda_tensor_pure._tensor import Tensor, on_cpu, wrap
from taeda_tensor_pure._types import to_numpy


class Generator:
    """An independent source of random numbers on device 'cpu'."""

    def __init__(self, device: Any = "cpu") -> None:
        on_cpu(device)
        self.manual_seed(67280421310721)

    def manual_seed(self, seed: int) -> Generator:
        """Begins the sequence of a seed."""
        self._seed = int(seed)
        self.source = np.random.Generator(np.random.Philox(self._seed % 2**64))
        return self

    def get_state(self) -> dict[str, Any]:
        """Where it stands."""
        return {"seed": self._seed, "source": self.source.bit_generator.state}

    def set_state(self, state: dict[str, Any]) -> Generator:
        """Goes to where another stood."""
        self._seed, self.source.bit_generator.state = state["seed"], state["source"]
        return self


default_generator = Generator()
manual_seed = default_generator.manual_seed


def _source(generator: Generator | None) -> np.random.Generator:
    return (generator or default_generator).source


def _drawn(name: str) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    def sized(*size: Any, generator: Any = None, dtype: Any = None, device: Any = None, **_: Any) -> Tensor:
        on_cpu(device)
        kind = to_numpy(dtype)
        drawn = getattr(_source(generator), name)(_sizes(size), kind if kind == np.float64 else np.float32)
        return wrap(np.asarray(drawn).astype(kind, copy=False))

    return sized, lambda input, **options: sized(input.shape, **{"dtype": input.dtype, **options})


rand, rand_like = _drawn("random")
randn, randn_like = _drawn("standard_normal")


def randperm(n: int, *, generator: Any = None, dtype: Any = None, device: Any = None) -> Tensor:
    """A random permutation of 0..n-1."""
    on_cpu(device)
    return wrap(_source(generator).permutation(n).astype(to_numpy(dtype, np.int64)))


def randint(
    low: int, high: Any, size: Any = None, *, generator: Any = None, dtype: Any = None, **_: Any
) -> Tensor:
    """Uniform integers of a half-open interval."""
    low, high, size = (0, low, high) if size is None else (low, high, size)
    drawn = _source(generator).integers(low, high, tuple(size))
    return wrap(np.asarray(drawn).astype(to_numpy(dtype, np.int64)))


def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None
) -> Tensor:
    """Indices drawn by weight."""
    chances = input.numpy() / input.numpy().sum()
    return wrap(_source(generator).choice(len(chances), num_samples, replacement, chances).astype(np.int64))


def dropout(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Zeroes elements at random and rescales the others."""
    if not 0 <= p <= 1:
        raise ValueError(f"dropout: argument 'p' must be between 0 and 1, found {p}")
    if not training or p == 0:
        return input
    x = input.numpy()
    kept = default_generator.source.random(x.shape) >= p
    return wrap((x * kept / (1 - p or 1)).astype(x.dtype))


def _filler(draw: Callable[..., np.ndarray]) -> Callable[..., Tensor]:
    def call(self: Tensor, *args: Any, generator: Any = None, **options: Any) -> Tensor:
        return self.fill_(draw(_source(generator), tuple(self.shape), *args, **options))

    return call


for _name, _draw in {
    "uniform_": lambda source, size, a=0.0, b=1.0: a + (b - a) * source.random(size),
    "normal_": lambda source, size, mean=0.0, std=1.0: mean + std * source.standard_normal(size),
    "bernoulli_": lambda source, size, p=0.5: source.random(size) < p,
    "random_": lambda source, size, low, high: source.integers(low, high, size),
}.items():
    setattr(Tensor, _name, _filler(_draw))
