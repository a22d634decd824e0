"""Making quantized tensors, and asking what they are made of."""

from __future__ import annotations

from typing import Any

from taeda_tensor_core import _C, ops
from taeda_tensor_core._C import Tensor
from taeda_tensor_core._sizes import of_several
from taeda_tensor_core.quantized._schemes import codes_of, kernel_scale, quantized_dtype
from taeda_tensor_core.quantized._tensor import QuantizedTensor, along, numbers, quantized


def _values(name: str, x: Any) -> Tensor:
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: argument 'input' must be a tensor, found {type(x).__name__}")
    if isinstance(x, QuantizedTensor) or x.dtype != _C.float32:
        raise RuntimeError(f"{name}: argument 'input' has dtype {x.dtype}, expected float32")
    return x.detach()


def rounded(x: Tensor, scale: Any, zero_point: Any, least: int, largest: int) -> Tensor:
    """The codes of numbers, as numbers of their dtype: nearest ones, even ones of two that are as near.

    Args:
        scale, zero_point: Of each element, or of all.
    """
    return _C.clamp((x * (1.0 / scale)).round() + zero_point, least, largest)


def codes_for(x: Tensor, scale: float, zero_point: int, least: int, largest: int, kind: Any) -> Tensor:
    """The codes of float32, with one scale and one zero point, as integers of a dtype."""
    if kind == _C.int32:  # exact in float64 alone
        return rounded(x.to(_C.float64), scale, zero_point, least, largest).to(kind)
    return ops.quantize_codes(x, scale, zero_point, least, largest, kind)


def quantize_per_tensor(input: Any, scale: Any, zero_point: Any, dtype: Any) -> Any:
    """Quantizes with one scale and one zero point.

    Args:
        input: Of float32, any shape; or several tensors.
        scale: A number above 0, or a tensor of one; for several tensors a tensor of as many.
        zero_point: The code that stands for 0, in the same forms.
        dtype: qint8, quint8 or qint32.

    Returns:
        A quantized tensor of the shape of `input`; a tuple of them for several.

    Raises:
        RuntimeError: Another dtype than float32, a scale that is not positive, or a zero point that is no code.

    Example:
        >>> taeda.quantize_per_tensor(taeda.tensor([0.0, 1.0]), 0.5, 3, taeda.qint8).int_repr()
        tensor([3, 5], dtype=taeda.int8)
    """
    name = "quantize_per_tensor"
    if isinstance(input, (list, tuple)):
        return tuple(quantize_per_tensor(x, scale[i], zero_point[i], dtype) for i, x in enumerate(input))
    kind, least, largest = codes_of(name, dtype)
    x = _values(name, input)
    scale = float(scale)
    zero_point = int(zero_point)
    if not 0 < scale < float("inf"):
        raise RuntimeError(f"{name}: argument 'scale' is {scale}, expected a number above 0")
    if not least <= zero_point <= largest:
        raise RuntimeError(
            f"{name}: argument 'zero_point' is {zero_point}, expected a code of {dtype}: {least} to {largest}"
        )
    return QuantizedTensor.around(codes_for(x, scale, zero_point, least, largest, kind), scale, zero_point)


def quantize_per_tensor_dynamic(input: Tensor, dtype: Any, reduce_range: bool) -> QuantizedTensor:
    """Quantizes with the scale that the least and the largest element ask for.

    Args:
        input: Of float32.
        dtype: qint8 or quint8.
        reduce_range: Whether one bit is left unused.

    Example:
        >>> taeda.quantize_per_tensor_dynamic(taeda.tensor([-1.0, 1.0]), taeda.quint8, False).int_repr()
        tensor([  0, 255], dtype=taeda.uint8)
    """
    _, least, largest = codes_of("quantize_per_tensor_dynamic", dtype)
    x = _values("quantize_per_tensor_dynamic", input)
    if reduce_range:
        least, largest = int(least / 2), largest // 2
    scale, zero_point = chosen(x, least, largest)
    return quantize_per_tensor(x, scale, zero_point, dtype)


