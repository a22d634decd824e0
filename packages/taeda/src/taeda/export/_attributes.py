"""What passes over exported programs put into modules, by paths."""

from __future__ import annotations

from enum import Enum
from typing import Any

from taeda_registry.slots import nn, tensor

__all__ = ["_AttrKind", "_assign_attr"]


class _AttrKind(Enum):
    """As what a module has an object."""

    PARAMETER = "parameter"
    BUFFER = "buffer"
    CONSTANT = "constant"
    MODULE = "module"


def _places(module: Any, name: str) -> list[Any]:
    """The child of that name, which is made where there is none, and those of its further calls: `name@1`."""
    if not hasattr(module, name):
        setattr(module, name, nn.Module())
    return [child for key, child in module._modules.items() if key.partition("@")[0] == name]


def _assign_attr(
    from_obj: Any, to_module: Any, target: str, attr_kind: _AttrKind, persistent: bool = True
) -> None:
    """Put an object at a path, into all modules that stand for calls of the one there.

    Args:
        from_obj: A parameter, tensor, constant or module.
        to_module: Where the path begins; modules that are not on it are made.
        target: The path.
        attr_kind: As what it is put there.
        persistent: Whether a buffer is part of the state.

    Raises:
        AssertionError: The object is not of that kind.
    """
    *way, field = target.split(".")
    places = [to_module]
    for name in way:
        places = [child for place in places for child in _places(place, name)]
    expected = {
        _AttrKind.PARAMETER: nn.Parameter, _AttrKind.BUFFER: tensor.Tensor, _AttrKind.MODULE: nn.Module,
        _AttrKind.CONSTANT: object,
    }[attr_kind]  # fmt: skip
    if not isinstance(from_obj, expected):
        raise AssertionError(
            f"_assign_attr: argument 'from_obj' is a {type(from_obj).__name__}, expected a {attr_kind.value} for "
            f"'{target}'"
        )
    for place in places:
        if attr_kind is _AttrKind.PARAMETER:
            place.register_parameter(field, from_obj)
        elif attr_kind is _AttrKind.BUFFER:
            place.register_buffer(field, from_obj, persistent=persistent)
        else:
            setattr(place, field, from_obj)
