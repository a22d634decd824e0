"""Blocks and functions in mixed precision."""

from __future__ import annotations

import functools
import warnings
from typing import Any

from taeda_tensor_core import _C
from taeda_tensor_core._C import Tensor
from taeda_tensor_core.amp import _state

__all__ = ["autocast", "autocast_decorator", "custom_bwd", "custom_fwd", "is_autocast_available"]

is_autocast_available = _state.is_autocast_available


def autocast_decorator(autocast_instance: Any, func: Any) -> Any:
    """`func` in a block of autocast."""

    @functools.wraps(func)
    def decorate_autocast(*args: Any, **kwargs: Any) -> Any:
        with autocast_instance:
            return func(*args, **kwargs)

    return decorate_autocast


class autocast:
    """Context and decorator in which operators run in the precision that suits them (see `policies`).

    Backward passes belong outside of it: they run in the precision of the forward.

    Args:
        device_type: Kind of device whose operators are meant, such as "cpu".
        dtype: The lower precision: bfloat16 or float16 on the cpu. By default what `get_autocast_dtype` says.
        enabled: False switches it off for the block.
        cache_enabled: Keep casts of parameters until the outermost block ends.

    Raises:
        RuntimeError: Autocast knows no such kind of device.

    A kind that is not there, and a dtype that the kind does not have, switch it off with a warning.

    Example:
        >>> with taeda.autocast("cpu", dtype=taeda.bfloat16):
        ...     (taeda.ones(2, 2) @ taeda.ones(2, 2)).dtype
        taeda.bfloat16
    """

    def __init__(
        self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if not is_autocast_available(device_type):
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        self.device = device_type
        self.fast_dtype = _state.get_autocast_dtype(device_type) if dtype is None else dtype
        self._cache_enabled = _state.is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        self._enabled = bool(enabled) and self._usable()
        self._before: list[tuple[bool, bool, Any, int]] = []

    def _usable(self) -> bool:
        if self.device == "cpu":
            if self.fast_dtype in (_C.bfloat16, _C.float16):
                return True
            warnings.warn(
                "In CPU autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"CPU Autocast only supports dtype of bfloat16, float16 currently, found {self.fast_dtype}.",
                stacklevel=4,
            )
            return False
        from taeda_tensor_core.device_module import get_device_module

        if not get_device_module(self.device).is_available():
            warnings.warn(
                f"User provided device_type of '{self.device}', but there is no such device. Disabling autocast.",
                stacklevel=4,
            )
            return False
        return True

    def __enter__(self) -> autocast:
        kind = self.device
        self._before.append(
            (
                _state.is_autocast_cache_enabled(),
                _state.is_autocast_enabled(kind),
                _state.get_autocast_dtype(kind),
                _state.nesting(),
            )
        )
        try:
            _state.set_autocast_dtype(kind, self.fast_dtype)
            _state.set_autocast_enabled(kind, self._enabled)
            _state.autocast_increment_nesting()
            _state.set_autocast_cache_enabled(self._cache_enabled)
        except BaseException:  # Ctrl-C
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        if not self._before:
            raise RuntimeError("autocast: left without having been entered")
        try:
            self._go_back(*self._before[-1])
        except BaseException:  # Ctrl-C in the midst of it
            self._go_back(*self._before[-1])
            raise
        finally:
            del self._before[-1]

    def _go_back(self, caching: bool, enabled: bool, dtype: Any, nesting: int) -> None:
        _state.set_nesting(nesting)
        if nesting == 0:
            _state.clear_autocast_cache()
        _state.set_autocast_enabled(self.device, enabled)
        _state.set_autocast_dtype(self.device, dtype)
        _state.set_autocast_cache_enabled(caching)

    def __call__(self, func: Any) -> Any:
        return autocast_decorator(self, func)


def _enter_autocast(*vals: Any) -> autocast:
    mode = autocast(*vals)
    mode.__enter__()
    return mode


def _exit_autocast(mode: autocast) -> None:
    mode.__exit__(None, None, None)


def _in_dtype(value: Any, device_type: str, dtype: Any) -> Any:
    """`value` with the tensors in it, of that kind and real floating but float64, in another dtype."""
    if isinstance(value, Tensor):
        meant = (
            value.is_floating_point() and value.device.type == device_type and value.dtype is not _C.float64
        )
        return value.to(dtype) if meant else value
    if isinstance(value, dict):
        return {_in_dtype(k, device_type, dtype): _in_dtype(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, list | tuple):
        items = [_in_dtype(item, device_type, dtype) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


_cast = _in_dtype


def _checked_kind(name: str, device_type: Any) -> str:
    if not isinstance(device_type, str):
        raise ValueError(f"{name}: argument 'device_type' must be a str, found {type(device_type).__name__}")
    return device_type


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: Any = None) -> Any:
    """Decorator of `forward` of an autograd Function that is used under autocast.

    Args:
        fwd: The method.
        device_type: Kind of device.
        cast_inputs: Run the method outside of autocast, with floating tensors in this dtype; by default it runs in
            autocast as it is.

    Example:
        >>> class F(taeda.autograd.Function):
        ...     @staticmethod
        ...     @taeda.amp.custom_fwd(device_type="cpu", cast_inputs=taeda.float32)
        ...     def forward(ctx, x):
        ...         return x * 2
    """
    kind = _checked_kind("custom_fwd", device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorate_fwd(*args: Any, **kwargs: Any) -> Any:
        args[0]._dtype = _state.get_autocast_dtype(kind)
        enabled = _state.is_autocast_enabled(kind)
        if cast_inputs is None:
            args[0]._fwd_used_autocast = enabled
            return fwd(*args, **kwargs)
        args[0]._fwd_used_autocast = False
        if not enabled:
            return fwd(*args, **kwargs)
        with autocast(kind, enabled=False):
            return fwd(*_in_dtype(args, kind, cast_inputs), **_in_dtype(kwargs, kind, cast_inputs))

    return decorate_fwd


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """Decorator of `backward` beside `custom_fwd`: it runs in the autocast state of the forward."""
    kind = _checked_kind("custom_bwd", device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorate_bwd(*args: Any, **kwargs: Any) -> Any:
        with autocast(kind, enabled=args[0]._fwd_used_autocast, dtype=args[0]._dtype):
            return bwd(*args, **kwargs)

    return decorate_bwd
