"""Shapes of arrays, and elements at places."""

from __future__ import annotations

import operator
from typing import Any

import taeda_tensor_core as core
from taeda_tensor_core.array_api import _dtypes
from taeda_tensor_core.array_api._array import Array, as_array, axis_of, plain
from taeda_tensor_core.array_api._elementwise import array_argument, both

Tensor = core.Tensor


def _many(name: str, arrays: Any) -> list[Any]:
    """Tensors of a common dtype."""
    tensors = [array_argument(name, "arrays", x) for x in arrays]
    if not tensors:
        raise ValueError(f"{name}: argument 'arrays' is empty")
    dtype = _dtypes.result_type(*(x.dtype for x in tensors))
    return [x.to(dtype) for x in tensors]


def axes_of(name: str, x: Any, axis: Any) -> tuple[int, ...]:
    """One axis, several, or None for all, each counted from 0.

    Raises:
        ValueError: one of them twice.
    """
    if axis is None:
        return tuple(range(x.ndim))
    axes = tuple(axis_of(name, x, one) for one in (axis if isinstance(axis, tuple) else (axis,)))
    if len(set(axes)) != len(axes):
        raise ValueError(f"{name}: argument 'axis' is {axis}, expected each axis once")
    return axes


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that arrays of ``shapes`` have together.

    Raises:
        ValueError: they do not broadcast.
    """
    try:
        return tuple(core.broadcast_shapes(*shapes)) if shapes else ()
    except RuntimeError as error:
        raise ValueError(str(error).replace("broadcast_tensors", "broadcast_shapes")) from None


def broadcast_arrays(*arrays: Array) -> tuple[Array, ...]:
    """Arrays of one shape, views."""
    if not arrays:
        return ()
    return tuple(
        as_array(x)
        for x in core.broadcast_tensors(*(array_argument("broadcast_arrays", "arrays", x) for x in arrays))
    )


def broadcast_to(x: Array, /, shape: tuple[int, ...]) -> Array:
    """The array in a shape that it broadcasts to, a view."""
    return as_array(core.broadcast_to(array_argument("broadcast_to", "x", x), shape))


def concat(arrays: Any, /, *, axis: int | None = 0) -> Array:
    """Arrays one after another along ``axis``; flattened first when it is None."""
    tensors = _many("concat", arrays)
    if axis is None:
        tensors, axis = [x.reshape(-1) for x in tensors], 0
    axis = axis_of("concat", tensors[0], axis)
    for x in tensors:
        if x.ndim != tensors[0].ndim:
            raise ValueError(f"concat: found arrays of {tensors[0].ndim} and {x.ndim} dimensions")
    return as_array(core.cat(tensors, axis))


def stack(arrays: Any, /, *, axis: int = 0) -> Array:
    """Arrays along a new axis."""
    return as_array(core.stack(_many("stack", arrays), axis))


def unstack(x: Array, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The parts along ``axis``, views."""
    tensor = array_argument("unstack", "x", x)
    return tuple(as_array(part) for part in core.unbind(tensor, axis_of("unstack", tensor, axis)))


def expand_dims(x: Array, /, axis: Any) -> Array:
    """With new axes of size 1, a view; their places are those of the result.

    Raises:
        IndexError: no such place.
        ValueError: a place twice.
    """
    tensor = array_argument("expand_dims", "x", x)
    places = axis if isinstance(axis, tuple) else (axis,)
    ndim = tensor.ndim + len(places)
    for place in places:
        if not -ndim <= operator.index(place) < ndim:
            raise IndexError(f"expand_dims: argument 'axis' is {axis}, expected {-ndim} to {ndim - 1}")
    wanted = sorted(place % ndim for place in places)
    if len(set(wanted)) != len(wanted):
        raise ValueError(f"expand_dims: argument 'axis' is {axis}, expected each place once")
    for place in wanted:
        tensor = tensor.unsqueeze(place)
    return as_array(tensor)


def squeeze(x: Array, /, axis: Any) -> Array:
    """Without axes of size 1, a view.

    Raises:
        ValueError: an axis has another size.
    """
    tensor = array_argument("squeeze", "x", x)
    axes = axes_of("squeeze", tensor, axis)
    wrong = next((a for a in axes if tensor.shape[a] != 1), None)
    if wrong is not None:
        raise ValueError(f"squeeze: axis {wrong} has size {tensor.shape[wrong]}, expected 1")
    return as_array(tensor.squeeze(axes) if axes else tensor)


def flip(x: Array, /, *, axis: Any = None) -> Array:
    """With elements in reverse order along axes."""
    tensor = array_argument("flip", "x", x)
    return as_array(core.flip(tensor, axes_of("flip", tensor, axis)))


