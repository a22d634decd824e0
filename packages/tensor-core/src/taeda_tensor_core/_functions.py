"""Small functions beside the operators."""

from __future__ import annotations

from collections.abc import Sequence

from taeda_tensor_core import _C
from taeda_tensor_core._C import Size, Tensor


def is_tensor(obj: object) -> bool:
    """Whether `obj` is a Tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype of `input` is real floating."""
    return input.is_floating_point()


def is_complex(input: Tensor) -> bool:
    """Whether the dtype of `input` is complex."""
    return input.is_complex()


def numel(input: Tensor) -> int:
    """Number of elements of `input`."""
    return input.numel()


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


def nonzero(input: Tensor, *, as_tuple: bool = False) -> Tensor | tuple[Tensor, ...]:
    """Indices of the non-zero elements in row-major order.

    Args:
        input: Any tensor.
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
    return _C.where(input) if as_tuple else _C.nonzero(input)


def tensordot(a: Tensor, b: Tensor, dims: int | Sequence[Sequence[int]] | Tensor = 2) -> Tensor:
    """Sum of products over dimensions of both.

    Args:
        a: Any tensor.
        b: A tensor of the same dtype.
        dims: How many of the last dimensions of `a` meet the first of `b`; or two lists: the dimensions of `a` and,
            in the same order, those of `b`.

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
        return _C.tensordot(a, b, dims)
    if not isinstance(dims, (list, tuple)) or len(dims) != 2:
        raise TypeError(
            f"tensordot: argument 'dims' must be an int or a pair of lists of ints, found {dims!r}"
        )
    of_a, of_b = ([one] if isinstance(one, int) else one for one in dims)
    return _C.tensordot(a, b, of_a, of_b)
