"""Stand-in provider of slot ``nn``: a linear map with the parameters it needs, and no base class."""

from typing import Any

from taeda_registry.slots import tensor

__taeda_interface__ = {"nn": "1.0"}


class Linear:
    """An affine map."""

    def __init__(self, in_features: int, out_features: int) -> None:
        self.weight = tensor.zeros(out_features, in_features, requires_grad=True)
        self.bias = tensor.zeros(out_features, requires_grad=True)

    def parameters(self) -> list[Any]:
        return [self.weight, self.bias]

    def __call__(self, x: Any) -> Any:
        return x @ self.weight.t() + self.bias
