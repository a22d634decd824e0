"""Images in folders, one for each class."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from taeda_data.dataset import Dataset
from taeda_registry.slots import tensor

IMAGE_ENDINGS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp", ".gif")


def read_image(path: str | os.PathLike[str], mode: str = "RGB") -> Any:
    """An image file as a tensor.

    Args:
        path: any format that Pillow reads.
        mode: Pillow's mode to convert to: "RGB", "L", "RGBA".

    Returns:
        (C, H, W) uint8.

    Raises:
        ImportError: Pillow is not installed.
        ValueError: the file is no image that Pillow can read.
    """
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("read_image needs Pillow: pip install pillow") from error
    try:
        with Image.open(path) as image:
            return image_to_tensor(image.convert(mode))
    except (
        OSError,
        SyntaxError,
        ValueError,
        Image.DecompressionBombError,
    ) as error:  # Pillow's of damaged files
        if not Path(path).is_file():
            raise
        raise ValueError(f"read_image: {str(path)!r} cannot be read as an image: {error}") from error


def image_to_tensor(image: Any) -> Any:
    """A Pillow image or an (H, W) or (H, W, C) array as a tensor (C, H, W) of the same dtype."""
    array = np.array(image)
    if array.dtype == bool:  # Pillow's mode "1"
        array = array.astype(np.uint8) * 255
    if array.ndim == 2:
        array = array[:, :, None]
    if array.ndim != 3:
        raise ValueError(f"expected an image of 2 or 3 dimensions, found shape {array.shape}")
    return tensor.from_numpy(np.ascontiguousarray(array.transpose(2, 0, 1)))


class ImageFolder(Dataset[tuple[Any, Any]]):
    """Images below ``root/CLASS/``, at any depth; classes are numbered in the order of their names.

    Args:
        root: the folder of folders.
        transform, target_transform: applied to each image and to each label.
        loader: reads one file; by default `read_image`, which gives (3, H, W) uint8.
        is_valid_file: which files belong to the set; by default those with an image's ending.
        allow_empty: whether a class may have no image.

    Attributes:
        classes: names of the classes.
        class_to_idx: their numbers.
        samples: list of (path, class).
        targets: the classes of all samples.

    Raises:
        FileNotFoundError: ``root`` has no folder, or a class has no image.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[int], Any] | None = None,
        loader: Callable[[str], Any] = read_image,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ) -> None:
        self.root = os.fspath(root)
        self.transform, self.target_transform, self.loader = transform, target_transform, loader
        self.classes, self.class_to_idx = self.find_classes(self.root)
        self.samples = list(self._samples(is_valid_file or _is_image))
        self.targets = [target for _, target in self.samples]
        missing = sorted(set(self.classes) - {self.classes[target] for target in set(self.targets)})
        if missing and not allow_empty:
            raise FileNotFoundError(
                f"ImageFolder: found no image of {', '.join(missing)} below {self.root!r}"
            )

    def find_classes(self, directory: str) -> tuple[list[str], dict[str, int]]:
        """Names of the classes and their numbers; to be overridden by sets that number otherwise."""
        classes = sorted(entry.name for entry in os.scandir(directory) if entry.is_dir())
        if not classes:
            raise FileNotFoundError(f"ImageFolder: found no folder of a class in {directory!r}")
        return classes, {name: number for number, name in enumerate(classes)}

    def _samples(self, belongs: Callable[[str], bool]) -> Iterator[tuple[str, int]]:
        for name in sorted(self.class_to_idx):
            for folder, _, files in sorted(os.walk(os.path.join(self.root, name), followlinks=True)):
                paths: Sequence[str] = [os.path.join(folder, file) for file in sorted(files)]
                yield from ((path, self.class_to_idx[name]) for path in paths if belongs(path))

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path, target = self.samples[index]
        image = self.loader(path)
        if self.transform is not None:
            image = self.transform(image)
        return image, target if self.target_transform is None else self.target_transform(target)


def _is_image(path: str) -> bool:
    return path.lower().endswith(IMAGE_ENDINGS)
