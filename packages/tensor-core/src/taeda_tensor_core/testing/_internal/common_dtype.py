"""Lists of dtypes, which tests go through."""

from __future__ import annotations

from typing import Any

import taeda_tensor_core as tc

_FLOATING = (tc.float32, tc.float64)
_COMPLEX = (tc.complex64, tc.complex128)
_INTEGRAL = (tc.uint8, tc.int8, tc.int16, tc.int32, tc.int64)


def _check(dtypes: tuple[Any, ...]) -> tuple[Any, ...]:
    for dtype in dtypes:
        if not isinstance(dtype, tc.dtype):
            raise TypeError(f"expected dtypes, found {dtype!r}")
    return dtypes


def empty_types() -> tuple[Any, ...]:
    """None."""
    return ()


def floating_types() -> tuple[Any, ...]:
    """float32 and float64."""
    return _FLOATING


def floating_types_and_half() -> tuple[Any, ...]:
    """float32, float64 and float16."""
    return (*_FLOATING, tc.float16)


def floating_types_and(*dtypes: Any) -> tuple[Any, ...]:
    """float32, float64 and others."""
    return _FLOATING + _check(dtypes)


def floating_and_complex_types() -> tuple[Any, ...]:
    """float32, float64 and the complex ones."""
    return _FLOATING + _COMPLEX


def floating_and_complex_types_and(*dtypes: Any) -> tuple[Any, ...]:
    """float32, float64, the complex ones and others."""
    return _FLOATING + _COMPLEX + _check(dtypes)


def double_types() -> tuple[Any, ...]:
    """float64 and complex128."""
    return tc.float64, tc.complex128


def integral_types() -> tuple[Any, ...]:
    """uint8 and the signed integers."""
    return _INTEGRAL


def integral_types_and(*dtypes: Any) -> tuple[Any, ...]:
    """uint8, the signed integers and others."""
    return _INTEGRAL + _check(dtypes)


def all_types() -> tuple[Any, ...]:
    """Floating ones and integers."""
    return _FLOATING + _INTEGRAL


def all_types_and(*dtypes: Any) -> tuple[Any, ...]:
    """Floating ones, integers and others."""
    return _FLOATING + _INTEGRAL + _check(dtypes)


def complex_types() -> tuple[Any, ...]:
    """complex64 and complex128."""
    return _COMPLEX


def complex_types_and(*dtypes: Any) -> tuple[Any, ...]:
    """The complex ones and others."""
    return _COMPLEX + _check(dtypes)


def all_types_and_complex() -> tuple[Any, ...]:
    """Floating ones, integers and complex ones."""
    return _FLOATING + _INTEGRAL + _COMPLEX


def all_types_and_complex_and(*dtypes: Any) -> tuple[Any, ...]:
    """Floating ones, integers, complex ones and others."""
    return _FLOATING + _INTEGRAL + _COMPLEX + _check(dtypes)


def all_types_and_half() -> tuple[Any, ...]:
    """Floating ones, integers and float16."""
    return (*_FLOATING, *_INTEGRAL, tc.float16)


def get_all_dtypes(
    include_half: bool = True,
    include_bfloat16: bool = True,
    include_bool: bool = True,
    include_complex: bool = True,
    include_complex32: bool = False,
    include_qint: bool = False,
) -> list[Any]:
    """All, but for those that are left out."""
    found = [*get_all_int_dtypes(), *get_all_fp_dtypes(include_half, include_bfloat16)]
    found += [tc.bool] if include_bool else []
    return found + (list(_COMPLEX) if include_complex else [])


def get_all_math_dtypes(device: Any) -> list[Any]:
    """Those that are computed with."""
    return [*get_all_int_dtypes(), *get_all_fp_dtypes(not str(device).startswith("cpu"), False), *_COMPLEX]


def get_all_complex_dtypes(include_complex32: bool = False) -> list[Any]:
    """The complex ones."""
    return list(_COMPLEX)


def get_all_int_dtypes() -> list[Any]:
    """uint8 and the signed integers."""
    return list(_INTEGRAL)


def get_all_fp_dtypes(include_half: bool = True, include_bfloat16: bool = True) -> list[Any]:
    """The floating ones."""
    found = list(_FLOATING)
    return found + ([tc.float16] if include_half else []) + ([tc.bfloat16] if include_bfloat16 else [])
