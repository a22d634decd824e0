"""unique and unique_consecutive, with PyTorch's optional results."""

from __future__ import annotations

from taeda_tensor_core import _C
from taeda_tensor_core._C import Tensor

#: Elements beyond which two steps over them are quicker than to number and count the runs as well.
_MANY = 1024


def _results(
    values: Tensor, inverse: Tensor, counts: Tensor, return_inverse: bool, return_counts: bool
) -> object:
    out = (values, *([inverse] if return_inverse else []), *([counts] if return_counts else []))
    return out if len(out) > 1 else values


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> object:
    """Different elements, ascending; with `dim` the different slices along it.

    Args:
        input: Any tensor.
        sorted: Accepted for PyTorch's sake; the result is always sorted.
        return_inverse: Also give, for every element, its place in the result.
        return_counts: Also give how often each one occurs.
        dim: Dimension whose slices are compared; None compares elements.

    Example:
        >>> taeda.unique(taeda.tensor([2, 1, 2]))
        tensor([1, 2])
    """
    if dim is None:
        values, _, inverse, counts = _C.unique_all(input)
        return _results(values, inverse, counts, return_inverse, return_counts)
    values, inverse, counts = _C.ops.unique_dim(input, dim)
    return _results(values, inverse, counts, return_inverse, return_counts)


def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> object:
    """The first of every run of equal elements; with `dim` of equal slices along it.

    Example:
        >>> taeda.unique_consecutive(taeda.tensor([1, 1, 2, 1]))
        tensor([1, 2, 1])
    """
    if dim is None and not (return_inverse or return_counts) and input.numel() > _MANY:
        flat = input.detach().flatten()
        fresh = _C.ones(flat.numel(), dtype=_C.bool, device=flat.device)
        _C.ne(flat[1:], flat[:-1], out=fresh[1:])
        return flat[fresh]
    if dim is None:
        values, inverse, counts = _C.ops.unique_consecutive_all(input)
    else:
        values, inverse, counts = _C.ops.unique_dim_consecutive(input, dim)
    return _results(values, inverse, counts, return_inverse, return_counts)
