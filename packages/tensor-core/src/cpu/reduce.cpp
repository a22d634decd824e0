// CPU kernels of reductions.
#include "taeda/ops/reduce.h"

#include <cmath>

#include "cpu/arith.h"
#include "cpu/indexing.h"
#include "cpu/lines.h"
#include "cpu/loops/moments.h"
#include "cpu/reduce_engine.h"
#include "infer/dims.h"
#include "taeda/ops/arith.h"
#include "taeda/ops/cast.h"
#include "taeda/ops/compare.h"
#include "taeda/ops/shape.h"
#include "taeda/ops/unary.h"
#include "taeda/parallel.h"
#include "taeda/warn.h"

namespace taeda::cpu {
namespace {

using Dims = infer::Dims;

const ReduceTable& table() {
  static const ReduceTable& picked = reduce_table();
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
/// `self` in the shape of `out`, where all that is reduced are dimensions of one element each; else undefined.
Tensor singles(const Tensor& out, const Tensor& self, uint64_t reduced) {
  if (out.numel() != self.numel()) return {};
  Shape strides;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (out.dim() == self.dim() || !(reduced >> d & 1)) strides.push_back(self.stride(d));
  return alias(self, out.sizes(), strides, 0);
}
bool copies_singles(const Tensor& out, const Tensor& self, uint64_t reduced) {
  const Tensor same = singles(out, self, reduced);
  if (same.defined()) copy_elements(out, same);
  return same.defined();
}
/// Their sums: a sum is no -0.
bool adds_singles(const Tensor& out, const Tensor& self, uint64_t reduced) {
  const DType d = compute_dtype(out.dtype());
  if (is_integral(d)) return copies_singles(out, self, reduced);
  const Tensor same = singles(out, self, reduced);
  if (same.defined()) run_line(row(SharedLine::add), "sum", d, out, same, Tensor(0.0));
  return same.defined();
}
/// Calls `into(out, self)`; of what is repeated along dimensions that stay (a gradient that `sum` has spread) only one,
/// whose result is repeated then.
template <class Into>
void once_for_repeats(const Tensor& out, const Tensor& self, uint64_t reduced, const Into& into) {
  uint64_t repeated = 0;
  for (int64_t d = 0; d < self.dim(); ++d)
    repeated |= uint64_t(self.stride(d) == 0 && self.size(d) > 1 && !(reduced >> d & 1)) << d;
  if (!repeated || out.numel() == 0) [[likely]]
    return into(out, self);
  Shape one(self.sizes()), kept;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (repeated >> d & 1) one[size_t(d)] = 1;
    if (!(reduced >> d & 1)) kept.push_back(one[size_t(d)]);
    else if (out.dim() == self.dim()) kept.push_back(1);
  }
  const Tensor part = empty(kept, out.dtype());
  into(part, alias(self, one, self.strides(), 0));
  copy_elements(out, ops::expand(part, out.sizes()));
}

/// Reduces in the dtype of the operand; into `out` itself where that fits.
void reduce(Reduction kind, const char* op, const Tensor& out, const Operand& self, uint64_t reduced) {
  const Reducer& r = reducer(kind, self.dtype, op);
  if (out.contiguous() && out.dtype() == r.acc) return reduce_into(r, self, reduced, out);
  const Tensor acc = empty(out.sizes(), r.acc);
  reduce_into(r, self, reduced, acc);
  copy_elements(out, acc);
}

/// In the dtype in which sums run: that of the result, with half precision in float32; narrow integers are widened on
/// the way.
Operand sum_operand(const Tensor& self, DType result) {
  const DType wide = compute_dtype(result);
  if (is_integral(self.dtype()) && (wide == DType::Int64 || wide == DType::UInt64)) return self;
  return {self, wide};
}
void sum_kernel(const Tensor& out, const Tensor& self, Dims dim, bool, std::optional<DType>) {
  const uint64_t reduced = infer::reduced_mask(self, dim);
  if (adds_singles(out, self, reduced)) return;
  once_for_repeats(out, self, reduced, [&](const Tensor& to, const Tensor& from) {
    reduce(kReduceSum, "sum", to, sum_operand(from, out.dtype()), reduced);
  });
}
/// Reduces through accumulators of their own kind; `value(acc)` is the result before it is rounded to out's dtype.
template <class Acc, class Value>
void reduce_converted(const Reducer& r, const Tensor& out, const Operand& self, uint64_t reduced, const Value& value) {
  using Exact = std::invoke_result_t<Value, const Acc&>;
  constexpr Category wanted = category(dtype_of<Exact>);
  const bool fits = category(out.dtype()) == wanted;
  const Tensor plain = fits && out.contiguous() ? out : empty(out.sizes(), fits ? out.dtype() : dtype_of<Exact>);
  visit_dtype(plain.dtype(), [&]<class R>() {
    if constexpr (category(dtype_of<R>) == wanted)
      reduce_each<Acc>(r, self, reduced, plain.numel(),
                       [&value, to = plain.data<R>()](const Acc* acc, int64_t n, int64_t first, int64_t step) {
                         if (step == 1)
                           for (int64_t i = 0; i < n; ++i) to[first + i] = R(value(acc[i]));
                         else
                           for (int64_t i = 0; i < n; ++i) to[first + i * step] = R(value(acc[i]));
                       });
  });
  if (!plain.same(out)) copy_elements(out, plain);
}
void prod_kernel(const Tensor& out, const Tensor& self, Dims dim, bool, std::optional<DType>) {
  const Operand in = sum_operand(self, out.dtype());
  const uint64_t reduced = infer::reduced_mask(self, dim);
  if (copies_singles(out, self, reduced)) return;
  const Reducer& r = reducer(kReduceProd, in.dtype, "prod");
  if (in.dtype == DType::Float32)
    return reduce_converted<double>(r, out, in, reduced, [](double total) { return total; });
  reduce(kReduceProd, "prod", out, in, reduced);
}
double reduced_count(const Tensor& self, uint64_t reduced) {
  double n = 1;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (reduced >> d & 1) n *= double(self.size(d));
  return n;
}
void divide(const Tensor& out, const Tensor& acc, double by) {
  const DType d = compute_dtype(acc.dtype());
  // Of few numbers the engine's start would be most of the work.
  constexpr int64_t few = 64;
  if (acc.dtype() == DType::Float32 && out.same(acc) && out.contiguous() && out.numel() <= few) {
    for (float *x = out.data<float>(), *const end = x + out.numel(); x < end; ++x) *x /= float(by);
    return;
  }
  run_line(row(SharedLine::div), "mean", d, out, acc, Tensor(Scalar(by)));
}
void mean_into(const Tensor& out, const Tensor& self, uint64_t reduced) {
  const Operand in = sum_operand(self, out.dtype());
  const bool direct = out.contiguous() && out.dtype() == in.dtype;
  const Tensor acc = direct ? out : empty(out.sizes(), in.dtype);
  reduce_into(reducer(kReduceSum, in.dtype, "mean"), in, reduced, acc);
  divide(out, acc, reduced_count(self, reduced));
}
void mean_kernel(const Tensor& out, const Tensor& self, Dims dim, bool, std::optional<DType>) {
  const uint64_t reduced = infer::reduced_mask(self, dim);
  if (out.numel() && !adds_singles(out, self, reduced)) mean_into(out, self, reduced);
}
const Reducer& moments_of(DType d) {
  static const MomentTable& picked = moment_table();
  return picked.reducers[d == DType::Float64];
}
void var_kernel(const Tensor& out, const Tensor& self, Dims dim, bool unbiased, bool,
                const std::optional<Scalar>& correction) {
  if (out.numel() == 0) return;
  const uint64_t reduced = infer::reduced_mask(self, dim);
  const Operand in(self, compute_dtype(self.dtype()));
  const double n = reduced_count(self, reduced), c = correction ? correction->to_double() : unbiased ? 1 : 0;
  const double degrees = std::max(0.0, n - c);
  if (n <= c)
    warn("var, std: degrees of freedom is <= 0: ", n, " numbers for each result, of which the correction takes off ", c,
         "; the result is NaN or infinite");
  const auto into = [&](const Tensor& to, const Operand& from) {
    reduce_converted<Moments>(moments_of(from.dtype), to, from, reduced,
                              [=](const Moments& m) { return m.squares / degrees; });
  };
  if (!is_complex(in.dtype)) return into(out, in);
  // Those of the real and of the imaginary parts, together.
  const Tensor parts = ops::view_as_real(self);
  Shape sizes(out.sizes());
  sizes.push_back(2);
  const Tensor both = empty(sizes, DType::Float64);
  into(both, parts);
  reduce(kReduceSum, "var", out, both, uint64_t(1) << out.dim());
}

template <Reduction Kind>
void extremum_kernel(const Tensor& out, const Tensor& self, Dims dim, bool) {
  const uint64_t reduced = infer::reduced_mask(self, dim);
  if (!copies_singles(out, self, reduced)) reduce(Kind, "amax", out, {self, compute_dtype(self.dtype())}, reduced);
}
template <Reduction Kind>
void truth_kernel(const Tensor& out, const Tensor& self, Dims dim, bool) {
  const uint64_t reduced = infer::reduced_mask(self, dim);
  if (const Tensor same = singles(out, self, reduced); same.defined())
    return copy_elements(out, out.dtype() == DType::Bool ? same : ops::ne(same, Tensor(0)));
  // Accumulators are bytes holding 0 or 1: bool tensors in all but name.
  const Operand in(self, compute_dtype(self.dtype()));
  const Tensor acc = empty(out.sizes(), DType::UInt8);
  reduce_into(reducer(Kind, in.dtype, "any"), in, reduced, acc);
  copy_elements(out, acc);
}

void arg_into(int which, const Tensor& index, const Tensor& self, int64_t dim) {
  if (self.size(dim) == 1) return ops::fill_(index, Tensor(0));
  const ArgReducer& r = table().extremum[which][int(self.dtype())];
  check(r.rows != nullptr, ErrorKind::NotImplemented, "argmax: not implemented for dtype ", name(self.dtype()));
  if (index.contiguous()) return arg_reduce_into(r, self, dim, index.data<int64_t>());
  const Tensor plain = empty(index.sizes(), DType::Int64);
  arg_reduce_into(r, self, dim, plain.data<int64_t>());
  copy_elements(index, plain);
}
template <int Which>
void arg_kernel(const Tensor& out, const Tensor& self, std::optional<int64_t> dim, bool) {
  const Tensor in = as_dtype(self, compute_dtype(self.dtype()));
  if (dim && self.dim() > 0) return arg_into(Which, out, in, infer::axis_of(*dim, self.dim()));
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
    for (int64_t p = begin; p < end; ++p) {
      r.rows(&found[size_t(p)], 1, flat.bytes() + p * piece * item, 0, 1, item, std::min(piece, n - p * piece));
      found[size_t(p)] += p * piece;
    }
  });
  int64_t best = found[0];
  for (int64_t p = 1; p < pieces; ++p) {
    const int64_t at = found[size_t(p)];
    int64_t later = 0;
    r.rows(&later, 1, flat.bytes() + best * item, 0, 1, (at - best) * item, 2);
    if (later) best = at;
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
  Shape sizes(self.sizes()), strides(self.strides());
  sizes.erase(dim), strides.erase(dim);
  visit_width(self.dtype(), [&]<class T>() {
    const int64_t *place = at.data<int64_t>(), step = self.stride(dim);
    T* to = plain.data<T>();
    for_each_offset<1>(sizes, {IntSpan(strides)},
                       [&](const auto& offset, const auto&) { *to++ = self.data<T>()[offset[0] + *place++ * step]; });
  });
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
  const int64_t axis = infer::axis_of(dim, self.dim());
  if (copies_singles(values, self, uint64_t(1) << axis)) return ops::fill_(indices, Tensor(0));
  arg_into(Which, indices, as_dtype(self, compute_dtype(self.dtype())), axis);
  if (values.dtype() == self.dtype()) return pick(values, indices, self, axis);
  const Tensor exact = empty(values.sizes(), self.dtype());
  pick(exact, indices, self, axis);
  copy_elements(values, exact);
}

void vector_norm_kernel(const Tensor& out, const Tensor& self, const Scalar& ord, Dims dim, bool,
                        std::optional<DType> dtype) {
  const uint64_t reduced = infer::reduced_mask(self, dim);
  const DType wide = compute_dtype(dtype.value_or(self.dtype()));
  const DType real = real_of(wide);
  const double p = ord.to_double();
  if (const Tensor same = singles(out, self, reduced); same.defined()) {
    if (is_complex(wide) || p == 0)
      return copy_elements(out, p == 0 ? ops::ne(as_dtype(same, wide), Tensor(0)) : ops::abs(as_dtype(same, wide)));
    copy_elements(out, same);
    return ops::abs_(out);
  }
  const Tensor acc = empty(out.sizes(), real);
  if (p == 2 || p == 1) {
    reduce_into(reducer(p == 2 ? kReduceSquareSum : kReduceAbsSum, wide, "vector_norm"), {self, wide}, reduced, acc);
    if (p == 2) run_line(row(SharedLine::sqrt), "norm", real, acc, acc);
  } else if (p == 0) {
    const Tensor nonzero = ops::cast(ops::ne(as_dtype(self, wide), Tensor(0)), real);
    reduce_into(reducer(kReduceSum, real, "vector_norm"), nonzero, reduced, acc);
  } else {
    const Tensor size = ops::abs(as_dtype(self, wide));
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
