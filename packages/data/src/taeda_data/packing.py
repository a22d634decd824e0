"""Long lists that worker processes read without writing to the memory that they share, packed into columns.

Note [Lists that workers read]. A forked worker shares its parent's memory until one of them writes. Python counts the
references to an object in the object, so that reading a string of a list of millions writes to the string's page, of
which the worker gets a copy: in the course of an epoch it copies everything that it reads. The cyclic garbage collector
writes to all containers, too.

So before workers are forked, the contents of each long list that the data set holds are written to a few arrays, in
which nothing is counted. In the worker the list, the very object that it is, gets the class `PackedList`: indices are
then answered from the arrays, everything else as before from the items, which are all still there. A list that the
worker changes is an ordinary one from there on. What may be told apart is ``type(names) is list``, whether two reads
give the same or an equal object, and a list that is changed behind its methods, by a C library such as heapq. All this
rests on objects having their type where CPython puts it, which is looked at before. `TAEDA_PACK_LISTS=0` leaves it out.

Only items that cannot change are packed: str, bytes, int, float, and tuples of them of one length. `SharedList` packs
whatever can be pickled, where the program asks for it.
"""

from __future__ import annotations

import ctypes
import gc
import operator
import os
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from taeda_data.parts import DEPTH, parts_of
from taeda_registry.slots import multiprocessing as parallel
from taeda_registry.slots import tensor

LEAST = 50_000  # items from which a list is packed: less than that is a few MiB to copy
_SAMPLE = 500  # items that are looked at to see whether it is worth it


class Numbers:
    """A column of ints or floats, as an array of 64 bits each."""

    def __init__(self, values: np.ndarray) -> None:
        self.arrays = [values]
        self.item = memoryview(values).__getitem__
        self._values = values

    def items(self, chosen: slice) -> list[Any]:
        """The items of a slice."""
        return self._values[chosen].tolist()


class Parts:
    """A column of items of different lengths: their bytes one after the other, and where each begins."""

    def __init__(self, whole: np.ndarray, begins: np.ndarray, decode: Callable[[memoryview], Any]) -> None:
        self.arrays = [whole, begins]
        self._whole, self._begins = memoryview(whole), memoryview(begins)
        self._count, self._decode = len(begins) - 1, decode

    def item(self, index: int) -> Any:
        """One item; IndexError where there is none."""
        if index < 0:
            index += self._count
        if not 0 <= index < self._count:
            raise IndexError("list index out of range")
        return self._decode(self._whole[self._begins[index] : self._begins[index + 1]])

    def items(self, chosen: slice) -> list[Any]:
        """The items of a slice."""
        return [self.item(index) for index in range(*chosen.indices(self._count))]


class Rows:
    """Tuples of one length, by columns."""

    def __init__(self, columns: Sequence[Any]) -> None:
        self.arrays = [array for column in columns for array in column.arrays]
        self._columns = columns
        self._readers = [column.item for column in columns]

    def item(self, index: int) -> Any:
        """One tuple; IndexError where there is none."""
        return tuple([read(index) for read in self._readers])

    def items(self, chosen: slice) -> list[Any]:
        """The tuples of a slice."""
        return list(zip(*(column.items(chosen) for column in self._columns), strict=True))


Column = Numbers | Parts | Rows


def _text(part: memoryview) -> str:
    return str(part, "utf-8", "surrogatepass")


def _parts(pieces: Sequence[bytes], decode: Callable[[memoryview], Any]) -> Parts:
    return _joined(b"".join(pieces), map(len, pieces), len(pieces), decode)


def _joined(whole: bytes, lengths: Iterable[int], count: int, decode: Callable[[memoryview], Any]) -> Parts:
    begins = np.zeros(count + 1, np.int64)
    np.cumsum(np.fromiter(lengths, np.int64, count), out=begins[1:])
    return Parts(np.frombuffer(whole, np.uint8), begins, decode)


def _texts(items: Sequence[str]) -> Parts:
    whole = "".join(items)
    if whole.isascii():
        return _joined(whole.encode(), map(len, items), len(items), _text)
    return _parts([item.encode("utf-8", "surrogatepass") for item in items], _text)


