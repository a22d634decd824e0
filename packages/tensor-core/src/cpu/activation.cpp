// CPU kernels of the activation family; those of plain lines follow from scalar/activation.inc.
#include "taeda/ops/activation.h"

#include <algorithm>
#include <memory>

#include "cpu/arith.h"
#include "cpu/converted.h"
#include "cpu/loops/layers.h"
#include "cpu/loops/softmax.h"
#include "cpu/prepare.h"
#include "infer/dims.h"
#include "taeda/ops/arith.h"
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
void threshold_backward(const Tensor& out, const Tensor& grad, const Tensor& self, const Scalar& at) {
  const DType dtype = operands_dtype(grad, self);
  const LoopParams p{at};
  if (is_floating(dtype))
    return run_line(row(Activation::threshold_backward), "threshold_backward", dtype, out, grad, self, &p);
  ops::copy_(out, ops::where(ops::gt(self, Tensor(at)), grad, ops::zeros_like(grad)));
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

/// With `dim` last and contiguous; `self` itself where it is so already.
Tensor as_rows(const Tensor& t, int64_t dim) {
  const Tensor moved = dim == t.dim() - 1 ? t : ops::movedim(t, Shape{dim}, Shape{-1});
  if (moved.contiguous()) return moved;
  const Tensor copy = empty(moved.sizes(), t.dtype());
  copy_elements(copy, moved);
  return copy;
}

/// Some columns of a matrix (n, width) in T, the first element of which is `first`: where they are, or, converted, in
/// rows of `columns` in `room`.
template <class T>
char* column_tile(const Tensor& of, int64_t first, int64_t n, int64_t width, int64_t columns, bool read,
                  Room<T>& room) {
  const int64_t item = of.item_bytes();
  if (of.dtype() == dtype_of<T>) return of.bytes() + first * item;
  T* const tile = room.get(n * columns);
  const bool together = columns == width;
  for (int64_t i = 0; read && i < (together ? 1 : n); ++i)
    convert_row(of.dtype(), of.bytes() + (first + i * width) * item, together ? n * width : columns, dtype_of<T>,
                tile + i * columns);
  return reinterpret_cast<char*>(tile);
}

/// Along a dimension that is not the last, without transposing; false where the layouts do not allow it.
bool by_columns(RowCode code, const Tensor& out, const Tensor& in, const Tensor* output, int64_t axis) {
  const auto fits = [&](const Tensor& t) { return t.contiguous() && t.dtype() == out.dtype(); };
  if (axis >= out.dim() - 1 || !fits(out) || !fits(in) || (output && !fits(*output))) return false;
  const int64_t n = out.size(axis), width = product(out.sizes().subspan(size_t(axis) + 1)), item = out.item_bytes();
  if (width < 8) return false;
  const int64_t tiles = (width + kColumns - 1) / kColumns, outer = out.numel() / (n * width);
  const auto run = [&]<class T>() {
    const ColumnFn fn = table().column_fns[code][sizeof(T) == 8];
    const bool converted = out.dtype() != dtype_of<T>;
    parallel_for(outer * tiles, std::max<int64_t>(1, 8192 / (n * std::min(width, kColumns))),
                 [&](int64_t begin, int64_t end) {
                   Room<T> scratch, to, from, saved;
                   for (int64_t p = begin; p < end; ++p) {
                     const int64_t column = p % tiles * kColumns, first = p / tiles * n * width + column,
                                   columns = std::min(kColumns, width - column);
                     const auto tile = [&](const Tensor& of, bool read, Room<T>& room) {
                       return column_tile<T>(of, first, n, width, columns, read, room);
                     };
                     fn(tile(out, false, to), tile(in, true, from), output ? tile(*output, true, saved) : nullptr, n,
                        converted ? columns : width, columns, scratch.get(n * columns));
                     const bool together = columns == width;
                     for (int64_t i = 0; converted && i < (together ? 1 : n); ++i)
                       convert_row(dtype_of<T>, to.get(0) + i * columns, together ? n * width : columns, out.dtype(),
                                   out.bytes() + (first + i * width) * item);
                   }
                 });
  };
  const Unlocked unlocked(out.numel() > 8192);
  visit_float(compute_dtype(out.dtype()), run);
  return true;
}

void by_rows(RowCode code, const Tensor& out, const Tensor& in, const Tensor* output, int64_t dim) {
  if (out.numel() == 0) return;
  const int64_t axis = out.dim() ? infer::axis_of(dim, out.dim()) : 0;
  const int64_t n = out.dim() ? out.size(axis) : 1, rows = out.numel() / n;
  const bool last = axis == out.dim() - 1 || out.dim() == 0;
  // What lies in neither order is brought into the one of the result.
  const auto plain = [&](const Tensor& t) {
    return t.contiguous() || ops::movedim(t, Shape{axis}, Shape{-1}).contiguous() ? t : as_rows(t, out.dim() - 1);
  };
  if (!last && out.contiguous()) {
    const Tensor saved = output ? plain(*output) : Tensor();
    if (by_columns(code, out, plain(in), output ? &saved : nullptr, axis)) return;
  }
  const int64_t along = out.dim() ? axis : -1;
  const Tensor source = as_rows(in, along), saved = output ? as_rows(*output, along) : Tensor();
  const bool direct = last && out.contiguous();
  const Tensor target = direct ? out : empty(source.sizes(), out.dtype());
  const auto run = [&]<class T>() {
    const RowFn fn = table().row_fns[code][sizeof(T) == 8];
    const bool converted = out.dtype() != dtype_of<T> || source.dtype() != dtype_of<T>;
    parallel_for(rows, std::max<int64_t>(1, 8192 / n), [&](int64_t begin, int64_t end) {
      Reader<T> reader(source), outputs(output ? saved : source);
      Writer<T> writer(target);
      in_row_runs(begin, end, n, converted, [&](int64_t first, int64_t count) {
        const int64_t at = first * n, all = count * n;
        fn(writer.at(at, all), reader.at(at, all), output ? outputs.at(at, all) : nullptr, count, n);
        writer.done();
      });
    });
  };
  {
    const Unlocked unlocked(out.numel() > 8192);
    visit_float(compute_dtype(out.dtype()), run);
  }
  if (!direct) copy_elements(out, last ? target : ops::movedim(target, Shape{-1}, Shape{axis}));
}
template <RowCode Code>
void softmax(const Tensor& out, const Tensor& self, int64_t dim, std::optional<DType>) {
  by_rows(Code, out, self, nullptr, dim);
}
template <RowCode Code>
void softmax_gradient(const Tensor& out, const Tensor& grad, const Tensor& output, int64_t dim) {
  by_rows(Code, out, grad, &output, dim);
}

/// Whether `half` lies as `whole` does, without gaps, except that it is half as long along `axis`.
bool lies_as_half_of(const Tensor& half, const Tensor& whole, int64_t axis) {
  if (!half.dense() || !whole.dense()) return false;
  const int64_t inner = whole.stride(axis);
  for (int64_t d = 0; d < whole.dim(); ++d)
    if (half.size(d) > 1 && half.stride(d) * (whole.stride(d) > inner ? 2 : 1) != whole.stride(d)) return false;
  return true;
}
/// Calls what `body()` gives, for one thread, with (at, from, line, n) for pieces of n elements that lie together: of a
/// half tensor from element `at` on, of the first halves in `whole` from `from` on, of the second ones `line` further.
template <class Body>
void by_halves(const Tensor& whole, int64_t axis, const Body& body) {
  const int64_t line = whole.size(axis) / 2 * whole.stride(axis), lines = whole.numel() / (2 * line),
                pieces = (line + kConverted - 1) / kConverted;
  const Unlocked unlocked(whole.numel() > 8192);
  parallel_for(lines * pieces, std::max<int64_t>(1, 8192 / std::min(line, kConverted)),
               [&](int64_t begin, int64_t end) {
                 auto piece = body();
                 for (int64_t p = begin; p < end; ++p) {
                   const int64_t at = p / pieces * line, from = p % pieces * kConverted;
                   piece(at + from, 2 * at + from, line, std::min(kConverted, line - from));
                 }
               });
}
void glu(const Tensor& out, const Tensor& self, int64_t dim) {
  if (out.numel() == 0) return;
  const int64_t axis = infer::axis_of(dim, self.dim()), half = self.size(axis) / 2;
  if (is_complex(out.dtype())) {
    ops::copy_(out, ops::mul(ops::narrow(self, axis, 0, half), ops::sigmoid(ops::narrow(self, axis, half, half))));
    return;
  }
  const bool fits = lies_as_half_of(out, self, axis);
  const Tensor whole = fits ? self : row_major(self),
               to = fits || out.contiguous() ? out : empty(out.sizes(), out.dtype());
  visit_float(compute_dtype(out.dtype()), [&]<class T>() {
    by_halves(whole, axis, [&] {
      return [values = Reader<T>(whole), gates = Reader<T>(whole), results = Writer<T>(to)](
                 int64_t at, int64_t from, int64_t line, int64_t n) mutable {
        loops::layers<T>().gated(values.at(from, n), gates.at(from + line, n), n, results.at(at, n));
        results.done();
      };
    });
  });
  if (!to.same(out)) ops::copy_(out, to);
}
void glu_backward(const Tensor& out, const Tensor& grad, const Tensor& self, int64_t dim) {
  if (out.numel() == 0) return;
  const int64_t axis = infer::axis_of(dim, self.dim()), half = self.size(axis) / 2;
  if (is_complex(out.dtype())) {
    const Tensor value = ops::conj(ops::narrow(self, axis, 0, half)),
                 gate = ops::conj(ops::narrow(self, axis, half, half)), passed = ops::mul(grad, ops::sigmoid(gate));
    ops::copy_(ops::narrow(out, axis, 0, half), passed);
    ops::copy_(ops::narrow(out, axis, half, half), ops::mul(ops::mul(passed, value), ops::sigmoid(ops::neg(gate))));
    return;
  }
  const bool fits = lies_as_half_of(grad, self, axis) && std::ranges::equal(out.strides(), self.strides());
  const Tensor up = fits ? grad : row_major(grad), whole = fits ? self : row_major(self),
               to = fits || out.contiguous() ? out : empty(out.sizes(), out.dtype());
  visit_float(compute_dtype(out.dtype()), [&]<class T>() {
    by_halves(whole, axis, [&] {
      return [grads = Reader<T>(up), values = Reader<T>(whole), gates = Reader<T>(whole), to_values = Writer<T>(to),
              to_gates = Writer<T>(to)](int64_t at, int64_t from, int64_t line, int64_t n) mutable {
        loops::layers<T>().gated_backward(grads.at(at, n), values.at(from, n), gates.at(from + line, n), n,
                                          to_values.at(from, n), to_gates.at(from + line, n));
        to_values.done();
        to_gates.done();
      };
    });
  });
  if (!to.same(out)) ops::copy_(out, to);
}

void native_dropout(const Tensor& out, const Tensor& mask, const Tensor& self, double p, const Generator& generator) {
  ops::bernoulli_(mask, 1 - p, generator);
  dropout_backward(out, self, mask, p < 1 ? 1 / (1 - p) : 0);
}

const bool registered = [] {
#include "cpu/register_lines.h"
  kernel<op::gelu>(kCPU, gelu);
  kernel<op::gelu_backward>(kCPU, gelu_backward);
  kernel<op::glu>(kCPU, glu);
  kernel<op::glu_backward>(kCPU, glu_backward);
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
  kernel<op::threshold_backward>(kCPU, threshold_backward);
  return true;
}();

}  // namespace
}  // namespace taeda::cpu
