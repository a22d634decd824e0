"""Normalisation layers that need no batch."""

from __future__ import annotations

from typing import Any

from taeda_nn import functional as F
from taeda_nn import init
from taeda_nn._bind import Tensor, op, tensor
from taeda_nn.modules.module import Module
from taeda_nn.modules.utils import _single
from taeda_nn.parameter import Parameter

__all__ = [
    "CrossMapLRN2d",
    "GroupNorm",
    "LayerNorm",
    "LocalResponseNorm",
    "RMSNorm",
]

# Called in the function's place while nobody has put another there.
_f_layer_norm, _layer_norm = F.layer_norm, op("layer_norm")


class LayerNorm(Module):
    """Normalises over the trailing dimensions, then scales and shifts element by element.

    Args:
        normalized_shape: Sizes of the trailing dimensions, or one size.
        eps: Added to the variance.
        elementwise_affine: Whether scale (and shift) are learned.
        bias: Whether the shift is.

    Example:
        >>> nn.LayerNorm(10)(torch.randn(20, 5, 10)).shape
        Size([20, 5, 10])

    Source: Ba et al., "Layer Normalization", 2016.
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _single(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        for name, wanted in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            value = (
                Parameter(tensor.empty(self.normalized_shape, device=device, dtype=dtype)) if wanted else None
            )
            self.register_parameter(name, value)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets the scale to 1 and the shift to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        if F.layer_norm is not _f_layer_norm:
            return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)
        return _layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Divides by the root mean square over the trailing dimensions, then scales.

    Example:
        >>> nn.RMSNorm(10)(torch.randn(20, 5, 10)).shape
        Size([20, 5, 10])

    Source: Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _single(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        made = Parameter(tensor.empty(self.normalized_shape, device=device, dtype=dtype))
        self.register_parameter("weight", made if elementwise_affine else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets the scale to 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """Normalises every sample over groups of channels, then scales and shifts per channel.

    Args:
        num_groups: Number of groups; it divides ``num_channels``.
        num_channels: Size of dimension 1.
        eps: Added to the variance.
        affine: Whether scale and shift are learned.
        bias: Whether the shift is.

    Example:
        >>> nn.GroupNorm(2, 6)(torch.randn(20, 6, 10, 10)).shape
        Size([20, 6, 10, 10])

    Source: Wu and He, "Group Normalization", 2018.
    """

    __constants__ = ["num_groups", "num_channels", "eps", "affine"]

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_groups <= 0 or num_channels % num_groups:
            raise ValueError(
                f"GroupNorm: num_channels ({num_channels}) must be divisible by num_groups ({num_groups})"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            value = Parameter(tensor.empty(num_channels, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, value)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets the scale to 1 and the shift to 0."""
        if self.affine:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class LocalResponseNorm(Module):
    """Divides by a power of the mean square over ``size`` neighbouring channels.

    Example:
        >>> nn.LocalResponseNorm(2)(torch.randn(32, 5, 24, 24)).shape
        Size([32, 5, 24, 24])

    Source: Krizhevsky et al., "ImageNet Classification with Deep Convolutional Neural Networks", 2012.
    """

    __constants__ = ["size", "alpha", "beta", "k"]

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm):
    """`LocalResponseNorm` of (N, C, H, W), under the name that it has in old models.

    PyTorch's counts the first channel in the window of every later one; this one keeps to the definition.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: input must have 4 dimensions, got shape {tuple(input.shape)}")
        return super().forward(input)
