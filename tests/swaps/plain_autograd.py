"""Stand-in provider of slot ``autograd``: central differences, no graph at all."""

from collections.abc import Callable
from typing import Any

from taeda_registry.slots import tensor

__taeda_interface__ = {"autograd": "1.0"}


def derivative(function: Callable[[Any], Any], point: Any, step: float = 1e-5) -> Any:
    """Gradient of a scalar function at a float64 vector, element by element."""
    result = tensor.zeros_like(point)
    for index in range(point.numel()):
        shift = tensor.zeros_like(point)
        shift[index] = step
        result[index] = (function(point + shift) - function(point - shift)) / (2 * step)
    return result
