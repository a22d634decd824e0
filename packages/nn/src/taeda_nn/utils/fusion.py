"""Batch normalisation folded into the layer before it."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from taeda_nn._bind import Tensor, tensor
from taeda_nn.modules.module import Module
from taeda_nn.parameter import Parameter

M = TypeVar("M", bound=Module)


def _folded(
    weight: Tensor,
    bias: Tensor | None,
    mean: Tensor,
    var: Tensor,
    eps: float,
    scale: Tensor | None,
    shift: Tensor | None,
    channels: tuple[int, ...],
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a layer that gives what normalisation gives behind it; ``channels`` is a shape for scales."""
    dtype = weight.dtype if bias is None else bias.dtype
    bias = tensor.zeros_like(mean) if bias is None else bias
    factor = (var + eps).rsqrt()
    if scale is not None:
        factor = factor * scale
    fused_bias = (bias - mean) * factor
    if shift is not None:
        fused_bias = fused_bias + shift
    fused = (weight * factor.reshape(channels)).to(weight.dtype)
    return (
        Parameter(fused.detach(), weight.requires_grad),
        Parameter(fused_bias.to(dtype).detach(), bias.requires_grad),
    )


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a convolution with a batch normalisation behind it folded in.

    Args:
        conv_w, conv_b: Of the convolution.
        bn_rm, bn_rv, bn_eps: Running mean and variance, and what is added to the variance.
        bn_w, bn_b: Scale and shift.
        transpose: Whether the convolution is a transposed one, whose output channels are its weight's second dimension.
    """
    rest = (1,) * (conv_w.dim() - 2)
    channels = (1, -1, *rest) if transpose else (-1, 1, *rest)
    return _folded(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, channels)


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor,
    bn_b: Tensor,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a linear map with a batch normalisation behind it folded in; see `fuse_conv_bn_weights`."""
    return _folded(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, (-1, 1))


def _checked(name: str, layer: Module, bn: Any) -> None:
    if layer.training or bn.training:
        raise AssertionError(f"{name}: layer and normalisation must be in evaluation mode: call eval()")
    if bn.running_mean is None or bn.running_var is None:
        raise ValueError(f"{name}: the normalisation has no running statistics")


def fuse_conv_bn_eval(conv: M, bn: Any, transpose: bool = False) -> M:
    """A copy of a convolution with the batch normalisation behind it folded in.

    Raises:
        AssertionError: One of both is training.
        ValueError: The normalisation keeps no running statistics.

    Example:
        >>> fused = nn.utils.fuse_conv_bn_eval(conv.eval(), bn.eval())
    """
    _checked("fuse_conv_bn_eval", conv, bn)
    fused: Any = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_linear_bn_eval(linear: M, bn: Any) -> M:
    """A copy of a linear map with the batch normalisation behind it folded in; see `fuse_conv_bn_eval`.

    Raises:
        AssertionError: One of both is training, or the features do not fit.
        ValueError: The normalisation keeps no running statistics.
    """
    _checked("fuse_linear_bn_eval", linear, bn)
    fused: Any = copy.deepcopy(linear)
    if fused.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError(
            f"fuse_linear_bn_eval: {fused.out_features} features cannot be normalised as {bn.num_features}"
        )
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused
