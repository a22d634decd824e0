"""Wrong calls by kind of operator: each must end in a given exception whose text has given words."""

from __future__ import annotations

from typing import Any

import numpy as np

from taeda_testing.record import ErrorSample

#: What arguments that do not fit together end in.
REFUSED = (RuntimeError, ValueError)


def zeros(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """An array of zeros, for wrong calls whose values do not matter."""
    return np.zeros(shape, dtype)


def wrong_call(error: Any, words: str, *args: Any, **kwargs: Any) -> ErrorSample:
    """A call that ends in an error (or one of several), whose text has some words, given with blanks between."""
    return ErrorSample(args, kwargs, error, tuple(words.split()))


def broadcast(name: str) -> tuple[ErrorSample, ...]:
    """Two operands whose shapes do not broadcast."""
    return (ErrorSample((zeros(2, 3), zeros(4)), {}, REFUSED, (name, "3", "4")),)


def dimension(name: str, *rest: Any) -> tuple[ErrorSample, ...]:
    """A dimension that the input does not have, too high and too low."""
    return tuple(ErrorSample((zeros(2, 3), dim, *rest), {}, IndexError, (str(dim),)) for dim in (2, -3))


def inner(name: str, first: tuple[int, ...], second: tuple[int, ...]) -> tuple[ErrorSample, ...]:
    """Two operands of a product whose inner sizes differ, or whose dimensions and dtypes do not go together."""
    numbers = sorted({str(n) for n in (*first[-1:], *second[-2:][:1])})
    return (
        ErrorSample((zeros(*first), zeros(*second)), {}, REFUSED, (name, *numbers)),
        ErrorSample((zeros(*first), zeros(*first[:-1], dtype=np.int64)), {}, REFUSED, ()),
    )


def misfit(name: str, *args: Any, words: tuple[str, ...] = (), error: Any = REFUSED, **kwargs: Any) -> Any:
    """A call with zeros of the given shapes (other arguments as they are) whose error has the name and the words."""
    given = tuple(zeros(*a) if _is_shape(a) else a for a in args)
    return (ErrorSample(given, kwargs, error, (name, *words)),)


def _is_shape(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(size, int) for size in value)
