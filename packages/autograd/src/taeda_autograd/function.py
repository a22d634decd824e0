"""``autograd.function``: where programs import Function from."""

from taeda_autograd._function import Function, FunctionCtx, _FunctionMeta, once_differentiable

FunctionMeta = _FunctionMeta
#: In-place Functions mark their arguments with `mark_dirty`, as all Functions do.
InplaceFunction = Function
_SingleLevelFunction = Function
_ContextMethodMixin = FunctionCtx
#: The class of ctx in a backward.
BackwardCFunction = FunctionCtx

__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "FunctionMeta",
    "InplaceFunction",
    "once_differentiable",
]
