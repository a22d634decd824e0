"""The operators of `quantized_decomposed`: quantized numbers as plain integers, their scales given beside them.

Tools that lower a program to hardware ask for them by `torch.ops.quantized_decomposed`; they are defined when this
module is imported, as in PyTorch, where it is `ao.quantization.fx._decomposed`.
"""

from __future__ import annotations

from typing import Any

import taeda as tk
from taeda.ao.quantization.utils import determine_qparams
from taeda.library import Library

__all__ = ["quantized_decomposed_lib"]

quantized_decomposed_lib = Library("quantized_decomposed", "DEF")

_RANGE = "int quant_min, int quant_max, ScalarType dtype"
_TENSOR_RANGE = "Tensor quant_min, Tensor quant_max, ScalarType dtype"
_OUT = "*, ScalarType? out_dtype=None"
_LARGEST_INT8, _LEAST_INT8 = 127, -128


def _operator(schema: str, key: str = "CompositeExplicitAutograd") -> Any:
    """Decorator: the function computes the operator of that schema."""

    def take(function: Any) -> Any:
        quantized_decomposed_lib.define(schema)
        quantized_decomposed_lib.impl(schema.partition("(")[0], function, key)
        return function

    return take


def _wide(name: str, input: Any) -> Any:
    """The numbers in float32: halves are widened, others refused."""
    if input.dtype in (tk.float16, tk.bfloat16):
        return input.to(tk.float32)
    if input.dtype != tk.float32:
        raise AssertionError(f"{name}: argument 'input' has dtype {input.dtype}, expected torch.float32")
    return input


def _quant_min_max_bounds_check(quant_min: int, quant_max: int, dtype: Any) -> None:
    """AssertionError where codes of that range are none of the dtype."""
    _check_range("_quant_min_max_bounds_check", quant_min, quant_max, dtype)


def _check_range(name: str, quant_min: int, quant_max: int, dtype: Any) -> None:
    info = tk.finfo(dtype) if dtype.is_floating_point else tk.iinfo(dtype)
    if quant_min < info.min or quant_max > info.max:
        raise AssertionError(
            f"{name}: out of bounds for dtype {dtype}: quant_min and quant_max are {quant_min} and {quant_max}, "
            f"expected {int(info.min)} to {int(info.max)}"
        )


def _check_codes(name: str, input: Any, dtype: Any) -> None:
    if input.dtype != dtype:
        raise AssertionError(f"{name}: argument 'input' has dtype {input.dtype}, expected {dtype}")


def _check_one(name: str, **tensors: Any) -> None:
    for argument, value in tensors.items():
        if value.numel() != 1:
            raise AssertionError(f"{name}: argument '{argument}' has {value.numel()} elements, expected one")


def _along(values: Any, axis: int, like: Any) -> Any:
    """The values of one dimension, as many dimensions as the tensor has."""
    return values.reshape([-1 if d == axis % like.dim() else 1 for d in range(like.dim())])


def _check_axis(name: str, axis: int, input: Any) -> None:
    if axis >= input.dim():
        raise AssertionError(f"{name}: argument 'axis' is {axis}, expected less than {input.dim()}")


def _codes(input: Any, scale: Any, zero_point: Any, quant_min: Any, quant_max: Any, dtype: Any) -> Any:
    return (tk.round(input * (1.0 / scale)) + zero_point).clamp(quant_min, quant_max).to(dtype)


@_operator(f"quantize_per_tensor(Tensor input, float scale, int zero_point, {_RANGE}) -> Tensor")
def quantize_per_tensor(
    input: Any, scale: float, zero_point: int, quant_min: int, quant_max: int, dtype: Any
) -> Any:
    input = _wide("quantize_per_tensor", input)
    _check_range("quantize_per_tensor", quant_min, quant_max, dtype)
    return _codes(input, scale, zero_point, quant_min, quant_max, dtype)


@_operator(f"quantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, {_RANGE}) -> Tensor")
def quantize_per_tensor_tensor(
    input: Any, scale: Any, zero_point: Any, quant_min: int, quant_max: int, dtype: Any
) -> Any:
    _check_one("quantize_per_tensor", scale=scale, zero_point=zero_point)
    return quantize_per_tensor(input, scale.item(), zero_point.item(), quant_min, quant_max, dtype)


@_operator(
    f"quantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, {_TENSOR_RANGE}) -> Tensor"
)
def quantize_per_tensor_tensor2(
    input: Any, scale: Any, zero_point: Any, quant_min: Any, quant_max: Any, dtype: Any
) -> Any:
    limits = int(quant_min.item()), int(quant_max.item())
    return quantize_per_tensor_tensor(input, scale, zero_point, *limits, dtype)


@_operator(f"dequantize_per_tensor(Tensor input, float scale, int zero_point, {_RANGE}, {_OUT}) -> Tensor")
def dequantize_per_tensor(
    input: Any,
    scale: float,
    zero_point: int,
    quant_min: int,
    quant_max: int,
    dtype: Any,
    *,
    out_dtype: Any = None,
) -> Any:
    _check_codes("dequantize_per_tensor", input, dtype)
    _check_range("dequantize_per_tensor", quant_min, quant_max, dtype)
    return (input.to(out_dtype or tk.float32) - zero_point) * scale


