"""Functions of quantized tensors, under the names that they have for dense ones."""

from __future__ import annotations

from typing import Any

import taeda
from taeda_registry.slots import nn, tensor

layers = tensor.quantized.layers


def _scale(input: Any, scale: Any, zero_point: Any) -> Any:
    """What is given, and of the input what is not."""
    return layers.Stored(
        input.q_scale() if scale is None else scale,
        input.q_zero_point() if zero_point is None else zero_point,
    )


def _stored(made: Any, input: Any, scale: Any, zero_point: Any) -> Any:
    chosen = _scale(input, scale, zero_point)
    return taeda.quantize_per_tensor(made, chosen.scale, chosen.zero_point, input.dtype)


def _given(name: str, input: Any) -> Any:
    if not input.is_quantized:
        raise ValueError(f"Input to 'quantized.{name}' must be quantized!")
    return input.dequantize()


def linear(input: Any, weight: Any, bias: Any = None, scale: Any = None, zero_point: Any = None) -> Any:
    """A linear layer of a quantized input and weight; the result has the scale of the input unless given."""
    _given("linear", input)
    return layers.linear(input, weight, bias, _scale(input, scale, zero_point))


def _conv(dims: int) -> Any:
    def conv(
        input: Any, weight: Any, bias: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
        padding_mode: str = "zeros", scale: float = 1.0, zero_point: int = 0, dtype: Any = taeda.quint8,
    ) -> Any:  # fmt: skip
        if padding_mode != "zeros":
            raise NotImplementedError("Only zero-padding is supported!")
        _given(f"conv{dims}d", input)
        stored = layers.Stored(scale, zero_point, dtype)
        return layers.conv(dims, input, weight, bias, stride, padding, dilation, groups, stored)

    conv.__name__ = f"conv{dims}d"
    conv.__doc__ = (
        f"`nn.functional.conv{dims}d` of a quantized input and weight, stored by a scale and a zero point."
    )
    return conv


conv1d, conv2d, conv3d = _conv(1), _conv(2), _conv(3)


def _same_scale(name: str) -> Any:
    function = getattr(nn.functional, name)

    def applied(input: Any, *args: Any, **kwargs: Any) -> Any:
        _given(name, input)
        return function(input, *args, **kwargs)

    applied.__name__ = name
    applied.__doc__ = f"`nn.functional.{name}` of a quantized tensor, whose scale the result has."
    return applied


_SAME_SCALE = (
    "adaptive_avg_pool2d", "adaptive_avg_pool3d", "avg_pool2d", "avg_pool3d", "celu", "hardtanh", "interpolate",
    "max_pool1d", "max_pool2d", "relu", "upsample", "upsample_bilinear", "upsample_nearest",
)  # fmt: skip
for _name in _SAME_SCALE:
    globals()[_name] = _same_scale(_name)


def leaky_relu(
    input: Any, negative_slope: float = 0.01, inplace: bool = False, scale: Any = None, zero_point: Any = None
) -> Any:
    """`nn.functional.leaky_relu`, stored by a scale and a zero point; those of the input unless given."""
    return _stored(
        nn.functional.leaky_relu(_given("leaky_relu", input), negative_slope), input, scale, zero_point
    )


def elu(input: Any, scale: float, zero_point: int, alpha: float = 1.0) -> Any:
    """`nn.functional.elu`, stored by a scale and a zero point."""
    return _stored(nn.functional.elu(_given("elu", input), alpha), input, scale, zero_point)


def hardswish(input: Any, scale: float, zero_point: int) -> Any:
    """`nn.functional.hardswish`, stored by a scale and a zero point."""
    return _stored(nn.functional.hardswish(_given("hardswish", input)), input, scale, zero_point)


def hardsigmoid(input: Any, inplace: bool = False) -> Any:
    """`nn.functional.hardsigmoid`, stored by the scale of the range from 0 to 1."""
    _given("hardsigmoid", input)
    return nn.functional.hardsigmoid(input)


def clamp(input: Any, min_: float, max_: float) -> Any:
    """The elements between two limits."""
    _given("clamp", input)
    return taeda.clamp(input, min_, max_)


def threshold(input: Any, threshold: float, value: float) -> Any:
    """`nn.functional.threshold` of a quantized tensor."""
    _given("threshold", input)
    return nn.functional.threshold(input, threshold, value)
