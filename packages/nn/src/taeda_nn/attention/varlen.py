"""Attention of sequences of several lengths that lie one after the other in one tensor."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from taeda_nn._bind import Tensor, tensor

__all__ = ["AuxRequest", "varlen_attn"]


class AuxRequest(NamedTuple):
    """What is asked for beside the result."""

    lse: bool = False


def varlen_attn(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor | None,
    max_q: int,
    max_k: int,
    *,
    return_aux: AuxRequest | None = None,
    scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    seqused_k: Tensor | None = None,
    block_table: Tensor | None = None,
    num_splits: int | None = None,
) -> Any:
    """Attention of each query to the keys of its own sequence, computed sequence by sequence.

    Args:
        query: (tokens, heads, width).
        key, value: (tokens, heads, width); with ``enable_gqa`` heads may be fewer.
        cu_seq_q: (sequences + 1,) places where the sequences of queries begin, and where the last ends.
        cu_seq_k: The same of keys; None for those of queries.
        max_q, max_k: The longest sequences; not needed here.
        scale: Factor of the scores; None for 1 / sqrt(width).
        window_size: Keys before and after a query's own place that it sees, counted from the ends of both sequences;
            -1 for all. (-1, 0) is causal.
        seqused_k: (sequences,) numbers of keys that count; None for all.
        num_splits: Accepted for PyTorch's sake.

    Returns: (tokens, heads, width), and where ``return_aux.lse`` is set the logarithms (heads, tokens) of the sums.

    Raises:
        NotImplementedError: ``block_table`` is given.

    Example:
        >>> q = taeda.ones(5, 2, 4)
        >>> ends = taeda.tensor([0, 2, 5])
        >>> taeda.nn.attention.varlen.varlen_attn(q, q, q, ends, ends, 3, 3).shape
        Size([5, 2, 4])
    """
    if block_table is not None:
        raise NotImplementedError("varlen_attn: 'block_table': keys in pages are not read")
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    starts_q = cu_seq_q.tolist()
    starts_k = starts_q if cu_seq_k is None else cu_seq_k.tolist()
    results, sums = [], []
    for i in range(len(starts_q) - 1):
        begin, end = starts_k[i], starts_k[i + 1]
        if seqused_k is not None:
            end = begin + int(seqused_k[i])
        q = query[starts_q[i] : starts_q[i + 1]].transpose(0, 1)
        k, v = key[begin:end].transpose(0, 1), value[begin:end].transpose(0, 1)
        if enable_gqa and k.shape[0] != q.shape[0]:
            groups = q.shape[0] // k.shape[0]
            k, v = k.repeat_interleave(groups, 0), v.repeat_interleave(groups, 0)
        scores = (q @ k.transpose(1, 2)) * factor
        hidden = _hidden(q.shape[1], k.shape[1], window_size, query.device)
        if hidden is not None:
            scores = scores.masked_fill(hidden, -math.inf)
        most = scores.detach().amax(-1, keepdim=True)
        most = most.masked_fill(most == -math.inf, 0.0)
        weights = (scores - most).exp()
        total = weights.sum(-1, keepdim=True)
        # A query that sees nothing has no weights, and the result zero.
        results.append((weights @ v / total.masked_fill(total == 0, 1.0)).transpose(0, 1))
        sums.append((most + total.log()).squeeze(-1))
    out = tensor.cat(results)
    return (out, tensor.cat(sums, 1)) if return_aux is not None and return_aux.lse else out


def _hidden(queries: int, keys: int, window: tuple[int, int], device: Any) -> Tensor | None:
    """Which keys a window hides from which queries; None for none."""
    left, right = window
    if left < 0 and right < 0:
        return None
    own = tensor.arange(queries, device=device).unsqueeze(1) + (keys - queries)
    places = tensor.arange(keys, device=device)
    hidden = tensor.zeros((queries, keys), dtype=tensor.bool, device=device)
    if left >= 0:
        hidden = hidden | (places < own - left)
    return hidden | (places > own + right) if right >= 0 else hidden
