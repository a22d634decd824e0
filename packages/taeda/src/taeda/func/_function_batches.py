"""User-defined functions under a vmap: one function of the whole batch."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from taeda.func._levels import Batching
from taeda.utils._pytree import tree_flatten, tree_map, tree_unflatten
from taeda_registry.slots import autograd, tensor


class VmapInfo(NamedTuple):
    """What the method `vmap` of a function is told of the vmap that it runs in."""

    batch_size: int
    randomness: str


def has_own_rule(function: Any) -> bool:
    """Whether the function computes for a whole batch itself."""
    return getattr(function, "vmap", None) not in (None, getattr(autograd.Function, "vmap", None))


def of_all(function: Any, level: Batching, places: Any, args: tuple) -> tuple:
    """The outputs that the function's own `vmap` gives, and where these have the batch.

    Raises:
        RuntimeError: The method did not give a pair.
    """
    in_dims = tree_map(lambda batched: 0 if batched else None, places)
    found = function.vmap(VmapInfo(level.size, level.randomness), in_dims, *args)
    if not isinstance(found, tuple) or len(found) != 2:
        raise RuntimeError(
            f"{function.__name__}.vmap: expected a pair (output, out_dims), found a {type(found).__name__}"
        )
    return found


def entered(function: Any, level: Batching, outputs: Any, out_dims: Any) -> Any:
    """The outputs of the whole batch as one example sees them.

    Raises:
        RuntimeError: `out_dims` has another form than the outputs.
    """
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


class Batched(NamedTuple):
    """A function whose backward is written for one example, and the batch that it is called for.

    Attributes:
        function: The user's. origin: The vmap.
        places: What `args` are a tree of: True for tensors that have the batch in front, else False.
        shapes: Of one example's arguments; None for those that are no tensors.
        by_rule: Whether the outputs are those of the function's own `vmap`.
    """

    function: Any
    origin: Batching
    places: tuple
    shapes: tuple
    by_rule: bool

    def level(self) -> Batching:
        """A vmap over the batch, in which backward is run as a part of the program of the first one."""
        return Batching(self.origin.size, self.origin.randomness, self.origin)


class _Whole(NamedTuple):
    """The tensor of all the batch, in the place of one example's."""

    value: Any


class ContextOfOne:
    """The context that one example's function has: a view of that of the whole batch, with attributes of its own."""

    def __init__(self, whole: Any, function: Any) -> None:
        self._context, self._function = weakref.ref(whole), function  # that one keeps this one
        self._level: Batching | None = None
        self._in_jvp, self._for_forward = False, None
        self._constant: tuple = ()

    def save_for_backward(self, *tensors: Any) -> None:
        """`FunctionCtx.save_for_backward`."""
        self._batched = [self._whole(t) is not None for t in tensors]
        pairs = zip(tensors, self._batched, strict=True)
        self._of_all.save_for_backward(*(self._whole(t) if batched else t for t, batched in pairs))

    def save_for_forward(self, *tensors: Any) -> None:
        """`FunctionCtx.save_for_forward`."""
        self._for_forward = [self._whole(t) is not None for t in tensors]
        pairs = zip(tensors, self._for_forward, strict=True)
        self._of_all.save_for_forward(*(self._whole(t) if batched else t for t, batched in pairs))

    @property
    def saved_tensors(self) -> tuple:
        """What was saved."""
        forward = self._in_jvp and self._for_forward is not None
        batches = self._for_forward if forward else self._batched
        pairs = zip(self._of_all.saved_tensors, batches, strict=True)
        return tuple(self._level.batch(t) if batched else t for t, batched in pairs)

    @property
    def saved_variables(self) -> tuple:
        """The older name of ``saved_tensors``."""
        return self.saved_tensors

    @property
    def needs_input_grad(self) -> tuple:
        """Of each argument."""
        return self._of_all.needs_input_grad[1:]

    def mark_dirty(self, *tensors: Any) -> None:
        """`FunctionCtx.mark_dirty`."""
        self._of_all.mark_dirty(*(t if self._whole(t) is None else self._whole(t) for t in tensors))

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """`FunctionCtx.mark_non_differentiable`."""
        self._constant = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """`FunctionCtx.set_materialize_grads`."""
        self._of_all.set_materialize_grads(value)

    @property
    def _of_all(self) -> Any:
        whole = self._context()
        if whole is None:
            raise RuntimeError(
                f"{self._function.__name__}: the graph that this context belongs to has been freed"
            )
        return whole

    def _whole(self, value: Any) -> Any:
        return self._level.whole(value) if isinstance(value, tensor.Tensor) else None

    @contextmanager
    def _inside(self, level: Batching) -> Iterator[None]:
        """With the attributes' tensors those of that level, which afterwards are kept without one."""
        self._level = level
        self._exchange(lambda value: level.batch(value.value) if isinstance(value, _Whole) else value)
        try:
            yield
        finally:
            self._exchange(lambda value: value if self._whole(value) is None else _Whole(self._whole(value)))
            self._level, self._constant = None, ()

    def _exchange(self, change: Any) -> None:
        own = {name: value for name, value in vars(self).items() if name not in ("_context", "_level")}
        found = tree_map(change, own, is_leaf=lambda value: isinstance(value, _Whole))
        vars(self).update(found)


