"""Operators that PyTorch does not have, or has as several, in those that classes with `__torch_dispatch__` answer for.

A class of a program knows PyTorch's operators: what stands for a layer or a loss as one operator here is told to it in
the operators that PyTorch computes it with, in the forward pass and in the backward pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taeda_tensor_core import _C
from taeda_tensor_core._C import Tensor
from taeda_tensor_core.library._aten_forms import aten_name


def linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """A layer in the operators that PyTorch's modes see of it.

    Of functions alone: classes have attributes of their own, which may be named like methods.
    """
    rows = input if input.ndim == 2 else _C.reshape(input, (-1, input.shape[-1]))
    if weight.ndim == 1:  # one number for each row
        made = _C.mv(rows, weight) if bias is None else _C.add(_C.mv(rows, weight), bias)
        return Tensor.view(made, input.shape[:-1])
    turned = _C.t(weight)
    made = _C.mm(rows, turned) if bias is None else _C.addmm(bias, rows, turned)
    return made if input.ndim == 2 else Tensor.view(made, (*input.shape[:-1], weight.shape[0]))


def _max_pool2d_with_offsets(*args: Any) -> tuple:
    values, offsets = _C._decomposed("max_pool2d_with_offsets", args)
    return values, offsets.to(_C.uint8)


#: Operators that have a form of their own here: PyTorch's classes are not asked for them, but for these parts.
_WHOLE: dict[str, Callable[..., Any]] = {
    "max_pool2d_with_offsets": _max_pool2d_with_offsets,
}
#: PyTorch's too, but told in parts: the gradient of a linear layer, and what steps of optimizers consist of.
_IN_PARTS = ("linear_backward", "_fused_sgd_", "_fused_adam_")


def taken_apart(op: Any, for_classes: bool = True) -> Callable[..., Any] | None:
    """A function that computes an operator in others; None where classes, or modes alone, are asked for it itself."""
    if not for_classes and op.name != "linear_backward":
        return None
    if (found := _WHOLE.get(op.name)) is not None:
        return found
    ours = aten_name(op.name)[0] == "taeda" and op.name not in _RENAMED
    if (ours or op.name in _IN_PARTS) and _C._is_in_parts(op.name):
        return lambda *args, **kwargs: _C._decomposed(op.name, _in_order(op, args, kwargs))
    return None


def _in_order(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    rest = (kwargs.get(a.name, a.default) for a in op.arguments[len(args) :])
    return (*args, *rest)


# --- other names ---


def _wanted(output_mask: int) -> list[bool]:
    return [bool(output_mask >> i & 1) for i in range(3)]


def _softmax_backward(grad: Tensor, output: Tensor, dim: int) -> tuple[str, tuple[Any, ...]]:
    return "_softmax_backward_data", (grad, output, dim, output.dtype)


def _log_softmax_backward(grad: Tensor, output: Tensor, dim: int) -> tuple[str, tuple[Any, ...]]:
    return "_log_softmax_backward_data", (grad, output, dim, output.dtype)


def _layer_norm_backward(
    grad: Tensor, input: Tensor, normalized_shape: Any, mean: Tensor, rstd: Tensor, weight: Tensor | None = None,
    output_mask: int = 7,
) -> tuple[str, tuple[Any, ...]]:  # fmt: skip
    args = (grad, input, list(normalized_shape), mean, rstd, weight, None, _wanted(output_mask))
    return "native_layer_norm_backward", args


def _convolution_backward(
    grad: Tensor, input: Tensor, weight: Tensor, stride: Any, padding: Any, dilation: Any, groups: int,
    output_mask: int = 7,
) -> tuple[str, tuple[Any, ...]]:  # fmt: skip
    rank = weight.ndim - 2  # the input may be without a batch
    each = (list(given) * (rank if len(given) == 1 else 1) for given in (stride, padding, dilation))
    biases = [weight.shape[0]] if output_mask & 4 else None
    return "convolution_backward", (
        grad, input, weight, biases, *each, False, [0] * rank, groups, _wanted(output_mask),
    )  # fmt: skip


def _group_norm_backward(
    grad: Tensor, input: Tensor, num_groups: int, mean: Tensor, rstd: Tensor, weight: Tensor | None,
    output_mask: int = 7,
) -> tuple[str, tuple[Any, ...]]:  # fmt: skip
    samples, channels = input.shape[:2]
    places = input.numel() // max(1, samples * channels)
    return "native_group_norm_backward", (
        grad, input, mean, rstd, weight, samples, channels, places, num_groups, _wanted(output_mask),
    )  # fmt: skip


def _embedding_backward(*args: Any) -> tuple[str, tuple[Any, ...]]:
    return "embedding_dense_backward", args


_RENAMED: dict[str, Callable[..., tuple[str, tuple[Any, ...]]]] = {
    "softmax_backward": _softmax_backward,
    "log_softmax_backward": _log_softmax_backward,
    "layer_norm_backward": _layer_norm_backward,
    "group_norm_backward": _group_norm_backward,
    "embedding_backward": _embedding_backward,
    "conv2d_backward": _convolution_backward,
    "conv3d_backward": _convolution_backward,
}


def as_theirs(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, tuple[Any, ...]] | None:
    """PyTorch's function for an operator that has another name here, and its arguments; None for others."""
    from taeda_tensor_core import ops

    if (rule := _RENAMED.get(name)) is None:
        return None
    theirs, given = rule(*args, **kwargs)
    return getattr(ops.aten, theirs).default, given
