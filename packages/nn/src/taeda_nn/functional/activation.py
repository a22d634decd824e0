"""Activation functions, element-wise except for the soft-max family and ``glu``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from taeda_nn._bind import Tensor, op, tensor

__all__ = [
    "celu",
    "celu_",
    "elu",
    "elu_",
    "gelu",
    "glu",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "leaky_relu",
    "leaky_relu_",
    "log_softmax",
    "logsigmoid",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rrelu",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
]

_relu = op("relu")
_relu_in_place = op("relu_")
sigmoid = op("sigmoid")
_softmax = op("softmax")
_log_softmax = op("log_softmax")


def _on_copy(name: str, plain: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """An in-place form that computes on a copy, because backward may need the values that are overwritten."""

    def in_place(input: Tensor, *args: Any) -> Tensor:
        return input.copy_(plain(input.clone(), *args))

    in_place.__name__ = name
    return in_place


def _pair(name: str, formula: Callable[..., Tensor]) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    """Operator ``name`` and its in-place form, each composed where the provider lacks it."""
    plain = op(name, formula)
    return plain, op(f"{name}_", _on_copy(f"{name}_", plain))


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0), element by element."""
    return _relu_in_place(input) if inplace else _relu(input)


relu_ = _relu_in_place


tanh = op("tanh")


def _gelu_formula(input: Tensor, approximate: str = "none") -> Tensor:
    if approximate == "tanh":
        inner = math.sqrt(2.0 / math.pi) * (input + 0.044715 * input * input * input)
        return 0.5 * input * (1.0 + inner.tanh())
    return 0.5 * input * (1.0 + (input * math.sqrt(0.5)).erf())


_gelu = op("gelu", _gelu_formula)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x times the normal distribution function of x; ``approximate="tanh"`` uses the cheaper formula.

    Source: Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016.
    """
    if approximate not in ("none", "tanh"):
        raise RuntimeError(f"gelu: approximate must be 'none' or 'tanh', got {approximate!r}")
    return _gelu(input, approximate=approximate)


_silu, silu_ = _pair("silu", lambda input: input * sigmoid(input))


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x * sigmoid(x)."""
    return silu_(input) if inplace else _silu(input)


_leaky_relu, leaky_relu_ = _pair(
    "leaky_relu", lambda input, slope: tensor.where(input > 0, input, input * slope)
)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where positive, else ``negative_slope * x``."""
    return leaky_relu_(input, negative_slope) if inplace else _leaky_relu(input, negative_slope)


def _elu_formula(input: Tensor, alpha: float = 1.0) -> Tensor:
    return tensor.where(input > 0, input, alpha * input.clamp(max=0).expm1())


_elu, elu_ = _pair("elu", _elu_formula)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where positive, else ``alpha * (exp(x) - 1)``."""
    return elu_(input, alpha) if inplace else _elu(input, alpha)


_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805
_selu = op("selu", lambda input: _SELU_SCALE * _elu(input, _SELU_ALPHA))
selu_ = _on_copy("selu_", _selu)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Scaled ELU with the constants that keep mean 0 and variance 1.

    Source: Klambauer et al., "Self-Normalizing Neural Networks", 2017.
    """
    return selu_(input) if inplace else _selu(input)


def _celu_formula(input: Tensor, alpha: float) -> Tensor:
    return tensor.where(input > 0, input, alpha * (input.clamp(max=0) / alpha).expm1())


_celu = op("celu", _celu_formula)
celu_ = _on_copy("celu_", _celu)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where positive, else ``alpha * (exp(x / alpha) - 1)``."""
    return celu_(input, alpha) if inplace else _celu(input, alpha)


