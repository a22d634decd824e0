"""Modules without their initial values."""

from __future__ import annotations

import inspect
from typing import Any

from taeda_nn.modules.module import Module


def skip_init(module_cls: type, *args: Any, **kwargs: Any) -> Any:
    """Makes a module whose parameters and buffers are not initialised.

    Args:
        module_cls: Class of the module; its constructor takes ``device``.
        *args, **kwargs: For the constructor.

    Raises:
        RuntimeError: ``module_cls`` is no class of modules, or takes no ``device``.

    Example:
        >>> layer = nn.utils.skip_init(nn.Linear, 5, 1)
    """
    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise RuntimeError(f"skip_init: expected a class of modules, found {module_cls!r}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError(f"skip_init: {module_cls.__name__} must take an argument 'device'")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, **kwargs, device="meta").to_empty(device=device)
