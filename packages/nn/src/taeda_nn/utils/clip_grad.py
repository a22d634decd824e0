"""Limiting gradients."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from types import GeneratorType
from typing import Any

from taeda_nn._bind import Tensor, no_grad, tensor

#: Names under which programs written for PyTorch look for these.
_tensor_or_tensors = Tensor | Iterable[Tensor]


def _no_grad(func: Callable[..., Any]) -> Callable[..., Any]:
    """A function that records no gradients."""
    return no_grad()(func)


def _gradients(parameters: Any) -> list[Tensor]:
    parameters = [parameters] if isinstance(parameters, Tensor) else parameters
    return [p.grad for p in parameters if p.grad is not None]


def _total_length(tensors: list[Tensor]) -> Tensor:
    """Root of the sum of all squares, of each tensor in one pass where the provider has that."""
    norm = getattr(getattr(tensor, "linalg", None), "vector_norm", _root_of_squares)
    lengths = [_root_of_squares(t) if getattr(t, "is_sparse", False) else norm(t) for t in tensors]
    return norm(tensor.stack(lengths))


def _root_of_squares(t: Tensor) -> Tensor:
    return (t.abs().square() if t.is_complex() else t * t).sum().sqrt()


def get_total_norm(
    tensors: Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Returns the norm of all tensors taken as one vector, a tensor without dimensions.

    Of order 0 it is the number of tensors with an element that is not 0, of orders inf and -inf the largest and the
    smallest absolute value.

    Raises:
        RuntimeError: The norm is not finite and ``error_if_nonfinite`` is set.
    """
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return tensor.tensor(0.0)
    with no_grad():
        if norm_type == math.inf:
            total = tensor.stack([t.abs().max() for t in tensors]).max()
        elif norm_type == -math.inf:
            total = tensor.stack([t.abs().min() for t in tensors]).min()
        elif norm_type == 0.0:  # how many are not zero: PyTorch counts tensors
            counts = tensor.stack([(t != 0).any() for t in tensors])
            total = counts.sum().to(dtype=tensors[0].abs().dtype)
        elif norm_type == 2.0:
            total = _total_length(tensors)
        else:
            total = tensor.stack([t.abs().pow(norm_type).sum() for t in tensors]).sum().pow(1.0 / norm_type)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(
            f"get_total_norm: The total norm of order {norm_type} for gradients is non-finite, so it cannot be "
            f"clipped: found {total.item()}"
        )
    return total


def clip_grads_with_norm_(
    parameters: Any, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scales gradients in place by ``max_norm / total_norm`` where that is below 1."""
    _shorten(_gradients(parameters), max_norm, total_norm)


def _shorten(grads: list[Tensor], max_norm: float, total_norm: Tensor) -> None:
    with no_grad():
        scale = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for grad in grads:
            if not (getattr(grad, "is_sparse", False) or grad.is_contiguous()) and 0 in grad.stride():
                grad.mul_(1)  # one with repeated elements is refused before another is changed
        for grad in reversed(grads):  # those that the norm read last are in the cache still
            grad.mul_(scale)


def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales all gradients in place so that their norm, as one vector, is at most ``max_norm``.

    Returns: the norm before.

    Example:
        >>> nn.utils.clip_grad_norm_(model.parameters(), 1.0)

    Source: Pascanu et al., "On the difficulty of training recurrent neural networks", 2013.
    """
    if isinstance(parameters, GeneratorType):
        parameters = list(parameters)
        if not parameters:
            warnings.warn(
                "`parameters` is an empty generator, which may have been gone through before; no gradient is clipped",
                stacklevel=2,
            )
    grads = _gradients(parameters)
    total = get_total_norm(grads, norm_type, error_if_nonfinite)
    _shorten(grads, max_norm, total)
    return total


def clip_grad_norm(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Deprecated name of ``clip_grad_norm_``."""
    warnings.warn("clip_grad_norm is deprecated: use clip_grad_norm_", FutureWarning, stacklevel=2)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Limits every gradient's elements in place to [-clip_value, clip_value].

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> (x * torch.tensor([3.0, 0.5])).sum().backward()
        >>> nn.utils.clip_grad_value_([x], 1.0)
        >>> x.grad
        tensor([1.0000, 0.5000])
    """
    limit = float(clip_value)
    with no_grad():
        for grad in _gradients(parameters):
            grad.clamp_(-limit, limit)
