"""Switches of the thread: recording of gradients, inference mode. Context managers and decorators."""

from __future__ import annotations

from taeda_tensor_core._C import _set_grad_enabled, _set_inference_mode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_GENERATOR = 0x20  # flag of code objects of generator functions


class _Mode:
    """Base: `with mode:` and `@mode`, with and without parentheses."""

    __slots__ = ("_saved",)

    def __new__(cls, function: Callable | None = None) -> Any:
        mode = object.__new__(cls)
        mode._saved = []
        return mode if function is None else mode(function)

    def __enter__(self) -> None:
        self._saved.append(self._switch())

    def __exit__(self, *exception: object) -> None:
        self._restore(self._saved.pop())

    def _switch(self) -> Any:
        raise NotImplementedError

    def _restore(self, saved: Any) -> None:
        _set_grad_enabled(saved)

    def _clone(self) -> _Mode:
        return type(self)()

    def __call__(self, function: Callable) -> Callable:
        """Run `function` in this mode; generators are switched in and out at every step."""
        from functools import wraps

        clone = self._clone
        code = getattr(function, "__code__", None)
        if code is not None and code.co_flags & _GENERATOR:
            return _wrap_generator(function, clone)

        @wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with clone():
                return function(*args, **kwargs)

        return inside


def _wrap_generator(function: Callable, clone: Callable[[], _Mode]) -> Callable:
    from functools import wraps

    @wraps(function)
    def inside(*args: Any, **kwargs: Any) -> Any:
        with clone():
            generator = function(*args, **kwargs)
        sent = None
        try:
            while True:
                with clone():
                    item = generator.send(sent)
                try:
                    sent = yield item
                except GeneratorExit:
                    raise
                except BaseException as error:
                    with clone():
                        item = generator.throw(error)
                    sent = yield item
        except StopIteration as end:
            return end.value
        finally:
            with clone():
                generator.close()

    return inside


class no_grad(_Mode):
    """Record no operations for gradients.

    Example:
        >>> with taeda.no_grad():
        ...     taeda.is_grad_enabled()
        False
    """

    __slots__ = ()

    def _switch(self) -> bool:
        return _set_grad_enabled(False)


class enable_grad(_Mode):
    """Record operations again, inside no_grad."""

    __slots__ = ()

    def _switch(self) -> bool:
        return _set_grad_enabled(True)


class set_grad_enabled(_Mode):
    """Record operations or not: at once when called, and until the end of a `with` block when used as one."""

    __slots__ = ("mode",)

    def __new__(cls, mode: bool) -> set_grad_enabled:
        self = object.__new__(cls)
        self.mode = bool(mode)
        self._saved = [_set_grad_enabled(self.mode)]
        return self

    def __enter__(self) -> None:
        _set_grad_enabled(self.mode)

    def _clone(self) -> set_grad_enabled:
        return set_grad_enabled(self.mode)

    def __call__(self, function: Callable) -> Callable:
        self._restore(self._saved.pop())
        return super().__call__(function)


class inference_mode(_Mode):
    """no_grad, and tensors made inside can never take part in recorded operations later."""

    __slots__ = ("mode",)

    def __new__(cls, mode: bool | Callable = True) -> Any:
        self = object.__new__(cls)
        self._saved = []
        self.mode = True if callable(mode) else bool(mode)
        return self(mode) if callable(mode) else self

    def _switch(self) -> tuple[bool, bool]:
        return _set_inference_mode(self.mode), _set_grad_enabled(not self.mode)

    def _restore(self, saved: tuple[bool, bool]) -> None:
        _set_inference_mode(saved[0])
        _set_grad_enabled(saved[1])

    def _clone(self) -> inference_mode:
        return inference_mode(self.mode)
