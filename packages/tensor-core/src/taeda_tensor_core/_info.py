"""Facts about dtypes and memory layouts."""

from __future__ import annotations

from typing import Any

from taeda_tensor_core import _C
from taeda_tensor_core._C import dtype as DType


def library_name() -> str:
    """What texts call the library: torch, where it stands under that name."""
    return repr(_C.float32).partition(".")[0]


class _Named(str):
    """A name of the library, which its text says in full; equal to the name alone."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{library_name()}.{str.__str__(self)}"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __reduce__(self) -> tuple:
        return _named_format, (str.__str__(self),)


class memory_format(_Named):
    """Order of the elements in memory: ``contiguous_format``, ``channels_last`` or ``preserve_format``."""

    __slots__ = ()


def _named_format(name: str) -> memory_format:
    import taeda_tensor_core

    return getattr(taeda_tensor_core, name)


class layout(_Named):
    """How the elements of a tensor are kept: ``strided``, or one of the sparse ways."""

    __slots__ = ()


class plugin_layout(layout):
    """A plug-in's own, which is no name of the library."""

    __slots__ = ()
    __repr__ = __str__ = str.__str__

    def __reduce__(self) -> tuple:
        return plugin_layout, (str.__str__(self),)


strided = layout("strided")
sparse_coo = layout("sparse_coo")
sparse_csr = layout("sparse_csr")
sparse_csc = layout("sparse_csc")
sparse_bsr = layout("sparse_bsr")
sparse_bsc = layout("sparse_bsc")
jagged = layout("jagged")


# bits of the mantissa, largest exponent, smallest normal exponent, digits that always survive
_FLOATS: dict[str, tuple[int, int, int, int]] = {
    "float16": (10, 15, -14, 3),
    "bfloat16": (7, 127, -126, 2),
    "float32": (23, 127, -126, 6),
    "float64": (52, 1023, -1022, 15),
    "float8_e4m3fn": (3, 8, -6, 0),
    "float8_e5m2": (2, 15, -14, 0),
    "float8_e4m3fnuz": (3, 7, -7, 0),
    "float8_e5m2fnuz": (2, 15, -15, 0),
    "float8_e8m0fnu": (0, 127, -127, 0),
}
# Largest and smallest numbers that do not follow from these.
_LARGEST = {"float8_e4m3fn": 448.0, "float8_e8m0fnu": 2.0**127}
_LEAST = {"float8_e8m0fnu": 2.0**-127}
# PyTorch's figure, though the next number after 1 is 1.25.
_EPS = {"float8_e5m2fnuz": 2.0**-3}
# The dtypes that Python's types of numbers stand for.
_OF_PYTHON = {float: _C.float64, complex: _C.complex128, int: _C.int64, bool: _C.bool}
_REAL = {"complex64": "float32", "complex128": "float64"}


class _Limits:
    """Limits of a dtype, which are equal to those of the same one."""

    __slots__ = ()
    dtype: str

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.dtype == self.dtype  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), self.dtype))


class finfo(_Limits):
    """Limits of a floating dtype; of the default dtype when none is given.

    Attributes:
        bits: Bits of one element.
        eps: Distance from 1 to the next larger number.
        max: Largest finite number.
        min: Smallest finite number, which is -max.
        tiny: Smallest positive normal number, also `smallest_normal`.
        resolution: 10 to the number of decimal digits that always survive, as a fraction.
        dtype: The real floating dtype's name.

    Raises:
        TypeError: The dtype is not floating or complex.
    """

    __slots__ = ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")

    def __init__(self, dtype: DType | None = None) -> None:
        given = _C.get_default_dtype() if dtype is None else _OF_PYTHON.get(dtype, dtype)
        name = getattr(given, "name", None)
        name = _REAL.get(name, name)
        if name not in _FLOATS:
            raise TypeError(
                f"finfo: argument 'dtype' must be a floating or complex dtype, found {given!r}; use iinfo for integers"
            )
        mantissa, high, low, digits = _FLOATS[name]
        self.dtype = name
        self.bits = getattr(_C, name).itemsize * 8
        self.eps = 2.0**-mantissa
        self.max = _LARGEST.get(name, (2.0 - self.eps) * 2.0**high)
        self.min = _LEAST.get(name, -self.max)
        self.eps = _EPS.get(name, self.eps)
        self.tiny = self.smallest_normal = 2.0**low
        self.resolution = float(f"1e-{digits}")

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo(_Limits):
    """Limits of an integer dtype.

    Attributes:
        bits: Bits of one element.
        max: Largest number.
        min: Smallest number.
        dtype: The dtype's name.

    Raises:
        TypeError: The dtype is no integer dtype.
    """

    __slots__ = ("bits", "dtype", "max", "min")

    def __init__(self, dtype: DType) -> None:
        dtype = _OF_PYTHON.get(dtype, dtype)
        name = getattr(dtype, "name", "")
        if "int" not in name:
            raise TypeError(
                f"iinfo: argument 'dtype' must be an integer dtype, found {dtype!r}; use finfo for floating dtypes"
            )
        self.dtype = name
        self.bits = dtype.itemsize * 8
        self.min = -(2 ** (self.bits - 1)) if dtype.is_signed else 0
        self.max = 2 ** (self.bits - dtype.is_signed) - 1

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


#: What tensors tell that wrap others and are recorded by nobody: functions of the tensor, by the attribute's name.
FACTS_OUTSIDE_GRAPHS: dict[str, Any] = {
    "data": lambda x: x,
    "requires_grad": lambda x: False,
    "is_leaf": lambda x: True,
    "grad": lambda x: None,
    "grad_fn": lambda x: None,
}
#: The same of those that wrap the codes of real numbers.
FACTS_OF_CODES: dict[str, Any] = FACTS_OUTSIDE_GRAPHS | {
    "is_sparse": lambda x: False,
    "is_nested": lambda x: False,
}
#: Their answers to questions that are methods.
ANSWERS_OF_CODES: dict[str, Any] = dict.fromkeys(
    ("is_floating_point", "is_complex", "is_conj", "is_neg", "is_inference"), lambda x: False
)
