"""vmap: a program for one example, computed for a batch."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

from taeda.func._levels import Batching, levels
from taeda.utils._pytree import tree_flatten, tree_map, tree_unflatten
from taeda_registry.slots import tensor

Tensor = tensor.Tensor
_RANDOMNESS = ("error", "different", "same")


def _spread(dims: Any, value: Any, name: str, where: str) -> list[Any]:
    """`dims`, a tree that may end before that of `value` does, for each leaf of `value`."""
    leaves, spec = tree_flatten(value)
    if dims is None or isinstance(dims, int):
        return [dims] * len(leaves)
    if isinstance(dims, (list, tuple)) and isinstance(value, (list, tuple)) and len(dims) == len(value):
        parts = zip(dims, value, strict=True)
    elif isinstance(dims, dict) and isinstance(value, dict) and dims.keys() == value.keys():
        parts = ((dims[key], value[key]) for key in value)
    else:
        raise ValueError(
            f"{name}: argument '{where}' is {dims!r}, which does not have the structure of what it is for: {spec}"
        )
    return [each for part, inner in parts for each in _spread(part, inner, name, where)]


def _batch_size(leaves: list[Any], dims: list[Any], name: str) -> int:
    size: int | None = None
    for leaf, dim in zip(leaves, dims, strict=True):
        if dim is None:
            continue
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"{name}: argument 'in_dims' has {dim} for an argument that is a {type(leaf).__name__}, "
                "expected None: only tensors have a batch"
            )
        if not -leaf.dim() <= dim < leaf.dim():
            raise ValueError(
                f"{name}: argument 'in_dims' has {dim} for a tensor of shape {tuple(leaf.shape)}, "
                f"expected None or {-leaf.dim()} to {leaf.dim() - 1}"
            )
        if size is not None and leaf.shape[dim] != size:
            raise ValueError(
                f"{name}: the batches have sizes {size} and {leaf.shape[dim]}, expected one size for all"
            )
        size = leaf.shape[dim]
    if size is None:
        raise ValueError(
            f"{name}: argument 'in_dims' maps no argument, expected at least one tensor with a batch"
        )
    return size


def _taken(level: Batching, made: Any, out_dims: Any, name: str) -> Any:
    """The results of the whole batch."""
    leaves, spec = tree_flatten(made)
    found = []
    for leaf, dim in zip(leaves, _spread(out_dims, made, name, "out_dims"), strict=True):
        if not isinstance(leaf, Tensor):
            raise ValueError(f"{name}: the function gave a {type(leaf).__name__}, expected tensors")
        if dim is None:
            if level.whole(leaf) is not None:
                raise ValueError(
                    f"{name}: argument 'out_dims' has None for a result that depends on the batch"
                )
            found.append(leaf)
            continue
        if not -leaf.dim() - 1 <= dim <= leaf.dim():
            raise IndexError(
                f"{name}: argument 'out_dims' has {dim} for a result of shape {tuple(leaf.shape)}, "
                f"expected {-leaf.dim() - 1} to {leaf.dim()}"
            )
        whole = level.expanded(leaf)
        found.append(whole if dim % (leaf.dim() + 1) == 0 else whole.movedim(0, dim))
    return tree_unflatten(found, spec)


def _mapped(
    func: Callable, leaves: list[Any], dims: list[Any], spec: Any, size: int, kwargs: dict, options: tuple
) -> Any:
    out_dims, randomness, name = options
    with Batching(size, randomness) as level:
        # Of the levels outside: what goes in is theirs. Examples lie in memory one after the other.
        given = [
            leaf if dim is None else level.batch(leaf if dim == 0 else leaf.movedim(dim, 0).contiguous())
            for leaf, dim in zip(leaves, dims, strict=True)
        ]
        return _taken(level, func(*tree_unflatten(given, spec), **kwargs), out_dims, name)


def vmap(
    func: Callable,
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable:
    """`func`, written for one example, over a dimension of its arguments; the whole batch is computed at once.

    Operators without a rule of their own for batches are called once for each example, which is right and slow.

    Args:
        func: Takes tensors, also inside containers, and gives tensors.
        in_dims: Which dimension of each argument is the batch's, None for what all examples share; a number for all
            arguments, or a structure like theirs. Arguments by name are mapped over their first dimension.
        out_dims: Where the batch stands in each result; None for results that do not depend on it.
        randomness: What random operators do: "error", "different" for each example, or the "same" for all.
        chunk_size: Compute so many examples at a time; all by default.

    Raises:
        ValueError: Dimensions that do not fit the arguments, batches of several sizes, results that are no tensors.
        RuntimeError: In `func`: what needs the elements of one example (`item`, a condition on a tensor), writing what
            depends on the batch into what does not, and random operators with randomness="error".

    Source: the interface is that of `torch.func.vmap`.

    Example:
        >>> taeda.vmap(lambda a, b: a @ b)(taeda.ones(2, 3), taeda.ones(2, 3))
        tensor([3., 3.])
    """
    if randomness not in _RANDOMNESS:
        raise RuntimeError(
            f"vmap: argument 'randomness' is {randomness!r}, expected one of {', '.join(_RANDOMNESS)}"
        )
    if chunk_size is not None and (not isinstance(chunk_size, int) or chunk_size < 1):
        raise ValueError(f"vmap: argument 'chunk_size' is {chunk_size!r}, expected None or at least 1")
    name = f"vmap({getattr(func, '__name__', type(func).__name__)})"

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        if not (in_dims is None or isinstance(in_dims, (int, tuple, list))):
            raise ValueError(f"{name}: argument 'in_dims' is {in_dims!r}, expected a number or a tuple")
        dims_of_args = tuple(in_dims) if isinstance(in_dims, list) else in_dims
        if not args and not kwargs:
            raise ValueError(f"{name}: it was called without arguments, expected tensors with a batch")
        named, names = tree_flatten(kwargs)
        leaves, spec = tree_flatten(args)
        dims = _spread(dims_of_args, args, name, "in_dims") if args else []
        count = len(leaves)
        leaves, dims = leaves + named, dims + [0 if isinstance(each, Tensor) else None for each in named]
        dims = [
            dim % leaf.dim()
            if isinstance(leaf, Tensor) and dim is not None and -leaf.dim() <= dim < 0
            else dim
            for leaf, dim in zip(leaves, dims, strict=True)
        ]
        size = _batch_size(leaves, dims, name)

        def call(*given: Any) -> Any:
            return func(
                *tree_unflatten(list(given[:count]), spec), **tree_unflatten(list(given[count:]), names)
            )

        _, flat = tree_flatten(tuple(leaves))
        options = out_dims, randomness, name
        if chunk_size is None or size <= chunk_size:
            return _mapped(call, leaves, dims, flat, size, {}, options)
        return _in_chunks(call, leaves, dims, flat, size, chunk_size, options)

    return mapped


def _in_chunks(
    call: Callable, leaves: list[Any], dims: list[Any], spec: Any, size: int, chunk: int, options: tuple
) -> Any:
    parts = []
    for begin in range(0, size, chunk):
        count = min(chunk, size - begin)
        some = [
            leaf if dim is None else leaf.narrow(dim, begin, count)
            for leaf, dim in zip(leaves, dims, strict=True)
        ]
        parts.append(_mapped(call, some, dims, spec, count, {}, options))
    made, shape = tree_flatten(parts[0])
    places = _spread(options[0], parts[0], options[2], "out_dims")
    columns = itertools.zip_longest(*(tree_flatten(part)[0] for part in parts))
    joined = [
        column[0] if place is None else tensor.cat(list(column), place)
        for column, place in zip(columns, places, strict=True)
    ]
    assert len(joined) == len(made)
    return tree_unflatten(joined, shape)


def debug_unwrap(tensor: Any, *, recurse: bool = True) -> Any:
    """The tensor that one of a vmap carries, with the batch in front; with `recurse` the one under all levels.

    Anything else is given back as it is.
    """

    def unwrapped(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        for level in reversed(levels()):
            whole = level.whole(value)
            if whole is not None:
                value = whole
                if not recurse:
                    break
        return value

    return tree_map(unwrapped, tensor)
