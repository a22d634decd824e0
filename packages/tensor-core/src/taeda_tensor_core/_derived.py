"""Functions and methods that are short programs of operators: scatters into views, sets, joins."""

from __future__ import annotations

from taeda_tensor_core import _C
from taeda_tensor_core._C import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


# --- parts ---


def _parts(name: str, input: Tensor, indices_or_sections: int | Sequence[int], dim: int) -> tuple:
    """Pieces along `dim`; a number of sections must divide the size."""
    sections = indices_or_sections if isinstance(indices_or_sections, int) else None
    if sections is not None and (sections < 1 or input.size(dim) % sections):
        raise RuntimeError(
            f"{name}: argument 'indices_or_sections' is {sections}, which does not divide size {input.size(dim)} of "
            f"dimension {dim} of shape {tuple(input.shape)}"
        )
    return _C.tensor_split(input, indices_or_sections, dim)


def _need_dims(name: str, input: Tensor, least: int) -> None:
    if input.dim() < least:
        raise RuntimeError(
            f"{name}: argument 'input' has shape {tuple(input.shape)}, expected at least {least} dimensions"
        )


def hsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Pieces along dimension 1, or 0 of a tensor with one dimension: equal ones, or cut before the given indices."""
    _need_dims("hsplit", input, 1)
    return _parts("hsplit", input, indices_or_sections, 0 if input.dim() == 1 else 1)


def vsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Pieces along dimension 0: equal ones, or cut before the given indices."""
    _need_dims("vsplit", input, 2)
    return _parts("vsplit", input, indices_or_sections, 0)


def dsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Pieces along dimension 2: equal ones, or cut before the given indices."""
    _need_dims("dsplit", input, 3)
    return _parts("dsplit", input, indices_or_sections, 2)


def narrow_copy(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """`narrow` in memory of its own."""
    return _C.clone(_C.narrow(input, dim, start, length))


def adjoint(input: Tensor) -> Tensor:
    """The conjugate with the last two dimensions exchanged."""
    _need_dims("adjoint", input, 2)
    return input.transpose(-2, -1).conj() if input.is_complex() else input.transpose(-2, -1)


# --- writing into a part of a copy ---


def _written(name: str, place: Tensor, src: Tensor, made: Tensor) -> Tensor:
    if place.shape != src.shape:
        raise RuntimeError(
            f"{name}: argument 'src' has shape {tuple(src.shape)}, expected {tuple(place.shape)} as the place"
        )
    place.copy_(src)
    return made


def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """A copy of `input` with `src` in the place of ``input[start:end:step]`` along `dim`."""
    made = input.clone()
    if not -input.dim() <= dim < input.dim():
        raise IndexError(
            f"slice_scatter: argument 'dim' is {dim}, out of range for shape {tuple(input.shape)}"
        )
    if step < 1:
        raise ValueError(f"slice_scatter: argument 'step' is {step}, expected at least 1")
    key = (slice(None),) * (dim % input.dim()) + (slice(start, end, step),)
    return _written("slice_scatter", made[key], src, made)


def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy of `input` with `src` in the place of ``input.select(dim, index)``."""
    made = input.clone()
    return _written("select_scatter", made.select(dim, index), src, made)


def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy of `input` with `src` in the place of ``input.diagonal(offset, dim1, dim2)``."""
    made = input.clone()
    return _written("diagonal_scatter", made.diagonal(offset, dim1, dim2), src, made)


def put_(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Write `source` to places of the flattened tensor; with `accumulate` add.

    Raises:
        RuntimeError: `source` has another dtype or number of elements than needed.
        IndexError: A place does not exist.

    Example:
        >>> taeda.zeros(2, 2).put_(taeda.tensor([3, 0]), taeda.tensor([5.0, 6.0]))
        tensor([[6., 0.],
                [0., 5.]])
    """
    if source.dtype != self.dtype or source.numel() != index.numel():
        raise RuntimeError(
            f"put_: argument 'source' must have dtype {self.dtype} and {index.numel()} elements as 'index', "
            f"found {source.dtype} and {source.numel()}"
        )
    own = self.is_contiguous()
    flat = self.view(-1) if own else self.reshape(-1)
    flat.index_put_((index.reshape(-1),), source.reshape(-1), accumulate)
    return self if own else self.copy_(flat.view(self.shape))


