"""Operators over lists of tensors, `_foreach_add_` and its kind, which other people's optimizers are written with.

Each applies one operator to every tensor of a list. What goes with the tensors is a list of as many tensors or numbers,
or one number (for some, one tensor of a single element) for all. Forms with a trailing underscore write to the tensors
and give the list back; the others give a tuple of new tensors. Every tensor takes its operator's own way, so promotion,
gradients and devices are those of the operator.

Errors:
    TypeError: An argument is no list or tuple of tensors, or of a kind the operator does not take.
    RuntimeError: A list is empty, or lists differ in length.

Example:
    >>> weights = [taeda.ones(2), taeda.ones(3)]
    >>> taeda._foreach_mul_(weights, 0.5)
    [tensor([0.5000, 0.5000]), tensor([0.5000, 0.5000, 0.5000])]
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from numbers import Number
from typing import Any

from taeda_tensor_core import _C
from taeda_tensor_core._C import Tensor

PREFIX = "_foreach_"
Tensors = list[Tensor] | tuple[Tensor, ...]

_UNARY = frozenset({
    "abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor", "frac", "lgamma",
    "log", "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt",
    "tan", "tanh", "trunc",
})  # fmt: skip
_SCALED = ("add", "sub")
_BINARY = ("mul", "div", "clamp_max", "clamp_min", "maximum", "minimum", "pow")
_THREE = ("addcmul", "addcdiv")
# Operators that take tensors alone and write to none, by those that give the same and do both.
_SAME = {"maximum": "clamp_min", "minimum": "clamp_max"}
# Where one tensor may stand for all numbers.
_ONE_TENSOR = frozenset({"add", "mul", "div"})


def _listed(name: str, argument: str, given: Any) -> Tensors:
    if not isinstance(given, list | tuple):
        raise TypeError(
            f"{name}: argument '{argument}' must be a list or tuple of Tensors, found {type(given).__name__}"
        )
    if not given:
        raise RuntimeError(f"{name}: Tensor list must have at least one tensor.")
    for item in given:
        if not isinstance(item, Tensor):
            raise TypeError(f"{name}: argument '{argument}' has a {type(item).__name__}, expected Tensors")
    return given


def _like(name: str, argument: str, given: Any, self: Tensors) -> Tensors:
    listed = _listed(name, argument, given)
    if len(listed) != len(self):
        raise RuntimeError(
            f"{name}: Tensor lists must have the same number of tensors, got {len(self)} and {len(listed)}"
        )
    return listed


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | complex | Number)  # the last: NumPy's scalars


def _companions(name: str, given: Any, self: Tensors, one_tensor: bool = False) -> Any:
    """What goes with each tensor: the items of a list, or one number or tensor for all."""
    if _is_number(given):
        return repeat(given, len(self))
    if isinstance(given, Tensor) and one_tensor:
        if given.dim():
            raise RuntimeError(
                f"{name}: scalar tensor expected to be 0 dim but it has {given.dim()} dimensions and {given.numel()} "
                "elements."
            )
        return repeat(given, len(self))
    if isinstance(given, Tensor) and not given.dim() and not given.requires_grad:
        return repeat(given.item(), len(self))
    if isinstance(given, list | tuple) and given and all(map(_is_number, given)):
        if len(given) != len(self):
            raise RuntimeError(
                f"{name}: Tensor list must have same number of elements as scalar list, got {len(self)} and "
                f"{len(given)}"
            )
        return given
    return _like(name, "other", given, self)


def _factors(name: str, given: Any, self: Tensors) -> Any:
    """The numbers of addcmul and addcdiv: one, a list, or a vector."""
    if isinstance(given, Tensor):
        if given.dim() != 1 or given.numel() != len(self):
            raise RuntimeError(
                f"{name}: Expected length of scalars to match input of length {len(self)} but got shape "
                f"{tuple(given.shape)} instead."
            )
        return given.tolist()
    found = _companions(name, given, self)
    if isinstance(given, list | tuple) and not _is_number(given[0]):
        raise TypeError(f"{name}: argument 'scalars' must be numbers, found {type(given[0]).__name__}")
    return found


def _given(name: str, keywords: dict[str, Any], value: Any, *names: str, default: Any = None) -> Any:
    """An argument that stands at its place or has one of several names."""
    found = [keywords.pop(key) for key in names if key in keywords]
    if keywords:
        raise TypeError(f"{name}: got an unexpected keyword argument {next(iter(keywords))!r}")
    if len(found) + (value is not None) > 1:
        raise TypeError(f"{name}: argument '{names[0]}' is given more than once")
    if found:
        return found[0]
    if value is None and default is None:
        raise TypeError(f"{name}: missing argument '{names[0]}'")
    return default if value is None else value


def _result(name: str, self: Tensors, made: list[Tensor]) -> Any:
    return self if name.endswith("_") else tuple(made)


def _unary(name: str, method: str) -> Callable[..., Any]:
    def over_list(self: Tensors) -> Any:
        return _result(name, self, [getattr(x, method)() for x in _listed(name, "self", self)])

    return over_list


def _binary(name: str, method: str) -> Callable[..., Any]:
    bare = method.rstrip("_")
    method = _SAME.get(bare, bare) + method[len(bare) :]

    def over_list(self: Tensors, other: Any = None, **keywords: Any) -> Any:
        other = _given(name, keywords, other, "other", "scalar", "scalars", "exponent")
        if bare == "pow" and _is_number(self):
            return tuple(_C.pow(self, x) for x in _listed(name, "exponent", other))
        pairs = zip(
            _listed(name, "self", self), _companions(name, other, self, bare in _ONE_TENSOR), strict=True
        )
        return _result(name, self, [getattr(x, method)(y) for x, y in pairs])

    return over_list


def _scaled(name: str, method: str) -> Callable[..., Any]:
    one_tensor = method.rstrip("_") in _ONE_TENSOR

    def over_list(self: Tensors, other: Any = None, *, alpha: Any = 1, **keywords: Any) -> Any:
        other = _given(name, keywords, other, "other", "scalar", "scalars")
        companions = _companions(name, other, _listed(name, "self", self), one_tensor)
        if alpha != 1 and not (isinstance(other, Tensor) or isinstance(other[0], Tensor)):
            raise TypeError(f"{name}: argument 'alpha' goes with tensors, not with numbers")
        pairs = zip(self, companions, strict=True)
        return _result(name, self, [getattr(x, method)(y, alpha=alpha) for x, y in pairs])

    return over_list


def _three(name: str, method: str) -> Callable[..., Any]:
    def over_list(
        self: Tensors, tensor1: Tensors, tensor2: Tensors, value: Any = None, **keywords: Any
    ) -> Any:
        value = _given(name, keywords, value, "value", "scalars", default=1)
        first = _like(name, "tensor1", tensor1, _listed(name, "self", self))
        quads = zip(
            self, first, _like(name, "tensor2", tensor2, self), _factors(name, value, self), strict=True
        )
        return _result(name, self, [getattr(x, method)(a, b, value=v) for x, a, b, v in quads])

    return over_list


def _lerp(name: str, method: str) -> Callable[..., Any]:
    def over_list(self: Tensors, tensors1: Tensors, weight: Any = None, **keywords: Any) -> Any:
        weight = _given(name, keywords, weight, "weight", "weights")
        ends = _like(name, "tensors1", tensors1, _listed(name, "self", self))
        triples = zip(self, ends, _companions(name, weight, self), strict=True)
        return _result(name, self, [getattr(x, method)(end, w) for x, end, w in triples])

    return over_list


def _foreach_clone(self: Tensors, *, memory_format: Any = None) -> tuple[Tensor, ...]:
    """A copy of every tensor."""
    options = {} if memory_format is None else {"memory_format": memory_format}
    return tuple(x.clone(**options) for x in _listed("_foreach_clone", "self", self))


def _foreach_copy_(self: Tensors, src: Tensors, non_blocking: bool = False) -> Tensors:
    """Writes the numbers of each tensor of `src` to its counterpart."""
    listed = _like("_foreach_copy_", "src", src, _listed("_foreach_copy_", "self", self))
    for x, source in zip(self, listed, strict=True):
        x.copy_(source, non_blocking=non_blocking)
    return self


def _foreach_zero_(self: Tensors) -> Tensors:
    """Sets every tensor to zeros."""
    for x in _listed("_foreach_zero_", "self", self):
        x.zero_()
    return self


def _foreach_max(self: Tensors) -> tuple[Tensor, ...]:
    """The largest number of each tensor."""
    return tuple(x.max() for x in _listed("_foreach_max", "self", self))


def _foreach_mm(self: Tensors, mat2: Tensors) -> tuple[Tensor, ...]:
    """The product of each matrix with its counterpart."""
    others = _like("_foreach_mm", "mat2", mat2, _listed("_foreach_mm", "self", self))
    return tuple(x.mm(y) for x, y in zip(self, others, strict=True))


def _foreach_norm(self: Tensors, ord: Any = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    """The norm of each tensor's numbers, a tensor without dimensions."""
    return tuple(_C.linalg.vector_norm(x, ord, dtype=dtype) for x in _listed("_foreach_norm", "self", self))


