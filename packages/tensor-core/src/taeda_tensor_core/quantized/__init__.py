"""Quantized tensors: integers with a scale and a zero point, by which they stand for real numbers.

A quantized tensor keeps its codes as a tensor of integers; the number that a code stands for is
``(code - zero_point) * scale``, with one scale for the whole tensor or one for each slice along a dimension. Shapes are
changed on the codes; what is computed is computed on the numbers, and stored with the scale it is given.

Source: B. Jacob et al., "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference",
2018.

Example:
    >>> x = taeda.quantize_per_tensor(taeda.tensor([-1.0, 0.0, 0.26]), 0.1, 10, taeda.quint8)
    >>> x.int_repr()
    tensor([ 0, 10, 13], dtype=taeda.uint8)
    >>> x.dequantize()
    tensor([-1.0000,  0.0000,  0.3000])
"""

from __future__ import annotations

# ruff: noqa: F401 (names with an underscore are found by the package)
from taeda_tensor_core._overridable import overridable
from taeda_tensor_core.quantized import _functions  # what is computed with them stands in their table
from taeda_tensor_core.quantized._fake import (
    _fake_quantize_learnable_per_channel_affine,
    _fake_quantize_learnable_per_tensor_affine,
    fake_quantize_per_channel_affine,
    fake_quantize_per_tensor_affine,
    fused_moving_avg_obs_fake_quant,
    limits_to_scale,
)
from taeda_tensor_core.quantized._making import (
    _choose_qparams_per_tensor,
    _empty_affine_quantized,
    _empty_per_channel_affine_quantized,
    _make_per_channel_quantized_tensor,
    _make_per_tensor_quantized_tensor,
    dequantize,
    empty_quantized,
    int_repr,
    q_per_channel_axis,
    q_per_channel_scales,
    q_per_channel_zero_points,
    q_scale,
    q_zero_point,
    quantize_per_channel,
    quantize_per_tensor,
    quantize_per_tensor_dynamic,
)
from taeda_tensor_core.quantized._operators import (
    quantized_batch_norm,
    quantized_max_pool1d,
    quantized_max_pool2d,
    quantized_max_pool3d,
)
from taeda_tensor_core.quantized._schemes import (
    per_channel_affine,
    per_channel_affine_float_qparams,
    per_channel_symmetric,
    per_tensor_affine,
    per_tensor_symmetric,
    qscheme,
)
from taeda_tensor_core.quantized._tensor import QuantizedTensor

__all__ = [
    "QuantizedTensor", "dequantize", "empty_quantized", "fake_quantize_per_channel_affine",
    "fake_quantize_per_tensor_affine", "fused_moving_avg_obs_fake_quant", "int_repr", "layers", "limits_to_scale",
    "per_channel_affine", "per_channel_affine_float_qparams", "per_channel_symmetric", "per_tensor_affine",
    "per_tensor_symmetric", "q_per_channel_axis", "q_per_channel_scales", "q_per_channel_zero_points", "q_scale",
    "q_zero_point", "qscheme", "quantize_per_channel", "quantize_per_tensor", "quantize_per_tensor_dynamic",
    "quantized_batch_norm", "quantized_max_pool1d", "quantized_max_pool2d", "quantized_max_pool3d",
]  # fmt: skip

overridable((
    *(dequantize, int_repr, q_per_channel_axis, q_per_channel_scales, q_per_channel_zero_points, q_scale, q_zero_point),
    *(quantize_per_channel, quantize_per_tensor, quantize_per_tensor_dynamic, fused_moving_avg_obs_fake_quant),
    *(fake_quantize_per_channel_affine, fake_quantize_per_tensor_affine),
    *(quantized_batch_norm, quantized_max_pool1d, quantized_max_pool2d, quantized_max_pool3d),
), composed=True)  # fmt: skip
