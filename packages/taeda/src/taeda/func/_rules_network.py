"""Rules of vmap: layers of networks and losses."""

from __future__ import annotations

import math
from typing import Any

from taeda.func._batching import changed, rule, tensors_of
from taeda.func._levels import Batching
from taeda.func._rules import padded
from taeda_registry.slots import tensor

Tensor = tensor.Tensor


def _folded(whole: Any) -> Any:
    """The batch and the first dimension as one."""
    return whole.flatten(0, 1)


def _unfolded(level: Batching, made: Any) -> Any:
    return changed(made, lambda t: t.unflatten(0, (level.size, t.shape[0] // max(level.size, 1))))


# Operators whose first dimension is a batch of their own: both are made one. Some take an example without it.
_SAMPLES = {
    "adaptive_avg_pool2d": 4, "adaptive_avg_pool2d_backward": 4, "adaptive_max_pool2d": 4,
    "adaptive_max_pool2d_backward": 4, "avg_pool2d": 4, "avg_pool2d_backward": 4, "max_pool2d_backward": 4,
    "max_pool2d_pick": 4, "max_pool2d_with_indices": 4, "max_pool2d_with_indices_backward": 4,
    "max_pool2d_with_offsets": 4, "col2im": 3, "im2col": 4, "resample": 0, "resample_backward": 0, "grid_sampler": 0,
    "lstm_gates": 0, "lstm_gates_backward": 0, "gru_gates": 0, "gru_gates_backward": 0, "fused_attention": 0,
    "fused_attention_backward": 0,
}  # fmt: skip


@rule(*_SAMPLES)
def _samples(level: Batching, op: Any, *args: Any, **kwargs: Any) -> Any:
    single = args[0] is not None and args[0].dim() == _SAMPLES[op.name] - 1
    if single:
        return op(*changed(args, level.expanded), **kwargs)
    if any(not t.dim() for t in tensors_of(args)):
        return NotImplemented
    return _unfolded(level, op(*changed(args, lambda t: _folded(level.expanded(t))), **kwargs))


# Convolutions


@rule("conv2d", "conv3d")
def _convolution(
    level: Batching, op: Any, input: Any, weight: Any, bias: Any = None, stride: Any = (1,), padding: Any = (0,),
    dilation: Any = (1,), groups: int = 1,
) -> Any:  # fmt: skip
    x, w = level.whole(input), level.whole(weight)
    b = None if bias is None else level.whole(bias)
    options = stride, padding, dilation
    if input.dim() < weight.dim():  # one image, without a dimension for the others
        made = _convolution(level, op, _batch_of_one(level, input), weight, bias, *options, groups)
        return made.squeeze(1)
    if w is None:
        made = (
            _unfolded(level, op(_folded(x), weight, bias if b is None else None, *options, groups))
            if x is not None
            else None
        )
        if made is None:  # the bias alone has a batch
            made = op(input, weight, None, *options, groups).unsqueeze(0)
        return made if b is None else made + b.reshape(level.size, 1, -1, *[1] * (weight.dim() - 2))
    count, size = level.size, weight.shape[0]
    kernels = w.reshape(-1, *w.shape[2:])
    biases = None if bias is None else level.expanded(bias).reshape(-1)
    if x is None and groups == 1:
        made = op(input, kernels, biases, *options, 1)
    else:
        whole = level.expanded(input).transpose(0, 1)
        planes = whole.flatten(1, 2)
        made = op(planes, kernels, biases, *options, count * groups)
    return made.reshape(made.shape[0], count, size, *made.shape[2:]).transpose(0, 1)


def _batch_of_one(level: Batching, input: Any) -> Any:
    found = level.whole(input)
    return input.unsqueeze(0) if found is None else level.batch(found.unsqueeze(1))


@rule("conv2d_backward", "conv3d_backward")
def _convolution_backward(
    level: Batching, op: Any, grad: Any, input: Any, weight: Any, stride: Any, padding: Any, dilation: Any, groups: int,
    output_mask: int = 7,
) -> Any:  # fmt: skip
    if level.whole(weight) is not None or output_mask & 6 or input.dim() < weight.dim():
        return NotImplemented  # sums over the batch must stay apart
    g, x = _folded(level.expanded(grad)), _folded(level.expanded(input))
    found = op(g, x, weight, stride, padding, dilation, groups, output_mask)[0]
    return _unfolded(level, found), None, None


# Normalisation


def _scaled(level: Batching, made: Any, weight: Any, bias: Any, shape: Any) -> Any:
    """A normalised result times `weight` plus `bias`, whose sizes in the result are `shape`."""
    for parameter, combine in ((weight, tensor.mul), (bias, tensor.add)):
        if parameter is not None:
            found = level.whole(parameter)
            made = combine(
                made, parameter.reshape(shape) if found is None else found.reshape(level.size, *shape)
            )
    return made


def _has_batch(level: Batching, *operands: Any) -> bool:
    return any(t is not None and level.whole(t) is not None for t in operands)


@rule("native_layer_norm")
def _layer_norm(level: Batching, op: Any, input: Any, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    whole = level.expanded(input)
    if not _has_batch(level, weight, bias):
        return op(whole, shape, weight, bias, eps)
    made, mean, rstd = op(whole, shape, None, None, eps)
    sizes = [1] * (input.dim() - len(shape)) + list(shape)
    return _scaled(level, made, weight, bias, sizes), mean, rstd


@rule("native_group_norm")
def _group_norm(level: Batching, op: Any, input: Any, groups: int, weight: Any, bias: Any, eps: float) -> Any:
    whole = _folded(level.expanded(input))
    if not _has_batch(level, weight, bias):
        return _unfolded(level, op(whole, groups, weight, bias, eps))
    made, mean, rstd = _unfolded(level, op(whole, groups, None, None, eps))
    sizes = [1, -1] + [1] * (input.dim() - 2)
    return _scaled(level, made, weight, bias, sizes), mean, rstd


@rule("native_batch_norm")
def _batch_norm(
    level: Batching, op: Any, input: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float,
    eps: float,
) -> Any:  # fmt: skip
    """The channels of all examples are channels of one batch."""
    for name, running in (("running_mean", mean), ("running_var", var)):
        if training and running is not None and level.whole(running) is None:
            raise RuntimeError(
                f"vmap: batch_norm writes statistics of the batch into {name}, which all examples share; use "
                "track_running_stats=False, or taeda.func.replace_all_batch_norm_modules_"
            )
    whole = level.expanded(input).transpose(0, 1)
    planes = whole.flatten(1, 2)
    statistics = [None if t is None else level.expanded(t).reshape(-1) for t in (mean, var)]
    made, save_mean, save_invstd = op(planes, None, None, *statistics, training, momentum, eps)
    made = made.reshape(whole.shape).transpose(0, 1)
    sizes = [1, -1] + [1] * (input.dim() - 2)
    saved = (t.reshape(level.size, -1) for t in (save_mean, save_invstd))
    return (_scaled(level, made, weight, bias, sizes), *saved)


@rule("native_dropout_backward")
def _dropout_backward(level: Batching, op: Any, grad: Any, mask: Any, scale: float) -> Any:
    return op(level.expanded(grad), level.expanded(mask), scale)


# Losses


def _reduced(level: Batching, made: Any, reduction: int) -> Any:
    if reduction == 0:
        return made
    flat = made.reshape(level.size, -1)
    return flat.mean(1) if reduction == 1 else flat.sum(1)


def _of_one_shape(
    level: Batching, input: Any, target: Any, rest: tuple[Any, ...]
) -> tuple[Any, Any, list[Any]]:
    """Both operands with the batch, as losses want them, of which one may have been the same for all; and weights."""
    dims = max(input.dim(), target.dim())
    wholes = ((t, level.whole(t)) for t in tensors_of(list(rest)))
    ready = iter([t if whole is None else padded(whole, dims) for t, whole in wholes])
    x, y = (padded(level.expanded(t), dims) for t in (input, target))
    return x, y, changed(list(rest), lambda _: next(ready))


@rule("bce_loss", "bce_with_logits_loss", "huber_loss", "l1_loss", "mse_loss", "smooth_l1_loss")
def _loss(level: Batching, op: Any, input: Any, target: Any, reduction: int = 1, *rest: Any) -> Any:
    x, y, rest = _of_one_shape(level, input, target, rest)
    return _reduced(level, op(x, y, 0, *rest), reduction)


@rule(
    "bce_loss_backward", "bce_with_logits_loss_backward", "huber_loss_backward", "l1_loss_backward",
    "mse_loss_backward", "smooth_l1_loss_backward",
)  # fmt: skip
def _loss_backward(
    level: Batching, op: Any, grad: Any, input: Any, target: Any, reduction: int, *rest: Any
) -> Any:
    x, y, rest = _of_one_shape(level, input, target, rest)
    g = padded(level.expanded(grad), x.dim() - 1)
    shape = tensor.broadcast_shapes(g.shape, x.shape, y.shape)
    g, x, y = (t.expand(shape) for t in (g, x, y))
    scale = math.prod(shape[1:]) if reduction == 1 else 1
    return op(g / scale if scale != 1 else g, x, y, 0, *rest)


@rule("nll_loss_forward")
def _nll_loss(
    level: Batching, op: Any, input: Any, target: Any, weight: Any, reduction: int, ignore_index: int
) -> Any:
    if _has_batch(level, weight):
        return NotImplemented
    made = op(*_scores(level, input, target), weight, 0, ignore_index)[0]
    return _mean_loss(level, made, target, weight, reduction, ignore_index)


@rule("cross_entropy_forward")
def _cross_entropy(
    level: Batching,
    op: Any,
    input: Any,
    target: Any,
    weight: Any,
    reduction: int,
    ignore_index: int,
    smoothing: float,
) -> Any:
    if _has_batch(level, weight) or target.is_floating_point():
        return NotImplemented
    made, sums, _ = op(*_scores(level, input, target), weight, 0, ignore_index, smoothing)
    sums = sums.reshape(level.size, *target.shape) if sums.numel() == made.numel() else sums
    loss, total = _mean_loss(level, made, target, weight, reduction, ignore_index)
    return loss, sums, total


def _scores(level: Batching, input: Any, target: Any) -> tuple[Any, Any]:
    x, y = level.expanded(input), level.expanded(target)
    return (x, y) if input.dim() == 1 else (_folded(x), _folded(y))


def _mean_loss(
    level: Batching, made: Any, target: Any, weight: Any, reduction: int, ignore_index: int
) -> tuple[Any, Any]:
    """Losses of the batch's examples by those of their elements, and the weights of these together."""
    places = level.expanded(target)
    counted = (places != ignore_index).to(made.dtype)
    if weight is not None:
        counted = counted * weight[places.clamp(0, weight.shape[0] - 1)]
    total = counted.reshape(level.size, -1).sum(1)
    made = made.reshape(places.shape)
    if reduction == 0:
        return made, total
    sums = made.reshape(level.size, -1).sum(1)
    return (sums / total if reduction == 1 else sums), total