def chosen(x: Tensor, least: int, largest: int) -> tuple[float, int]:
    """A scale and a zero point by which codes from `least` to `largest` cover the elements and 0."""
    low, high = map(float, _C.aminmax(x)) if x.numel() else (0.0, 0.0)
    low, high = min(low, 0.0), max(high, 0.0)
    scale, zero_point = kernel_scale(*(_C.tensor(x, device="cpu") for x in (low, high)), least, largest)
    return float(scale), int(zero_point)


def _choose_qparams_per_tensor(input: Tensor, reduce_range: bool = False) -> tuple[float, int]:
    """The scale and the zero point of quint8 codes that cover the elements of a tensor."""
    return chosen(_values("_choose_qparams_per_tensor", input), 0, 127 if reduce_range else 255)


def quantize_per_channel(
    input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, dtype: Any
) -> QuantizedTensor:
    """Quantizes with a scale and a zero point for each slice along a dimension.

    Args:
        input: Of float32.
        scales, zero_points: Of one dimension, as long as dimension `axis`; zero points can be floating-point numbers,
            which lie between codes.
        axis: The dimension.
        dtype: qint8, quint8 or qint32.

    Raises:
        RuntimeError: Arguments that do not fit together. IndexError: There is no such dimension.

    Example:
        >>> x = taeda.tensor([[1.0, 2.0], [1.0, 2.0]])
        >>> taeda.quantize_per_channel(x, taeda.tensor([0.5, 1.0]), taeda.tensor([0, 1]), 0, taeda.qint8).int_repr()
        tensor([[2, 4],
                [2, 3]], dtype=taeda.int8)
    """
    name = "quantize_per_channel"
    kind, least, largest = codes_of(name, dtype)
    x = _values(name, input)
    if not -x.dim() <= axis < x.dim():
        raise IndexError(f"{name}: argument 'axis' is {axis}, the tensor has {x.dim()} dimensions")
    axis %= x.dim()
    for given, argument in ((scales, "scales"), (zero_points, "zero_points")):
        if tuple(given.shape) != (x.shape[axis],):
            raise RuntimeError(
                f"{name}: argument '{argument}' has shape {tuple(given.shape)}, expected ({x.shape[axis]},)"
            )
    scale, zero = along(x, scales, axis).to(_C.float32), along(x, zero_points, axis).to(_C.float32)
    if zero_points.is_floating_point():
        codes = _C.clamp((x * (1.0 / scale) + zero).round(), least, largest).to(kind)
        return QuantizedTensor.around(codes, scales.to(_C.float32), zero_points.to(_C.float32), axis)
    codes = rounded(x, scale, zero, least, largest).to(kind)
    return QuantizedTensor.around(codes, scales.to(_C.float64), zero_points.to(_C.int64), axis)


def _make_per_tensor_quantized_tensor(input: Tensor, scale: float, zero_point: int) -> QuantizedTensor:
    """The quantized tensor of int8, uint8 or int32 codes."""
    quantized_dtype(input.dtype)
    return QuantizedTensor.around(input.clone(), float(scale), int(zero_point))


def _make_per_channel_quantized_tensor(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int
) -> QuantizedTensor:
    """The quantized tensor of int8, uint8 or int32 codes, with a scale for each slice."""
    quantized_dtype(input.dtype)
    return QuantizedTensor.around(
        input.clone(), scale.to(_C.float64), zero_point.to(_C.int64), axis % input.dim()
    )


def _empty_affine_quantized(
    *size: Any, scale: float = 1.0, zero_point: int = 0, dtype: Any = None, device: Any = None, **_: Any
) -> QuantizedTensor:
    """A quantized tensor whose codes are zeros."""
    shape = of_several(size)
    kind, _least, _largest = codes_of("_empty_affine_quantized", dtype)
    return QuantizedTensor.around(_C.zeros(shape, dtype=kind, device=device), float(scale), int(zero_point))


