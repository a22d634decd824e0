"""The device of tensors that are made without saying where: for a thread's block, or from now on."""

from __future__ import annotations

import threading
from typing import Any

from taeda_tensor_core import _C
from taeda_tensor_core.overrides import TorchFunctionMode

__all__ = ["DeviceContext", "get_default_device", "set_default_device", "set_device"]

#: Functions that make tensors and take a device.
_MAKERS = (
    "empty", "empty_strided", "empty_permuted", "ones", "arange", "bartlett_window", "blackman_window", "eye",
    "full", "fill", "hamming_window",
    "hann_window", "kaiser_window", "linspace", "logspace", "nested_tensor", "normal", "rand", "randn",
    "randint", "randperm", "range",
    "sparse_coo_tensor", "sparse_compressed_tensor", "sparse_csr_tensor", "sparse_csc_tensor",
    "sparse_bsr_tensor", "sparse_bsc_tensor", "tril_indices",
    "triu_indices", "zeros", "asarray", "tensor", "as_tensor", "scalar_tensor", "complex",
)  # fmt: skip
#: Of these, those that take no `device`.
_WITHOUT = frozenset({"normal", "fill", "complex"})


def _makers() -> frozenset[int]:
    import sys

    package = sys.modules[__package__]
    found = [getattr(package, name, None) for name in _MAKERS if name not in _WITHOUT]
    found += [getattr(package.fft, name) for name in ("fftfreq", "rfftfreq")]
    return frozenset(id(function) for function in found if function is not None)


class DeviceContext(TorchFunctionMode):
    """Context in which functions that make tensors do so on a device, unless they are told another one.

    Args:
        device: The device.
    """

    _known: frozenset[int] | None = None

    def __init__(self, device: Any) -> None:
        self.device = device if isinstance(device, _C.device) else _C.device(device)
        if DeviceContext._known is None:
            DeviceContext._known = _makers()

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if id(func) in self._known and kwargs.get("device") is None:  # type: ignore[operator]
            kwargs = {**kwargs, "device": self.device}
        return func(*args, **kwargs)


class _Thread(threading.local):
    """Contexts that this thread is in by `with device:`, and the one that `set_default_device` keeps."""

    def __init__(self) -> None:
        self.entered: list[DeviceContext] = []
        self.default: DeviceContext | None = None


_thread = _Thread()


def set_default_device(device: Any) -> None:
    """Let tensors of this thread that are made without `device` be on a device; None stands for the cpu again.

    Every function call is looked at from then on, which costs about a microsecond; `with taeda.device(...)` ends.
    Within such a block the block's device stays in force, and the one that is set follows it.

    Raises:
        RuntimeError: Nobody knows the device.

    Example:
        >>> taeda.set_default_device("meta")
        >>> taeda.ones(2).device
        device(type='meta')
        >>> taeda.set_default_device(None)
    """
    wanted = None if device is None else _C.device(device)
    before = _thread.default
    _thread.default = None if wanted is None or wanted.type == "cpu" else DeviceContext(wanted)
    # Below all modes: a block that the program is in ends its own mode, whatever is set meanwhile.
    _C._set_lowest_function_mode(before, _thread.default)


def get_default_device() -> Any:
    """The device of tensors that are made without `device` here."""
    for mode in reversed(_C._function_mode_stack()):
        if isinstance(mode, DeviceContext):
            return mode.device
    return _C.device("cpu")


def set_device(device: Any) -> Any:
    """Decorator: the function runs with that device as the default one."""
    import functools

    def decorate(function: Any) -> Any:
        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with DeviceContext(device):
                return function(*args, **kwargs)

        return inside

    return decorate


def enter(self: Any) -> Any:
    """`with device:`: the device of tensors that are made without saying where."""
    context = DeviceContext(self)
    depth = len(_C._function_mode_stack())
    try:
        context.__enter__()
        _thread.entered.append(context)
    except BaseException:  # Ctrl-C
        if len(_C._function_mode_stack()) > depth:
            context.__exit__()
        raise
    return self


def leave(self: Any, *exception: object) -> None:
    """End of `with device:`."""
    context = _thread.entered[-1]
    del _thread.entered[-1]  # no call: Ctrl-C comes between calls
    context.__exit__(*exception)
