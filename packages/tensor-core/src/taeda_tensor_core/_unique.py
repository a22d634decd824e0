"""unique and unique_consecutive, with PyTorch's optional results."""

from __future__ import annotations

from taeda_tensor_core import _C
from taeda_tensor_core._C import Tensor


def _rows(input: Tensor, dim: int) -> Tensor:
    """`input` as a matrix with one row for each index along `dim`."""
    ndim = input.dim()
    if not -max(ndim, 1) <= dim < max(ndim, 1):
        raise IndexError(f"unique: argument 'dim' is {dim}, out of range for a tensor of {ndim} dimensions")
    front = input.movedim(dim, 0)
    return front.reshape(front.size(0), front[:1].numel() if front.numel() else 0)


def _row_order(rows: Tensor) -> Tensor:
    """Order that sorts rows lexicographically."""
    order = _C.arange(rows.size(0), device=rows.device)
    for column in range(rows.size(1) - 1, -1, -1):
        order = order[_C.argsort(rows[:, column][order], stable=True)]
    return order


def _results(
    values: Tensor, inverse: Tensor, counts: Tensor, return_inverse: bool, return_counts: bool
) -> object:
    out = (values, *([inverse] if return_inverse else []), *([counts] if return_counts else []))
    return out if len(out) > 1 else values


def _runs(rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """First row of every run of equal rows, number of the run for each row, lengths of the runs."""
    n = rows.size(0)
    if n == 0:
        none = _C.zeros(0, dtype=_C.int64, device=rows.device)
        return none, none, none
    starts = _C.ones(n, dtype=_C.bool, device=rows.device)
    starts[1:] = (rows[1:] != rows[:-1]).any(1)
    firsts = _C.nonzero(starts)[:, 0]
    ends = _C.cat([firsts[1:], _C.tensor([n], device=rows.device)])
    return firsts, _C.cumsum(starts, 0) - 1, ends - firsts


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
    rows = _rows(input, dim)
    order = _row_order(rows)
    firsts, numbers, counts = _runs(rows[order])
    inverse = _C.empty_like(numbers)
    inverse[order] = numbers
    values = _C.index_select(input, dim, order[firsts])
    return _results(values, inverse, counts, return_inverse, return_counts)


def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> object:
    """The first of every run of equal elements; with `dim` of equal slices along it.

    Example:
        >>> taeda.unique_consecutive(taeda.tensor([1, 1, 2, 1]))
        tensor([1, 2, 1])
    """
    along = 0 if dim is None else dim
    source = input.reshape(-1) if dim is None else input
    firsts, numbers, counts = _runs(_rows(source, along))
    inverse = numbers.reshape(input.shape) if dim is None else numbers
    return _results(_C.index_select(source, along, firsts), inverse, counts, return_inverse, return_counts)
