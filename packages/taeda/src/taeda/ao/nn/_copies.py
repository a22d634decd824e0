"""A layer as one of another class."""

from __future__ import annotations

import copy
from typing import Any


def own_copy(cls: type, mod: Any) -> Any:
    """An object of a class derived from a layer's own, which shares the layer's parameters and settings.

    Its observer stays behind.
    """
    made = copy.copy(mod)
    made.__class__ = cls
    made._modules.pop("activation_post_process", None)
    return made
