"""Passes over graphs."""

from __future__ import annotations

from taeda.fx.passes import shape_prop

__all__ = ["shape_prop"]