def _softplus_formula(input: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    scaled = input * beta
    return tensor.where(scaled > threshold, input, scaled.clamp(max=threshold).exp().log1p() / beta)


softplus = op("softplus", _softplus_formula)


_hardtanh, hardtanh_ = _pair("hardtanh", lambda input, low, high: input.clamp(low, high))


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x limited to [min_val, max_val]."""
    if min_val > max_val:
        raise ValueError(f"hardtanh: min_val ({min_val}) must not exceed max_val ({max_val})")
    return hardtanh_(input, min_val, max_val) if inplace else _hardtanh(input, min_val, max_val)


_relu6 = op("relu6", lambda input: _hardtanh(input, 0.0, 6.0))
relu6_ = _on_copy("relu6_", _relu6)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """x limited to [0, 6]."""
    return relu6_(input) if inplace else _relu6(input)


_hardsigmoid, hardsigmoid_ = _pair("hardsigmoid", lambda input: (input + 3.0).clamp(0.0, 6.0) / 6.0)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """(x + 3) / 6 limited to [0, 1]."""
    return hardsigmoid_(input) if inplace else _hardsigmoid(input)


_hardswish, hardswish_ = _pair("hardswish", lambda input: input * _hardsigmoid(input))


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * hardsigmoid(x)."""
    return hardswish_(input) if inplace else _hardswish(input)


_mish, mish_ = _pair("mish", lambda input: input * softplus(input, 1.0, 20.0).tanh())


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * tanh(softplus(x))."""
    return mish_(input) if inplace else _mish(input)


def _prelu_formula(input: Tensor, weight: Tensor) -> Tensor:
    if weight.numel() != 1:
        weight = weight.reshape((-1, *(1,) * max(input.dim() - 2, 0)))
    return tensor.where(input > 0, input, input * weight)


prelu = op("prelu", _prelu_formula)


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Leaky ReLU whose slope is drawn from [lower, upper] per element while training, else their mean."""
    slope: Any = (lower + upper) / 2
    if training:
        slope = op("rand_like")(input) * (upper - lower) + lower
    result = tensor.where(input >= 0, input, input * slope)
    return input.copy_(result) if inplace else result


def _threshold_formula(input: Tensor, threshold: float, value: float) -> Tensor:
    return tensor.where(input > threshold, input, op("full_like")(input, value))


_threshold, threshold_ = _pair("threshold", _threshold_formula)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where greater than ``threshold``, else ``value``."""
    return (threshold_ if inplace else _threshold)(input, threshold, value)


logsigmoid = op("logsigmoid", lambda input: -softplus(-input, 1.0, 20.0))


softsign = op("softsign", lambda input: input / (input.abs() + 1))


tanhshrink = op("tanhshrink", lambda input: input - tanh(input))


hardshrink = op(
    "hardshrink", lambda input, lambd=0.5: tensor.where(input.abs() > lambd, input, tensor.zeros_like(input))
)


def _glu_formula(input: Tensor, dim: int = -1) -> Tensor:
    size = input.shape[dim]
    if size % 2:
        raise RuntimeError(
            f"glu: size of dimension {dim} must be even, got {size} in shape {tuple(input.shape)}"
        )
    first, second = input.chunk(2, dim)
    return first * sigmoid(second)


glu = op("glu", _glu_formula)


_softshrink = op("softshrink", lambda input, lambd: input - input.clamp(-lambd, lambd))


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x moved towards 0 by ``lambd``, 0 where it would pass it."""
    if lambd < 0:
        raise RuntimeError(f"softshrink: lambd must not be negative, got {lambd}")
    return _softshrink(input, lambd)


def _dim_by_rank(name: str, rank: int) -> int:
    import warnings

    warnings.warn(f"{name}: state dim; it was guessed from the number of dimensions", stacklevel=3)
    return 0 if rank in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """exp(x) divided by its sum along ``dim``; ``dtype`` is converted to first."""
    if dim is None:
        dim = _dim_by_rank("softmax", input.dim())
    return _softmax(input, dim) if dtype is None else _softmax(input, dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Logarithm of softmax along ``dim``, computed stably; ``dtype`` is converted to first."""
    if dim is None:
        dim = _dim_by_rank("log_softmax", input.dim())
    return _log_softmax(input, dim) if dtype is None else _log_softmax(input, dim, dtype=dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Softmax of -x along ``dim``."""
    return softmax(-input, dim, dtype=dtype)


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Draws from the Gumbel-softmax distribution; ``hard`` gives one-hot rows with the soft rows' gradient.

    Source: Jang et al., "Categorical Reparameterization with Gumbel-Softmax", 2016.
    """
    noise = -tensor.empty_like(logits).exponential_().log()
    soft = _softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    chosen = soft.max(dim, keepdim=True)[1]
    one_hot = tensor.zeros_like(logits).scatter_(dim, chosen, 1.0)
    return one_hot - soft.detach() + soft
