"""Joining samples into batches, through nested containers."""

from __future__ import annotations

import copy
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

import numpy as np

from taeda_registry.slots import tensor


def _is_named_tuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _from_array(array: np.ndarray) -> Any:
    if array.dtype.kind in "SUO":
        raise TypeError(f"default_collate: NumPy arrays of dtype {array.dtype} cannot become tensors")
    return tensor.as_tensor(array)


def mapping_like(model: Mapping[Any, Any], entries: dict[Any, Any]) -> Any:
    """A mapping of the model's type with other entries under the same keys; a dict where none can be made."""
    if isinstance(model, MutableMapping):
        # Keeps what a subclass holds beside its entries (a default factory, for instance).
        same = copy.copy(model)
        same.update(entries)
        return same
    try:
        return type(model)(entries)  # type: ignore[call-arg]
    except TypeError:
        return entries


def default_convert(data: Any) -> Any:
    """NumPy arrays, numbers of NumPy and containers of them as tensors; everything else unchanged."""
    if isinstance(data, (np.ndarray, np.generic)):
        return data if data.dtype.kind in "SUO" else tensor.as_tensor(np.asarray(data))
    if isinstance(data, Mapping):
        return mapping_like(data, {key: default_convert(value) for key, value in data.items()})
    if _is_named_tuple(data):
        return type(data)(*(default_convert(value) for value in data))
    if isinstance(data, (list, tuple)):
        return [default_convert(value) for value in data]
    return data


def _expect_keys(batch: Sequence[Any], first: Mapping[Any, Any]) -> None:
    for i, item in enumerate(batch):
        missing = [key for key in first if key not in item]
        if missing:
            raise KeyError(
                f"default_collate: sample {i} of the batch lacks the keys {missing} of the first, found {list(item)}"
            )


def default_collate(batch: Sequence[Any]) -> Any:
    """Joins samples along a new first dimension.

    Tensors and arrays are stacked, numbers become a tensor (float64 for float, int64 for int), strings stay a list;
    mappings, named tuples and sequences are joined item by item.

    Raises:
        TypeError: samples of a type that cannot be joined. ValueError: sequences of different lengths.
        KeyError: a mapping without a key of the first.

    Example:
        >>> default_collate([(1, "a"), (2, "b")])
        [tensor([1, 2]), ['a', 'b']]
    """
    first = batch[0]
    if isinstance(first, tensor.Tensor):
        return tensor.stack(list(batch), 0)
    if isinstance(first, np.ndarray):
        return _from_array(np.stack(batch))
    if isinstance(first, np.generic):
        return _from_array(np.asarray(batch))
    if isinstance(first, bool):
        return tensor.tensor(list(batch))
    if isinstance(first, float):
        return tensor.tensor(list(batch), dtype=tensor.float64)
    if isinstance(first, int):
        return tensor.tensor(list(batch))
    if isinstance(first, (str, bytes)):
        return list(batch)
    if isinstance(first, Mapping):
        _expect_keys(batch, first)
        return mapping_like(first, {key: default_collate([item[key] for item in batch]) for key in first})
    if _is_named_tuple(first):
        return type(first)(*(default_collate(column) for column in zip(*batch, strict=True)))
    if isinstance(first, Sequence):
        lengths = {len(item) for item in batch}
        if len(lengths) != 1:
            raise ValueError(
                f"default_collate: sequences in a batch must have one length, found {sorted(lengths)}"
            )
        joined = [default_collate(column) for column in zip(*batch, strict=True)]
        return joined if isinstance(first, (list, tuple)) else type(first)(joined)  # type: ignore[call-arg]
    raise TypeError(
        "default_collate: expected tensors, arrays, numbers, strings, mappings or sequences, "
        f"found {type(first).__name__}"
    )
