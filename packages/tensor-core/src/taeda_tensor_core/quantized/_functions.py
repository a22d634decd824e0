"""What quantized tensors compute."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from taeda_tensor_core import _C, _info, ops
from taeda_tensor_core._C import Tensor
from taeda_tensor_core.quantized import _schemes
from taeda_tensor_core.quantized._making import quantize_per_tensor, rounded, same
from taeda_tensor_core.quantized._tensor import (
    QuantizedTensor,
    _table,
    again,
    number,
    numbers,
    quantized,
    repeated,
    scheme,
    with_codes,
)

# Facts


def _fact(name: str, ask: Callable[[QuantizedTensor], Any]) -> None:
    _table[name] = ask


def _of_codes(name: str) -> None:
    _fact(name, lambda x, *args, **kwargs: getattr(x._codes, name)(*args, **kwargs))


_ATTRIBUTES = _info.FACTS_OF_CODES | {
    "shape": lambda x: x._codes.shape,
    "device": lambda x: x._codes.device,
    "ndim": lambda x: x._codes.ndim,
    "itemsize": lambda x: x._codes.itemsize,
    "nbytes": lambda x: x._codes.nbytes,
    "is_cpu": lambda x: x._codes.is_cpu,
    "is_meta": lambda x: x._codes.is_meta,
    "dtype": lambda x: _schemes.quantized_dtype(x._codes.dtype),
    "layout": lambda x: _info.strided,
    "is_quantized": lambda x: True,
}
for _name, _ask in (_ATTRIBUTES | _info.ANSWERS_OF_CODES).items():
    _fact(_name, _ask)
for _name in ("size", "stride", "dim", "ndimension", "numel", "nelement", "element_size", "is_contiguous",
              "storage_offset", "data_ptr", "untyped_storage", "get_device"):  # fmt: skip
    _of_codes(_name)
_fact("is_signed", lambda x: x._codes.dtype != _C.uint8)
_fact("qscheme", scheme)
_fact("tolist", lambda x: numbers(x).tolist())
_fact("item", lambda x: numbers(x).item())
_fact("__bool__", lambda x: bool(numbers(x)))
_fact("__float__", lambda x: float(numbers(x)))

# Shapes: the codes are moved, and keep their scale

_MOVES = (
    "view reshape flatten unflatten ravel transpose permute t squeeze unsqueeze select narrow expand expand_as repeat "
    "flip unbind chunk split split_with_sizes tensor_split movedim swapaxes __getitem__ index_select take gather "
    "masked_select view_as reshape_as unfold pixel_shuffle pixel_unshuffle channel_shuffle swapdims moveaxis"
)
_COPIES = "clone detach contiguous cpu pin_memory"


def _moved(name: str, keeps_axis: bool) -> None:
    function = getattr(Tensor, name, None) or getattr(ops, name, None) or getattr(_C, name)

    def moved(self: QuantizedTensor, *args: Any, **kwargs: Any) -> Any:
        if self._axis is not None and not keeps_axis:
            raise NotImplementedError(
                f"{name}: not defined for tensors with a scale for each slice; use dequantize() first"
            )
        made = function(self._codes, *args, **kwargs)
        if isinstance(made, (tuple, list)):
            return type(made)(with_codes(self, part) for part in made)
        return with_codes(self, made)

    moved.__name__ = name
    _table[name] = moved


for _name in _MOVES.split():
    _moved(_name, keeps_axis=False)
for _name in _COPIES.split():
    _moved(_name, keeps_axis=True)


@quantized("to")
def _to(self: QuantizedTensor, *args: Any, **kwargs: Any) -> Any:
    """Codes on another device; a dtype of numbers is refused, as their scale would be lost."""
    asked = [*args, kwargs.get("dtype")]
    if any(isinstance(a, _C.dtype) for a in asked):
        if kwargs.get("dtype", args[0] if args else None) == _table["dtype"](self):
            return self
        raise NotImplementedError("to: a quantized tensor does not change its dtype; use dequantize() first")
    return with_codes(self, self._codes.to(*args, **kwargs))


@quantized("requires_grad_")
def _requires_grad(self: QuantizedTensor, requires_grad: bool = True) -> QuantizedTensor:
    if requires_grad:
        raise RuntimeError("requires_grad_: quantized tensors have no gradients")
    return self


@quantized("cat", "concat")
def _cat(tensors: Any, dim: int = 0) -> QuantizedTensor:
    """The tensors one after another, with the scale of the first."""
    first = tensors[0]
    if all(t._scale == first._scale and t._zero_point == first._zero_point for t in tensors):
        return with_codes(first, _C.cat([t._codes for t in tensors], dim))
    return same(_C.cat([numbers(t) for t in tensors], dim), first)


@quantized("stack")
def _stack(tensors: Any, dim: int = 0) -> QuantizedTensor:
    return _cat([_table["unsqueeze"](t, dim) for t in tensors], dim)


@quantized("copy_")
def _copy(self: Any, src: Tensor, non_blocking: bool = False) -> Any:
    """Stores numbers by one's own scale, or what another quantized tensor is made of."""
    if not isinstance(self, QuantizedTensor):
        return self.copy_(numbers(src), non_blocking)
    if isinstance(src, QuantizedTensor):
        self._codes.copy_(src._codes)
        self._scale, self._zero_point, self._axis = src._scale, src._zero_point, src._axis
        return self
    _, least, largest = _schemes.codes_of("copy_", _table["dtype"](self))
    self._codes.copy_(rounded(src.detach(), self._scale, self._zero_point, least, largest))
    return self


