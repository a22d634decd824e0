"""``autograd.function``: where programs import Function from."""

from taeda_autograd._function import Function, FunctionCtx, once_differentiable

__all__ = ["Function", "FunctionCtx", "once_differentiable"]
