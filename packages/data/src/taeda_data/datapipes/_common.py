"""What pipes of both kinds share: functions of columns, checks of sizes, copies."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

from taeda_data.randomness import draw_seed
from taeda_data.reading import get_worker_info


def sized(pipe: Any) -> int:
    """Its length; TypeError where it has none."""
    try:
        return len(pipe)
    except TypeError:
        raise TypeError(f"{type(pipe).__name__} instance doesn't have valid length") from None


def named_after_kind(space: dict[str, Any], names: list[str]) -> None:
    """Let classes have PyTorch's full names too (``MapperIterDataPipe``), as in its messages and pickles."""
    for name in names:
        cls = space[name]
        kind = next(base.__name__ for base in cls.__mro__ if base.__name__ in ("IterDataPipe", "MapDataPipe"))
        cls.__name__ = cls.__qualname__ = name + kind
        space[cls.__name__] = cls


def order_seed() -> int:
    """What an order is drawn by: in the workers of a loader the same for all, so that each can take its share of it."""
    worker = get_worker_info()
    return draw_seed(None) if worker is None else worker.seed - worker.id


def positive(name: str, value: int) -> int:
    """The number; ValueError unless it is above zero."""
    if value <= 0:
        raise ValueError(f"{name} is required to be larger than 0, found {value}")
    return value


def own_copy(data: Any, deepcopy: bool) -> Any:
    """A copy that other readers do not share, where there can be one."""
    if not deepcopy:
        return data
    try:
        return copy.deepcopy(data)
    except TypeError:
        warnings.warn(
            "The input cannot be deepcopied, please be aware of in-place modification would affect source data.",
            stacklevel=3,
        )
        return data


def of_columns(fn: Callable[..., Any], input_col: Any, output_col: Any) -> Callable[[Any], Any]:
    """``fn`` of the chosen columns of a row, a sequence or a dict; the result goes into `output_col` of a copy."""
    if input_col is None:
        if output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        return fn
    if isinstance(output_col, (list, tuple)):
        if len(output_col) != 1:
            raise ValueError("`output_col` must be a single-element list or tuple")
        output_col = output_col[0]

    def apply(data: Any) -> Any:
        several = isinstance(input_col, (list, tuple))
        result = fn(*(data[col] for col in input_col)) if several else fn(data[input_col])
        row = list(data) if isinstance(data, tuple) else copy.copy(data)
        if output_col is None:
            place = input_col[0] if several else input_col
            row[place] = result
            for extra in sorted(input_col[1:], reverse=True) if several else ():
                del row[extra]
        elif output_col == -1:
            row.append(result)
        else:
            row[output_col] = result
        return tuple(row) if isinstance(data, tuple) else row

    return apply
