"""IDX files, the format of MNIST: a magic number, the dimensions, then the elements in big-endian order."""

from __future__ import annotations

import gzip
import io
import math
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from taeda_data.readers.labelled import LabelledImages, find_file

_MOST_DIMS = 32  # of an array, for every NumPy
_DTYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_idx(path: str | os.PathLike[str]) -> np.ndarray:
    """The array of an IDX file, plain or compressed by gzip.

    Args:
        path: the file.

    Returns:
        An array in the machine's byte order; its dtype is uint8, int8, int16, int32, float32 or float64.

    Raises:
        ValueError: no IDX file, or shorter or longer than its header says.

    Reference: http://yann.lecun.com/exdb/mnist, "The IDX file format".
    """
    content = Path(path).read_bytes()
    if content[:2] == b"\x1f\x8b":
        content = _unpacked(content, path)
    dtype, shape, start, expected = _header(content, path)
    if len(content) != expected:
        found = f"has {len(content)} bytes" if len(content) < expected else "has more bytes"
        raise ValueError(f"read_idx: {str(path)!r} {found}, its header says {expected} (shape {shape})")
    return np.frombuffer(content, dtype, offset=start).reshape(shape).astype(dtype.newbyteorder("="))


def _header(content: bytes, path: Any) -> tuple[np.dtype, tuple[int, ...], int, int]:
    """Dtype, shape, where the elements begin, and where they end."""
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in _DTYPES:
        raise ValueError(
            f"read_idx: {str(path)!r} begins with {content[:4].hex(' ')}, which is no IDX header"
        )
    dtype, dims = np.dtype(_DTYPES[content[2]]), content[3]
    start = 4 + 4 * dims
    if dims > _MOST_DIMS or len(content) < start:
        raise ValueError(
            f"read_idx: {str(path)!r} has {len(content)} bytes and a header of {dims} dimensions; "
            f"there may be {_MOST_DIMS}, of 4 bytes each"
        )
    shape = tuple(int(n) for n in np.frombuffer(content[4:start], ">u4"))
    return dtype, shape, start, start + math.prod(shape) * dtype.itemsize


def _unpacked(content: bytes, path: Any) -> bytes:
    """What gzip has packed, as far as the header says and a byte more: a small file may hold very much."""
    unpacked = bytearray()
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            unpacked += file.read(4 + 4 * _MOST_DIMS)
            wanted = _header(bytes(unpacked), path)[-1] + 1
            while len(unpacked) < wanted and (more := file.read(min(wanted - len(unpacked), 1 << 20))):
                unpacked += more
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"read_idx: {str(path)!r} cannot be decompressed: {error}") from error
    return bytes(unpacked)


class MNIST(LabelledImages):
    """Handwritten digits: 60,000 images of 1 x 28 x 28 to learn from, 10,000 to test with.

    Args:
        root: folder of the four IDX files, plain or ``.gz``; also found in ``root/MNIST/raw``.
        train: the larger part.
        transform, target_transform: applied to each image (1, 28, 28) uint8 and to each label.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a file is no IDX file, or images and labels are not as many.

    Example:
        >>> MNIST("data", transform=transforms.ToDtype(taeda.float32, scale=True))[0][0].shape
        Size([1, 28, 28])
    """

    classes_of_set = ("0 - zero", "1 - one", "2 - two", "3 - three", "4 - four",
                      "5 - five", "6 - six", "7 - seven", "8 - eight", "9 - nine")  # fmt: skip

    def __init__(
        self,
        root: str | os.PathLike[str],
        train: bool = True,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[int], Any] | None = None,
    ) -> None:
        part = "train" if train else "t10k"
        images, labels = (
            self._read(Path(root), f"{part}-{kind}-ubyte") for kind in ("images-idx3", "labels-idx1")
        )
        if images.ndim != 3 or labels.ndim != 1:
            raise ValueError(
                f"{type(self).__name__}: found arrays of {images.ndim} and {labels.ndim} dimensions, "
                "expected images with 3 and labels with 1"
            )
        super().__init__(images[:, None], labels, self.classes_of_set, transform, target_transform)

    @classmethod
    def _read(cls, root: Path, stem: str) -> np.ndarray:
        below = (
            f"{folder}{stem}{ending}" for folder in ("", f"{cls.__name__}/raw/") for ending in ("", ".gz")
        )
        return read_idx(find_file(cls.__name__, root, *below))


class FashionMNIST(MNIST):
    """Pictures of clothing in the format of `MNIST` (Xiao, Rasul, Vollgraf 2017)."""

    classes_of_set = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                      "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")  # fmt: skip
