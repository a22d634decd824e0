"""A tensor provider in Python and NumPy: the rest of taeda runs on it where nothing can be compiled."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from taeda_tensor_pure import _functions, _random
from taeda_tensor_pure._layers import LAYERS
from taeda_tensor_pure._tensor import Size, Tensor
from taeda_tensor_pure._types import device, dtype, enable_grad, get_default_dtype, is_grad_enabled, no_grad
from taeda_tensor_pure._types import set_default_dtype as set_default_dtype

__version__ = "0.1.0"
__taeda_interface__ = {"tensor": "1.0"}
__taeda_lacks__ = {
    "tensor": {
        "gradients": "nothing is recorded; gradients come from elsewhere",
        "higher-order": "nothing is recorded",
        "bfloat16": "NumPy has no such dtype",
    }
}
__all__ = [
    "Size",
    "Tensor",
    "device",
    "dtype",
    "enable_grad",
    "get_default_dtype",
    "is_grad_enabled",
    "no_grad",
]

inf, nan, pi = math.inf, math.nan, math.pi
ops = SimpleNamespace(**LAYERS)
for _module in (_functions, _random):
    globals().update({n: v for n, v in vars(_module).items() if not n.startswith("_") and callable(v)})
globals().update(LAYERS)
globals().update(dtype.known)


def finfo(kind: Any) -> np.finfo:
    """Limits of a float dtype."""
    return np.finfo(kind.numpy)
