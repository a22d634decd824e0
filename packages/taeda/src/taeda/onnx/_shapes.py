"""Shapes, parts and joins of tensors as operators of ONNX."""

from __future__ import annotations

from typing import Any

from taeda.onnx._graph import GraphWriter, Value
from taeda.onnx._table import writes
from taeda.onnx.errors import SymbolicValueError
from taeda_registry.slots import tensor

_END = (1 << 63) - 1


def listed(sizes: tuple[Any, ...]) -> list[Any]:
    """Sizes that were given one by one or as a list."""
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        return list(sizes[0])
    return list(sizes)


def reshape(g: GraphWriter, input: Value, sizes: list[Any]) -> Value:
    """A tensor with other sizes, one of which may be -1."""
    empty = 1 if any(type(size) is int and size == 0 for size in sizes) else None
    return g.op("Reshape", input, g.ints(sizes), allowzero=empty)


def transpose(g: GraphWriter, input: Value, order: list[int]) -> Value:
    """A tensor with its axes in another order."""
    return input if order == list(range(len(order))) else g.op("Transpose", input, perm=order)


def cut(g: GraphWriter, input: Value, axis: int, start: Any, stop: Any, step: int = 1) -> Value:
    """A range of an axis."""
    axes = g.constant([axis], tensor.int64)
    return g.op("Slice", input, g.ints([start]), g.ints([stop]), axes, g.constant([step], tensor.int64))


@writes("view", "reshape", "_unsafe_view", "_reshape_alias")
def _view(g: GraphWriter, input: Value, *shape: Any, **named: Any) -> Value:
    sizes = listed((*shape, *named.values()))
    if sizes and isinstance(sizes[0], tensor.dtype):
        raise SymbolicValueError("onnx.export: a view with another dtype is not written")
    return reshape(g, input, sizes)


@writes("view_as", "reshape_as")
def _view_as(g: GraphWriter, input: Value, other: Value) -> Value:
    return g.op("Reshape", input, g.shape_of(other))


@writes("flatten")
def _flatten(g: GraphWriter, input: Value, start_dim: int = 0, end_dim: int = -1) -> Value:
    if input.rank == 0:
        return reshape(g, input, [1])
    first, last = input.dim(start_dim), input.dim(end_dim)
    after = [g.size(input, axis) for axis in range(last + 1, input.rank)]
    before = [g.size(input, axis) for axis in range(first)]
    return reshape(g, input, [*before, -1, *after])


@writes("ravel")
def _ravel(g: GraphWriter, input: Value) -> Value:
    return reshape(g, input, [-1])


@writes("unflatten")
def _unflatten(g: GraphWriter, input: Value, dim: int, sizes: Any) -> Value:
    axis = input.dim(dim)
    before = [g.size(input, index) for index in range(axis)]
    after = [g.size(input, index) for index in range(axis + 1, input.rank)]
    return reshape(g, input, [*before, *sizes, *after])


@writes("permute")
def _permute(g: GraphWriter, input: Value, *dims: Any, **named: Any) -> Value:
    return transpose(g, input, [input.dim(d) for d in listed((*dims, *named.values()))])


@writes("transpose", "swapaxes", "swapdims")
def _transpose(g: GraphWriter, input: Value, dim0: int, dim1: int) -> Value:
    order = list(range(input.rank))
    left, right = input.dim(dim0), input.dim(dim1)
    order[left], order[right] = order[right], order[left]
    return transpose(g, input, order)


@writes("t", "T", "mT", "adjoint", "mH", "H")
def _t(g: GraphWriter, input: Value) -> Value:
    return input if input.rank < 2 else _transpose(g, input, -2, -1)