def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """A copy of `input` with `source` at places of its flattened form."""
    return put_(input.clone(), index, source, accumulate)


def _spread(name: str, self: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """A 1-d index as one of the shape of `source`."""
    if index.dim() > 1 or not -max(self.dim(), 1) <= dim < max(self.dim(), 1):
        raise IndexError(
            f"{name}: expected a 1-dimensional 'index' and a dimension of shape {tuple(self.shape)}, found an index of "
            f"shape {tuple(index.shape)} and dim={dim}"
        )
    expected = list(self.shape)
    if expected:
        expected[dim] = index.numel()
    if list(source.shape) != expected:
        raise RuntimeError(
            f"{name}: argument 'source' has shape {tuple(source.shape)}, expected {tuple(expected)} for an index of "
            f"{index.numel()} elements"
        )
    shape = [1] * self.dim()
    if shape:
        shape[dim] = index.numel()
    return index.reshape(shape).expand(expected)


def index_reduce_(
    self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Combine slices of `source` into the places `index` along `dim`, in place.

    Args:
        dim: Dimension that `index` counts.
        index: 1-d, integers.
        source: Shape of the tensor, with the length of `index` at `dim`.
        reduce: ``prod``, ``mean``, ``amax`` or ``amin``.
        include_self: Whether the values that stand there take part.
    """
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(
            f"index_reduce_: argument 'reduce' must be 'prod', 'mean', 'amax' or 'amin', found {reduce!r}"
        )
    places = _spread("index_reduce_", self, dim, index, source)
    return self.scatter_reduce_(dim, places, source, reduce, include_self=include_self)


def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """`index_reduce_` on a copy of `input`."""
    return index_reduce_(input.clone(), dim, index, source, reduce, include_self=include_self)


# --- products in place ---


def addbmm_(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`addbmm` in place."""
    return self.copy_(_C.addbmm(self, batch1, batch2, beta=beta, alpha=alpha))


def addr_(self: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`addr` in place."""
    return self.copy_(_C.addr(self, vec1, vec2, beta=beta, alpha=alpha))


# --- functions ---


def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """Matrix with the flattened `input` on its diagonal."""
    return _C.diag(input.reshape(-1), offset)


def isin(
    elements: Tensor | float,
    test_elements: Tensor | float,
    *,
    assume_unique: bool = False,
    invert: bool = False,
) -> Tensor:
    """Which of `elements` are among `test_elements`.

    Args:
        elements: A tensor or a number.
        test_elements: A tensor of any shape or a number; NaN is equal to nothing.
        assume_unique: Taken for compatibility; the result does not depend on it.
        invert: Give those that are not among them.

    Returns: bool, in the shape of `elements`.

    Example:
        >>> taeda.isin(taeda.tensor([1, 2, 3]), taeda.tensor([3, 1]))
        tensor([ True, False,  True])
    """
    elements, tests = _C.as_tensor(elements), _C.as_tensor(test_elements).reshape(-1)
    if tests.numel() == 0:
        found = _C.zeros(elements.shape, dtype=_C.bool, device=elements.device)
    else:
        dtype = _C.promote_types(elements.dtype, tests.dtype)
        dtype = _C.uint8 if dtype is _C.bool else dtype
        elements, tests = elements.to(dtype), tests.to(dtype)
        ordered = _C.sort(tests)[0]
        at = _C.searchsorted(ordered, elements.contiguous()).clamp(max=tests.numel() - 1)
        found = ordered[at] == elements
    return found.logical_not() if invert else found


def block_diag(*tensors: Tensor) -> Tensor:
    """Matrix with the given ones along its diagonal and zeros elsewhere; a vector counts as a row, a number as 1x1.

    Raises:
        ValueError: A tensor of more than 2 dimensions.
    """
    for i, part in enumerate(tensors):
        if part.dim() > 2:
            raise ValueError(
                f"block_diag: argument {i} has shape {tuple(part.shape)}, expected at most 2 dimensions"
            )
    parts = [_C.atleast_2d(part) for part in tensors] or [_C.zeros((1, 0))]
    dtype = parts[0].dtype
    for part in parts[1:]:
        dtype = _C.promote_types(dtype, part.dtype)
    shape = (sum(part.size(0) for part in parts), sum(part.size(1) for part in parts))
    made = _C.zeros(shape, dtype=dtype, device=parts[0].device)
    row = column = 0
    for part in parts:
        made[row : row + part.size(0), column : column + part.size(1)] = part
        row, column = row + part.size(0), column + part.size(1)
    return made


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of the elements of vectors, as rows, the last changing fastest; one vector stays as it is.

    Raises:
        RuntimeError: None is given, or one that is no vector.
    """
    if not tensors:
        raise RuntimeError("cartesian_prod: expected at least one tensor")
    for i, part in enumerate(tensors):
        if part.dim() != 1:
            raise RuntimeError(
                f"cartesian_prod: argument {i} has shape {tuple(part.shape)}, expected 1 dimension"
            )
    if len(tensors) == 1:
        return tensors[0]
    grids = _C.meshgrid(*tensors, indexing="ij")
    return _C.stack([grid.reshape(-1) for grid in grids], 1)


def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Coordinates, in a tensor of `shape`, of places of its flattened form.

    Args:
        indices: Integers.
        shape: Sizes, none negative.

    Returns: One int64 tensor of the shape of `indices` for each dimension.

    Example:
        >>> taeda.unravel_index(taeda.tensor([5, 2]), (2, 3))
        (tensor([1, 0]), tensor([2, 2]))
    """
    if indices.is_floating_point() or indices.is_complex() or indices.dtype is _C.bool:
        raise TypeError(
            f"unravel_index: argument 'indices' must be of an integer dtype, found {indices.dtype}"
        )
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(size < 0 for size in sizes):
        raise ValueError(f"unravel_index: argument 'shape' must have no negative size, found {sizes}")
    rest, found = indices.to(_C.int64), []
    for size in reversed(sizes):
        found.append(rest % size if size else rest)
        rest = rest // size if size else rest
    return tuple(reversed(found))


def trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: float | Tensor | None = None, dim: int = -1
) -> Tensor:
    """Integral along `dim` by the trapezoidal rule.

    Args:
        y: Values, at least one dimension.
        x: Where they were taken: the length of `y` along `dim`, or the shape of `y`; steps of `dx` without it.
        dx: Distance of neighbours, 1 by default; excludes `x`.
        dim: Dimension to integrate over.

    Returns: `y` without `dim`.

    Example:
        >>> taeda.trapezoid(taeda.tensor([1.0, 5.0, 10.0]))
        tensor(10.5000)
    """
    if x is not None and dx is not None:
        raise RuntimeError("trapezoid: arguments 'x' and 'dx' exclude each other")
    n = y.size(dim)
    if n < 2:
        return (y / 2).sum(dim) * 0
    pairs = y.narrow(dim, 1, n - 1) + y.narrow(dim, 0, n - 1)
    if x is None:
        return (pairs * (1 if dx is None else dx) / 2).sum(dim)
    along = dim if x.dim() == y.dim() else -1
    if x.size(along) != n:
        raise RuntimeError(
            f"trapezoid: argument 'x' has shape {tuple(x.shape)}, expected size {n} along the dimension of 'y' "
            f"{tuple(y.shape)} that is integrated"
        )
    steps = x.narrow(along, 1, n - 1) - x.narrow(along, 0, n - 1)
    if x.dim() == 1 and y.dim() > 1:
        shape = [1] * y.dim()
        shape[dim] = n - 1
        steps = steps.reshape(shape)
    return (pairs * steps / 2).sum(dim)


trapz = trapezoid

METHODS = [
    hsplit, vsplit, dsplit, narrow_copy, adjoint, slice_scatter, select_scatter,
    diagonal_scatter, put_, put, index_reduce_, index_reduce, addbmm_, addr_, diagflat,
]  # fmt: skip
