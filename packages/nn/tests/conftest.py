"""What these tests share: random arrays from a printed seed, and a seeded provider."""

import numpy as np
import pytest

from taeda_registry.slots import tensor as tt


@pytest.fixture
def rng(request):
    seed = sum(request.node.nodeid.encode())
    print(f"seed {seed}")
    return np.random.default_rng(seed)


@pytest.fixture(autouse=True)
def _seeded():
    tt.manual_seed(7)


def _to_tensor(array, requires_grad=False):
    array = np.asarray(array)
    kind = {"f": tt.float64, "b": tt.bool}.get(array.dtype.kind, tt.int64)
    result = tt.tensor(array.tolist(), dtype=kind).reshape(array.shape)
    return result.requires_grad_(True) if requires_grad else result


@pytest.fixture
def to_tensor():
    """A function from arrays to tensors (float64, int64 or bool)."""
    return _to_tensor


@pytest.fixture
def close():
    """A function that compares tensors or arrays with an array."""

    def check(actual, expected, tol=1e-9):
        if isinstance(actual, tt.Tensor):
            actual = np.array(actual.detach().tolist())
        if isinstance(expected, tt.Tensor):
            expected = np.array(expected.detach().tolist())
        np.testing.assert_allclose(actual, expected, rtol=tol, atol=tol)

    return check
