"""An operator whose result has another dtype than its arguments say."""

from __future__ import annotations

from typing import Any

from taeda.utils._pytree import tree_map
from taeda_registry.slots import tensor

__all__ = ["out_dtype"]


def out_dtype(op: Any, output_dtype: Any, *args: Any) -> Any:
    """The result of an operator that computes in a dtype.

    Args:
        op: An operator with one tensor as its result, as `taeda.ops.aten.mm.default`.
        output_dtype: The dtype that tensors are given in, and that the result has.
        args: Its arguments.

    Example:
        >>> codes = taeda.full((2, 2), 100, dtype=taeda.int8)
        >>> out_dtype(taeda.ops.aten.mm.default, taeda.int32, codes, codes)
        tensor([[20000, 20000],
                [20000, 20000]], dtype=taeda.int32)
    """
    wide = tree_map(lambda item: item.to(output_dtype) if isinstance(item, tensor.Tensor) else item, args)
    return op(*wide).to(output_dtype)
