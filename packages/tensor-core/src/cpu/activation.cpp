// CPU kernels of the activation family; those of plain lines follow from scalar/activation.inc.
#include "taeda/ops/activation.h"

#include <memory>

#include "cpu/arith.h"
#include "cpu/loops/softmax.h"
#include "infer/dims.h"
#include "taeda/ops/cast.h"
#include "taeda/ops/compare.h"
#include "taeda/ops/creation.h"
#include "taeda/ops/random.h"
#include "taeda/ops/shape.h"
#include "taeda/ops/unary.h"
#include "taeda/parallel.h"

#define TAEDA_FAMILY Activation
#define TAEDA_LINES "scalar/activation.inc"
#define TAEDA_ROWS activation_rows
#include "cpu/family.h"

namespace taeda::cpu {
namespace {

const SoftmaxTable& table() {
  static const SoftmaxTable& picked = softmax_table();
  return picked;
}

Activation gelu_line(std::string_view approximate) {
  return approximate == "none" ? Activation::gelu : Activation::gelu_tanh;
}
void gelu(const Tensor& out, const Tensor& self, std::string_view approximate) {
  run_line(row(gelu_line(approximate)), "gelu", compute_dtype(self.dtype()), out, self);
}
void gelu_backward(const Tensor& out, const Tensor& grad, const Tensor& self, std::string_view approximate) {
  const auto line =
      gelu_line(approximate) == Activation::gelu ? Activation::gelu_backward : Activation::gelu_tanh_backward;
  run_line(row(line), "gelu_backward", operands_dtype(grad, self), out, grad, self);
}
void threshold(const Tensor& out, const Tensor& self, const Scalar& at, const Scalar& value) {
  const LoopParams p{at, value};
  if (is_floating(self.dtype()))
    return run_line(row(Activation::threshold), "threshold", compute_dtype(self.dtype()), out, self, &p);
  // No loop of its own for integers; a fraction loses what lies behind the point, as everywhere in place.
  ops::copy_(out, ops::where(ops::gt(self, Tensor(at)), self, ops::full_like(self, value)));
}
/// A slope that is a function of the output `y`; where `y` is complex, the conjugate of it.
template <class Op, Activation Line>
void gradient_of_output(const Tensor& out, const Tensor& grad, const Tensor& y) {
  run_line(row(Line), Op::entry.name, operands_dtype(grad, y), out, grad, is_complex(y.dtype()) ? ops::conj(y) : y);
}
void dropout_backward(const Tensor& out, const Tensor& grad, const Tensor& mask, double scale) {
  const LoopParams p{Scalar(scale)};
  const DType d = compute_dtype(out.dtype());
  if (is_complex(d)) {
    run_line(row(SharedLine::mul), "native_dropout_backward", d, out, grad, mask);
    return run_line(row(SharedLine::mul), "native_dropout_backward", d, out, out, Tensor(Scalar(scale)));
  }
  run_line(row(Activation::dropout_backward), "native_dropout_backward", d, out, grad, mask, &p);
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
      fn(out.bytes() + at, in.bytes() + at, output ? output->bytes() + at : nullptr, n, columns,
         std::min(kColumns, columns - column), scratch.get());
    }
  });
  return true;
}

void by_rows(RowCode code, const Tensor& out, const Tensor& in, const Tensor* output, int64_t dim) {
  if (out.numel() == 0) return;
  const DType d = compute_dtype(out.dtype());
  const int64_t axis = out.dim() ? infer::axis_of(dim, out.dim()) : 0;
  const int64_t n = out.dim() ? out.size(axis) : 1, rows = out.numel() / n;
  const bool last = axis == out.dim() - 1 || out.dim() == 0;
  if (!last && by_columns(code, out, in.dense() ? in : as_rows(in, out.dim() - 1, in.dtype()), output, axis)) return;
  const Tensor source = out.dim() ? as_rows(in, axis, d) : as_rows(in, -1, d);
  const Tensor saved = output ? (out.dim() ? as_rows(*output, axis, d) : as_rows(*output, -1, d)) : Tensor();
  const bool direct = last && out.contiguous() && out.dtype() == d;
  const Tensor target = direct ? out : empty(source.sizes(), d);
  const RowFn fn = table().row_fns[code][d == DType::Float64];
  {
    const Unlocked unlocked(out.numel() > 8192);
    const int64_t step = n * item_size(d);
    parallel_for(rows, std::max<int64_t>(1, 8192 / n), [&](int64_t begin, int64_t end) {
      fn(target.bytes() + begin * step, source.bytes() + begin * step, output ? saved.bytes() + begin * step : nullptr,
         end - begin, n);
    });
  }
  if (!direct) copy_elements(out, last ? target : ops::transpose(target, axis, -1));
}
template <RowCode Code>
void softmax(const Tensor& out, const Tensor& self, int64_t dim, std::optional<DType>) {
  by_rows(Code, out, self, nullptr, dim);
}
template <RowCode Code>
void softmax_gradient(const Tensor& out, const Tensor& grad, const Tensor& output, int64_t dim) {
  by_rows(Code, out, grad, &output, dim);
}

void native_dropout(const Tensor& out, const Tensor& mask, const Tensor& self, double p, const Generator& generator) {
  ops::bernoulli_(mask, 1 - p, generator);
  dropout_backward(out, self, mask, p < 1 ? 1 / (1 - p) : 0);
}

const bool registered = [] {
#include "cpu/register_lines.h"
  kernel<op::gelu>(kCPU, gelu);
  kernel<op::gelu_backward>(kCPU, gelu_backward);
  line_kernel<op::hardtanh, SharedLine::clamp, Operands::Given>();
  kernel<op::log_softmax>(kCPU, softmax<kLogSoftmax>);
  kernel<op::log_softmax_backward>(kCPU, softmax_gradient<kLogSoftmaxBackward>);
  kernel<op::native_dropout>(kCPU, native_dropout);
  kernel<op::native_dropout_backward>(kCPU, dropout_backward);
  kernel<op::sigmoid_backward>(kCPU, gradient_of_output<op::sigmoid_backward, Activation::sigmoid_backward>);
  kernel<op::softmax>(kCPU, softmax<kSoftmax>);
  kernel<op::softmax_backward>(kCPU, softmax_gradient<kSoftmaxBackward>);
  kernel<op::tanh_backward>(kCPU, gradient_of_output<op::tanh_backward, Activation::tanh_backward>);
  kernel<op::threshold>(kCPU, threshold);
  return true;
}();

}  // namespace
}  // namespace taeda::cpu
