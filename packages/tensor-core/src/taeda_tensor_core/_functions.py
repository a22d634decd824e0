"""Small functions beside the operators."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index

from taeda_tensor_core import _C, _overridable
from taeda_tensor_core._C import Size, Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def is_tensor(obj: object) -> bool:
    """Whether `obj` is a Tensor."""
    return isinstance(obj, Tensor)


def _instead(function: Any, value: Any) -> Any:
    """What a class answers that is no tensor's, where it is the first of its kind: no operator has seen one yet.

    Raises:
        TypeError: It answers nothing.
    """
    if _overridable.is_asking() or not hasattr(type(value), "__torch_function__"):
        raise TypeError(
            f"{function.__name__}: argument 'input' must be a Tensor, found {type(value).__name__}"
        ) from None
    _C._arm_overrides()
    return function(value)


def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype of `input` is real floating."""
    try:
        return input.is_floating_point()
    except AttributeError:
        return _instead(is_floating_point, input)


def is_complex(input: Tensor) -> bool:
    """Whether the dtype of `input` is complex."""
    try:
        return input.is_complex()
    except AttributeError:
        return _instead(is_complex, input)


def numel(input: Tensor) -> int:
    """Number of elements of `input`."""
    try:
        return input.numel()
    except AttributeError:
        return _instead(numel, input)


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for operators whose results are the same bits in every run, with any number of threads.

    Those of the cpu are so always, but for convolutions in float32 and the halves by oneDNN: these repeat with one
    number of threads only, and take a slower way while this is on. Operators of other devices that cannot raise
    RuntimeError.

    Args:
        mode: True turns it on, False off, for the whole process.
        warn_only: Operators that cannot warn instead.

    Example:
        >>> taeda.use_deterministic_algorithms(True)
        >>> taeda.are_deterministic_algorithms_enabled()
        True
        >>> taeda.use_deterministic_algorithms(False)
    """
    _C._set_determinism(0 if not mode else 1 if warn_only else 2)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether use_deterministic_algorithms(True) was called, with or without `warn_only`."""
    return _C._determinism() > 0


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether use_deterministic_algorithms(True, warn_only=True) was called."""
    return _C._determinism() == 1


def is_nonzero(input: Tensor) -> bool:
    """Truth of a one-element tensor."""
    return bool(input)


def resolve_conj(input: Tensor) -> Tensor:
    """`input` itself: conj() computes at once and leaves nothing to resolve."""
    return input


def resolve_neg(input: Tensor) -> Tensor:
    """`input` itself: neg() computes at once and leaves nothing to resolve."""
    return input


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether both have the same shape."""
    for name, value in (("input", input), ("other", other)):
        if not isinstance(value, Tensor):
            raise TypeError(f"is_same_size: argument {name!r} must be a Tensor, found {type(value).__name__}")
    return input.shape == other.shape


def broadcast_shapes(*shapes: tuple[int, ...] | int) -> Size:
    """Shape that the shapes broadcast to.

    Raises:
        RuntimeError: They cannot be broadcast.

    Example:
        >>> taeda.broadcast_shapes((2, 1), (3,))
        Size([2, 3])
    """
    parts = [
        _C.empty((shape,) if isinstance(shape, int) else tuple(shape), device="meta") for shape in shapes
    ]
    return _C.broadcast_tensors(*parts)[0].shape if parts else Size(())


def nonzero(
    input: Tensor, *, out: Tensor | None = None, as_tuple: bool = False
) -> Tensor | tuple[Tensor, ...]:
    """Indices of the non-zero elements in row-major order.

    Args:
        input: Any tensor.
        out: Where the matrix is written.
        as_tuple: Give one int64 tensor for each dimension (one for a number), fit for indexing, instead of a matrix.

    Returns: int64 of shape (n, ndim), or `ndim` tensors of shape (n,).

    Example:
        >>> t = taeda.tensor([[0, 3], [5, 0]])
        >>> taeda.nonzero(t)
        tensor([[0, 1],
                [1, 0]])
        >>> t[taeda.nonzero(t, as_tuple=True)]
        tensor([3, 5])
    """
    if out is None:
        return _C.where(input) if as_tuple else _C.nonzero(input)
    if as_tuple:
        raise TypeError("nonzero: argument 'out' takes a matrix, which as_tuple=True does not give")
    return _C.nonzero(input, out=out)


