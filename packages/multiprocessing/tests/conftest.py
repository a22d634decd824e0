"""What the tests of shared memory look at: descriptors, names in /dev/shm, bytes of mappings."""

import gc
import os
import sys
from pathlib import Path

import pytest

import taeda_registry

sys.path.insert(0, str(Path(__file__).parent))  # where clean interpreters find what their processes do
taeda_registry.resolve("autograd")


@pytest.fixture(params=["fork", "spawn"])
def method(request):
    """A start method."""
    return request.param


@pytest.fixture
def nothing_left():
    """Fails when a test leaves names in /dev/shm."""
    before = set(os.listdir("/dev/shm"))
    yield
    gc.collect()
    assert {name for name in os.listdir("/dev/shm") if not name.startswith("sem.")} <= before
