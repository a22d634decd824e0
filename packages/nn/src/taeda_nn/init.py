"""Ways to fill new parameters; every function changes its tensor in place and returns it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from taeda_nn._bind import Tensor, no_grad, op, overridable, tensor
from taeda_nn._errors import not_tensors

F = TypeVar("F", bound=Callable[..., Any])


def _in_place(fill: F) -> F:
    """Runs an initialisation without recording it."""

    @wraps(fill)
    def run(*args: Any, **kwargs: Any) -> Any:
        for filled in args[:1] or tuple(kwargs[key] for key in ("tensor",) if key in kwargs):
            if not isinstance(filled, Tensor):
                raise not_tensors(fill.__name__, tensor=filled)
        with no_grad():
            return fill(*args, **kwargs)

    return run  # type: ignore[return-value]


_GAINS = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 0.75, "linear": 1, "sigmoid": 1}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Returns the factor by which a nonlinearity's input should be scaled to keep the variance.

    Args:
        nonlinearity: ``linear``, ``conv1d`` ..., ``sigmoid``, ``tanh``, ``relu``, ``leaky_relu`` or ``selu``.
        param: The negative slope of ``leaky_relu``, 0.01 by default.

    Raises:
        ValueError: Unknown name, or a slope that is no number.

    Example:
        >>> nn.init.calculate_gain("leaky_relu", 0.2)
        1.3867504905630728
    """
    if not isinstance(nonlinearity, str):
        raise ValueError(f"calculate_gain: unknown nonlinearity {nonlinearity!r}")
    if nonlinearity.startswith("conv"):
        return 1
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(f"calculate_gain: the slope of leaky_relu must be a number, got {slope!r}")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        raise ValueError(f"calculate_gain: unknown nonlinearity {nonlinearity!r}")
    return _GAINS[nonlinearity]


@_in_place
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Fills with samples of the uniform distribution on [a, b).

    Example:
        >>> nn.init.uniform_(torch.empty(3, 5)).shape
        Size([3, 5])
    """
    return tensor.uniform_(a, b, generator=generator)


@_in_place
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Fills with samples of the normal distribution.

    Example:
        >>> nn.init.normal_(torch.empty(3, 5), std=0.02).shape
        Size([3, 5])
    """
    return tensor.normal_(mean, std, generator=generator)


@_in_place
def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Tensor:
    """Fills with samples of the normal distribution restricted to [a, b], by rejection.

    Where most of the distribution lies inside, normal samples outside are drawn again; else uniform ones are accepted
    by the density. UserWarning where `mean` lies more than two deviations outside of [a, b].

    Example:
        >>> bool((nn.init.trunc_normal_(torch.empty(100), std=3.0).abs() <= 2).all())
        True
    """

    def below(x: float) -> float:
        return (1.0 + math.erf((x - mean) / std / math.sqrt(2.0))) / 2.0

    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            f"trunc_normal_: argument 'mean' is {mean}, more than 2 std from [{a}, {b}]; the distribution of values "
            "may be incorrect",
            stacklevel=3,
        )
    if getattr(tensor, "is_meta", False) or tensor.numel() == 0:
        return tensor
    if below(b) - below(a) > 0.3:
        # The bounds as the dtype holds them: a sample that is one of them is inside.
        low, high = (tensor.new_tensor(bound, device="cpu").item() for bound in (a, b))
        tensor.normal_(mean, std, generator=generator)
        while (outside := (tensor < low) | (tensor > high)).any():
            again = op("empty_like")(tensor).normal_(mean, std, generator=generator)
            tensor.copy_(op("where")(outside, again, tensor))
        return tensor
    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2

    def refused(samples: Tensor) -> Tensor:
        excess = ((samples - mean) / std).pow_(2).mul_(-0.5).sub_(peak)
        return op("empty_like")(samples).uniform_(generator=generator).log_() > excess

    open_ = refused(tensor.uniform_(a, b, generator=generator))
    while open_.any():
        again = op("empty_like")(tensor).uniform_(a, b, generator=generator)
        tensor.copy_(op("where")(open_, again, tensor))
        open_ &= refused(again)
    return tensor


