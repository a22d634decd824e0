"""Parametrizations: orthogonal weights, weights of norm one, lengths apart from directions."""

from __future__ import annotations

from enum import Enum, auto
from functools import partial
from typing import Any

from taeda_nn import functional as F
from taeda_nn._bind import Tensor, needed, no_grad, tensor
from taeda_nn.modules.module import Module
from taeda_nn.utils import parametrize
from taeda_nn.utils.spectral_norm import as_matrix, output_dim
from taeda_nn.utils.weight_norm import norm_except_dim, weight_norm_product

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _eye_like(x: Tensor, n: int) -> Tensor:
    return tensor.eye(n, dtype=x.dtype, device=x.device)


def _is_orthogonal(q: Tensor, eps: float | None = None) -> bool:
    n, k = q.shape[-2:]
    product = q.mH @ q
    if eps is None:
        eps = 10.0 * n * tensor.finfo(q.dtype).eps
    return bool(((product - _eye_like(q, k)).abs() <= eps).all())


def _make_orthogonal(a: Tensor) -> Tensor:
    """An orthogonal matrix that is ``a`` where that is orthogonal, by Householder's reflections."""
    x, tau = needed("geqrf")(a)
    q = needed("linalg_householder_product")(x, tau)
    # Signs so that an orthogonal matrix, whose R is the identity but for signs, is given back.
    return q * x.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _OrthMaps(Enum):
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


class _Orthogonal(Module):
    """Matrices with orthonormal columns (rows, of wide ones) as functions of any matrices of their shape."""

    base: Tensor

    def __init__(self, weight: Tensor, orthogonal_map: _OrthMaps, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map is _OrthMaps.householder:
            raise ValueError("orthogonal: the Householder map takes no complex tensors")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        n, k = X.shape[-2:]
        wide = n < k
        if wide:
            X = X.mT
            n, k = k, n
        if self.orthogonal_map is _OrthMaps.householder:
            # A diagonal of 1 and -1 above reflections whose vectors begin with 1.
            below = X.tril(-1)
            tau = 2.0 / (1.0 + (below * below).sum(-2))
            q = needed("linalg_householder_product")(below, tau)
            q = q * X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        else:
            q = self._of_skew(X.tril(), n, k)
        if "base" in self._buffer_names and self.base is not None:
            q = self.base @ q
        return q.mT if wide else q

    def _of_skew(self, lower: Tensor, n: int, k: int) -> Tensor:
        if n != k:
            zeros = lower.new_zeros((*lower.shape[:-2], n, n - k))
            lower = tensor.cat([lower, zeros], -1)
        skew = lower - lower.mH
        if self.orthogonal_map is _OrthMaps.matrix_exp:
            q = needed("linalg_matrix_exp")(skew)
        else:
            half, eye = skew * 0.5, _eye_like(skew, n)
            q = needed("linalg_solve")(eye - half, eye + half)
        return q[..., :k] if n != k else q

    @no_grad()
    def right_inverse(self, Q: Tensor) -> Tensor:
        """What gives ``Q``, or with a base ``Q`` made orthogonal; the base is set."""
        if Q.shape != self.shape:
            raise ValueError(
                f"orthogonal: expected a matrix of shape {tuple(self.shape)}, found {tuple(Q.shape)}"
            )
        n, k = Q.shape[-2:]
        wide = n < k
        if wide:
            Q = Q.mT
            n, k = k, n
        if "base" not in self._buffer_names:
            return self._without_base(Q, wide)
        q = Q if _is_orthogonal(Q) else _make_orthogonal(Q)
        if q.shape[-1] != n:
            q = self._completed(q, n, k)
        self.base = q
        # What gives the base: nothing below the diagonal, and -1 on it, which turns round each reflection.
        origin = tensor.zeros_like(Q)
        origin.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return origin.mT if wide else origin

    def _without_base(self, q: Tensor, wide: bool) -> Tensor:
        if self.orthogonal_map is not _OrthMaps.householder:
            raise NotImplementedError(
                "orthogonal: a value can be assigned without use_trivialization with the Householder map alone"
            )
        x, tau = needed("geqrf")(q)
        x.diagonal(dim1=-2, dim2=-1).sign_()
        x.diagonal(dim1=-2, dim2=-1)[tau == 0.0] *= -1
        return x.mT if wide else x

    @staticmethod
    def _completed(q: Tensor, n: int, k: int) -> Tensor:
        """``q`` with further columns, so that it is square."""
        more = tensor.randn(*q.shape[:-2], n, n - k, dtype=q.dtype, device=q.device)
        more = more - q @ (q.mH @ more)
        more = more - q @ (q.mH @ more)  # once more, for the errors of the first
        return tensor.cat([q, needed("linalg_qr")(more)[0]], -1)


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Keeps a weight orthogonal: its columns, or the rows of a wide one, are orthonormal.

    Args:
        module: The module.
        name: Its parameter, at least 2-d; further dimensions in front are batches.
        orthogonal_map: 'matrix_exp', 'cayley' or 'householder'; by default the first for square and complex weights,
            else the last.
        use_trivialization: Whether the parametrization is taken around the present weight, so that values can be
            assigned.

    Returns: the module.

    Raises:
        ValueError: No such parameter, one of less than 2 dimensions, or an unknown map.

    Example:
        >>> layer = nn.utils.parametrizations.orthogonal(nn.Linear(20, 40))

    Source: Lezcano-Casado, "Trivializations for Gradient-Based Optimization on Manifolds", 2019.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"orthogonal: {type(module).__name__} has no parameter or buffer {name!r}")
    if weight.dim() < 2:
        raise ValueError(f"orthogonal: expected at least 2 dimensions, found shape {tuple(weight.shape)}")
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    chosen = _OrthMaps.__members__.get(orthogonal_map)
    if chosen is None:
        raise ValueError(f"orthogonal: orthogonal_map must be one of {list(_OrthMaps.__members__)}, "
                         f"found {orthogonal_map!r}")  # fmt: skip
    made = _Orthogonal(weight, chosen, use_trivialization=use_trivialization)
    parametrize.register_parametrization(module, name, made, unsafe=True)
    return module


