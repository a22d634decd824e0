// Products of matrices.
#include "ops/matrix.h"

#include <array>
#include <optional>

#include "driver/cublas.h"
#include "kernels/matrix.h"
#include "ops/elementwise.h"
#include "ops/tensor_cores.h"

namespace taeda::cuda {
namespace {

Matrices matrices(const Tensor& t) { return {t.array(), {t.size(0) == 1 ? 0 : t.stride(0), t.stride(1), t.stride(2)}}; }
template <class C>
void launch(const Call& call, Product3 p, int64_t batch) {
  constexpr int64_t tile = MatrixProduct<C>::kTile;
  p.tiles_n = (p.n + tile - 1) / tile;
  p.tiles_m = (p.m + tile - 1) / tile;
  call.launch(MatrixProduct<C>{p}, batch * p.tiles_n * p.tiles_m);
}
Tensor batched(const Call& call, const Tensor& t) {
  return call.view(t, std::array<int64_t, 3>{1, t.size(0), t.size(1)},
                   std::array<int64_t, 3>{0, t.stride(0), t.stride(1)});
}
/// Of fewer dimensions, seen as a batch of matrices: what is missing in front has a stride of 0.
Tensor spread(const Call& call, const Tensor& t, const Tensor& to) {
  std::vector<int64_t> strides(size_t(to.ndim()), 0);
  for (int d = 1; d <= t.ndim(); ++d) strides[size_t(to.ndim() - d)] = t.size(-d) == 1 ? 0 : t.stride(-d);
  return call.view(t, to.sizes(), strides);
}

/// How the library is told of matrices that lie row by row, or column by column; none where they do neither. To it,
/// whose matrices lie column by column, rows are the columns of the transposed one.
std::optional<BlasProduct::Matrix> columns_of(const Tensor& t) {
  const int64_t rows = t.size(1), columns = t.size(2), row = t.stride(1), column = t.stride(2);
  BlasProduct::Matrix found{t.address(), 1, t.size(0) == 1 ? 0 : t.stride(0), false};
  if (found.step < 0) return std::nullopt;
  const auto lie = [&](int64_t length, int64_t count, int64_t within, int64_t between) {
    if ((within != 1 && length != 1) || (between < length && count != 1)) return false;
    found.ld = std::max<int64_t>(count == 1 ? length : between, 1);
    return true;
  };
  if (lie(columns, rows, column, row)) return found;
  found.turned = true;
  if (lie(rows, columns, row, column)) return found;
  return std::nullopt;
}
/// An operand as the library takes it, by way of a copy where it has to be.
class Factor {
 public:
  Factor(const Call& call, const Tensor& t) {
    if (const auto found = columns_of(t)) {
      matrix_ = *found;
      return;
    }
    copy_ = call.rows(t);
    matrix_ = *columns_of(copy_);
  }
  const BlasProduct::Matrix& matrix() const { return matrix_; }

