"""Affine maps, tables of vectors and distances."""

from __future__ import annotations

import warnings
from typing import Any

from taeda_nn._bind import Tensor, no_grad, op, tensor
from taeda_nn._errors import not_tensors

__all__ = [
    "bilinear",
    "cosine_similarity",
    "embedding",
    "embedding_bag",
    "grouped_mm",
    "linear",
    "normalize",
    "one_hot",
    "pairwise_distance",
    "pdist",
]


linear = op("linear")
bilinear = op("bilinear")
cosine_similarity = op("cosine_similarity")
pairwise_distance = op("pairwise_distance")
one_hot = op("one_hot")
pdist = op("pdist")
_embedding_bag = op("embedding_bag")
_embedding = op("embedding")
_embedding_renorm_ = op("embedding_renorm_")
_vector_norm, _div = op("vector_norm"), op("div")


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
        sparse: Whether the gradient of ``weight`` is a sparse tensor, of the rows used; not with scale_grad_by_freq.

    Returns: shape of ``input`` with ``features`` appended.

    Example:
        >>> F.embedding(torch.tensor([2, 0]), torch.tensor([[0.0], [1.0], [2.0]]))
        tensor([[2.],
                [0.]])
    """
    if padding_idx is None:
        padding_idx = -1
    else:
        rows = weight.shape[0]
        if not -rows <= padding_idx < rows:
            raise ValueError(f"embedding: padding_idx {padding_idx} is out of range for {rows} rows")
        if padding_idx < 0:
            padding_idx += rows
    if max_norm is not None:
        with no_grad():
            _embedding_renorm_(weight, input, max_norm, norm_type)
    if sparse and weight.requires_grad and tensor.is_grad_enabled():
        return _sparse_rows("embedding", scale_grad_by_freq).Rows.apply(weight, input, padding_idx)
    return _embedding(weight, input, padding_idx, scale_grad_by_freq, False)


def _sparse_rows(name: str, scale_grad_by_freq: bool) -> Any:
    """What sparse gradients need, loaded when the first one is asked for."""
    if scale_grad_by_freq:
        raise RuntimeError(
            f"{name}: scale_grad_by_freq=True cannot go with sparse gradients; use sparse=False"
        )
    from taeda_nn.functional import _sparse_rows

    return _sparse_rows


_BAGS = {"sum": 0, "mean": 1, "max": 2}


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Sums, means or maxima of bags of rows of a table, without the rows in between.

    Args:
        input: Integer indices: bags (B, N) of the same length, or one after the other (N,).
        weight: (rows, features).
        offsets: Where the bags of a one-dimensional ``input`` begin, the first at 0.
        max_norm: Rows used whose norm is greater are rescaled in place first.
        norm_type: The p of that norm.
        scale_grad_by_freq: Whether a row's gradient is divided by how often it was used; not for mode 'max'.
        mode: 'sum', 'mean' or 'max'. Empty bags give zeros.
        sparse: Whether the gradient of ``weight`` is a sparse tensor, of the rows used; not with scale_grad_by_freq.
        per_sample_weights: Factors of the rows, of the shape of ``input``; for mode 'sum'.
        include_last_offset: Whether the last offset is the end of the last bag.
        padding_idx: Row that is left out.

    Returns: (B, features).

    Raises:
        ValueError: Arguments that contradict each other.
        IndexError: An index outside of the table.
    """
    if not (isinstance(input, Tensor) and isinstance(weight, Tensor)):
        raise not_tensors("embedding_bag", input=input, weight=weight)
    if weight.dtype == tensor.int64 and input.is_floating_point():
        warnings.warn(
            "embedding_bag: the indices come before the table now; exchange the first two arguments",
            stacklevel=2,
        )
        input, weight = weight, input
    if per_sample_weights is not None and input.shape != per_sample_weights.shape:
        raise ValueError(
            f"embedding_bag: per_sample_weights of shape {tuple(per_sample_weights.shape)} must have the shape of "
            f"input, {tuple(input.shape)}"
        )
    if weight.dim() != 2:
        raise ValueError(f"embedding_bag: weight has to be a 2D Tensor, got shape {tuple(weight.shape)}")
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "embedding_bag: if input is 2D, then offsets has to be None, as input is then a mini-batch of bags "
                f"of the same length, got offsets {type(offsets).__name__}"
            )
        offsets = tensor.arange(0, input.numel(), input.shape[1], dtype=input.dtype, device=input.device)
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    elif input.dim() != 1:
        raise ValueError(f"embedding_bag: input has to be 1D or 2D Tensor, got {input.dim()} dimensions")
    elif not isinstance(offsets, Tensor):
        raise ValueError("embedding_bag: offsets has to be a 1D Tensor when input is 1D, got none")
    elif offsets.dim() != 1:
        raise ValueError(f"embedding_bag: offsets has to be a 1D Tensor, got {offsets.dim()} dimensions")
    if mode not in tuple(_BAGS):
        raise ValueError(f"embedding_bag: mode has to be one of sum, mean or max, got {mode!r}")
    if mode == "max" and (scale_grad_by_freq or sparse):
        raise ValueError("embedding_bag: max mode does not support scale_grad_by_freq nor sparse weights")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            f"embedding_bag: per_sample_weights is only for mode='sum', got mode={mode!r}"
        )
    if max_norm is not None:
        with no_grad():
            _embedding_renorm_(weight, input, max_norm, norm_type)
    if sparse and tensor.is_grad_enabled() and weight.requires_grad:
        bags = _sparse_rows("embedding_bag", scale_grad_by_freq).Bags
        if padding_idx is not None and not -weight.shape[0] <= padding_idx < weight.shape[0]:
            raise ValueError(
                f"embedding_bag: padding_idx {padding_idx} is out of range for {weight.shape[0]} rows"
            )
        return bags.apply(
            weight, per_sample_weights, input, offsets, _BAGS[mode], include_last_offset, padding_idx
        )
    settings = scale_grad_by_freq, _BAGS[mode], False, per_sample_weights, include_last_offset, padding_idx
    return _embedding_bag(weight, input, offsets, *settings)[0]


