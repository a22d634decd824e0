"""Choice of the way in which attention is computed, and masks made for it.

There is one way on each device, chosen by what is asked for: memory linear in the sequence wherever no weights have to
be kept. Programs that choose a backend of PyTorch's run unchanged; what they choose is kept and can be asked for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from enum import Enum, IntEnum
from typing import Any

from taeda_nn._bind import tensor

__all__ = [
    "SDPBackend",
    "activate_flash_attention_impl",
    "current_flash_attention_impl",
    "list_flash_attention_impls",
    "register_flash_attention_impl",
    "restore_flash_attention_impl",
    "sdpa_kernel",
]

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(IntEnum):
    """Ways to compute attention, as PyTorch names them."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    __str__, __format__ = Enum.__str__, Enum.__format__  # "SDPBackend.MATH", not its number


# Questions about kernels of CUDA, which stand with that device's settings.
_KERNELS = ("SDPAParams", "can_use_efficient_attention", "can_use_flash_attention")
_ALL = (
    SDPBackend.FLASH_ATTENTION,
    SDPBackend.EFFICIENT_ATTENTION,
    SDPBackend.MATH,
    SDPBackend.CUDNN_ATTENTION,
    SDPBackend.OVERRIDEABLE,
)
_chosen: ContextVar[tuple[SDPBackend, ...]] = ContextVar("sdpa_backends", default=_ALL)


@contextlib.contextmanager
def sdpa_kernel(
    backends: Iterable[SDPBackend] | SDPBackend, set_priority: bool = False
) -> Iterator[dict[Any, Any]]:
    """While inside, the given ways of computing attention are the chosen ones.

    Args:
        backends: One or several of `SDPBackend`.
        set_priority: Whether their order counts.

    Raises:
        AssertionError: Something else.

    Example:
        >>> with sdpa_kernel(SDPBackend.MATH):
        ...     y = F.scaled_dot_product_attention(q, k, v)
    """
    given = [backends] if isinstance(backends, SDPBackend) else backends
    if not isinstance(given, Iterable) or isinstance(given, (str, int)):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, "
            f"got {type(backends).__name__}"
        )
    listed = tuple(dict.fromkeys(given))
    for backend in listed:
        if not isinstance(backend, SDPBackend):
            raise AssertionError(f"Backend must be an instance of SDPBackend, got {type(backend).__name__}")
    token = _chosen.set(listed)
    try:
        yield {}
    finally:
        _chosen.reset(token)


def _cur_sdpa_kernel_backends(with_priority: bool = False) -> list[SDPBackend]:
    """The ways that are chosen now."""
    return list(_chosen.get())


def _backend_from_string(name: str) -> SDPBackend:
    return SDPBackend[name]


# Implementations of FlashAttention that extensions register, by name.
_implementations: dict[str, Callable[..., Any]] = {}
_active: list[tuple[str, Any]] = []


def register_flash_attention_impl(impl: str, *, register_fn: Callable[..., Any]) -> None:
    """Notes an implementation: ``register_fn()`` puts it in force, and returns what has ``remove()``, or None."""
    _implementations[impl] = register_fn


def activate_flash_attention_impl(impl: str) -> None:
    """Puts a registered implementation in force; ValueError for an unknown one."""
    if impl not in _implementations:
        raise ValueError(
            f"activate_flash_attention_impl: unknown implementation {impl!r}; registered are {sorted(_implementations)}"
        )
    restore_flash_attention_impl(False)
    _active.append((impl, _implementations[impl]()))


def restore_flash_attention_impl(_raise_warn: bool = True) -> None:
    """Goes back to the way of taeda itself."""
    while _active:
        handle = _active.pop()[1]
        if handle is not None:
            handle.remove()


def list_flash_attention_impls() -> list[str]:
    """The names of registered implementations."""
    return sorted(_implementations)


def current_flash_attention_impl() -> str | None:
    """The name of the implementation in force; None for taeda's own."""
    return _active[-1][0] if _active else None


def _cuda_settings() -> Any:
    """The provider's settings of CUDA devices, None where it has none."""
    return getattr(getattr(tensor, "backends", None), "cuda", None)


def __getattr__(name: str) -> Any:
    if name in ("bias", "flex_attention", "varlen"):
        from importlib import import_module

        return import_module(f"{__name__}.{name}")
    if name in _KERNELS:
        return getattr(_cuda_settings(), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
