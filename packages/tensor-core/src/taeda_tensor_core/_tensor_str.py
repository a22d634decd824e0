"""Where programs look for the settings of printed tensors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from taeda_tensor_core._printing import options, set_printoptions

__all__ = ["printoptions", "set_printoptions"]


@contextmanager
def printoptions(**kwargs: Any) -> Iterator[None]:
    """Context with other settings; arguments as of `set_printoptions`."""
    before = dict(vars(options))
    try:
        set_printoptions(**kwargs)
        yield
    finally:
        vars(options).update(before)
