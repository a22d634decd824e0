"""What writing and reading checkpoints share: names of dtypes, limits, and the error of a malformed file."""

from __future__ import annotations

import math
import pickle
import threading
from typing import Any, NoReturn

from taeda_tensor_core import _C

# Key in a header's metadata under which nesting, numbers and strings are described.
STRUCTURE = "taeda.structure"
#: The attribute in which a state dict has its modules' versions.
METADATA = "_metadata"
MAX_HEADER = 100_000_000
#: What files of PyTorch's older form begin with: a number that tells them from others, and the form's version.
OLDER_HEAD = (0x1950A86A20F9469CFC6C, 1001)
# Containers within containers: in a header, and in a pickle, which nothing here follows by recursion.
MAX_DEPTH = 200
MAX_PICKLED_DEPTH = 500
# Bytes of objects that every file may ask for, however small it is.
FREE = 1 << 26
# Integers beyond are no keys: nearly all of them can be made to have one hash.
MAX_KEY = 1 << 64
# dtype: its code in safetensors, bytes of an element.
_BUILT_IN = {
    "bool": ("BOOL", 1), "int8": ("I8", 1), "int16": ("I16", 2), "int32": ("I32", 4), "int64": ("I64", 8),
    "uint8": ("U8", 1), "uint16": ("U16", 2), "uint32": ("U32", 4), "uint64": ("U64", 8), "float16": ("F16", 2),
    "bfloat16": ("BF16", 2), "float32": ("F32", 4), "float64": ("F64", 8), "complex64": ("C64", 8),
    "complex128": ("C128", 16), "float8_e4m3fn": ("F8_E4M3", 1), "float8_e5m2": ("F8_E5M2", 1),
    "float8_e4m3fnuz": ("F8_E4M3FNUZ", 1), "float8_e5m2fnuz": ("F8_E5M2FNUZ", 1), "float8_e8m0fnu": ("F8_E8M0", 1),
}  # fmt: skip
# Before the name of a plug-in's dtype, which other readers of safetensors do not know.
_OF_PLUGINS = "taeda."


class _Skipped(threading.local):
    """What `skip_data` asks for in this thread: no numbers of tensors, and fake tensors as whole ones."""

    data = False
    fakes = False


skipped = _Skipped()


class _DTypes(dict):
    """The built-in dtypes, and those that plug-ins have defined in this process."""

    def __contains__(self, name: object) -> bool:
        plain = isinstance(name, str) and name.isascii() and name.isidentifier()
        return super().__contains__(name) or (plain and _C._find_dtype(name) is not None)

    def __missing__(self, name: str) -> tuple[str, int]:
        if name not in self:
            raise KeyError(name)
        return _OF_PLUGINS + name, 1


class _Codes(dict):
    """Names of dtypes by their codes."""

    def __contains__(self, code: object) -> bool:
        if super().__contains__(code):
            return True
        name = code[len(_OF_PLUGINS) :] if isinstance(code, str) and code.startswith(_OF_PLUGINS) else ""
        return name not in _BUILT_IN and name in DTYPES

    def __missing__(self, code: str) -> str:
        if code not in self:
            raise KeyError(code)
        return code[len(_OF_PLUGINS) :]


DTYPES = _DTypes(_BUILT_IN)
BY_CODE = _Codes({code: name for name, (code, _) in _BUILT_IN.items()})


class CheckpointError(ValueError, RuntimeError, pickle.UnpicklingError):
    """A file that is no well-formed checkpoint; nothing of it was loaded.

    PyTorch raises one or another of its base classes, depending on the file.
    """


class EmptyFileError(CheckpointError, EOFError):
    """A file without a byte."""


def fail(message: str) -> NoReturn:
    """Raises `CheckpointError`."""
    raise CheckpointError(f"load: {message}")


class Budget:
    """What a file may ask for beyond its tensors: bytes of objects, and work counted as such.

    It is in proportion to the file, `times` its size, so that no small file can fill the memory or take years.
    """

    def __init__(self, size: int, times: int = 4) -> None:
        self._size = size
        self._left = max(FREE, times * size)

    def take(self, count: int) -> None:
        """Fails when the file has asked for too much."""
        self._left -= count
        if self._left < 0:
            fail(f"the file of {self._size} bytes asks for objects out of all proportion to its size")


def shown(value: Any) -> str:
    """A short text for a value out of a file, which may be of any size and depth; only its outside is looked at."""
    if isinstance(value, (str, bytes)):
        return repr(value[:60]) + ("..." if len(value) > 60 else "")
    if value is None or isinstance(value, (bool, float)):
        return repr(value)
    if isinstance(value, int):
        return str(value) if value.bit_length() <= 128 else f"an int of {value.bit_length()} bits"
    if isinstance(value, (list, tuple)) and len(value) <= 8 and all(type(item) is int for item in value):
        inside = ", ".join(map(shown, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    return f"a {type(value).__name__}"


def is_count(value: Any) -> bool:
    """Whether a value can be a size."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62


def check_view(offset: Any, shape: Any, stride: Any, elements: int, item: int) -> None:
    """Fails unless a view stays within ``elements`` elements of ``item`` bytes, and its own size can be counted."""
    lists = isinstance(shape, (list, tuple)) and isinstance(stride, (list, tuple))
    if not lists or len(shape) != len(stride) or len(shape) > 64:
        fail(f"a view has shape {shown(shape)} and stride {shown(stride)}, expected two lists of one length")
    steps = all(isinstance(s, int) and abs(s) < 1 << 62 for s in stride)
    if not steps or not is_count(offset) or not all(map(is_count, shape)):
        fail(
            f"a view has offset {shown(offset)}, shape {shown(shape)} and stride {shown(stride)}, expected ints"
        )
    if math.prod(n or 1 for n in shape) * item >= 1 << 62:
        fail(f"a view has shape {shown(shape)}, which is more than can be counted")
    low, high = bounds(list(shape), list(stride)) if 0 not in shape else (0, -1)
    if offset + low < 0 or offset + high >= elements:
        fail(f"a view reaches from element {offset + low} to {offset + high}, has {elements}")


def dtype_name(tensor: Any) -> str:
    """``float32`` for a tensor of that dtype."""
    return str(tensor.dtype).rpartition(".")[2]


def bounds(shape: list[int], stride: list[int]) -> tuple[int, int]:
    """Lowest and highest element that a view reaches, counted from its first; of a view with elements."""
    steps = [(n - 1) * s for n, s in zip(shape, stride, strict=True)]
    return sum(min(step, 0) for step in steps), sum(max(step, 0) for step in steps)
