"""What kinds of operators there are, for programs that ask."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from taeda import library
from taeda import ops as ops

__all__ = ["HigherOrderOperator", "OpOverload", "OpOverloadPacket", "OperatorBase", "Tag", "ops"]

_REASON = "operators that take functions are plain functions here (taeda.cond, taeda.while_loop)"


class OperatorBase:
    """What operators that take functions derive from."""


class HigherOrderOperator(OperatorBase):
    """An operator that takes functions: classes derived from it say in `__call__` what it does.

    Args:
        name: Its name.
        cacheable: Accepted for PyTorch's sake.
    """

    def __init__(self, name: str, *, cacheable: bool = False) -> None:
        if type(self) is HigherOrderOperator:
            raise NotImplementedError(f"taeda._ops.HigherOrderOperator is not there: {_REASON}")
        self._name = self.__name__ = name
        self.cacheable = cacheable

    def name(self) -> str:
        """Its name."""
        return self._name

    def py_impl(self, key: object) -> Callable[[Any], Any]:
        """Decorator for what it does for one kind of tensor or mode, which is not asked: `__call__` is."""
        return lambda function: function

    def py_functionalize_impl(self, fn: Any) -> Any:
        """The function, which is not asked."""
        return fn

    def py_autograd_impl(self, fn: Any) -> Any:
        """The function, which is not asked."""
        return fn

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{self._name}: classes of operators that take functions define __call__")


#: One form of one operator.
OpOverload = library.Overload
#: All forms of one operator.
OpOverloadPacket = library.Operator
#: The operators of one package, as `taeda.ops.aten`.
_OpNamespace = type(ops.aten)
#: What a definition may say of its operator (`library.define(..., tags=...)`), and what `OpOverload.tags` tells.
Tag = enum.Enum(
    "Tag",
    "core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout generated inplace inplace_view "
    "maybe_aliasing_or_mutating needs_contiguous_strides needs_exact_strides needs_fixed_stride_order "
    "nondeterministic_bitwise nondeterministic_seeded out out_variant pointwise pt2_compliant_tag reduction view_copy",
)
library.use_tags(Tag)
