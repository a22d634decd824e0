"""The array object: a tensor whose operators follow the standard."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from taeda_tensor_core import _C
from taeda_tensor_core.array_api import _dtypes

Tensor = _C.Tensor


class Array(Tensor):
    """A tensor with the operators of the Python array API standard.

    It shares the memory, the gradient and all else of the tensor it is made of (`as_array`); functions of taeda take it
    as a tensor and give tensors, functions of `taeda.array_api` give arrays. Where the standard and PyTorch contradict
    each other the standard holds: 0-dimensional arrays promote as others do, Python numbers never change an integer
    into a floating-point number, ``size`` is the number of elements, ``T`` is for matrices only.

    Example:
        >>> xp.asarray([1], dtype=xp.int8) + xp.asarray(1000, dtype=xp.int16)
        Array([1001], dtype=taeda.int16)
    """

    # Functions that know nothing of arrays take one for the tensor that it is.
    __torch_function__ = _C._disabled_torch_function_impl
    __array_priority__ = 1000

    def __new__(cls, *args: Any, **kwargs: Any) -> Array:
        raise TypeError("Array: arrays are made by asarray, zeros and the like, not by the class")

    # What the standard asks of every array

    @property
    def size(self) -> int:  # type: ignore[override]
        """The number of elements."""
        return Tensor.numel(self)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The sizes, a tuple of ints."""
        return tuple(Tensor.shape.__get__(self))

    @property
    def T(self) -> Array:
        """The transpose of a matrix, a view."""
        if self.ndim != 2:
            raise ValueError(f"Array.T: found {self.ndim} dimensions, expected 2; see mT and permute_dims")
        return as_array(Tensor.transpose(self, 0, 1))

    @property
    def mT(self) -> Array:
        """The transposes of a stack of matrices, a view."""
        if self.ndim < 2:
            raise ValueError(f"Array.mT: found {self.ndim} dimensions, expected at least 2")
        return as_array(Tensor.transpose(self, -1, -2))

    def __array_namespace__(self, /, *, api_version: str | None = None) -> Any:
        return namespace(api_version)

    def to_device(self, device: Any, /, *, stream: Any = None) -> Array:
        """The array on another device; itself when it is there."""
        if stream is not None:
            raise ValueError(f"Array.to_device: argument 'stream' is {stream!r}, expected None")
        return as_array(Tensor.to(self, device))

    # Conversion of arrays with one element: 0 dimensions are asked for

    def __bool__(self) -> bool:
        return bool(self._number("bool"))

    def __int__(self) -> int:
        return int(self._number("int"))

    def __float__(self) -> float:
        value = self._number("float")
        if isinstance(value, complex):
            raise TypeError("Array.__float__: a complex number is no float")
        return float(value)

    def __complex__(self) -> complex:
        return complex(self._number("complex"))

    def __index__(self) -> int:
        if _dtypes.level(self.dtype) != 1:
            raise TypeError(f"Array.__index__: found {self.dtype}, expected an integer dtype")
        return int(self._number("index"))

    def _number(self, what: str) -> Any:
        if self.ndim != 0:
            raise TypeError(f"Array.__{what}__: found shape {self.shape}, expected 0 dimensions")
        return Tensor.item(self)

    # Elements

    def __getitem__(self, key: Any) -> Array:  # type: ignore[override]
        if (
            isinstance(key, Tensor)
            and key.dtype == _C.bool
            and 0 in Tensor.shape.__get__(key)
            and key.ndim <= self.ndim
            and all(k in (n, 0) for n, k in zip(self.shape, key.shape))  # noqa: B905  (a mask of fewer dimensions)
        ):
            # A mask may have size 0 where the array has another: it chooses nothing.
            return as_array(_C.zeros((0, *self.shape[key.ndim :]), dtype=self.dtype, device=self.device))
        return as_array(Tensor.__getitem__(self, _key(key)))

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, Tensor):
            if value.dtype != self.dtype and _dtypes.promoted(self.dtype, value.dtype) != self.dtype:
                raise TypeError(f"Array.__setitem__: {value.dtype} does not promote to {self.dtype}")
            value = plain(value)
        else:
            _dtypes.with_scalar(self.dtype, value)
        Tensor.__setitem__(self, _key(key), value)

    def __iter__(self) -> Any:
        if self.ndim == 0:
            raise TypeError("Array.__iter__: an array of 0 dimensions has no elements to go over")
        return (as_array(part) for part in Tensor.unbind(self, 0))

    def __repr__(self) -> str:
        return "Array" + repr(plain(self)).removeprefix("tensor").replace("\n ", "\n")

    __hash__ = Tensor.__hash__


def plain(x: Any) -> Any:
    """The tensor that an array is, with the same memory and gradient."""
    return x.as_subclass(Tensor) if type(x) is not Tensor else x


def as_array(x: Any) -> Array:
    """The array that a tensor is."""
    return x if type(x) is Array else x.as_subclass(Array)


def namespace(api_version: str | None) -> Any:
    """`taeda.array_api`, for one of the revisions that it keeps.

    Raises:
        ValueError: another revision.
    """
    from taeda_tensor_core import array_api

    if api_version not in (None, *array_api.REVISIONS):
        raise ValueError(
            f"__array_namespace__: argument 'api_version' is {api_version!r}, "
            f"expected one of {', '.join(array_api.REVISIONS)}"
        )
    return array_api


def _key(key: Any) -> Any:
    """An index with its arrays as tensors; floating-point ones are refused by the tensor."""
    if isinstance(key, tuple):
        return tuple(_key(part) for part in key)
    return plain(key) if isinstance(key, Tensor) else key


def _install(names: dict[str, Callable[[Any, Any], Any]], unary: dict[str, Callable[[Any], Any]]) -> None:
    """Give arrays the operators that functions of the namespace are."""
    for name, function in names.items():
        setattr(Array, f"__{name}__", _operator(function))
        if name not in ("eq", "ne", "lt", "le", "gt", "ge"):
            setattr(Array, f"__r{name}__", _reflected(function))
            setattr(Array, f"__i{name}__", _in_place(name, function))
    for name, function in unary.items():
        setattr(Array, f"__{name}__", lambda self, function=function: function(self))


def _known(other: Any) -> bool:
    return isinstance(other, (Tensor, bool, int, float, complex))


def _operator(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda self, other: function(self, other) if _known(other) else NotImplemented


def _reflected(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda self, other: function(other, self) if _known(other) else NotImplemented


def _in_place(name: str, function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def apply(self: Array, other: Any) -> Any:
        if not _known(other):
            return NotImplemented
        result = function(self, other)
        if result.dtype != self.dtype or result.shape != self.shape:
            raise TypeError(
                f"Array.__i{name}__: the result has dtype {result.dtype} and shape {result.shape}, "
                f"expected those of the array, {self.dtype} and {self.shape}"
            )
        Tensor.copy_(self, plain(result))
        return self

    return apply


def axis_of(name: str, x: Any, axis: int) -> int:
    """``axis`` counted from 0.

    Raises:
        IndexError: there is no such axis.
    """
    axis = operator.index(axis)
    if not -x.ndim <= axis < x.ndim:
        raise IndexError(f"{name}: argument 'axis' is {axis}, expected {-x.ndim} to {x.ndim - 1}")
    return axis % x.ndim