def _empty_per_channel_affine_quantized(
    *size: Any,
    scales: Tensor,
    zero_points: Tensor,
    axis: int,
    dtype: Any = None,
    device: Any = None,
    **_: Any,
) -> QuantizedTensor:
    """A quantized tensor whose codes are zeros, with a scale for each slice."""
    shape = of_several(size)
    kind, _least, _largest = codes_of("_empty_per_channel_affine_quantized", dtype)
    return _make_per_channel_quantized_tensor(
        _C.zeros(shape, dtype=kind, device=device), scales, zero_points, axis
    )


def empty_quantized(size: Any, qtensor: QuantizedTensor, **_: Any) -> QuantizedTensor:
    """A quantized tensor of a size, with the dtype and the scale of another."""
    return QuantizedTensor.around(
        qtensor._codes.new_zeros(tuple(size)), qtensor._scale, qtensor._zero_point, qtensor._axis
    )


# What they are made of


def _given(name: str, x: Any) -> QuantizedTensor:
    if not isinstance(x, QuantizedTensor):
        kind = f"a tensor of {x.dtype}" if isinstance(x, Tensor) else f"a {type(x).__name__}"
        raise NotImplementedError(f"{name}: argument 'input' is {kind}, expected a quantized tensor")
    return x


def _of_tensor(name: str, x: Any) -> QuantizedTensor:
    if _given(name, x)._axis is not None:
        raise RuntimeError(
            f"{name}: argument 'input' has a scale for each slice, expected one for the tensor"
        )
    return x


def _of_channels(name: str, x: Any) -> QuantizedTensor:
    if _given(name, x)._axis is None:
        raise RuntimeError(f"{name}: argument 'input' has one scale, expected one for each slice")
    return x


@quantized("dequantize")
def dequantize(input: Any) -> Any:
    """The numbers that the codes stand for, as float32; of several tensors, each.

    Example:
        >>> taeda.dequantize(taeda.quantize_per_tensor(taeda.tensor([0.4]), 0.5, 0, taeda.qint8))
        tensor([0.5000])
    """
    if isinstance(input, (list, tuple)):
        return tuple(dequantize(x) for x in input)
    if not isinstance(input, QuantizedTensor):
        return input.to(_C.float32)
    return numbers(input)


@quantized("int_repr")
def int_repr(input: QuantizedTensor) -> Tensor:
    """The codes, as int8, uint8 or int32."""
    return _given("int_repr", input)._codes.clone()


@quantized("q_scale")
def q_scale(input: QuantizedTensor) -> float:
    """The scale of the whole tensor."""
    return _of_tensor("q_scale", input)._scale


@quantized("q_zero_point")
def q_zero_point(input: QuantizedTensor) -> int:
    """The code that stands for 0."""
    return _of_tensor("q_zero_point", input)._zero_point


@quantized("q_per_channel_scales")
def q_per_channel_scales(input: QuantizedTensor) -> Tensor:
    """The scale of each slice, as float64."""
    return _of_channels("q_per_channel_scales", input)._scale


@quantized("q_per_channel_zero_points")
def q_per_channel_zero_points(input: QuantizedTensor) -> Tensor:
    """The code that stands for 0 in each slice."""
    return _of_channels("q_per_channel_zero_points", input)._zero_point


@quantized("q_per_channel_axis")
def q_per_channel_axis(input: QuantizedTensor) -> int:
    """The dimension along which slices have a scale each."""
    return _of_channels("q_per_channel_axis", input)._axis  # type: ignore[return-value]


def same(x: Tensor, like: QuantizedTensor) -> QuantizedTensor:
    """Numbers with the scale and dtype of another tensor."""
    return quantize_per_tensor(x, like._scale, like._zero_point, quantized_dtype(like._codes.dtype))
