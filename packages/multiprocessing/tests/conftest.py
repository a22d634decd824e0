"""Start methods, and what no test of shared memory may leave."""

import gc
import sys
from pathlib import Path

import pytest

import taeda_registry
from taeda_testing.settling import eventually, shared_names, shared_names_since

sys.path.insert(0, str(Path(__file__).parent))  # where clean interpreters find what their processes do
taeda_registry.resolve("autograd")


@pytest.fixture(params=["fork", "spawn"])
def method(request):
    """A start method."""
    return request.param


@pytest.fixture
def nothing_left():
    """Fails when a test leaves names in /dev/shm."""
    before = shared_names()
    yield

    def nothing_more():
        gc.collect()
        assert not shared_names_since(before)

    eventually(nothing_more)
