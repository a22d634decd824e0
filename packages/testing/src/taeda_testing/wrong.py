"""Wrong calls by kind of operator: each must end in a given exception whose text has given words."""

from __future__ import annotations

from typing import Any

import numpy as np

from taeda_testing.record import ErrorSample

_SHAPE = (RuntimeError, ValueError)


def _zeros(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.zeros(shape, dtype)


def wrong_call(error: Any, words: str, *args: Any, **kwargs: Any) -> ErrorSample:
    """A call that ends in an error (or one of several), whose text has some words, given with blanks between."""
    return ErrorSample(args, kwargs, error, tuple(words.split()))


def broadcast(name: str) -> tuple[ErrorSample, ...]:
    """Two operands whose shapes do not broadcast."""
    return (ErrorSample((_zeros(2, 3), _zeros(4)), {}, _SHAPE, (name, "3", "4")),)


def dimension(name: str, *rest: Any) -> tuple[ErrorSample, ...]:
    """A dimension that the input does not have, too high and too low."""
    return tuple(ErrorSample((_zeros(2, 3), dim, *rest), {}, IndexError, (str(dim),)) for dim in (2, -3))


def inner(name: str, first: tuple[int, ...], second: tuple[int, ...]) -> tuple[ErrorSample, ...]:
    """Two operands of a product whose inner sizes differ, or whose dimensions and dtypes do not go together."""
    numbers = sorted({str(n) for n in (*first[-1:], *second[-2:][:1])})
    return (
        ErrorSample((_zeros(*first), _zeros(*second)), {}, _SHAPE, (name, *numbers)),
        ErrorSample((_zeros(*first), _zeros(*first[:-1], dtype=np.int64)), {}, _SHAPE, ()),
    )


def misfit(name: str, *args: Any, words: tuple[str, ...] = (), error: Any = _SHAPE, **kwargs: Any) -> Any:
    """A call with zeros of the given shapes (other arguments as they are) whose error has the name and the words."""
    given = tuple(_zeros(*a) if _is_shape(a) else a for a in args)
    return (ErrorSample(given, kwargs, error, (name, *words)),)


def _is_shape(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(size, int) for size in value)


WRONG: dict[str, tuple[ErrorSample, ...]] = {
    **{
        name: broadcast(name)
        for name in (
            "add", "sub", "mul", "div", "pow", "remainder", "fmod", "maximum", "minimum", "hypot", "atan2", "eq", "ne",
            "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor",
        )
    },
    **{name: dimension(name) for name in ("sum", "mean", "prod", "amax", "amin", "any", "all", "argmax", "argmin")},
    **{name: dimension(name) for name in ("cumsum", "cumprod", "logsumexp", "softmax", "log_softmax")},
    "mm": inner("mm", (2, 3), (4, 2)),
    "matmul": inner("m", (2, 3), (4, 2)),  # the product inside may speak: mm, mv, bmm
    "bmm": inner("bmm", (5, 2, 3), (5, 4, 2)),
    "cat": (ErrorSample(([_zeros(2, 3), _zeros(2, 4)], 0), {}, _SHAPE, ("3", "4")),),
    "stack": (ErrorSample(([_zeros(2), _zeros(3)], 0), {}, _SHAPE, ("2", "3")),),
    "reshape": (ErrorSample((_zeros(2, 3), (4,)), {}, _SHAPE, ("4",)),),
    "permute": (ErrorSample((_zeros(2, 3), (0, 0)), {}, _SHAPE, ()),),
    "transpose": dimension("transpose", 0),
    "movedim": (
        *dimension("movedim", 0),
        wrong_call(_SHAPE, "movedim source destination", _zeros(2, 3), (0, 1), (0,)),
        wrong_call(_SHAPE, "movedim source", _zeros(2, 3), (0, 0), (0, 1)),
    ),
    "squeeze": dimension("squeeze"),
    "broadcast_to": (wrong_call(_SHAPE, "3 4", _zeros(3), (4,)),),
    "flip": (*dimension("flip"), wrong_call(_SHAPE, "flip dims", _zeros(2, 3), (0, 0))),
    "roll": (
        wrong_call(IndexError, "2", _zeros(2, 3), 1, 2),
        wrong_call(_SHAPE, "roll shifts dims", _zeros(2, 3), (1, 2), 0),
    ),
    "tile": (wrong_call(_SHAPE, "-1", _zeros(3), (-1,)),),
    "tril": (wrong_call(_SHAPE, "tril self 3", _zeros(3)),),
    "triu": (wrong_call(_SHAPE, "triu self 3", _zeros(3)),),
    "diagonal": (
        wrong_call(_SHAPE, "diagonal dim", _zeros(2, 3), 0, 1, 1),
        wrong_call(IndexError, "2", _zeros(2, 3), 0, 0, 2),
    ),
    "diag": (wrong_call(_SHAPE, "diag self 3", _zeros(2, 3, 4)), wrong_call(_SHAPE, "diag self", _zeros())),
    "rot90": (
        wrong_call(_SHAPE, "rot90 dims", _zeros(2, 3), 1, (0,)),
        wrong_call(_SHAPE, "rot90 dims", _zeros(2, 3), 1, (0, 0)),
        wrong_call(IndexError, "2", _zeros(2, 3), 1, (0, 2)),
    ),
    "hstack": (wrong_call(_SHAPE, "tensors 2 3", [_zeros(2, 1), _zeros(3, 1)]), wrong_call(_SHAPE, "tensors", [])),
    "vstack": (wrong_call(_SHAPE, "tensors 2 3", [_zeros(2), _zeros(3)]), wrong_call(_SHAPE, "tensors", [])),
    "sort": dimension("sort"),
    "unsqueeze": (ErrorSample((_zeros(2), 5), {}, IndexError, ("5",)),),
    "gather": (
        ErrorSample((_zeros(3), 0, np.int64([5])), {}, (IndexError, RuntimeError), ("5",)),
        ErrorSample((_zeros(3), 0, _zeros(2)), {}, (IndexError, RuntimeError, TypeError), ("int",)),
    ),
    "index_select": (ErrorSample((_zeros(3), 0, np.int64([7])), {}, (IndexError, RuntimeError), ("7",)),),
    "embedding": (ErrorSample((_zeros(3, 2), np.int64([3])), {}, (IndexError, RuntimeError), ("3",)),),
    "conv1d": (ErrorSample((_zeros(1, 3, 5), _zeros(2, 4, 3)), {}, _SHAPE, ("conv", "3", "4")),),
    "conv2d": (ErrorSample((_zeros(1, 3, 5, 5), _zeros(2, 4, 3, 3)), {}, _SHAPE, ("conv", "3", "4")),),
    "linear": (ErrorSample((_zeros(2, 3), _zeros(5, 4), None), {}, _SHAPE, ("3", "4")),),
    "layer_norm": (ErrorSample((_zeros(2, 3), (4,)), {}, _SHAPE, ("4",)),),
    "topk": (ErrorSample((_zeros(3), 5), {}, (RuntimeError, IndexError, ValueError), ("5",)),),
    "nll_loss": (ErrorSample((_zeros(4, 3), np.zeros(2, np.int64)), {}, _SHAPE, ()),),
    "cross_entropy_loss": (ErrorSample((_zeros(4, 3), np.zeros(2, np.int64)), {}, _SHAPE, ()),),
    "masked_fill": (ErrorSample((_zeros(2), np.zeros(3, bool), 1.0), {}, _SHAPE, ("2", "3")),),
}  # fmt: skip
