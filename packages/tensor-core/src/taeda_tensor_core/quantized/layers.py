"""Linear layers and convolutions of quantized tensors, which every way to call them comes to."""

from __future__ import annotations

from typing import Any, NamedTuple

from taeda_tensor_core import _C, ops
from taeda_tensor_core._C import Tensor
from taeda_tensor_core.quantized._making import chosen, quantize_per_tensor
from taeda_tensor_core.quantized._schemes import quantized_dtype
from taeda_tensor_core.quantized._tensor import QuantizedTensor, number


class Stored(NamedTuple):
    """By what the result is quantized.

    Attributes:
        scale, zero_point: Of the whole tensor. dtype: qint8, quint8 or qint32; that of the input where it is None.
    """

    scale: float
    zero_point: int
    dtype: Any = None


def linear(input: Any, weight: Any, bias: Tensor | None, stored: Stored, relu: bool = False) -> Any:
    """A linear layer of a quantized tensor.

    Args:
        input: (..., in), quantized.
        weight: (out, in), quantized.
        bias: (out,), float32, or None.
        stored: Scale and zero point of the result.
        relu: Whether numbers below 0 become 0.

    Returns: (..., out), quantized.
    """
    if _by_codes(input, weight, stored):
        codes = ops.quantized_linear(
            input._codes, weight._codes, bias, _scales(weight), input._scale, input._zero_point, relu,
            float(stored.scale), int(stored.zero_point),
        )  # fmt: skip
        return QuantizedTensor.around(codes, float(stored.scale), int(stored.zero_point))
    return _finished(ops.linear(number(input), number(weight), bias), input, stored, relu)


def linear_dynamic(input: Tensor, weight: Any, bias: Tensor | None, reduce_range: bool = False) -> Tensor:
    """A linear layer of an input that is quantized by its own range; the result is float32.

    Args:
        input: (..., in), float32.
        weight: (out, in), quantized, or of numbers.
        bias: (out,), float32, or None.
        reduce_range: Whether one bit of the codes is left unused.
    """
    if not input.numel() or not isinstance(weight, QuantizedTensor):
        return ops.linear(input, number(weight).to(input.dtype), bias)
    largest = 127 if reduce_range else 255
    scale, zero_point = chosen(input.detach(), 0, largest)
    codes = ops.quantize_codes(input, scale, zero_point, 0, largest, _C.uint8)
    if _whole(weight):
        return ops.quantized_linear(codes, weight._codes, bias, _scales(weight), scale, zero_point, False)
    return ops.linear(ops.dequantize_codes(codes, scale, zero_point), number(weight), bias)


def conv(
    dims: int, input: Any, weight: Any, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, groups: int,
    stored: Stored, relu: bool = False,
) -> Any:  # fmt: skip
    """A convolution over `dims` dimensions of a quantized tensor; arguments as `linear` and `conv2d`."""
    if dims == 2 and not isinstance(padding, str) and _by_codes(input, weight, stored):
        codes = ops.quantized_conv2d(
            input._codes, weight._codes, bias, _scales(weight), input._scale, input._zero_point, _pair(stride),
            _pair(padding), _pair(dilation), groups, relu, float(stored.scale), int(stored.zero_point),
        )  # fmt: skip
        return QuantizedTensor.around(codes, float(stored.scale), int(stored.zero_point))
    function = getattr(ops, f"conv{dims}d")
    made = function(number(input), number(weight), bias, stride, padding, dilation, groups)
    return _finished(made, input, stored, relu)


def conv_transpose(
    dims: int, input: Any, weight: Any, bias: Tensor | None, stride: Any, padding: Any, output_padding: Any,
    groups: int, dilation: Any, stored: Stored,
) -> Any:  # fmt: skip
    """A transposed convolution over `dims` dimensions of a quantized tensor; arguments as `conv_transpose2d`."""
    function = getattr(ops, f"conv_transpose{dims}d")
    made = function(number(input), number(weight), bias, stride, padding, output_padding, groups, dilation)
    return _finished(made, input, stored, False)


def _pair(of_windows: Any) -> Any:
    return (of_windows, of_windows) if isinstance(of_windows, int) else tuple(of_windows)


def _finished(made: Any, input: Any, stored: Stored, relu: bool) -> Any:
    dtype = input.dtype if stored.dtype is None else stored.dtype
    return quantize_per_tensor(
        made.relu() if relu else made, float(stored.scale), int(stored.zero_point), dtype
    )


def _by_codes(input: Any, weight: Any, stored: Stored) -> bool:
    """Whether the operators of codes compute the layer."""
    return (
        isinstance(input, QuantizedTensor)
        and input._axis is None
        and input._codes.dtype in (_C.uint8, _C.int8)
        and isinstance(weight, QuantizedTensor)
        and _whole(weight)
        and (stored.dtype is None or stored.dtype == quantized_dtype(input._codes.dtype))
    )


def _whole(weight: QuantizedTensor) -> bool:
    """Whether weights are codes of int8 that are multiples of their scales, of one for all or for each output."""
    if weight._codes.dtype != _C.int8 or weight._axis not in (None, 0):
        return False
    return not (weight._zero_point if weight._axis is None else bool(weight._zero_point.any()))


def _scales(weight: QuantizedTensor) -> Tensor:
    if weight._axis is None:
        return _C.tensor([weight._scale], dtype=_C.float32, device="cpu")
    return weight._scale.to(_C.float32)
