"""Sets that come with other libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from taeda_data.readers.labelled import LabelledImages


class Digits(LabelledImages):
    """The 1,797 handwritten digits of scikit-learn: images (1, 8, 8) uint8 of values 0 to 16, classes 0 to 9.

    Args:
        transform, target_transform: applied to each image and to each label.

    Raises:
        ImportError: scikit-learn is not installed.

    Reference: Alpaydin, Kaynak 1998, "Optical recognition of handwritten digits", UCI repository.
    """

    def __init__(
        self,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[int], Any] | None = None,
    ) -> None:
        try:
            from sklearn.datasets import load_digits
        except ImportError as error:
            raise ImportError("Digits needs scikit-learn: pip install scikit-learn") from error
        found = load_digits()
        images = found.images[:, None].astype(np.uint8)
        super().__init__(images, found.target, [str(i) for i in range(10)], transform, target_transform)
