"""A layer as one of another class."""

from __future__ import annotations

import copy
from typing import Any

import taeda


def own_copy(cls: type, mod: Any) -> Any:
    """An object of a class derived from a layer's own, which shares the layer's parameters and settings.

    Its observer stays behind.
    """
    made = copy.copy(mod)
    made.__class__ = cls
    made._modules.pop("activation_post_process", None)
    return made


def draw_unused(*tensors: Any) -> None:
    """Draw as many random numbers as new parameters of these shapes would be filled with; None is passed over.

    Programs that make a layer of another one draw them, so that what is drawn behind it does not hang on how a layer
    is made here.
    """
    for like in tensors:
        if like is not None:
            taeda.empty(like.shape, dtype=like.dtype).uniform_()
