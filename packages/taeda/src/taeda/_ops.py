"""What kinds of operators there are, for programs that ask."""

from __future__ import annotations

from taeda import _absent, library
from taeda import ops as ops

__all__ = ["HigherOrderOperator", "OpOverload", "OpOverloadPacket", "OperatorBase", "ops"]

_REASON = "operators that take functions are plain functions here (taeda.cond, taeda.while_loop)"


class OperatorBase:
    """What operators that take functions derive from."""


HigherOrderOperator = _absent.cls("taeda._ops.HigherOrderOperator", _REASON, OperatorBase)
#: One form of one operator.
OpOverload = library.Operator
#: All forms of one operator.
OpOverloadPacket = type(ops.aten.add)
