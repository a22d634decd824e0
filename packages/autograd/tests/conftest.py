"""Shared helpers: seeded float64 inputs that require gradients."""

from __future__ import annotations

import numpy as np
import pytest

import taeda_autograd  # noqa: F401
import taeda_tensor_core as taeda


@pytest.fixture
def make():
    """Function that makes seeded float64 leaves; ``low``/``high`` bound the values."""
    rng = np.random.default_rng(0)

    def leaf(*shape: int, low: float = -2.0, high: float = 2.0, requires_grad: bool = True) -> taeda.Tensor:
        values = rng.uniform(low, high, shape)
        return taeda.tensor(values).requires_grad_(requires_grad)

    return leaf
