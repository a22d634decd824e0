// CPU kernels of layers of codes: oneDNN's sums of whole numbers, or products of the numbers that codes stand for.
#include "taeda/ops/quantized.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "cpu/dense_rows.h"
#include "cpu/onednn/quantized.h"
#include "cpu/prepare.h"
#include "decompose/quantized.h"
#include "infer/windows.h"
#include "taeda/parallel.h"

namespace taeda {
namespace {

using cpu::apply_line;
using cpu::row_major;
using cpu::SharedLine;
using infer::ConvPlan;

constexpr int64_t kUnlockWork = 1 << 18;

/// The scaling of a layer, with the numbers that it points to.
class LayerScaling {
 public:
  LayerScaling(int64_t outputs, const Tensor& bias, const Tensor& weight_scales, double input_scale,
               int64_t input_zero_point, bool relu, std::optional<double> output_scale, int64_t output_zero_point)
      : bias_(cpu::row_major_or_none(bias, DType::Float32)), factors_(size_t(outputs)) {
    const Tensor scales = row_major(weight_scales, DType::Float32);
    const float* const from = scales.data<float>();
    const int64_t step = scales.numel() == 1 ? 0 : 1;
    for (int64_t i = 0; i < outputs; ++i) factors_[size_t(i)] = float(double(from[i * step]) * input_scale);
    of_.input_zero = int32_t(input_zero_point);
    of_.factors = factors_.data();
    of_.bias = bias_.defined() ? bias_.data<float>() : nullptr;
    of_.relu = relu;
    if (output_scale) of_.stored = {float(*output_scale), int32_t(output_zero_point)};
  }
  const onednn::Scaling& operator*() const { return of_; }

 private:
  Tensor bias_;
  std::vector<float> factors_;
  onednn::Scaling of_;
};

/// Fills `result` by `compute(place)`, where `place` is `result` itself or room of the same sizes that is copied.
template <class Compute>
bool filled(const Tensor& result, bool direct, const Shape& strides, const Compute& compute) {
  const Tensor place = direct ? result : empty_strided(result.sizes(), strides, result.dtype());
  if (!compute(place)) return false;
  if (!direct) ops::copy_(result, place);
  return true;
}

/// result (M, N) of rows by `weight`, row-major (K, N), or (N, K) where `turned`.
bool by_rows(const Tensor& result, const Tensor& rows, onednn::Weights& weight, bool turned,
             const onednn::Scaling& scaling) {
  const int64_t k = rows.size(-1), m = k ? rows.numel() / k : 0, n = result.size(-1);
  if (!onednn::has_int8() || !m || !n || !k) return false;
  const Tensor x = row_major(rows);
  const bool made = filled(result, result.contiguous(), contiguous_strides(result.sizes()), [&](const Tensor& place) {
    const Unlocked unlocked(m * n * k > kUnlockWork);
    return onednn::matmul_int8(m, n, k, x.dtype(), x.bytes(), weight, turned, scaling, place.dtype(), place.bytes());
  });
  if (made) weight.keep();
  return made;
}

void int8_mm_kernel(const Tensor& result, const Tensor& self, const Tensor& mat2) {
  // The transposed weight of a layer is read as it lies.
  const bool turned = !mat2.contiguous() && mat2.stride(0) == 1 && mat2.stride(1) == mat2.size(0);
  onednn::Weights weight(mat2, true, turned);
  if (!by_rows(result, self, weight, turned, {})) ops::copy_(result, decompose::int8_mm(self, mat2));
}

void quantized_linear_kernel(const Tensor& result, const Tensor& input, const Tensor& weight, const Tensor& bias,
                             const Tensor& weight_scales, double input_scale, int64_t input_zero_point, bool relu,
                             std::optional<double> output_scale, int64_t output_zero_point) {
  const LayerScaling scaling(weight.size(0), bias, weight_scales, input_scale, input_zero_point, relu, output_scale,
                             output_zero_point);
  onednn::Weights w(weight, true);
  if (by_rows(result, input, w, true, *scaling)) return;
  ops::copy_(result, decompose::quantized_linear(input, weight, bias, weight_scales, input_scale, input_zero_point,
                                                 relu, output_scale, output_zero_point));
}

bool fast_conv(const Tensor& result, const ConvPlan& s, const Tensor& input, const Tensor& weight,
               const onednn::Scaling& scaling) {
  if (!onednn::has_int8() || !result.numel() || !s.c) return false;
  const Tensor x = cpu::channels_last(infer::batched(input, 2), input.dtype()), to = infer::batched(result, 2);
  onednn::Weights w(weight, true);
  const bool made = filled(to, to.channels_last(), channels_last_strides(to.sizes()), [&](const Tensor& place) {
    const Unlocked unlocked(s.work() > kUnlockWork);
    return onednn::conv_int8(s, x.dtype(), x.bytes(), w, scaling, place.dtype(), place.bytes());
  });
  if (made) w.keep();
  return made;
}

void quantized_conv2d_kernel(const Tensor& result, const Tensor& input, const Tensor& weight, const Tensor& bias,
                             const Tensor& weight_scales, double input_scale, int64_t input_zero_point, IntSpan stride,
                             IntSpan padding, IntSpan dilation, int64_t groups, bool relu,
                             std::optional<double> output_scale, int64_t output_zero_point) {
  const ConvPlan s = infer::conv_plan(input, weight, stride, padding, dilation, groups);
  const LayerScaling scaling(s.o, bias, weight_scales, input_scale, input_zero_point, relu, output_scale,
                             output_zero_point);
  if (fast_conv(result, s, input, weight, *scaling)) return;
  ops::copy_(result,
             decompose::quantized_conv2d(input, weight, bias, weight_scales, input_scale, input_zero_point, stride,
                                         padding, dilation, groups, relu, output_scale, output_zero_point));
}

// --- Codes and numbers, some thousands at a time, which stay in the cache

constexpr int64_t kAtOnce = 4096, kUnlockCount = 1 << 16;

/// Calls `body(from, count, to)` for pieces of `self` and of a result that lies as it does.
template <class From, class To, class Body>
void in_pieces(const Tensor& result, const Tensor& self, const Body& body) {
  const bool alike = self.dense() && std::ranges::equal(self.strides(), result.strides());
  const Tensor x = alike ? self : row_major(self);
  const cpu::Target target(result);
  const Tensor& to = alike ? result : target.tensor();
  const auto* const from = reinterpret_cast<const From*>(x.bytes());
  auto* const place = reinterpret_cast<To*>(to.bytes());
  {
    const Unlocked unlocked(x.numel() > kUnlockCount);
    parallel_for(x.numel(), kUnlockCount, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i += kAtOnce) body(from + i, std::min(kAtOnce, end - i), place + i);
    });
  }
  if (!alike) target.finish();
}