@_in_place
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fills with one value.

    Example:
        >>> nn.init.constant_(torch.empty(2), 0.5)
        tensor([0.5000, 0.5000])
    """
    return tensor.fill_(val)


@_in_place
def ones_(tensor: Tensor) -> Tensor:
    """Fills with ones.

    Example:
        >>> nn.init.ones_(torch.empty(2))
        tensor([1., 1.])
    """
    return tensor.fill_(1.0)


@_in_place
def zeros_(tensor: Tensor) -> Tensor:
    """Fills with zeros.

    Example:
        >>> nn.init.zeros_(torch.empty(2))
        tensor([0., 0.])
    """
    return tensor.zero_()


@_in_place
def eye_(tensor: Tensor) -> Tensor:
    """Fills a matrix with ones on the diagonal and zeros elsewhere.

    Example:
        >>> nn.init.eye_(torch.empty(2, 2))
        tensor([[1., 0.],
                [0., 1.]])
    """
    _need_dims("eye_", tensor, (2,))
    return tensor.copy_(_eye(*tensor.shape, tensor))


@_in_place
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fills a convolution's weight so that it passes its input on, channel by channel in every group."""
    _need_dims("dirac_", tensor, (3, 4, 5))
    out_channels = tensor.shape[0]
    if out_channels % groups:
        raise ValueError(f"dirac_: dimension 0 ({out_channels}) must be divisible by groups ({groups})")
    per_group = out_channels // groups
    tensor.zero_()
    centre = tuple(size // 2 for size in tensor.shape[2:])
    for group in range(groups):
        for channel in range(min(per_group, tensor.shape[1])):
            tensor[(group * per_group + channel, channel, *centre)] = 1
    return tensor


def _need_dims(name: str, tensor: Tensor, allowed: tuple[int, ...]) -> None:
    if tensor.dim() not in allowed:
        expected = " or ".join(map(str, allowed))
        raise ValueError(f"{name}: tensor must have {expected} dimensions, got shape {tuple(tensor.shape)}")


def _eye(rows: int, columns: int, like: Tensor) -> Tensor:
    return tensor.eye(rows, columns, dtype=like.dtype, device=like.device)


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    if tensor.dim() < 2:
        raise ValueError(f"fan in and fan out need at least 2 dimensions, got shape {tuple(tensor.shape)}")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    if not isinstance(mode, str) or mode.lower() not in ("fan_in", "fan_out"):
        raise ValueError(f"mode must be 'fan_in' or 'fan_out', got {mode!r}")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode.lower() == "fan_in" else fan_out


@_in_place
def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fills uniformly so that variances of activations and gradients stay alike (Glorot and Bengio, 2010).

    Example:
        >>> bool((nn.init.xavier_uniform_(torch.empty(2, 4)).abs() <= 1).all())
        True
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    bound = gain * math.sqrt(6.0 / (fan_in + fan_out))
    return uniform_(tensor, -bound, bound, generator)


@_in_place
def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fills normally so that variances of activations and gradients stay alike (Glorot and Bengio, 2010).

    Example:
        >>> nn.init.xavier_normal_(torch.empty(3, 5)).shape
        Size([3, 5])
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / (fan_in + fan_out)), generator)


def warn_of_nothing(stacklevel: int) -> None:
    """Says that a weight has no elements, as a layer of no features has."""
    warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=stacklevel + 1)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


