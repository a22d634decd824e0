"""New arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import taeda_tensor_core as core
from taeda_tensor_core.array_api import _dtypes
from taeda_tensor_core.array_api._array import Array, as_array, plain
from taeda_tensor_core.array_api._elementwise import array_argument

Tensor = core.Tensor


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Array:
    """An array of nested sequences of numbers, of another library's array, or of an array.

    Args:
        obj: what it is made of; memory is shared with arrays and buffers where nothing has to be converted.
        dtype: by default that of ``obj``: of numbers bool, int64, the default floating-point dtype or its complex one.
        device: by default that of ``obj``, else the default one.
        copy: True always copies, False never, None where it must.

    Raises:
        ValueError: ``copy=False`` where one is needed.
        OverflowError: an int that int64 (or ``dtype``) does not hold.
    """
    if isinstance(obj, Tensor):
        tensor = plain(obj)
        result = tensor.to(device or tensor.device, dtype or tensor.dtype)
        if copy is False and result is not tensor and result.data_ptr() != tensor.data_ptr():
            raise ValueError("asarray: argument 'copy' is False, but another dtype or device needs a copy")
        return as_array(result.clone() if copy and result is tensor else result)
    numbers = isinstance(obj, (bool, int, float, complex)) or (
        isinstance(obj, Sequence) and not isinstance(obj, (str, bytes))
    )
    if not numbers:
        return as_array(core.asarray(obj, dtype=dtype, device=device, copy=copy))
    if copy is False:
        raise ValueError("asarray: argument 'copy' is False, but numbers have no memory to share")
    if _holds_arrays(obj):
        return as_array(core.stack([plain(asarray(part, dtype=dtype, device=device)) for part in obj]))
    return as_array(core.tensor(obj, dtype=dtype, device=device))


def _holds_arrays(obj: Any) -> bool:
    if isinstance(obj, Sequence) and not isinstance(obj, (str, bytes)):
        return any(_holds_arrays(part) for part in obj)
    return isinstance(obj, Tensor)


def arange(
    start: float, /, stop: float | None = None, step: float = 1, *, dtype: Any = None, device: Any = None
) -> Array:
    """start, start + step, ... before stop; of one number, 0 to it."""
    if stop is None:
        start, stop = 0, start
    if dtype is None and not all(isinstance(v, int) for v in (start, stop, step)):
        dtype = core.get_default_dtype()
    if math.copysign(1, step) * (stop - start) <= 0 and step != 0:
        stop = start
    return as_array(core.arange(start, stop, step, dtype=dtype, device=device))


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """An array whose elements are not set."""
    return as_array(core.empty(_shape(shape), dtype=dtype, device=device))


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """An array of zeros."""
    return as_array(core.zeros(_shape(shape), dtype=dtype, device=device))


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """An array of ones."""
    return as_array(core.ones(_shape(shape), dtype=dtype, device=device))


def full(shape: Any, fill_value: complex, *, dtype: Any = None, device: Any = None) -> Array:
    """An array of one number, whose kind says the dtype."""
    return as_array(core.full(_shape(shape), fill_value, dtype=dtype, device=device))


def _shape(shape: Any) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def empty_like(x: Array, /, *, dtype: Any = None, device: Any = None) -> Array:
    """`empty` of the shape, dtype and device of ``x``."""
    return as_array(core.empty_like(array_argument("empty_like", "x", x), dtype=dtype, device=device))


def zeros_like(x: Array, /, *, dtype: Any = None, device: Any = None) -> Array:
    """`zeros` of the shape, dtype and device of ``x``."""
    return as_array(core.zeros_like(array_argument("zeros_like", "x", x), dtype=dtype, device=device))


def ones_like(x: Array, /, *, dtype: Any = None, device: Any = None) -> Array:
    """`ones` of the shape, dtype and device of ``x``."""
    return as_array(core.ones_like(array_argument("ones_like", "x", x), dtype=dtype, device=device))


def full_like(x: Array, /, fill_value: complex, *, dtype: Any = None, device: Any = None) -> Array:
    """`full` of the shape, dtype and device of ``x``."""
    return as_array(
        core.full_like(array_argument("full_like", "x", x), fill_value, dtype=dtype, device=device)
    )


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None
) -> Array:
    """Ones on the ``k``-th diagonal of a matrix of zeros."""
    columns = n_rows if n_cols is None else n_cols
    result = core.zeros((n_rows, columns), dtype=dtype, device=device)
    if -n_rows < k < columns:
        core.diagonal(result, k).fill_(1)
    return as_array(result)


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: Any = None,
    endpoint: bool = True,
) -> Array:
    """``num`` numbers at equal distances, the last of which is ``stop`` or comes before it."""
    if dtype is None and (isinstance(start, complex) or isinstance(stop, complex)):
        dtype = core.complex128 if core.get_default_dtype() == core.float64 else core.complex64
    if endpoint or num == 0:
        return as_array(core.linspace(start, stop, num, dtype=dtype, device=device))
    return as_array(core.linspace(start, stop, num + 1, dtype=dtype, device=device)[:num].clone())


def meshgrid(*arrays: Array, indexing: str = "xy") -> tuple[Array, ...]:
    """Coordinate matrices of coordinate vectors."""
    tensors = [array_argument("meshgrid", "arrays", x) for x in arrays]
    if len({x.dtype for x in tensors}) > 1:
        raise ValueError(f"meshgrid: found dtypes {', '.join(str(x.dtype) for x in tensors)}, expected one")
    return tuple(as_array(x.clone()) for x in core.meshgrid(*tensors, indexing=indexing)) if tensors else ()


def tril(x: Array, /, *, k: int = 0) -> Array:
    """Matrices without what is above the ``k``-th diagonal."""
    return as_array(core.tril(array_argument("tril", "x", x), k))


def triu(x: Array, /, *, k: int = 0) -> Array:
    """Matrices without what is below the ``k``-th diagonal."""
    return as_array(core.triu(array_argument("triu", "x", x), k))


def from_dlpack(x: object, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """An array that shares memory with one of another library; ``copy`` as in `asarray`."""
    return as_array(core.from_dlpack(x, device=device, copy=copy))


def astype(x: Array, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Array:
    """The array in another dtype; complex numbers only become complex ones or bool.

    Raises:
        TypeError: complex numbers and a real dtype.
    """
    tensor = array_argument("astype", "x", x)
    if _dtypes.level(tensor.dtype) == 3 and _dtypes.level(dtype) in (1, 2):
        raise TypeError(f"astype: found {tensor.dtype} and {dtype}; take real(x) or imag(x)")
    result = tensor.to(device or tensor.device, dtype)
    return as_array(result.clone() if copy and result is tensor else result)
