"""Networks in training or in evaluation for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def in_mode(model: Any, training: bool | None) -> Iterator[None]:
    """A block in which a network is in training or in evaluation; afterwards each module is as it was before.

    Args:
        model: The network.
        training: Whether it is in training; None leaves it as it is.
    """
    before = [(module, module.training) for module in model.modules()]
    try:
        if training is not None and model.training != training:
            model.train(training)
        yield
    finally:
        for module, mode in before:
            module.training = mode
