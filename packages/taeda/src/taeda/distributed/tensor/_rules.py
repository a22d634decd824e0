"""Rules of operators for tensors spread over processes, for each dimension of the mesh by itself."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import taeda as torch
from taeda.distributed.tensor._level import (
    Part,
    Partial,
    Placement,
    Replicate,
    Shard,
    Spreading,
    changed,
    rule,
    tensors_of,
)

# Element-wise operators besides those that the table of operators calls so, and those that draw numbers.
_MORE = frozenset({
    "cast", "clone", "contiguous", "detach", "to_dtype", "to_device", "masked_fill", "where", "native_dropout",
    "alias_copy", "bernoulli", "detach_copy", "lerp", "addcmul", "addcdiv", "conj", "clamp", "nan_to_num", "copy_same_",
})  # fmt: skip
# Of summands: what may be done with each alone.
_LINEAR = frozenset(
    {"cast", "clone", "contiguous", "detach", "to_dtype", "to_device", "neg", "detach_copy", "alias_copy"}
)
_SUMS = frozenset({"add", "sub"})
_SCALES = frozenset({"mul", "div", "mul_scalar", "div_scalar"})


@functools.cache
def elementwise() -> frozenset[str]:
    """Names of the operators each element of whose result is made of the same elements of the operands."""
    from taeda.func import _batching

    return _batching.elementwise() | _MORE


def _ready(level: Spreading, args: tuple, kwargs: dict[str, Any], take: Any) -> tuple[tuple, dict[str, Any]]:
    return changed(args, take), {key: changed(value, take) for key, value in kwargs.items()}


def _offset(dim: int, part: Part, dims: int) -> int:
    return dim + dims - len(part.shape)


def _chosen(level: Spreading, parts: list[Part], shape: Sequence[int]) -> list[Any]:
    """How an element-wise result lies: as the first operand that is cut and is not spread out."""
    wanted: list[Any] = []
    for dim in range(level.mesh.ndim):
        found: Any = Replicate()
        for part in sorted(parts, key=lambda p: -len(p.shape)):
            here = part.placements[dim]
            if isinstance(here, Shard):
                at = _offset(here.dim, part, len(shape))
                if part.shape[here.dim] == shape[at]:
                    found = here.along(at)
                    break
        wanted.append(found)
    return wanted


def _for_operand(part: Part, wanted: Sequence[Any], dims: int) -> tuple[list[Any], list[int]]:
    """How an operand must lie, and along which dimensions of the mesh it is had by all beside what is cut."""
    places: list[Any] = []
    beside = []
    for dim, target in enumerate(wanted):
        place: Any = target
        if isinstance(target, Shard):
            at = target.dim - (dims - len(part.shape))
            if at < 0 or part.shape[at] == 1:
                place = Replicate()
                beside.append(dim)
            else:
                place = target.along(at)
        places.append(place)
    return places, beside


def aligned(level: Spreading, op: Any, *args: Any, **kwargs: Any) -> Any:
    """Element-wise operators."""
    operands = tensors_of([args, kwargs])
    parts = [level.part(t) for t in operands]
    shape = tuple(torch.broadcast_shapes(*(p.shape for p in parts)))
    wanted = _chosen(level, parts, shape)
    for dim in range(level.mesh.ndim):
        kept = _kept_summands(op.name, [p.placements[dim] for p in parts])
        if kept is not None:
            wanted[dim] = kept
    return _computed(level, op, args, kwargs, wanted, shape)


def _kept_summands(name: str, places: list[Any]) -> Any:
    """The summands that a result consists of; None where the sum is needed."""
    first = places[0]
    if not isinstance(first, Partial):
        return None
    if name in _LINEAR and (first.reduce_op in ("sum", "avg") or name != "neg"):
        return first
    alike = all(place == first for place in places) and first.reduce_op in ("sum", "avg")
    if alike and ((name in _SUMS and len(places) == 2) or (name in _SCALES and len(places) == 1)):
        return first
    return None


def _computed(
    level: Spreading,
    op: Any,
    args: tuple,
    kwargs: dict[str, Any],
    wanted: Sequence[Any],
    shape: Sequence[int],
) -> Any:
    def take(value: Any) -> Any:
        part = level.part(value)
        places, beside = _for_operand(part, wanted, len(shape))
        return level.summed(level.local(value, places), beside)

    args, kwargs = _ready(level, args, kwargs, take)
    made = op(*args, **kwargs)
    return changed(made, lambda t: Part(t, wanted, shape))


def written(level: Spreading, op: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    """Forms that write into their first argument: element-wise ones, others through the whole."""
    part = level.part(self)
    if level.payload(self) is None:
        op(self, *changed(args, lambda t: level.local(t, level.whole)), **kwargs)
        return None
    base = op.name.removesuffix("_")
    if base not in elementwise() and base not in _DRAWN:
        whole = level.local(self, level.whole).clone()
        given, named = _ready(level, args, kwargs, lambda t: level.local(t, level.whole))
        op(whole, *given, **named)
        from taeda.distributed.tensor import _moves

        part.local.copy_(_moves.redistribute(whole, part.shape, level.mesh, level.whole, part.placements))
        return None

    def take(value: Any) -> Any:
        places, beside = _for_operand(level.part(value), part.placements, len(part.shape))
        return level.summed(level.local(value, places), beside)

    given, named = _ready(level, args, kwargs, take)
    op(part.local, *given, **named)
    return None


_DRAWN = frozenset({
    "bernoulli", "cauchy", "exponential", "fill", "geometric", "log_normal", "normal", "random", "uniform", "zero",
    "copy", "copy_same",
})  # fmt: skip


@rule("_fused_adam_", "_fused_sgd_")
def _step(level: Spreading, op: Any, *args: Any) -> None:
    """Steps of optimizers: everything lies as the parameters do."""
    targets = [level.part(t).placements for t in args[0]]

    def lists(value: Any) -> Any:
        if isinstance(value, (list, tuple)) and len(value) == len(targets) and tensors_of(value):
            return [level.local(t, places) for t, places in zip(value, targets, strict=True)]
        return value

    op(*map(lists, args))


@rule("empty_like", "full_like", "ones_like", "zeros_like", "rand_like", "randn_like")
def _like(level: Spreading, op: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    part = level.part(self)
    places = [Replicate() if isinstance(p, Partial) else p for p in part.placements]
    return Part(op(level.local(self, places), *args, **kwargs), places, part.shape)


@rule("new_empty", "new_full", "new_ones", "new_zeros")
def _new(level: Spreading, op: Any, self: Any, size: Sequence[int], *args: Any, **kwargs: Any) -> Any:
    """As the tensor lies where the shape is its own; else all processes have it."""
    part = level.part(self)
    if tuple(size) != part.shape:
        return Part(op(part.local, size, *args, **kwargs), level.whole, tuple(size))
    places = [Replicate() if isinstance(p, Partial) else p for p in part.placements]
    local = part.local if tuple(places) == part.placements else level.local(self, places)
    return Part(op(local, local.shape, *args, **kwargs), places, part.shape)


# Views


def _settled(level: Spreading, value: Any, ok: Any) -> Part:
    """The tensor, its cut dimensions whole where they do not go through: `ok` says of each cut what becomes of it."""
    part = level.part(value)
    places = [
        Replicate() if isinstance(p, Shard) and ok(p.dim, dim) is None else p
        for dim, p in enumerate(part.placements)
    ]
    return Part(level.local(value, places), places, part.shape)


def _moved(part: Part, where: Any) -> list[Any]:
    return [
        p.along(where(p.dim, dim)) if isinstance(p, Shard) else p for dim, p in enumerate(part.placements)
    ]


def _groups(placement: Placement) -> int:
    """Into how many groups a dimension is cut before they are cut for the processes."""
    return placement.split_factor if isinstance(placement, Shard) else 1


@rule("view", "reshape")
def _view(level: Spreading, op: Any, self: Any, size: Any) -> Any:
    sizes, shape = list(size), level.part(self).shape
    if -1 in sizes:
        known, count = 1, 1
        for each in sizes:
            known *= 1 if each == -1 else each
        for each in shape:
            count *= each
        sizes[sizes.index(-1)] = count // known if known else 0
    places = level.part(self).placements

    def where(at: int, dim: int) -> int | None:
        if sum(p.is_shard(at) for p in places) > 1:
            return None
        new = _through(shape, sizes, at, level.mesh.shape[dim])
        return None if new is not None and _groups(places[dim]) > 1 and sizes[new] != shape[at] else new

    part = _settled(level, self, where)
    result = _moved(part, where)
    local = list(sizes)
    for dim, (old, new) in enumerate(zip(part.placements, result, strict=True)):
        if isinstance(new, Shard):
            same = sizes[new.dim] == shape[old.dim]
            local[new.dim] = part.local.shape[old.dim] if same else sizes[new.dim] // level.mesh.shape[dim]
    return Part(part.local.reshape(local), result, sizes)


def _through(shape: Sequence[int], sizes: Sequence[int], at: int, count: int) -> int | None:
    """Where a cut dimension is after a change of shape; None where its parts would not stay together."""
    before = 1
    for each in shape[:at]:
        before *= each
    product = 1
    for new, each in enumerate(sizes):
        if product == before and (each > 1 or each == shape[at]):
            if each == shape[at]:
                return new
            larger, smaller = max(each, shape[at]), min(each, shape[at])
            fits = smaller and larger % smaller == 0 and smaller % count == 0
            return new if fits else None
        product *= each
    return None


@rule("expand")
def _expand(level: Spreading, op: Any, self: Any, size: Any, **kwargs: Any) -> Any:
    part = level.part(self)
    added = len(size) - len(part.shape)
    shape = [part.shape[i - added] if each == -1 else each for i, each in enumerate(size)]
    part = _settled(level, self, lambda at, dim: at + added if part.shape[at] == shape[at + added] else None)
    local = list(shape)
    for p in part.placements:
        if isinstance(p, Shard):
            local[p.dim + added] = part.local.shape[p.dim]
    return Part(op(part.local, local, **kwargs), _moved(part, lambda at, dim: at + added), shape)


@rule("expand_as")
def _expand_as(level: Spreading, op: Any, self: Any, other: Any) -> Any:
    return _expand(level, torch.library.op("expand"), self, list(level.part(other).shape))


def _wrapped(dim: int, dims: int) -> int:
    return dim + dims if dim < 0 else dim


@rule("permute")
def _permute(level: Spreading, op: Any, self: Any, dims: Any) -> Any:
    part = level.part(self)
    order = [_wrapped(d, len(part.shape)) for d in dims]
    return Part(
        op(part.local, order), _moved(part, lambda at, dim: order.index(at)), [part.shape[d] for d in order]
    )


@rule("transpose")
def _transpose(level: Spreading, op: Any, self: Any, dim0: int, dim1: int) -> Any:
    part = level.part(self)
    if not part.shape:
        return part
    order = list(range(len(part.shape)))
    a, b = _wrapped(dim0, len(order)), _wrapped(dim1, len(order))
    order[a], order[b] = order[b], order[a]
    return Part(
        op(part.local, a, b), _moved(part, lambda at, dim: order.index(at)), [part.shape[d] for d in order]
    )


@rule("unsqueeze")
def _unsqueeze(level: Spreading, op: Any, self: Any, dim: int) -> Any:
    part = level.part(self)
    at = _wrapped(dim, len(part.shape) + 1)
    shape = [*part.shape[:at], 1, *part.shape[at:]]
    return Part(op(part.local, at), _moved(part, lambda d, _: d + (d >= at)), shape)


@rule("squeeze", "squeeze.dims")
def _squeeze(level: Spreading, op: Any, self: Any, dim: Any = None) -> Any:
    shape = level.part(self).shape
    named = range(len(shape)) if dim is None else [_wrapped(d, len(shape)) for d in dim]
    gone = [d for d in named if shape[d] == 1]
    part = _settled(level, self, lambda at, _: None if at in gone else at)
    local = part.local.squeeze(tuple(gone)) if gone else part.local.view_as(part.local)
    kept = [n for d, n in enumerate(shape) if d not in gone]
    return Part(local, _moved(part, lambda at, _: at - sum(g < at for g in gone)), kept)


@rule("select")
def _select(level: Spreading, op: Any, self: Any, dim: int, index: Any) -> Any:
    shape = level.part(self).shape
    away = _wrapped(dim, len(shape))
    part = _settled(level, self, lambda at, _: None if at == away else at)
    kept = [n for d, n in enumerate(shape) if d != away]
    return Part(op(part.local, away, index), _moved(part, lambda at, _: at - (at > away)), kept)


@rule("slice", "tril", "triu", "unfold", "flip")
def _same_dims(level: Spreading, op: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    """What changes some dimensions and leaves the others where they are."""
    shape = level.part(self).shape
    if op.name in ("slice", "unfold"):
        touched = {_wrapped(args[0] if args else kwargs.get("dim", 0), len(shape))}
    elif op.name == "flip":
        touched = {_wrapped(d, len(shape)) for d in args[0]}
    else:
        touched = {len(shape) - 2, len(shape) - 1}
    part = _settled(level, self, lambda at, _: None if at in touched else at)
    made = op(part.local, *args, **kwargs)
    whole = [made.shape[d] if d in touched or d >= len(shape) else shape[d] for d in range(made.dim())]
    return Part(made, part.placements, whole)


@rule("cat")
def _cat(level: Spreading, op: Any, tensors: Any, dim: int = 0) -> Any:
    parts = [level.part(t) for t in tensors]
    dims = max(len(p.shape) for p in parts)
    if any(len(p.shape) != dims for p in parts):
        return NotImplemented
    away = _wrapped(dim, dims)
    wanted = [p if isinstance(p, Shard) and p.dim != away else Replicate() for p in parts[0].placements]
    locals_ = [level.local(t, wanted) for t in tensors]
    shape = list(parts[0].shape)
    shape[away] = sum(p.shape[away] for p in parts)
    return Part(op(locals_, away), wanted, shape)


# Along dimensions


@rule("softmax", "log_softmax", "cumsum", "cumprod", "logcumsumexp", "sort", "topk", "max.dim", "min.dim", "argmax",
      "argmin", "cummax", "cummin")  # fmt: skip
def _along(level: Spreading, op: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    """One tensor and one dimension, which must be whole."""
    shape = level.part(self).shape
    names = [a.name for a in op.arguments if not a.keyword_only][1:]
    at = names.index("dim") if "dim" in names else -1
    given = (
        args[at] if 0 <= at < len(args) else kwargs.get("dim", -1 if op.name in ("sort", "topk") else None)
    )
    if given is None or not shape:
        return NotImplemented
    away = _wrapped(given, len(shape))
    part = _settled(level, self, lambda d, _: None if d == away else d)
    if any(isinstance(p, Partial) for p in part.placements):
        part = _whole_sums(level, part)
    made = op(part.local, *args, **kwargs)

    def found(t: Any) -> Part:
        if t.dim() == len(shape):
            size = [t.shape[d] if d == away else n for d, n in enumerate(shape)]
            return Part(t, part.placements, size)
        return Part(
            t, _moved(part, lambda d, _: d - (d > away)), [n for d, n in enumerate(shape) if d != away]
        )

    return changed(made, found)


def _whole_sums(level: Spreading, part: Part) -> Part:
    from taeda.distributed.tensor import _moves

    places = [Replicate() if isinstance(p, Partial) else p for p in part.placements]
    local = _moves.redistribute(part.local, part.shape, level.mesh, part.placements, places)
    return Part(local, places, part.shape)


_COMBINED = {
    "sum": "sum",
    "mean": "avg",
    "amax": "max",
    "amin": "min",
    "max": "max",
    "min": "min",
    "prod": "product",
}


@rule("sum", "mean", "amax", "amin", "max", "min", "prod", "var", "all", "any", "logsumexp", "nansum")
def _reduction(level: Spreading, op: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    names = [a.name for a in op.arguments if not a.keyword_only][1:]
    bound = {**dict(zip(names, args, strict=False)), **kwargs}
    shape, given = level.part(self).shape, bound.get("dim")
    given = [given] if isinstance(given, int) else given
    over = {_wrapped(d, len(shape)) for d in given} if given else set(range(len(shape)))
    keep = bool(bound.get("keepdim", False))
    combined = _COMBINED.get(op.name)
    places = level.part(self).placements

    def stays(at: int, dim: int) -> int | None:
        if at not in over:
            return at
        even = shape[at] % (level.mesh.shape[dim] * _groups(places[dim])) == 0
        return at if combined is not None and (even or combined in ("sum",)) and shape[at] else None

    part = _settled(level, self, stays)
    if not (op.name == "sum" and all(p.is_partial("sum") or not p.is_partial() for p in part.placements)):
        part = _whole_sums(level, part)

    def after(p: Any) -> Any:
        if not isinstance(p, Shard):
            return p
        if p.dim in over:
            return Partial(combined or "sum")
        return p if keep else p.along(p.dim - sum(d < p.dim for d in over))

    made = op(part.local, *args, **kwargs)
    result = (
        [n for d, n in enumerate(shape) if d not in over]
        if not keep
        else [1 if d in over else n for d, n in enumerate(shape)]
    )
    return changed(made, lambda t: Part(t, [after(p) for p in part.placements], result))


@rule("vector_norm")
def _vector_norm(
    level: Spreading, op: Any, self: Any, ord: float = 2, dim: Any = None, keepdim: bool = False, **kwargs: Any
) -> Any:  # fmt: skip
    part = _whole_sums(level, level.part(self))
    cuts = [i for i, p in enumerate(part.placements) if isinstance(p, Shard)]
    if dim is not None or keepdim or ord == 0 or not cuts or ord == float("-inf"):
        return NotImplemented
    from taeda.distributed.tensor import _moves

    largest = ord == float("inf")
    value = part.local
    if largest:
        total = value.abs().amax() if value.numel() else value.abs().sum()
    else:
        total = op(value, ord, dim, keepdim, **kwargs) ** ord
    for place in cuts:
        total = _moves._Reduce.apply(total, "max" if largest else "sum", level.mesh.get_group(place))
    return Part(total if largest else total ** (1 / ord), level.whole, ())


# Products


def _pairing(
    first: Any, second: Any, contracted: tuple[int, int], rows: Any, columns: Any, batch: bool
) -> Any:
    """For one dimension of the mesh: how both factors must lie, how the product lies, and which gradients are summed.

    `rows` and `columns` say where a cut of a factor is in the product; None for the contracted dimension.
    """
    inner_first, inner_second = Shard(contracted[0]), Shard(contracted[1])
    if batch and Shard(0) in (first, second):
        return Shard(0), Shard(0), Shard(0), (False, False)
    if isinstance(first, Partial) and first.reduce_op == "sum" and isinstance(second, Replicate):
        return first, second, first, (False, True)
    if isinstance(second, Partial) and second.reduce_op == "sum" and isinstance(first, Replicate):
        return first, second, second, (True, False)
    if first == inner_first and not isinstance(second, Shard):
        return first, inner_second, Partial(), (False, False)
    if second == inner_second and (first == inner_first or not isinstance(first, Shard)):
        return inner_first, second, Partial(), (False, False)
    if isinstance(first, Shard) and rows(first.dim) is not None:
        both = columns(second.dim) if isinstance(second, Shard) else None
        if both is not None and first.along(rows(first.dim)) == second.along(both):
            return first, second, first.along(both), (False, False)
        return first, Replicate(), first.along(rows(first.dim)), (False, True)
    if isinstance(second, Shard) and columns(second.dim) is not None:
        return Replicate(), second, second.along(columns(second.dim)), (True, False)
    return Replicate(), Replicate(), Replicate(), (False, False)


def _product(
    level: Spreading, first: Any, second: Any, contracted: tuple[int, int], rows: Any, columns: Any, batch: bool = False
) -> Any:  # fmt: skip
    a, b = level.part(first), level.part(second)
    found = [
        _pairing(p, q, contracted, rows, columns, batch)
        for p, q in zip(a.placements, b.placements, strict=True)
    ]
    x = level.local(first, [f[0] for f in found])
    y = level.local(second, [f[1] for f in found])
    x = level.summed(x, [i for i, f in enumerate(found) if f[3][0]])
    y = level.summed(y, [i for i, f in enumerate(found) if f[3][1]])
    return x, y, [f[2] for f in found]


@rule("mm")
def _mm(level: Spreading, op: Any, self: Any, mat2: Any) -> Any:
    x, y, places = _product(
        level, self, mat2, (1, 0), lambda d: 0 if d == 0 else None, lambda d: 1 if d == 1 else None
    )
    return Part(op(x, y), places, (level.part(self).shape[0], level.part(mat2).shape[1]))


@rule("bmm")
def _bmm(level: Spreading, op: Any, self: Any, mat2: Any) -> Any:
    x, y, places = _product(
        level, self, mat2, (2, 1), lambda d: d if d < 2 else None, lambda d: d if d != 1 else None, batch=True
    )
    return Part(op(x, y), places, (*level.part(self).shape[:2], level.part(mat2).shape[2]))


@rule("mv")
def _mv(level: Spreading, op: Any, self: Any, vec: Any) -> Any:
    x, y, places = _product(level, self, vec, (1, 0), lambda d: 0 if d == 0 else None, lambda d: None)
    return Part(op(x, y), places, level.part(self).shape[:1])


@rule("addmm")
def _addmm(
    level: Spreading, op: Any, self: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1
) -> Any:
    product = level.dress(_mm(level, torch.library.op("mm"), mat1, mat2))
    if alpha != 1:
        product = level.dress(
            aligned(level, torch.library.op("mul"), product, torch.tensor(alpha).to(product.dtype))
        )
    if beta == 0:
        return level.part(product)
    if beta != 1:
        self = level.dress(
            aligned(level, torch.library.op("mul"), self, torch.tensor(beta).to(product.dtype))
        )
    return aligned(level, torch.library.op("add"), product, self)


@rule("linear")
def _linear(level: Spreading, op: Any, input: Any, weight: Any, bias: Any = None) -> Any:
    shape, out = level.part(input).shape, level.part(weight).shape[0]
    last = len(shape) - 1
    x, w, places = _product(
        level, input, weight, (last, 1), lambda d: d if d < last else None, lambda d: last if d == 0 else None
    )
    b = None
    if bias is not None:
        wanted: list[Any] = []
        beside = []
        for dim, place in enumerate(places):
            if place.is_shard(last):
                wanted.append(place.along(0))
            else:
                wanted.append(Partial() if isinstance(place, Partial) else Replicate())
                if isinstance(place, Shard):
                    beside.append(dim)
        b = level.summed(level.local(bias, wanted), beside)
    return Part(op(x, w, b), places, (*shape[:-1], out))


@rule("embedding")
def _embedding(
    level: Spreading, op: Any, weight: Any, indices: Any, padding_idx: int = -1, *rest: Any, **kwargs: Any
) -> Any:
    table, places = level.part(weight), level.part(indices)
    dims = len(places.shape)
    wanted_w: list[Any] = []
    wanted_i: list[Any] = []
    result: list[Any] = []
    beside, rows = [], None
    for dim in range(level.mesh.ndim):
        w, i = table.placements[dim], places.placements[dim]
        if isinstance(i, Shard):
            w, out = Replicate(), i
            beside.append(dim)
        elif w.is_shard(1):
            i, out = Replicate(), w.along(dims)
        elif w == Shard(0) and rows is None and padding_idx < 0:
            i, out, rows = Replicate(), Partial(), dim
        else:
            w = i = out = Replicate()
        wanted_w.append(w)
        wanted_i.append(i)
        result.append(out)
    local = level.summed(level.local(weight, wanted_w), beside)
    index = level.local(indices, wanted_i)
    shape = (*places.shape, table.shape[1])
    if rows is None:
        return Part(op(local, index, padding_idx, *rest, **kwargs), result, shape)
    from taeda.distributed.tensor.placement_types import part_of

    start, count = part_of(table.shape[0], level.mesh.shape[rows], level.mesh.get_coordinate()[rows])
    inside = (index >= start) & (index < start + count)
    if not count:
        return Part(local.new_zeros((*index.shape, local.shape[1])) + local.sum(), result, shape)
    made = op(local, torch.where(inside, index - start, 0), padding_idx, *rest, **kwargs)
    return Part(torch.where(inside.unsqueeze(-1), made, 0), result, shape)


# Layers


def _by_example(level: Spreading, op: Any, input: Any, allowed: int, args: tuple) -> Any:
    """Layers that work on each example: cuts of the first `allowed` dimensions stay, other tensors are had by all."""
    shape = level.part(input).shape
    part = _settled(level, input, lambda at, _: at if at < allowed else None)
    part = _whole_sums(level, part)
    cuts = [i for i, p in enumerate(part.placements) if isinstance(p, Shard)]
    given = changed(args, lambda t: level.summed(level.local(t, level.whole), cuts))
    made = op(part.local, *given)

    def found(t: Any) -> Part:
        size = [shape[d] if d < allowed else n for d, n in enumerate(t.shape)]
        return Part(t, part.placements, size)

    return changed(made, found)


@rule("native_layer_norm", "layer_norm", "rms_norm")
def _layer_norm(level: Spreading, op: Any, input: Any, normalized_shape: Any, *args: Any) -> Any:
    kept = len(level.part(input).shape) - len(normalized_shape)
    return _by_example(level, op, input, kept, (normalized_shape, *args))


@rule(
    "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "group_norm",
    "max_pool1d", "max_pool2d", "max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "adaptive_avg_pool2d",
)  # fmt: skip
def _of_examples(level: Spreading, op: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    if kwargs or len(level.part(input).shape) < 3:
        return NotImplemented
    return _by_example(level, op, input, 1, args)


@rule("scaled_dot_product_attention")
def _attention(level: Spreading, op: Any, query: Any, key: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
    q, k, v = (level.part(t) for t in (query, key, value))
    if tensors_of([args, kwargs]) or len(q.shape) != 4 or len(k.shape) != 4 or q.shape[:2] != k.shape[:2]:
        return NotImplemented
    wanted = [p if isinstance(p, Shard) and p.dim < 2 else Replicate() for p in q.placements]
    local = [level.local(t, wanted) for t in (query, key, value)]
    return Part(op(*local, *args, **kwargs), wanted, (*q.shape[:-1], v.shape[-1]))
