"""Tensors that are made after a sparse one, and what a sparse tensor says of itself as a dense one would."""

from __future__ import annotations

from typing import Any

import taeda_tensor_core as core
from taeda_tensor_core._sizes import of_several
from taeda_tensor_core.sparse._blocks import BLOCKS, block_size
from taeda_tensor_core.sparse._facts import _dense_dim
from taeda_tensor_core.sparse._making import narrowed, nothing, sparse_coo_tensor, without_elements
from taeda_tensor_core.sparse._places import _cat
from taeda_tensor_core.sparse._tensor import SparseTensor, _table, _with, sparse


def _sizes(name: str, given: tuple[Any, ...], size: Any) -> tuple[int, ...]:
    """A size that is given as one sequence or as numbers."""
    sizes = given if size is None else (size,)
    sizes = of_several(sizes)
    if not all(isinstance(n, int) for n in sizes):
        raise TypeError(f"{name}: argument 'size' is {sizes}, expected ints")
    return sizes


def _without_numbers(name: str) -> None:
    @sparse(name)
    def make(
        self: SparseTensor,
        *given: Any,
        size: Any = None,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: bool = False,
        requires_grad: bool = False,
    ) -> Any:
        shape, kind = _sizes(name, given, size), dtype or self.dtype
        if layout is core.strided:
            return core.zeros(shape, dtype=kind, device=device or self.device, requires_grad=requires_grad)
        shown = core.empty(shape, dtype=kind, device="meta", requires_grad=requires_grad)
        return without_elements(name, shown, layout or self.layout, device, self)

    make.__name__ = name


for _name in ("new_zeros", "new_empty"):
    _without_numbers(_name)