def column_of(items: Sequence[Any], widest: int = 16) -> Column | None:
    """Immutable items as a column; None where there is none for their types.

    Args:
        items: all of one type: str, bytes, int (of 64 bits), float, or tuples of one length of such.
        widest: how long such tuples may be.
    """
    kinds = set(map(type, items))
    if len(kinds) != 1:
        return None
    (kind,) = kinds
    if kind is str:
        return _texts(items)
    if kind is bytes:
        return _parts(items, bytes)
    if kind is int:
        try:
            return Numbers(np.fromiter(items, np.int64, len(items)))
        except OverflowError:
            return None
    if kind is float:
        return Numbers(np.fromiter(items, np.float64, len(items)))
    if kind is tuple and widest:
        lengths = set(map(len, items))
        if len(lengths) != 1 or not 0 < min(lengths) <= widest:
            return None
        columns = []
        for number in range(min(lengths)):
            column = column_of(list(map(operator.itemgetter(number), items)), 0)
            if column is None:
                return None
            columns.append(column)
        return Rows(columns)
    return None


def _is_worth_it(items: list[Any]) -> bool:
    """Whether reading touches many objects: not labels, for instance, which are few objects that occur often."""
    step = max(1, len(items) // _SAMPLE)
    some = items[::step]
    if type(some[0]) not in (str, bytes, int, float, tuple):
        return False
    return 2 * len(set(map(id, some))) > len(some)


class PackedList(list[Any]):
    """A list in a worker that answers indices from a column (see Note [Lists that workers read])."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> Any:
        column = _columns.get(id(self))
        if column is None:
            return list.__getitem__(self, index)
        if isinstance(index, slice):
            return column.items(index)
        try:
            return column.item(operator.index(index))
        except (IndexError, TypeError):
            return list.__getitem__(self, index)  # says what a list says

    def __reduce_ex__(self, protocol: Any) -> Any:
        return list, (), None, iter(self)


def _changing(name: str) -> Callable[..., Any]:
    """A method that changes the list, which is an ordinary one from there on."""
    plain = getattr(list, name)

    def method(self: PackedList, *args: Any, **kwargs: Any) -> Any:
        _columns.pop(id(self), None)
        return plain(self, *args, **kwargs)

    method.__name__ = name
    return method


for _name in (
    *(
        "__setitem__",
        "__delitem__",
        "__iadd__",
        "__imul__",
        "append",
        "clear",
        "extend",
        "insert",
        "pop",
        "remove",
    ),
    *("reverse", "sort"),
):
    setattr(PackedList, _name, _changing(_name))

#: What the lists of this worker are answered from, by the address of the list.
_columns: dict[int, Column] = {}
_adopted: list[Any] = []  # keeps these lists, so that their addresses stay theirs

_TYPE = object.__basicsize__ - ctypes.sizeof(ctypes.c_void_p)  # where an object has its type


def _type_of(items: list[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p.from_address(id(items) + _TYPE)


def _can_adopt() -> bool:
    """Whether an object's class is where CPython puts it, and the two classes have one layout."""
    return (
        sys.implementation.name == "cpython"
        and PackedList.__basicsize__ == list.__basicsize__
        and PackedList.__itemsize__ == list.__itemsize__
        and _type_of([]).value == id(list)
    )


def _adopt(items: list[Any], column: Column) -> None:
    """Answer a list's indices from a column, from here on and in this process."""
    _columns[id(items)] = column
    _adopted.append(items)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(PackedList))  # an object holds its class, until it goes
    _type_of(items).value = id(PackedList)


def _lists(value: Any, depth: int, seen: set[int]) -> Iterator[list[Any]]:
    """Long plain lists that are reached from an object by attributes and items, each once."""
    if id(value) in seen or depth < 0:
        return
    seen.add(id(value))
    if isinstance(value, (str, bytes, int, float, np.ndarray, tensor.Tensor, type)):
        return
    if type(value) is list and len(value) >= LEAST:
        yield value
        return
    for item in parts_of(value):
        yield from _lists(item, depth - 1, seen)


