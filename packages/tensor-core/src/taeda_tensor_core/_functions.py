"""Small functions beside the operators."""

from __future__ import annotations

from taeda_tensor_core._C import Tensor

_deterministic = False


def is_tensor(obj: object) -> bool:
    """Whether `obj` is a Tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype of `input` is real floating."""
    return input.is_floating_point()


def is_complex(input: Tensor) -> bool:
    """Whether the dtype of `input` is complex."""
    return input.is_complex()


def numel(input: Tensor) -> int:
    """Number of elements of `input`."""
    return input.numel()


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for operators whose results are the same bits in every run; those of the cpu always are."""
    global _deterministic
    _deterministic = bool(mode)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether use_deterministic_algorithms(True) was called."""
    return _deterministic
