// CPU kernels of reductions.
#include "taeda/ops/reduce.h"

#include <bit>
#include <cmath>

#include "cpu/kernel.h"
#include "cpu/loops/layers.h"
#include "cpu/reduce_engine.h"
#include "taeda/ops/arith.h"
#include "taeda/ops/cast.h"
#include "taeda/ops/compare.h"
#include "taeda/parallel.h"

namespace taeda::cpu {
namespace {

using Dims = infer::Dims;

const ReduceTable& table() {
  static const ReduceTable& picked = TAEDA_PICK(reduce);
  return picked;
}
const Reducer& reducer(Reduction kind, DType d, const char* op) {
  const Reducer& r = table().by_dtype[kind][int(d)];
  check(r.start != nullptr, ErrorKind::NotImplemented, op, ": not implemented for dtype ", name(d));
  return r;
}
/// A copy in another dtype where needed; the same layout.
Tensor as_dtype(const Tensor& t, DType d) {
  if (t.dtype() == d) return t;
  const Tensor copy = t.dense() && !t.contiguous() ? empty_strided(t.sizes(), t.strides(), d) : empty(t.sizes(), d);
  copy_elements(copy, t);
  return copy;
}
/// Reduces in the reducer's own dtype; into `out` itself where that fits.
void reduce(Reduction kind, const char* op, const Tensor& out, const Tensor& self, uint64_t reduced) {
  const Reducer& r = reducer(kind, self.dtype(), op);
  if (out.contiguous() && out.dtype() == r.acc) return reduce_into(r, self, reduced, out);
  const Tensor acc = empty(out.sizes(), r.acc);
  reduce_into(r, self, reduced, acc);
  copy_elements(out, acc);
}

/// The dtype in which sums run: that of the result, with half precision in float32; narrow integers are widened on the way.
Tensor sum_operand(const Tensor& self, DType result) {
  const DType wide = compute_dtype(result);
  if (is_integral(self.dtype()) && (wide == DType::Int64 || wide == DType::UInt64)) return self;
  if (self.dtype() == wide) return self;
  return as_dtype(self, wide);
}
void sum_kernel(const Tensor& out, const Tensor& self, Dims dim, bool, std::optional<DType>) {
  reduce(kReduceSum, "sum", out, sum_operand(self, out.dtype()), infer::reduced_dims("sum", self, dim));
}
void prod_kernel(const Tensor& out, const Tensor& self, Dims dim, bool, std::optional<DType>) {
  reduce(kReduceProd, "prod", out, sum_operand(self, out.dtype()), infer::reduced_dims("prod", self, dim));
}
double reduced_count(const Tensor& self, uint64_t reduced) {
  double n = 1;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (reduced >> d & 1) n *= double(self.size(d));
  return n;
}
void divide(const Tensor& out, const Tensor& acc, double by) {
  const DType d = compute_dtype(acc.dtype());
  run_binary(row(kDiv).fn[int(d)], out, d, acc, Tensor(Scalar(by)), d);
}
void mean_into(const Tensor& out, const Tensor& self, uint64_t reduced) {
  const Tensor in = sum_operand(self, out.dtype());
  const bool direct = out.contiguous() && out.dtype() == in.dtype();
  const Tensor acc = direct ? out : empty(out.sizes(), in.dtype());
  reduce_into(reducer(kReduceSum, in.dtype(), "mean"), in, reduced, acc);
  divide(out, acc, reduced_count(self, reduced));
}
void mean_kernel(const Tensor& out, const Tensor& self, Dims dim, bool, std::optional<DType>) {
  if (out.numel()) mean_into(out, self, infer::reduced_dims("mean", self, dim));
}
// Note [Variance]
// Two passes: the mean, then the sums of the deviations from it and of their squares. The first of these would be zero,
// were the mean not rounded; its square over the count corrects the second.

constexpr int64_t kPiece = 65536;  // elements of a fixed piece

/// Sums over a run, of `x - center` and of its square: pieces added in order.
template <class T>
void run_moments(const T* x, double center, int64_t n, double* sums) {
  const int64_t pieces = (n + kPiece - 1) / kPiece;
  if (pieces == 1) return layers<T>().plane_moments(x, center, n, sums);
  std::vector<double> parts(size_t(2 * pieces));
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p)
      layers<T>().plane_moments(x + p * kPiece, center, std::min(kPiece, n - p * kPiece), parts.data() + 2 * p);
  });
  sums[0] = sums[1] = 0;
  for (int64_t p = 0; p < pieces; ++p) {
    sums[0] += parts[size_t(2 * p)];
    sums[1] += parts[size_t(2 * p + 1)];
  }
}
double squares_about_mean(const double* sums, double n) {
  const double squares = sums[1] - sums[0] * sums[0] / n;
  return squares < 0 ? 0 : squares;
}
/// Squared deviations of contiguous rows of n.
template <class T>
void row_deviations(const T* x, int64_t rows, int64_t n, T* out) {
  const auto one = [=](int64_t i) {
    double sums[2];
    run_moments(x + i * n, 0.0, n, sums);
    run_moments(x + i * n, double(T(sums[0] / double(n))), n, sums);
    out[i] = T(squares_about_mean(sums, double(n)));
  };
  if (n >= kPiece) {
    for (int64_t i = 0; i < rows; ++i) one(i);
    return;
  }
  parallel_for(rows, std::max<int64_t>(1, 16384 / n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) one(i);
  });
}
/// Squared deviations in any layout, by way of a tensor of the deviations.
void deviations(const Tensor& acc, const Tensor& in, uint64_t reduced, double n) {
  const DType d = in.dtype();
  const Tensor mean = empty(infer::reduced_shape(in, reduced, true), d);
  mean_into(mean, in, reduced);
  const Tensor gap = in.dense() && !in.contiguous() ? empty_strided(in.sizes(), in.strides(), d) : empty(in.sizes(), d);
  run_binary(row(kSub).fn[int(d)], gap, d, in, mean, d);
  reduce_into(reducer(kReduceSquareSum, d, "var"), gap, reduced, acc);
  const Tensor rest = empty(acc.sizes(), d);
  reduce_into(reducer(kReduceSum, d, "var"), gap, reduced, rest);
  visit_dtype(d, [&]<class T>() {
    if constexpr (is_floating(dtype_of<T>) && !is_half_v<T>)
      for (int64_t i = 0; i < acc.numel(); ++i) acc.data<T>()[i] -= rest.data<T>()[i] * rest.data<T>()[i] / T(n);
    else if constexpr (is_complex_v<T>)
      for (int64_t i = 0; i < acc.numel(); ++i) acc.data<typename T::value_type>()[i] -= std::norm(rest.data<T>()[i]) / typename T::value_type(n);
  });
}
void var_kernel(const Tensor& out, const Tensor& self, Dims dim, bool unbiased, bool, const std::optional<Scalar>& correction) {
  if (out.numel() == 0) return;
  const uint64_t reduced = infer::reduced_dims("var", self, dim);
  const Tensor in = as_dtype(self, compute_dtype(self.dtype()));
  const DType d = in.dtype();
  const Tensor acc = empty(out.sizes(), real_of(d));
  const double n = reduced_count(self, reduced), c = correction ? correction->to_double() : unbiased ? 1 : 0;
  const int64_t results = acc.numel();
  const bool rows = in.contiguous() && !is_complex(d) && n > 0 && reduced >> (self.dim() - std::popcount(reduced)) == (uint64_t(1) << std::popcount(reduced)) - 1;
  if (rows) {
    const Unlocked unlocked(in.numel() > 32768);
    if (d == DType::Float64)
      row_deviations(in.data<double>(), results, int64_t(n), acc.data<double>());
    else
      row_deviations(in.data<float>(), results, int64_t(n), acc.data<float>());
  } else {
    deviations(acc, in, reduced, n);
  }
  divide(out, acc, std::max(0.0, n - c));
}