@quantized("__setitem__")
def _put(self: QuantizedTensor, index: Any, value: Any) -> None:
    part = _table["__getitem__"](self, index)
    _copy(
        part, value if isinstance(value, Tensor) else _C.full(part._codes.shape, float(value), device="cpu")
    )


@quantized("fill_")
def _fill(self: QuantizedTensor, value: float) -> QuantizedTensor:
    return _copy(self, _C.full(self._codes.shape, float(value), device="cpu"))


# Order: codes are ordered as what they stand for


def _clamped(self: QuantizedTensor) -> Tensor:
    return self._codes.clamp(min=int(self._zero_point))


@quantized("relu")
def _relu(self: QuantizedTensor, inplace: bool = False) -> QuantizedTensor:
    """Codes below the zero point become it."""
    return _relu_in_place(self) if inplace else with_codes(self, _clamped(self))


@quantized("relu_")
def _relu_in_place(self: QuantizedTensor) -> QuantizedTensor:
    self._codes.copy_(_clamped(self))
    return self


def _ordered(name: str) -> None:
    function = getattr(_C, name)

    def ordered(input: QuantizedTensor, *args: Any, **kwargs: Any) -> Any:
        made = function(input._codes, *args, **kwargs)
        if isinstance(made, Tensor):
            return with_codes(input, made)
        return type(made)((with_codes(input, made[0]), *made[1:]))

    ordered.__name__ = name
    _table[name] = ordered


for _name in ("max", "min", "amax", "amin", "sort", "topk", "median"):
    _ordered(_name)
_fact("argmax", lambda x, *args, **kwargs: x._codes.argmax(*args, **kwargs))
_fact("argmin", lambda x, *args, **kwargs: x._codes.argmin(*args, **kwargs))


# Numbers: computed as float32 and stored with the scale of the input, or with that of the range of a function


_AGAIN = (
    "avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d max_pool1d "
    "max_pool2d max_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d max_pool1d_with_indices "
    "max_pool2d_with_indices leaky_relu elu celu hardtanh relu6 clamp clip clamp_min clamp_max hardswish mean "
    "threshold dropout interpolate upsample upsample_nearest upsample_bilinear pad prelu feature_dropout alpha_dropout"
)


repeated.update(_AGAIN.split())


def _in_range(name: str, scales: dict[str, tuple[float, int]]) -> None:
    function = getattr(_C, name, None) or getattr(ops, name)

    def in_range(input: QuantizedTensor, inplace: bool = False) -> QuantizedTensor:
        if inplace:
            raise NotImplementedError(
                f"{name}: argument 'inplace' is True, which is not there for quantized tensors"
            )
        kind = _table["dtype"](input)
        return quantize_per_tensor(function(numbers(input)), *scales[kind.name], kind)

    in_range.__name__ = name
    _table[name] = in_range


_UNIT = {"quint8": (1 / 256, 0), "qint8": (1 / 256, -128), "qint32": (2.0**-32, -(2**31))}
_in_range("sigmoid", _UNIT)
_in_range("hardsigmoid", _UNIT)
_in_range("tanh", {"quint8": (2 / 256, 128), "qint8": (2 / 256, 0), "qint32": (2.0**-31, 0)})


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _compare = getattr(operator, _name)

    def _compared(self: Any, other: Any, _compare: Any = _compare) -> Tensor:
        return _compare(number(self), number(other))

    _table[_name] = _table[f"__{_name}__"] = _compared


@quantized("equal")
def _equal(self: Any, other: Any) -> bool:
    """Whether dtypes, scales and codes are the same."""
    if not (isinstance(self, QuantizedTensor) and isinstance(other, QuantizedTensor)):
        raise RuntimeError("equal: expected two quantized tensors or none")
    if (
        scheme(self) is not scheme(other)
        or self._codes.dtype != other._codes.dtype
        or self._axis != other._axis
    ):
        return False
    if self._axis is None:
        alike = (self._scale, self._zero_point) == (other._scale, other._zero_point)
    else:
        alike = _C.equal(self._scale, other._scale) and _C.equal(self._zero_point, other._zero_point)
    return alike and _C.equal(self._codes, other._codes)


@quantized("empty_like", "zeros_like")
def _empty_like(input: QuantizedTensor, **_: Any) -> QuantizedTensor:
    return with_codes(input, _C.zeros_like(input._codes))


@quantized("numpy", "__array__")
def _numpy(self: QuantizedTensor, *_: Any, **__: Any) -> Any:
    raise TypeError("numpy: a quantized tensor has no array; use int_repr() or dequantize() first")


def _bind() -> None:
    """Make everything in the table a method or property of quantized tensors: those of dense ones would not ask."""
    for name, function in _table.items():
        setattr(QuantizedTensor, name, property(function) if name in _ATTRIBUTES else function)
    for name in repeated:
        if hasattr(Tensor, name):
            setattr(QuantizedTensor, name, functools.partialmethod(_method, getattr(Tensor, name)))


def _method(self: QuantizedTensor, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return again(function, self, *args, **kwargs)


_bind()
