"""Creation, element-wise functions, reductions, shapes, joining and products: tables of functions on arrays."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from taeda_tensor_pure._tensor import Tensor, in_place, lifted, on_cpu, unwrap, wrap
from taeda_tensor_pure._types import dtype as _dtype
from taeda_tensor_pure._types import get_default_dtype, promote, to_numpy

# --- creation ---


def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A new tensor from numbers, nested sequences, arrays or tensors; always a copy."""
    on_cpu(device)
    return _from(data, dtype, True).requires_grad_(requires_grad)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor from data, sharing memory where possible."""
    on_cpu(device)
    return data if isinstance(data, Tensor) and dtype in (None, data.dtype) else _from(data, dtype, False)


def from_numpy(array: np.ndarray) -> Tensor:
    """A tensor that shares an array's memory."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"from_numpy: expected an array, found {type(array).__name__}")
    return _from(array, None, False)


def _from(data: Any, dtype: Any, copy: bool) -> Tensor:
    array = np.asarray(unwrap(data))
    if array.dtype.kind not in "biufc":
        raise TypeError(f"tensor: expected numbers, found {type(data).__name__} of dtype {array.dtype}")
    leaf: Any = data
    while isinstance(leaf, (list, tuple)) and leaf:
        leaf = leaf[0]
    measured = isinstance(leaf, (Tensor, np.ndarray, np.generic))
    kind = get_default_dtype().numpy if array.dtype.kind == "f" and not measured else array.dtype
    _dtype.of(kind)
    return wrap(np.array(array, to_numpy(dtype, kind), copy=copy or None))


