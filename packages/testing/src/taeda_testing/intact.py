"""What every call leaves alone: arguments that it must not write to, and the device that it is made on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from taeda_registry.slots import tensor


def written_argument(
    written: Sequence[int],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    before: tuple[Sequence[Any], Mapping[str, Any]],
    read: Callable[[Any], np.ndarray],
) -> tuple[str, np.ndarray, np.ndarray] | None:
    """The first argument that differs from what it was, unless the operator writes to it.

    Args:
        written: positions of arguments that the operator writes to.
        args, kwargs: of the call, as they are now.
        before: both as arrays, as they were.
        read: gives a tensor's values.

    Returns:
        Name, former and present values; None when all are as before.
    """
    places = [(f"argument {i}", i, args[i], value) for i, value in enumerate(before[0])]
    places += [(f"argument '{key}'", key, kwargs[key], value) for key, value in before[1].items()]
    for name, place, now, then in places:
        if place in written:
            continue
        for one, array in _pairs(now, then):
            if not _same(found := read(one), array):
                return name, array, found
    return None


def _pairs(now: Any, then: Any) -> Iterator[tuple[Any, np.ndarray]]:
    """Tensors, also inside lists, with the arrays that they were made of."""
    if isinstance(then, np.ndarray):
        yield now, then
    elif isinstance(then, (list, tuple)):
        for one, former in zip(now, then, strict=True):
            yield from _pairs(one, former)


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")


def strayed(result: Any, device: str) -> str | None:
    """The device of the first result that does not lie on the device of the call."""
    if isinstance(result, (list, tuple)):
        return next((found for item in result if (found := strayed(item, device))), None)
    if not isinstance(result, tensor.Tensor):
        return None
    wanted, found = (_parts(str(d)) for d in (tensor.empty(0, device=device).device, result.device))
    return None if found == wanted else str(result.device)


def _parts(device: str) -> tuple[str, str]:
    name, _, index = device.partition(":")
    return name, index or "0"
