"""Where programs look for the class of tensors."""

from __future__ import annotations

from typing import Any

import taeda

__all__ = ["Tensor"]

Tensor = taeda.Tensor


def _rebuild_from_type_v2(func: Any, new_type: Any, args: tuple[Any, ...], state: Any) -> Any:
    """A tensor of a class, with attributes, from a function that makes its values."""
    made = func(*args)
    if type(made) is not new_type:
        made = made.as_subclass(new_type)
    if isinstance(state, tuple):
        state, slots = state
        for name, value in (slots or {}).items():
            setattr(made, name, value)
    if state:
        made.__dict__.update(state)
    return made
