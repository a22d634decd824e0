"""Instance normalisation layers."""

from __future__ import annotations

import warnings
from typing import Any

from taeda_nn import functional as F
from taeda_nn._bind import Tensor
from taeda_nn.modules.batchnorm import _LazyNormBase, _NormBase

__all__ = [
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]


class _InstanceNorm(_NormBase):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        single = input.dim() == self.ranks[0]
        channels = input.shape[0 if single else 1]
        if channels != self.num_features and not self.affine and not self.track_running_stats:
            warnings.warn(
                f"{type(self).__name__}: the input's size {channels} at dim={0 if single else 1} does not match "
                f"num_features={self.num_features}, which nothing is made of without affine=True",
                stacklevel=2,
            )
        result = F.instance_norm(
            input.unsqueeze(0) if single else input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum or 0.0,
            self.eps,
        )
        return result.squeeze(0) if single else result


class InstanceNorm1d(_InstanceNorm):
    """Normalises every channel of every sample of (N, C, L) or (C, L).

    Source: Ulyanov et al., "Instance Normalization", 2016.
    """

    ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Normalises every channel of every sample of (N, C, H, W) or (C, H, W).

    Example:
        >>> nn.InstanceNorm2d(8)(torch.randn(4, 8, 16, 16)).shape
        Size([4, 8, 16, 16])
    """

    ranks = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Normalises every channel of every sample of (N, C, D, H, W) or (C, D, H, W)."""

    ranks = (4, 5)


class _LazyInstanceNorm(_LazyNormBase):
    ranks: tuple[int, ...]

    def _channels(self, input: Tensor) -> int:
        super()._channels(input)
        return input.shape[0 if input.dim() == self.ranks[0] else 1]


class LazyInstanceNorm1d(_LazyInstanceNorm, InstanceNorm1d):  # type: ignore[misc]
    """`InstanceNorm1d` whose ``num_features`` are those of its first input; arguments as there."""

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyInstanceNorm, InstanceNorm2d):  # type: ignore[misc]
    """`InstanceNorm2d` whose ``num_features`` are those of its first input; arguments as there."""

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyInstanceNorm, InstanceNorm3d):  # type: ignore[misc]
    """`InstanceNorm3d` whose ``num_features`` are those of its first input; arguments as there."""

    cls_to_become = InstanceNorm3d