@_operator(
    f"dequantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, {_RANGE}, {_OUT}) -> Tensor"
)
def dequantize_per_tensor_tensor(
    input: Any,
    scale: Any,
    zero_point: Any,
    quant_min: int,
    quant_max: int,
    dtype: Any,
    *,
    out_dtype: Any = None,
) -> Any:
    _check_one("dequantize_per_tensor", scale=scale, zero_point=zero_point)
    rest = quant_min, quant_max, dtype
    return dequantize_per_tensor(input, scale.item(), zero_point.item(), *rest, out_dtype=out_dtype)


@_operator(
    "dequantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, "
    f"{_TENSOR_RANGE}, {_OUT}) -> Tensor"
)
def dequantize_per_tensor_tensor2(
    input: Any,
    scale: Any,
    zero_point: Any,
    quant_min: Any,
    quant_max: Any,
    dtype: Any,
    *,
    out_dtype: Any = None,
) -> Any:
    rest = int(quant_min.item()), int(quant_max.item()), dtype
    return dequantize_per_tensor_tensor(input, scale, zero_point, *rest, out_dtype=out_dtype)


def _chosen(input: Any, quant_min: int, quant_max: int, eps: float, dtype: Any, qscheme: Any) -> Any:
    name = "choose_qparams"
    input = _wide(name, input)
    _check_range(name, quant_min, quant_max, dtype)
    if quant_min >= quant_max:
        raise AssertionError(f"{name}: quant_min is {quant_min}, expected less than quant_max ({quant_max})")
    least, largest = tk.aminmax(input)
    smallest = tk.tensor([eps], device=input.device)
    return determine_qparams(
        least, largest, quant_min, quant_max, dtype, smallest, has_customized_qrange=False, qscheme=qscheme
    )


@_operator(
    "choose_qparams.tensor(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype) "
    "-> (Tensor, Tensor)"
)
def choose_qparams_tensor(input: Any, quant_min: int, quant_max: int, eps: float, dtype: Any) -> Any:
    return _chosen(input, quant_min, quant_max, eps, dtype, tk.per_tensor_affine)


@_operator(
    "choose_qparams_symmetric.tensor(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype) "
    "-> (Tensor, Tensor)"
)
def choose_qparams_symmetric_tensor(
    input: Any, quant_min: int, quant_max: int, eps: float, dtype: Any
) -> Any:
    return _chosen(input, quant_min, quant_max, eps, dtype, tk.per_tensor_symmetric)


@_operator(
    f"quantize_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, {_RANGE}) -> Tensor"
)
def quantize_per_channel(
    input: Any, scales: Any, zero_points: Any, axis: int, quant_min: int, quant_max: int, dtype: Any
) -> Any:
    input = _wide("quantize_per_channel", input)
    _check_axis("quantize_per_channel", axis, input)
    _check_range("quantize_per_channel", quant_min, quant_max, dtype)
    parameters = _along(scales, axis, input), _along(zero_points, axis, input)
    return _codes(input, *parameters, quant_min, quant_max, dtype)


@_operator(
    "dequantize_per_channel(Tensor input, Tensor scales, Tensor? zero_points, int axis, "
    f"{_RANGE}, {_OUT}) -> Tensor"
)
def dequantize_per_channel(
    input: Any,
    scales: Any,
    zero_points: Any,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: Any,
    *,
    out_dtype: Any = None,
) -> Any:
    _check_codes("dequantize_per_channel", input, dtype)
    _check_axis("dequantize_per_channel", axis, input)
    _check_range("dequantize_per_channel", quant_min, quant_max, dtype)
    shifted = input if zero_points is None else input - _along(zero_points, axis, input)
    return (shifted * _along(scales, axis, input)).to(out_dtype or tk.float32)


@_operator("choose_qparams_per_token(Tensor input, ScalarType dtype) -> (Tensor, Tensor)")
def choose_qparams_per_token(input: Any, dtype: Any) -> Any:
    if dtype != tk.int8:
        raise ValueError(f"choose_qparams_per_token: unsupported dtype {dtype}, expected torch.int8")
    scales = input.abs().amax(dim=-1, keepdim=True)
    if scales.dtype == tk.float16:
        scales = scales.float()
    scales = scales.clamp(min=1e-5).div(_LARGEST_INT8)
    return scales, tk.zeros_like(scales)


