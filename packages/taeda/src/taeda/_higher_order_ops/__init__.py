"""Operators that take Python functions, called as they are: nothing is compiled."""

from __future__ import annotations

from taeda._higher_order_ops.associative_scan import associative_scan
from taeda._higher_order_ops.cond import cond
from taeda._higher_order_ops.foreach_map import foreach_map
from taeda._higher_order_ops.map import map
from taeda._higher_order_ops.out_dtype import out_dtype
from taeda._higher_order_ops.scan import scan
from taeda._higher_order_ops.while_loop import while_loop

__all__ = ["associative_scan", "cond", "foreach_map", "map", "out_dtype", "scan", "while_loop"]
