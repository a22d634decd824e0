"""Stand-in provider of slot ``optim``: gradient descent in ten lines, on any tensor provider."""

from collections.abc import Iterable
from typing import Any

from taeda_registry.slots import tensor

__taeda_interface__ = {"optim": "1.0"}


class SGD:
    """Plain gradient descent."""

    def __init__(self, params: Iterable[Any], lr: float) -> None:
        self.params = list(params)
        self.lr = lr

    def zero_grad(self) -> None:
        for parameter in self.params:
            parameter.grad = None

    def step(self) -> None:
        with tensor.no_grad():
            for parameter in self.params:
                parameter -= self.lr * parameter.grad