void dequantize_codes_kernel(const Tensor& result, const Tensor& self, double scale, int64_t zero_point) {
  in_pieces<char, float>(result, self, [&](const char* from, int64_t n, float* to) {
    cpu::convert_row(self.dtype(), from, n, DType::Float32, to);
    if (zero_point) apply_line(SharedLine::add, to, n, -float(zero_point));
    apply_line(SharedLine::mul, to, n, float(scale));
  });
}

void quantize_codes_kernel(const Tensor& result, const Tensor& self, double scale, int64_t zero_point, int64_t least,
                           int64_t largest, DType dtype) {
  // Adding it leaves no digits behind the point of numbers this small: it rounds to the nearest, halves to even ones.
  constexpr float kWhole = 3 << 22;
  in_pieces<float, char>(result, self, [&](const float* from, int64_t n, char* to) {
    float row[kAtOnce];
    std::copy_n(from, n, row);
    apply_line(SharedLine::mul, row, n, float(1 / scale));
    apply_line(SharedLine::maximum, row, n, float(least - zero_point));
    apply_line(SharedLine::minimum, row, n, float(largest - zero_point));
    apply_line(SharedLine::add, row, n, kWhole);
    apply_line(SharedLine::add, row, n, float(zero_point) - kWhole);
    cpu::convert_row(DType::Float32, row, n, dtype, to);
  });
}

const bool registered = [] {
  kernel<op::dequantize_codes>(kCPU, dequantize_codes_kernel);
  kernel<op::quantize_codes>(kCPU, quantize_codes_kernel);
  kernel<op::int8_mm>(kCPU, int8_mm_kernel);
  kernel<op::quantized_conv2d>(kCPU, quantized_conv2d_kernel);
  kernel<op::quantized_linear>(kCPU, quantized_linear_kernel);
  return true;
}();

}  // namespace
}  // namespace taeda
