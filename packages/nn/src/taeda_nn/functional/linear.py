"""Affine maps, tables of vectors and distances."""

from __future__ import annotations

from taeda_nn._bind import Tensor, no_grad, op
from taeda_nn._errors import not_tensors

__all__ = [
    "bilinear",
    "cosine_similarity",
    "embedding",
    "linear",
    "normalize",
    "one_hot",
    "pairwise_distance",
]


linear = op("linear")
bilinear = op("bilinear")
cosine_similarity = op("cosine_similarity")
pairwise_distance = op("pairwise_distance")
one_hot = op("one_hot")
_embedding = op("embedding")
_embedding_renorm_ = op("embedding_renorm_")
_vector_norm = op("vector_norm")


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of ``weight`` chosen by ``input``.

    Args:
        input: Integer indices, any shape.
        weight: (rows, features).
        padding_idx: Row that gets no gradient.
        max_norm: Rows used whose norm is greater are rescaled in place first.
        norm_type: The p of that norm.
        scale_grad_by_freq: Whether a row's gradient is divided by how often it was used.
        sparse: Not supported yet: NotImplementedError.

    Returns: shape of ``input`` with ``features`` appended.
    """
    if sparse:
        raise NotImplementedError("embedding: sparse gradients are not supported; use sparse=False")
    rows = weight.shape[0]
    if padding_idx is None:
        padding_idx = -1
    elif not -rows <= padding_idx < rows:
        raise ValueError(f"embedding: padding_idx {padding_idx} is out of range for {rows} rows")
    elif padding_idx < 0:
        padding_idx += rows
    if max_norm is not None:
        with no_grad():
            _embedding_renorm_(weight, input, max_norm, norm_type)
    return _embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """``input`` divided by its p-norm along ``dim``; norms below ``eps`` count as ``eps``."""
    if not isinstance(input, Tensor):
        raise not_tensors("normalize", input=input)
    return input / _vector_norm(input, p, dim, True).clamp(min=eps)