@writes("movedim", "moveaxis")
def _movedim(g: GraphWriter, input: Value, source: Any, destination: Any) -> Value:
    sources = [input.dim(d) for d in ([source] if isinstance(source, int) else source)]
    targets = [input.dim(d) for d in ([destination] if isinstance(destination, int) else destination)]
    order: list[int] = [-1] * input.rank
    for origin, target in zip(sources, targets, strict=True):
        order[target] = origin
    rest = iter(d for d in range(input.rank) if d not in sources)
    return transpose(g, input, [next(rest) if d < 0 else d for d in order])


@writes("squeeze")
def _squeeze(g: GraphWriter, input: Value, dim: Any = None) -> Value:
    if dim is None:
        axes = [axis for axis, n in enumerate(input.shape) if n == 1]
    else:
        axes = [input.dim(d) for d in ([dim] if isinstance(dim, int) else dim)]
        axes = [axis for axis in axes if input.shape[axis] == 1]
    return g.squeeze(input, *axes) if axes else input


@writes("unsqueeze")
def _unsqueeze(g: GraphWriter, input: Value, dim: int) -> Value:
    return g.unsqueeze(input, dim if dim >= 0 else dim + input.rank + 1)


@writes("expand", "broadcast_to")
def _expand(g: GraphWriter, input: Value, *size: Any, **named: Any) -> Value:
    named.pop("implicit", None)
    sizes = listed((*size, *named.values()))
    return g.op("Expand", input, g.ints([1 if type(n) is int and n == -1 else n for n in sizes]))


@writes("expand_as")
def _expand_as(g: GraphWriter, input: Value, other: Value) -> Value:
    return g.op("Expand", input, g.shape_of(other))


@writes("broadcast_tensors")
def _broadcast_tensors(g: GraphWriter, *tensors: Any) -> list[Value]:
    given = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else list(tensors)
    made = []
    for one in given:
        spread = one
        for other in given:
            spread = spread if other is one else g.op("Expand", spread, g.shape_of(other))
        made.append(spread)
    return made


@writes("repeat", "tile")
def _repeat(g: GraphWriter, input: Value, *sizes: Any, **named: Any) -> Value:
    times = listed((*sizes, *named.values()))
    if len(times) > input.rank:
        extra = len(times) - input.rank
        input = g.unsqueeze(input, *range(extra))
    else:
        times = [1] * (input.rank - len(times)) + times
    return g.op("Tile", input, g.ints(times))


@writes("repeat_interleave")
def _repeat_interleave(
    g: GraphWriter, input: Value, repeats: Any, dim: int | None = None, *, output_size: Any = None
) -> Value:
    count = g.known(repeats, "the repeats of repeat_interleave")
    if not isinstance(count, int):
        raise SymbolicValueError("onnx.export: repeat_interleave with a tensor of repeats is not written")
    if dim is None:
        input, axis = reshape(g, input, [-1]), 0
        sizes = [-1]
    else:
        axis = input.dim(dim)
        sizes = [g.size(input, d) if d != axis else -1 for d in range(input.rank)]
    wide = g.unsqueeze(input, axis + 1)
    times = [1] * (len(sizes) + 1)
    times[axis + 1] = count
    return reshape(g, g.op("Tile", wide, g.ints(times)), sizes)


# --- joins and parts ---


@writes("cat", "concat", "concatenate")
def _cat(g: GraphWriter, tensors: Any, dim: int = 0, axis: int | None = None) -> Value:
    kind = g.result.dtype
    items = [item for item in tensors if not (item.rank == 1 and item.shape[0] == 0)]
    place = dim if axis is None else axis
    return g.op("Concat", *[g.cast(item, kind) for item in items], axis=items[0].dim(place))


@writes("stack")
def _stack(g: GraphWriter, tensors: Any, dim: int = 0) -> Value:
    axis = dim if dim >= 0 else dim + tensors[0].rank + 1
    kind = g.result.dtype
    return g.op("Concat", *[g.unsqueeze(g.cast(item, kind), axis) for item in tensors], axis=axis)


