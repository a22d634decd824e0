"""What writing and reading checkpoints share: names of dtypes, and the error of a malformed file."""

from __future__ import annotations

from typing import Any, NoReturn

# Key in a header's metadata under which nesting, numbers and strings are described.
STRUCTURE = "taeda.structure"
MAX_HEADER = 100_000_000
# dtype: its code in safetensors, bytes of an element.
DTYPES = {
    "bool": ("BOOL", 1), "int8": ("I8", 1), "int16": ("I16", 2), "int32": ("I32", 4), "int64": ("I64", 8),
    "uint8": ("U8", 1), "uint16": ("U16", 2), "uint32": ("U32", 4), "uint64": ("U64", 8), "float16": ("F16", 2),
    "bfloat16": ("BF16", 2), "float32": ("F32", 4), "float64": ("F64", 8), "complex64": ("C64", 8),
    "complex128": ("C128", 16),
}  # fmt: skip
BY_CODE = {code: name for name, (code, _) in DTYPES.items()}


class CheckpointError(ValueError):
    """A file that is no well-formed checkpoint; nothing of it was loaded."""


def fail(message: str) -> NoReturn:
    """Raises `CheckpointError`."""
    raise CheckpointError(f"load: {message}")


def dtype_name(tensor: Any) -> str:
    """``float32`` for a tensor of that dtype."""
    return str(tensor.dtype).rpartition(".")[2]


def bounds(shape: list[int], stride: list[int]) -> tuple[int, int]:
    """Lowest and highest element that a view reaches, counted from its first; of a view with elements."""
    steps = [(n - 1) * s for n, s in zip(shape, stride, strict=True)]
    return sum(min(step, 0) for step in steps), sum(max(step, 0) for step in steps)
