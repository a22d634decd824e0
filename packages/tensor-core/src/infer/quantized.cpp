// Inference of layers of codes.
#include <cmath>
#include <optional>

#include "infer/dtypes.h"
#include "infer/conv.h"
#include "infer/windows.h"
#include "taeda/ops/quantized.h"

namespace taeda::infer {
namespace {

void expect_codes(const char* op, const char* argument, const Tensor& t) {
  check(t.dtype() == DType::UInt8 || t.dtype() == DType::Int8, ErrorKind::Runtime, op, ": argument '", argument,
        "' has dtype ", name(t.dtype()), ", expected uint8 or int8");
}
void expect_scale(const char* op, const char* argument, double scale) {
  check(scale > 0 && std::isfinite(scale), ErrorKind::Runtime, op, ": argument '", argument, "' is ", scale,
        ", expected a number above 0");
}
void expect_code(const char* op, const char* argument, int64_t code, DType dtype) {
  const int64_t least = dtype == DType::Int8 ? -128 : 0, largest = least + 255;
  check(code >= least && code <= largest, ErrorKind::Runtime, op, ": argument '", argument, "' is ", code,
        ", expected a code of ", name(dtype), ": ", least, " to ", largest);
}
/// What layers share; gives the dtype of the result.
DType expect_layer(const char* op, const Tensor& input, const Tensor& weight, const Tensor& bias,
                   const Tensor& weight_scales, double input_scale, int64_t input_zero_point,
                   std::optional<double> output_scale, int64_t output_zero_point) {
  expect_codes(op, "input", input);
  expect_dtype(op, "weight", weight, DType::Int8);
  const int64_t outputs = weight.size(0);
  expect_dtype(op, "weight_scales", weight_scales, DType::Float32);
  check(weight_scales.dim() == 1 && (weight_scales.size(0) == 1 || weight_scales.size(0) == outputs),
        ErrorKind::Runtime, op, ": argument 'weight_scales' has shape ", shape_text(weight_scales.sizes()),
        ", expected (1,) or (", outputs, ",) to fit 'weight' of shape ", shape_text(weight.sizes()));
  if (bias.defined()) {
    expect_dtype(op, "bias", bias, DType::Float32);
    check(bias.dim() == 1 && bias.size(0) == outputs, ErrorKind::Runtime, op, ": argument 'bias' has shape ",
          shape_text(bias.sizes()), ", expected (", outputs, ",) to fit 'weight' of shape ",
          shape_text(weight.sizes()));
  }
  expect_scale(op, "input_scale", input_scale);
  expect_code(op, "input_zero_point", input_zero_point, input.dtype());
  if (!output_scale) return DType::Float32;
  expect_scale(op, "output_scale", *output_scale);
  expect_code(op, "output_zero_point", output_zero_point, input.dtype());
  return input.dtype();
}

}  // namespace

Spec dequantize_codes(const Tensor& self, double scale, int64_t zero_point) {
  const char* const op = "dequantize_codes";
  expect_codes(op, "self", self);
  expect_scale(op, "scale", scale);
  expect_code(op, "zero_point", zero_point, self.dtype());
  return cast(self, DType::Float32);
}
Spec quantize_codes(const Tensor& self, double scale, int64_t zero_point, int64_t least, int64_t largest, DType dtype) {
  const char* const op = "quantize_codes";
  expect_dtype(op, "self", self, DType::Float32);
  expect_scale(op, "scale", scale);
  check(dtype == DType::UInt8 || dtype == DType::Int8, ErrorKind::Runtime, op, ": argument 'dtype' is ", name(dtype),
        ", expected uint8 or int8");
  expect_code(op, "least", least, dtype);
  expect_code(op, "largest", largest, dtype);
  check(least <= zero_point && zero_point <= largest, ErrorKind::Runtime, op, ": argument 'zero_point' is ", zero_point,
        ", expected one of the codes ", least, " to ", largest);
  return cast(self, dtype);
}

Spec int8_mm(const Tensor& self, const Tensor& mat2) {
  expect_codes("int8_mm", "self", self);
  expect_dtype("int8_mm", "mat2", mat2, DType::Int8);
  check(self.dim() == 2 && mat2.dim() == 2 && self.size(1) == mat2.size(0), ErrorKind::Runtime,
        "int8_mm: expected matrices (M, K) and (K, N), found shapes ", shape_text(self.sizes()), " and ",
        shape_text(mat2.sizes()));
  return spec(Shape{self.size(0), mat2.size(1)}, DType::Int32);
}

Spec quantized_conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& weight_scales,
                      double input_scale, int64_t input_zero_point, IntSpan stride, IntSpan padding, IntSpan dilation,
                      int64_t groups, bool, std::optional<double> output_scale, int64_t output_zero_point) {
  const char* const op = "quantized_conv2d";
  const ConvPlan plan = checked_conv2d_plan(op, input, weight, stride, padding, dilation, groups);
  const DType dtype = expect_layer(op, input, weight, bias, weight_scales, input_scale, input_zero_point, output_scale,
                                   output_zero_point);
  const int64_t kernel[] = {plan.kh, plan.kw};
  return image_result(op, input, conv2d_sizes(input, plan), dtype, kernel, groups);
}

Spec quantized_linear(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& weight_scales,
                      double input_scale, int64_t input_zero_point, bool, std::optional<double> output_scale,
                      int64_t output_zero_point) {
  const char* const op = "quantized_linear";
  check(weight.dim() == 2, ErrorKind::Runtime, op, ": argument 'weight' has shape ", shape_text(weight.sizes()),
        ", expected (out, in)");
  check(input.dim() >= 1 && input.size(-1) == weight.size(1), ErrorKind::Runtime, op, ": argument 'input' has shape ",
        shape_text(input.sizes()), ", expected ", weight.size(1), " in its last dimension to fit 'weight' of shape ",
        shape_text(weight.sizes()));
  const DType dtype = expect_layer(op, input, weight, bias, weight_scales, input_scale, input_zero_point, output_scale,
                                   output_zero_point);
  Shape sizes(input.sizes());
  sizes.back() = weight.size(0);
  return spec(sizes, dtype);
}

}  // namespace taeda::infer
