"""What tests of the profiler share."""

from __future__ import annotations

import pytest

from taeda_profiler import _C


@pytest.fixture(autouse=True)
def nothing_is_left_recording():
    assert not _C.recording()
    yield
    left = _C.recording()
    if left:
        _C.stop()
    assert not left
