"""A folder of installed strangers for each test."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from strangers import Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """An empty site."""
    folder = tmp_path / "site"
    folder.mkdir()
    return Site(folder)