class _WeightNorm(Module):
    """A weight of its lengths and directions."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_norm_product(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The lengths, and the weight itself as direction."""
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Keeps the length of a weight apart from its direction, as ``original0`` and ``original1``.

    Args:
        module: The module.
        name: Its parameter.
        dim: The dimension of which every index has a length of its own; None for one length of all.

    Returns: the module.

    Example:
        >>> m = nn.utils.parametrizations.weight_norm(nn.Linear(20, 40))

    Source: Salimans and Kingma, "Weight Normalization", 2016.
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
    module._register_load_state_dict_pre_hook(partial(_take_old_names, name))
    return module


def _take_old_names(name: str, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
    old = (f"{prefix}{name}_g", f"{prefix}{name}_v")
    if all(key in state_dict for key in old):
        for i, key in enumerate(old):
            state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)


class _SpectralNorm(Module):
    """A weight divided by its greatest singular value, found by power iteration."""

    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        if not -weight.dim() <= dim < weight.dim():
            raise IndexError(f"spectral_norm: dim {dim} is out of range for shape {tuple(weight.shape)}")
        if n_power_iterations <= 0:
            raise ValueError(
                f"spectral_norm: n_power_iterations must be positive, found {n_power_iterations}"
            )
        self.dim = dim % weight.dim()
        self.eps = eps
        if weight.dim() > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._reshape_weight_to_matrix(weight)
            u, v = (matrix.new_empty(n).normal_(0, 1) for n in matrix.shape)
            self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        return as_matrix(weight, self.dim)

    @no_grad()
    def _power_method(self, weight_mat: Tensor, n_power_iterations: int) -> None:
        for _ in range(n_power_iterations):
            self._u.copy_(F.normalize(weight_mat.mv(self._v), dim=0, eps=self.eps))
            self._v.copy_(F.normalize(weight_mat.H.mv(self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.dim() == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._reshape_weight_to_matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # Copies, because the next call changes the buffers while this one's gradient may still be wanted.
        u, v = self._u.clone(), self._v.clone()
        return weight / needed("vdot")(u, matrix.mv(v))

    def right_inverse(self, value: Tensor) -> Tensor:
        """The value itself, which may be any of those that give it."""
        return value


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divides a weight by its greatest singular value, estimated by iterations at each call while training.

    Args:
        module: The module.
        name: Its parameter.
        n_power_iterations: Iterations of a call.
        eps: Lowest norm that is divided by.
        dim: The dimension of outputs; by default the second of transposed convolutions, else the first.

    Returns: the module.

    Raises:
        ValueError: No such parameter.

    Example:
        >>> m = nn.utils.parametrizations.spectral_norm(nn.Linear(20, 40))

    Source: Miyato et al., "Spectral Normalization for Generative Adversarial Networks", 2018.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"spectral_norm: {type(module).__name__} has no parameter or buffer {name!r}")
    dim = output_dim(module) if dim is None else dim
    made = _SpectralNorm(weight, n_power_iterations, dim, eps)
    parametrize.register_parametrization(module, name, made)
    return module
