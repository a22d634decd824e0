"""Lines of text files."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from taeda_data.dataset import Dataset


class TextLines(Dataset[Any]):
    """Lines of a text file, found by where they begin: the file itself stays on the disk.

    Args:
        path: the file.
        encoding: of the text; one in which a line ends with the byte 10.
        transform: applied to each line, a str without its end.

    A file of n lines takes 8 n bytes of memory, which worker processes share.

    Raises:
        IndexError: no such line.
        UnicodeDecodeError: a line is not in ``encoding``.

    Example:
        >>> TextLines("corpus.txt")[-1]  # doctest: +SKIP
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        encoding: str = "utf-8",
        transform: Callable[[str], Any] | None = None,
    ) -> None:
        self.path, self.encoding, self.transform = os.fspath(path), encoding, transform
        self._starts = _starts(self.path)

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, index: int) -> Any:
        if not -len(self) <= index < len(self):
            raise IndexError(f"TextLines: index {index} is out of range for {len(self)} lines")
        begin, end = (int(n) for n in self._starts[index % len(self) :][:2])
        with open(self.path, "rb") as file:
            file.seek(begin)
            content = file.read(end - begin).rstrip(b"\r\n")
        try:
            line = content.decode(self.encoding)
        except UnicodeDecodeError as error:
            error.add_note(f"in line {index % len(self) + 1} of {self.path!r}")
            raise
        return line if self.transform is None else self.transform(line)


def _starts(path: str) -> np.ndarray:
    """Where each line begins, and where the last one ends."""
    starts, place = [np.zeros(1, np.int64)], 0
    with open(path, "rb") as file:
        while block := file.read(1 << 24):
            ends = np.flatnonzero(np.frombuffer(block, np.uint8) == 10)
            starts.append(ends.astype(np.int64) + place + 1)
            place += len(block)
    found = np.concatenate(starts)
    return found if found[-1] == place else np.append(found, place)