template <Reduction Kind>
void extremum_kernel(const Tensor& out, const Tensor& self, Dims dim, bool) {
  reduce(Kind, "amax", out, as_dtype(self, compute_dtype(self.dtype())), infer::reduced_dims("amax", self, dim));
}
template <Reduction Kind>
void truth_kernel(const Tensor& out, const Tensor& self, Dims dim, bool) {
  // Accumulators are bytes holding 0 or 1: bool tensors in all but name.
  const Tensor in = as_dtype(self, compute_dtype(self.dtype()));
  const Tensor acc = empty(out.sizes(), DType::UInt8);
  reduce_into(reducer(Kind, in.dtype(), "any"), in, infer::reduced_dims("any", self, dim), acc);
  copy_elements(out, acc);
}

void arg_into(int which, const Tensor& index, const Tensor& self, int64_t dim) {
  const ArgReducer& r = table().extremum[which][int(self.dtype())];
  check(r.row != nullptr, ErrorKind::NotImplemented, "argmax: not implemented for dtype ", name(self.dtype()));
  if (index.contiguous()) return arg_reduce_into(r, self, dim, index.data<int64_t>());
  const Tensor plain = empty(index.sizes(), DType::Int64);
  arg_reduce_into(r, self, dim, plain.data<int64_t>());
  copy_elements(index, plain);
}
template <int Which>
void arg_kernel(const Tensor& out, const Tensor& self, std::optional<int64_t> dim, bool) {
  const Tensor in = as_dtype(self, compute_dtype(self.dtype()));
  if (dim && self.dim() > 0) return arg_into(Which, out, in, wrap_dim(*dim, self.dim(), "argmax"));
  // Over all: one row in row-major order; several pieces run in parallel and the first of the best wins.
  Tensor flat = in;
  if (!flat.contiguous()) {
    flat = empty(in.sizes(), in.dtype());
    copy_elements(flat, in);
  }
  const int64_t n = flat.numel();
  const ArgReducer& r = table().extremum[Which][int(flat.dtype())];
  const int64_t item = flat.item_bytes(), piece = 1 << 16, pieces = (n + piece - 1) / piece;
  std::vector<int64_t> found(static_cast<size_t>(pieces));
  const Unlocked unlocked(n > 32768);
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) found[size_t(p)] = p * piece + r.row(flat.bytes() + p * piece * item, item, std::min(piece, n - p * piece));
  });
  int64_t best = found[0];
  for (int64_t p = 1; p < pieces; ++p) {
    const int64_t at = found[size_t(p)];
    if (r.row(flat.bytes() + best * item, (at - best) * item, 2) == 1) best = at;
  }
  *out.data<int64_t>() = best;
}