@sparse("new_tensor")
def _new_tensor(
    self: SparseTensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Any:
    return core.tensor(
        data, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad
    )


@sparse("new")
def _new(self: SparseTensor, *given: Any, size: Any = None, device: Any = None) -> Any:
    """A tensor of zeros of a size, or one of indices and values, of this dtype."""
    if len(given) > 1 and isinstance(given[1], core.Tensor):
        return sparse_coo_tensor(
            *given, *(() if size is None else (size,)), dtype=self.dtype, device=device or self.device
        )
    return _table["new_empty"](self, *(given or ((0,) * self.dim(),)), size=size, device=device)


def _with_number(name: str) -> None:
    """`ones_like` and `full_like`: of compressed tensors the elements that there are, of coordinates no sparse one."""

    @sparse(name)
    def alike(input: SparseTensor, *value: Any, dtype: Any = None, layout: Any = None, device: Any = None,
              requires_grad: bool = False, **options: Any) -> Any:  # fmt: skip
        way = input.layout if layout is None else layout
        function = getattr(core, name)
        kind, place = dtype or input.dtype, device or input.device
        if way is core.strided:
            shown = core.empty(tuple(input.shape), dtype=kind, device=place)
            return function(shown, *value, requires_grad=requires_grad, **options)
        if way is not input.layout or input._way == "sparse_coo":
            raise NotImplementedError(
                f"{name}: a number in all places would fill a tensor of layout {way}; pass layout=strided"
            )
        values = function(input._elements.detach(), *value, dtype=kind, device=place, **options)
        made = _with(input, values, tuple(p.to(place) for p in input._places))
        return made.requires_grad_() if requires_grad else made

    alike.__name__ = name


for _name in ("ones_like", "full_like", "randn_like"):
    _with_number(_name)


@sparse("resize_as_", "resize_as_sparse_")
def _resize_as(self: SparseTensor, other: Any, **_: Any) -> SparseTensor:
    if tuple(self.shape) != tuple(other.shape):
        _table["sparse_resize_"](self, other.shape, other.sparse_dim(), other.dense_dim())
    return self


def _joined(name: str, least: int, dim: int) -> None:
    """`vstack` and its like: tensors of at least so many dimensions, one after the other."""

    @sparse(name)
    def stack(tensors: Any) -> Any:
        raised = [_raised(x, least) for x in tensors]
        return _cat(raised, 0 if raised[0].dim() == 1 else dim)


def _raised(x: Any, least: int) -> Any:
    while x.dim() < least:  # a vector is a row
        x = _table["unsqueeze"](x, 0 if x.dim() < 2 else x.dim())
    return x


for _names, _least, _dim in ((("vstack", "row_stack"), 2, 0), (("hstack",), 1, 1), (("dstack",), 3, 2)):
    for _name in _names:
        _joined(_name, _least, _dim)


@sparse("unbind")
def _unbind(input: SparseTensor, dim: int = 0) -> tuple[Any, ...]:
    return tuple(_table["select"](input, dim, i) for i in range(input.shape[dim]))


@sparse("H", "mH", "adjoint")
def _adjoint(self: SparseTensor) -> Any:
    """The transposed matrix of conjugate numbers."""
    turned = _table["transpose"](self, -2, -1)
    return _table["conj"](turned) if turned.is_complex() else turned


@sparse("storage_offset")
def _storage_offset(self: SparseTensor) -> int:
    return 0


@sparse("stride")
def _stride(self: SparseTensor, dim: int | None = None) -> Any:
    """Zeros: elements lie in no order of places.

    Raises:
        RuntimeError: The layout is compressed, of which PyTorch says no strides either.
    """
    if self._way != "sparse_coo":
        raise RuntimeError(f"stride: tensors of layout {self.layout} do not have strides")
    return (0,) * self.dim() if dim is None else 0


def _of_elements(name: str) -> None:
    @sparse(name)
    def ask(self: SparseTensor, *args: Any) -> Any:
        return getattr(self._elements, name)(*args)


for _name in ("is_pinned", "is_inference", "is_conj", "is_neg"):
    _of_elements(_name)


def _number(name: str) -> None:
    @sparse(name)
    def number(self: SparseTensor) -> Any:
        if self.numel() != 1:
            raise RuntimeError(
                f"{name}: found a sparse tensor with {self.numel()} elements, expected one, which alone is a number"
            )
        return getattr(_table["to_dense"](self), name)()


for _name in ("item", "__int__", "__float__", "__complex__"):
    _number(_name)


@sparse("is_nonzero")
def _is_nonzero(input: SparseTensor) -> bool:
    return bool(input)


@sparse("__format__")
def _format(self: SparseTensor, spec: str) -> str:
    if spec:
        raise TypeError(f"unsupported format string passed to {type(self).__name__}.__format__")
    return repr(self)


@sparse("triangular_solve")
def _triangular_solve(
    input: Any, A: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    """x of A x = input for a sparse triangle A, whose places on the other side do not count."""
    dense = A.to_dense() if isinstance(A, SparseTensor) else A
    right = input.to_dense() if isinstance(input, SparseTensor) else input
    return core.triangular_solve(right, dense, upper, transpose, unitriangular)


@sparse("zeros_like")
def _zeros_like(
    input: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    **_: Any,
) -> Any:
    way = input._way if layout is None else str.__str__(layout)
    kind, place = dtype or input.dtype, device or input.device
    if way == "strided":
        made = core.zeros(tuple(input.shape), dtype=kind, device=place)
    else:
        sizes = block_size(input) if input._way in BLOCKS else None
        if way in BLOCKS and sizes is None:
            raise RuntimeError(
                f"zeros_like: layout {way} needs the size of blocks, which {input._way} has not"
            )
        made = nothing(way, tuple(input.shape), kind, place, _dense_dim(input), sizes)
        made = narrowed(made, input)
    return made.requires_grad_() if requires_grad else made


@sparse("empty_like")
def _empty_like(input: Any, *, layout: Any = None, **options: Any) -> Any:
    """Coordinates without elements; compressed tensors keep their places, and layouts of blocks their size."""
    made = _zeros_like(input, layout=layout, **options)
    if input._way == "sparse_coo" or made.layout is not input.layout:
        return made
    values = core.zeros_like(input._elements, dtype=made.dtype, device=made.device)
    kept = _with(made, values, tuple(p.to(made.device).clone() for p in input._places))
    return kept.requires_grad_() if made.requires_grad else kept
