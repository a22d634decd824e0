"""Rules of vmap: element-wise operators, views, reductions, and what works along one dimension."""

from __future__ import annotations

from typing import Any

from taeda.func._batching import changed, rule, tensors_of
from taeda.func._levels import Batching
from taeda_registry.slots import tensor

Tensor = tensor.Tensor


# Shapes of operands


def padded(whole: Any, dims: int) -> Any:
    """The tensor of a batch with `dims` dimensions behind the batch's: sizes of 1 come right behind it."""
    missing = dims - (whole.dim() - 1)
    return whole.reshape(whole.shape[0], *[1] * missing, *whole.shape[1:]) if missing > 0 else whole


def behind(dim: int, dims: int) -> int:
    """A dimension of an example as one of the batch."""
    wrapped = dim + max(dims, 1) if dim < 0 else dim
    if not 0 <= wrapped < max(dims, 1):
        raise IndexError(
            f"vmap: found dimension {dim}, expected {-max(dims, 1)} to {max(dims, 1) - 1} for {dims} dimensions"
        )
    return wrapped + 1


def _stand_in(operand: Any) -> Any:
    """What promotes as an operand does: itself if it is a number, else a tensor without elements."""
    number = tensor._C._wrapped_number(operand)
    if number is not operand:
        return number
    return tensor.empty((1,) * min(operand.dim(), 1), dtype=operand.dtype, device="meta")


def _common_dtype(operands: list[Any]) -> Any:
    """The dtype that element-wise operators promote an example's operands to."""
    stand_ins = sorted(map(_stand_in, operands), key=lambda each: not isinstance(each, Tensor))
    result = stand_ins[0]
    for other in stand_ins[1:]:
        dims = max(result.dim(), other.dim() if isinstance(other, Tensor) else 0)
        result = tensor.empty((1,) * dims, dtype=tensor.result_type(result, other), device="meta")
    return result.dtype


def _promoted(level: Batching, operands: list[Any]) -> list[Any]:
    """Examples of no dimension promote less than tensors with dimensions do, which is what they are in a batch."""
    wholes = [level.whole(t) for t in operands]
    if not any(t.dim() == 0 and whole is not None for t, whole in zip(operands, wholes, strict=True)):
        return wholes
    if len({t.dtype for t in operands}) == 1:
        return wholes
    dtype = _common_dtype(operands)
    return [
        whole.to(dtype) if whole is not None and t.dim() == 0 and t.dtype is not tensor.bool else whole
        for t, whole in zip(operands, wholes, strict=True)
    ]


def aligned(level: Batching, op: Any, *args: Any, **kwargs: Any) -> Any:
    """Element-wise operators: operands of fewer dimensions get sizes of 1 behind the batch."""
    operands = tensors_of([*args, *kwargs.values()])
    dims = max(t.dim() for t in operands)
    condition = 1 if op.name.startswith("where") else 0
    wholes = [*map(level.whole, operands[:condition]), *_promoted(level, operands[condition:])]
    ready = iter(
        t if whole is None else padded(whole, dims) for t, whole in zip(operands, wholes, strict=True)
    )
    args = tuple(changed(list(args), lambda _: next(ready)))
    kwargs = {name: changed(value, lambda _: next(ready)) for name, value in kwargs.items()}
    return op(*args, **kwargs)


@rule("masked_fill")
def _masked_fill(level: Batching, op: Any, self: Any, mask: Any, value: Any) -> Any:
    if not isinstance(value, Tensor) or level.whole(value) is None:
        return aligned(level, op, self, mask, value)
    dims = max(self.dim(), mask.dim())
    x, m, v = (padded(level.expanded(t), dims) for t in (self, mask, value))
    return tensor.where(m, v.to(x.dtype), x)


