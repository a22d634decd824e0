"""Operators over lists of tensors, element by element of the lists: what optimizers and averages of models call.

Each list may hold tensors of different shapes, dtypes and devices. Functions whose names end in an underscore
change the tensors of the first list and return None, the others return a tuple of new tensors. A second operand is
a list of tensors, a list of numbers, a number, or a tensor of one element.

Example:
    >>> taeda._foreach_add([taeda.ones(2), taeda.zeros(1)], [1, 2])
    (tensor([2., 2.]), tensor([2.]))
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from numbers import Number
from typing import Any

from taeda_tensor_core import _C
from taeda_tensor_core._C import Tensor

_UNARY = [
    *("abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor", "frac"),
    *(
        "lgamma",
        "log",
        "log10",
        "log1p",
        "log2",
        "neg",
        "reciprocal",
        "round",
        "rsqrt",
        "sigmoid",
        "sign",
        "sin",
    ),
    *("sinh", "sqrt", "tan", "tanh", "trunc"),
]
_BINARY = ["add", "sub", "mul", "div", "pow", "clamp_max", "clamp_min", "maximum", "minimum"]
_TERNARY = ["addcdiv", "addcmul"]
_PREFIX = "_foreach_"


def _tensors(name: str, what: str, value: Any, count: int | None = None) -> list[Tensor]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, Tensor) for item in value):
        raise TypeError(f"{_PREFIX}{name}: argument '{what}' must be a list of tensors, found {_kind(value)}")
    if count is None and not value:
        raise RuntimeError("Tensor list must have at least one tensor.")
    if count is not None and len(value) != count:
        raise RuntimeError(
            f"{_PREFIX}{name}: argument '{what}' has {len(value)} tensors, expected {count} as in the first list"
        )
    return list(value)


def _kind(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"a {type(value).__name__} of {', '.join(sorted({type(item).__name__ for item in value})) or 'nothing'}"
    return type(value).__name__


def _operands(name: str, what: str, value: Any, count: int) -> Iterator[Any]:
    """One operand for each tensor of the first list."""
    if isinstance(value, Tensor):
        if value.numel() != 1:
            raise RuntimeError(
                f"{_PREFIX}{name}: argument '{what}' is a tensor of shape {tuple(value.shape)}, expected one element"
            )
        return iter([value] * count)
    if isinstance(value, Number):
        return iter([value] * count)
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, (Tensor, Number)) for item in value):
        raise TypeError(
            f"{_PREFIX}{name}: argument '{what}' must be a number, a tensor of one element, a list of tensors or one "
            f"of numbers, found {_kind(value)}"
        )
    if len(value) != count:
        raise RuntimeError(
            f"{_PREFIX}{name}: argument '{what}' has {len(value)} items, expected {count} as in the first list"
        )
    return iter(value)


def _scalars(name: str, value: Any, count: int) -> list[Any]:
    """Numbers, one for each tensor; a tensor of them is taken apart."""
    if isinstance(value, Tensor) and value.dim() == 1 and len(value) == count:
        return value.tolist()
    return [v.item() if isinstance(v, Tensor) else v for v in _operands(name, "scalars", value, count)]


def _unary(name: str, function: Callable[..., Tensor]) -> Callable[..., Any]:
    def apply(self: Sequence[Tensor]) -> tuple[Tensor, ...]:
        return tuple(function(item) for item in _tensors(name, "self", self))

    return apply


def _binary(name: str, function: Callable[..., Tensor]) -> Callable[..., Any]:
    def apply(self: Any, other: Any, *, alpha: Any = None) -> tuple[Tensor, ...]:
        if alpha is not None and name.rstrip("_") not in ("add", "sub"):
            raise TypeError(f"{_PREFIX}{name}: got an unexpected argument 'alpha'")
        options = {} if alpha is None or alpha == 1 else {"alpha": alpha}
        if name == "pow" and isinstance(self, Number):  # a number raised to tensors
            return tuple(_C.pow(self, item) for item in _tensors(name, "exponent", other))
        first = _tensors(name, "self", self)
        second = list(_operands(name, "other", other, len(first)))
        return tuple(function(a, b, **options) for a, b in zip(first, second, strict=True))

    return apply


def _ternary(name: str, function: Callable[..., Tensor]) -> Callable[..., Any]:
    def apply(
        self: Any, tensor1: Any, tensor2: Any, scalars: Any = None, *, value: Any = None
    ) -> tuple[Tensor, ...]:
        first = _tensors(name, "self", self)
        lists = [
            _tensors(name, "tensor1", tensor1, len(first)),
            _tensors(name, "tensor2", tensor2, len(first)),
            _scalars(
                name,
                1 if scalars is None and value is None else value if scalars is None else scalars,
                len(first),
            ),
        ]
        return tuple(function(a, b, c, value=v) for a, b, c, v in zip(first, *lists, strict=True))

    return apply


def _lerp(name: str, function: Callable[..., Tensor]) -> Callable[..., Any]:
    def apply(self: Any, tensors1: Any, weight: Any) -> tuple[Tensor, ...]:
        first = _tensors(name, "self", self)
        ends = _tensors(name, "tensors1", tensors1, len(first))
        weights = list(_operands(name, "weight", weight, len(first)))
        return tuple(function(a, b, w) for a, b, w in zip(first, ends, weights, strict=True))

    return apply


def _in_place(apply: Callable[..., Any]) -> Callable[..., None]:
    """The same without results: what it calls changes the first operands."""

    def change(*args: Any, **kwargs: Any) -> None:
        apply(*args, **kwargs)

    return change


def _clamp(bound: str, in_place: bool) -> Callable[[Tensor, Any], Tensor]:
    method = getattr(Tensor, "clamp_" if in_place else "clamp")

    def clamp(item: Tensor, limit: Any) -> Tensor:
        return method(item, **{bound: limit})

    return clamp


def _operator(name: str, in_place: bool) -> Callable[..., Tensor]:
    """What is called for each tensor."""
    if name in ("clamp_max", "clamp_min", "maximum", "minimum"):  # the latter take numbers here as well
        return _clamp("max" if name in ("clamp_max", "minimum") else "min", in_place)
    return getattr(Tensor, name + "_" * in_place)


_MAKERS = {
    **dict.fromkeys(_UNARY, _unary), **dict.fromkeys(_BINARY, _binary),
    **dict.fromkeys(_TERNARY, _ternary), "lerp": _lerp,
}  # fmt: skip


def _foreach_clone(self: Sequence[Tensor], *, memory_format: Any = None) -> tuple[Tensor, ...]:
    """Copies."""
    options = {} if memory_format is None else {"memory_format": memory_format}
    return tuple(item.clone(**options) for item in _tensors("clone", "self", self))


def _foreach_copy_(self: Sequence[Tensor], src: Sequence[Tensor], non_blocking: bool = False) -> None:
    """Copy a list of tensors into another."""
    first = _tensors("copy_", "self", self)
    for item, source in zip(first, _tensors("copy_", "src", src, len(first)), strict=True):
        item.copy_(source, non_blocking)


def _foreach_zero_(self: Sequence[Tensor]) -> None:
    """Fill with zeros."""
    for item in _tensors("zero_", "self", self):
        item.zero_()


def _foreach_norm(self: Sequence[Tensor], ord: Any = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    """The norm of each tensor, over all its elements."""
    return tuple(_C.linalg.vector_norm(item, ord, dtype=dtype) for item in _tensors("norm", "self", self))


def _foreach_powsum(self: Sequence[Tensor], ord: Any = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    """The sum of the magnitudes of each tensor's elements, raised to `ord`."""
    return tuple(item.abs().pow(ord).sum(dtype=dtype) for item in _tensors("powsum", "self", self))


def _foreach_max(self: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The largest element of each tensor."""
    return tuple(item.max() for item in _tensors("max", "self", self))


def _foreach_mm(self: Sequence[Tensor], mat2: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Products of matrices, pair by pair."""
    first = _tensors("mm", "self", self)
    return tuple(a @ b for a, b in zip(first, _tensors("mm", "mat2", mat2, len(first)), strict=True))


@functools.cache
def find(name: str) -> Callable[..., Any] | None:
    """The function of a name that begins with ``_foreach_``; None if there is none."""
    if name in globals():
        return globals()[name]
    short = name.removeprefix(_PREFIX)
    in_place = short.endswith("_")
    base = short.removesuffix("_")
    if base not in _MAKERS:
        return None
    function = _MAKERS[base](short, _operator(base, in_place))
    if in_place:
        function = _in_place(function)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{base}` of each tensor of a list{', in place' if in_place else ''}."
    return function


def names() -> list[str]:
    """All names that `find` knows."""
    made = [f"{_PREFIX}{base}{end}" for base in _MAKERS for end in ("", "_")]
    return sorted([*made, *(name for name in globals() if name.startswith(_PREFIX))])
