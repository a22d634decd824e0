"""Operators of a program's own that give lists or numbers, under a vmap: by the rule that they have, or one by one."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from taeda.func._batching import changed, tensors_of
from taeda.func._levels import Batching, levels
from taeda_registry.slots import tensor

Tensor = tensor.Tensor


def call(operator: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """What the innermost vmap that the arguments belong to gives; NotImplemented where they belong to none."""
    over = levels()
    given = tensors_of([*args, *kwargs.values()])
    while over and all(over[-1].whole(t) is None for t in given):
        over.pop()
    if not over:
        return NotImplemented
    level, inner = over[-1], levels()[len(over) - 1 :]
    with level._below(), ExitStack() as aside:
        for each in reversed(inner):
            aside.enter_context(each.aside())
        rule = _by_rule if operator.batching_rule is not None else _one_by_one
        return rule(level, operator, args, kwargs)


def places(level: Batching, value: Any) -> Any:
    """0 for a tensor of the batch, None for all else, in lists as in lists."""
    if isinstance(value, (list, tuple)) and tensors_of(value):
        return type(value)(places(level, item) for item in value)
    return 0 if isinstance(value, Tensor) and level.whole(value) is not None else None


def _by_rule(level: Batching, operator: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    def whole(value: Any) -> Any:
        return value if level.whole(value) is None else level.whole(value)

    dims = tuple(places(level, value) for value in args)
    shared = {name: changed(value, whole) for name, value in kwargs.items()}
    info = tensor.library.BatchInfo(level.size, level.randomness)
    made, where = operator.batching_rule(info, dims, *changed(list(args), whole), **shared)
    return _dressed(level, made, where)


def _dressed(level: Batching, made: Any, where: Any) -> Any:
    """Results of the whole batch as those of one example; `where` says in which dimension the batch stands."""
    if isinstance(made, (list, tuple)):
        listed = where if isinstance(where, (list, tuple)) else [where] * len(made)
        return type(made)(_dressed(level, item, place) for item, place in zip(made, listed, strict=True))
    if not isinstance(made, Tensor) or where is None:
        return made
    return level.batch(made.movedim(where, 0))


def _one_by_one(level: Batching, operator: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    if not level.size:
        raise NotImplementedError(
            f"vmap: {operator.name} has no rule for batches, which an empty batch needs"
        )

    def example(value: Any, place: int) -> Any:
        return changed(value, lambda t: t if level.whole(t) is None else level.whole(t).select(0, place))

    made = [
        operator(
            *example(list(args), place), **{name: example(value, place) for name, value in kwargs.items()}
        )
        for place in range(level.size)
    ]
    return _stacked(level, operator, made)


def _stacked(level: Batching, operator: Any, made: list[Any]) -> Any:
    """Results of the examples as those of one of them; numbers must be the same for all."""
    first = made[0]
    if isinstance(first, Tensor):
        if any(each.shape != first.shape for each in made):
            raise RuntimeError(
                f"vmap: {operator.name} gives examples results of several shapes, {tuple(first.shape)} and others"
            )
        return level.batch(tensor.stack(made))
    if isinstance(first, (list, tuple)):
        if any(len(each) != len(first) for each in made):
            raise RuntimeError(f"vmap: {operator.name} gives examples lists of several lengths")
        return type(first)(_stacked(level, operator, list(column)) for column in zip(*made, strict=True))
    if any(each != first for each in made):
        raise RuntimeError(
            f"vmap: {operator.name} gives examples several numbers, {first} and others; a number is the same for all"
        )
    return first
