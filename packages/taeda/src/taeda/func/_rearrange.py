"""Dimensions named in a pattern, as einops has them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

_ELLIPSIS = "..."


def _side(text: str, pattern: str) -> list[list[str]]:
    """One side of a pattern: for each dimension the names that it consists of."""
    groups: list[list[str]] = []
    inside = False
    for word in text.replace("(", " ( ").replace(")", " ) ").replace(_ELLIPSIS, f" {_ELLIPSIS} ").split():
        if word == "(" and not inside:
            inside = True
            groups.append([])
        elif word == ")" and inside:
            inside = False
        elif word in "()" or not (word.isidentifier() or word in ("1", _ELLIPSIS)):
            raise ValueError(f"rearrange: pattern {pattern!r} has {word!r}, expected names of dimensions")
        elif inside:
            groups[-1].append(word)
        else:
            groups.append([word])
    if inside:
        raise ValueError(f"rearrange: pattern {pattern!r} has a parenthesis that is not closed")
    return [[name for name in group if name != "1"] for group in groups]


def _sizes(
    groups: list[list[str]], shape: Sequence[int], known: dict[str, int], pattern: str
) -> dict[str, int]:
    sizes = dict(known)
    for group, size in zip(groups, shape, strict=True):
        unknown = [name for name in group if name not in sizes]
        rest = math.prod(sizes[name] for name in group if name in sizes)
        if len(unknown) > 1 or (unknown and (not rest or size % rest)) or (not unknown and rest != size):
            raise ValueError(
                f"rearrange: pattern {pattern!r} does not fit shape {tuple(shape)}: {group or 1} has {size}"
            )
        if unknown:
            sizes[unknown[0]] = size // rest
    return sizes


def rearrange(tensor: Any, pattern: str, **axes_lengths: int) -> Any:
    """A tensor with its dimensions in another order, taken apart and put together, as a pattern says.

    Args:
        tensor: A tensor, or a list of them, which are stacked first.
        pattern: Both orders with ``->`` between them: names, ``(a b)`` for a dimension that consists of two, ``1`` and
            ``...``.
        axes_lengths: Sizes that the shape does not tell.

    Raises:
        ValueError: A pattern that cannot be read or does not fit the shape.

    Source: Rogozhnikov, "Einops: Clear and Reliable Tensor Manipulations with Einstein-like Notation", 2022.

    Example:
        >>> taeda.func.rearrange(taeda.ones(2, 6), "a (b c) -> c (a b)", b=3).shape
        Size([2, 6])
    """
    if isinstance(tensor, (list, tuple)):
        from taeda_registry.slots import tensor as library

        tensor = library.stack(list(tensor))
    left, arrow, right = pattern.partition("->")
    if not arrow:
        raise ValueError(f"rearrange: pattern {pattern!r} has no '->'")
    sides = [_side(left, pattern), _side(right, pattern)]
    more = tensor.dim() - len(sides[0]) + 1
    if [_ELLIPSIS] in sides[0]:
        names = [f"{_ELLIPSIS}{i}" for i in range(more)]
        at = sides[0].index([_ELLIPSIS])
        sides[0][at : at + 1] = [[name] for name in names]
        if [_ELLIPSIS] in sides[1]:
            at = sides[1].index([_ELLIPSIS])
            sides[1][at : at + 1] = [[name] for name in names]
        else:
            sides[1] = [
                [n for name in group for n in (names if name == _ELLIPSIS else [name])] for group in sides[1]
            ]
    flat = [[name for group in side for name in group] for side in sides]
    if (
        sorted(flat[0]) != sorted(flat[1])
        or len(set(flat[0])) < len(flat[0])
        or len(sides[0]) != tensor.dim()
    ):
        raise ValueError(
            f"rearrange: pattern {pattern!r} must name the {tensor.dim()} dimensions once on either side"
        )
    sizes = _sizes(sides[0], tensor.shape, axes_lengths, pattern)
    apart = tensor.reshape([sizes[name] for name in flat[0]])
    moved = apart.permute([flat[0].index(name) for name in flat[1]])
    return moved.reshape([math.prod(sizes[name] for name in group) for group in sides[1]])