@writes("hstack")
def _hstack(g: GraphWriter, tensors: Any) -> Value:
    return _cat(g, tensors, 0 if tensors[0].rank < 2 else 1)


@writes("vstack")
def _vstack(g: GraphWriter, tensors: Any) -> Value:
    return _cat(g, [g.like(g.unsqueeze(x, 0), x.real[None]) if x.rank < 2 else x for x in tensors], 0)


@writes("split", "split_with_sizes", "tensor_split")
def _split(g: GraphWriter, input: Value, split_size: Any = None, dim: int = 0, **named: Any) -> list[Value]:
    axis, parts, start = input.dim(dim), [], 0
    for index, part in enumerate(g.result):
        last = index == len(g.result) - 1
        stop = start + part.shape[axis]
        parts.append(cut(g, input, axis, start, _END if last else stop))
        start = stop
    return parts


@writes("chunk")
def _chunk(g: GraphWriter, input: Value, chunks: int, dim: int = 0) -> Any:
    if len(g.result) == 1:
        return [input]
    return g.op("Split", input, outputs=len(g.result), axis=input.dim(dim), num_outputs=len(g.result))


@writes("unbind", "__iter__")
def _unbind(g: GraphWriter, input: Value, dim: int = 0) -> list[Value]:
    return [_select(g, input, dim, index) for index in range(len(g.result))]


@writes("select")
def _select(g: GraphWriter, input: Value, dim: int, index: Any) -> Value:
    place = index if isinstance(index, Value) else g.constant(index, tensor.int64)
    return g.op("Gather", input, place, axis=input.dim(dim))


@writes("narrow")
def _narrow(g: GraphWriter, input: Value, dim: int, start: Any, length: Any) -> Value:
    begin, size = g.ints([start]), g.ints([length])
    stop = g.op("Add", begin, size)
    axes = g.constant([input.dim(dim)], tensor.int64)
    return g.op("Slice", input, begin, stop, axes)


@writes("index_select")
def _index_select(g: GraphWriter, input: Value, dim: int, index: Value) -> Value:
    return g.op("Gather", input, index, axis=input.dim(dim))


@writes("gather", "take_along_dim")
def _gather(g: GraphWriter, input: Value, dim: int, index: Value, *, sparse_grad: bool = False) -> Value:
    return g.op("GatherElements", input, index, axis=input.dim(dim))


@writes("scatter")
def _scatter(
    g: GraphWriter,
    input: Value,
    dim: int,
    index: Value,
    src: Any = None,
    *,
    value: Any = None,
    reduce: Any = None,
) -> Value:
    new = src if value is None else value
    if not isinstance(new, Value):
        new = g.op("Expand", g.constant(new, input.dtype), g.shape_of(index))
    kind = {"add": "add", "multiply": "mul", None: None}[reduce]
    return g.op("ScatterElements", input, index, new, axis=input.dim(dim), reduction=kind)


@writes("scatter_add")
def _scatter_add(g: GraphWriter, input: Value, dim: int, index: Value, src: Value) -> Value:
    return g.op("ScatterElements", input, index, src, axis=input.dim(dim), reduction="add")


@writes("flip")
def _flip(g: GraphWriter, input: Value, *dims: Any, **named: Any) -> Value:
    axes = [input.dim(d) for d in listed((*dims, *named.values()))]
    n = len(axes)
    lists = ([-1] * n, [-_END] * n, axes, [-1] * n)
    return g.op("Slice", input, *[g.constant(items, tensor.int64) for items in lists])


@writes("roll")
def _roll(g: GraphWriter, input: Value, shifts: Any, dims: Any = None) -> Value:
    if dims is None:
        flat = _roll(g, g.like(reshape(g, input, [-1]), input.real.reshape(-1)), shifts, 0)
        return g.op("Reshape", flat, g.shape_of(input))
    steps = [shifts] if isinstance(shifts, int) else shifts
    for step, dim in zip(steps, [dims] if isinstance(dims, int) else dims, strict=True):
        axis, real = input.dim(dim), input.real
        if step == 0:
            continue
        parts = cut(g, input, axis, -step, _END), cut(g, input, axis, 0, -step)
        input = g.like(g.op("Concat", *parts, axis=axis), real)
    return input