def _sizes(size: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else tuple(size)


def _maker(make: Callable[..., np.ndarray]) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    def sized(
        *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, **_: Any
    ) -> Tensor:
        on_cpu(device)
        return wrap(make(_sizes(size), to_numpy(dtype))).requires_grad_(requires_grad)

    def like(input: Tensor, *, dtype: Any = None, device: Any = None, **_: Any) -> Tensor:
        on_cpu(device)
        return wrap(make(input._a.shape, to_numpy(dtype, input._a.dtype)))

    return sized, like


empty, empty_like = _maker(np.empty)
zeros, zeros_like = _maker(np.zeros)
ones, ones_like = _maker(np.ones)


def full(size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, **_: Any) -> Tensor:
    """A new tensor of one value."""
    on_cpu(device)
    value = unwrap(fill_value)
    return wrap(np.full(size, value, to_numpy(dtype, promote(value))))


def full_like(input: Tensor, fill_value: Any, *, dtype: Any = None, **_: Any) -> Tensor:
    """A new tensor of one value in another's shape."""
    return full(input._a.shape, fill_value, dtype=dtype or input.dtype)


def arange(start: Any, end: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Evenly spaced values in a half-open interval."""
    on_cpu(device)
    start, end = (0, start) if end is None else (start, end)
    return wrap(np.arange(start, end, step, to_numpy(dtype, promote(start, end, step))))


def eye(n: int, m: int | None = None, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The identity matrix."""
    on_cpu(device)
    return wrap(np.eye(n, m, dtype=to_numpy(dtype)))


# --- how functions on arrays become operators ---


def _define(functions: dict[str, Callable[..., Any]], stored: bool = False) -> None:
    """Makes functions on arrays into functions and methods, and in-place methods where wanted."""
    for name, function in functions.items():
        operator = lifted(name, function)
        globals()[name] = operator
        setattr(Tensor, name, operator)
        if stored:
            in_place(name, operator)


def _cast(*values: Any, floats: bool = False) -> list[np.ndarray]:
    """Operands in their common dtype."""
    kind = promote(*values)
    kind = get_default_dtype().numpy if floats and kind.kind in "biu" else kind
    return [np.asarray(value).astype(kind, copy=False) for value in values]


def _elementwise(function: Callable[..., Any], floats: bool = False) -> Callable[..., Any]:
    return lambda *operands: function(*_cast(*operands, floats=floats))


def _plus(ufunc: Callable[..., Any]) -> Callable[..., Any]:
    def call(a: Any, b: Any, *, alpha: Any = 1) -> np.ndarray:
        a, b = _cast(a, b)
        return ufunc(a, b if alpha == 1 else b * a.dtype.type(alpha))

    return call


def _divide(a: Any, b: Any, *, rounding_mode: str | None = None) -> np.ndarray:
    rounded = {None: None, "floor": np.floor, "trunc": np.trunc}[rounding_mode]
    arrays = _cast(a, b, floats=rounded is None)
    return (
        np.true_divide(*arrays) if rounded is None else rounded(arrays[0] / arrays[1]).astype(arrays[0].dtype)
    )


def _softplus(x: np.ndarray, beta: float = 1, threshold: float = 20) -> np.ndarray:
    return np.where(x * beta > threshold, x, np.logaddexp(0, x * beta) / beta).astype(x.dtype)


_erf = np.vectorize(math.erf, otypes=[np.float64])
_ARC = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2"}
_FLOATS = ("sqrt", "exp", "log", "log1p", "expm1", "sin", "cos", "tan", "tanh", "asin", "acos", "atan")
_KEPT = (
    "abs",
    "sign",
    "floor",
    "ceil",
    "trunc",
    "square",
    "round",
    "isnan",
    "isinf",
    "isfinite",
    "logical_not",
)
_define({n: _elementwise(getattr(np, _ARC.get(n, n)), True) for n in _FLOATS}, stored=True)
_define({n: _elementwise(getattr(np, n)) for n in _KEPT}, stored=True)
_define({
    "neg": np.negative, "bitwise_not": np.invert, "relu": lambda x: np.maximum(x, x.dtype.type(0)),
    "reciprocal": _elementwise(lambda x: 1 / x, True), "rsqrt": _elementwise(lambda x: 1 / np.sqrt(x), True),
    "sigmoid": _elementwise(lambda x: 1 / (1 + np.exp(-x)), True), "softplus": _softplus,
    "erf": _elementwise(lambda x: _erf(x).astype(x.dtype), True),
    "add": _plus(np.add), "sub": _plus(np.subtract), "mul": _elementwise(np.multiply), "div": _divide,
    "pow": _elementwise(np.power), "floor_divide": _elementwise(np.floor_divide),
    "remainder": _elementwise(np.remainder), "atan2": _elementwise(np.arctan2, True),
    "maximum": _elementwise(np.maximum), "minimum": _elementwise(np.minimum),
    "clamp": lambda x, min=None, max=None: np.clip(x, min, max).astype(x.dtype, copy=False),
    "addcmul": lambda x, a, b, *, value=1: x + x.dtype.type(value) * a * b,
    "addcdiv": lambda x, a, b, *, value=1: x + x.dtype.type(value) * a / b,
    "lerp": lambda x, end, weight: x + (end - x) * weight,
    "masked_fill": lambda x, mask, value: np.where(mask, np.asarray(value, x.dtype), x),
}, stored=True)  # fmt: skip
_define({n: _elementwise(getattr(np, s)) for n, s in (("eq", "equal"), ("ne", "not_equal"), ("lt", "less"),
        ("le", "less_equal"), ("gt", "greater"), ("ge", "greater_equal"))})  # fmt: skip
_define({f"{kind}_{n}": _elementwise(getattr(np, f"{kind}_{n}")) for kind in ("bitwise", "logical")
         for n in ("and", "or", "xor")})  # fmt: skip


def _operators() -> None:
    """Python's operators; an operand of a foreign type is left to that type."""
    known = (Tensor, builtins.bool, builtins.int, builtins.float, complex, np.ndarray, np.generic)

    def forward(call: Callable[..., Any]) -> Callable[..., Any]:
        return lambda self, other: call(self, other) if isinstance(other, known) else NotImplemented

    def reverse(call: Callable[..., Any]) -> Callable[..., Any]:
        return lambda self, other: call(other, self) if isinstance(other, known) else NotImplemented

    names = {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "pow": "pow", "mod": "remainder",
             "floordiv": "floor_divide", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor"}  # fmt: skip
    for sign, name in names.items():
        setattr(Tensor, f"__{sign}__", forward(globals()[name]))
        setattr(Tensor, f"__r{sign}__", reverse(globals()[name]))
        if hasattr(Tensor, f"{name}_"):
            setattr(Tensor, f"__i{sign}__", getattr(Tensor, f"{name}_"))
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(Tensor, f"__{name}__", forward(globals()[name]))
    Tensor.__neg__, Tensor.__abs__, Tensor.__invert__ = Tensor.neg, Tensor.abs, Tensor.bitwise_not


_operators()

# --- reductions ---


def _reduce(function: Callable[..., Any], wide: bool = False) -> Callable[..., Any]:
    def call(x: np.ndarray, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, **more: Any) -> Any:
        x = x if dtype is None else x.astype(dtype.numpy)
        if function in (np.mean, np.var) and x.dtype.kind not in "fc":
            raise RuntimeError(f"{function.__name__}: expected a float dtype, found {x.dtype}")
        kind = {"dtype": np.int64} if wide and x.dtype.kind in "biu" else {}
        axis = tuple(dim) if isinstance(dim, list) else dim
        return function(x, axis=axis, keepdims=keepdim, **kind, **more)

    return call


def _extremum(
    value: Callable[..., Any], index: Callable[..., Any], two: Callable[..., Any]
) -> Callable[..., Any]:
    def call(x: np.ndarray, dim: Any = None, keepdim: bool = False) -> Any:
        if isinstance(dim, np.ndarray):
            return _elementwise(two)(x, dim)
        found = np.asarray(value(x, axis=dim, keepdims=keepdim))
        return found if dim is None else (found, np.asarray(index(x, axis=dim, keepdims=keepdim), np.int64))

    return call


_define({
    "sum": _reduce(np.sum, True), "prod": _reduce(np.prod, True), "mean": _reduce(np.mean), "any": _reduce(np.any),
    "all": _reduce(np.all), "amax": _reduce(np.max), "amin": _reduce(np.min),
    "norm": lambda x, p=2.0, dim=None, keepdim=False: (np.abs(x) ** p).sum(dim, keepdims=keepdim) ** (1 / p),
    "argmax": _reduce(np.argmax), "argmin": _reduce(np.argmin),
    "max": _extremum(np.max, np.argmax, np.maximum), "min": _extremum(np.min, np.argmin, np.minimum),
    "var": lambda x, dim=None, correction=1, keepdim=False: _reduce(np.var)(x, dim, keepdim, ddof=correction),
    "std": lambda x, dim=None, correction=1, keepdim=False: np.sqrt(_reduce(np.var)(x, dim, keepdim, ddof=correction)),
    "cumsum": lambda x, dim: np.cumsum(x, axis=dim),
})  # fmt: skip

# --- shapes, joining, products ---


def _view(x: np.ndarray, *size: Any) -> np.ndarray:
    found = x.reshape(_sizes(size))
    if found.size and not np.may_share_memory(found, x):
        raise ValueError("the strides do not allow it; use reshape")
    return found


def _expand(x: np.ndarray, *size: Any) -> np.ndarray:
    wanted = _sizes(size)
    have = (1,) * (len(wanted) - x.ndim) + x.shape
    view = np.broadcast_to(x, [h if w == -1 else w for w, h in zip(wanted, have, strict=True)])
    return np.lib.stride_tricks.as_strided(view, writeable=True)


def _flatten(x: np.ndarray, start_dim: int = 0, end_dim: int = -1) -> np.ndarray:
    shape = x.shape or (1,)
    first, last = start_dim % len(shape), end_dim % len(shape)
    return x.reshape(*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :])


def _split(x: np.ndarray, sizes: Any, dim: int = 0) -> list[np.ndarray]:
    ends = range(sizes, x.shape[dim], sizes) if isinstance(sizes, int) else np.cumsum(sizes)[:-1]
    return np.split(x, ends, dim)


_define({
    "reshape": lambda x, *size: x.reshape(_sizes(size)), "view": _view, "expand": _expand, "flatten": _flatten,
    "permute": lambda x, *dims: x.transpose(_sizes(dims)), "transpose": lambda x, a, b: x.swapaxes(a, b),
    "t": lambda x: x.T, "split": _split, "clone": lambda x, **_: x.copy(),
    "unflatten": lambda x, dim, sizes: x.reshape(*x.shape[: dim % x.ndim], *sizes, *x.shape[dim % x.ndim + 1 :]),
    "squeeze": lambda x, dim=None: x if dim is not None and x.shape[dim] != 1 else np.squeeze(x, dim),
    "unsqueeze": lambda x, dim: np.expand_dims(x, dim),
    "chunk": lambda x, chunks, dim=0: _split(x, -(-x.shape[dim] // chunks), dim),
    "unbind": lambda x, dim=0: [np.moveaxis(x, dim, 0)[i, ...] for i in range(x.shape[dim])],
    "select": lambda x, dim, index: np.moveaxis(x, dim, 0)[index, ...],
    "narrow": lambda x, dim, start, n: np.moveaxis(np.moveaxis(x, dim, 0)[start : start + n], 0, dim),
    "flip": lambda x, *dims: np.flip(x, _sizes(dims)).copy(),
    "index_select": lambda x, dim, index: np.take(x, index, dim),
    "gather": lambda x, dim, index: np.take_along_axis(x, index, dim),
    "tril": lambda x, diagonal=0: np.tril(x, diagonal), "triu": lambda x, diagonal=0: np.triu(x, diagonal),
    "matmul": _elementwise(np.matmul), "detach": lambda x: x,
    "dim": lambda x: x.ndim, "numel": lambda x: x.size, "element_size": lambda x: x.itemsize,
    "is_floating_point": lambda x: x.dtype.kind == "f", "is_complex": lambda x: x.dtype.kind == "c",
    "is_contiguous": lambda x, memory_format=None: x.flags.c_contiguous, "data_ptr": lambda x: x.ctypes.data,
})  # fmt: skip
cat = concat = lifted(
    "cat", lambda tensors, dim=0: np.concatenate(_cast(*tensors), axis=dim) if tensors else np.stack([])
)
stack = lifted("stack", lambda tensors, dim=0: np.stack(_cast(*tensors) if tensors else [], axis=dim))
where = lifted("where", lambda c, *xs: np.where(c, *_cast(*xs)) if xs else np.nonzero(c))
mm = bmm = mv = dot = Tensor.mm = Tensor.bmm = Tensor.mv = Tensor.dot = Tensor.__matmul__ = Tensor.matmul
Tensor.cpu = lambda self: self
Tensor.type = Tensor.to
Tensor.view_as = lambda self, other: self.view(other.shape)
Tensor.expand_as = lambda self, other: self.expand(other.shape)
Tensor.type_as = lambda self, other: self.to(other.dtype)
Tensor.new_zeros = lambda self, *size, **options: zeros(*size, **{"dtype": self.dtype, **options})
Tensor.new_empty = lambda self, *size, **options: empty(*size, **{"dtype": self.dtype, **options})
for _name, _kind in (("float", "float32"), ("double", "float64"), ("half", "float16"), ("long", "int64"),
                     ("int", "int32"), ("bool", "bool")):  # fmt: skip
    setattr(Tensor, _name, lambda self, kind=_dtype.known[_kind]: self.to(kind))
