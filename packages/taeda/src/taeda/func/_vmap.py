"""vmap: a program for one example, computed for a batch.

Its three steps have PyTorch's names and arguments, and `vmap` looks them up when it is called: libraries whose
containers have dimensions of their own (tensordict) put their own functions in the steps' places.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from taeda.func import _own_results
from taeda.func._levels import Batching, _thread, apart, levels, strip
from taeda.utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_map, tree_unflatten
from taeda_registry.slots import tensor

Tensor = tensor.Tensor
tensor.library.use_batches(_own_results.call)
tensor.library.use_examples(lambda value: strip(value, levels()), apart)
_RANDOMNESS = ("error", "different", "same")


def _get_name(func: Callable) -> str:
    """What a function is called in messages."""
    return getattr(func, "__name__", type(func).__name__)


def _mapping(func: Callable) -> str:
    return f"vmap({_get_name(func)})"


def _spread(dims: Any, spec: Any, name: str, where: str) -> list[Any]:
    """`dims`, a tree that may end before that of `spec` does, for each leaf of `spec`."""
    found = _broadcast_to_and_flatten(dims, spec)
    if found is None:
        raise ValueError(
            f"{name}: argument '{where}' is {dims!r}, which does not have the structure of what it is for: {spec}"
        )
    return found


def _validate_and_get_batch_size(flat_in_dims: list[Any], flat_args: list[Any], name: str = "vmap") -> int:
    """The one size of all batches.

    Raises:
        ValueError: There are several, or none.
    """
    sizes = [leaf.size(dim) for leaf, dim in zip(flat_args, flat_in_dims, strict=True) if dim is not None]
    if not sizes:
        raise ValueError(
            f"{name}: argument 'in_dims' maps no argument, expected at least one tensor with a batch"
        )
    for size in sizes:
        if size != sizes[0]:
            raise ValueError(
                f"{name}: the batches have sizes {sizes[0]} and {size}, expected one size for all"
            )
    return sizes[0]


def _process_batched_inputs(
    in_dims: Any, args: tuple, func: Callable
) -> tuple[int, list[int | None], list[Any], Any]:
    """First step: the size of the batch; for each leaf of the arguments its batch's place, and the leaf; their form."""
    name = _mapping(func)
    if not (in_dims is None or isinstance(in_dims, (int, tuple, list))):
        raise ValueError(f"{name}: argument 'in_dims' is {in_dims!r}, expected a number or a tuple")
    if not args:
        raise ValueError(f"{name}: it was called without arguments, expected tensors with a batch")
    leaves, spec = tree_flatten(args)
    dims = _spread(tuple(in_dims) if isinstance(in_dims, list) else in_dims, spec, name, "in_dims")
    for place, (leaf, dim) in enumerate(zip(leaves, dims, strict=True)):
        if dim is None:
            continue
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"{name}: argument 'in_dims' has {dim} for an argument that is a {type(leaf).__name__}, "
                "expected None: only tensors have a batch"
            )
        if not isinstance(dim, int) or not -leaf.dim() <= dim < leaf.dim():
            raise ValueError(
                f"{name}: argument 'in_dims' has {dim!r} for a tensor of shape {tuple(leaf.shape)}, "
                f"expected None or {-leaf.dim()} to {leaf.dim() - 1}"
            )
        dims[place] = dim % leaf.dim()
    return _validate_and_get_batch_size(dims, leaves, name), dims, leaves, spec


def _told(step: Callable, args: tuple, result: Any) -> Any:
    """The result of a step, of which those who watch this thread's vmaps are told."""
    for tell in _thread.watching:
        tell(step, args, result)
    return result


def _level(number: int) -> Batching:
    """The vmap of that number; 1 is the outermost."""
    found = levels()
    if not 1 <= number <= len(found):
        raise RuntimeError(f"vmap: there is no level {number}: {len(found)} are in force")
    return found[number - 1]


