"""Questions about programs that are followed with symbols: none is, and sizes are numbers."""

from __future__ import annotations
