"""The cross-entropy of a linear map in pieces of the batch: the scores of one piece exist at a time."""

from __future__ import annotations

from typing import Any

from taeda_nn._bind import Tensor, autograd, no_grad, op

_linear = op("linear")
_forward = op("cross_entropy_forward")
_backward = op("cross_entropy_backward")

NONE, MEAN, SUM = 0, 1, 2


def _rows_of_piece(samples: int, features: int, classes: int, given: int | None) -> int:
    """As asked for; else so many that the scores of a piece take about the memory of the input, 16 rows at least."""
    if given is not None:
        return min(given, samples)
    return max(16, min(samples, samples * features // max(classes, 1)))


class _Chunked(autograd.Function):
    """Losses of all samples by piece; backward computes the scores again."""

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, weight: Tensor, bias: Any, target: Tensor, classes: Any, settings: Any
    ) -> Tensor:
        step, ignore_index = settings
        losses = rows.new_empty(rows.shape[0])
        for at in range(0, rows.shape[0], step):
            scores = _linear(rows[at : at + step], weight, bias)
            losses[at : at + step] = _forward(
                scores, target[at : at + step], classes, NONE, ignore_index, 0.0
            )[0]
        ctx.save_for_backward(rows, weight, bias, target, classes)
        ctx.settings = settings
        return losses

    @staticmethod
    @autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        rows, weight, bias, target, classes = ctx.saved_tensors
        step, ignore_index = ctx.settings
        wanted = ctx.needs_input_grad
        to_rows = rows.new_empty(rows.shape) if wanted[0] else None
        to_weight = weight.new_zeros(weight.shape) if wanted[1] else None
        to_bias = bias.new_zeros(bias.shape) if bias is not None and wanted[2] else None
        for at in range(0, rows.shape[0], step):
            part, chosen = rows[at : at + step], target[at : at + step]
            scores = _linear(part, weight, bias)
            _, sums, total = _forward(scores, chosen, classes, NONE, ignore_index, 0.0)
            to_scores = _backward(
                grad[at : at + step], scores, chosen, classes, NONE, ignore_index, 0.0, sums, total
            )
            if to_rows is not None:
                to_rows[at : at + step] = to_scores @ weight
            if to_weight is not None:
                to_weight += to_scores.t() @ part
            if to_bias is not None:
                to_bias += to_scores.sum(0)
        return to_rows, to_weight, to_bias, None, None, None


def chunked_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    linear_bias: Tensor | None,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    options: Any,
) -> Tensor:
    """As ``linear_cross_entropy``, whose arguments have been checked, for targets of class indices."""
    single = input.dim() == 1
    rows, chosen = (input.unsqueeze(0), target.unsqueeze(0)) if single else (input, target)
    step = _rows_of_piece(*rows.shape, linear_weight.shape[0], options.batch_chunk_size)
    losses = _Chunked.apply(rows, linear_weight, linear_bias, chosen, weight, (max(step, 1), ignore_index))
    if reduction == NONE:
        return losses.squeeze(0) if single else losses
    if reduction == SUM:
        return losses.sum()
    with no_grad():
        counted = chosen != ignore_index
        total = counted.sum() if weight is None else weight[chosen.masked_fill(~counted, 0)][counted].sum()
    return losses.sum() / total
