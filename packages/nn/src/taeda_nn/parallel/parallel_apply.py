"""Where programs import `parallel_apply` from."""

from __future__ import annotations

from typing import Any

from taeda_nn._bind import Tensor
from taeda_nn.parallel.data_parallel import parallel_apply

__all__ = ["get_a_var", "parallel_apply"]


def get_a_var(obj: Any) -> Any:
    """The first tensor in nested lists, tuples and dicts, None where there is none."""
    if isinstance(obj, Tensor):
        return obj
    items = obj.items() if isinstance(obj, dict) else obj if isinstance(obj, (list, tuple)) else ()
    return next((found for found in map(get_a_var, items) if found is not None), None)