@_in_place
def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Fills uniformly, scaled for layers with rectifiers (He et al., 2015).

    Args:
        tensor: Weight with at least two dimensions.
        a: Negative slope of the rectifier after the layer.
        mode: ``fan_in`` keeps the variance forward, ``fan_out`` backward.
        nonlinearity: Name for ``calculate_gain``.

    Example:
        >>> bool((nn.init.kaiming_uniform_(torch.empty(2, 6)).abs() <= 1).all())
        True
    """
    if 0 in tensor.shape:
        warn_of_nothing(stacklevel=3)
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


@_in_place
def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Fills normally, scaled for layers with rectifiers (He et al., 2015); arguments as ``kaiming_uniform_``.

    Example:
        >>> nn.init.kaiming_normal_(torch.empty(3, 5), mode="fan_out", nonlinearity="relu").shape
        Size([3, 5])
    """
    if 0 in tensor.shape:
        warn_of_nothing(stacklevel=3)
        return tensor
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


@_in_place
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Fills with a (semi-)orthogonal matrix over the flattened trailing dimensions (Saxe et al., 2013).

    Example:
        >>> w = nn.init.orthogonal_(torch.empty(2, 2))
        >>> bool(torch.allclose(w @ w.mT, torch.eye(2), atol=1e-6))
        True
    """
    if tensor.dim() < 2:
        raise ValueError(
            f"orthogonal_: tensor must have at least 2 dimensions, got shape {tuple(tensor.shape)}"
        )
    if tensor.numel() == 0:
        return tensor
    rows = tensor.shape[0]
    columns = tensor.numel() // rows
    flat = _normal_matrix(rows, columns, tensor, generator)
    q = _orthonormal_columns(flat if rows >= columns else flat.t())
    return tensor.copy_((q if rows >= columns else q.t()).reshape(tensor.shape)).mul_(gain)


def _normal_matrix(rows: int, columns: int, like: Tensor, generator: Any) -> Tensor:
    return tensor.empty(rows, columns, dtype=like.dtype, device=like.device).normal_(
        0, 1, generator=generator
    )


def _orthonormal_columns(matrix: Tensor) -> Tensor:
    """Uniformly distributed orthonormal columns: QR with the signs of R's diagonal made positive."""
    linalg = getattr(tensor, "linalg", None)
    if linalg is not None and hasattr(linalg, "qr"):
        q, r = linalg.qr(matrix)
        return q * r.diagonal().sign()
    columns: list[Tensor] = []
    for i in range(matrix.shape[1]):
        column = matrix[:, i]
        for _again in range(2):  # a second pass removes the rounding errors of the first
            for done in columns:
                column = column - done * (done * column).sum()
        columns.append(column / (column * column).sum().sqrt())
    return tensor.stack(columns, 1)


@_in_place
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Fills a matrix normally, then zeroes the share ``sparsity`` of every column (Martens, 2010)."""
    _need_dims("sparse_", tensor, (2,))
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    tensor.normal_(0, std, generator=generator)
    for column in range(columns):
        tensor[_permutation(rows, generator, tensor.device)[:zeros], column] = 0
    return tensor


def _permutation(n: int, generator: Any, device: Any) -> Tensor:
    options = {} if generator is None else {"generator": generator}
    return tensor.randperm(n, device=device, **options)


def _deprecated(fill: Callable[..., Any]) -> Callable[..., Any]:
    """The function of an old name, without the underscore, which warns and calls the present one."""
    old = fill.__name__[:-1]

    def run(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            f"`nn.init.{old}` is now deprecated in favor of `nn.init.{fill.__name__}`.",
            FutureWarning,
            stacklevel=2,
        )
        return fill(*args, **kwargs)

    run.__name__ = old
    run.__doc__ = f"Deprecated name of ``{fill.__name__}``."
    return run


overridable((uniform_, normal_, constant_, kaiming_uniform_), composed=True)
# As others call them in private; gradients are never recorded here.
_no_grad_uniform_, _no_grad_normal_, _no_grad_trunc_normal_ = uniform_, normal_, trunc_normal_
_no_grad_fill_, _no_grad_zero_ = constant_, zeros_
uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)
