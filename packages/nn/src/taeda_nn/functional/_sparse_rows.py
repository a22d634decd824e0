"""Rows of a table whose gradient is a sparse tensor: it holds the rows that were used, and nothing else."""

from __future__ import annotations

from typing import Any

from taeda_nn._bind import autograd, op, tensor

_embedding = op("embedding")
_embedding_bag = op("embedding_bag")


def _gradient(places: Any, values: Any, shape: tuple[int, ...], left_out: int | None) -> Any:
    """A sparse tensor of rows, without those of `left_out`."""
    if left_out is not None:
        kept = places != left_out
        places, values = places[kept], values[kept]
    make = getattr(tensor, "sparse_coo_tensor", None)
    if make is None:
        raise NotImplementedError("embedding: the provider of tensors has no sparse ones; use sparse=False")
    return make(places.unsqueeze(0), values, shape)


class Rows(autograd.Function):
    """`embedding` with the gradient of the table as a sparse tensor; second derivatives are not defined."""

    @staticmethod
    def forward(ctx: Any, weight: Any, indices: Any, padding_idx: int) -> Any:
        ctx.places, ctx.shape = indices.detach().reshape(-1), tuple(weight.shape)
        ctx.left_out = padding_idx if padding_idx >= 0 else None
        return _embedding(weight, indices, padding_idx, False, False)

    @staticmethod
    @autograd.function.once_differentiable
    def backward(ctx: Any, grad: Any) -> Any:
        values = grad.reshape(ctx.places.numel(), ctx.shape[1])
        return _gradient(ctx.places, values, ctx.shape, ctx.left_out), None, None


class Bags(autograd.Function):
    """`embedding_bag` of sums and means with the gradient of the table as a sparse tensor."""

    @staticmethod
    def forward(
        ctx: Any,
        weight: Any,
        factors: Any,
        indices: Any,
        offsets: Any,
        mode: int,
        last: bool,
        padding_idx: Any,
    ) -> Any:
        result, bags, sizes, _ = _embedding_bag(
            weight, indices, offsets, False, mode, False, factors, last, padding_idx
        )
        ctx.save_for_backward(weight, factors)
        ctx.facts = indices.detach(), bags, sizes if mode else None, tuple(weight.shape)
        ctx.left_out = None if padding_idx is None else padding_idx % weight.shape[0]
        return result

    @staticmethod
    @autograd.function.once_differentiable
    def backward(ctx: Any, grad: Any) -> Any:
        weight, factors = ctx.saved_tensors
        indices, bags, sizes, shape = ctx.facts
        rows = grad.index_select(0, bags)
        of_weight = of_factors = None
        if ctx.needs_input_grad[0]:
            values = rows if factors is None else rows * factors.unsqueeze(1)
            if sizes is not None:
                values = values / sizes.clamp(min=1).index_select(0, bags).unsqueeze(1).to(values.dtype)
            of_weight = _gradient(indices, values, shape, ctx.left_out)
        if factors is not None and ctx.needs_input_grad[1]:
            of_factors = (rows * weight.index_select(0, indices)).sum(1)
            if ctx.left_out is not None:
                of_factors = of_factors.masked_fill(indices == ctx.left_out, 0)
        return of_weight, of_factors, None, None, None, None, None
