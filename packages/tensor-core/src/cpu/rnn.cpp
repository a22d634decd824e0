// CPU kernels of the rnn family: gates in one pass, whole LSTM layers with their matrix products.
#include "taeda/ops/rnn.h"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <vector>

#include "cpu/blas.h"
#include "cpu/column_sums.h"
#include "cpu/dense_rows.h"
#include "cpu/loops/layers.h"
#include "cpu/prepare.h"
#include "taeda/elementwise.h"
#include "taeda/interrupt.h"
#include "taeda/parallel.h"

namespace taeda {
namespace {

using cpu::row_major;
using cpu::Target;
using cpu::visit_float;
using loops::layers;

int64_t row_grain(int64_t hidden) { return std::max<int64_t>(1, 4096 / std::max<int64_t>(1, hidden)); }

/// An optional gradient, zeros when absent.
Tensor or_zeros(const Tensor& t, IntSpan sizes, DType dtype) {
  if (t.defined()) return row_major(t, dtype);
  Tensor zeros = empty(sizes, dtype);
  std::fill_n(zeros.bytes(), zeros.numel() * zeros.item_bytes(), char(0));
  return zeros;
}

template <class T>
void lstm_step(const T* a, const T* b, const T* c, int64_t n, int64_t h, T* h_out, T* c_out, T* gates) {
  parallel_for(n, row_grain(h), [=](int64_t i, int64_t end) {
    layers<T>().lstm_gates(a + i * 4 * h, b + i * 4 * h, c + i * h, end - i, h, h_out + i * h, c_out + i * h,
                           gates + i * 4 * h);
  });
}
template <class T>
void lstm_step_backward(const T* grad_h, const T* grad_c, const T* gates, const T* c, const T* c_out, int64_t n,
                        int64_t h, T* grad_gates, T* grad_c_in) {
  parallel_for(n, row_grain(h), [=](int64_t i, int64_t end) {
    layers<T>().lstm_gates_backward(grad_h + i * h, grad_c + i * h, gates + i * 4 * h, c + i * h, c_out + i * h,
                                    end - i, h, grad_gates + i * 4 * h, grad_c_in + i * h);
  });
}

void lstm_gates_kernel(const Tensor& h_out, const Tensor& c_out, const Tensor& gates, const Tensor& input_gates,
                       const Tensor& hidden_gates, const Tensor& c) {
  const DType dtype = compute_dtype(c.dtype());
  const Tensor a = row_major(input_gates, dtype), b = row_major(hidden_gates, dtype), state = row_major(c, dtype);
  const Target to_h(h_out, dtype), to_c(c_out, dtype), to_gates(gates, dtype);
  visit_float(dtype, [&]<class T>() {
    const Unlocked unlocked(a.numel() > 32768);
    lstm_step(a.data<T>(), b.data<T>(), state.data<T>(), c.size(0), c.size(1), to_h.data<T>(), to_c.data<T>(),
              to_gates.data<T>());
  });
  to_h.finish();
  to_c.finish();
  to_gates.finish();
}
void lstm_gates_backward_kernel(const Tensor& grad_gates, const Tensor& grad_c_in, const Tensor& grad_h,
                                const Tensor& grad_c, const Tensor& gates, const Tensor& c, const Tensor& c_out) {
  const DType dtype = compute_dtype(c.dtype());
  const Tensor gh = or_zeros(grad_h, c.sizes(), dtype), gc = or_zeros(grad_c, c.sizes(), dtype),
               g = row_major(gates, dtype), before = row_major(c, dtype), after = row_major(c_out, dtype);
  const Target to_gates(grad_gates, dtype), to_c(grad_c_in, dtype);
  visit_float(dtype, [&]<class T>() {
    const Unlocked unlocked(g.numel() > 32768);
    lstm_step_backward(gh.data<T>(), gc.data<T>(), g.data<T>(), before.data<T>(), after.data<T>(), c.size(0), c.size(1),
                       to_gates.data<T>(), to_c.data<T>());
  });
  to_gates.finish();
  to_c.finish();
}

void gru_gates_kernel(const Tensor& h_out, const Tensor& gates, const Tensor& input_gates, const Tensor& hidden_gates,
                      const Tensor& h) {
  const DType dtype = compute_dtype(h.dtype());
  const Tensor a = row_major(input_gates, dtype), b = row_major(hidden_gates, dtype), state = row_major(h, dtype);
  const Target to_h(h_out, dtype), to_gates(gates, dtype);
  const int64_t n = h.size(0), hidden = h.size(1);
  visit_float(dtype, [&]<class T>() {
    const Unlocked unlocked(a.numel() > 32768);
    parallel_for(n, row_grain(hidden), [&](int64_t i, int64_t end) {
      layers<T>().gru_gates(a.data<T>() + i * 3 * hidden, b.data<T>() + i * 3 * hidden, state.data<T>() + i * hidden,
                            end - i, hidden, to_h.data<T>() + i * hidden, to_gates.data<T>() + i * 4 * hidden);
    });
  });
  to_h.finish();
  to_gates.finish();
}
void gru_gates_backward_kernel(const Tensor& grad_input_gates, const Tensor& grad_hidden_gates, const Tensor& grad_h,
                               const Tensor& grad, const Tensor& gates, const Tensor& h) {
  const DType dtype = compute_dtype(h.dtype());
  const Tensor up = row_major(grad, dtype), g = row_major(gates, dtype), state = row_major(h, dtype);
  const Target to_a(grad_input_gates, dtype), to_b(grad_hidden_gates, dtype), to_h(grad_h, dtype);
  const int64_t n = h.size(0), hidden = h.size(1);
  visit_float(dtype, [&]<class T>() {
    const Unlocked unlocked(g.numel() > 32768);
    parallel_for(n, row_grain(hidden), [&](int64_t i, int64_t end) {
      layers<T>().gru_gates_backward(up.data<T>() + i * hidden, g.data<T>() + i * 4 * hidden,
                                     state.data<T>() + i * hidden, end - i, hidden, to_a.data<T>() + i * 3 * hidden,
                                     to_b.data<T>() + i * 3 * hidden, to_h.data<T>() + i * hidden);
    });
  });
  to_a.finish();
  to_b.finish();
  to_h.finish();
}

// --- A whole layer in one direction
// -------------------------------------------------------------------------------------

/// Step t of `steps` in the order of time: the position it reads and writes.
int64_t at_step(int64_t t, int64_t steps, bool reverse) { return reverse ? steps - 1 - t : t; }

/// Products of the steps' states, (rows, k), by the same weights (k, n).
template <class T>
class Products {
 public:
  /// `given`: the weights of another dtype that `w` was made of; bfloat16 ones are multiplied as such where that is
  /// faster, and the states are rounded to it.
  Products(int64_t rows, int64_t n, int64_t k, blas::Operand<T> w, const Tensor& given, int64_t steps)
      : n_(n), k_(k), w_(w) {
    if constexpr (std::is_same_v<T, float>) {
      if (given.dtype() == DType::BFloat16 && given.contiguous() && blas::worth_bfloat16(rows, n, k)) {
        packed_short_.emplace(rows, n, k, blas::Operand<BFloat16>{given.data<BFloat16>(), w.ld, w.transposed});
        short_a_.resize(size_t(rows * k));
        return;
      }
      // Measured: laying out takes as long as a product by 16 rows, which it makes shorter by a seventh to a half.
      if (rows > (n * k > 1 << 16 ? 3 : 4) && rows <= 64 && steps >= 8 && n * k >= 1 << 16)
        packed_.emplace(rows, n, k, w);
    }
  }
  void operator()(int64_t rows, const T* a, T* c, const T* bias = nullptr) {
    if constexpr (std::is_same_v<T, float>) {
      if (packed_) return packed_->multiply(rows, a, k_, c, bias);
      if (packed_short_) {
        cpu::convert_row(DType::Float32, a, rows * k_, DType::BFloat16, short_a_.data());
        for (int64_t i = 0; bias && i < rows; ++i) std::copy_n(bias, n_, c + i * n_);
        return packed_short_->multiply(rows, short_a_.data(), k_, bias != nullptr, c);
      }
    }
    blas::gemm<T>(rows, n_, k_, T(1), {a, k_}, w_, T(0), c, n_, bias);
  }

