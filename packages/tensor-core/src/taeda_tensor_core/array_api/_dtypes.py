"""Dtypes of the standard: their kinds, and what two of them become together."""

from __future__ import annotations

from typing import Any

from taeda_tensor_core import _C, _info

Tensor = _C.Tensor

BOOL = (_C.bool,)
SIGNED = (_C.int8, _C.int16, _C.int32, _C.int64)
UNSIGNED = (_C.uint8, _C.uint16, _C.uint32, _C.uint64)
REAL = (_C.float32, _C.float64)
COMPLEX = (_C.complex64, _C.complex128)
KINDS = {
    "bool": BOOL,
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": SIGNED + UNSIGNED,
    "real floating": REAL,
    "complex floating": COMPLEX,
    "numeric": SIGNED + UNSIGNED + REAL + COMPLEX,
}
ALL = BOOL + KINDS["numeric"]
NAMES = {str(dtype).rpartition(".")[2]: dtype for dtype in ALL}
#: The scalar types that may meet an array of a kind, by the least kind that holds them.
_SCALARS = {bool: 0, int: 1, float: 2, complex: 3}


def level(dtype: Any) -> int:
    """0 for bool, 1 for integers, 2 for real and 3 for complex floating-point dtypes."""
    return 3 if dtype.is_complex else 2 if dtype.is_floating_point else 0 if dtype == _C.bool else 1


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether ``dtype`` is of a kind: a dtype, a name such as "integral", or a tuple of them."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ValueError(f"isdtype: argument 'kind' is {kind!r}, expected one of {', '.join(KINDS)}")
        return dtype in KINDS[kind] or (kind in ("real floating", "numeric") and level(dtype) == 2)
    return bool(dtype == kind)


def promoted(one: Any, other: Any) -> Any:
    """The dtype that two of the standard's become.

    Raises:
        TypeError: the standard does not say: bool with numbers, integers with floating point, uint64 with signed.
    """
    if one == other:
        return one
    levels = level(one), level(other)
    real = all(n >= 2 for n in levels)
    integers = levels == (1, 1) and not (_C.uint64 in (one, other) and (one in SIGNED or other in SIGNED))
    if not real and not integers:
        raise TypeError(
            f"dtypes {one} and {other} do not promote to a common one; convert one of them with astype"
        )
    return _C.promote_types(one, other) if real else _integers(one, other)


def _integers(one: Any, other: Any) -> Any:
    if (one in SIGNED) == (other in SIGNED):
        return max(one, other, key=lambda dtype: dtype.itemsize)
    signed, unsigned = (one, other) if one in SIGNED else (other, one)
    return SIGNED[[1, 2, 4, 8].index(max(signed.itemsize, 2 * unsigned.itemsize))]


def with_scalar(dtype: Any, value: Any) -> Any:
    """The dtype of an array of ``dtype`` together with a Python number.

    Raises:
        TypeError: the number is of a greater kind than the array (only floating point meets complex ones).
    """
    found = _SCALARS[
        type(value) if type(value) in _SCALARS else next(k for k in _SCALARS if isinstance(value, k))
    ]
    kind = level(dtype)
    if found == 3 and kind == 2:
        return _C.complex128 if dtype == _C.float64 else _C.complex64
    if found > kind or (found == 0 and kind > 0):
        raise TypeError(
            f"a Python {type(value).__name__} does not go with an array of {dtype}; use asarray or astype"
        )
    return dtype


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype that arrays, dtypes and Python numbers become together.

    Raises:
        ValueError: nothing, or nothing but Python numbers.
        TypeError: they do not promote.

    Example:
        >>> result_type(int8, asarray([1], dtype=int16), 3)
        taeda.int16
    """
    dtypes = [
        item if isinstance(item, _C.dtype) else item.dtype
        for item in arrays_and_dtypes
        if not _is_scalar(item)
    ]
    if not dtypes:
        raise ValueError("result_type: expected at least one array or dtype")
    result = dtypes[0]
    for dtype in dtypes[1:]:
        result = promoted(result, dtype)
    for item in arrays_and_dtypes:
        if _is_scalar(item):
            result = with_scalar(result, item)
    return result


def _is_scalar(item: Any) -> bool:
    return isinstance(item, (bool, int, float, complex))


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether the rules of promotion let ``from_``, a dtype or an array, become ``to``."""
    source = from_ if isinstance(from_, _C.dtype) else from_.dtype
    try:
        return bool(promoted(source, to) == to)
    except TypeError:
        return False


class finfo_object:  # the standard's name
    """What `finfo` tells: bits, eps, max, min, smallest_normal, dtype."""

    def __init__(self, dtype: Any) -> None:
        real = {_C.complex64: _C.float32, _C.complex128: _C.float64}.get(dtype, dtype)
        facts = _info.finfo(real)
        self.bits, self.eps, self.max, self.min = facts.bits, facts.eps, facts.max, facts.min
        self.smallest_normal, self.dtype = facts.smallest_normal, real


class iinfo_object:
    """What `iinfo` tells: bits, max, min, dtype."""

    def __init__(self, dtype: Any) -> None:
        facts = _info.iinfo(dtype)
        self.bits, self.max, self.min, self.dtype = facts.bits, facts.max, facts.min, dtype


def finfo(type: Any, /) -> finfo_object:
    """Limits of a floating-point dtype, or of an array's; of complex ones those of their parts."""
    return finfo_object(type if isinstance(type, _C.dtype) else type.dtype)


def iinfo(type: Any, /) -> iinfo_object:
    """Limits of an integer dtype, or of an array's."""
    return iinfo_object(type if isinstance(type, _C.dtype) else type.dtype)
