"""Leaves these tests out, by name, where the package was not installed; machines for those that are run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from taeda_tensor_cuda.simulated import Machine

sys.path.insert(0, str(Path(__file__).parent))  # where tests find what runs their programs

if find_spec("taeda_tensor_cuda") is None:
    collect_ignore_glob = ["test_*.py"]


def pytest_report_header() -> list[str]:
    """Says so."""
    absent = find_spec("taeda_tensor_cuda") is None
    return (
        ["taeda-tensor-cuda is not installed (no nvcc, and nobody asked for it): not tested"]
        if absent
        else []
    )


@pytest.fixture
def machine() -> Iterator[Machine]:
    """One device with 256 MiB."""
    from taeda_tensor_cuda.simulated import Machine

    with Machine(256 << 20) as made:
        yield made
        assert made.inconsistency() == "" and made.inconsistency(-1) == ""