def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Grids of coordinates: tensor number i changes along dimension i of the result only.

    Args:
        *tensors: Tensors of at most one dimension, or one sequence of them.
        indexing: "ij", the default, or "xy", which exchanges the first two dimensions.

    Example:
        >>> taeda.meshgrid(taeda.arange(2), taeda.arange(3), indexing="ij")[0].shape
        Size([2, 3])
    """
    return _C.meshgrid(*tensors) if indexing is None else _C.meshgrid(*tensors, indexing=indexing)


def einsum(*args: Any) -> Tensor:
    """Sum of products in Einstein's notation.

    Args:
        args: An equation such as ``"ij,jk->ik"`` and the tensors; or in turn each tensor and the list of numbers (below
            52, or ``...``) of its dimensions, and last the list of those of the result.

    Returns: A tensor of the result's dimensions; without a result named, of those that occur once, in order.

    Raises:
        RuntimeError: An equation that cannot be read, or sizes that do not fit each other.
        TypeError: Arguments of another form.

    Example:
        >>> x, y = taeda.ones(2, 3), taeda.ones(3, 4)
        >>> taeda.einsum("ij,jk->ik", x, y).shape
        Size([2, 4])
        >>> taeda.einsum(x, [0, 1], y, [1, 2], [0, 2]).shape
        Size([2, 4])
    """
    if not args or isinstance(args[0], str) or len(args) < 2:
        return _C.einsum(*args)
    if not hasattr(args[0], "shape"):
        raise TypeError(
            f"einsum: argument 'equation' must be a str or a tensor, found {type(args[0]).__name__}"
        )
    pairs, last = args[: len(args) - len(args) % 2], args[-1] if len(args) % 2 else None
    terms = ",".join(_letters(labels) for labels in pairs[1::2])
    return _C.einsum(terms if last is None else f"{terms}->{_letters(last)}", *pairs[::2])


_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _letters(labels: Any) -> str:
    """The dimensions' numbers of an operand as einsum's letters."""
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise TypeError(
            f"einsum: expected a list of dimensions behind each tensor, found {type(labels).__name__}"
        )
    return "".join(map(_letter, labels))


def _letter(label: Any) -> str:
    if label is ...:
        return "..."
    if not (hasattr(label, "__index__") and 0 <= index(label) < len(_LETTERS)):
        raise RuntimeError(
            f"einsum: {label!r} is no dimension's number, expected 0 to {len(_LETTERS) - 1} or ..."
        )
    return _LETTERS[label]


class _Histogram(tuple):
    """Result of histogramdd."""

    @property
    def hist(self) -> Tensor:
        """What lies in each cell."""
        return self[0]

    @property
    def bin_edges(self) -> tuple[Tensor, ...]:
        """The bounds of each coordinate's intervals."""
        return self[1]


_Histogram.__name__ = "histogramdd"  # as PyTorch's class is called


def histogramdd(
    input: Tensor,
    bins: int | Sequence[int] | Sequence[Tensor],
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> _Histogram:
    """Histogram of points.

    Args:
        input: (..., D): points of D coordinates.
        bins: How many intervals each coordinate is cut into, one number for all, or the ascending bounds of each.
        range: Two bounds for each coordinate; by default the least and the largest of the points'.
        weight: What each point counts, of the shape of `input` without its last dimension.
        density: Divide by the sum and by the intervals' sizes.

    Returns: `hist` of D dimensions and `bin_edges`, the bounds of each coordinate's intervals.

    Raises:
        RuntimeError: Shapes or dtypes that do not fit, bounds that do not ascend or are not finite.

    Example:
        >>> points = taeda.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [2.0, 2.0]])
        >>> taeda.histogramdd(points, bins=[3, 3]).hist
        tensor([[0., 1., 0.],
                [1., 0., 0.],
                [0., 0., 2.]])
    """
    if isinstance(bins, (list, tuple)) and bins and isinstance(bins[0], Tensor):
        if range is not None:
            raise TypeError(
                "histogramdd: argument 'range' is for numbers of intervals, found tensors as 'bins'"
            )
        hist, *edges = _C.ops.histogramdd(input, bins, weight=weight, density=density)
    else:
        hist, *edges = _C.ops.histogramdd(input, bins, range=range, weight=weight, density=density)
    return _Histogram((hist, tuple(edges)))


def tensordot(
    a: Tensor, b: Tensor, dims: int | Sequence[Sequence[int]] | Tensor = 2, out: Tensor | None = None
) -> Tensor:
    """Sum of products over dimensions of both.

    Args:
        a: Any tensor.
        b: A tensor of the same dtype.
        dims: How many of the last dimensions of `a` meet the first of `b`; or two lists: the dimensions of `a` and,
            in the same order, those of `b`.
        out: Where the result is written.

    Returns: The other dimensions of `a`, then those of `b`.

    Raises:
        RuntimeError: sizes or numbers of dimensions that do not fit each other.
        TypeError: `dims` of another form.

    Example:
        >>> taeda.tensordot(taeda.ones(2, 3, 4), taeda.ones(4, 3, 5), dims=([1, 2], [1, 0])).shape
        Size([2, 5])
    """
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        return _C.tensordot(a, b, dims, out=out)
    if not isinstance(dims, (list, tuple)) or len(dims) != 2:
        raise TypeError(
            f"tensordot: argument 'dims' must be an int or a pair of lists of ints, found {dims!r}"
        )
    of_a, of_b = ([one] if isinstance(one, int) else one for one in dims)
    return _C.tensordot(a, b, of_a, of_b, out=out)


def _in_dtype(parts: tuple[Tensor, ...], *operands: Tensor | None) -> tuple[Tensor, ...]:
    """A result and its statistics, these in the dtype of the parameters, else of the input."""
    kind = next((t.dtype for t in operands if t is not None), parts[0].dtype)
    return parts[0], *(part if part.dtype == kind else part.to(kind) for part in parts[1:])


def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    *,
    out: Sequence[Tensor] | None = None,
) -> Any:
    """`batch_norm` with the means and inverse deviations that it used.

    Returns: The result, and the two statistics in the dtype of the parameters, else of `input`; in evaluation these
    have no elements.

    Raises:
        RuntimeError: Sizes that do not fit each other.

    Example:
        >>> y, mean, invstd = taeda.native_batch_norm(taeda.randn(8, 3), None, None, None, None, True, 0.1, 1e-5)
        >>> mean.shape
        Size([3])
    """
    parts = _C.native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
    if not training:
        parts = parts[0], *(part[:0] for part in parts[1:])
    made = _in_dtype(parts, weight, bias, running_mean, running_var)
    if out is None:
        return made
    _copies_into("native_batch_norm", made, out)
    return out