@writes("tril")
def _tril(g: GraphWriter, input: Value, diagonal: int = 0) -> Value:
    return _triangle(g, input, diagonal, 0)


def _triangle(g: GraphWriter, input: Value, diagonal: int, upper: int) -> Value:
    return g.op("Trilu", input, g.constant(diagonal, tensor.int64), upper=upper)


@writes("triu")
def _triu(g: GraphWriter, input: Value, diagonal: int = 0) -> Value:
    return _triangle(g, input, diagonal, 1)


@writes("nonzero")
def _nonzero(g: GraphWriter, input: Value, *, as_tuple: bool = False) -> Any:
    places = g.op("NonZero", input)
    if not as_tuple:
        return g.op("Transpose", places, perm=[1, 0])
    return [g.op("Gather", places, g.constant(axis, tensor.int64), axis=0) for axis in range(input.rank)]


@writes("pad")
def _pad(g: GraphWriter, input: Value, pad: Any, mode: str = "constant", value: Any = None) -> Value:
    kinds = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    if mode not in kinds:
        raise SymbolicValueError(f"onnx.export: pad of mode {mode!r} is not written")
    before: list[Any] = [0] * input.rank
    after: list[Any] = [0] * input.rank
    for index in range(len(pad) // 2):
        axis = input.rank - 1 - index
        before[axis], after[axis] = pad[2 * index], pad[2 * index + 1]
    fill = g.cast(0 if value is None else value, input.dtype) if mode == "constant" else None
    return g.op("Pad", input, g.ints([*before, *after]), fill, mode=kinds[mode])


@writes("pixel_shuffle")
def _pixel_shuffle(g: GraphWriter, input: Value, upscale_factor: int) -> Value:
    return g.op("DepthToSpace", input, blocksize=upscale_factor, mode="CRD")


@writes("pixel_unshuffle")
def _pixel_unshuffle(g: GraphWriter, input: Value, downscale_factor: int) -> Value:
    n = downscale_factor
    batch, channels, height, width = (g.size(input, axis) for axis in range(4))
    if any(isinstance(item, Value) for item in (channels, height, width)):
        raise SymbolicValueError("onnx.export: pixel_unshuffle is written for fixed sizes alone")
    wide = reshape(g, input, [batch, channels, height // n, n, width // n, n])
    turned = g.op("Transpose", wide, perm=[0, 1, 3, 5, 2, 4])
    return reshape(g, turned, [batch, channels * n * n, height // n, width // n])


# --- indexing ---


def _spread(index: Any, rank: int) -> list[Any]:
    items = list(index) if isinstance(index, tuple) else [index]
    taken = sum(_axes_taken(item) for item in items)
    if not any(item is Ellipsis for item in items):
        items.append(Ellipsis)
    place = next(i for i, item in enumerate(items) if item is Ellipsis)
    items[place : place + 1] = [slice(None)] * (rank - taken)
    return items


def _axes_taken(item: Any) -> int:
    if item is None or item is Ellipsis:
        return 0
    return item.rank if _is_mask(item) else 1


def _is_mask(item: Any) -> bool:
    return isinstance(item, Value) and isinstance(item.real, tensor.Tensor) and item.dtype == tensor.bool


def _is_places(item: Any) -> bool:
    return isinstance(item, Value) and isinstance(item.real, tensor.Tensor) and item.dtype != tensor.bool


@writes("__getitem__")
def _getitem(g: GraphWriter, input: Value, index: Any) -> Value:
    if isinstance(index, list):
        index = g.constant(index)
    rank = input.rank
    entries = _spread(
        tuple(g.constant(item) if isinstance(item, list) else item for item in index)
        if isinstance(index, tuple)
        else index,
        rank,
    )
    made, axis = input, 0
    starts, stops, axes, steps = [], [], [], []
    for item in entries:
        if isinstance(item, slice) and item != slice(None):
            starts.append(0 if item.start is None else item.start)
            stops.append(_END if item.stop is None else item.stop)
            axes.append(axis)
            steps.append(1 if item.step is None else item.step)
        axis += _axes_taken(item)
    if axes:
        made = g.op("Slice", made, g.ints(starts), g.ints(stops), g.ints(axes), g.ints(steps))
    fancy = [(i, item) for i, item in enumerate(entries) if _is_mask(item) or _is_places(item)]
    if len(fancy) > 1 or any(_is_mask(item) for _, item in fancy):
        return _many(g, made, entries, fancy)
    for position in range(len(entries) - 1, -1, -1):
        item = entries[position]
        axis = sum(_axes_taken(other) for other in entries[:position])
        if item is None or isinstance(item, slice):
            continue
        place = item if isinstance(item, Value) else g.constant(int(item), tensor.int64)
        made = g.op("Gather", made, place, axis=axis)
    return _with_new_axes(g, made, entries)


def _with_new_axes(g: GraphWriter, made: Value, entries: list[Any]) -> Value:
    out, axes = 0, []
    for item in entries:
        if item is None:
            axes.append(out)
        if item is None or isinstance(item, slice):
            out += 1
        elif _is_places(item):
            out += item.rank
    return g.unsqueeze(made, *axes) if axes else made


def _many(g: GraphWriter, made: Value, entries: list[Any], fancy: list[Any]) -> Value:
    """Indexing by several tensors, or by a mask, on axes side by side."""
    positions = [i for i, _ in fancy]
    others = [item for i, item in enumerate(entries) if i not in positions]
    adjoining = positions == list(range(positions[0], positions[-1] + 1))
    if not adjoining or any(not isinstance(item, slice) for item in others):
        raise SymbolicValueError("onnx.export: this mixture of indices is not written")
    before = sum(_axes_taken(item) for item in entries[: positions[0]])
    rank = sum(_axes_taken(item) for item in entries)
    masks = [item for _, item in fancy if _is_mask(item)]
    if masks:
        if len(fancy) > 1:
            raise SymbolicValueError("onnx.export: a mask beside other tensors as indices is not written")
        places, width, inner = g.op("Transpose", g.op("NonZero", masks[0]), perm=[1, 0]), masks[0].rank, 1
    else:
        shape = tensor.broadcast_shapes(*[item.shape for _, item in fancy])
        grid = fancy[0][1]
        for _, item in fancy[1:]:
            grid = g.op(
                "Add", g.cast(grid, tensor.int64), g.op("Mul", g.cast(item, tensor.int64), g.constant(0))
            )
            grid = g.like(grid, tensor.zeros(shape, dtype=tensor.int64))
        common = g.shape_of(grid)
        whole = [g.op("Expand", g.cast(item, tensor.int64), common) for _, item in fancy]
        places = g.op("Concat", *[g.unsqueeze(item, len(shape)) for item in whole], axis=len(shape))
        width, inner = len(fancy), len(shape)
    if before:
        order = [*range(before, before + width), *range(before), *range(before + width, rank)]
        made = g.op("Transpose", made, perm=order)
    made = g.op("GatherND", made, places)
    if before:
        left = rank - width
        order = [*range(inner, inner + before), *range(inner), *range(inner + before, inner + left)]
        made = g.op("Transpose", made, perm=order)
    return made


@writes("__setitem__")
def _setitem(g: GraphWriter, input: Value, index: Any, value: Any) -> Value:
    if _is_mask(index) and index.shape == input.shape and (not isinstance(value, Value) or value.rank == 0):
        return g.op("Where", index, g.cast(value, input.dtype), input)
    count = g.op("Size", input)
    flat = g.op("Range", g.constant(0), count, g.constant(1))
    grid = g.op("Reshape", flat, g.shape_of(input))
    grid.real = tensor.arange(input.real.numel()).reshape(input.shape)
    chosen = _getitem(g, grid, index)
    new = g.op("Expand", g.cast(value, input.dtype), g.shape_of(chosen))
    minus = g.constant([-1], tensor.int64)
    done = g.op(
        "ScatterND", g.op("Reshape", input, minus),
        g.op("Reshape", chosen, g.constant([-1, 1], tensor.int64)), g.op("Reshape", new, minus),
    )  # fmt: skip
    return g.op("Reshape", done, g.shape_of(input))


# --- new tensors whose sizes come from inputs ---


def filled(g: GraphWriter, sizes: Any, value: Any) -> Value:
    """A tensor of one number, of the result's dtype."""
    number = g.cast(value, g.result.dtype)
    return g.op("Expand", number, sizes if isinstance(sizes, Value) else g.ints(sizes))


@writes("zeros", "new_zeros", "empty", "new_empty")
def _zeros(g: GraphWriter, *size: Any, **named: Any) -> Value:
    return filled(g, sizes_of(size, named), 0)


@writes("ones", "new_ones")
def _ones(g: GraphWriter, *size: Any, **named: Any) -> Value:
    return filled(g, sizes_of(size, named), 1)


@writes("full")
def _full(g: GraphWriter, size: Any, fill_value: Any, **_: Any) -> Value:
    return filled(g, size, fill_value)


@writes("new_full")
def _new_full(g: GraphWriter, input: Value, size: Any, fill_value: Any, **_: Any) -> Value:
    return filled(g, size, fill_value)


def sizes_of(sizes: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
    given = [item for item in sizes if not (isinstance(item, Value) and isinstance(item.real, tensor.Tensor))]
    return listed((*given, *([named["size"]] if "size" in named else [])))


@writes("zeros_like", "empty_like")
def _zeros_like(g: GraphWriter, input: Value, **_: Any) -> Value:
    return filled(g, g.shape_of(input), 0)


@writes("ones_like")
def _ones_like(g: GraphWriter, input: Value, **_: Any) -> Value:
    return filled(g, g.shape_of(input), 1)


@writes("full_like")
def _full_like(g: GraphWriter, input: Value, fill_value: Any, **_: Any) -> Value:
    return filled(g, g.shape_of(input), fill_value)


@writes("arange")
def _arange(g: GraphWriter, *bounds: Any, **_: Any) -> Value:
    start, stop, step = {1: (0, *bounds, 1), 2: (*bounds, 1), 3: bounds}[len(bounds)]
    return g.op("Range", *[g.cast(item, g.result.dtype) for item in (start, stop, step)])


@writes("fill", "Tensor.zero")
def _fill(g: GraphWriter, input: Value, value: Any = 0) -> Value:
    return filled(g, g.shape_of(input), value)


@writes("copy")
def _copy(g: GraphWriter, input: Value, src: Value, non_blocking: bool = False) -> Value:
    return g.op("Expand", g.cast(src, input.dtype), g.shape_of(input))


@writes("meshgrid")
def _meshgrid(g: GraphWriter, *tensors: Any, indexing: str = "ij") -> list[Value]:
    items = listed(tensors)
    made = []
    for place, item in enumerate(items):
        axis = 1 - place if indexing == "xy" and place < 2 else place
        sizes = [1] * len(items)
        sizes[axis] = -1
        order = (
            [1, 0, *range(2, len(items))] if indexing == "xy" and len(items) > 1 else list(range(len(items)))
        )
        shape = [g.size(items[d], 0) if items[d].rank else 1 for d in order]
        made.append(g.op("Expand", reshape(g, item, sizes), g.ints(shape)))
    return made
