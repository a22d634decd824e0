"""Switches of the thread: recording of gradients, inference mode. Context managers and decorators."""

from __future__ import annotations

from taeda_tensor_core._C import _Mode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    _Function = TypeVar("_Function", bound=Callable[..., Any])

_GRAD_ON, _GRAD_OFF, _INFERENCE_ON, _INFERENCE_OFF = 1, 2, 4, 8
_GENERATOR = 0x20  # flag of code objects of generator functions


class _Shown:
    """What `inspect.signature` finds at a class, made when it is asked for."""

    def __init__(self, *parameters: tuple[str, Any]) -> None:
        self.parameters = parameters

    def __get__(self, _instance: object, _owner: type | None = None) -> Any:
        from inspect import Parameter, Signature

        kind = Parameter.POSITIONAL_OR_KEYWORD
        return Signature([Parameter(name, kind, default=default) for name, default in self.parameters])


class _Switch(_Mode):
    """Base: `with mode():`, `@mode()` and `@mode`."""

    __slots__ = ()
    __signature__ = _Shown()
    _switches = 0

    @classmethod
    def _with(cls, function: Callable) -> Callable:
        """What the class called with an argument gives."""
        return cls()(function)

    def __call__(self, function: _Function) -> _Function:
        """Run `function` in this mode; generators are switched in and out at every step."""
        if not callable(function):
            raise TypeError(
                f"{type(self).__name__}: expected a function to decorate, found {type(function).__name__}"
            )
        from functools import wraps

        cls, switches = type(self), self.switches
        code = getattr(function, "__code__", None)
        if code is not None and code.co_flags & _GENERATOR:
            return _wrap_generator(function, cls, switches)  # type: ignore[return-value]

        @wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with cls._create(switches):
                return function(*args, **kwargs)

        return inside  # type: ignore[return-value]

    def clone(self) -> _Switch:
        """Another one that does the same."""
        return type(self)._create(self.switches)

    def __reduce__(self) -> tuple:
        return type(self)._create, (self.switches,)


def _wrap_generator(function: Callable, cls: type[_Switch], switches: int) -> Callable:
    from functools import wraps

    @wraps(function)
    def inside(*args: Any, **kwargs: Any) -> Any:
        mode = cls._create(switches)
        with mode:
            generator = function(*args, **kwargs)
        step, argument = generator.send, None
        try:
            while True:
                with mode:
                    item = step(argument)
                try:
                    step, argument = generator.send, (yield item)
                except GeneratorExit:
                    raise
                except BaseException as error:
                    step, argument = generator.throw, error
        except StopIteration as end:
            return end.value
        finally:
            with mode:
                generator.close()

    return inside


class no_grad(_Switch):
    """Record no operations for gradients.

    Example:
        >>> with taeda.no_grad():
        ...     taeda.is_grad_enabled()
        False
    """

    __slots__ = ()
    _switches = _GRAD_OFF


class enable_grad(_Switch):
    """Record operations again, inside no_grad.

    Example:
        >>> with taeda.no_grad(), taeda.enable_grad():
        ...     taeda.is_grad_enabled()
        True
    """

    __slots__ = ()
    __signature__ = _Shown(("orig_func", None))
    _switches = _GRAD_ON


class set_grad_enabled(_Switch):
    """Record operations or not: at once when called, and until the end of a `with` block when used as one.

    Example:
        >>> training = False
        >>> with taeda.set_grad_enabled(training):
        ...     taeda.is_grad_enabled()
        False
    """

    __slots__ = ("_pending",)

    def __new__(cls, mode: bool) -> set_grad_enabled:
        if not isinstance(mode, bool):
            raise TypeError(f"set_grad_enabled: argument 'mode' must be a bool, found {type(mode).__name__}")
        self = cls._create(_GRAD_ON if mode else _GRAD_OFF)
        self._pending = True  # entered already: the block's end goes back to what was before the call
        _Switch.__enter__(self)
        return self

    @property
    def mode(self) -> bool:
        return bool(self.switches & _GRAD_ON)

    def __repr__(self) -> str:
        return f"{type(self).__module__}.{type(self).__qualname__}(mode={self.mode})"

    def clone(self) -> set_grad_enabled:
        """Another one, which as every call of it switches at once."""
        return type(self)(self.mode)

    def __enter__(self) -> set_grad_enabled:
        if not getattr(self, "_pending", False):
            return super().__enter__()
        self._pending = False
        return self

    def __call__(self, function: _Function) -> _Function:
        if getattr(self, "_pending", False):
            self._pending = False
            self.__exit__(None, None, None)
        return super().__call__(function)


class inference_mode(_Switch):
    """no_grad, and tensors made inside can never take part in recorded operations later.

    Example:
        >>> with taeda.inference_mode():
        ...     x = taeda.ones(2)
        >>> x.is_inference()
        True
    """

    __slots__ = ()
    __signature__ = _Shown(("mode", True))
    _switches = _INFERENCE_ON | _GRAD_OFF

    @property
    def mode(self) -> bool:
        return bool(self.switches & _INFERENCE_ON)

    @classmethod
    def _with(cls, mode: bool | Callable = True) -> Any:
        if callable(mode):
            return cls()(mode)
        if not isinstance(mode, bool):
            raise TypeError(f"inference_mode: argument 'mode' must be a bool, found {type(mode).__name__}")
        return cls._create(cls._switches if mode else _INFERENCE_OFF | _GRAD_ON)
