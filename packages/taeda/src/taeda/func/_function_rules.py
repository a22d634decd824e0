"""User-defined functions under a vmap: what they compute for a whole batch at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from taeda.func._function_batches import Batched, OfBatch, entered, has_own_rule, of_all
from taeda.func._levels import Batching, begun_inside, levels
from taeda.utils._pytree import tree_flatten, tree_map
from taeda_registry.slots import autograd, tensor


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

    Its `vmap` computes for the whole batch; where it has none, forward and backward are called as for one example. A
    transform inside of the vmap comes before it: the backward is that of one example, and only what it computes has
    the batch.

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
    places = tree_map(is_batched, args)
    own = has_own_rule(function)
    if not own or begun_inside(level):
        shapes = tuple(arg.shape if isinstance(arg, tensor.Tensor) else None for arg in args)
        by_rule = own and function.setup_context is not None
        batched = Batched(function, level.origin, places, shapes, by_rule)
        with _outside(level):
            found = OfBatch.apply(batched, *given)
        return entered(function, level, found, 0)
    with _outside(level):
        found = of_all(function, level, places, given)
    return entered(function, level, *found)


def install() -> None:
    """Let functions of the autograd slot ask for their own rules; a provider without the question has none."""
    if hasattr(autograd.Function, "_rule_of_vmap"):
        autograd.Function._rule_of_vmap = staticmethod(call)
