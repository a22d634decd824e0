"""What the namespace says of itself."""

from __future__ import annotations

from typing import Any

import taeda_tensor_core as core
from taeda_tensor_core.array_api import _dtypes


class Info:
    """What `__array_namespace_info__` gives."""

    def capabilities(self) -> dict[str, Any]:
        """What arrays can do: any index by arrays, shapes that depend on data, up to 64 dimensions."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        """Where arrays are made unless told otherwise."""
        return core.empty(0).device

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """What numbers become: "real floating", "complex floating", "integral", "indexing"."""
        real = core.get_default_dtype()
        return {
            "real floating": real,
            "complex floating": core.complex128 if real == core.float64 else core.complex64,
            "integral": core.int64,
            "indexing": core.int64,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The dtypes, all or of a kind, by their names."""
        return {
            name: dtype
            for name, dtype in _dtypes.NAMES.items()
            if kind is None or _dtypes.isdtype(dtype, kind)
        }

    def devices(self) -> tuple[Any, ...]:
        """Where arrays can be."""
        return (core.device("cpu"),)


def __array_namespace_info__() -> Info:
    """Devices, dtypes and abilities of the namespace."""
    return Info()
