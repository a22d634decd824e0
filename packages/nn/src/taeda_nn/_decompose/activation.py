"""Activation functions in terms of arithmetic."""

from __future__ import annotations

import math

from taeda_nn._bind import Tensor, op, tensor

__all__ = [
    "celu", "elu", "gelu", "glu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "logsigmoid",
    "mish", "prelu", "relu6", "rrelu", "selu", "silu", "softmin", "softplus", "softshrink", "softsign", "tanhshrink",
    "threshold",
]  # fmt: skip


def gelu(input: Tensor, *, approximate: str = "none") -> Tensor:
    if approximate == "tanh":
        inner = math.sqrt(2.0 / math.pi) * (input + 0.044715 * input * input * input)
        return 0.5 * input * (1.0 + inner.tanh())
    return 0.5 * input * (1.0 + (input * math.sqrt(0.5)).erf())


def silu(input: Tensor) -> Tensor:
    return input * tensor.sigmoid(input)


def leaky_relu(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    return tensor.where(input > 0, input, input * negative_slope)


def elu(input: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    below = alpha * (input.clamp(max=0) * input_scale).expm1()
    return scale * tensor.where(input > 0, input, below)


def selu(input: Tensor) -> Tensor:
    return op("elu")(input, 1.6732632423543772, 1.0507009873554805)


def celu(input: Tensor, alpha: float = 1.0) -> Tensor:
    return op("elu")(input, alpha, 1, 1 / alpha)


def softplus(input: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    scaled = input * beta
    return tensor.where(scaled > threshold, input, scaled.clamp(max=threshold).exp().log1p() / beta)


def hardtanh(input: Tensor, min_val: float = -1, max_val: float = 1) -> Tensor:
    return input.clamp(min_val, max_val)


def relu6(input: Tensor) -> Tensor:
    return op("hardtanh")(input, 0.0, 6.0)


def hardsigmoid(input: Tensor) -> Tensor:
    return (input + 3.0).clamp(0.0, 6.0) / 6.0


def hardswish(input: Tensor) -> Tensor:
    return input * op("hardsigmoid")(input)


def mish(input: Tensor) -> Tensor:
    return input * op("softplus")(input, 1.0, 20.0).tanh()


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    if weight.numel() != 1:
        weight = weight.reshape((-1, *(1,) * max(input.dim() - 2, 0)))
    return tensor.where(input > 0, input, input * weight)


def rrelu(
    input: Tensor,
    lower: float = 0.125,
    upper: float = 1 / 3,
    training: bool = False,
    generator: object = None,
) -> Tensor:
    if not training:
        return op("leaky_relu")(input, (lower + upper) / 2)
    slope = tensor.empty_like(input).uniform_(lower, upper, generator=generator)
    return tensor.where(input > 0, input, input * slope)


def threshold(input: Tensor, threshold: float, value: float) -> Tensor:
    return tensor.where(input > threshold, input, op("full_like")(input, value))


def logsigmoid(input: Tensor) -> Tensor:
    return -op("softplus")(-input, 1.0, 20.0)


def softsign(input: Tensor) -> Tensor:
    return input / (input.abs() + 1)


def tanhshrink(input: Tensor) -> Tensor:
    return input - tensor.tanh(input)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    return tensor.where(input.abs() > lambd, input, tensor.zeros_like(input))


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    return input - input.clamp(-lambd, lambd)


def softmin(input: Tensor, dim: int, *, dtype: object = None) -> Tensor:
    return tensor.softmax(-input, dim) if dtype is None else tensor.softmax(-input, dim, dtype=dtype)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    size = input.shape[dim]
    if size % 2:
        raise RuntimeError(
            f"glu: size of dimension {dim} must be even, got {size} in shape {tuple(input.shape)}"
        )
    first, second = input.chunk(2, dim)
    return first * tensor.sigmoid(second)
