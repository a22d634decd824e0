"""What operators of others do in blocks of autocast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taeda_tensor_core._C import Tensor
from taeda_tensor_core.library._layers import Layer, below, split
from taeda_tensor_core.library._table import Operator

#: What answers for an operator, by its name and by the kind of device that autocast is on for.
_rules: dict[str, dict[str, Callable]] = {}


class _Asked(Layer):
    """Asks the rules of an operator that autocast itself does not cast.

    All layers of autocast are one owner's, so that it is off for an operator's parts whoever has rules for another.
    """

    def __init__(self, operator: Operator) -> None:
        super().__init__("autocast", "autocast", [operator])

    def _entry(self, target: Operator) -> Any:
        def otherwise(*arguments: Any) -> Any:
            args, kwargs = split(target, arguments)
            return target(*args, **kwargs)

        return entry(target, otherwise)


def entry(operator: Operator, otherwise: Callable) -> Callable:
    """What a layer of autocast does with a call: what the operator's rules say, if there are some for it."""

    def call(*arguments: Any) -> Any:
        function = _rule(operator, arguments)
        if function is None:
            return otherwise(*arguments)
        args, kwargs = split(operator, arguments)
        with below("autocast"):
            return function(*args, **kwargs)

    return call


def _rule(operator: Operator, arguments: tuple) -> Callable | None:
    functions = _rules.get(operator.name)
    if functions is None:
        return None
    from taeda_tensor_core.amp import _state
    from taeda_tensor_core.amp._casting import tensors

    kinds = {each.device.type for each in tensors(arguments)}
    return next((functions[k] for k in functions if k in kinds and _state.is_autocast_enabled(k)), None)


def give(operator: Operator, kind: str, function: Callable) -> None:
    """Let `function` answer for an operator in blocks of autocast for a kind of device."""
    from taeda_tensor_core.amp._casting import casts

    if operator.name not in _rules:
        _rules[operator.name] = {}
        if not casts(operator):
            _Asked(operator)
    _rules[operator.name][kind] = function


def casting(operator: Operator, dtype: Any) -> Callable:
    """A function that calls the operator with its real floating-point tensors in one dtype."""

    def cast(value: Any) -> Any:
        if isinstance(value, Tensor) and value.is_floating_point():
            return value.to(dtype)
        if isinstance(value, (list, tuple)):
            return type(value)(cast(item) for item in value)
        return value

    return lambda *args, **kwargs: operator(*map(cast, args), **{k: cast(v) for k, v in kwargs.items()})
