// CPU kernels of the activation family.
#include "taeda/ops/activation.h"

#include <memory>

#include "cpu/kernel.h"
#include "taeda/ops/cast.h"
#include "taeda/ops/compare.h"
#include "taeda/ops/creation.h"
#include "taeda/ops/random.h"
#include "taeda/ops/shape.h"
#include "taeda/ops/unary.h"
#include "taeda/parallel.h"

namespace taeda::cpu {
namespace {

const ActivationTable& table() {
  static const ActivationTable& picked = TAEDA_PICK(activation);
  return picked;
}
const LoopRow& row(Activation code) { return table().rows[code]; }
using cpu::row;

template <class Code>
void run1(Code code, const char* op, const Tensor& out, const Tensor& self, const LoopParams* p = nullptr) {
  const DType d = compute_dtype(self.dtype());
  run_unary(need(row(code), d, op), out, d, self, d, p);
}
template <class Code>
void run2(Code code, const char* op, const Tensor& out, const Tensor& grad, const Tensor& x, const LoopParams* p = nullptr) {
  const DType d = operands_dtype(grad, x);
  run_binary(need(row(code), d, op), out, d, grad, x, d, p);
}

void leaky_relu(const Tensor& out, const Tensor& self, const Scalar& slope) {
  const LoopParams p{slope};
  run1(kLeakyRelu, "leaky_relu", out, self, &p);
}
void elu(const Tensor& out, const Tensor& self, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale) {
  const LoopParams p{alpha, scale, input_scale};
  run1(kElu, "elu", out, self, &p);
}
Unary gelu_code(std::string_view approximate) { return approximate == "none" ? kGelu : kGeluTanh; }
void gelu(const Tensor& out, const Tensor& self, std::string_view approximate) { run1(gelu_code(approximate), "gelu", out, self); }
void gelu_backward(const Tensor& out, const Tensor& grad, const Tensor& self, std::string_view approximate) {
  run2(gelu_code(approximate) == kGelu ? kGeluBackward : kGeluTanhBackward, "gelu_backward", out, grad, self);
}
// `Op` names the operator in messages.
template <class Op, auto Code>
void plain(const Tensor& out, const Tensor& self) { run1(Code, Op::entry.name, out, self); }
template <class Op, auto Code>
void one_number(const Tensor& out, const Tensor& self, const Scalar& a) {
  const LoopParams p{a};
  run1(Code, Op::entry.name, out, self, &p);
}
template <class Op, auto Code>
void two_numbers(const Tensor& out, const Tensor& self, const Scalar& a, const Scalar& b) {
  const LoopParams p{a, b};
  run1(Code, Op::entry.name, out, self, &p);
}
void threshold(const Tensor& out, const Tensor& self, const Scalar& at, const Scalar& value) {
  if (is_floating(self.dtype())) return two_numbers<op::threshold, kThreshold>(out, self, at, value);
  // No loop of its own for integers; a fraction loses what lies behind the point, as everywhere in place.
  ops::copy_(out, ops::where(ops::gt(self, Tensor(at)), self, ops::full_like(self, value)));
}
void hardtanh(const Tensor& out, const Tensor& self, const Scalar& low, const Scalar& high) {
  const LoopParams p{low, high};
  run1(kClamp, "hardtanh", out, self, &p);
}

template <class Op, auto Code>
void gradient(const Tensor& out, const Tensor& grad, const Tensor& x) { run2(Code, Op::entry.name, out, grad, x); }
/// A slope that is a function of the output `y`; where `y` is complex, the conjugate of it.
template <class Op, auto Code>
void gradient_of_output(const Tensor& out, const Tensor& grad, const Tensor& y) {
  run2(Code, Op::entry.name, out, grad, is_complex(y.dtype()) ? ops::conj(y) : y);
}
template <class Op, auto Code>
void gradient1(const Tensor& out, const Tensor& grad, const Tensor& x, const Scalar& a) {
  const LoopParams p{a};
  run2(Code, Op::entry.name, out, grad, x, &p);
}
template <class Op, auto Code>
void gradient2(const Tensor& out, const Tensor& grad, const Tensor& x, const Scalar& a, const Scalar& b) {
  const LoopParams p{a, b};
  run2(Code, Op::entry.name, out, grad, x, &p);
}
void elu_backward(const Tensor& out, const Tensor& grad, const Tensor& x, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale) {
  const LoopParams p{alpha, scale, input_scale};
  run2(kEluBackward, "elu_backward", out, grad, x, &p);
}
void dropout_backward(const Tensor& out, const Tensor& grad, const Tensor& mask, double scale) {
  const LoopParams p{Scalar(scale)};
  const DType d = compute_dtype(grad.dtype());
  if (is_complex(d)) {
    const Tensor kept = ops::cast(mask, d);
    run_binary(cpu::row(kMul).fn[int(d)], out, d, grad, kept, d);
    return run_binary(cpu::row(kMul).fn[int(d)], out, d, out, Tensor(Scalar(scale)), d);
  }
  run_binary(need(row(kDropoutBackward), d, "native_dropout_backward"), out, d, grad, mask, d, &p);
}

/// With `dim` last and contiguous in the compute dtype; `self` itself where it is so already.
Tensor as_rows(const Tensor& t, int64_t dim, DType d) {
  const Tensor moved = dim == t.dim() - 1 ? t : ops::transpose(t, dim, -1);
  if (moved.contiguous() && moved.dtype() == d) return moved;
  const Tensor copy = empty(moved.sizes(), d);
  copy_elements(copy, moved);
  return copy;
}

/// Along a dimension that is not the last, without transposing; false where the layouts do not allow it.
bool by_columns(RowCode code, const Tensor& out, const Tensor& in, const Tensor* output, int64_t axis) {
  const DType d = out.dtype();
  const auto fits = [d](const Tensor& t) { return t.contiguous() && t.dtype() == d && compute_dtype(d) == d; };
  if (axis >= out.dim() - 1 || !fits(out) || !fits(in) || (output && !fits(*output))) return false;
  const int64_t n = out.size(axis), columns = product(out.sizes().subspan(size_t(axis) + 1)), item = out.item_bytes();
  if (columns < 8) return false;
  const int64_t tiles = (columns + kColumns - 1) / kColumns, outer = out.numel() / (n * columns);
  const ColumnFn fn = table().column_fns[code][d == DType::Float64];
  const Unlocked unlocked(out.numel() > 8192);
  parallel_for(outer * tiles, std::max<int64_t>(1, 8192 / (n * kColumns)), [&](int64_t begin, int64_t end) {
    const auto scratch = std::make_unique_for_overwrite<char[]>(size_t(n * kColumns * item));
    for (int64_t p = begin; p < end; ++p) {
      const int64_t column = p % tiles * kColumns, at = (p / tiles * n * columns + column) * item;
      fn(out.bytes() + at, in.bytes() + at, output ? output->bytes() + at : nullptr, n, columns, std::min(kColumns, columns - column),
         scratch.get());
    }
  });
  return true;
}

void by_rows(RowCode code, const Tensor& out, const Tensor& in, const Tensor* output, int64_t dim) {
  if (out.numel() == 0) return;
  const DType d = compute_dtype(out.dtype());
  const int64_t axis = out.dim() ? wrap_dim(dim, out.dim(), "softmax") : 0;
  const int64_t n = out.dim() ? out.size(axis) : 1, rows = out.numel() / n;
  const bool last = axis == out.dim() - 1 || out.dim() == 0;
  if (!last && by_columns(code, out, in, output, axis)) return;
  const Tensor source = out.dim() ? as_rows(in, axis, d) : as_rows(in, -1, d);
  const Tensor saved = output ? (out.dim() ? as_rows(*output, axis, d) : as_rows(*output, -1, d)) : Tensor();
  const bool direct = last && out.contiguous() && out.dtype() == d;
  const Tensor target = direct ? out : empty(source.sizes(), d);
  const RowFn fn = table().row_fns[code][d == DType::Float64];
  {
    const Unlocked unlocked(out.numel() > 8192);
    const int64_t step = n * item_size(d);
    parallel_for(rows, std::max<int64_t>(1, 8192 / n), [&](int64_t begin, int64_t end) {
      fn(target.bytes() + begin * step, source.bytes() + begin * step, output ? saved.bytes() + begin * step : nullptr, end - begin, n);
    });
  }
  if (!direct) copy_elements(out, last ? target : ops::transpose(target, axis, -1));
}
template <RowCode Code>
void softmax(const Tensor& out, const Tensor& self, int64_t dim, std::optional<DType>) { by_rows(Code, out, self, nullptr, dim); }
template <RowCode Code>
void softmax_gradient(const Tensor& out, const Tensor& grad, const Tensor& output, int64_t dim) { by_rows(Code, out, grad, &output, dim); }

void native_dropout(const Tensor& out, const Tensor& mask, const Tensor& self, double p, const Generator& generator) {
  ops::bernoulli_(mask, 1 - p, generator);
  dropout_backward(out, self, mask, p < 1 ? 1 / (1 - p) : 0);
}

const bool registered = [] {
  kernel<op::elu>(kCPU, elu);
  kernel<op::elu_backward>(kCPU, elu_backward);
  kernel<op::gelu>(kCPU, gelu);
  kernel<op::gelu_backward>(kCPU, gelu_backward);
  kernel<op::hardshrink>(kCPU, one_number<op::hardshrink, kHardshrink>);
  kernel<op::hardsigmoid>(kCPU, plain<op::hardsigmoid, kHardsigmoid>);
  kernel<op::hardsigmoid_backward>(kCPU, gradient<op::hardsigmoid_backward, kHardsigmoidBackward>);
  kernel<op::hardswish>(kCPU, plain<op::hardswish, kHardswish>);
  kernel<op::hardswish_backward>(kCPU, gradient<op::hardswish_backward, kHardswishBackward>);
  kernel<op::hardtanh>(kCPU, hardtanh);
  kernel<op::hardtanh_backward>(kCPU, gradient2<op::hardtanh_backward, kHardtanhBackward>);
  kernel<op::leaky_relu>(kCPU, leaky_relu);
  kernel<op::leaky_relu_backward>(kCPU, gradient1<op::leaky_relu_backward, kLeakyReluBackward>);
  kernel<op::log_softmax>(kCPU, softmax<kLogSoftmax>);
  kernel<op::log_softmax_backward>(kCPU, softmax_gradient<kLogSoftmaxBackward>);
  kernel<op::logsigmoid>(kCPU, plain<op::logsigmoid, kLogsigmoid>);
  kernel<op::logsigmoid_backward>(kCPU, gradient<op::logsigmoid_backward, kLogsigmoidBackward>);
  kernel<op::mish>(kCPU, plain<op::mish, kMish>);
  kernel<op::mish_backward>(kCPU, gradient<op::mish_backward, kMishBackward>);
  kernel<op::native_dropout>(kCPU, native_dropout);
  kernel<op::native_dropout_backward>(kCPU, dropout_backward);
  kernel<op::relu>(kCPU, plain<op::relu, kRelu>);
  kernel<op::shrink_backward>(kCPU, gradient1<op::shrink_backward, kShrinkBackward>);
  kernel<op::sigmoid_backward>(kCPU, gradient_of_output<op::sigmoid_backward, kSigmoidBackward>);
  kernel<op::silu>(kCPU, plain<op::silu, kSilu>);
  kernel<op::silu_backward>(kCPU, gradient<op::silu_backward, kSiluBackward>);
  kernel<op::softmax>(kCPU, softmax<kSoftmax>);
  kernel<op::softmax_backward>(kCPU, softmax_gradient<kSoftmaxBackward>);
  kernel<op::softplus>(kCPU, two_numbers<op::softplus, kSoftplus>);
  kernel<op::softplus_backward>(kCPU, gradient2<op::softplus_backward, kSoftplusBackward>);
  kernel<op::softshrink>(kCPU, one_number<op::softshrink, kSoftshrink>);
  kernel<op::tanh_backward>(kCPU, gradient_of_output<op::tanh_backward, kTanhBackward>);
  kernel<op::threshold>(kCPU, threshold);
  kernel<op::threshold_backward>(kCPU, gradient1<op::threshold_backward, kThresholdBackward>);
  return true;
}();

}  // namespace
}  // namespace taeda::cpu
