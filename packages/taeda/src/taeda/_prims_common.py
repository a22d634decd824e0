"""Small questions about dtypes, shapes and strides that libraries ask by their private names."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from enum import Enum
from functools import reduce
from typing import Any

from taeda_registry.slots import tensor

Number = bool | int | float | complex
NumberType = Number
DeviceLikeType = Any
TensorLike = Any
TensorLikeType = Any
ShapeType = Sequence[int]
StrideType = Sequence[int]


class ELEMENTWISE_TYPE_PROMOTION_KIND(Enum):
    """What results of an elementwise function are, beside the promoted dtype of its arguments."""

    DEFAULT = (0,)
    NO_OPMATH = (1,)
    INT_TO_FLOAT = (2,)
    ALWAYS_BOOL = (3,)
    COMPLEX_TO_FLOAT = (4,)
    BOOL_TO_LONG = (5,)


def alert_not_deterministic(caller: str) -> None:
    """RuntimeError, or a warning, when only deterministic algorithms are allowed.

    Args:
        caller: The function that has none.
    """
    if not tensor.are_deterministic_algorithms_enabled():
        return
    text = f"{caller} does not have a deterministic implementation, but use_deterministic_algorithms(True) is set."
    if not tensor.is_deterministic_algorithms_warn_only_enabled():
        raise RuntimeError(text)
    import warnings

    warnings.warn(text, UserWarning, stacklevel=2)


def check(b: bool, s: Any, exc_type: type[Exception] = RuntimeError) -> None:
    """Raise an error with the text that a function gives, unless a condition holds."""
    if not b:
        raise exc_type(s())


def is_boolean_dtype(dtype: Any) -> bool:
    """Whether it is bool."""
    return dtype is tensor.bool


def is_float_dtype(dtype: Any) -> bool:
    """Whether it holds real numbers with a fraction."""
    return dtype.is_floating_point


def is_complex_dtype(dtype: Any) -> bool:
    """Whether it holds complex numbers."""
    return dtype.is_complex


def is_integer_dtype(dtype: Any) -> bool:
    """Whether it holds whole numbers; bool does not."""
    return not (dtype.is_floating_point or dtype.is_complex or dtype is tensor.bool)


def dtype_to_type(dtype: Any) -> type:
    """Python's type of an element.

    Example:
        >>> dtype_to_type(taeda.float16)
        <class 'float'>
    """
    if is_boolean_dtype(dtype):
        return bool
    return complex if dtype.is_complex else float if dtype.is_floating_point else int


def type_to_dtype(typ: type) -> Any:
    """The dtype that numbers of a Python type become."""
    made = {bool: tensor.bool, int: tensor.int64, float: tensor.get_default_dtype()}
    return made[typ] if typ in made else corresponding_complex_dtype(tensor.get_default_dtype())


def corresponding_complex_dtype(dtype: Any) -> Any:
    """The complex dtype with parts of a real one."""
    names = {
        tensor.float16: tensor.complex32,
        tensor.float32: tensor.complex64,
        tensor.float64: tensor.complex128,
    }
    return tensor.complex64 if dtype is tensor.bfloat16 else names[dtype]


def corresponding_real_dtype(dtype: Any) -> Any:
    """The dtype of the parts of a complex one."""
    return dtype.to_real()


def get_computation_dtype(dtype: Any) -> Any:
    """What numbers of a dtype are computed in: float32 for half precision."""
    return tensor.float32 if dtype in (tensor.float16, tensor.bfloat16) else dtype


def elementwise_dtypes(*args: Any, type_promotion_kind: ELEMENTWISE_TYPE_PROMOTION_KIND) -> tuple[Any, Any]:
    """The dtype that an elementwise function computes in, and that of its result.

    Args:
        args: Tensors and numbers; None is passed over.
    """
    kind = ELEMENTWISE_TYPE_PROMOTION_KIND
    given = [a for a in args if a is not None]
    found = reduce(tensor.result_type, given) if len(given) > 1 else tensor.result_type(given[0], given[0])
    if type_promotion_kind in (kind.INT_TO_FLOAT, kind.COMPLEX_TO_FLOAT) and is_integer_dtype(found):
        found = tensor.get_default_dtype() if type_promotion_kind is kind.INT_TO_FLOAT else found
    if type_promotion_kind is kind.INT_TO_FLOAT and found is tensor.bool:
        found = tensor.get_default_dtype()
    computed = found if type_promotion_kind is kind.NO_OPMATH else get_computation_dtype(found)
    if type_promotion_kind is kind.ALWAYS_BOOL:
        return computed, tensor.bool
    if type_promotion_kind is kind.COMPLEX_TO_FLOAT and found.is_complex:
        return computed, corresponding_real_dtype(found)
    if type_promotion_kind is kind.BOOL_TO_LONG and found is tensor.bool:
        return tensor.int64, tensor.int64
    return computed, found


def canonicalize_dim(rank: int, idx: int, wrap_scalar: bool = True) -> int:
    """A dimension counted from the front.

    Raises:
        IndexError: There is none of that number.
    """
    most = max(rank, 1) if wrap_scalar else rank
    if not -most <= idx < most:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-most}, {most - 1}], but got {idx})"
        )
    return idx % most


def canonicalize_dims(
    rank: int, indices: int | Iterable[int], wrap_scalar: bool = True
) -> int | tuple[int, ...]:
    """Dimensions counted from the front."""
    if isinstance(indices, int):
        return canonicalize_dim(rank, indices, wrap_scalar)
    return tuple(canonicalize_dim(rank, index, wrap_scalar) for index in indices)


def make_contiguous_strides_for(shape: Sequence[int], row_major: bool = True) -> tuple[int, ...]:
    """The strides of a tensor whose elements follow each other.

    Args:
        shape: Sizes.
        row_major: Let the last dimension run fastest; otherwise the one before it does, as LAPACK wants matrices.

    Example:
        >>> make_contiguous_strides_for((2, 3, 4))
        (12, 4, 1)
    """
    made = [math.prod(max(n, 1) for n in shape[d + 1 :]) for d in range(len(shape))]
    if not row_major and len(shape) >= 2:
        made[-2:] = [1, max(shape[-2], 1)]
    return tuple(made)


def make_channels_last_strides_for(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of images or volumes whose channels run fastest."""
    order = (1, *range(len(shape) - 1, 1, -1), 0)
    made, step = [0] * len(shape), 1
    for d in order:
        made[d], step = step, step * max(shape[d], 1)
    return tuple(made)


def suggest_memory_format(x: Any) -> Any:
    """The memory format of a tensor, where it is one: `channels_last` of images, or `contiguous_format`."""
    names = {4: tensor.channels_last, 5: tensor.channels_last_3d}
    found = names.get(x.dim())
    matches = (
        found is not None and x.stride()[1] == 1 and x.stride() == make_channels_last_strides_for(x.shape)
    )
    return found if matches else tensor.contiguous_format


def is_same_shape(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether two shapes are equal."""
    return tuple(a) == tuple(b)


def compute_required_storage_length(shape: Sequence[int], strides: Sequence[int], storage_offset: int) -> int:
    """How many elements memory has at least that a tensor of these sizes and strides shows."""
    if 0 in shape:
        return 0
    return 1 + storage_offset + sum(map(operator.mul, (n - 1 for n in shape), strides))


def set_correction(unbiased: bool | None = None, correction: float | None = None) -> float:
    """What a variance takes off the number of elements, from either of its two arguments."""
    if unbiased is not None and correction is not None:
        raise RuntimeError("cannot specify both correction and unbiased arguments")
    return (1.0 if unbiased is None else float(unbiased)) if correction is None else correction
