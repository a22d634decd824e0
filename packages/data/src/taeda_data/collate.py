"""Joining samples into batches, through nested containers."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from taeda_registry.slots import tensor

_LARGE = 16 << 10  # bytes from which a batch is joined where it is to lie; smaller ones are quicker copied

#: Makes the tensor that a batch of a shape and dtype is written to; None joins in new memory. Set in worker processes.
target: Callable[[tuple[int, ...], Any], Any] | None = None


def _place_for(batch: Sequence[Any], dtype: Any) -> Any:
    """Where a batch of equal arrays or tensors is to be written; None in new memory."""
    first = batch[0]
    alike = all(item.shape == first.shape and item.dtype == first.dtype for item in batch)
    if target is None or not alike or first.nbytes * len(batch) < _LARGE:
        return None
    try:
        return target((len(batch), *first.shape), dtype)
    except OSError:
        return None  # what sends the batch says that shared memory is short


def collate_tensor_fn(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Any:
    """Tensors of one shape as one tensor of a further first dimension."""
    first = batch[0]
    plain = (
        first.device.type == "cpu"
        and getattr(first, "layout", None) in (None, getattr(tensor, "strided", None))
        and not any(item.requires_grad for item in batch)
    )
    out = _place_for(batch, first.dtype) if target is not None and plain else None
    return tensor.stack(list(batch), 0) if out is None else tensor.stack(list(batch), 0, out=out)


def collate_numpy_array_fn(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Any:
    """Arrays of one shape as one tensor of a further first dimension."""
    first = batch[0]
    if target is not None and first.dtype.isnative and first.dtype.kind in "biufc":
        out = _place_for(batch, _from_array(first).dtype)
        if out is not None:
            np.stack(batch, out=out.numpy())
            return out
    return _from_array(np.stack(batch))


def collate_numpy_scalar_fn(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Any:
    """Numbers of NumPy as a tensor of their dtype."""
    return _from_array(np.asarray(batch))


def collate_float_fn(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Any:
    """Floats as a tensor of float64."""
    return tensor.tensor(list(batch), dtype=tensor.float64)


def collate_int_fn(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Any:
    """Ints as a tensor of int64, truth values as one of bool."""
    return tensor.tensor(list(batch))


def collate_str_fn(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Any:
    """Texts as they are, in a list or, of items of sequences, a tuple."""
    return batch if isinstance(batch, tuple) else list(batch)


def _is_named_tuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _is_dataclass(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _fields(value: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(value) if field.init]


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
    if _is_dataclass(data):
        return type(data)(**{name: default_convert(getattr(data, name)) for name in _fields(data)})
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


Table = dict[type | tuple[type, ...], Callable[..., Any]]


@cache
def _built_in() -> Table:
    return {
        tensor.Tensor: collate_tensor_fn,
        np.ndarray: collate_numpy_array_fn,
        (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
        float: collate_float_fn,
        int: collate_int_fn,
        str: collate_str_fn,
        bytes: collate_str_fn,
    }


def __getattr__(name: str) -> Any:
    # How samples are joined, which programs add to. It names the provider's class of tensors, and so it is not made
    # before somebody asks.
    if name == "default_collate_fn_map":
        return globals().setdefault(name, dict(_built_in()))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _table() -> Table | None:
    """`default_collate_fn_map` where somebody has asked for it."""
    return globals().get("default_collate_fn_map")


def joins_as_always() -> bool:
    """Whether `default_collate` runs no function of the program's."""
    table = _table()
    return table is None or table == _built_in()


def default_collate(batch: Sequence[Any]) -> Any:
    """Joins samples along a new first dimension.

    Tensors and arrays are stacked, numbers become a tensor (float64 for float, int64 for int), strings stay a
    list, or a tuple where they are items of sequences; mappings, named tuples, dataclasses and sequences are joined
    item by item. Types that are entered in `default_collate_fn_map` are joined as that says.

    Raises:
        TypeError: samples of a type that cannot be joined. ValueError: sequences of different lengths.
        KeyError: a mapping without a key of the first.

    Example:
        >>> default_collate([(1, "a"), (2, "b")])
        [tensor([1, 2]), ('a', 'b')]
    """
    return collate(batch, collate_fn_map=_table())


def _registered(first: Any, functions: Mapping[Any, Callable[..., Any]]) -> Callable[..., Any] | None:
    """The function for a sample's own class, else for the first entered class that it is an instance of."""
    found = functions.get(type(first))
    if found is not None:
        return found
    return next((function for kind, function in functions.items() if isinstance(first, kind)), None)


def _joined(
    columns: Iterable[Sequence[Any]], functions: Mapping[Any, Callable[..., Any]] | None
) -> list[Any]:
    return [collate(column, collate_fn_map=functions) for column in columns]


def collate(batch: Sequence[Any], *, collate_fn_map: Mapping[Any, Callable[..., Any]] | None = None) -> Any:
    """`default_collate` with a table of further types of its own.

    Args:
        batch: samples.
        collate_fn_map: type (or tuple of types) to ``function(batch, *, collate_fn_map)``.

    Example:
        >>> collate(["a", "b"], collate_fn_map={str: lambda batch, *, collate_fn_map: "".join(batch)})
        'ab'
    """
    first = batch[0]
    if collate_fn_map and (function := _registered(first, collate_fn_map)) is not None:
        return function(batch, collate_fn_map=collate_fn_map)

    if isinstance(first, tensor.Tensor):
        return collate_tensor_fn(batch)
    if isinstance(first, np.ndarray):
        return collate_numpy_array_fn(batch)
    if isinstance(first, np.generic) and not isinstance(first, (str, bytes)):
        return collate_numpy_scalar_fn(batch)
    if isinstance(first, float):
        return collate_float_fn(batch)
    if isinstance(first, int):
        return collate_int_fn(batch)
    if isinstance(first, (str, bytes)):
        return collate_str_fn(batch)
    if isinstance(first, Mapping):
        _expect_keys(batch, first)
        entries = _joined(([item[key] for item in batch] for key in first), collate_fn_map)
        return mapping_like(first, dict(zip(first, entries, strict=True)))
    if _is_named_tuple(first):
        return type(first)(*_joined(zip(*batch, strict=True), collate_fn_map))
    if _is_dataclass(first):
        names = _fields(first)
        entries = _joined(([getattr(item, name) for item in batch] for name in names), collate_fn_map)
        return type(first)(**dict(zip(names, entries, strict=True)))
    if isinstance(first, Sequence):
        lengths = set(map(len, batch))
        if len(lengths) != 1:
            raise RuntimeError(
                "default_collate: each element in list of batch should be of equal size: must have one length, "
                f"found {sorted(lengths)}"
            )
        entries = _joined(zip(*batch, strict=True), collate_fn_map)
        if isinstance(first, (list, tuple)):
            return entries
        try:
            return type(first)(entries)  # type: ignore[call-arg]
        except TypeError:  # a class that is made of something else, as range is
            return entries
    raise TypeError(
        "default_collate: expected tensors, arrays, numbers, strings, mappings or sequences, "
        f"found {type(first).__name__}"
    )
