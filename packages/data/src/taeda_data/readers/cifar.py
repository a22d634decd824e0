"""CIFAR-10 and CIFAR-100, in their binary version and in the one of pickles."""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from taeda_data.readers.labelled import LabelledImages, find_file

_PIXELS = 3 * 32 * 32
_TEN = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


class _ArraysOnly(pickle.Unpickler):
    """Reads what the published files are made of: containers, text, numbers and arrays; nothing else is called."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("numpy", "dtype"):
            return np.dtype
        if (module, name) == ("numpy", "ndarray"):
            return np.ndarray
        if module in ("numpy.core.multiarray", "numpy._core.multiarray") and name == "_reconstruct":
            return np.zeros(0).__reduce__()[0]
        if (module, name) == ("_codecs", "encode"):
            return _encode
        raise ValueError(f"asks for {module}.{name}, which is not loaded: only containers and arrays are")


def _encode(text: str, encoding: str) -> bytes:
    if encoding not in ("latin1", "latin-1"):
        raise ValueError(f"encodes bytes as {encoding!r}, expected latin1")
    return text.encode("latin1")


def _unpickle(path: Path) -> dict[Any, Any]:
    try:
        content = _ArraysOnly(io.BytesIO(path.read_bytes()), encoding="latin1").load()
    except MemoryError:
        raise
    except Exception as error:
        raise ValueError(f"{str(path)!r} is no file of CIFAR: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(
            f"{str(path)!r} is no file of CIFAR: it holds a {type(content).__name__}, expected a dict"
        )
    return {key.decode() if isinstance(key, bytes) else key: value for key, value in content.items()}


def _pixels(data: Any, path: Path) -> np.ndarray:
    images = np.asarray(data)
    if images.dtype != np.uint8 or images.ndim != 2 or images.shape[1] != _PIXELS:
        raise ValueError(
            f"{str(path)!r} is no file of CIFAR: its data is {images.dtype} of shape {images.shape}"
        )
    return images.reshape(-1, 3, 32, 32)


def _binary(path: Path, labels: int) -> tuple[np.ndarray, np.ndarray]:
    """Images and (the last column of) labels of a binary file, whose records are labels and then pixels."""
    content = np.fromfile(path, np.uint8)
    record = labels + _PIXELS
    if content.size == 0 or content.size % record:
        raise ValueError(f"{str(path)!r} has {content.size} bytes, expected a multiple of {record}")
    rows = content.reshape(-1, record)
    return rows[:, labels:].reshape(-1, 3, 32, 32), rows[:, labels - 1]


class CIFAR10(LabelledImages):
    """50,000 small photographs (3, 32, 32) of 10 classes to learn from, 10,000 to test with (Krizhevsky 2009).

    Args:
        root: folder that holds the files, or the folder as it is published (``cifar-10-batches-py`` or ``-bin``).
        train: the larger part.
        transform, target_transform: applied to each image (3, 32, 32) uint8 and to each label.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a file has another format; pickles that hold anything but arrays and containers are refused.
    """

    folders: Sequence[str] = ("cifar-10-batches-py", "cifar-10-batches-bin")

    def __init__(
        self,
        root: str | os.PathLike[str],
        train: bool = True,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[int], Any] | None = None,
    ) -> None:
        parts = [self._part(Path(root), stem) for stem in self._stems(train)]
        images, labels = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        super().__init__(images, labels, self._names(Path(root)), transform, target_transform)

    @staticmethod
    def _stems(train: bool) -> list[str]:
        return [f"data_batch_{i}" for i in range(1, 6)] if train else ["test_batch"]

    def _find(self, root: Path, *names: str) -> Path:
        below = [f"{folder}{name}" for folder in ("", *(f"{f}/" for f in self.folders)) for name in names]
        return find_file(type(self).__name__, root, *below)

    def _part(self, root: Path, stem: str) -> tuple[np.ndarray, np.ndarray]:
        path = self._find(root, stem, f"{stem}.bin")
        if path.suffix == ".bin":
            return _binary(path, labels=1)
        content = _unpickle(path)
        return _pixels(content.get("data"), path), np.asarray(content.get("labels"), np.int64)

    def _names(self, root: Path) -> Sequence[str]:
        return _TEN


class CIFAR100(CIFAR10):
    """As `CIFAR10`, with 100 classes; their names are read from the ``meta`` file beside the images."""

    folders = ("cifar-100-python", "cifar-100-binary")

    @staticmethod
    def _stems(train: bool) -> list[str]:
        return ["train" if train else "test"]

    def _part(self, root: Path, stem: str) -> tuple[np.ndarray, np.ndarray]:
        path = self._find(root, stem, f"{stem}.bin")
        if path.suffix == ".bin":
            return _binary(path, labels=2)
        content = _unpickle(path)
        return _pixels(content.get("data"), path), np.asarray(content.get("fine_labels"), np.int64)

    def _names(self, root: Path) -> Sequence[str]:
        path = self._find(root, "meta", "fine_label_names.txt")
        if path.suffix == ".txt":
            return path.read_text(encoding="utf-8").split()
        return list(_unpickle(path)["fine_label_names"])
