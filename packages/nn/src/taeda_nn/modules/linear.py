"""Linear layers."""

from __future__ import annotations

import math
from typing import Any

from taeda_nn import functional as F
from taeda_nn import init
from taeda_nn._bind import Tensor, tensor
from taeda_nn.modules.lazy import LazyModuleMixin
from taeda_nn.modules.module import Module
from taeda_nn.parameter import Parameter, UninitializedParameter

__all__ = [
    "Bilinear",
    "Identity",
    "LazyLinear",
    "Linear",
]


class Identity(Module):
    """Returns its input; any arguments are accepted and ignored.

    Example:
        >>> model.head = nn.Identity()
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        return input


class Linear(Module):
    """Affine map of the last dimension: ``x W^T + b``.

    Args:
        in_features: Size of the input's last dimension.
        out_features: Size of the output's last dimension.
        bias: Whether ``b`` is learned; without it there is none.

    Attributes:
        weight: (out_features, in_features), uniform within 1 / sqrt(in_features).
        bias: (out_features,), likewise.

    Example:
        >>> nn.Linear(20, 30)(torch.randn(128, 20)).shape
        Size([128, 30])
    """

    __constants__ = ["in_features", "out_features"]

    in_features: int
    out_features: int
    weight: Tensor
    bias: Tensor | None

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(tensor.empty((out_features, in_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(tensor.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new initial values."""
        bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
        if 0 in self.weight.shape:
            init.warn_of_nothing(stacklevel=3)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)  # programs put functions of their own there

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"
        )


class NonDynamicallyQuantizableLinear(Linear):
    """``Linear`` under the name that attention layers give the projection of their output."""


class Bilinear(Module):
    """``x1^T W x2 + b`` for every output feature.

    Args:
        in1_features: Size of the first input's last dimension.
        in2_features: Size of the second input's last dimension.
        out_features: Size of the output's last dimension.
        bias: Whether ``b`` is learned; without it there is none.

    Example:
        >>> nn.Bilinear(20, 30, 40)(torch.randn(128, 20), torch.randn(128, 30)).shape
        Size([128, 40])
    """

    __constants__ = ["in1_features", "in2_features", "out_features"]

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"Bilinear: in1_features must be positive, got {in1_features}")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        shape = (out_features, in1_features, in2_features)
        self.weight = Parameter(tensor.empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(tensor.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new initial values."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class LazyLinear(LazyModuleMixin, Linear):
    """`Linear` whose ``in_features`` are those of its first input.

    Args:
        out_features: Size of the output's last dimension.
        bias: Whether a shift is learned.

    Example:
        >>> nn.LazyLinear(4)(torch.randn(2, 3)).shape
        Size([2, 4])
    """

    cls_to_become = Linear

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(0, 0, False)
        self.out_features = out_features
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:  # type: ignore[override]
        """Takes ``in_features`` from the input."""
        if self.has_uninitialized_params():
            self.in_features = input.shape[-1]
            self.weight.materialize((self.out_features, self.in_features))
            if self.bias is not None:
                self.bias.materialize((self.out_features,))
            self.reset_parameters()
        if self.in_features == 0:  # a state was loaded before
            if input.shape[-1] != self.weight.shape[-1]:
                raise AssertionError(
                    f"LazyLinear: the weight that was loaded takes {self.weight.shape[-1]} features, "
                    f"the input has {input.shape[-1]}"
                )
            self.in_features = input.shape[-1]
