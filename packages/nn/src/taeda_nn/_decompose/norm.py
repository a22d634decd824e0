"""Normalisations in terms of means."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from taeda_nn._bind import Tensor, op, tensor

__all__ = ["group_norm", "instance_norm", "rms_norm"]


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    shape = input.shape
    grouped = input.reshape(shape[0], num_groups, prod(shape[1:]) // num_groups)
    mean = grouped.mean(-1, keepdim=True)
    centred = grouped - mean
    var = (centred * centred).mean(-1, keepdim=True)
    result = (centred * (var + eps).rsqrt()).reshape(shape)
    per_channel = (1, -1, *(1,) * (len(shape) - 2))
    if weight is not None:
        result = result * weight.reshape(per_channel)
    return result if bias is None else result + bias.reshape(per_channel)


def instance_norm(
    input: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    if not use_input_stats:
        return tensor.batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)
    n, c = input.shape[:2]
    if 0 < input.numel() == n * c:
        raise ValueError(
            f"instance_norm: argument 'input' has shape {tuple(input.shape)}, expected more than one element for "
            "each channel"
        )
    flat = input.detach().reshape(n, c, prod(input.shape[2:]))
    if running_mean is not None and input.numel():
        running_mean.mul_(1 - momentum).add_(flat.mean(-1).mean(0) * momentum)
    if running_var is not None and input.numel():
        running_var.mul_(1 - momentum).add_(flat.var(-1).mean(0) * momentum)
    return op("group_norm")(input, c, weight, bias, eps)


def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    dims = tuple(range(-len(normalized_shape), 0))
    eps = op("finfo")(input.dtype).eps if eps is None else eps
    result = input * ((input * input).mean(dims, keepdim=True) + eps).rsqrt()
    return result if weight is None else result * weight
