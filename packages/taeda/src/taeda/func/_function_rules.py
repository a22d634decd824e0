"""User-defined functions under a vmap: what they compute for a whole batch at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from taeda.func._function_batches import Batched, OfBatch
from taeda.func._levels import Batching, levels
from taeda.utils._pytree import tree_flatten, tree_map, tree_unflatten
from taeda_registry.slots import autograd, tensor


class VmapInfo(NamedTuple):
    """What the method is told of the vmap that it runs in."""

    batch_size: int
    randomness: str


def _innermost(leaves: list[Any]) -> Batching | None:
    """The innermost vmap that one of the arguments depends on."""
    tensors = [leaf for leaf in leaves if isinstance(leaf, tensor.Tensor)]
    return next(
        (level for level in reversed(levels()) if any(level.whole(t) is not None for t in tensors)), None
    )


@contextmanager
def _outside(level: Batching) -> Iterator[None]:
    """Without the vmaps from `level` inwards, which are in force again afterwards."""
    over = levels()
    inner = over[over.index(level) :]
    with ExitStack() as stack, level._below():
        for each in reversed(inner):
            stack.enter_context(each.aside())
        yield


def call(function: Any, args: tuple) -> Any:
    """What the function gives, as tensors of the level; NotImplemented where no argument has a batch.

    Its `vmap` computes for the whole batch; where it has none, forward and backward are called as for one example.

    Raises:
        RuntimeError: The method did not give a pair, or gave `out_dims` of another form than its outputs.
    """
    if not levels():
        return NotImplemented
    level = _innermost(tree_flatten(args)[0])
    if level is None:
        return NotImplemented

    def is_batched(leaf: Any) -> bool:
        return isinstance(leaf, tensor.Tensor) and level.whole(leaf) is not None

    given = tree_map(lambda leaf: level.whole(leaf) if is_batched(leaf) else leaf, args)
    if getattr(function, "vmap", None) in (None, getattr(autograd.Function, "vmap", None)):
        shapes = tuple(arg.shape if isinstance(arg, tensor.Tensor) else None for arg in args)
        batched = Batched(function, level.size, level.randomness, tree_map(is_batched, args), shapes)
        with _outside(level):
            found = OfBatch.apply(batched, *given)
        return _entered(function, level, found, 0)
    in_dims = tree_map(lambda leaf: 0 if is_batched(leaf) else None, args)
    with _outside(level):
        found = function.vmap(VmapInfo(level.size, level.randomness), in_dims, *given)
    if not isinstance(found, tuple) or len(found) != 2:
        raise RuntimeError(
            f"{function.__name__}.vmap: expected a pair (output, out_dims), found a {type(found).__name__}"
        )
    return _entered(function, level, *found)


def _entered(function: Any, level: Batching, outputs: Any, out_dims: Any) -> Any:
    """The outputs of the whole batch as one example sees them."""
    from taeda.func._vmap import _broadcast_to_and_flatten

    leaves, spec = tree_flatten(outputs)
    places = _broadcast_to_and_flatten(tuple(out_dims) if isinstance(out_dims, list) else out_dims, spec)
    if places is None:
        raise RuntimeError(
            f"{function.__name__}.vmap: out_dims is {out_dims!r}, expected the structure of the output: {spec}"
        )
    inside = [
        leaf if place is None or not isinstance(leaf, tensor.Tensor) else level.batch(_first(leaf, place))
        for leaf, place in zip(leaves, places, strict=True)
    ]
    return tree_unflatten(inside, spec)


def _first(whole: Any, place: int) -> Any:
    """The tensor with its batch in front."""
    return whole if place == 0 else whole.movedim(place, 0).contiguous()


def install() -> None:
    """Let functions of the autograd slot ask for their own rules; a provider without the question has none."""
    if hasattr(autograd.Function, "_rule_of_vmap"):
        autograd.Function._rule_of_vmap = staticmethod(call)
