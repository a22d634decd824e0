"""Checks that programs write as function calls, and the names of types."""

from __future__ import annotations

from taeda_registry.slots import tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _assert(condition: Any, message: Any) -> Any:
    """`assert condition, message` as a function.

    Raises:
        AssertionError: The condition does not hold.
    """
    if hasattr(type(condition), "__torch_function__") and not isinstance(condition, tensor.Tensor):
        return tensor.overrides.handle_torch_function(_assert, (condition,), condition, message)
    assert condition, message
    return None


def _check_with(
    error_type: type[Exception], cond: bool, message: Callable[[], str] | str | None = None
) -> None:
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is None:
        text = "Expected cond to be True, but got False"
    else:
        text = str(message()) if callable(message) else str(message)
    raise error_type(text)


def _check(cond: bool, message: Callable[[], str] | str | None = None) -> None:
    """RuntimeError with `message()` unless the condition holds."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond: bool, message: Callable[[], str] | None = None) -> None:
    """IndexError unless the condition holds."""
    _check_with(IndexError, cond, message)


def _check_value(cond: bool, message: Callable[[], str] | None = None) -> None:
    """ValueError unless the condition holds."""
    _check_with(ValueError, cond, message)


def _check_type(cond: bool, message: Callable[[], str] | None = None) -> None:
    """TypeError unless the condition holds."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: bool, message: Callable[[], str] | None = None) -> None:
    """NotImplementedError unless the condition holds."""
    _check_with(NotImplementedError, cond, message)


def _check_tensor_all_with(
    error_type: type[Exception], cond: Any, message: Callable[[], str] | None = None
) -> None:
    """`_check_with` for a tensor, all of whose elements must be true."""
    if not isinstance(cond, tensor.Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype is not tensor.bool:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all()), message)


def _check_tensor_all(cond: Any, message: Callable[[], str] | None = None) -> None:
    """RuntimeError unless all elements of a tensor are true."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _check_is_size(i: int, message: Callable[[], str] | None = None, *, max: int | None = None) -> None:
    """RuntimeError unless a number can be a size: not negative, and at most `max`."""
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


def set_vital(attribute: str, name: str, value: str, /) -> bool:
    """Nothing is kept: False."""
    return False


def typename(obj: Any, /) -> str:
    """Name of an object's type with its module; for tensors that of their legacy type.

    Example:
        >>> taeda.typename(taeda.ones(2))
        'torch.FloatTensor'
    """
    from taeda_registry.slots import tensor

    if isinstance(obj, tensor.Tensor):
        return obj.type()
    known = getattr(obj, "__qualname__", None)
    owner = obj if known is not None else type(obj)
    module = getattr(owner, "__module__", "") or ""
    name = known or owner.__qualname__
    return name if module in ("", "builtins") else f"{module}.{name}"
