"""Tables of numbers: CSV files, and NumPy's own files."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from taeda_data.dataset import Dataset
from taeda_registry.slots import tensor


class CSVDataset(Dataset[Any]):
    """Rows of a text table of numbers.

    Args:
        path: the file, UTF-8; fields may be quoted.
        target: column of what is to be predicted, by name or number; None for none.
        columns: the columns of a sample, by name or number, in that order; by default all but the target.
        header: whether the first line names the columns.
        delimiter: what separates fields.
        dtype: of samples.
        target_dtype: of targets.

    A sample is a tensor of its columns, or the pair of it and a 0-d target.

    Raises:
        ValueError: a field is no number, a row has another length, a column does not exist; with the line.

    Example:
        >>> features, price = CSVDataset("houses.csv", target="price")[0]  # doctest: +SKIP
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        target: str | int | None = None,
        columns: Sequence[str | int] | None = None,
        header: bool = True,
        delimiter: str = ",",
        dtype: Any = None,
        target_dtype: Any = None,
    ) -> None:
        self.names, rows = _rows(path, header, delimiter)
        places = {name: place for place, name in enumerate(self.names)}

        def place(column: str | int) -> int:
            found = places.get(column) if isinstance(column, str) else column
            if found is None or not -len(self.names) <= found < len(self.names):
                raise ValueError(f"CSVDataset: there is no column {column!r}, found {', '.join(self.names)}")
            return found % len(self.names)

        answer = None if target is None else place(target)
        chosen = [place(c) for c in columns] if columns is not None else [
            i for i in range(len(self.names)) if i != answer
        ]  # fmt: skip
        self.data = tensor.from_numpy(rows[:, chosen]).to(dtype or tensor.float32)
        self.targets = None if answer is None else tensor.from_numpy(rows[:, answer].copy()).to(
            target_dtype or tensor.float32
        )  # fmt: skip

    def __len__(self) -> int:
        return self.data.shape[0]

    def __getitem__(self, index: int) -> Any:
        return self.data[index] if self.targets is None else (self.data[index], self.targets[index])


def _rows(path: str | os.PathLike[str], header: bool, delimiter: str) -> tuple[list[str], np.ndarray]:
    """Names of the columns and their numbers in float64, (rows, columns)."""
    names: list[str] | None = None
    rows: list[list[float]] = []
    with open(path, newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file, delimiter=delimiter)
        for fields in _fields(reader, path):
            if not fields:
                continue
            if names is None:
                names = fields if header else [str(i) for i in range(len(fields))]
                if header:
                    continue
            if len(fields) != len(names):
                raise ValueError(
                    f"CSVDataset: line {reader.line_num} of {str(path)!r} has {len(fields)} fields, "
                    f"expected {len(names)}"
                )
            rows.append(_numbers(fields, names, reader.line_num, path))
    if names is None:
        raise ValueError(f"CSVDataset: {str(path)!r} is empty")
    return names, np.array(rows, np.float64).reshape(-1, len(names))


def _fields(reader: Any, path: str | os.PathLike[str]) -> Iterator[list[str]]:
    try:
        yield from reader
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(
            f"CSVDataset: line {reader.line_num + 1} of {str(path)!r} is no text: {error}"
        ) from error


def _numbers(fields: list[str], names: list[str], line: int, path: str | os.PathLike[str]) -> list[float]:
    try:
        return [float(field) if field.strip() else float("nan") for field in fields]
    except ValueError:
        wrong = next(i for i, field in enumerate(fields) if not _is_number(field))
        raise ValueError(
            f"CSVDataset: line {line} of {str(path)!r} has {fields[wrong]!r} in column {names[wrong]!r}, "
            "expected a number"
        ) from None


def _is_number(field: str) -> bool:
    try:
        float(field or "nan")
    except ValueError:
        return False
    return True


class ArrayDataset(Dataset[Any]):
    """Arrays of NumPy's files, mapped into memory and read as samples are asked for.

    Args:
        *paths: ``.npy`` files, whose first dimensions are equal; or one ``.npz``.
        keys: the arrays of an ``.npz`` and their order; by default all, in the file's order.

    A sample is the tensor of its row, or the tuple of the rows of all arrays. Arrays of ``.npy`` files are mapped:
    several processes share their pages, and a file may be larger than memory. Those of an ``.npz`` are read at once.

    Raises:
        ValueError: no file, arrays of several lengths or without dimensions, pickled objects.
    """

    def __init__(self, *paths: str | os.PathLike[str], keys: Sequence[str] | None = None) -> None:
        if not paths:
            raise ValueError("ArrayDataset: expected at least one file, found none")
        archived = any(Path(path).suffix == ".npz" for path in paths)
        if archived and len(paths) > 1:
            raise ValueError(
                "ArrayDataset: expected .npy files or one .npz, found several with an .npz among them"
            )
        self.arrays = self._archive(paths[0], keys) if archived else [_mapped(path) for path in paths]
        shapes = [array.shape for array in self.arrays]
        if any(not shape for shape in shapes) or len({shape[0] for shape in shapes}) != 1:
            raise ValueError(f"ArrayDataset: arrays must share their first dimension, found shapes {shapes}")

    @staticmethod
    def _archive(path: str | os.PathLike[str], keys: Sequence[str] | None) -> list[np.ndarray]:
        # Opened here: NumPy leaves a damaged file open.
        with _naming(path, "read"), open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            held = list(archive.files)
            missing = [key for key in keys or () if key not in held]
            arrays = [] if missing else [archive[key] for key in keys or held]
        if missing or not held:
            raise ValueError(
                f"ArrayDataset: {str(path)!r} has no array {', '.join(missing) or 'at all'}; it has {', '.join(held)}"
            )
        return [_numeric(array, path) for array in arrays]

    def __len__(self) -> int:
        return self.arrays[0].shape[0]

    def __getitem__(self, index: int) -> Any:
        rows = tuple(self._row(array, index) for array in self.arrays)
        return rows[0] if len(rows) == 1 else rows

    @staticmethod
    def _row(array: np.ndarray, index: int) -> Any:
        return tensor.tensor(np.asarray(array[index]))  # a copy: the file's pages cannot be written


def _mapped(path: str | os.PathLike[str]) -> np.ndarray:
    with _naming(path, "mapped"):
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    return _numeric(found, path)


def _numeric(found: Any, path: str | os.PathLike[str]) -> np.ndarray:
    if not isinstance(found, np.ndarray) or found.dtype.kind not in "biufc":
        kind = found.dtype if isinstance(found, np.ndarray) else type(found).__name__
        raise ValueError(f"ArrayDataset: {str(path)!r} holds {kind}, expected an array of numbers")
    return found


@contextmanager
def _naming(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Errors of many classes say that a file is damaged; those about the file as such name it themselves."""
    try:
        yield
    except Exception as error:
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.filename is not None):
            raise
        raise ValueError(f"ArrayDataset: {str(path)!r} cannot be {what}: {error}") from error
