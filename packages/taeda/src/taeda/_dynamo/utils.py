"""Questions about the compiler, and comparison of what programs give."""

from __future__ import annotations

import collections
import contextlib
import functools
import warnings
from typing import TYPE_CHECKING, Any

import taeda

if TYPE_CHECKING:
    from collections.abc import Iterator


def is_compile_supported(device_type: str) -> bool:
    """Whether functions can be compiled for a kind of device: False."""
    return False


def compile_times(repr: str = "str", aggregate: bool = False) -> str:
    """How long compiling took: nothing was compiled."""
    return ""


#: Graphs that went to backends of programs' own, and the calls in them.
counters: collections.defaultdict[str, collections.Counter[str]] = collections.defaultdict(
    collections.Counter
)


@contextlib.contextmanager
def disable_cache_limit() -> Iterator[None]:
    """A block in which functions may be compiled anew as often as they like: none is counted."""
    yield


@functools.cache
def warn_once(msg: str, stacklevel: int = 1) -> None:
    """Warn of something the first time that it is said."""
    warnings.warn(msg, stacklevel=stacklevel + 2)


def clone_input(x: Any, *, dtype: Any = None) -> Any:
    """The tensor with memory and a gradient of its own, a leaf as it was; other values as they are."""
    if not isinstance(x, taeda.Tensor):
        return x
    made = x.detach().clone()
    if dtype is not None and made.is_floating_point():
        made = made.to(dtype)
    made.requires_grad_(x.requires_grad)
    if x.is_leaf and x.grad is not None:
        made.grad = clone_input(x.grad, dtype=dtype)
    return made


def clone_inputs(example_inputs: Any) -> Any:
    """`clone_input` of the tensors in a list or a dict, one level down too."""
    if isinstance(example_inputs, dict):
        return {
            key: clone_inputs(v) if isinstance(v, tuple) else clone_input(v)
            for key, v in example_inputs.items()
        }
    return [clone_input(value) for value in example_inputs]


def same(
    ref: Any, res: Any, *, tol: float = 1e-4, equal_nan: bool = False, exact_dtype: bool = True, **_: Any
) -> bool:
    """Whether two results are close: tensors, numbers and objects, in lists, tuples and dicts.

    Args:
        ref: The one.
        res: The other.
        tol: Absolute and relative tolerance of tensors.
        equal_nan: Whether NaN is close to NaN.
        exact_dtype: Whether the dtypes of tensors must be the same.
        **_: Accepted and not read.

    Example:
        >>> same([taeda.ones(2)], [taeda.ones(2) + 1e-6])
        True
    """
    options = {"tol": tol, "equal_nan": equal_nan, "exact_dtype": exact_dtype}
    if isinstance(ref, list | tuple | taeda.Size):
        long = isinstance(res, list | tuple) and len(ref) == len(res)
        return long and all(same(a, b, **options) for a, b in zip(ref, res, strict=True))
    if isinstance(ref, dict):
        return (
            isinstance(res, dict)
            and ref.keys() == res.keys()
            and all(same(ref[key], res[key], **options) for key in ref)
        )
    if isinstance(ref, taeda.Tensor):
        if (
            not isinstance(res, taeda.Tensor)
            or ref.shape != res.shape
            or (exact_dtype and ref.dtype != res.dtype)
        ):
            return False
        if not ref.dtype.is_floating_point and not ref.dtype.is_complex:
            return bool(taeda.equal(ref, res.to(ref.dtype)))
        return bool(taeda.allclose(ref, res.to(ref.dtype), atol=tol, rtol=tol, equal_nan=equal_nan))
    if isinstance(ref, float):
        return isinstance(res, float | int) and (ref == res or abs(ref - res) <= tol * (1 + abs(ref)))
    return bool(ref == res)
