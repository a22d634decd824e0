"""What operators of others do in blocks of autocast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taeda_tensor_core._C import Tensor
from taeda_tensor_core.library._layers import Layer, below, split
from taeda_tensor_core.library._table import Operator

#: By the operator's name.
rules: dict[str, _Rules] = {}


class _Rules(Layer):
    """One operator's functions, by the kind of device that autocast is on for."""

    def __init__(self, operator: Operator) -> None:
        self.functions: dict[str, Callable] = {}
        super().__init__(f"autocast of {operator.name}", "autocast", [operator])

    def _entry(self, target: Operator) -> Any:
        from taeda_tensor_core.amp import _state

        def call(*arguments: Any) -> Any:
            args, kwargs = split(target, arguments)
            kinds = {each.device.type for each in _state._tensors(arguments)}
            chosen = next((k for k in self.functions if k in kinds and _state.is_autocast_enabled(k)), None)
            if chosen is None:
                return target(*args, **kwargs)
            with below("autocast"):
                return self.functions[chosen](*args, **kwargs)

        return call


def give(operator: Operator, kind: str, function: Callable) -> None:
    """Let `function` answer for an operator in blocks of autocast for a kind of device."""
    found = rules.get(operator.name)
    if found is None:
        found = rules[operator.name] = _Rules(operator)
    found.functions[kind] = function


def casting(operator: Operator, dtype: Any) -> Callable:
    """A function that calls the operator with its real floating-point tensors in one dtype."""

    def cast(value: Any) -> Any:
        if isinstance(value, Tensor) and value.is_floating_point():
            return value.to(dtype)
        if isinstance(value, (list, tuple)):
            return type(value)(cast(item) for item in value)
        return value

    return lambda *args, **kwargs: operator(*map(cast, args), **{k: cast(v) for k, v in kwargs.items()})
