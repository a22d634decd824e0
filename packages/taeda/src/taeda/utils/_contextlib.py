"""Contexts that are decorators too."""

from __future__ import annotations

import functools
import inspect
from typing import Any, TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")


def context_decorator(ctx: Any, func: Any) -> Any:
    """A function that runs in a context made anew for every call; one that yields enters it anew for every step.

    Args:
        ctx: A context, which is entered again for every call, or a function that makes one.
        func: The function.
    """
    make = ctx if callable(ctx) and not hasattr(ctx, "__enter__") else lambda: ctx
    if inspect.isgeneratorfunction(func):
        return _stepwise(make, func)

    @functools.wraps(func)
    def run(*args: Any, **kwargs: Any) -> Any:
        with make():
            return func(*args, **kwargs)

    return run


def _stepwise(make: Callable[[], Any], func: Callable[..., Any]) -> Callable[..., Any]:
    """A generator whose own code runs in the context, and what happens between its steps does not."""

    @functools.wraps(func)
    def run(*args: Any, **kwargs: Any) -> Any:
        generator = func(*args, **kwargs)
        advance: Callable[[], Any] = lambda: generator.send(None)  # noqa: E731 (replaced at every step)
        try:
            while True:
                with make():
                    value = advance()
                try:
                    sent = yield value
                except GeneratorExit:
                    raise
                except BaseException as error:
                    advance = functools.partial(generator.throw, error)
                else:
                    advance = functools.partial(generator.send, sent)
        except StopIteration as done:
            return done.value
        finally:
            generator.close()

    return run


class _DecoratorContextManager:
    """Base of contexts that can stand before a function as a decorator: `clone` makes the context of each call."""

    def __call__(self, orig_func: F) -> F:
        if inspect.isclass(orig_func):
            raise TypeError("Cannot decorate classes; decorate their methods")
        return context_decorator(self.clone, orig_func)  # type: ignore[no-any-return]

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        raise NotImplementedError

    def clone(self) -> Any:
        """Another such context; one with arguments overrides it."""
        return type(self)()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """Such a context without arguments: the class itself can stand before a function too."""

    def __new__(cls, orig_func: Any = None) -> Any:
        made = super().__new__(cls)
        return made if orig_func is None else cls()(orig_func)
