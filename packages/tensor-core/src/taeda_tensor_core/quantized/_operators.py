"""Operators that take quantized tensors alone, and the package `ops.quantized` of them."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from taeda_tensor_core import _C, ops
from taeda_tensor_core._C import Tensor
from taeda_tensor_core.quantized import layers
from taeda_tensor_core.quantized._making import chosen, quantize_per_tensor
from taeda_tensor_core.quantized._schemes import quantized_dtype
from taeda_tensor_core.quantized._tensor import QuantizedTensor, numbers, with_codes
from taeda_tensor_core.quantized.layers import Stored


def _pooled(name: str, pool: Callable[..., Any]) -> Callable[..., QuantizedTensor]:
    def quantized_pool(
        input: QuantizedTensor,
        kernel_size: Any,
        stride: Any = (),
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> QuantizedTensor:
        codes = pool(
            input._codes.to(_C.float32), kernel_size, stride or kernel_size, padding, dilation, ceil_mode
        )
        return with_codes(input, codes.to(input._codes.dtype))

    quantized_pool.__name__ = quantized_pool.__qualname__ = name
    quantized_pool.__doc__ = (
        f"""The largest number in each window of a quantized tensor; see `{pool.__name__}`."""
    )
    return quantized_pool


quantized_max_pool1d = _pooled("quantized_max_pool1d", ops.max_pool1d)
quantized_max_pool2d = _pooled("quantized_max_pool2d", ops.max_pool2d)
quantized_max_pool3d = _pooled("quantized_max_pool3d", ops.max_pool3d)


def quantized_batch_norm(
    input: QuantizedTensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    var: Tensor,
    eps: float,
    output_scale: float,
    output_zero_point: int,
) -> QuantizedTensor:
    """Normalizes the channels of a quantized tensor by given means and variances.

    Args:
        input: Shape (N, C, ...). weight, bias, mean, var: Shape (C,).
        output_scale, output_zero_point: Of the result.
    """
    made = ops.batch_norm(numbers(input), weight, bias, mean, var, False, 0.0, eps)
    return quantize_per_tensor(made, output_scale, output_zero_point, quantized_dtype(input._codes.dtype))


# ops.quantized


class PackedWeight:
    """A quantized weight and its bias, as layers keep them.

    Attributes:
        weight: The quantized weight. bias: float32, or None. options: Of a convolution, by name.
    """

    def __init__(
        self, weight: QuantizedTensor, bias: Tensor | None, options: dict[str, Any] | None = None
    ) -> None:
        self.weight, self.bias, self.options = weight, bias, options or {}

    def unpack(self) -> tuple[QuantizedTensor, Tensor | None]:
        """The weight and the bias."""
        return self.weight, self.bias

    def conv(self, dims: int, input: QuantizedTensor, stored: Stored, relu: bool) -> QuantizedTensor:
        """The convolution over `dims` dimensions that is kept here."""
        return layers.conv(dims, input, self.weight, self.bias, **self.options, stored=stored, relu=relu)


def linear_prepack(weight: QuantizedTensor, bias: Tensor | None = None) -> PackedWeight:
    """Keeps what a linear layer computes with."""
    return PackedWeight(weight, bias)


def _stored(x: Tensor, scale: float, zero_point: int, like: Any) -> QuantizedTensor:
    dtype = quantized_dtype(like._codes.dtype) if isinstance(like, QuantizedTensor) else like
    return quantize_per_tensor(x, float(scale), int(zero_point), dtype)


def linear(
    X: QuantizedTensor, W_prepack: PackedWeight, Y_scale_i: float, Y_zero_point_i: int
) -> QuantizedTensor:
    """A linear layer of a quantized input, stored by a scale and a zero point."""
    return layers.linear(X, W_prepack.weight, W_prepack.bias, Stored(Y_scale_i, Y_zero_point_i))


def linear_relu(
    X: QuantizedTensor, W_prepack: PackedWeight, Y_scale_i: float, Y_zero_point_i: int
) -> QuantizedTensor:
    """`linear`, and numbers below 0 become 0."""
    return layers.linear(X, W_prepack.weight, W_prepack.bias, Stored(Y_scale_i, Y_zero_point_i), True)


def linear_dynamic(X: Tensor, W_prepack: PackedWeight, reduce_range: bool = False) -> Tensor:
    """A linear layer of an input that is quantized by its own range; the result is float32."""
    return layers.linear_dynamic(X, W_prepack.weight, W_prepack.bias, reduce_range)


def _convolutions(dims: int) -> dict[str, Callable[..., Any]]:
    def prepack(
        weight: QuantizedTensor,
        bias: Tensor | None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> PackedWeight:
        options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        return PackedWeight(weight, bias, options)

    def conv(
        qx: QuantizedTensor, packed_weight: PackedWeight, output_scale: float, output_zero_point: int
    ) -> QuantizedTensor:
        return packed_weight.conv(dims, qx, Stored(output_scale, output_zero_point), False)

    def conv_relu(
        qx: QuantizedTensor, packed_weight: PackedWeight, output_scale: float, output_zero_point: int
    ) -> QuantizedTensor:
        return packed_weight.conv(dims, qx, Stored(output_scale, output_zero_point), True)

    return {f"conv{dims}d_prepack": prepack, f"conv{dims}d": conv, f"conv{dims}d_relu": conv_relu}


def _of_two(function: Callable[[Tensor, Tensor], Tensor], relu: bool) -> Callable[..., QuantizedTensor]:
    def of_two(qa: QuantizedTensor, qb: QuantizedTensor, scale: float, zero_point: int) -> QuantizedTensor:
        made = function(numbers(qa), numbers(qb))
        return _stored(made.relu() if relu else made, scale, zero_point, qa)

    return of_two


def add_scalar(qa: QuantizedTensor, b: float) -> QuantizedTensor:
    """The sum with a number, which moves the zero point; codes stay where that suffices."""
    made = numbers(qa) + b
    moved = qa._zero_point - round(b / qa._scale)
    least, largest = (0, 255) if qa._codes.dtype == _C.uint8 else (-128, 127)
    if least <= moved <= largest:
        return QuantizedTensor.around(qa._codes.clone(), qa._scale, moved)
    return _stored(made, *chosen(made, least, largest), qa)


def mul_scalar(qa: QuantizedTensor, b: float) -> QuantizedTensor:
    """The product with a number, which changes the scale; of a number below 0 the codes are turned around too."""
    if b > 0:
        return QuantizedTensor.around(qa._codes.clone(), qa._scale * b, qa._zero_point)
    least, largest = (0, 255) if qa._codes.dtype == _C.uint8 else (-128, 127)
    if b == 0:
        return QuantizedTensor.around(_C.zeros_like(qa._codes), 1.0, 0)
    turned = (least + largest - qa._codes.to(_C.int32)).to(qa._codes.dtype)
    return QuantizedTensor.around(turned, -qa._scale * b, least + largest - qa._zero_point)


def cat(qx: Any, dim: int, scale: float | None = None, zero_point: int | None = None) -> QuantizedTensor:
    """Quantized tensors one after another, stored by a scale and a zero point, by default those of the first."""
    made = _C.cat([numbers(x) for x in qx], dim)
    first = qx[0]
    zero = first._zero_point if zero_point is None else zero_point
    return _stored(made, first._scale if scale is None else scale, zero, first)


def _activation(name: str) -> Callable[..., QuantizedTensor]:
    function = getattr(ops, name, None) or getattr(_C, name)

    def activation(
        qx: QuantizedTensor, output_scale: float, output_zero_point: int, *more: Any
    ) -> QuantizedTensor:
        return _stored(function(numbers(qx), *more), output_scale, output_zero_point, qx)

    return activation


def _scaled(function: Callable[..., Tensor]) -> Callable[..., QuantizedTensor]:
    """A function of numbers whose last two arguments are the scale and the zero point of the result."""

    def scaled(qx: QuantizedTensor, *args: Any) -> QuantizedTensor:
        *given, output_scale, output_zero_point = args
        given = [numbers(item) if isinstance(item, QuantizedTensor) else item for item in given]
        return _stored(function(numbers(qx), *given), output_scale, output_zero_point, qx)

    return scaled


def leaky_relu(
    qx: QuantizedTensor, negative_slope: float, inplace: bool, output_scale: float, output_zero_point: int
) -> QuantizedTensor:
    """`leaky_relu` of a quantized tensor, stored by a scale and a zero point; a new tensor in any case."""
    return _stored(ops.leaky_relu(numbers(qx), negative_slope), output_scale, output_zero_point, qx)


def relu6(qx: QuantizedTensor, inplace: bool = False) -> QuantizedTensor:
    """Numbers below 0 become 0, and those above 6 become 6."""
    return _stored(numbers(qx).clamp(0, 6), qx._scale, qx._zero_point, qx)


def group_norm(
    qx: QuantizedTensor, num_groups: int, weight: Tensor | None, bias: Tensor | None, eps: float,
    output_scale: float, output_zero_point: int,
) -> QuantizedTensor:  # fmt: skip
    """`group_norm` of a quantized tensor, stored by a scale and a zero point."""
    made = ops.group_norm(numbers(qx), num_groups, weight, bias, eps)
    return _stored(made, output_scale, output_zero_point, qx)


def instance_norm(
    qx: QuantizedTensor, weight: Tensor | None, bias: Tensor | None, eps: float, output_scale: float,
    output_zero_point: int,
) -> QuantizedTensor:  # fmt: skip
    """`instance_norm` of a quantized tensor by its own statistics, stored by a scale and a zero point."""
    return group_norm(qx, qx.shape[1], weight, bias, eps, output_scale, output_zero_point)


def _transposed(dims: int) -> dict[str, Callable[..., Any]]:
    def prepack(
        weight: QuantizedTensor, bias: Tensor | None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
        dilation: Any = 1, groups: int = 1,
    ) -> PackedWeight:  # fmt: skip
        options = {
            "stride": stride,
            "padding": padding,
            "output_padding": output_padding,
            "dilation": dilation,
        }
        return PackedWeight(weight, bias, options | {"groups": groups})

    def conv_transpose(
        qx: QuantizedTensor, packed_weight: PackedWeight, output_scale: float, output_zero_point: int
    ) -> QuantizedTensor:
        kept, stored = packed_weight, Stored(output_scale, output_zero_point)
        return layers.conv_transpose(dims, qx, kept.weight, kept.bias, **kept.options, stored=stored)

    name = f"conv_transpose{dims}d"
    return {f"{name}_prepack": prepack, name: conv_transpose, f"{name}_unpack": PackedWeight.unpack}


def package() -> ModuleType:
    """The module that programs call `ops.quantized`."""
    made = ModuleType(f"{_C.ops.__name__}.quantized", "Operators of quantized tensors.")
    named: dict[str, Any] = {
        "add": _of_two(_C.add, False), "add_relu": _of_two(_C.add, True), "mul": _of_two(_C.mul, False),
        "mul_relu": _of_two(_C.mul, True), "matmul": _of_two(_C.matmul, False),
        "add_scalar": add_scalar, "mul_scalar": mul_scalar, "cat": cat, "linear": linear, "linear_relu": linear_relu,
        "linear_dynamic": linear_dynamic, "linear_prepack": linear_prepack, "linear_unpack": PackedWeight.unpack,
        "sigmoid": _activation("sigmoid"), "tanh": _activation("tanh"), "hardswish": _activation("hardswish"),
        **{name: function for dims in (1, 2, 3) for name, function in _convolutions(dims).items()},
        **{f"conv{dims}d_unpack": PackedWeight.unpack for dims in (1, 2, 3)},
        **{name: function for dims in (1, 2, 3) for name, function in _transposed(dims).items()},
        "hardsigmoid": _activation("hardsigmoid"), "elu": _activation("elu"), "celu": _activation("celu"),
        "softmax": _scaled(ops.softmax), "layer_norm": _scaled(ops.layer_norm), "leaky_relu": leaky_relu,
        "relu6": relu6, "group_norm": group_norm, "instance_norm": instance_norm, "prelu": _scaled(ops.prelu),
        "batch_norm": quantized_batch_norm, "batch_norm1d": quantized_batch_norm,
        "batch_norm2d": quantized_batch_norm, "batch_norm3d": quantized_batch_norm,
        "max_pool1d": quantized_max_pool1d, "max_pool2d": quantized_max_pool2d,
    }  # fmt: skip
    for name, function in named.items():
        if "<locals>" in function.__qualname__:  # graphs name what they call, and pickles find it by its name
            function.__name__ = function.__qualname__ = name
            globals()[name] = function
        setattr(made, name, function)
    return made