def _add_batch_dim(tensor: Any, in_dim: int, vmap_level: int) -> Any:
    """The tensor of one example, of that level, by the tensor of all its batch."""
    level, whole = _level(vmap_level), tensor
    if in_dim != 0:
        # Examples lie in memory one after the other.
        view = tensor.movedim(in_dim, 0)
        whole = view.contiguous()
        if whole is not view:
            level.copies.append((view, whole, whole._version))
    return _told(_add_batch_dim, (tensor, in_dim, vmap_level), level.batch(whole))


def _remove_batch_dim(tensor: Any, vmap_level: int, batch_size: int, out_dim: int) -> Any:
    """The tensor of all the batch, which stands at `out_dim`; what is the same for all examples is repeated."""
    if not -tensor.dim() - 1 <= out_dim <= tensor.dim():
        raise IndexError(
            f"vmap: argument 'out_dims' has {out_dim} for a result of shape {tuple(tensor.shape)}, "
            f"expected {-tensor.dim() - 1} to {tensor.dim()}"
        )
    whole = _level(vmap_level).expanded(tensor)
    whole = _told(_remove_batch_dim, (tensor, vmap_level, batch_size, 0), whole)
    return whole if out_dim % (tensor.dim() + 1) == 0 else whole.movedim(0, out_dim)


def _create_batched_inputs(
    flat_in_dims: list[Any], flat_args: list[Any], vmap_level: int, args_spec: Any
) -> Any:
    """Second step, with the level in force: the arguments as one example sees them."""
    given = [
        leaf if dim is None else _add_batch_dim(leaf, dim, vmap_level)
        for leaf, dim in zip(flat_args, flat_in_dims, strict=True)
    ]
    return tree_unflatten(given, args_spec)


def _maybe_remove_batch_dim(
    name: str, batched_output: Any, vmap_level: int, batch_size: int, out_dim: int | None
) -> Any:
    """`_remove_batch_dim`; with None for `out_dim` the result itself, which must not depend on the batch."""
    if not isinstance(batched_output, Tensor):
        if out_dim is None:
            return batched_output
        raise ValueError(
            f"vmap({name}): the function gave a {type(batched_output).__name__}, expected tensors"
        )
    if out_dim is None:
        if _level(vmap_level).whole(batched_output) is not None:
            raise ValueError(
                f"vmap({name}): argument 'out_dims' has None for a result that depends on the batch"
            )
        return batched_output
    return _remove_batch_dim(batched_output, vmap_level, batch_size, out_dim)


def _unwrap_batched(
    batched_outputs: Any, out_dims: Any, vmap_level: int, batch_size: int, func: Callable
) -> Any:
    """Third step: the results of the whole batch."""
    leaves, spec = tree_flatten(batched_outputs)
    if isinstance(batched_outputs, Tensor) and isinstance(out_dims, tuple) and len(out_dims) == 1:
        out_dims = out_dims[0]
    places = _spread(out_dims, spec, _mapping(func), "out_dims")
    for place in places:
        if not isinstance(place, int | None):
            raise ValueError(
                f"{_mapping(func)}: argument 'out_dims' is {out_dims!r}, expected a number, None or a structure of such"
            )
    found = [
        _maybe_remove_batch_dim(_get_name(func), leaf, vmap_level, batch_size, place)
        for leaf, place in zip(leaves, places, strict=True)
    ]
    return tree_unflatten(found, spec)


def _give_back(level: Batching) -> None:
    """Write what the function has written to copies of its arguments into the arguments."""
    for view, whole, version in level.copies:
        if whole._version != version:
            view.copy_(whole)


def _vmap_increment_nesting(batch_size: int, randomness: str) -> int:
    """Put a vmap in force; its number."""
    Batching(batch_size, randomness).__enter__()
    return _told(_vmap_increment_nesting, (batch_size, randomness), len(levels()))


def _vmap_decrement_nesting() -> int:
    """Take the innermost vmap out of force; its number was.

    Raises:
        RuntimeError: None is in force.
    """
    found = levels()
    if not found:
        raise RuntimeError("vmap: no level is in force")
    found[-1].__exit__(None, None, None)
    _give_back(found[-1])
    return _told(_vmap_decrement_nesting, (), len(found))


