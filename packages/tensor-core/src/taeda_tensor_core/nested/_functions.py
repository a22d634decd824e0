"""Making nested tensors, and what they compute."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import pairwise
from typing import Any

from taeda_tensor_core import _C, _info, ops
from taeda_tensor_core._C import Tensor
from taeda_tensor_core._sizes import as_tuple, is_number
from taeda_tensor_core.nested._tensor import NestedTensor, _table, borders_of, by_parts, nested


def _checked(name: str, parts: Sequence[Tensor]) -> list[Tensor]:
    for part in parts:
        if not isinstance(part, Tensor):
            raise TypeError(f"{name}: found a {type(part).__name__} in the list, expected tensors")
        if part.dim() != parts[0].dim() or part.dtype != parts[0].dtype:
            raise RuntimeError(
                f"{name}: found tensors of {parts[0].dim()} dimensions of {parts[0].dtype} and of {part.dim()} of "
                f"{part.dtype}, expected one number and one dtype"
            )
    return list(parts)


def nested_tensor(
    tensor_list: Sequence[Any],
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> NestedTensor:
    """A nested tensor with the values of several tensors or arrays, in memory of its own.

    Args:
        tensor_list: Of one number of dimensions, and of one dtype.
        dtype, device: Of all parts; those of the first unless given.
        layout: "strided" or "jagged".
        requires_grad: Whether the parts are leaves that take gradients.

    Raises:
        TypeError: No list. RuntimeError: Parts that do not fit together.

    Example:
        >>> taeda.nested.nested_tensor([[1.0], [2.0, 3.0]]).size(0)
        2
    """
    if not isinstance(tensor_list, (list, tuple)):
        raise TypeError(
            f"nested_tensor: argument 'tensor_list' is a {type(tensor_list).__name__}, expected a list"
        )
    parts = [
        t.detach().clone().to(device or t.device, dtype or t.dtype)
        if isinstance(t, Tensor)
        else _C.tensor(t, dtype=dtype, device=device)
        for t in tensor_list
    ]
    parts = [p.to(parts[0].dtype) for p in parts]
    parts = _checked("nested_tensor", parts)
    made = (
        NestedTensor.in_lines(parts) if layout is _info.jagged else NestedTensor.around(parts, _info.strided)
    )
    for root in made._roots if requires_grad else ():
        root.requires_grad_()
    return made


def as_nested_tensor(ts: Any, dtype: Any = None, device: Any = None, layout: Any = None) -> NestedTensor:
    """A nested tensor of tensors, which keep their history; of one tensor its parts along the first dimension."""
    if isinstance(ts, NestedTensor):
        if layout is not None and ts._way is not layout:
            raise RuntimeError(
                f"Converting between nested tensor layouts is not supported: found {ts._way}, expected {layout}"
            )
        same = dtype in (None, ts.dtype) and (device is None or _C.device(device) == ts.device)
        return ts if same else _table["to"](ts, device or ts.device, dtype or ts.dtype)
    if isinstance(ts, Tensor) and ts.dim() < 2:
        raise RuntimeError(
            f"as_nested_tensor: Expected tensor argument to have dim() > 1, found {ts.dim()} dimensions"
        )
    if isinstance(ts, Tensor) and layout is _info.jagged:
        lines = (ts.shape[1],) * ts.shape[0]
        whole = ts.flatten(0, 1).to(device or ts.device, dtype or ts.dtype)
        return NestedTensor.packed(whole, borders_of(lines, whole.device), lines)
    parts = list(ts.unbind(0)) if isinstance(ts, Tensor) else list(ts)
    parts = [_C.tensor(t) if not isinstance(t, Tensor) else t for t in parts]
    parts = [t.to(device or t.device, dtype or t.dtype) for t in _checked("as_nested_tensor", parts)]
    return (
        NestedTensor.in_lines(parts) if layout is _info.jagged else NestedTensor.around(parts, _info.strided)
    )


def nested_tensor_from_jagged(
    values: Tensor,
    offsets: Tensor | None = None,
    lengths: Tensor | None = None,
    jagged_dim: int | None = None,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> NestedTensor:
    """Parts of `values`, one after another along a dimension.

    Args:
        values: All parts. offsets: Where they begin, and where the last one ends. lengths: How long they are.
        jagged_dim: Which dimension of the result differs; 1 by default.

    Raises:
        RuntimeError: Neither offsets nor lengths are given.
    """
    along = (jagged_dim or 1) - 1
    if offsets is None and lengths is None:
        raise RuntimeError("nested_tensor_from_jagged: at least one of offsets or lengths is required")
    if offsets is None:
        sizes = lengths.tolist()
        offsets, lengths = borders_of(sizes, values.device), None
        borders = offsets.tolist()
    else:
        borders = offsets.tolist()
        sizes = lengths.tolist() if lengths is not None else [b - a for a, b in pairwise(borders)]
    if along == 0 and lengths is None and borders[0] == 0 and borders[-1] == values.shape[0]:
        return NestedTensor.packed(values, offsets, tuple(sizes))
    parts = [values.narrow(along, start, size) for start, size in zip(borders[:-1], sizes, strict=True)]
    made = NestedTensor.around(parts, _info.jagged, along + 1)
    made._holes = lengths
    return made


def narrow(tensor: Tensor, dim: int, start: Any, length: Any, layout: Any = None) -> NestedTensor:
    """For each row of `tensor` its own piece along `dim`, as a nested tensor.

    Args:
        tensor: With the parts in its first dimension. start, length: Numbers, or a number for each part.
    """
    count = tensor.shape[0]
    starts = start.tolist() if isinstance(start, Tensor) else [start] * count
    lengths = length.tolist() if isinstance(length, Tensor) else [length] * count
    parts = [tensor[i].narrow(dim - 1, starts[i], lengths[i]) for i in range(count)]
    return NestedTensor.around(parts, layout or _info.jagged)


def masked_select(tensor: Tensor, mask: Tensor) -> NestedTensor:
    """For each row of `tensor` the elements at which `mask` holds, as a nested tensor."""
    mask = mask.expand_as(tensor)
    return NestedTensor.around([t[m] for t, m in zip(tensor, mask, strict=True)], _info.jagged)


def to_padded_tensor(input: Any, padding: float, output_size: Sequence[int] | None = None) -> Tensor:
    """The parts as one tensor, filled up to a size for all.

    Args:
        input: A nested tensor; another one is given back. padding: What it is filled with.
        output_size: The size, by default the least that holds all parts.

    Raises:
        RuntimeError: `output_size` is too small.
    """
    if not isinstance(input, NestedTensor):
        return input
    size = tuple(output_size or (input._count, *_largest(input)))
    if len(size) != input.dim() or any(
        s < n for s, n in zip(size, (len(input), *_largest(input)), strict=True)
    ):
        raise RuntimeError(
            f"to_padded_tensor: argument 'output_size' is {size}, expected at least {(len(input), *_largest(input))}"
        )
    if input._whole is not None and size[0] == input._count and size[2:] == tuple(input._whole.shape[1:]):
        return _filled(input, padding, size)
    filled = []
    for part in input._parts:
        pads = [n for d in range(part.dim() - 1, -1, -1) for n in (0, size[d + 1] - part.shape[d])]
        filled.append(ops.constant_pad_nd(part, pads, padding))
    whole = _C.stack(filled)
    missing = size[0] - len(filled)
    return (
        whole if not missing else ops.constant_pad_nd(whole, [0, 0] * (len(size) - 1) + [0, missing], padding)
    )


def _filled(x: NestedTensor, padding: float, size: tuple[int, ...]) -> Tensor:
    """All lines in their places among lines of padding."""
    whole, borders = x._whole, x._borders
    counts = borders.diff()
    shift = _C.arange(size[0], device=whole.device) * size[1] - borders[:-1]
    places = _C.arange(whole.shape[0], device=whole.device) + shift.repeat_interleave(counts)
    empty = _C.full((size[0] * size[1], *size[2:]), padding, dtype=whole.dtype, device=whole.device)
    return empty.index_copy(0, places, whole).reshape(size)


def _largest(x: NestedTensor) -> tuple[int, ...]:
    with _C.DisableTorchFunctionSubclass():
        return tuple(x.shape)[1:]


_table["to_padded_tensor"] = to_padded_tensor


# Facts


def _fact(name: str, ask: Callable[[NestedTensor], Any]) -> None:
    _table[name] = ask


def _share_memory_(x: NestedTensor) -> NestedTensor:
    for root in x._roots:
        root.share_memory_()
    return x


_table["share_memory_"] = _share_memory_


def _of_first(name: str) -> None:
    _fact(name, lambda x: getattr(x._first, name))


# What parts say, all alike: what kind of device they are on, too.
for _name in ("dtype", "device", "itemsize", "is_leaf"):
    _of_first(_name)
for _name, _kind in vars(Tensor).items():
    if _name.startswith("is_") and isinstance(_kind, types.GetSetDescriptorType) and _name not in _table:
        _of_first(_name)
_table["is_pinned"] = lambda x, *args: all(p.is_pinned(*args) for p in x._roots)
_fact("requires_grad", lambda x: any(p.requires_grad for p in x._roots))
_fact("is_nested", lambda x: True)
_fact("_base", lambda x: x._first._base)
_fact("_is_view", lambda x: any(p._is_view() for p in x._roots))
_fact("is_shared", lambda x: all(p.is_shared() for p in x._roots))
_fact("layout", lambda x: x._way)
_fact("ndim", lambda x: x._rank)
for _name in ("dim", "ndimension"):
    _fact(_name, lambda x: x._rank)
_fact("numel", lambda x: sum(p.numel() for p in x._roots))
_fact("is_floating_point", lambda x: x._first.is_floating_point())
_fact("is_complex", lambda x: x._first.is_complex())
_fact("element_size", lambda x: x._first.element_size())


@nested("size")
def _size(self: NestedTensor, dim: int | None = None) -> Any:
    """The size of a dimension in which all parts agree; of a jagged tensor any, and without a dimension all."""
    if dim is None and self._way is _info.jagged:
        return _shape(self)
    if dim is None:
        raise RuntimeError(
            "size: the parts of a nested tensor have sizes of their own; ask for one dimension, or use unbind()"
        )
    dims = self._rank
    at = dim + dims if dim < 0 else dim
    if not 0 <= at < dims:
        raise IndexError(f"size: dimension {dim} is out of range for a nested tensor of {dims} dimensions")
    if at == 0:
        return self._count
    if self._way is _info.jagged:
        return _shape(self)[at]
    sizes = {p.shape[at - 1] for p in self._parts}
    if len(sizes) > 1:
        raise RuntimeError(
            f"size: dimension {dim} of a nested tensor is irregular and does not have one size: {sorted(sizes)}"
        )
    return sizes.pop()


class Irregular:
    """The size of a dimension in which parts may differ: equal where all parts are equally long.

    Example:
        >>> taeda.nested.nested_tensor([taeda.ones(2), taeda.ones(3)], layout=taeda.jagged).shape
        (2, j1)
    """

    #: Programs that ask whether a size is a `SymInt` are told that it is, and no int.
    is_symbolic_size = True

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self._sizes = sizes

    def __eq__(self, other: object) -> bool:
        return type(other) is Irregular and self._sizes == other._sizes

    def __hash__(self) -> int:
        return hash(self._sizes)

    def __repr__(self) -> str:
        return "j1"


@nested("shape")
def _shape(self: NestedTensor) -> tuple[Any, ...]:
    """The sizes of a jagged tensor; where parts differ, a size that says so."""
    if self._way is not _info.jagged:
        raise NotImplementedError(
            "shape: the parts of a nested tensor have sizes of their own; ask for one by size(dim), or use unbind()"
        )
    if self._whole is not None:
        return (self._count, Irregular(self._lines), *self._whole.shape[1:])
    columns = list(zip(*(p.shape for p in self._parts), strict=True))
    alike = [len(set(column)) == 1 and d != self._at for d, column in enumerate(columns, 1)]
    sizes = (c[0] if same else Irregular(c) for c, same in zip(columns, alike, strict=True))
    return (self._count, *sizes)


@nested("unbind")
def _unbind(self: NestedTensor, dim: int = 0) -> tuple[Tensor, ...]:
    if dim != 0:
        raise RuntimeError(f"unbind: argument 'dim' is {dim}, nested tensors are unbound along 0")
    return self._parts


@nested("offsets")
def _offsets(self: NestedTensor) -> Tensor:
    """Where the parts begin along the dimension in which they differ."""
    if self._whole is None:
        self._borders = borders_of(self._counted(), self._first.device)
    return self._borders


@nested("lengths")
def _lengths(self: NestedTensor) -> Tensor | None:
    """How long the parts are where there are holes between them; else None."""
    return self._holes


@nested("is_contiguous")
def _is_contiguous(self: NestedTensor, *args: Any, **kwargs: Any) -> bool:
    return self._holes is None and all(root.is_contiguous(*args, **kwargs) for root in self._roots)


@nested("values")
def _values(self: NestedTensor) -> Tensor:
    """All parts one after another: the elements of strided ones, else along the dimension in which they differ."""
    if self._whole is not None:
        return self._whole
    if self._way is _info.strided:
        return _C.cat([p.reshape(-1) for p in self._parts])
    return _C.cat(list(self._parts), self._at - 1)


@nested("requires_grad_")
def _requires_grad(self: NestedTensor, requires_grad: bool = True) -> NestedTensor:
    for root in self._roots:
        root.requires_grad_(requires_grad)
    return self


@nested("grad")
def _grad(self: NestedTensor) -> NestedTensor | None:
    grads = [root.grad for root in self._roots]
    if all(g is None for g in grads):
        return None
    # A part that nothing was computed with has a gradient of zeros.
    return self._made_of(
        [_C.zeros_like(p) if g is None else g for p, g in zip(self._roots, grads, strict=True)]
    )


@nested("grad__set__")
def _set_grad(self: NestedTensor, grad: NestedTensor | None) -> None:
    given = [None] * len(self._roots) if grad is None else grad._roots
    if len(given) != len(self._roots):
        raise RuntimeError("grad: expected a nested tensor whose parts lie as those of the tensor")
    for root, one in zip(self._roots, given, strict=True):
        root.grad = one


@nested("backward")
def _backward(self: NestedTensor, gradient: Any = None, **options: Any) -> None:
    _C.cat([p.reshape(-1) for p in self._roots]).backward(
        None if gradient is None else _C.cat([g.reshape(-1) for g in gradient._parts]), **options
    )


# Part by part


def _by_parts(name: str, function: Callable[..., Any]) -> None:
    """What is done to each part alone."""

    def each(*args: Any, **kwargs: Any) -> Any:
        return by_parts(name, function, *args, **kwargs)

    each.__name__ = name
    _table[name] = each


@nested("cat", "concat", "concatenate")
def _cat(tensors: Sequence[NestedTensor], dim: int = 0) -> NestedTensor:
    whole = list(tensors)
    if not all(isinstance(t, NestedTensor) for t in whole):
        raise NotImplementedError("cat: nested tensors are only joined with nested tensors")
    at = dim + whole[0].dim() if dim < 0 else dim
    if at == 0:
        parts = [p for t in whole for p in t._parts]
        if all(t._whole is not None for t in whole):
            return NestedTensor.in_lines(parts)
        return NestedTensor.around(parts, whole[0]._way, whole[0]._at)
    if len({t._count for t in whole}) > 1:
        raise RuntimeError(
            f"cat: found nested tensors of {[t._count for t in whole]} parts, expected one number"
        )
    if at > 1 and all(t._whole is not None and t._lines == whole[0]._lines for t in whole):
        return whole[0].like(_C.cat([t._whole for t in whole], at - 1))
    rows = zip(*(t._parts for t in whole), strict=True)
    return NestedTensor.around([_C.cat(list(row), at - 1) for row in rows], whole[0]._way, whole[0]._at)


_METHODS = (
    "abs add sub mul div neg pow exp log sqrt rsqrt sin cos tanh sigmoid relu square reciprocal clamp eq ne lt le gt "
    "ge erf expm1 log1p log2 tan sinh cosh asin acos atan floor ceil round trunc frac logical_and logical_or "
    "nan_to_num logical_not isnan isinf isfinite masked_fill where clone detach to contiguous float double half "
    "bfloat16 cpu matmul sgn sign remainder fmod atan2 maximum minimum "
    "__add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __neg__ __pow__ __rpow__ "
    "__mod__ __rmod__ __matmul__ "
    "__eq__ __ne__ __lt__ __le__ __gt__ __ge__ add_ mul_ sub_ div_ fill_ zero_ relu_"
)
for _name in _METHODS.split():
    _by_parts(_name, getattr(Tensor, _name, None) or getattr(ops, _name))
for _name in _METHODS.split():  # and their forms that write into the parts
    if not _name.startswith("__") and f"{_name}_" not in _table and hasattr(Tensor, f"{_name}_"):
        _by_parts(f"{_name}_", getattr(Tensor, f"{_name}_"))
for _name in ("empty_like", "zeros_like", "ones_like", "rand_like", "randn_like", "full_like"):
    _by_parts(_name, getattr(ops, _name, None) or getattr(_C, _name))


def _along(name: str) -> None:
    """What is computed along a dimension and keeps it."""
    function = getattr(Tensor, name)

    def along(self: NestedTensor, dim: int, *args: Any, **kwargs: Any) -> NestedTensor:
        at = _of_part(name, self, dim)
        if self._whole is not None and at:
            return self.like(function(self._whole, at, *args, **kwargs))
        return _of_parts(self, [function(p, at, *args, **kwargs) for p in self._parts])

    along.__name__ = name
    _table[name] = along


for _name in ("softmax", "log_softmax", "cumsum"):
    _along(_name)


def _of_parts(self: NestedTensor, made: list[Tensor]) -> NestedTensor:
    """Parts as long as these."""
    return (
        NestedTensor.in_lines(made)
        if self._whole is not None
        else NestedTensor.around(made, self._way, self._at)
    )


def _of_part(name: str, self: NestedTensor, dim: int) -> int:
    """A dimension of the parts, from one of the whole."""
    at = dim + self._rank if dim < 0 else dim
    if not 0 <= at < self._rank:
        raise IndexError(f"{name}: argument 'dim' is {dim}, expected {-self._rank} to {self._rank - 1}")
    if at == 0:
        raise RuntimeError(f"{name}: argument 'dim' is {dim}, the parts of a nested tensor are not combined")
    return at - 1


def _joined(self: NestedTensor, name: str, at: tuple[int, ...], made: list[Tensor]) -> Any:
    """Results of the parts: of jagged ones that were reduced where they differ one dense tensor."""
    if self._way is _info.jagged and self._at - 1 in at:
        return _C.stack(made) if made else _C.empty((0,))
    return NestedTensor.around(made, self._way, self._at)


def _over_lines(self: NestedTensor, name: str, keepdim: bool, dtype: Any) -> Tensor:
    """Sums or means of the lines of each part."""
    whole = self._whole if dtype is None else self._whole.to(dtype)
    counts = self._borders.diff()
    of = _C.arange(self._count, device=whole.device).repeat_interleave(counts)
    kind = _C.int64 if not (whole.is_floating_point() or whole.is_complex()) else whole.dtype
    total = _C.zeros((self._count, *whole.shape[1:]), dtype=kind, device=whole.device)
    total = total.index_add(0, of, whole.to(kind))
    if name == "mean":
        total = total / counts.reshape(-1, *(1,) * (total.dim() - 1)).to(kind)
    return total.unsqueeze(1) if keepdim else total


def _reduction(name: str) -> None:
    function = getattr(Tensor, name)

    def reduced(self: NestedTensor, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
        if dim is None:
            return function(_C.cat([p.reshape(-1) for p in self._roots]), *args, **kwargs)
        given = as_tuple(dim)
        whole = tuple(d + self._rank if d < 0 else d for d in given)
        if 0 in whole and 1 in whole and self._way is _info.jagged:  # all lines of all parts
            over = tuple(d - 1 for d in whole if d)
            return function(_C.cat(list(self._parts)), over, *args, **kwargs)
        dims = tuple(_of_part(name, self, d) for d in given)
        at = dims[0] if is_number(dim) else dims
        if self._whole is not None and 0 not in dims:
            return self.like(function(self._whole, at, *args, **kwargs))
        keepdim = args[0] if args else kwargs.get("keepdim", False)
        plain = len(args) < 2 and kwargs.keys() <= {"keepdim", "dtype"}
        if self._whole is not None and dims == (0,) and name in ("sum", "mean") and plain:
            return _over_lines(self, name, keepdim, kwargs.get("dtype"))
        return _joined(self, name, dims, [function(p, at, *args, **kwargs) for p in self._parts])

    reduced.__name__ = name
    _table[name] = reduced


for _name in (
    "sum",
    "mean",
    "amax",
    "amin",
    "any",
    "all",
    "prod",
    "std",
    "var",
    "argmax",
    "argmin",
    "logsumexp",
):
    _reduction(_name)


def _extreme(name: str) -> None:
    """`max` or `min`: of all numbers, along a dimension with the places, or the larger of two."""
    function = getattr(Tensor, name)

    def extreme(self: NestedTensor, dim: Any = None, keepdim: bool = False) -> Any:
        if dim is None:
            return function(_C.cat([p.reshape(-1) for p in self._roots]))
        if isinstance(dim, Tensor):
            return by_parts(name, function, self, dim)
        at = _of_part(name, self, dim)
        if self._whole is not None and at:
            found = function(self._whole, at, keepdim)
            return type(found)(self.like(found[i]) for i in (0, 1))
        every = [function(p, at, keepdim) for p in self._parts]
        return type(every[0])(_joined(self, name, (at,), [pair[i] for pair in every]) for i in (0, 1))

    extreme.__name__ = name
    _table[name] = extreme


_extreme("max")
_extreme("min")


@nested("transpose")
def _transpose(self: NestedTensor, dim0: int, dim1: int) -> NestedTensor:
    dims = self._rank
    first, second = (d + dims if d < 0 else d for d in (dim0, dim1))
    if not first or not second:
        raise RuntimeError("transpose: the first dimension of a nested tensor stays where it is")
    if self._whole is not None and 1 not in (first, second):
        return self.like(self._whole.transpose(first - 1, second - 1))
    moved = {first: second, second: first}
    made = [p.transpose(first - 1, second - 1) for p in self._parts]
    at = moved.get(self._at, self._at)
    if self._way is _info.jagged and at == 1:  # line after line again
        return NestedTensor.in_lines(made)
    return NestedTensor.around(made, self._way, at)


@nested("bmm")
def _bmm(input: Any, mat2: Any) -> NestedTensor:
    """The products of matrices, part by part."""
    for name, value in (("input", input), ("mat2", mat2)):
        if value.dim() != 3:
            raise RuntimeError(f"bmm: argument '{name}' has {value.dim()} dimensions, expected 3")
    made = by_parts("matmul", _C.matmul, input, mat2)
    alike = len({p.shape for p in made._parts}) == 1
    inner = isinstance(input, NestedTensor) and input._way is _info.jagged and input._at == 2
    return _C.stack(list(made._parts)) if alike and inner else made


def _loss(name: str) -> None:
    """A loss of each element: of nested tensors the losses, or their mean or sum over all parts."""

    def loss(
        input: Any, target: Any, *given: Any, size_average: Any = None, reduce: Any = None,
        reduction: Any = "mean", **options: Any,
    ) -> Any:  # fmt: skip
        if len(given) == 1 and type(given[0]) is int:  # as the operator takes it
            reduction = ("none", "mean", "sum")[given[0]]
        elif given:
            size_average, reduce = (*given, reduce)[:2]
        if not isinstance(input, NestedTensor) or not isinstance(target, NestedTensor):
            raise RuntimeError(f"{name}: expected nested tensors as 'input' and 'target'")
        function = getattr(ops, name)
        if size_average is not None or reduce is not None:
            reduction = "none" if reduce is False else "sum" if size_average is False else "mean"
        every = by_parts("sub", lambda a, b: function(a, b, reduction=0, **options), input, target)
        return every if reduction == "none" else _table[reduction](every)

    loss.__name__ = name
    _table[name] = loss


for _name in ("l1_loss", "mse_loss", "smooth_l1_loss", "huber_loss"):
    _loss(_name)


@nested("copy_")
def _copy_into(self: Any, src: Any, non_blocking: bool = False) -> Any:
    if not isinstance(self, NestedTensor) or not isinstance(src, NestedTensor):
        raise RuntimeError("copy_: expected a nested tensor on both sides; use to_padded_tensor() first")
    if not _is_same_size(self, src):
        raise RuntimeError("copy_: expected nested tensors with parts of the same sizes")
    for to, part in zip(self._parts, src._parts, strict=True):
        to.copy_(part)
    return self


@nested("is_same_size")
def _is_same_size(self: Any, other: Any) -> bool:
    every = (self, other)
    if not all(isinstance(x, NestedTensor) for x in every):
        return False
    return [p.shape for p in self._parts] == [p.shape for p in other._parts]


@nested("grad_fn")
def _grad_fn(self: NestedTensor) -> Any:
    """That of the parts, which have one graph each: of the first that has any."""
    return next((p.grad_fn for p in self._roots if p.grad_fn is not None), None)


import_module("taeda_tensor_core.nested._shapes")  # enters its functions too


def _bind() -> None:
    """Make everything in the table a method or property of nested tensors: those of dense ones would not ask."""
    for name, function in _table.items():
        if name == "shape":  # what is inside reads the wrapper's own, which holds all parts
            continue
        asked = isinstance(vars(Tensor).get(name), (property, types.GetSetDescriptorType))
        if name.endswith("__set__"):
            continue
        setter = _table.get(f"{name}__set__")
        setattr(NestedTensor, name, property(function, setter) if asked else function)


_bind()
