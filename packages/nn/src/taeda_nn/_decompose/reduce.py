"""Norms and distances in terms of sums."""

from __future__ import annotations

import math
from typing import Any

from taeda_nn._bind import Tensor, op, tensor

__all__ = ["cosine_similarity", "embedding_renorm_", "pairwise_distance", "vector_norm"]


def vector_norm(
    input: Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    x = input if dtype is None else input.to(dtype)
    if ord == 2.0:
        # The square root has no finite gradient at 0, where the norm's subgradient is 0.
        squares = (x * x).sum(dim, keepdim=keepdim)
        zero = squares == 0
        return tensor.where(zero, squares, tensor.where(zero, tensor.ones_like(squares), squares).sqrt())
    if ord == 1.0:
        return x.abs().sum(dim, keepdim=keepdim)
    if ord == math.inf:
        return x.abs().amax(dim, keepdim=keepdim)
    if ord == -math.inf:
        return x.abs().amin(dim, keepdim=keepdim)
    if ord == 0.0:
        return (x != 0).sum(dim, keepdim=keepdim).to(x.dtype)
    return x.abs().pow(ord).sum(dim, keepdim=keepdim).pow(1.0 / ord)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    product = x1 * x2
    norm = op("vector_norm")
    first, second = (norm(x.expand(product.shape), 2.0, dim).clamp(min=eps) for x in (x1, x2))
    return product.sum(dim) / (first * second)


def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    return op("vector_norm")(x1 - x2 + eps, p, -1, keepdim)


def embedding_renorm_(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    used = indices.reshape(-1)  # a row used twice is given the same values twice
    rows = weight[used]
    norms = op("vector_norm")(rows, norm_type, -1, True)
    weight[used] = tensor.where(norms > max_norm, rows * (max_norm / (norms + 1e-7)), rows)
