"""Stand-in provider of slot ``tensor``: NumPy arrays that call themselves tensors."""

from typing import Any

import numpy as np

__taeda_interface__ = {"tensor": "1.0"}

float32, float64, int64 = np.float32, np.float64, np.int64


class Tensor(np.ndarray):
    """A NumPy array with the few methods that data loading asks of a tensor."""

    def numel(self) -> int:
        return self.size

    def dim(self) -> int:
        return self.ndim


def tensor(data: Any, dtype: Any = None) -> Tensor:
    return np.array(data, dtype=dtype).view(Tensor)


as_tensor = from_numpy = tensor


def stack(tensors: Any, dim: int = 0) -> Tensor:
    return np.stack(list(tensors), axis=dim).view(Tensor)


def arange(*bounds: int) -> Tensor:
    return np.arange(*bounds).view(Tensor)


def zeros(*shape: int) -> Tensor:
    return np.zeros(shape).view(Tensor)


def randint(low: int, high: int, size: tuple[int, ...] = (), **_options: Any) -> Tensor:
    return np.random.default_rng(0).integers(low, high, size).view(Tensor)


def randperm(count: int, **_options: Any) -> Tensor:
    return np.random.default_rng(0).permutation(count).view(Tensor)
