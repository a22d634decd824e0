"""Small parts that the distributions share."""

from __future__ import annotations

import functools
import math
import numbers
from typing import Any

from taeda_registry.slots import tensor

EULER = 0.57721566490153286060
HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def broadcast_all(*values: Any) -> tuple[Any, ...]:
    """Numbers and tensors as tensors of one shape; numbers take dtype and device of the first tensor.

    Raises:
        ValueError: Something else.
    """
    for value in values:
        if not isinstance(value, numbers.Number | tensor.Tensor) and not hasattr(value, "__torch_function__"):
            raise ValueError(
                f"Input arguments must all be instances of Number, Tensor or objects implementing __torch_function__, "
                f"found {type(value).__name__}."
            )
    tensors = [value for value in values if isinstance(value, tensor.Tensor)]
    kind = {"dtype": tensor.get_default_dtype()}
    if tensors:
        kind = {"dtype": tensors[0].dtype, "device": tensors[0].device}
    made = [value if isinstance(value, tensor.Tensor) else tensor.tensor(value, **kind) for value in values]
    return tuple(tensor.broadcast_tensors(*made))


def batch_of(shape: Any) -> Any:
    """A shape of the tensor slot."""
    return tensor.Size(shape)


def zeros_of(shape: Any, like: Any) -> Any:
    """Zeros of a shape, with the dtype and device of a tensor."""
    return tensor.zeros(tuple(shape), dtype=like.dtype, device=like.device)


def standard_normal(shape: Any, dtype: Any, device: Any) -> Any:
    """Standard normal samples."""
    return tensor.randn(tuple(shape), dtype=dtype, device=device)


_standard_normal = standard_normal


def sum_rightmost(value: Any, dim: int) -> Any:
    """Sum over the last `dim` dimensions."""
    if dim == 0:
        return value
    return value.flatten(max(0, value.dim() - dim)).sum(-1)


_sum_rightmost = sum_rightmost


def clamp_probs(probs: Any) -> Any:
    """Probabilities away from 0 and 1 by the dtype's eps."""
    eps = tensor.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def softplus(x: Any) -> Any:
    """log(1 + exp(x)), without overflow."""
    return x.clamp(min=0) + (-x.abs()).exp().log1p()


def logits_to_probs(logits: Any, is_binary: bool = False) -> Any:
    """Probabilities of logits: of each alone, or of the last dimension together."""
    return tensor.sigmoid(logits) if is_binary else tensor.softmax(logits, dim=-1)


def probs_to_logits(probs: Any, is_binary: bool = False) -> Any:
    """Logits of probabilities."""
    inside = clamp_probs(probs)
    return inside.log() - (-inside).log1p() if is_binary else inside.log()


class lazy_property:
    """An attribute that is computed when it is first asked for.

    Args:
        wrapped: The method that computes it.
    """

    def __init__(self, wrapped: Any) -> None:
        self.wrapped = wrapped
        functools.update_wrapper(self, wrapped)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return LazyOfClass(self.wrapped)
        with tensor.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class LazyOfClass(property):
    """The attribute of the class, by which documentation and `isinstance(..., property)` know it."""

    def __init__(self, wrapped: Any) -> None:
        super().__init__(wrapped)


def tril_matrix_to_vec(mat: Any, diag: int = 0) -> Any:
    """Elements of the lower triangle of square matrices, row by row."""
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = tensor.tril_indices(n, n, diag, device=mat.device)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Any, diag: int = 0) -> Any:
    """Lower triangular matrices of their elements, row by row."""
    count = vec.shape[-1]
    n = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * count + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if round(n) - n > tensor.finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {count} which cannot be expressed as the lower triangular part of a square "
            "D x D matrix."
        )
    n = round(n)
    rows, columns = tensor.tril_indices(n, n, diag, device=vec.device)
    places = rows * n + columns
    flat = zeros_of((*vec.shape[:-1], n * n), vec)
    return flat.index_copy(-1, places, vec).reshape((*vec.shape[:-1], n, n))


def log_gamma(x: Any) -> Any:
    """Logarithm of the gamma function."""
    return tensor.lgamma(x)


def multivariate_lgamma(x: Any, p: int) -> Any:
    """Logarithm of the multivariate gamma function of dimension `p`."""
    steps = tensor.arange(p, dtype=x.dtype, device=x.device) / 2
    return (x.unsqueeze(-1) - steps).lgamma().sum(-1) + p * (p - 1) / 4 * math.log(math.pi)


def multivariate_digamma(x: Any, p: int) -> Any:
    """Its derivative."""
    steps = tensor.arange(p, dtype=x.dtype, device=x.device) / 2
    return (x.unsqueeze(-1) - steps).digamma().sum(-1)


def xlogy(x: Any, y: Any) -> Any:
    """x log(y), 0 where x is 0."""
    return tensor.xlogy(x, y)


def tiny(dtype: Any) -> float:
    """The smallest positive normal number of a dtype."""
    return tensor.finfo(dtype).tiny


def any_true(mask: Any) -> bool:
    """Whether a mask is true at a place; of providers with vmaps, at one of any example."""
    asked = getattr(getattr(tensor, "library", None), "any_example", None)
    return bool(mask.any()) if asked is None else asked(mask)


def all_true(mask: Any) -> bool:
    """Whether a mask is true everywhere, of all examples."""
    return not any_true(~mask)