@_operator("_choose_qparams_per_token_asymmetric_impl(Tensor input, ScalarType dtype) -> (Tensor, Tensor)")
@_operator("choose_qparams_per_token_asymmetric(Tensor input, ScalarType dtype) -> (Tensor, Tensor)")
def choose_qparams_per_token_asymmetric(input: Any, dtype: Any) -> Any:
    least = input.amin(dim=-1, keepdim=True).clamp(max=0)
    largest = input.amax(dim=-1, keepdim=True).clamp(min=0)
    scale = ((largest - least) / float(_LARGEST_INT8 - _LEAST_INT8)).clamp(min=tk.finfo(tk.float32).eps)
    below, above = least / scale, largest / scale
    # from the end of the range that is farther off
    from_least = (_LEAST_INT8 + below) + (_LARGEST_INT8 + above) > 0
    zero_point = tk.where(from_least, _LEAST_INT8 - below, _LARGEST_INT8 - above)
    return scale.to(tk.float64), zero_point.clamp(_LEAST_INT8, _LARGEST_INT8).round().to(tk.int64)


def _check_tokens(name: str, input: Any, **parameters: Any) -> None:
    for argument, values in parameters.items():
        if values.numel() != input.shape[:-1].numel():
            raise AssertionError(
                f"{name}: argument '{argument}' has {values.numel()} elements, expected one for each of the "
                f"{input.shape[:-1].numel()} tokens"
            )


def _per_token_quant_qparam_dim_check(input: Any, scales: Any, zero_points: Any) -> None:
    """AssertionError where there is not one scale, and one code of zero, for each token."""
    _check_tokens("_per_token_quant_qparam_dim_check", input, scales=scales, zero_points=zero_points)


@_operator(f"quantize_per_token(Tensor input, Tensor scales, Tensor zero_points, {_RANGE}) -> Tensor")
def quantize_per_token(
    input: Any, scales: Any, zero_points: Any, quant_min: int, quant_max: int, dtype: Any
) -> Any:
    _check_range("quantize_per_token", quant_min, quant_max, dtype)
    _check_tokens("quantize_per_token", input, scales=scales, zero_points=zero_points)
    return (input * (1.0 / scales) + zero_points).round().clamp(quant_min, quant_max).to(dtype)


@_operator(
    "dequantize_per_token(Tensor input, Tensor scales, Tensor zero_points, "
    f"{_RANGE}, ScalarType output_dtype) -> Tensor"
)
def dequantize_per_token(
    input: Any,
    scales: Any,
    zero_points: Any,
    quant_min: int,
    quant_max: int,
    dtype: Any,
    output_dtype: Any = None,
) -> Any:
    return ((input - zero_points) * scales).to(output_dtype or tk.float32)


def _groups(name: str, input: Any, scales: Any, size: int) -> Any:
    """The rows of a matrix, cut into groups of that many elements."""
    if size <= 1:
        raise AssertionError(f"{name}: argument 'group_size' is {size}, expected more than one")
    if size > input.shape[-1] and scales.shape[-1] == 1:
        size = input.shape[-1]
    if input.dim() != 2 or input.shape[-1] % size != 0:
        raise AssertionError(
            f"{name}: argument 'input' has shape {tuple(input.shape)}, expected two dimensions, the last divisible "
            f"by {size}"
        )
    return input.reshape(-1, size)


@_operator(
    f"quantize_per_channel_group(Tensor input, Tensor scales, Tensor zero_points, {_RANGE}, int group_size) "
    "-> Tensor"
)
def quantize_per_channel_group(
    input: Any,
    scales: Any,
    zero_points: Any,
    quant_min: int,
    quant_max: int,
    dtype: Any,
    group_size: int = 128,
) -> Any:
    groups = _groups("quantize_per_channel_group", input, scales, group_size)
    shifted = groups * (1.0 / scales.reshape(-1, 1)) + zero_points.reshape(-1, 1)
    return shifted.round().clamp(quant_min, quant_max).to(dtype).reshape(input.shape)


@_operator(
    f"dequantize_per_channel_group(Tensor input, Tensor scales, Tensor? zero_points, {_RANGE}, int group_size, "
    "ScalarType output_dtype) -> Tensor"
)
def dequantize_per_channel_group(
    input: Any,
    scales: Any,
    zero_points: Any,
    quant_min: int,
    quant_max: int,
    dtype: Any,
    group_size: int = 128,
    output_dtype: Any = None,
) -> Any:
    groups = _groups("dequantize_per_channel_group", input, scales, group_size)
    shifted = groups if zero_points is None else groups - zero_points.reshape(-1, 1)
    return (shifted * scales.reshape(-1, 1)).reshape(input.shape).to(output_dtype or tk.float32)


@_operator(
    "fake_quant_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, int quant_min, int quant_max) "
    "-> Tensor",
    "CompositeImplicitAutograd",
)
def fake_quant_per_channel(
    input: Any, scales: Any, zero_points: Any, axis: int, quant_min: int, quant_max: int
) -> Any:
    zero_points = zero_points.to(tk.int32)
    return tk.fake_quantize_per_channel_affine(
        input, scales.to(tk.float32), zero_points, axis, quant_min, quant_max
    )


@_operator("convert_element_type.no_fuse(Tensor input, ScalarType dtype) -> Tensor")
def convert_element_type(input: Any, dtype: Any) -> Any:
    return input.to(dtype)
