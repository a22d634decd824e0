"""Products of matrices in terms of ``matmul``."""

from __future__ import annotations

from taeda_nn._bind import Tensor, tensor

__all__ = ["bilinear", "linear"]


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    result = tensor.matmul(input, weight.t())
    return result if bias is None else result + bias


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    out_features, in1, in2 = weight.shape
    left = tensor.matmul(input1.unsqueeze(-2), weight.permute(1, 0, 2).reshape(in1, out_features * in2))
    left = left.reshape(*input1.shape[:-1], out_features, in2)
    result = tensor.matmul(left, input2.unsqueeze(-1)).squeeze(-1)
    return result if bias is None else result + bias
