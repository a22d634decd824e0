"""Normalisation layers as functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taeda_nn._bind import Tensor, autocasts, op, tensor

__all__ = [
    "batch_norm",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "local_response_norm",
    "rms_norm",
]

_batch_norm = op("batch_norm")
_layer_norm = op("layer_norm")


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises every channel over batch and space, then scales by ``weight`` and shifts by ``bias``.

    Args:
        input: (N, C, ...).
        running_mean: (C,), used unless training; updated in place when training.
        running_var: (C,), likewise.
        weight: (C,).
        bias: (C,).
        training: Whether to use the batch's own statistics.
        momentum: Weight of the batch in the running statistics.
        eps: Added to the variance.

    Raises:
        ValueError: ``eps`` is negative, or 0 while training; while training, a channel has one value.

    Example:
        >>> F.batch_norm(torch.randn(20, 100), torch.zeros(100), torch.ones(100), training=True).shape
        Size([20, 100])

    Source: Ioffe and Szegedy, "Batch Normalization", 2015.
    """
    if eps <= 0.0 and (training or eps < 0.0):
        raise _wrong_eps(eps, training)
    if training:
        _need_several_values("batch_norm", input)
    return _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


def _wrong_eps(eps: float, training: bool) -> ValueError:
    return ValueError(
        f"batch_norm: eps must be {'positive during training' if training else 'non-negative'}, got {eps}"
    )


def _need_several_values(owner: Any, input: Tensor) -> None:
    """ValueError if a batch has one value for each channel; ``owner`` is a name, or the layer."""
    shape = input.shape
    if len(shape) > 1 and shape[1] and input.numel() // shape[1] == 1:
        name = owner if isinstance(owner, str) else type(owner).__name__
        raise ValueError(
            f"{name}: Expected more than 1 value per channel when training, got input size {tuple(shape)}"
        )


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises over the trailing dimensions ``normalized_shape``, then scales and shifts.

    Example:
        >>> F.layer_norm(torch.randn(20, 5, 10), (10,)).shape
        Size([20, 5, 10])

    Source: Ba et al., "Layer Normalization", 2016.
    """
    return _layer_norm(input, normalized_shape, weight, bias, eps)


_group_norm = op("group_norm")
_instance_norm = op("instance_norm")


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises every sample over groups of channels, then scales and shifts per channel.

    Example:
        >>> F.group_norm(torch.randn(20, 6, 10, 10), 2).shape
        Size([20, 6, 10, 10])

    Source: Wu and He, "Group Normalization", 2018.
    """
    if input.dim() < 2:
        raise RuntimeError(
            f"group_norm: input must have at least 2 dimensions, got shape {tuple(input.shape)}"
        )
    if num_groups <= 0 or input.shape[1] % num_groups:
        raise RuntimeError(
            f"group_norm: channels ({input.shape[1]}) must be divisible by num_groups ({num_groups})"
        )
    return _group_norm(input, num_groups, weight, bias, eps)


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises every channel of every sample over space, then scales and shifts.

    Source: Ulyanov et al., "Instance Normalization", 2016.
    """
    return _instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps)


_rms_norm = op("rms_norm")


def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Divides by the root mean square over the trailing dimensions, then scales.

    Example:
        >>> F.rms_norm(torch.randn(20, 10), (10,)).shape
        Size([20, 10])

    Source: Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.
    """
    return _rms_norm(input, tuple(normalized_shape), weight, eps)


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Divides by a power of the mean square over ``size`` neighbouring channels.

    Source: Krizhevsky et al., "ImageNet Classification with Deep Convolutional Neural Networks", 2012.
    """
    if input.dim() < 3:
        raise ValueError(
            f"local_response_norm: input must have at least 3 dimensions, got shape {tuple(input.shape)}"
        )
    from taeda_nn.functional.conv import pad

    channels = input.shape[1]
    squares = pad(input * input, (0, 0) * (input.dim() - 2) + (size // 2, (size - 1) // 2))
    if input.dtype in (tensor.float16, tensor.bfloat16) and autocasts(input.device.type):
        squares = squares.to(tensor.float32)  # where means and powers are computed in it
    window = squares.narrow(1, 0, channels)
    for shift in range(1, size):
        window = window + squares.narrow(1, shift, channels)
    if not input.numel():
        return input
    if not (input.is_floating_point() or input.is_complex()):
        return input / ((window // size) * alpha + k).pow(beta)  # means of whole numbers are whole
    return input / (window * (alpha / size) + k).pow(beta)
