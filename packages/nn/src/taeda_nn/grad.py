"""Gradients of convolutions as functions of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taeda_nn import functional as F
from taeda_nn._bind import Tensor, autograd, tensor

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def _of_input(rank: int) -> Callable[..., Tensor]:
    def gradient(
        input_size: Any,
        weight: Tensor,
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        recorded = tensor.is_grad_enabled() and (weight.requires_grad or grad_output.requires_grad)
        with tensor.enable_grad():
            input = tensor.zeros(tuple(input_size), dtype=weight.dtype, device=weight.device).requires_grad_()
            result = getattr(F, f"conv{rank}d")(input, weight, None, stride, padding, dilation, groups)
        return autograd.grad(result, input, grad_output, create_graph=recorded)[0]

    gradient.__name__ = f"conv{rank}d_input"
    gradient.__doc__ = f"The gradient of ``conv{rank}d`` in its input, whose shape is given."
    return gradient


def _of_weight(rank: int) -> Callable[..., Tensor]:
    def gradient(
        input: Tensor,
        weight_size: Any,
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        recorded = tensor.is_grad_enabled() and (input.requires_grad or grad_output.requires_grad)
        with tensor.enable_grad():
            weight = tensor.zeros(tuple(weight_size), dtype=input.dtype, device=input.device).requires_grad_()
            result = getattr(F, f"conv{rank}d")(input, weight, None, stride, padding, dilation, groups)
        return autograd.grad(result, weight, grad_output, create_graph=recorded)[0]

    gradient.__name__ = f"conv{rank}d_weight"
    gradient.__doc__ = f"The gradient of ``conv{rank}d`` in its weight, whose shape is given."
    return gradient


conv1d_input, conv2d_input, conv3d_input = _of_input(1), _of_input(2), _of_input(3)
conv1d_weight, conv2d_weight, conv3d_weight = _of_weight(1), _of_weight(2), _of_weight(3)
