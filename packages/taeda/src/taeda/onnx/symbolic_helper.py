"""Marks of functions that write operators to ONNX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def parse_args(*arg_descriptors: Any) -> Callable[[T], T]:
    """Decorator that says what a symbolic function's arguments are: the function itself, which no exporter calls."""
    return lambda fn: fn


quantized_args = parse_args