#: The functions that the graph of a vmap has around those of its program.
STEPS = (_vmap_increment_nesting, _add_batch_dim, _remove_batch_dim, _vmap_decrement_nesting)


@contextmanager
def restored() -> Iterator[None]:
    """Steps of vmaps by themselves, of which none is left in force where one of them fails."""
    before = len(levels())
    try:
        yield
    finally:
        for level in reversed(levels()[before:]):
            level.__exit__(None, None, None)


@contextmanager
def vmap_increment_nesting(batch_size: int, randomness: str) -> Iterator[int]:
    """A level within those that are in force, and its number."""
    try:
        with Batching(batch_size, randomness) as level:
            yield _told(_vmap_increment_nesting, (batch_size, randomness), len(levels()))
        _give_back(level)
    finally:
        _told(_vmap_decrement_nesting, (), None)


def _flat_vmap(
    func: Callable,
    batch_size: int,
    flat_in_dims: list[Any],
    flat_args: list[Any],
    args_spec: Any,
    out_dims: Any,
    randomness: str,
    **kwargs: Any,
) -> Any:
    """The last two steps, around the call."""
    with vmap_increment_nesting(batch_size, randomness) as level:
        given = _create_batched_inputs(flat_in_dims, flat_args, level, args_spec)
        return _unwrap_batched(func(*given, **kwargs), out_dims, level, batch_size, func)


def vmap_impl(
    func: Callable,
    in_dims: Any,
    out_dims: Any,
    randomness: str,
    chunk_size: int | None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """The call of what `vmap` gives."""
    size, dims, leaves, spec = _process_batched_inputs(in_dims, args, func)
    if chunk_size is None or size <= chunk_size:
        return _flat_vmap(func, size, dims, leaves, spec, out_dims, randomness, **kwargs)
    parts = []
    drawn = tensor.get_rng_state() if randomness == "same" else None
    for begin, count in zip(itertools.count(0, chunk_size), get_chunk_sizes(size, chunk_size), strict=False):
        some = [
            leaf if dim is None else leaf.narrow(dim, begin, count)
            for leaf, dim in zip(leaves, dims, strict=True)
        ]
        if drawn is not None:
            tensor.set_rng_state(drawn)
        parts.append(_flat_vmap(func, count, dims, some, spec, out_dims, randomness, **kwargs))
    shape = tree_flatten(parts[0])[1]
    columns = zip(*(tree_flatten(part)[0] for part in parts), strict=True)
    joined = [
        column[0] if place is None else tensor.cat(list(column), place)
        for column, place in zip(columns, _spread(out_dims, shape, _mapping(func), "out_dims"), strict=True)
    ]
    return tree_unflatten(joined, shape)


def get_chunk_sizes(total_elems: int, chunk_size: int) -> list[int]:
    """Sizes of the parts of a batch: all of `chunk_size` but the last.

    Example:
        >>> get_chunk_sizes(7, 3)
        [3, 3, 1]
    """
    whole, rest = divmod(total_elems, chunk_size)
    return [chunk_size] * whole + ([rest] if rest else [])


def _check_randomness_arg(randomness: str) -> None:
    if randomness not in _RANDOMNESS:
        raise RuntimeError(
            f"vmap: argument 'randomness' is {randomness!r}, expected one of {', '.join(_RANDOMNESS)}"
        )


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
            arguments, or a structure like theirs. Arguments by name are shared by all examples.
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
    _check_randomness_arg(randomness)
    if chunk_size is not None and (not isinstance(chunk_size, int) or chunk_size < 1):
        raise ValueError(f"vmap: argument 'chunk_size' is {chunk_size!r}, expected None or at least 1")

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        return vmap_impl(func, in_dims, out_dims, randomness, chunk_size, *args, **kwargs)

    return mapped


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
