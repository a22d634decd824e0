"""What these tests share: parameters with given gradients, from a printed seed."""

import numpy as np
import pytest

import taeda_registry
from taeda_registry.slots import tensor as tt

taeda_registry.resolve("autograd")


@pytest.fixture
def rng(request):
    seed = sum(request.node.nodeid.encode())
    print(f"seed {seed}")
    return np.random.default_rng(seed)


def parameter(array):
    array = np.asarray(array)
    made = tt.tensor(array.tolist(), dtype=tt.float64).reshape(array.shape)
    return made.requires_grad_(True)


def give_grad(param, array):
    array = np.asarray(array)
    param.grad = tt.tensor(array.tolist(), dtype=tt.float64).reshape(array.shape)


def values(x):
    return np.array(x.detach().tolist())


@pytest.fixture
def make():
    """Functions for tests: parameter from array, gradient into parameter, tensor to array."""
    return parameter, give_grad, values
