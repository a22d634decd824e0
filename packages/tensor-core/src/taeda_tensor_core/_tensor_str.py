"""Where programs look for the settings of printed tensors, and for the parts of their texts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from taeda_tensor_core._C import Tensor
from taeda_tensor_core._printing import contents_text, options, set_printoptions, tensor_text, with_suffixes

__all__ = ["PRINT_OPTS", "printoptions", "set_printoptions"]

PRINT_OPTS = options


def _tensor_str(self: Tensor, indent: int) -> str:
    """The elements in brackets.

    Args:
        self: The tensor.
        indent: Columns that stand before them in the first line.
    """
    return contents_text(self.detach().cpu(), indent) if self.numel() else "[]"


def _str_intern(inp: Tensor, *, tensor_contents: str | None = None) -> str:
    """The whole text, with other elements if they are given."""
    return tensor_text(inp, tensor_contents)


def _str(self: Tensor, *, tensor_contents: str | None = None) -> str:
    """What `repr` gives, with other elements if they are given."""
    return _str_intern(self, tensor_contents=tensor_contents)


def _add_suffixes(tensor_str: str, suffixes: list[str], indent: int, force_newline: bool) -> str:
    """The text with what is said after the elements, closed; on a line of its own with `force_newline`."""
    if force_newline and suffixes:
        tensor_str += ",\n" + " " * indent + suffixes[0]
        suffixes = suffixes[1:]
    return with_suffixes(tensor_str, suffixes, indent)


@contextmanager
def printoptions(**kwargs: Any) -> Iterator[None]:
    """Context with other settings; arguments as of `set_printoptions`."""
    kept = vars(options)
    before = dict(kept)
    try:
        set_printoptions(**kwargs)
        yield
    finally:
        kept.update(before)
