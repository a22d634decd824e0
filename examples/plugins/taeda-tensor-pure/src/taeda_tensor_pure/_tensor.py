"""The Tensor: a NumPy array with PyTorch's names, methods and errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from taeda_tensor_pure._types import device, dtype, promote


class Size(tuple):
    """A shape."""

    def numel(self) -> int:
        """Number of elements."""
        return int(np.prod(self, dtype=np.int64))

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"


class Tensor:
    """An n-dimensional array; views share memory with their base."""

    _a: np.ndarray
    __array_priority__ = 1000

    def _set(self, array: np.ndarray, requires_grad: bool = False) -> Any:
        self._a, self._grad, self._requires_grad = array, None, requires_grad
        return self

    @staticmethod
    def _make_subclass(cls: type, data: Tensor, requires_grad: bool = False) -> Any:
        """A tensor of a subclass that shares another's memory."""
        return object.__new__(cls)._set(data._a, requires_grad)

    shape = property(lambda self: Size(self._a.shape))
    dtype = property(lambda self: dtype.of(self._a.dtype))
    device = property(lambda self: device())
    ndim = property(lambda self: self._a.ndim)
    T = property(lambda self: wrap(self._a.T))
    is_leaf = property(lambda self: True)
    grad_fn = property(lambda self: None)

    @property
    def requires_grad(self) -> bool:
        """Whether gradients are wanted. Nothing is recorded: gradients come from elsewhere."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        self.requires_grad_(wanted)

    def requires_grad_(self, wanted: bool = True) -> Tensor:
        """Marks the tensor as one that gradients are wanted of; RuntimeError for integers."""
        if wanted and self._a.dtype.kind not in "fc":
            raise RuntimeError(f"requires_grad_: expected a float dtype, found {self.dtype}")
        self._requires_grad = bool(wanted)
        return self

    @property
    def grad(self) -> Tensor | None:
        """The gradient that somebody has assigned."""
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None and (not isinstance(value, Tensor) or value._a.shape != self._a.shape):
            found = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise RuntimeError(f"grad: expected a Tensor of shape {self._a.shape} or None, found {found}")
        self._grad = value

    @property
    def data(self) -> Tensor:
        """The same memory as a plain tensor."""
        return wrap(self._a)

    @data.setter
    def data(self, value: Tensor) -> None:
        self._a = value._a

    def backward(self, *_args: Any, **_options: Any) -> None:
        """RuntimeError: this provider records nothing."""
        raise RuntimeError("backward: taeda-tensor-pure records nothing; assign gradients to .grad")

    def size(self, dim: int | None = None) -> Any:
        """The shape, or one size of it."""
        return self.shape if dim is None else self._a.shape[dim]

    def stride(self, dim: int | None = None) -> Any:
        """Distances between elements, in elements."""
        strides = tuple(s // self._a.itemsize for s in self._a.strides)
        return strides if dim is None else strides[dim]

    def _one(self, name: str) -> Any:
        if self._a.size != 1:
            raise RuntimeError(f"{name}: expected a Tensor of one element, found shape {self._a.shape}")
        return self._a.item()

    def item(self) -> Any:
        """The only element as a Python number; RuntimeError when there are several."""
        return self._one("item")

    def numpy(self) -> np.ndarray:
        """The array itself: memory is shared."""
        return self._a

    def __array__(self, kind: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._a, kind, copy=True) if copy else np.asarray(self._a, kind)

    def tolist(self) -> Any:
        """Elements as nested lists."""
        return self._a.tolist()

    def __len__(self) -> int:
        if not self._a.ndim:
            raise TypeError("len() of a 0-d tensor")
        return len(self._a)

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return "tensor(" + np.array2string(self._a, separator=", ", precision=6, prefix="tensor(") + ")"

    __hash__ = object.__hash__

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        copied = Tensor._make_subclass(type(self), wrap(self._a.copy()), self._requires_grad)
        return memo.setdefault(id(self), copied)

    def __reduce_ex__(self, _protocol: Any) -> Any:
        return _rebuild, (type(self), self._a.copy(), self._requires_grad)

    def contiguous(self, **_options: Any) -> Tensor:
        """Itself when it lies row by row, otherwise a copy that does."""
        return self if self._a.flags.c_contiguous else wrap(self._a.copy())

    def to(self, *args: Any, dtype: Any = None, device: Any = None, copy: bool = False, **_: Any) -> Tensor:
        """The same values in another dtype; itself when nothing changes."""
        for given in args:
            if isinstance(given, Tensor):
                dtype = given.dtype
            elif isinstance(given, type(self.dtype)):
                dtype = given
            elif not isinstance(given, bool):
                device = given
        on_cpu(device)
        same = dtype is None or dtype is self.dtype
        return self if same and not copy else wrap(self._a.astype(self._a.dtype if same else dtype.numpy))

    def store(self, value: Any, name: str) -> Tensor:
        """Overwrites with a result; RuntimeError when its shape or kind does not fit."""
        array = unwrap(value)
        if np.broadcast_shapes(self._a.shape, np.shape(array)) != self._a.shape:
            raise RuntimeError(f"{name}: shape {np.shape(array)} does not fit into shape {self._a.shape}")
        lossy = self._a.dtype.kind in "biu" and promote(self._a, array).kind != self._a.dtype.kind
        if lossy and name != "copy_":
            raise RuntimeError(f"{name}: dtype {promote(self._a, array)} cannot be kept in {self.dtype}")
        self._a[...] = array
        return self

    def copy_(self, source: Tensor, non_blocking: bool = False) -> Tensor:
        """Overwrites with another's values, broadcast and converted."""
        return self.store(source, "copy_")

    def fill_(self, value: Any) -> Tensor:
        """Overwrites with one value."""
        self._a[...] = unwrap(value)
        return self

    def zero_(self) -> Tensor:
        """Overwrites with zeros."""
        return self.fill_(0)

    def __getitem__(self, index: Any) -> Tensor:
        places = unwrap(index)
        # The Ellipsis makes a single element a 0-d view, where NumPy alone gives a scalar.
        exact = places if isinstance(places, tuple) else (places,)
        whole = any(item is Ellipsis for item in exact)
        return wrap(self._a[exact if whole else (*exact, ...)])

    def __setitem__(self, index: Any, value: Any) -> None:
        try:
            self._a[unwrap(index)] = unwrap(value)
        except ValueError as error:
            raise RuntimeError(f"assignment through an index: {error}") from None