def native_layer_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, ...]:
    """`layer_norm` with the mean and inverse deviation of each row, in the dtype of the parameters, else of `input`.

    Raises:
        RuntimeError: Sizes that do not fit each other.

    Example:
        >>> y, mean, rstd = taeda.native_layer_norm(taeda.randn(8, 3), (3,), None, None, 1e-5)
        >>> mean.shape
        Size([8, 1])
    """
    return _in_dtype(_C.native_layer_norm(input, normalized_shape, weight, bias, eps), weight, bias)


def native_group_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> tuple[Tensor, ...]:
    """`group_norm` with the mean and inverse deviation of each group, which are differentiable too.

    Args:
        input: (N, C, *) with HxW elements for each channel.
        weight, bias: (C,), or None.
        N, C, HxW: The sizes of `input`.
        group: Number of groups.
        eps: Added to variances.

    Returns: The result, and the statistics of shape (N, group) in the dtype of the parameters, else of `input`.

    Raises:
        RuntimeError: Sizes that do not fit each other.

    Example:
        >>> y, mean, rstd = taeda.native_group_norm(taeda.randn(2, 4, 3), None, None, 2, 4, 3, 2, 1e-5)
        >>> mean.shape
        Size([2, 2])
    """
    if input.dim() < 2 or (input.shape[0], input.shape[1]) != (N, C) or input.numel() != N * C * HxW:
        raise RuntimeError(
            f"native_group_norm: argument 'input' has shape {tuple(input.shape)}, expected ({N}, {C}, ...) of "
            f"{N * C * HxW} elements"
        )
    result, mean, rstd = _C.native_group_norm(input, group, weight, bias, eps)
    if input.requires_grad and _C.is_grad_enabled():
        rows = input.reshape(N, group, C // group * HxW).to(mean.dtype)
        mean, rstd = rows.mean(-1), (rows.var(-1, unbiased=False) + eps).rsqrt()
    return _in_dtype((result, mean, rstd), weight, bias)


def _copies_into(name: str, parts: tuple[Tensor, ...], out: Sequence[Tensor] | None) -> Any:
    """The parts, or nothing when they are written to the tensors of `out`."""
    if out is None:
        return parts
    if not isinstance(out, (list, tuple)) or not all(isinstance(target, Tensor) for target in out):
        raise TypeError(f"{name}: argument 'out' must be a sequence of Tensors, found {type(out).__name__}")
    if len(out) != len(parts):
        raise RuntimeError(f"{name}: argument 'out' has {len(out)} tensors, expected {len(parts)}")
    for target, part in zip(out, parts, strict=True):
        _C.alias_copy(part, out=target)
    return None


def split_copy(
    input: Tensor, split_size: int, dim: int = 0, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...]:
    """`split`, each part in memory of its own; with `out` written there, and nothing is given back."""
    return _copies_into("split_copy", _C.split_copy(input, split_size, dim), out)


def split_with_sizes_copy(
    input: Tensor, split_sizes: Sequence[int], dim: int = 0, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...]:
    """`split_with_sizes`, each part in memory of its own; with `out` written there, and nothing is given back."""
    return _copies_into("split_with_sizes_copy", _C.split_with_sizes_copy(input, split_sizes, dim), out)


def unbind_copy(input: Tensor, dim: int = 0, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """`unbind`, each part in memory of its own; with `out` written there, and nothing is given back."""
    return _copies_into("unbind_copy", _C.unbind_copy(input, dim), out)
