"""The tensor that wraps codes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taeda_tensor_core import _C, ops
from taeda_tensor_core._C import Tensor
from taeda_tensor_core._printing import formatted, with_suffixes
from taeda_tensor_core.overrides import answers_in, misplaced, name_at, path_of
from taeda_tensor_core.quantized import _schemes

#: What each function or method computes with quantized arguments, by its name.
_table: dict[str, Callable[..., Any]] = {}
#: Names of functions that are done again on the numbers, and their results stored with the scale of the argument.
repeated: set[str] = set()


#: Decorator: what functions of these names compute where a quantized tensor is among their arguments.
quantized = answers_in(_table)


class QuantizedTensor(Tensor):
    """Integers that stand for real numbers. Made by `quantize_per_tensor` and `quantize_per_channel`.

    Attributes:
        dtype: qint8, quint8 or qint32.
    """

    _codes: Tensor
    _scale: Any
    _zero_point: Any
    _axis: int | None

    @staticmethod
    def around(codes: Tensor, scale: Any, zero_point: Any, axis: int | None = None) -> QuantizedTensor:
        """The quantized tensor of codes: with a float and an int, or with tensors of as many along dimension `axis`."""
        made = Tensor._make_wrapper_subclass(
            QuantizedTensor, tuple(codes.shape), dtype=_C.float32, device=codes.device
        )
        made._codes, made._scale, made._zero_point, made._axis = codes, scale, zero_point, axis
        return made

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = name_at(path_of(func))
        known = _table.get(name)
        if known is not None:
            try:
                return known(*args, **(kwargs or {}))
            except AttributeError as error:
                raise misplaced(error, name, QuantizedTensor) from None
        if name in repeated:
            return again(func, *args, **(kwargs or {}))
        raise _undefined(name)

    _asks_for_own_form = True

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Operators that are met by another way than a public function: none reads memory that is not there."""
        raise _undefined(func.operator.name)

    def __repr__(self) -> str:
        return _text(self)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return formatted(self, spec)

    def __len__(self) -> int:
        return len(self._codes)

    def __iter__(self) -> Any:
        return iter(_table["unbind"](self))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return QuantizedTensor.around, (self._codes, self._scale, self._zero_point, self._axis)

    def __copy__(self) -> QuantizedTensor:
        return with_codes(self, self._codes.detach())

    def __deepcopy__(self, memo: dict[int, Any]) -> QuantizedTensor:
        return with_codes(self, self._codes.clone())

    __hash__ = Tensor.__hash__


def _undefined(name: str) -> NotImplementedError:
    return NotImplementedError(f"{name}: not defined for quantized tensors; use dequantize() first")


def with_codes(x: QuantizedTensor, codes: Tensor) -> QuantizedTensor:
    """Other codes with the same scale and zero point."""
    return QuantizedTensor.around(codes, x._scale, x._zero_point, x._axis)


def along(x: Tensor, of_channels: Tensor, axis: int) -> Tensor:
    """A number for each channel, in a shape that broadcasts over a tensor."""
    return of_channels.reshape([-1 if d == axis else 1 for d in range(x.dim())])


def numbers(x: QuantizedTensor) -> Tensor:
    """What the codes stand for, as float32."""
    if x._axis is None and x._codes.dtype != _C.int32:
        return ops.dequantize_codes(x._codes, x._scale, x._zero_point)
    codes = x._codes.to(_C.float32)
    if x._axis is None:
        return (codes - x._zero_point) * x._scale
    zero, scale = along(codes, x._zero_point, x._axis), along(codes, x._scale, x._axis)
    return (codes - zero.to(_C.float32)) * scale.to(_C.float32)


def number(x: Any) -> Any:
    """What a quantized tensor stands for; another thing itself."""
    return numbers(x) if isinstance(x, QuantizedTensor) else x


def again(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a function makes of the numbers, with the scale of the first quantized argument."""
    first = next(v for v in (*args, *kwargs.values()) if isinstance(v, QuantizedTensor))
    from taeda_tensor_core.quantized._making import same

    made = function(*map(number, args), **{key: number(value) for key, value in kwargs.items()})
    if isinstance(made, tuple):
        return (same(made[0], first), *made[1:])
    return same(made, first)


def scheme(x: QuantizedTensor) -> _schemes.qscheme:
    """How the codes are mapped to numbers."""
    if x._axis is None:
        return _schemes.per_tensor_affine
    if x._zero_point.is_floating_point():
        return _schemes.per_channel_affine_float_qparams
    return _schemes.per_channel_affine


def _text(x: QuantizedTensor) -> str:
    text = repr(numbers(x))
    values = text[: text.rindex(")")]
    facts = [
        f"size={tuple(x._codes.shape)}",
        f"dtype={_schemes.quantized_dtype(x._codes.dtype)!r}",
        f"quantization_scheme={scheme(x)!r}",
        f"scale={x._scale!r}",
        f"zero_point={x._zero_point!r}",
        *([] if x._axis is None else [f"axis={x._axis}"]),
    ]
    return with_suffixes(values, facts, len("tensor("))
