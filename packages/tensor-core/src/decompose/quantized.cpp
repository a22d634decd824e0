// Layers of codes through the numbers that codes stand for.
#include "decompose/quantized.h"

#include <algorithm>

#include "decompose/common.h"
#include "taeda/wrappers.h"

namespace taeda::decompose {
namespace {

/// Of a weight, with a scale for all or for each output.
Tensor weights(const Tensor& codes, const Tensor& scales) {
  Shape sizes(size_t(codes.dim()), 1);
  sizes[0] = -1;
  return ops::to_dtype(codes, DType::Float32) * ops::reshape(scales, sizes);
}
Tensor finished(Tensor made, bool relu, std::optional<double> scale, int64_t zero_point, DType dtype) {
  if (relu) made = ops::relu(made);
  if (!scale) return made;
  const int64_t least = dtype == DType::Int8 ? -128 : 0;
  return ops::quantize_codes(made, *scale, zero_point, least, least + 255, dtype);
}

Tensor dequantize_codes(const Tensor& self, double scale, int64_t zero_point) {
  return (ops::to_dtype(self, DType::Float32) - Tensor(double(zero_point))) * Tensor(scale);
}
Tensor quantize_codes(const Tensor& self, double scale, int64_t zero_point, int64_t least, int64_t largest,
                      DType dtype) {
  const Tensor codes = ops::round(self * Tensor(1 / scale)) + Tensor(double(zero_point));
  return ops::to_dtype(ops::clamp_Tensor(codes, Tensor(double(least)), Tensor(double(largest))), dtype);
}

}  // namespace

Tensor int8_mm(const Tensor& self, const Tensor& mat2) {
  // Sums of so many products of codes are whole numbers that float32 holds, in whatever order they are added.
  constexpr int64_t exact = (int64_t(1) << 24) / (256 * 128);
  const int64_t inner = self.size(1);
  Tensor made = ops::zeros(Shape{self.size(0), mat2.size(1)}, DType::Int32, stated_device(self));
  for (int64_t k = 0; k < inner; k += exact) {
    const int64_t count = std::min(exact, inner - k);
    const Tensor a = ops::to_dtype(ops::narrow(self, 1, k, count), DType::Float32),
                 b = ops::to_dtype(ops::narrow(mat2, 0, k, count), DType::Float32);
    made = made + ops::to_dtype(ops::mm(a, b), DType::Int32);
  }
  return made;
}
Tensor quantized_conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& weight_scales,
                        double input_scale, int64_t input_zero_point, IntSpan stride, IntSpan padding, IntSpan dilation,
                        int64_t groups, bool relu, std::optional<double> output_scale, int64_t output_zero_point) {
  const Tensor made = ops::conv2d(ops::dequantize_codes(input, input_scale, input_zero_point),
                                  weights(weight, weight_scales), bias, stride, padding, dilation, groups);
  return finished(made, relu, output_scale, output_zero_point, input.dtype());
}
Tensor quantized_linear(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& weight_scales,
                        double input_scale, int64_t input_zero_point, bool relu, std::optional<double> output_scale,
                        int64_t output_zero_point) {
  const Tensor made =
      ops::linear(ops::dequantize_codes(input, input_scale, input_zero_point), weights(weight, weight_scales), bias);
  return finished(made, relu, output_scale, output_zero_point, input.dtype());
}

DECOMPOSE(dequantize_codes)
DECOMPOSE(quantize_codes)
DECOMPOSE(int8_mm)
DECOMPOSE(quantized_conv2d)
DECOMPOSE(quantized_linear)

}  // namespace taeda::decompose
