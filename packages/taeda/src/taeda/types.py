"""Names for annotations."""

from __future__ import annotations

import builtins
import os
from typing import IO, TYPE_CHECKING, Any, TypeAlias, Union

from taeda_registry.slots import tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Device", "FileLike", "Number", "Storage"]

Tensor = tensor.Tensor
_dtype = tensor.dtype
_device = tensor.device
_layout = tensor.layout
_TensorOrTensors: TypeAlias = Union[Tensor, "Sequence[Tensor]"]
_TensorOrTensorsOrGradEdge: TypeAlias = Any
_size = tensor.Size | list[builtins.int] | tuple[builtins.int, ...]
_symsize = _size
_dispatchkey = str
_int, _float, _bool, _complex, _str = (
    builtins.int,
    builtins.float,
    builtins.bool,
    builtins.complex,
    builtins.str,
)
py_sym_types = (builtins.int, builtins.float, builtins.bool)
IntLikeType: TypeAlias = builtins.int
FloatLikeType: TypeAlias = builtins.float
BoolLikeType: TypeAlias = builtins.bool
PySymType: TypeAlias = builtins.int | builtins.float | builtins.bool
Number: TypeAlias = builtins.int | builtins.float | builtins.bool
_Number = (builtins.int, builtins.float, builtins.bool)
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
Device: TypeAlias = _device | str | builtins.int | None
#: Memory of a tensor, typed or not.
Storage = tensor.storage._StorageBase
