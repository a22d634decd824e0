"""How values of several processes are combined."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import taeda as torch


class RedOpType(enum.Enum):
    """How values of several processes are combined.

    AVG divides the sum by the number of processes. BAND, BOR and BXOR are for integers and bool.
    """

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8


class ReduceOp:
    """The ways of combining, under the name that programs use: ``ReduceOp.SUM``."""

    RedOpType = RedOpType
    SUM = RedOpType.SUM
    AVG = RedOpType.AVG
    PRODUCT = RedOpType.PRODUCT
    MIN = RedOpType.MIN
    MAX = RedOpType.MAX
    BAND = RedOpType.BAND
    BOR = RedOpType.BOR
    BXOR = RedOpType.BXOR
    PREMUL_SUM = RedOpType.PREMUL_SUM

    def __new__(cls, op: RedOpType) -> Any:
        """The way of combining itself."""
        return RedOpType(op)


_STEPS: dict[RedOpType, Callable[[Any, Any], Any]] = {
    ReduceOp.SUM: lambda a, b: a.add_(b),
    ReduceOp.AVG: lambda a, b: a.add_(b),
    ReduceOp.PRODUCT: lambda a, b: a.mul_(b),
    ReduceOp.MIN: lambda a, b: torch.minimum(a, b, out=a),
    ReduceOp.MAX: lambda a, b: torch.maximum(a, b, out=a),
    ReduceOp.BAND: lambda a, b: a.bitwise_and_(b),
    ReduceOp.BOR: lambda a, b: a.bitwise_or_(b),
    ReduceOp.BXOR: lambda a, b: a.bitwise_xor_(b),
}


def supports_complex(op: RedOpType) -> bool:
    """Whether a reduction is possible for complex numbers."""
    return op in (ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PREMUL_SUM)


def combine(op: RedOpType, values: Sequence[Any]) -> Any:
    """The combination of tensors in their order, a new tensor.

    Raises:
        ValueError: A reduction that needs more than the tensors.
    """
    step = _STEPS.get(op)
    if step is None:
        raise ValueError(f"ReduceOp: {op} is not among those that can be computed")
    with torch.no_grad():
        total = values[0].detach().clone()
        for value in values[1:]:
            total = step(total, value)
        return total.div_(len(values)) if op is ReduceOp.AVG else total
