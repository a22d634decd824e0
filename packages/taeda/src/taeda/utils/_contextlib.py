"""Contexts that are decorators too: of functions, which enter a new one at each call, and of generators."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

__all__ = ["context_decorator"]


def context_decorator(ctx: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose body runs inside a context.

    Args:
        ctx: A context, or a function that makes one for each call.
        func: A function, or a generator function, whose steps run inside it.

    Raises:
        TypeError: `func` is a class.
    """
    if isinstance(func, type):
        raise TypeError("context_decorator: cannot decorate a class; decorate its methods")
    make = (lambda: ctx) if hasattr(ctx, "__enter__") and not isinstance(ctx, type) else ctx
    if inspect.isgeneratorfunction(func):
        return _stepwise(make, func)

    @functools.wraps(func)
    def inside(*args: Any, **kwargs: Any) -> Any:
        with make():
            return func(*args, **kwargs)

    return inside


def _stepwise(make: Callable[[], Any], func: Callable[..., Any]) -> Callable[..., Any]:
    """A generator function of which each step runs in the context, and what lies between the steps does not."""

    @functools.wraps(func)
    def steps(*args: Any, **kwargs: Any) -> Any:
        generator = func(*args, **kwargs)
        step: Callable[[], Any] = lambda: next(generator)  # noqa: E731
        while True:
            try:
                with make():
                    value = step()
            except StopIteration as end:
                return end.value
            try:
                sent = yield value
            except GeneratorExit:
                with make():
                    generator.close()
                raise
            except BaseException as error:
                step = functools.partial(generator.throw, error)
            else:
                step = functools.partial(generator.send, sent)

    return steps


class _DecoratorContextManager:
    """Base class of contexts that can be used as decorators."""

    def __call__(self, orig_func: Callable[..., Any]) -> Callable[..., Any]:
        return context_decorator(self.clone, orig_func)

    def __enter__(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__}.__enter__ is not defined")

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__}.__exit__ is not defined")

    def clone(self) -> Any:
        """A new context of the kind; those with arguments say how."""
        return type(self)()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """The same for contexts without arguments, which decorate without parentheses too."""

    def __new__(cls, orig_func: Callable[..., Any] | None = None) -> Any:
        made = super().__new__(cls)
        return made if orig_func is None else made(orig_func)
