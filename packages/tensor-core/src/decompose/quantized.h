// Layers of codes through the numbers that codes stand for.
#pragma once
#include <optional>

#include "taeda/tensor.h"

namespace taeda::decompose {

Tensor int8_mm(const Tensor& self, const Tensor& mat2);
Tensor quantized_conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& weight_scales,
                        double input_scale, int64_t input_zero_point, IntSpan stride, IntSpan padding, IntSpan dilation,
                        int64_t groups, bool relu, std::optional<double> output_scale, int64_t output_zero_point);
Tensor quantized_linear(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& weight_scales,
                        double input_scale, int64_t input_zero_point, bool relu, std::optional<double> output_scale,
                        int64_t output_zero_point);

}  // namespace taeda::decompose
