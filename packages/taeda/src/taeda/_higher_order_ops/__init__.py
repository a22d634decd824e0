"""Operators that take Python functions, called as they are: nothing is compiled."""

from __future__ import annotations

from taeda._higher_order_ops.associative_scan import associative_scan

__all__ = ["associative_scan"]