 private:
  Tensor copy_;
  BlasProduct::Matrix matrix_;
};

/// Whether elements of a row stand for all rows, as the library adds a bias to what it stores.
bool is_bias(const Tensor& base, const Tensor& out) {
  const auto repeats = [&](int d) { return base.stride(d) == 0 || base.size(d) == 1; };
  return out.size(2) > 1 && !base.on_host() && base.dtype() == out.dtype() && base.stride(2) == 1 && repeats(0) &&
         repeats(1);
}
/// By NVIDIA's library. False, with nothing done, where it is not there or multiplies no such matrices; with `sums`, of
/// which each is that of a row of `a`, also where it does not find these in the same pass.
bool multiply_by_library(const Call& call, const Tensor& out, const Tensor& a, const Tensor& b, const Tensor* base,
                         const Number& alpha, const Number& beta, const Tensor* sums = nullptr) {
  const int dtype = a.dtype();
  const bool widens = is_half_type(dtype) && out.dtype() == TAEDA_FLOAT32;
  if (!(is_float_type(dtype) || is_complex_type(dtype)) || b.dtype() != dtype) return false;
  if (out.dtype() != dtype && !widens) return false;
  if (a.size(2) == 0) return false;
  const auto place = columns_of(out);
  const bool fits = place && !place->turned;
  const Tensor made = fits ? Tensor() : call.empty(out.sizes(), out.dtype());
  const Tensor& to = fits ? out : made;
  const Factor left(call, a), right(call, b);
  const bool adds = base && (beta.re != 0 || beta.im != 0);
  // Row by row, the transposed product: out' = b' a'.
  BlasProduct p;
  p.dtype = dtype;
  p.result = out.dtype();
  p.tf32 = tf32_allowed;
  p.m = out.size(2);
  p.n = out.size(1);
  p.k = a.size(2);
  p.batch = out.size(0);
  p.a = right.matrix();
  p.b = left.matrix();
  p.c = *columns_of(to);
  p.alpha[0] = base ? alpha.re : 1, p.alpha[1] = base ? alpha.im : 0;
  if (adds) p.beta[0] = beta.re, p.beta[1] = beta.im;
  Driver& driver = own_machine()->driver();
  if (!driver.can_multiply(p)) return false;
  const int device = call.device().index;
  if (sums) {
    p.epilogue.role = Epilogue::Vector::SumsOfB;
    p.epilogue.vector = sums->address();
    if (!driver.can_finish(device, p)) return false;
  }
  if (adds && !(base->address() == to.address() && std::ranges::equal(base->strides(), to.strides()))) {
    BlasProduct biased = p;
    biased.beta[0] = 0;
    biased.epilogue.role = Epilogue::Vector::Bias;
    biased.epilogue.vector = base->address();
    if (beta.re == 1 && beta.im == 0 && is_bias(*base, out) && driver.can_finish(device, biased)) p = biased;
    else call.copy(to, *base);
  }
  call.done(driver.multiply(device, p, call.stream()), "product");
  if (!fits) call.copy(out, made);
  return true;
}

void bmm(const Call& call) { multiply(call, call.output(0), call.tensor(0), call.tensor(1)); }
void mm(const Call& call) {
  const Tensor out = call.output(0);
  multiply(call, batched(call, out), batched(call, call.tensor(0)), batched(call, call.tensor(1)));
}
void addmm(const Call& call) {
  const Tensor out = batched(call, call.output(0)), self = spread(call, call.rows(call.tensor(0)), out);
  multiply(call, out, batched(call, call.tensor(1)), batched(call, call.tensor(2)), &self, call.number(4),
           call.number(3));
}
void baddbmm(const Call& call) {
  const Tensor out = call.output(0), self = spread(call, call.rows(call.tensor(0)), out);
  multiply(call, out, call.tensor(1), call.tensor(2), &self, call.number(4), call.number(3));
}
/// input (..., in) as one matrix of rows, by weight (out, in), turned; a weight (in) gives one number for each row.
void linear(const Call& call) {
  const Tensor out = call.output(0), weight = call.tensor(1), bias = call.tensor(2);
  const Tensor input = call.rows(call.tensor(0));
  if (out.numel() == 0) return;
  const Target to(call, out);
  const bool one = weight.ndim() == 1;
  const int64_t in = weight.size(-1), width = one ? 1 : weight.size(0), count = out.numel() / width;
  const Tensor x = call.view(input, std::array<int64_t, 3>{1, count, in}, std::array<int64_t, 3>{0, in, 1});
  const Tensor w = call.view(weight, std::array<int64_t, 3>{1, in, width},
                             std::array<int64_t, 3>{0, weight.stride(-1), one ? 0 : weight.stride(0)});
  const Tensor y = call.view(to.tensor(), std::array<int64_t, 3>{1, count, width}, std::array<int64_t, 3>{0, width, 1});
  if (bias) {
    const Tensor base = call.view(bias, std::array<int64_t, 3>{1, count, width},
                                  std::array<int64_t, 3>{0, 0, bias.ndim() ? bias.stride(0) : 0});
    multiply(call, y, x, w, &base, {1, 0, 1}, {1, 0, 1});
  } else {
    multiply(call, y, x, w);
  }
  to.done();
}
/// Gradients of input, weight and bias, as the mask asks for them.
void linear_backward(const Call& call) {
  const Tensor input = call.tensor(1), weight = call.tensor(2), grad = call.rows(call.tensor(0));
  const int64_t mask = call.integer(3);
  const bool one = weight.ndim() == 1;
  const int64_t in = weight.size(-1), width = one ? 1 : weight.size(0),
                count = in ? input.numel() / in : grad.numel() / width;
  using Sizes = std::array<int64_t, 3>;
  const Tensor y = call.view(grad, Sizes{1, count, width}, Sizes{0, width, 1});
  if (mask & 1) {
    Tensor made = call.empty(input.sizes(), input.dtype());
    const Tensor w = call.view(weight, Sizes{1, width, in}, Sizes{0, one ? 0 : weight.stride(0), weight.stride(-1)});
    multiply(call, call.view(made, Sizes{1, count, in}, Sizes{0, in, 1}), y, w);
    call.result(0, std::move(made));
  }
  Tensor sums = mask & 4 ? call.empty(weight.sizes().first(size_t(weight.ndim() - 1)), grad.dtype()) : Tensor();
  bool summed = false;
  if (mask & 2) {
    Tensor made = call.empty(weight.sizes(), weight.dtype());
    const Tensor rows = call.rows(input), x = call.view(rows, Sizes{1, count, in}, Sizes{0, in, 1});
    const Tensor to = call.view(made, Sizes{1, width, in}, Sizes{0, in, 1}),
                 turned = call.view(grad, Sizes{1, width, count}, Sizes{0, 1, width});
    // The library's sums are float32's: enough for halves, where `sum_into` adds others in float64.
    summed = sums && width > 1 && in > 0 && is_half_type(grad.dtype()) && made.dtype() == grad.dtype() &&
             multiply_by_library(call, to, turned, x, nullptr, {}, {}, &sums);
    if (!summed) multiply(call, to, turned, x);
    call.result(1, std::move(made));
  }
  if (sums) {
    if (!summed)
      sum_into(call,
               one ? call.view(sums, std::array<int64_t, 1>{1}, std::array<int64_t, 1>{1}) : Tensor(sums.handle()),
               call.view(grad, std::array<int64_t, 2>{count, width}, std::array<int64_t, 2>{width, 1}), 1);
    call.result(2, std::move(sums));
  }
}

}  // namespace

void multiply(const Call& call, const Tensor& out, const Tensor& a, const Tensor& b, const Tensor* base,
              const Number& alpha, const Number& beta) {
  if (out.numel() == 0) return;
  if (multiply_by_library(call, out, a, b, base, alpha, beta)) return;
  Product3 p{};
  p.a = matrices(a);
  p.b = matrices(b);
  p.out = matrices(out);
  if (base) p.base = matrices(*base);
  p.n = out.size(1);
  p.k = a.size(2);
  p.m = out.size(2);
  p.alpha = alpha;
  p.beta = beta;
  const int64_t batch = out.size(0);
  if (multiply_by_tensor_cores(call, p, batch)) return;
  switch (class_for(out.dtype())) {
    case Class::Bool: return launch<bool>(call, p, batch);
    case Class::Float: return launch<float>(call, p, batch);
    case Class::Double: return launch<double>(call, p, batch);
    case Class::Complex: return launch<Complex128>(call, p, batch);
    default: return launch<int64_t>(call, p, batch);
  }
}

const std::vector<Operation>& matrix_operations() {
  static const std::vector<Operation> operations{
      {"addmm", addmm}, {"baddbmm", baddbmm}, {"bmm", bmm}, {"linear", linear}, {"linear_backward", linear_backward},
      {"mm", mm},
  };
  return operations;
}

}  // namespace taeda::cuda
