"""Element types of plug-ins: formats of numbers of at most 8 bits, given by a table."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from taeda_tensor_core import _C
from taeda_tensor_core.library._registration import Registration


class NumberFormat(Registration):
    """A format that `define_dtype` has made.

    Attributes:
        dtype: What `tensor.dtype` is for tensors of it.
    """

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(f"dtype {dtype.name}", self._undo)

    def _undo(self) -> None:
        for module in (sys.modules.get("taeda_tensor_core"), sys.modules.get("taeda")):
            if module is not None:  # where programs may have found it
                vars(module).pop(self.dtype.name, None)
        _C._withdraw_dtype(self.dtype)


def define_dtype(name: str, numbers: Iterable[float], *, owner: str = "") -> NumberFormat:
    """Make a format of numbers of 1 to 8 bits an element type: `taeda.<name>`.

    An element takes a byte. Tensors of the type are made, indexed, joined, shown, saved and converted to and from the
    other types; what computes with them refuses them by name, as it does the types of float8. A number becomes the
    nearest one of the format, of two that are equally near that with the even code; what is beyond all becomes the
    largest, and NaN the code of a NaN, or that of 0 where the format has none.

    Args:
        name: Letters, digits and underscores.
        numbers: What each code stands for, from code 0 on: 2, 4, 8 ... 256 of them.
        owner: Stands in messages.

    Returns: The registration; its `dtype` is the element type. `remove()` takes the name away, not the type from
        tensors that have it.

    Raises:
        ValueError: The name, or the count of the numbers, cannot be, or none of them is finite.
        RuntimeError: The name is taken, or there are too many formats.

    Example:
        >>> sixteenths = taeda.library.define_dtype("sixteenths", [i / 16 for i in range(256)])
        >>> taeda.tensor([0.1, 1.0]).to(sixteenths.dtype)
        tensor([0.1250, 1.0000], dtype=taeda.sixteenths)
        >>> sixteenths.remove()
    """
    table = tuple(float(number) for number in numbers)
    bits = len(table).bit_length() - 1
    if not 1 <= bits <= 8 or len(table) != 1 << bits:
        raise ValueError(
            f"define_dtype: argument 'numbers' must have one number for each code, 2 to 256 and a power of two of "
            f"them, found {len(table)}"
        )
    return NumberFormat(_C._define_dtype(name, bits, table, owner or name))
