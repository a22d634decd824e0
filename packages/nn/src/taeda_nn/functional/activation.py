"""Activation functions, element-wise except for the soft-max family and ``glu``."""

from __future__ import annotations

import warnings
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
    "rrelu_",
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
_sigmoid, _tanh = op("sigmoid"), op("tanh")
_softmax, _softmin = op("softmax"), op("softmin")
_log_softmax = op("log_softmax")


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0), element by element.

    Example:
        >>> F.relu(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    return _relu_in_place(input) if inplace else _relu(input)


relu_ = _relu_in_place


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x)), element by element."""
    return _sigmoid(input)


def tanh(input: Tensor) -> Tensor:
    """Hyperbolic tangent, element by element."""
    return _tanh(input)


_gelu = op("gelu")


def gelu(input: Tensor, approximate: str = "none", *, out: Tensor | None = None) -> Tensor:
    """x times the normal distribution function of x; ``approximate="tanh"`` uses the cheaper formula.

    Example:
        >>> F.gelu(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.15865526,  0.00000000,  0.84134470])

    Source: Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016.
    """
    if approximate not in ("none", "tanh"):
        raise RuntimeError(f"gelu: approximate must be 'none' or 'tanh', got {approximate!r}")
    if out is not None:
        return _gelu(input, approximate=approximate, out=out)
    return _gelu(input, approximate=approximate)


_silu, silu_ = op("silu"), op("silu_")


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x * sigmoid(x).

    Example:
        >>> F.silu(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.26894143,  0.00000000,  0.73105860])
    """
    try:
        return silu_(input) if inplace else _silu(input)
    except NotImplementedError:
        if not input.is_complex():
            raise
    return input.mul_(input.sigmoid()) if inplace else input * input.sigmoid()


_leaky_relu, leaky_relu_ = op("leaky_relu"), op("leaky_relu_")


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where positive, else ``negative_slope * x``.

    Example:
        >>> F.leaky_relu(torch.tensor([-1.0, 2.0]), 0.1)
        tensor([-0.1000,  2.0000])
    """
    return leaky_relu_(input, negative_slope) if inplace else _leaky_relu(input, negative_slope)


_elu, elu_ = op("elu"), op("elu_")


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where positive, else ``alpha * (exp(x) - 1)``."""
    return elu_(input, alpha) if inplace else _elu(input, alpha)


_selu, selu_ = op("selu"), op("selu_")


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Scaled ELU with the constants that keep mean 0 and variance 1.

    Source: Klambauer et al., "Self-Normalizing Neural Networks", 2017.
    """
    return selu_(input) if inplace else _selu(input)


_celu, celu_ = op("celu"), op("celu_")


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where positive, else ``alpha * (exp(x / alpha) - 1)``."""
    return celu_(input, alpha) if inplace else _celu(input, alpha)


softplus = op("softplus")


_hardtanh, hardtanh_ = op("hardtanh"), op("hardtanh_")


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x limited to [min_val, max_val]."""
    if min_val > max_val:
        raise ValueError(f"hardtanh: min_val ({min_val}) must not exceed max_val ({max_val})")
    return hardtanh_(input, min_val, max_val) if inplace else _hardtanh(input, min_val, max_val)


_relu6, relu6_ = op("relu6"), op("relu6_")


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """x limited to [0, 6]."""
    return relu6_(input) if inplace else _relu6(input)


_hardsigmoid, hardsigmoid_ = op("hardsigmoid"), op("hardsigmoid_")


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """(x + 3) / 6 limited to [0, 1]."""
    return hardsigmoid_(input) if inplace else _hardsigmoid(input)


_hardswish, hardswish_ = op("hardswish"), op("hardswish_")


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * hardsigmoid(x)."""
    return hardswish_(input) if inplace else _hardswish(input)


_mish, mish_ = op("mish"), op("mish_")


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * tanh(softplus(x))."""
    return mish_(input) if inplace else _mish(input)


prelu = op("prelu")
_rrelu = op("rrelu")


def rrelu_(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, **generator: Any
) -> Tensor:
    """`rrelu` in place."""
    return op("rrelu_")(input, lower, upper, training, **generator)


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Leaky ReLU whose slope is drawn from [lower, upper] per element while training, else their mean."""
    return (rrelu_ if inplace else _rrelu)(input, lower, upper, training)


_threshold, threshold_ = op("threshold"), op("threshold_")


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where greater than ``threshold``, else ``value``."""
    return (threshold_ if inplace else _threshold)(input, threshold, value)


logsigmoid = op("logsigmoid")
softsign = op("softsign")
tanhshrink = op("tanhshrink")
hardshrink = op("hardshrink")
glu = op("glu")
_softshrink = op("softshrink")


def softshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """x moved towards 0 by ``lambd``, 0 where it would pass it."""
    if lambd < 0:
        raise RuntimeError(f"softshrink: lambd must not be negative, got {lambd}")
    return _softshrink(input, lambd) if out is None else _softshrink(input, lambd, out=out)


def _dim_by_rank(name: str, rank: int) -> int:
    import warnings

    warnings.warn(f"{name}: state dim; it was guessed from the number of dimensions", stacklevel=3)
    return 0 if rank in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """exp(x) divided by its sum along ``dim``; ``dtype`` is converted to first.

    Example:
        >>> F.softmax(torch.tensor([[0.0, 0.0], [0.0, 1.0]]), dim=1)
        tensor([[0.50000000, 0.50000000],
                [0.26894143, 0.73105860]])
    """
    if dim is None:
        dim = _dim_by_rank("softmax", input.dim())
    return _softmax(input, dim) if dtype is None else _softmax(input, dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Logarithm of softmax along ``dim``, computed stably; ``dtype`` is converted to first.

    Example:
        >>> F.log_softmax(torch.tensor([[0.0, 0.0]]), dim=1)
        tensor([[-0.6931472, -0.6931472]])
    """
    if dim is None:
        dim = _dim_by_rank("log_softmax", input.dim())
    return _log_softmax(input, dim) if dtype is None else _log_softmax(input, dim, dtype=dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Softmax of -x along ``dim``."""
    if dim is None:
        dim = _dim_by_rank("softmin", input.dim())
    return _softmin(input, dim) if dtype is None else _softmin(input, dim, dtype=dtype)


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Draws from the Gumbel-softmax distribution; ``hard`` gives one-hot rows with the soft rows' gradient.

    Example:
        >>> F.gumbel_softmax(torch.randn(20, 32), hard=True).sum(1).unique()
        tensor([1.])

    Source: Jang et al., "Categorical Reparameterization with Gumbel-Softmax", 2016.
    """
    if eps != 1e-10:
        warnings.warn("gumbel_softmax: argument 'eps' is deprecated and has no effect", stacklevel=2)
    noise = -tensor.empty_like(logits).exponential_().log()
    soft = _softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    chosen = soft.max(dim, keepdim=True)[1]
    one_hot = tensor.zeros_like(logits).scatter_(dim, chosen, 1.0)
    return one_hot - soft.detach() + soft