/// values[o] = self[o..., index[o], ...]
void pick(const Tensor& values, const Tensor& index, const Tensor& self, int64_t dim) {
  const Tensor at = index.contiguous() ? index : [&] {
    const Tensor plain = empty(index.sizes(), DType::Int64);
    copy_elements(plain, index);
    return plain;
  }();
  const Tensor plain = values.contiguous() ? values : empty(values.sizes(), values.dtype());
  const int64_t item = self.item_bytes(), count = at.numel();
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, offset = at.data<int64_t>()[i] * self.stride(dim);
    for (int64_t d = self.dim() - 1; d >= 0; --d) {
      if (d == dim) continue;
      offset += rest % self.size(d) * self.stride(d);
      rest /= self.size(d);
    }
    std::memcpy(plain.bytes() + i * item, self.bytes() + offset * item, size_t(item));
  }
  if (!values.same(plain)) copy_elements(values, plain);
}
template <int Which>
void extremum_dim_kernel(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim, bool) {
  if (values.numel() == 0) return;
  if (self.dim() == 0) {
    copy_elements(values, self);
    *indices.data<int64_t>() = 0;
    return;
  }
  const int64_t axis = wrap_dim(dim, self.dim(), "max");
  arg_into(Which, indices, as_dtype(self, compute_dtype(self.dtype())), axis);
  if (values.dtype() == self.dtype()) return pick(values, indices, self, axis);
  const Tensor exact = empty(values.sizes(), self.dtype());
  pick(exact, indices, self, axis);
  copy_elements(values, exact);
}

void vector_norm_kernel(const Tensor& out, const Tensor& self, const Scalar& ord, Dims dim, bool, std::optional<DType> dtype) {
  const uint64_t reduced = infer::reduced_dims("vector_norm", self, dim);
  const DType wide = compute_dtype(dtype.value_or(self.dtype()));
  const Tensor in = as_dtype(self, wide);
  const DType real = real_of(wide);
  const Tensor acc = empty(out.sizes(), real);
  const double p = ord.to_double();
  if (p == 2 || p == 1) {
    reduce_into(reducer(p == 2 ? kReduceSquareSum : kReduceAbsSum, wide, "vector_norm"), in, reduced, acc);
    if (p == 2) run_unary(row(kSqrt).fn[int(real)], acc, real, acc, real);
  } else if (p == 0) {
    const Tensor nonzero = ops::cast(ops::ne(in, Tensor(0)), real);
    reduce_into(reducer(kReduceSum, real, "vector_norm"), nonzero, reduced, acc);
  } else {
    const Tensor size = ops::abs(in);
    if (std::isinf(p)) {
      reduce_into(reducer(p > 0 ? kReduceMax : kReduceMin, real, "vector_norm"), size, reduced, acc);
      if (self.numel() == 0) ops::fill_(acc, Tensor(0));
    } else {
      reduce_into(reducer(kReduceSum, real, "vector_norm"), ops::pow(size, Tensor(p)), reduced, acc);
      copy_elements(acc, ops::pow(acc, Tensor(1 / p)));
    }
  }
  copy_elements(out, acc);
}

const bool registered = [] {
  kernel<op::all>(kCPU, truth_kernel<kReduceAll>);
  kernel<op::amax>(kCPU, extremum_kernel<kReduceMax>);
  kernel<op::amin>(kCPU, extremum_kernel<kReduceMin>);
  kernel<op::any>(kCPU, truth_kernel<kReduceAny>);
  kernel<op::argmax>(kCPU, arg_kernel<0>);
  kernel<op::argmin>(kCPU, arg_kernel<1>);
  kernel<op::max_dim>(kCPU, extremum_dim_kernel<0>);
  kernel<op::mean>(kCPU, mean_kernel);
  kernel<op::min_dim>(kCPU, extremum_dim_kernel<1>);
  kernel<op::prod>(kCPU, prod_kernel);
  kernel<op::sum>(kCPU, sum_kernel);
  kernel<op::var>(kCPU, var_kernel);
  kernel<op::vector_norm>(kCPU, vector_norm_kernel);
  return true;
}();

}  // namespace
}  // namespace taeda::cpu
