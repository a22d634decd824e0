"""What tests of the profiler share."""

from __future__ import annotations

import pytest

from taeda_profiler import _C
from taeda_testing.settling import without_collector


@pytest.fixture(autouse=True)
def nothing_is_left_recording():
    assert not _C.recording()
    yield
    left = _C.recording()
    if left:
        _C.stop()
    assert not left


@pytest.fixture
def nothing_collected():
    """What is recorded of memory is the test's own, not what the collector finds of others meanwhile."""
    with without_collector():
        yield
