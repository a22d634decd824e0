"""What data sets of labelled images share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from taeda_data.dataset import Dataset
from taeda_registry.slots import tensor


class LabelledImages(Dataset[tuple[Any, Any]]):
    """Images in memory with a class each.

    Args:
        images: (N, C, H, W) uint8.
        targets: N ints.
        classes: names of the classes.
        transform: applied to an image, a (C, H, W) uint8 tensor.
        target_transform: applied to a class, an int.

    Attributes:
        data: the images, an (N, C, H, W) uint8 tensor.
        targets: the classes, an (N,) int64 tensor.
        classes: list of names.
        class_to_idx: their numbers.
    """

    def __init__(
        self,
        images: np.ndarray,
        targets: np.ndarray,
        classes: Sequence[str],
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[int], Any] | None = None,
    ) -> None:
        name = type(self).__name__
        if len(images) != len(targets):
            raise ValueError(
                f"{name}: found {len(images)} images and {len(targets)} labels, expected as many of both"
            )
        if len(targets) and not 0 <= int(targets.min()) <= int(targets.max()) < len(classes):
            raise ValueError(
                f"{name}: found labels from {targets.min()} to {targets.max()}, "
                f"expected 0 to {len(classes) - 1}"
            )
        self.data = tensor.from_numpy(np.ascontiguousarray(images))
        self.targets = tensor.from_numpy(np.ascontiguousarray(targets, dtype=np.int64))
        self.classes = list(classes)
        self.class_to_idx = {label: number for number, label in enumerate(self.classes)}
        self.transform, self.target_transform = transform, target_transform

    def __len__(self) -> int:
        return self.data.shape[0]

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image, target = self.data[index], int(self.targets[index])
        if self.transform is not None:
            image = self.transform(image)
        return image, target if self.target_transform is None else self.target_transform(target)

    def __repr__(self) -> str:
        shape = tuple(self.data.shape[1:])
        return f"{type(self).__name__}({len(self)} images of shape {shape}, {len(self.classes)} classes)"


def find_file(name: str, root: Path, *candidates: str) -> Path:
    """The first of ``candidates`` below ``root`` that is a file.

    Raises:
        FileNotFoundError: none is; the message names all of them.
    """
    for candidate in candidates:
        if (path := root / candidate).is_file():
            return path
    raise FileNotFoundError(
        f"{name}: argument 'root' is {str(root)!r}, expected one of {', '.join(candidates)} there"
    )
