"""Activation layers."""

from __future__ import annotations

import warnings
from typing import Any

from taeda_nn import functional as F
from taeda_nn import init as initialise
from taeda_nn._bind import Tensor, op, tensor
from taeda_nn.modules.attention import MultiheadAttention as MultiheadAttention
from taeda_nn.modules.attention import _arg_requires_grad as _arg_requires_grad
from taeda_nn.modules.attention import _check_arg_device as _check_arg_device
from taeda_nn.modules.attention import _is_make_fx_tracing as _is_make_fx_tracing
from taeda_nn.modules.module import Module
from taeda_nn.parameter import Parameter

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]

# Called in the function's place while nobody has put another there.
_f_relu, _relu, _relu_in_place = F.relu, op("relu"), op("relu_")
_sigmoid, _tanh = op("sigmoid"), op("tanh")


class _Activation(Module):
    """An activation: a function of the input and of the attributes named in ``settings``."""

    settings: tuple[str, ...] = ()

    def extra_repr(self) -> str:
        shown = [f"{name}={getattr(self, name)}" for name in self.settings if name != "inplace"]
        if getattr(self, "inplace", False):
            shown.append("inplace=True")
        return ", ".join(shown)


class _InPlace(_Activation):
    """An activation whose only setting is whether it overwrites its input."""

    settings = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class _Exponential(_Activation):
    """An activation with an exponential branch of height ``alpha``."""

    settings = ("alpha", "inplace")

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace


class _Shrink(_Activation):
    """An activation that is 0 within ``lambd`` of 0."""

    settings = ("lambd",)

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class _Along(_Activation):
    """An activation along a dimension."""

    settings = ("dim",)

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim


class ReLU(_InPlace):
    """max(x, 0), element by element.

    Example:
        >>> nn.ReLU()(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """

    __constants__ = ["inplace"]

    def forward(self, input: Tensor) -> Tensor:
        if F.relu is not _f_relu:
            return F.relu(input, self.inplace)
        return _relu_in_place(input) if self.inplace else _relu(input)


class Sigmoid(_Activation):
    """1 / (1 + exp(-x)), element by element.

    Example:
        >>> nn.Sigmoid()(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([0.26894143, 0.50000000, 0.73105860])
    """

    def forward(self, input: Tensor) -> Tensor:
        return _sigmoid(input)


class Tanh(_Activation):
    """Hyperbolic tangent, element by element.

    Example:
        >>> nn.Tanh()(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.7615942,  0.0000000,  0.7615942])
    """

    def forward(self, input: Tensor) -> Tensor:
        return _tanh(input)


class GELU(_Activation):
    """x times the normal distribution function of x.

    Example:
        >>> nn.GELU()(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.15865526,  0.00000000,  0.84134470])

    Source: Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016.
    """

    __constants__ = ["approximate"]

    settings = ("approximate",)

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class SiLU(_InPlace):
    """x * sigmoid(x).

    Example:
        >>> nn.SiLU()(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.26894143,  0.00000000,  0.73105860])
    """

    __constants__ = ["inplace"]

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)


class Mish(_InPlace):
    """x * tanh(softplus(x))."""

    __constants__ = ["inplace"]

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, self.inplace)


class _QuietInPlace(_InPlace):
    """One whose text does not say that it does, as PyTorch's."""

    def extra_repr(self) -> str:
        return ""


class Hardswish(_QuietInPlace):
    """x * hardsigmoid(x)."""

    __constants__ = ["inplace"]

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)


class Hardsigmoid(_QuietInPlace):
    """(x + 3) / 6 limited to [0, 1]."""

    __constants__ = ["inplace"]

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)


class SELU(_InPlace):
    """Scaled ELU with the constants that keep mean 0 and variance 1.

    Source: Klambauer et al., "Self-Normalizing Neural Networks", 2017.
    """

    __constants__ = ["inplace"]

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class LeakyReLU(_Activation):
    """x where positive, else ``negative_slope * x``.

    Example:
        >>> nn.LeakyReLU(0.1)(torch.tensor([-1.0, 2.0]))
        tensor([-0.1000,  2.0000])
    """

    __constants__ = ["inplace", "negative_slope"]

    settings = ("negative_slope", "inplace")

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)


