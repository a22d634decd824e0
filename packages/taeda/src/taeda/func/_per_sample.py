"""Gradients of parameters for each example of a batch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from taeda.func._modules import functional_call
from taeda.func._vmap import vmap
from taeda.utils._pytree import tree_flatten, tree_map, tree_unflatten
from taeda_registry.slots import autograd, tensor

__all__ = ["call_for_per_sample_grads"]


class _EveryExample(autograd.Function):
    """A parameter once for each example, whose gradient becomes `grad_sample` of the parameter."""

    @staticmethod
    def forward(ctx: Any, parameter: Any, size: int, scale: int) -> Any:
        ctx.parameter, ctx.scale = parameter, scale
        return parameter.expand(size, *parameter.shape)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        found = gradient * ctx.scale
        before = getattr(ctx.parameter, "grad_sample", None)
        ctx.parameter.grad_sample = found if before is None else before + found
        return None, None, None


def call_for_per_sample_grads(
    module: Any, *, batch_size: int | None = None, loss_reduction: str = "sum", batch_first: bool = True
) -> Callable:
    """The module's call, after whose backward pass parameters have `grad_sample`, their gradients for each example.

    Args:
        module: Treats the examples of a batch apart from each other. batch_size: Read off the arguments by default.
        loss_reduction: "sum" or "mean", how the loss puts the examples together.
        batch_first: Whether the examples stand in the first dimension of arguments and results, or in the second.

    Returns: A function with the arguments of the module; `grad` of the parameters stays as it was, `grad_sample` has
        shape (examples, *shape of the parameter), and is added to.

    Raises:
        RuntimeError: Another `loss_reduction`, or arguments that do not fit. TypeError: No module, or no such size.

    Source: the interface is that of `torch.nn.utils._per_sample_grad`.

    Example:
        >>> from taeda.nn.utils._per_sample_grad import call_for_per_sample_grads
        >>> layer = taeda.nn.Linear(2, 1)
        >>> call_for_per_sample_grads(layer)(taeda.ones(3, 2)).sum().backward()
        >>> layer.weight.grad_sample.shape
        Size([3, 1, 2])
    """
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(
            f"call_for_per_sample_grads: argument 'loss_reduction' is {loss_reduction!r}, expected 'sum' or 'mean'"
        )
    if not (batch_size is None or (isinstance(batch_size, int) and batch_size > 0)):
        raise TypeError(
            f"call_for_per_sample_grads: argument 'batch_size' is {batch_size!r}, expected None or at least 1"
        )
    place = 0 if batch_first else 1

    @functools.wraps(module.forward)
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree_flatten((args, kwargs))
        dims = [place if isinstance(v, tensor.Tensor) and v.dim() > place else None for v in leaves]
        sizes = {v.shape[place] for v, dim in zip(leaves, dims, strict=True) if dim is not None}
        if len(sizes) != 1 or (batch_size is not None and sizes != {batch_size}):
            raise RuntimeError(
                f"call_for_per_sample_grads: arguments have batches of sizes {sorted(sizes)}, "
                f"expected {batch_size or 'one size'}"
            )
        (size,) = sizes
        scale = size if loss_reduction == "mean" else 1
        parameters = {
            name: _EveryExample.apply(parameter, size, scale)
            for name, parameter in module.named_parameters()
            if parameter.requires_grad
        }

        def one(parameters: Any, *values: Any) -> Any:
            whole = [v if dim is None else v.unsqueeze(place) for v, dim in zip(values, dims, strict=True)]
            given, named = tree_unflatten(whole, spec)
            return tree_map(lambda t: t.squeeze(place), functional_call(module, parameters, given, named))

        return vmap(one, in_dims=(0, *dims), out_dims=place, randomness="different")(parameters, *leaves)

    return call
