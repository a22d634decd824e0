"""Batch normalisation over the batches of several processes."""

from __future__ import annotations

from typing import Any

from taeda_nn._bind import Tensor, autograd, no_grad, tensor


class _Sum(autograd.Function):
    """The sum over all processes; so is its gradient."""

    @staticmethod
    def forward(ctx: Any, group: Any, value: Tensor) -> Tensor:
        ctx.group = group
        total = value.detach().clone()
        group.allreduce([total]).wait()
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return None, _Sum.apply(ctx.group, gradient)


def over_processes(module: Any, group: Any, input: Tensor) -> Tensor:
    """Normalise with mean and variance over all processes, and renew the module's running statistics.

    Sums are formed in float32 at least; the variance is that of deviations from the common mean.

    Raises:
        ValueError: All processes together have one value of each channel.
    """
    dims = [d for d in range(input.dim()) if d != 1]
    wide = input if input.dtype == tensor.float64 else input.float()
    number = tensor.tensor([float(input.numel() // input.shape[1])], dtype=tensor.float64)
    group.allreduce([number]).wait()
    count = int(number)
    if count <= 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {list(input.shape)}"
        )
    shape = [1, -1] + [1] * (input.dim() - 2)
    mean = _Sum.apply(group, wide.sum(dims)) / count
    apart = wide - mean.view(shape)
    var = _Sum.apply(group, (apart * apart).sum(dims)) / count
    result = apart * ((var + module.eps) ** -0.5).view(shape)
    if module.weight is not None:
        result = result * module.weight.view(shape)
    if module.bias is not None:
        result = result + module.bias.view(shape)
    if module.track_running_stats:
        _renew(module, mean, var * (count / (count - 1)))
    return result.to(input.dtype)


def _renew(module: Any, mean: Tensor, var: Tensor) -> None:
    with no_grad():
        momentum = module.momentum
        if module.num_batches_tracked is not None:
            module.num_batches_tracked.add_(1)
            if momentum is None:
                momentum = 1.0 / float(module.num_batches_tracked)
        for old, new in ((module.running_mean, mean), (module.running_var, var)):
            if old is not None:
                old.mul_(1 - momentum).add_(new.detach().to(old.dtype), alpha=momentum)