class ELU(_Exponential):
    """x where positive, else ``alpha * (exp(x) - 1)``.

    Example:
        >>> nn.ELU()(torch.tensor([-1.0, 2.0]))
        tensor([-0.63212055,  2.00000000])
    """

    __constants__ = ["alpha", "inplace"]

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)


class CELU(_Exponential):
    """x where positive, else ``alpha * (exp(x / alpha) - 1)``."""

    __constants__ = ["alpha", "inplace"]

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


class Softplus(_Activation):
    """log(1 + exp(beta * x)) / beta; x itself where ``beta * x`` exceeds ``threshold``.

    Example:
        >>> nn.Softplus()(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([0.31326172, 0.69314720, 1.31326160])
    """

    __constants__ = ["beta", "threshold"]

    settings = ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)


class Hardtanh(_Activation):
    """x limited to [min_val, max_val].

    Example:
        >>> nn.Hardtanh()(torch.tensor([-2.0, 0.5, 2.0]))
        tensor([-1.0000,  0.5000,  1.0000])
    """

    __constants__ = ["min_val", "max_val", "inplace"]

    settings = ("min_val", "max_val", "inplace")

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        if min_value is not None or max_value is not None:
            warnings.warn(
                "Hardtanh: min_value and max_value are deprecated: use min_val and max_val",
                FutureWarning,
                stacklevel=2,
            )
            min_val = min_val if min_value is None else min_value
            max_val = max_val if max_value is None else max_value
        if min_val >= max_val:
            raise ValueError(f"Hardtanh: max_val ({max_val}) must exceed min_val ({min_val})")
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


class ReLU6(Hardtanh):
    """x limited to [0, 6]."""

    settings = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)


class RReLU(_Activation):
    """Leaky ReLU whose slope is drawn from [lower, upper] per element while training, else their mean."""

    __constants__ = ["lower", "upper", "inplace"]

    settings = ("lower", "upper")

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class Threshold(_Activation):
    """x where greater than ``threshold``, else ``value``."""

    __constants__ = ["threshold", "value", "inplace"]

    settings = ("threshold", "value", "inplace")

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)


class PReLU(_Activation):
    """x where positive, else ``weight * x``, with one learned weight or one per channel.

    Example:
        >>> nn.PReLU()(torch.tensor([-1.0, 2.0])).tolist()
        [-0.25, 2.0]

    Source: He et al., "Delving Deep into Rectifiers", 2015.
    """

    __constants__ = ["num_parameters"]

    settings = ("num_parameters",)

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(tensor.empty((num_parameters,), device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets the weights to ``init``."""
        initialise.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)


class LogSigmoid(_Activation):
    """log(sigmoid(x)), computed without overflow."""

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Softsign(_Activation):
    """x / (1 + |x|)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(_Activation):
    """x - tanh(x)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class Hardshrink(_Shrink):
    """x where |x| exceeds ``lambd``, else 0."""

    __constants__ = ["lambd"]

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)


class Softshrink(_Shrink):
    """x moved towards 0 by ``lambd``, 0 where it would pass it."""

    __constants__ = ["lambd"]

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)


class GLU(_Along):
    """First half times the sigmoid of the second half along ``dim``.

    Example:
        >>> nn.GLU()(torch.randn(4, 6)).shape
        Size([4, 3])
    """

    __constants__ = ["dim"]

    def __init__(self, dim: int = -1) -> None:
        super().__init__(dim)

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)


class Softmax(_Along):
    """exp(x) divided by its sum along ``dim``.

    Example:
        >>> nn.Softmax(dim=1)(torch.tensor([[0.0, 0.0], [0.0, 1.0]]))
        tensor([[0.50000000, 0.50000000],
                [0.26894143, 0.73105860]])
    """

    __constants__ = ["dim"]

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim)


class Softmin(_Along):
    """Softmax of -x along ``dim``."""

    __constants__ = ["dim"]

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim)


class Softmax2d(_Activation):
    """Softmax over the channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: input must have 3 or 4 dimensions, got shape {tuple(input.shape)}")
        return F.softmax(input, -3)


class LogSoftmax(_Along):
    """Logarithm of softmax along ``dim``, computed stably.

    Example:
        >>> nn.LogSoftmax(dim=1)(torch.tensor([[0.0, 0.0]]))
        tensor([[-0.6931472, -0.6931472]])
    """

    __constants__ = ["dim"]

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim)