class OfBatch(autograd.Function):
    """A `Batched` function: takes it and its arguments with their batches, and gives outputs with theirs in front."""

    @staticmethod
    def forward(ctx: Any, batched: Batched, *args: Any) -> Any:
        """The outputs of all examples."""
        function = batched.function
        ctx.batched, ctx.one = batched, ContextOfOne(ctx, function)
        if batched.by_rule:
            found = of_all(function, batched.origin, batched.places, args)
        with batched.level() as level, ctx.one._inside(level):
            given = tree_map(
                lambda value, place: level.batch(value) if place else value, args, batched.places
            )
            if batched.by_rule:
                made = entered(function, level, *found)
                ctx.one._arguments = tuple(
                    (a.shape, a.dtype, a.device) if isinstance(a, tensor.Tensor) else None for a in given
                )
                function.setup_context(ctx.one, given, made)
            else:
                made = function._run_forward(ctx.one, *given)
            made = tuple(made) if isinstance(made, list) else made
            outputs = made if isinstance(made, tuple) else (made,)
            wholes = tuple(level.expanded(o) if isinstance(o, tensor.Tensor) else o for o in outputs)
            constant = ctx.one._constant
            ctx.mark_non_differentiable(
                *(w for w, o in zip(wholes, outputs, strict=True) if any(o is each for each in constant))
            )
        return wholes if isinstance(made, tuple) else wholes[0]

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple:
        """The gradients of the arguments: summed over the batch where an argument is shared by it."""
        batched = ctx.batched
        with batched.level() as level, ctx.one._inside(level):
            given = [None if grad is None else level.batch(grad) for grad in grads]
            found = batched.function._run_backward(ctx.one, *given)
            found = found if isinstance(found, tuple) else (found,)
            if len(found) != len(batched.shapes):
                raise RuntimeError(
                    f"{batched.function.__name__}.backward: it gave {len(found)} gradients, expected "
                    f"{len(batched.shapes)}, one for each argument of forward"
                )
            rows = zip(found, batched.shapes, batched.places, strict=True)
            return (None, *(_gradient(level, *row) for row in rows))

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: Any) -> tuple:
        """The tangents of the outputs, where the user's function gives them."""
        batched = ctx.batched
        with batched.level() as level, ctx.one._inside(level):
            given = tuple(
                level.batch(t) if t is not None and place is True else t
                for t, place in zip(tangents, batched.places, strict=True)
            )
            found = batched.function._move(ctx.one, given)
            return tuple(None if t is None else level.expanded(t) for t in found)

    @classmethod
    def _gives_tangents(cls, ctx: Any) -> bool:
        return ctx.batched.function._gives_tangents(ctx.one)


def _gradient(level: Batching, found: Any, shape: Any, place: Any) -> Any:
    """The gradient of one argument."""
    if found is None or shape is None:
        return None
    whole = level.expanded(found if found.shape == shape else found.sum_to_size(shape))
    return whole if place else whole.sum(0)