def moveaxis(x: Array, source: Any, destination: Any, /) -> Array:
    """With axes at other places, a view."""
    return as_array(core.moveaxis(array_argument("moveaxis", "x", x), source, destination))


def permute_dims(x: Array, /, axes: tuple[int, ...]) -> Array:
    """With axes in another order, a view."""
    return as_array(core.permute(array_argument("permute_dims", "x", x), tuple(axes)))


def matrix_transpose(x: Array, /) -> Array:
    """The transposes of a stack of matrices, a view."""
    return as_array(array_argument("matrix_transpose", "x", x)).mT


def reshape(x: Array, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Array:
    """In another shape; ``copy``: True always copies, False never, None where it must.

    Raises:
        ValueError: ``copy=False`` where one is needed, or a shape of another number of elements.
    """
    tensor = array_argument("reshape", "x", x)
    try:
        if copy is False:
            return as_array(tensor.view(shape))
        result = tensor.reshape(shape)
    except RuntimeError as error:
        raise ValueError(str(error)) from error
    return as_array(result.clone() if copy and result.data_ptr() == tensor.data_ptr() else result)


def roll(x: Array, /, shift: Any, *, axis: Any = None) -> Array:
    """With elements moved along axes, those that fall off at the other end; flattened when ``axis`` is None."""
    return as_array(core.roll(array_argument("roll", "x", x), shift, axis))


def repeat(x: Array, repeats: Any, /, *, axis: int | None = None) -> Array:
    """With each element several times; ``repeats`` an int or an array of them."""
    tensor = array_argument("repeat", "x", x)
    counts = plain(repeats).to(core.int64) if isinstance(repeats, Tensor) else repeats
    if axis is None:
        tensor, axis = tensor.reshape(-1), 0
    if isinstance(counts, Tensor) and counts.numel() == 1:
        counts = int(counts.item())
    return as_array(core.repeat_interleave(tensor, counts, axis_of("repeat", tensor, axis)))


def tile(x: Array, repetitions: tuple[int, ...], /) -> Array:
    """Several of it along each axis."""
    return as_array(core.tile(array_argument("tile", "x", x), tuple(repetitions)))


def take(x: Array, indices: Array, /, *, axis: int | None = None) -> Array:
    """Parts at ``indices`` along ``axis``, which an array of one dimension need not say."""
    tensor, places = array_argument("take", "x", x), array_argument("take", "indices", indices)
    if axis is None:
        if tensor.ndim != 1:
            raise ValueError(f"take: argument 'axis' is needed for an array of {tensor.ndim} dimensions")
        axis = 0
    axis = axis_of("take", tensor, axis)
    found = core.index_select(tensor, axis, _from_zero(places, tensor.shape[axis]).reshape(-1))
    return as_array(found.reshape((*tensor.shape[:axis], *places.shape, *tensor.shape[axis + 1 :])))


def take_along_axis(x: Array, indices: Array, /, *, axis: int = -1) -> Array:
    """Elements at ``indices``, one for each of their places, along ``axis``."""
    tensor, places = (
        array_argument("take_along_axis", "x", x),
        array_argument("take_along_axis", "indices", indices),
    )
    axis = axis_of("take_along_axis", tensor, axis)
    return as_array(core.take_along_dim(tensor, _from_zero(places, tensor.shape[axis]), axis))


def _from_zero(places: Any, size: int) -> Any:
    places = places.to(core.int64)
    return core.where(places < 0, places + size, places)


def nonzero(x: Array, /) -> tuple[Array, ...]:
    """Where elements are not zero, an array of int64 for each axis."""
    tensor = array_argument("nonzero", "x", x)
    if tensor.ndim == 0:
        raise ValueError("nonzero: found 0 dimensions, expected at least 1")
    return tuple(as_array(part) for part in core.nonzero(tensor, as_tuple=True))


def where(condition: Array, x1: Any, x2: Any, /) -> Array:
    """x1 where ``condition`` holds, x2 elsewhere."""
    chosen = array_argument("where", "condition", condition)
    if chosen.dtype != core.bool:
        raise TypeError(f"where: argument 'condition' is of {chosen.dtype}, expected bool")
    if not isinstance(x1, Tensor) and not isinstance(x2, Tensor):
        dtype = plain_dtype(x1, x2)
        x1 = core.full((), x1, dtype=dtype)
    a, b = both("where", x1, x2)
    return as_array(core.where(chosen, a, b))


def plain_dtype(*numbers: Any) -> Any:
    """The default dtype of the greatest kind among Python numbers."""
    return core.tensor(list(numbers)).dtype