def _foreach_powsum(self: Tensors, ord: Any = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    """The sum of each tensor's magnitudes, raised to a power."""
    return tuple(x.abs().pow(ord).sum(dtype=dtype) for x in _listed("_foreach_powsum", "self", self))


_MAKERS: dict[str, tuple[Callable[[str, str], Callable[..., Any]], str]] = {
    **dict.fromkeys(_UNARY, (_unary, "of every tensor")),
    **dict.fromkeys(_SCALED, (_scaled, "of every tensor with a number or tensor, scaled by `alpha`")),
    **dict.fromkeys(_BINARY, (_binary, "of every tensor with a number or tensor")),
    **dict.fromkeys(_THREE, (_three, "of every tensor with two others and a factor")),
    "lerp": (_lerp, "of every tensor with another and a weight"),
}


def _make(operator: str, suffix: str) -> None:
    maker, of_what = _MAKERS[operator]
    name = f"{PREFIX}{operator}{suffix}"
    function = maker(name, operator + suffix)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{operator}{suffix}` {of_what}."
    globals()[name] = function


for _operator in _MAKERS:
    for _suffix in ("", "_"):
        _make(_operator, _suffix)

#: All functions of this kind.
FUNCTIONS = tuple(sorted(name for name in globals() if name.startswith(PREFIX)))
