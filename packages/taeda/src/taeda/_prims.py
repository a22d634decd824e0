"""The operations that PyTorch's reference implementations are made of; those with a public function are that one."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import taeda
from taeda import Tensor
from taeda._prims_common import canonicalize_dim


def broadcast_in_dim(a: Tensor, shape: Sequence[int], broadcast_dimensions: Sequence[int]) -> Tensor:
    """A view of `shape` in which the dimensions of `a` stand at `broadcast_dimensions`.

    Example:
        >>> broadcast_in_dim(taeda.ones(3), (3, 2), (0,)).shape
        Size([3, 2])
    """
    places = iter(a.shape)
    kept = set(broadcast_dimensions)
    return a.reshape([next(places) if d in kept else 1 for d in range(len(shape))]).expand(shape)


def collapse(a: Tensor, start: int, end: int) -> Tensor:
    """The dimensions from `start` to `end`, both included, as one."""
    return a.flatten(start, end) if a.dim() else a.reshape(1)


collapse_view = collapse


def split_dim(a: Tensor, dim: int, outer_length: int) -> Tensor:
    """A dimension as two, of which the first has `outer_length`."""
    return a.unflatten(dim, (outer_length, -1))


def convert_element_type(a: Tensor, dtype: Any) -> Tensor:
    """A copy in another dtype."""
    return a.to(dtype, copy=True)


def device_put(a: Tensor, device: Any, non_blocking: bool = False) -> Tensor:
    """The tensor on another device."""
    return a.to(device, non_blocking=non_blocking)


def iota(
    length: int, *, start: int, step: int, dtype: Any, device: Any = "cpu", requires_grad: bool = False
) -> Tensor:
    """`length` numbers from `start` on, `step` apart."""
    stop = start + length * step
    return taeda.arange(start, stop, step, dtype=dtype, device=device, requires_grad=requires_grad)


def rev(a: Tensor, dims: Sequence[int]) -> Tensor:
    """`flip`."""
    return a.flip(tuple(dims))


def slice(
    a: Tensor,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Tensor:
    """From a first to before a last place of each dimension."""
    steps = strides or [1] * a.dim()
    return a[
        tuple(builtins.slice(*bounds) for bounds in zip(start_indices, limit_indices, steps, strict=True))
    ]


def slice_in_dim(a: Tensor, start_index: int, limit_index: int, stride: int = 1, axis: int = 0) -> Tensor:
    """From a first to before a last place of one dimension."""
    return a[
        (builtins.slice(None, None, None),) * canonicalize_dim(a.dim(), axis)
        + (builtins.slice(start_index, limit_index, stride),)
    ]


def transpose(a: Tensor, permutation: Sequence[int]) -> Tensor:
    """`permute`."""
    return a.permute(*permutation)


def var(a: Tensor, dims: Sequence[int] | None, correction: float = 1, *, output_dtype: Any = None) -> Tensor:
    """The variance over `dims`."""
    made = taeda.var(a, dims, correction=correction)
    return made if output_dtype is None else made.to(output_dtype)


def view_of(a: Tensor) -> Tensor:
    """A view of all of it."""
    return a.view_as(a)


def expand_dims(a: Tensor, dimensions: Sequence[int]) -> Tensor:
    """A view with sizes of 1 at these dimensions of the result."""
    for dim in sorted(dimensions):
        a = a.unsqueeze(dim)
    return a


def maximum_value(dtype: Any) -> Any:
    """The largest number of a dtype, infinity where there is one."""
    if dtype is taeda.bool:
        return True
    return float("inf") if dtype.is_floating_point else taeda.iinfo(dtype).max


def minimum_value(dtype: Any) -> Any:
    """The least number of a dtype, minus infinity where there is one."""
    if dtype is taeda.bool:
        return False
    return -float("inf") if dtype.is_floating_point else taeda.iinfo(dtype).min


def _reduction(name: str) -> Callable[..., Tensor]:
    def reduction(inp: Tensor, dims: Sequence[int] | None, *, output_dtype: Any = None) -> Tensor:
        made = inp
        if name != "prod":
            made = getattr(taeda, name)(inp, tuple(range(inp.dim())) if dims is None else tuple(dims))
        else:
            for dim in sorted(range(inp.dim()) if dims is None else dims, reverse=True):
                made = taeda.prod(made, dim)
        return made if output_dtype is None else made.to(output_dtype)

    reduction.__name__ = reduction.__qualname__ = name
    reduction.__doc__ = f"`{name}` over `dims`, over all dimensions where they are None."
    return reduction


sum, prod, amax, amin = map(_reduction, ("sum", "prod", "amax", "amin"))

#: Names that stand elsewhere.
_OTHER = {
    "bessel_i0": "special.i0", "bessel_i0e": "special.i0e", "bessel_i1": "special.i1", "bessel_i1e": "special.i1e",
    "bessel_j0": "special.bessel_j0", "bessel_j1": "special.bessel_j1", "copy_to": "Tensor.copy_", "erf_inv": "erfinv",
    "erfcx": "special.erfcx", "item": "Tensor.item", "ndtri": "special.ndtri", "resize": "Tensor.resize_",
    "shift_left": "bitwise_left_shift", "shift_right_arithmetic": "bitwise_right_shift",
    "spherical_bessel_j0": "special.spherical_bessel_j0", "view_element_type": "Tensor.view", "zeta": "special.zeta",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    found: Any = None
    if not name.startswith("__"):
        found = taeda
        for part in _OTHER.get(name, name).split("."):
            found = getattr(found, part, None)
    if not callable(found) or isinstance(found, type):
        raise AttributeError(f"module 'taeda._prims' has no attribute {name!r}")
    return found