for _name, _kind in (("bool", bool), ("int", int), ("index", int), ("float", float)):
    setattr(Tensor, f"__{_name}__", lambda self, name=_name, kind=_kind: kind(self._one(name)))


def _rebuild(cls: type, array: np.ndarray, requires_grad: bool) -> Tensor:
    return Tensor._make_subclass(cls, wrap(array), requires_grad)


def wrap(value: Any) -> Any:
    """Arrays and NumPy scalars, also in tuples, as tensors, without copying."""
    if isinstance(value, (tuple, list)):
        return tuple(wrap(item) for item in value)
    if isinstance(value, (np.ndarray, np.generic)):
        return object.__new__(Tensor)._set(np.asarray(value))
    return value


def unwrap(value: Any) -> Any:
    """Tensors, also in lists and tuples, as their arrays; everything else as it is."""
    if isinstance(value, Tensor):
        return value._a
    return type(value)(map(unwrap, value)) if type(value) in (list, tuple) else value


def on_cpu(place: Any) -> None:
    """RuntimeError for another device than the host."""
    if place is not None:
        device(place)


def lifted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function on arrays as one on tensors: shapes that do not fit are a RuntimeError that names it."""

    def call(*args: Any, **options: Any) -> Any:
        arrays = unwrap(args)
        try:
            with np.errstate(all="ignore"):
                return wrap(function(*arrays, **{key: unwrap(value) for key, value in options.items()}))
        except np.exceptions.AxisError as error:
            raise IndexError(f"{name}: argument 'dim': {error}") from None
        except ValueError as error:
            shapes = [np.shape(array) for array in arrays]
            raise RuntimeError(f"{name}: arguments of shapes {shapes} do not fit: {error}") from None

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Operator `{name}` with the arguments and the meaning that it has everywhere in taeda."
    return call


def in_place(name: str, function: Callable[..., Any]) -> None:
    """Gives the class ``name_``, which stores the function's result in its first argument."""

    def call(self: Tensor, *args: Any, **options: Any) -> Tensor:
        return self.store(function(self, *args, **options), f"{name}_")

    call.__name__, call.__doc__ = f"{name}_", f"`{name}`, stored in the tensor itself."
    setattr(Tensor, call.__name__, call)