def normalize(
    input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """``input`` divided by its p-norm along ``dim``; norms below ``eps`` count as ``eps``.

    Example:
        >>> F.normalize(torch.tensor([[3.0, 4.0]]))
        tensor([[0.6000, 0.8000]])
    """
    if not isinstance(input, Tensor):
        raise not_tensors("normalize", input=input)
    norm = _vector_norm(input, p, dim, True).clamp(min=eps)
    return input / norm if out is None else _div(input, norm, out=out)


def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: Any = None,
) -> Tensor:
    """Products of matrices that belong together, of several sizes.

    Args:
        mat_a: (groups, M, K), or (rows of all groups, K), or (M, K of all groups).
        mat_b: (groups, K, N), or (K, columns of all groups), or (K of all groups, N).
        offs: Where each group ends in the dimension that all groups share; not for two operands of three dimensions.
        bias: Not there yet.
        out_dtype: Of the result, that of the operands unless given.

    Returns: (groups, M, N), (rows, N) or (M, columns), by which of the operands have a dimension for groups.

    Raises:
        RuntimeError: Operands of other dimensions, or `offs` missing.

    Example:
        >>> grouped_mm(taeda.ones(5, 3), taeda.ones(2, 3, 4), offs=taeda.tensor([2, 5])).shape
        Size([5, 4])
    """
    if bias is not None:
        raise NotImplementedError("grouped_mm: argument 'bias' is not there yet; add it to the result")
    dims = mat_a.dim(), mat_b.dim()
    if any(d not in (2, 3) for d in dims):
        raise RuntimeError(
            f"grouped_mm: found shapes {tuple(mat_a.shape)} and {tuple(mat_b.shape)}, expected 2 or 3 dimensions"
        )
    if dims == (3, 3):
        made = mat_a @ mat_b
        return made if out_dtype is None else made.to(out_dtype)
    if offs is None:
        raise RuntimeError("grouped_mm: argument 'offs' must be given where an operand has 2 dimensions")
    ends = offs.tolist()
    spans = list(zip([0, *ends[:-1]], ends, strict=True))
    if dims == (2, 3):
        made = tensor.cat([mat_a[a:b] @ mat_b[i] for i, (a, b) in enumerate(spans)])
    elif dims == (3, 2):
        made = tensor.cat([mat_a[i] @ mat_b[:, a:b] for i, (a, b) in enumerate(spans)], 1)
    else:
        made = tensor.stack([mat_a[:, a:b] @ mat_b[a:b] for a, b in spans])
    return made if out_dtype is None else made.to(out_dtype)