@rule(
    "cast", "clone", "conj", "detach", "frexp", "tril", "triu", "view_as_complex", "view_as_real", "view.dtype",
)  # fmt: skip
def alone(level: Batching, op: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    """What works on each element, or on the last dimensions."""
    whole = level.whole(self)
    if op.name in ("tril", "triu", "view_as_complex", "view.dtype") and self.dim() == 0:
        return NotImplemented
    if op.name == "clone":
        return op(whole)  # how an example lies in memory cannot be seen
    return op(whole, *args, **kwargs)


@rule("fill_", "copy_same_")
def _fill(level: Batching, op: Any, self: Any, value: Any) -> Any:
    whole = level.whole(self)
    if isinstance(value, Tensor):
        found = level.whole(value)
        whole.copy_(value if found is None else padded(found, self.dim()))
    else:
        op(whole, value)


# Views


@rule("view", "reshape")
def _view(level: Batching, op: Any, self: Any, size: Any) -> Any:
    whole = level.whole(self)
    sizes = list(size)
    if -1 in sizes:
        known = 1
        for each in sizes:
            known *= 1 if each == -1 else each
        sizes[sizes.index(-1)] = self.numel() // known if known else 0
    try:
        return op(whole, [whole.shape[0], *sizes])
    except RuntimeError:
        return whole.reshape(whole.shape[0], *sizes)  # its memory is not that of one example


@rule("expand")
def _expand(level: Batching, op: Any, self: Any, size: Any, **kwargs: Any) -> Any:
    whole = padded(level.whole(self), len(size))
    return op(whole, [whole.shape[0], *size], **kwargs)


@rule("permute")
def _permute(level: Batching, op: Any, self: Any, dims: Any) -> Any:
    return op(level.whole(self), [0, *(behind(d, self.dim()) for d in dims)])


@rule("transpose")
def _transpose(level: Batching, op: Any, self: Any, dim0: int, dim1: int) -> Any:
    whole = level.whole(self)
    first, second = behind(dim0, self.dim()), behind(dim1, self.dim())
    return op(whole, first, second) if self.dim() else whole


@rule("unsqueeze")
def _unsqueeze(level: Batching, op: Any, self: Any, dim: int) -> Any:
    return op(level.whole(self), behind(dim, self.dim() + 1))


@rule("squeeze")
def _squeeze(level: Batching, op: Any, self: Any) -> Any:
    whole = level.whole(self)
    ones = [d + 1 for d, n in enumerate(self.shape) if n == 1]
    return whole.squeeze(tuple(ones)) if ones else whole.view_as(whole)


@rule("squeeze.dims")
def _squeeze_dims(level: Batching, op: Any, self: Any, dim: Any) -> Any:
    whole = level.whole(self)
    return op(whole, [behind(d, self.dim()) for d in dim]) if self.dim() else whole.view_as(whole)


@rule("diagonal")
def _diagonal(level: Batching, op: Any, self: Any, offset: int, dim1: int, dim2: int) -> Any:
    return op(level.whole(self), offset, behind(dim1, self.dim()), behind(dim2, self.dim()))


@rule("as_strided")
def _as_strided(
    level: Batching, op: Any, self: Any, size: Any, stride: Any, storage_offset: Any = None
) -> Any:
    # An example's memory is taken as row-major: that is what its strides say.
    whole = level.whole(self).contiguous()
    start = whole.storage_offset() + (storage_offset or 0)
    return op(whole, [whole.shape[0], *size], [whole.stride(0), *stride], start)


# Copies with parts written


def _both(level: Batching, self: Any, src: Any) -> tuple[Any, Any]:
    return level.expanded(self), level.expanded(src)


@rule("select_scatter", "slice_scatter")
def _scatter_along(level: Batching, op: Any, self: Any, src: Any, dim: int = 0, *rest: Any) -> Any:
    return op(*_both(level, self, src), behind(dim, self.dim()), *rest)


@rule("diagonal_scatter")
def _diagonal_scatter(
    level: Batching, op: Any, self: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Any:
    return op(*_both(level, self, src), offset, behind(dim1, self.dim()), behind(dim2, self.dim()))


@rule("as_strided_scatter")
def _as_strided_scatter(
    level: Batching, op: Any, self: Any, src: Any, size: Any, stride: Any, storage_offset: Any = None
) -> Any:
    # An example's memory is taken as row-major, from its first element on: so its copy is.
    base, parts = _both(level, self, src)
    made = [
        op(base[i].contiguous().clone(), parts[i], size, stride, storage_offset) for i in range(level.size)
    ]
    return tensor.stack(made) if made else base.clone()


@rule("fill")
def _fill(level: Batching, op: Any, self: Any, value: Any) -> Any:
    if not isinstance(value, Tensor):
        return op(level.whole(self), value)
    made = tensor.empty_like(level.expanded(self), memory_format=tensor.contiguous_format)
    return made.copy_(padded(level.expanded(value), self.dim()))


# New memory, and places for elements among zeros


@rule("empty_like", "full_like", "ones_like", "zeros_like")
def _like(level: Batching, op: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    return op(level.whole(self), *args, **kwargs)


@rule("new_empty", "new_full", "new_ones", "new_zeros")
def _new(level: Batching, op: Any, self: Any, size: Any, *args: Any, **kwargs: Any) -> Any:
    return op(level.whole(self), [level.size, *size], *args, **kwargs)


@rule("constant_pad_nd")
def _pad(level: Batching, op: Any, self: Any, pad: Any, value: Any = 0) -> Any:
    return op(level.whole(self), pad, value)  # the last dimensions come first


@rule("diag_embed")
def _diag_embed(level: Batching, op: Any, self: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    return op(level.whole(self), offset, behind(dim1, self.dim() + 1), behind(dim2, self.dim() + 1))


@rule("block_diag")
def _block_diag(level: Batching, op: Any, tensors: Any) -> Any:
    blocks = [padded(level.expanded(t), 2) for t in tensors]
    width, before, rows = sum(b.shape[2] for b in blocks), 0, []
    for block in blocks:
        after = width - before - block.shape[2]
        rows.append(tensor.ops.constant_pad_nd(block, [before, after]))
        before += block.shape[2]
    return tensor.cat(rows, 1)


# Along dimensions


def _lifted(whole: Any) -> Any:
    """Of numbers, one dimension more."""
    return whole.unsqueeze(1)


@rule(
    "select", "slice", "unfold", "glu", "softmax", "log_softmax", "cumsum", "cumprod", "cummax", "cummin",
    "logcumsumexp", "sort", "max.dim", "min.dim",
)  # fmt: skip
def _along(level: Batching, op: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    """One tensor and one dimension."""
    names = [a.name for a in op.arguments if not a.keyword_only][1:]
    at = next(i for i, name in enumerate(names) if name in ("dim", "dimension"))
    args = list(args)
    args[at] = behind(args[at], self.dim())
    whole = level.whole(self)
    if self.dim():
        return op(whole, *args, **kwargs)
    if op.name in ("select", "slice", "unfold"):
        return NotImplemented
    made = op(_lifted(whole), *args, **kwargs)
    return changed(made, lambda t: t.reshape(whole.shape))


@rule("glu_backward", "softmax_backward", "log_softmax_backward", "rank_indices")
def _two_along(level: Batching, op: Any, first: Any, second: Any, dim: int = -1) -> Any:
    """Two tensors of as many dimensions, and one of these."""
    if not first.dim():
        return NotImplemented
    return op(level.expanded(first), level.expanded(second), behind(dim, first.dim()))


@rule("topk")
def _topk(level: Batching, op: Any, self: Any, k: int, dim: int = -1, *rest: Any, **kwargs: Any) -> Any:
    if not self.dim():
        return NotImplemented
    return op(level.whole(self), k, behind(dim, self.dim()), *rest, **kwargs)


@rule("sum", "mean", "prod", "amax", "amin", "all", "any", "var", "vector_norm")
def _reduction(level: Batching, op: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    names = [a.name for a in op.arguments[1 : op.by_position[0]]]
    args = list(args)
    at = names.index("dim")
    given = args[at] if at < len(args) else None
    dims = range(self.dim()) if given is None else given
    whole = level.whole(self)
    if self.dim() == 0:
        whole, dims = _lifted(whole), [0]
    elif given is not None and not len(given):
        if op.name not in ("sum", "mean", "amax", "amin", "var", "vector_norm"):
            return NotImplemented
        dims = range(self.dim())  # none named: all of them
    over = [behind(d, self.dim()) for d in dims]
    args = [*args[:at], over, *args[at + 1 :]]
    if not self.dim() and at + 1 < len(args):
        args[names.index("keepdim")] = False
    return op(whole, *args, **kwargs)


@rule("argmax", "argmin")
def _place(level: Batching, op: Any, self: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    whole = level.whole(self)
    if dim is None:
        found = op(whole.reshape(whole.shape[0], -1), 1, False)
        return found.reshape(whole.shape[0], *[1] * self.dim()) if keepdim else found
    if not self.dim():
        return NotImplemented
    return op(whole, behind(dim, self.dim()), keepdim)


@rule("cat")
def _cat(level: Batching, op: Any, tensors: Any, dim: int = 0) -> Any:
    dims = max(t.dim() for t in tensors)
    kept = [
        t for t in tensors if t.dim() == dims
    ]  # tensors without elements may have another number of dimensions
    return op([level.expanded(t) for t in kept], behind(dim, dims))


@rule("_fft_c2c", "_fft_c2r", "_fft_r2c")
def _fft(level: Batching, op: Any, self: Any, dim: Any, *rest: Any) -> Any:
    return op(level.whole(self), [behind(d, self.dim()) for d in dim], *rest)


@rule("linalg_cross")
def _cross(level: Batching, op: Any, self: Any, other: Any, *, dim: int = -1) -> Any:
    dims = max(self.dim(), other.dim())
    return op(*(padded(level.expanded(t), dims) for t in (self, other)), dim=behind(dim, dims))