def pack(dataset: Any) -> list[tuple[list[Any], Column]]:
    """Columns for the long lists of a data set, to be made before workers are forked and kept while they live."""
    if os.environ.get("TAEDA_PACK_LISTS") == "0" or not _can_adopt():
        return []
    packed = []
    for items in _lists(dataset, DEPTH, set()):
        try:
            column = column_of(items) if _is_worth_it(items) else None
        except MemoryError:
            break  # it goes without
        if column is not None:
            packed.append((items, column))
    return packed


def settle(packed: list[tuple[list[Any], Column]]) -> None:
    """In a forked worker: read lists from their columns, and leave all that was inherited to the parent's collector."""
    gc.freeze()
    for items, column in packed:
        _adopt(items, column)


class SharedList(Sequence[Any]):
    """A list that does not change, packed into a few arrays: worker processes read it without a copy of their own.

    Reading an item makes it anew: two reads give equal objects, not the same. It is sent to spawned processes as shared
    memory, where taeda-multiprocessing is there. Forked workers of a `DataLoader` read long lists of strings, numbers,
    and tuples of them in this way by themselves; this is for items of other types, and for processes of your own.

    Args:
        items: whatever can be pickled. Strings, bytes, 64-bit ints, floats and tuples of them take no more than their
            contents; other items are kept as pickles.

    Raises:
        pickle.PicklingError, TypeError, AttributeError: An item cannot be pickled.

    Example:
        >>> names = taeda.utils.data.SharedList(f"image{i}.png" for i in range(1000))
        >>> names[3], len(names)
        ('image3.png', 1000)
    """

    def __init__(self, items: Iterable[Any]) -> None:
        items = items if isinstance(items, (list, tuple)) else list(items)
        self._length = len(items)
        self._layout: Any = "pickles"
        column = column_of(items) if items else None
        if column is None:
            column = _parts([pickle.dumps(item, pickle.HIGHEST_PROTOCOL) for item in items], pickle.loads)
        else:
            self._layout = _layout(column, items[0])
        self._tensors: list[Any] = []
        self._column = column

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Any:
        """The item at an index, or a list of those at a slice."""
        if isinstance(index, slice):
            return self._column.items(index)
        try:
            return self._column.item(operator.index(index))
        except IndexError:
            raise IndexError(f"SharedList: index {index} is out of range for {self._length} items") from None

    def __repr__(self) -> str:
        return f"SharedList of {self._length} items"

    def __reduce__(self) -> Any:
        # The tensors travel as handles between processes, as bytes to files.
        if not self._tensors:
            self._tensors = [_shared(array) for array in self._column.arrays]
            self._column = _column(self._layout, [shared.numpy() for shared in self._tensors])
        return _again, (self._length, self._layout, self._tensors)


def _again(length: int, layout: Any, tensors: list[Any]) -> SharedList:
    made = SharedList.__new__(SharedList)
    made._length, made._layout, made._tensors = length, layout, tensors
    made._column = _column(layout, [shared.numpy() for shared in tensors])
    return made


def _layout(column: Column, first: Any) -> Any:
    """What `_column` makes a column by."""
    if isinstance(column, Rows):
        return [_layout(one, item) for one, item in zip(column._columns, first, strict=True)]
    return type(first).__name__


def _column(layout: Any, arrays: list[np.ndarray]) -> Column:
    if isinstance(layout, list):
        rest = list(arrays)
        return Rows(
            [
                _column(one, [rest.pop(0) for _ in range(1 if one in ("int", "float") else 2)])
                for one in layout
            ]
        )
    if layout in ("int", "float"):
        return Numbers(arrays[0])
    decode: Any = {"str": _text, "bytes": bytes, "pickles": pickle.loads}[layout]
    return Parts(arrays[0], arrays[1], decode)


def _shared(array: np.ndarray) -> Any:
    """An array as a tensor, in shared memory where there is such."""
    plain = tensor.from_numpy(array if array.flags.writeable else array.copy())
    if not array.size:
        return plain
    try:
        shared = parallel.reductions.empty_shared(tuple(plain.shape), plain.dtype)
    except (ImportError, AttributeError, OSError):  # no such package, or no such memory
        return plain
    shared.copy_(plain)
    return shared
