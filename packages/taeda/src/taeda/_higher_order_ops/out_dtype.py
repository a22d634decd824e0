"""Operators whose results have a wider dtype than their operands."""

from __future__ import annotations

from typing import Any

import taeda

__all__ = ["out_dtype"]


def out_dtype(op: Any, output_dtype: Any, *args: Any) -> Any:
    """What an operator gives of its operands in another dtype, which its results have: products of bytes in int32.

    Args:
        op: An operator, as `taeda.ops.aten.mm.default`.
        output_dtype: The results' dtype; tensors among the operands are converted to it.
        *args: The operands.

    Example:
        >>> x = taeda.full((1, 2), 100, dtype=taeda.int8)
        >>> out_dtype(taeda.ops.aten.mm.default, taeda.int32, x, x.t()).item()
        20000
    """
    return op(*(arg.to(output_dtype) if isinstance(arg, taeda.Tensor) else arg for arg in args))