 private:
  int64_t n_, k_;
  blas::Operand<T> w_;
  std::optional<blas::Packed> packed_;
  std::optional<blas::PackedBFloat16> packed_short_;
  std::vector<BFloat16> short_a_;
};

void lstm_sequence_kernel(const Tensor& output, const Tensor& h_out, const Tensor& c_out, const Tensor& gates,
                          const Tensor& cells, const Tensor& input_gates, const Tensor& h, const Tensor& c,
                          const Tensor& w_hh, const Tensor& b_hh, bool reverse) {
  const DType dtype = compute_dtype(output.dtype());
  const Tensor a = row_major(input_gates, dtype), h0 = row_major(h, dtype), c0 = row_major(c, dtype),
               w = row_major(w_hh, dtype), bias = cpu::row_major_or_none(b_hh, dtype);
  const Target to(output, dtype), last_h(h_out, dtype), last_c(c_out, dtype), to_gates(gates, dtype),
      to_cells(cells, dtype);
  const int64_t steps = a.size(0), n = a.size(1), hidden = h.size(1), state = n * hidden;
  const Tensor hidden_gates = empty(Shape{n, 4 * hidden}, dtype);
  visit_float(dtype, [&]<class T>() {
    const Unlocked unlocked(a.numel() > 8192);
    const T *h_before = h0.data<T>(), *c_before = c0.data<T>();
    T* const z = hidden_gates.data<T>();
    Products<T> products(n, 4 * hidden, hidden, {w.data<T>(), hidden, true}, w_hh, steps);
    for (int64_t t = 0; t < steps; ++t) {
      poll_signals();
      const int64_t p = at_step(t, steps, reverse);
      products(n, h_before, z, bias.defined() ? bias.data<T>() : nullptr);
      T *const h_now = to.data<T>() + p * state, *const c_now = to_cells.data<T>() + p * state;
      lstm_step(a.data<T>() + p * 4 * state, z, c_before, n, hidden, h_now, c_now, to_gates.data<T>() + p * 4 * state);
      h_before = h_now;
      c_before = c_now;
    }
    std::copy_n(h_before, state, last_h.data<T>());
    std::copy_n(c_before, state, last_c.data<T>());
  });
  for (const Target* t : {&to, &last_h, &last_c, &to_gates, &to_cells}) t->finish();
}

template <class T>
void lstm_sequence_backward_typed(const Tensor& grad_output, Tensor grad_h, Tensor grad_c, const Tensor& h0,
                                  const Tensor& c0, const Tensor& w, const Tensor& given_w, const Tensor& output,
                                  const Tensor& gates, const Tensor& cells, bool reverse, T* grad_gates, T* grad_h_in,
                                  T* grad_c_in, T* grad_w, T* grad_b) {
  const int64_t steps = gates.size(0), n = gates.size(1), hidden = output.size(2), state = n * hidden;
  std::vector<T> up(static_cast<size_t>(state));
  Products<T> products(n, hidden, 4 * hidden, {w.data<T>(), hidden}, given_w, steps);
  std::copy_n(grad_h.data<T>(), state, up.begin());
  std::copy_n(grad_c.data<T>(), state, grad_c_in);
  // What stood before each step: the state that came in, or the neighbour in time.
  const auto before = [&](const Tensor& all, const Tensor& first, int64_t t) {
    return t == 0 ? first.data<T>() : all.data<T>() + at_step(t - 1, steps, reverse) * state;
  };
  for (int64_t t = steps - 1; t >= 0; --t) {
    poll_signals();
    const int64_t p = at_step(t, steps, reverse);
    if (grad_output.defined()) {
      const T* const from = grad_output.data<T>() + p * state;
      for (int64_t i = 0; i < state; ++i) up[size_t(i)] += from[i];
    }
    T* const gate_grad = grad_gates + p * 4 * state;
    lstm_step_backward(up.data(), static_cast<const T*>(grad_c_in), gates.data<T>() + p * 4 * state,
                       before(cells, c0, t), cells.data<T>() + p * state, n, hidden, gate_grad, grad_c_in);
    products(n, gate_grad, up.data());
  }
  std::copy_n(up.data(), state, grad_h_in);
  // All steps at once: grad_w = sum over t of gate_grad[t].T @ h[t - 1]. Steps next to each other in memory are one
  // product.
  cpu::column_sums(grad_b, static_cast<const T*>(grad_gates), steps * n, 4 * hidden);
  if (steps == 0) {
    std::fill_n(grad_w, 4 * hidden * hidden, T(0));
    return;
  }
  const int64_t first = at_step(0, steps, reverse);
  blas::gemm<T>(4 * hidden, hidden, n, T(1), {grad_gates + first * 4 * state, 4 * hidden, true}, {h0.data<T>(), hidden},
                T(0), grad_w, hidden);
  if (steps > 1) {
    const T* const later = grad_gates + (reverse ? 0 : 4 * state);
    const T* const earlier = output.data<T>() + (reverse ? state : 0);
    blas::gemm<T>(4 * hidden, hidden, (steps - 1) * n, T(1), {later, 4 * hidden, true}, {earlier, hidden}, T(1), grad_w,
                  hidden);
  }
}

void lstm_sequence_backward_kernel(const Tensor& grad_input_gates, const Tensor& grad_h_in, const Tensor& grad_c_in,
                                   const Tensor& grad_w_hh, const Tensor& grad_b_hh, const Tensor& grad_output,
                                   const Tensor& grad_h, const Tensor& grad_c, const Tensor& h, const Tensor& c,
                                   const Tensor& w_hh, const Tensor& output, const Tensor& gates, const Tensor& cells,
                                   bool reverse) {
  const DType dtype = compute_dtype(gates.dtype());
  const Target to_gates(grad_input_gates, dtype), to_h(grad_h_in, dtype), to_c(grad_c_in, dtype),
      to_w(grad_w_hh, dtype), to_b(grad_b_hh, dtype);
  const Tensor up = cpu::row_major_or_none(grad_output, dtype), gh = or_zeros(grad_h, h.sizes(), dtype),
               gc = or_zeros(grad_c, c.sizes(), dtype), h0 = row_major(h, dtype), c0 = row_major(c, dtype),
               y = row_major(output, dtype), g = row_major(gates, dtype), all_cells = row_major(cells, dtype);
  const Tensor w = row_major(w_hh, dtype);
  visit_float(dtype, [&]<class T>() {
    const Unlocked unlocked(g.numel() > 8192);
    lstm_sequence_backward_typed<T>(up, gh, gc, h0, c0, w, w_hh, y, g, all_cells, reverse, to_gates.data<T>(),
                                    to_h.data<T>(), to_c.data<T>(), to_w.data<T>(), to_b.data<T>());
  });
  for (const Target* t : {&to_gates, &to_h, &to_c, &to_w, &to_b}) t->finish();
}

const bool registered = [] {
  kernel<op::lstm_gates>(kCPU, lstm_gates_kernel);
  kernel<op::lstm_gates_backward>(kCPU, lstm_gates_backward_kernel);
  kernel<op::gru_gates>(kCPU, gru_gates_kernel);
  kernel<op::gru_gates_backward>(kCPU, gru_gates_backward_kernel);
  kernel<op::lstm_sequence>(kCPU, lstm_sequence_kernel);
  kernel<op::lstm_sequence_backward>(kCPU, lstm_sequence_backward_kernel);
  return true;
}();

}  // namespace
}  // namespace taeda
