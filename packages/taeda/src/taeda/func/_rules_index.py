"""Rules of vmap: what picks elements by indices, and what writes to them."""

from __future__ import annotations

from typing import Any

from taeda.func._batching import rule
from taeda.func._levels import Batching
from taeda.func._rules import behind, padded
from taeda_registry.slots import tensor

Tensor = tensor.Tensor


@rule("gather")
def _gather(level: Batching, op: Any, self: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Any:
    if not self.dim() or not index.dim():
        return NotImplemented
    return op(level.expanded(self), behind(dim, self.dim()), level.expanded(index))


@rule("scatter", "scatter_add", "scatter_reduce")
def _scatter(
    level: Batching, op: Any, self: Any, dim: int, index: Any, src: Any, *rest: Any, **kwargs: Any
) -> Any:
    if not self.dim() or not index.dim():
        return NotImplemented
    wholes = [level.expanded(t) for t in (self, index, src)]
    return op(wholes[0], behind(dim, self.dim()), wholes[1], wholes[2], *rest, **kwargs)


@rule("scatter.value")
def _scatter_value(level: Batching, op: Any, self: Any, dim: int, index: Any, value: Any) -> Any:
    if not self.dim() or not index.dim():
        return NotImplemented
    return op(level.expanded(self), behind(dim, self.dim()), level.expanded(index), value)


@rule("index_select")
def _index_select(level: Batching, op: Any, self: Any, dim: int, index: Any) -> Any:
    if not self.dim():
        return NotImplemented
    at, places = behind(dim, self.dim()), level.whole(index)
    if places is None:
        return op(level.whole(self), at, index)
    whole = level.expanded(self)
    if not index.dim():
        places = places.unsqueeze(1)
    shape = list(whole.shape)
    shape[at] = places.shape[1]
    places = places.reshape(level.size, *[1] * (at - 1), -1, *[1] * (whole.dim() - at - 1)).expand(shape)
    return whole.gather(at, places.to(tensor.int64))


@rule("index_add", "index_copy")
def _index_write(
    level: Batching, op: Any, self: Any, dim: int, index: Any, source: Any, **kwargs: Any
) -> Any:
    if not self.dim() or not source.dim() or level.whole(index) is not None:
        return NotImplemented
    return op(level.expanded(self), behind(dim, self.dim()), index, level.expanded(source), **kwargs)


@rule("index_fill")
def _index_fill(level: Batching, op: Any, self: Any, dim: int, index: Any, value: Any) -> Any:
    batched = any(isinstance(t, Tensor) and level.whole(t) is not None for t in (index, value))
    if not self.dim() or batched:
        return NotImplemented
    return op(level.whole(self), behind(dim, self.dim()), index, value)


def _spread(level: Batching, indices: Any) -> tuple[list[Any], int, int] | None:
    """Indices of a batch's tensor: the examples' numbers before them; where they begin, and their dimensions.

    None where they do not stand together, or there are masks.
    """
    given = [i for i, index in enumerate(indices) if index is not None]
    if not given or given != list(range(given[0], given[-1] + 1)):
        return None
    if any(indices[i].dtype in (tensor.bool, tensor.uint8) for i in given):
        return None
    dims = max(indices[i].dim() for i in given)
    spread: list[Any] = []
    for index in indices:
        whole = None if index is None else level.whole(index)
        spread.append(index if whole is None else padded(whole, dims))
    first = tensor.arange(level.size, device=indices[given[0]].device).reshape(-1, *[1] * dims)
    return [first, *spread], given[0], dims


@rule("index")
def _index(level: Batching, op: Any, self: Any, indices: Any) -> Any:
    shared = all(index is None or level.whole(index) is None for index in indices)
    found = _spread(level, indices)
    if found is None:
        if not shared:
            return NotImplemented
        # Indices that do not stand together come first in the result.
        given = [i for i, index in enumerate(indices) if index is not None]
        together = given == list(range(given[0], given[-1] + 1))
        made = op(level.whole(self), [None, *indices])
        masks = any(indices[i].dtype in (tensor.bool, tensor.uint8) for i in given)
        dims = 1 if masks and len(given) == 1 else max(indices[i].dim() for i in given)
        return made if together else made.movedim(dims, 0)
    if shared:
        return op(level.whole(self), [None, *indices])
    spread, begin, dims = found
    made = op(level.expanded(self), spread)
    if not begin or not dims:
        return made
    # With dimensions between the examples' numbers and the others, all of them come first.
    return made.movedim(tuple(range(1, dims + 1)), tuple(range(begin + 1, begin + dims + 1)))


@rule("index_put")
def _index_put_of(
    level: Batching, op: Any, self: Any, indices: Any, values: Any, accumulate: bool = False
) -> Any:
    made = level.expanded(self).clone()
    written = _index_put(level, tensor.library.op("index_put_"), made, indices, values, accumulate, made)
    return NotImplemented if written is NotImplemented else made


@rule("put")
def _put(level: Batching, op: Any, *args: Any) -> Any:
    return NotImplemented  # one by one: places are counted in each example


@rule("index_put_")
def _index_put(
    level: Batching,
    op: Any,
    self: Any,
    indices: Any,
    values: Any,
    accumulate: bool = False,
    whole: Any = None,
) -> Any:
    found = _spread(level, indices)
    if found is None or found[1]:
        return NotImplemented
    spread, _, dims = found
    whole = level.whole(self) if whole is None else whole
    if isinstance(values, Tensor) and level.whole(values) is not None:
        count = sum(index is not None for index in indices)
        values = padded(level.whole(values), dims + whole.dim() - 1 - count)
    return op(whole, spread, values, accumulate)


@rule("embedding")
def _embedding(
    level: Batching,
    op: Any,
    weight: Any,
    indices: Any,
    padding_idx: int = -1,
    by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    table, places = level.whole(weight), level.whole(indices)
    if table is None:
        return op(weight, places, padding_idx, by_freq, sparse)
    if padding_idx != -1 or by_freq:
        return NotImplemented
    rows, width = weight.shape
    places = level.expanded(indices)
    first = (tensor.arange(level.size) * rows).to(places.device).reshape(-1, *[1] * indices.dim())
    return op(table.reshape(-1, width), places + first, -1, False, False)


@rule("searchsorted")
def _searchsorted(level: Batching, op: Any, sorted_sequence: Any, self: Any, *, right: bool = False) -> Any:
    if not isinstance(self, Tensor) or sorted_sequence.dim() != 1:
        if isinstance(self, Tensor) and sorted_sequence.dim() == self.dim():
            return op(level.expanded(sorted_sequence).contiguous(), level.expanded(self), right=right)
        return NotImplemented
    found = level.expanded(self).reshape(level.size, -1)
    return op(level.expanded(sorted_sequence).contiguous(), found, right=right).reshape(
        level.size, *self.shape
    )
