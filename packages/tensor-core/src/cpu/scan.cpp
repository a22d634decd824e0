// CPU kernels of running sums, products and extrema.
#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/converted.h"
#include "cpu/kernel.h"
#include "cpu/loops/total.h"
#include "cpu/prepare.h"
#include "infer/dims.h"
#include "taeda/interrupt.h"
#include "taeda/ops/reduce.h"
#include "taeda/ops/shape.h"
#include "taeda/parallel.h"

namespace taeda::cpu {
namespace {

/// With `dim` last, contiguous.
Tensor rows_of(const Tensor& t, int64_t dim) {
  const Tensor moved = t.dim() < 2 || dim == t.dim() - 1 ? t : ops::movedim(t, Shape{dim}, Shape{-1});
  if (moved.contiguous()) return moved;
  const Tensor copy = empty(moved.sizes(), t.dtype());
  copy_elements(copy, moved);
  return copy;
}
/// Where rows like `in` are written: `out` itself where it has their form and is not what they are read from.
Tensor rows_for(const Tensor& out, const Tensor& in, const Tensor& self, int64_t dim) {
  const bool last = out.dim() < 2 || dim == out.dim() - 1;
  return last && out.contiguous() && !out.same(self) ? out : empty(in.sizes(), out.dtype());
}
void put_back(const Tensor& out, const Tensor& rows, int64_t dim) {
  if (!rows.same(out))
    copy_elements(out, out.dim() < 2 || dim == out.dim() - 1 ? rows : ops::movedim(rows, Shape{-1}, Shape{dim}));
}
/// Calls `body(x, y, first, n)` for each row: its n elements, where their results go, and the first one's place.
template <class T, class Body>
void for_rows(const Tensor& in, const Tensor& result, const Body& body) {
  const int64_t n = in.dim() ? in.size(-1) : 1, count = in.numel() / n;
  const bool converted = in.dtype() != dtype_of<T> || result.dtype() != dtype_of<T>;
  const Unlocked unlocked(in.numel() > 32768);
  parallel_for(count, std::max<int64_t>(1, 16384 / n), [&](int64_t begin, int64_t end) {
    Reader<T> reader(in);
    Writer<T> writer(result);
    in_runs(begin, end, n, converted, [&](int64_t first, int64_t rows) {
      const T* const x = reader.at(first * n, rows * n);
      T* const y = writer.at(first * n, rows * n);
      for (int64_t r = 0; r < rows; ++r) body(x + r * n, y + r * n, (first + r) * n, n);
      writer.done();
    });
  });
}

// Note [Scans along other dimensions]
// Along a dimension that is not the last, many scans lie side by side: a step of all of them is a row of memory. That
// is read as it lies, and becomes vectors, where rows of the scanned dimension would have to be copied there and back.

constexpr int64_t kLanes = 128, kFewestVector = 8, kVector = 16;

/// Whether the scans along `axis` are computed side by side. Few of them that are converted would be so step by step.
bool side_by_side(const Tensor& t, int64_t axis, bool converted = true) {
  int64_t lanes = 1;
  for (int64_t d = axis + 1; d < t.dim(); ++d) lanes *= t.size(d);
  return lanes >= (converted ? kFewestVector : 2) && !ops::movedim(t, Shape{axis}, Shape{-1}).contiguous();
}
/// For `rows` row-major: `body(first element, lanes, elements between steps)` for some lanes at a time.
template <class Body>
void for_lanes(const Tensor& rows, int64_t axis, const Body& body) {
  const int64_t steps = rows.size(axis), apart = rows.stride(axis), outer = rows.numel() / (steps * apart),
                groups = (apart + kLanes - 1) / kLanes;
  const Unlocked unlocked(rows.numel() > 32768);
  parallel_for(outer * groups, std::max<int64_t>(1, 16384 / (steps * kLanes)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % groups * kLanes;
      body(i / groups * steps * apart + first, std::min(kLanes, apart - first), apart);
    }
  });
}
/// Runs `body(lane)` in runs that become vectors.
template <class Body>
inline void each_lane(int64_t lanes, const Body& body) {
  int64_t j = 0;
  for (; j + kVector <= lanes; j += kVector)
    for (int64_t k = 0; k < kVector; ++k) body(j + k);
  for (; j < lanes; ++j) body(j);
}
/// A row-major tensor that is `out` itself where that will do.
Tensor row_major_for(const Tensor& out) { return out.contiguous() ? out : empty(out.sizes(), out.dtype()); }

/// Fewer scans than a vector has elements, whose totals are kept in registers.
template <int kCount, class T, class Step>
void scan_few(const T* x, T* y, int64_t steps, const Step& step) {
  using Acc = Total<T>;
  Acc totals[kCount];
  for (int j = 0; j < kCount; ++j) totals[j] = Acc(y[j] = x[j]);
  in_blocks(steps - 1, [&](int64_t begin, int64_t end) {
    Acc so_far[kCount];
    std::copy_n(totals, kCount, so_far);
    for (int64_t i = begin + 1; i <= end; ++i)
#pragma GCC unroll 8
      for (int j = 0; j < kCount; ++j) y[i * kCount + j] = T(so_far[j] = step(so_far[j], Acc(x[i * kCount + j])));
    std::copy_n(so_far, kCount, totals);
  });
}
template <class T, class Step>
bool scanned_few(const T* x, T* y, int64_t count, int64_t steps, const Step& step) {
  switch (count) {
    case 2: return scan_few<2>(x, y, steps, step), true;
    case 3: return scan_few<3>(x, y, steps, step), true;
    case 4: return scan_few<4>(x, y, steps, step), true;
    case 5: return scan_few<5>(x, y, steps, step), true;
    case 6: return scan_few<6>(x, y, steps, step), true;
    case 7: return scan_few<7>(x, y, steps, step), true;
    default: return false;
  }
}
template <class T, class Step>
void scan_side_by_side(const Tensor& out, const Tensor& self, int64_t axis, const Step& step) {
  const Tensor in = row_major(self, self.dtype()), result = row_major_for(out);
  const bool converted = in.dtype() != dtype_of<T> || result.dtype() != dtype_of<T>;
  for_lanes(in, axis, [&](int64_t at, int64_t lanes, int64_t apart) {
    if (!converted && lanes == apart &&
        scanned_few<T>(in.data<T>() + at, result.data<T>() + at, lanes, in.size(axis), step))
      return;
    Reader<T> reader(in);
    Writer<T> writer(result);
    using Acc = Total<T>;
    Acc totals[kLanes];
    Patience patience;
    for (int64_t i = 0, steps = in.size(axis); i < steps; ++i, at += apart) {
      patience();
      const T* const x = reader.at(at, lanes);
      T* const y = writer.at(at, lanes);
      if (i == 0) each_lane(lanes, [&](int64_t j) { totals[j] = Acc(y[j] = x[j]); });
      else each_lane(lanes, [&](int64_t j) { y[j] = T(totals[j] = step(totals[j], Acc(x[j]))); });
      writer.done();
    }
  });
  if (!result.same(out)) copy_elements(out, result);
}

template <class Step>
void scan(const char* op, const Tensor& out, const Tensor& self, int64_t dim, const Step& step) {
  if (out.numel() == 0) return;
  const int64_t axis = infer::axis_of(dim, self.dim());
  const DType d = compute_dtype(out.dtype());
  if (side_by_side(self, axis, self.dtype() != d || out.dtype() != d))
    return visit_dtype(d, [&]<class T>() {
      if constexpr (!is_half_v<T>) scan_side_by_side<T>(out, self, axis, step);
    });
  const Tensor in = rows_of(self, axis);
  const Tensor result = rows_for(out, in, self, axis);
  visit_dtype(d, [&]<class T>() {
    if constexpr (!is_half_v<T>)
      for_rows<T>(in, result, [&](const T* x, T* y, int64_t, int64_t n) {
        using Acc = Total<T>;
        constexpr int64_t few = 256;  // a block
        Acc total = Acc(y[0] = x[0]);
        if (n <= few) {
          for (int64_t i = 1; i < n; ++i) y[i] = T(total = step(total, Acc(x[i])));
          return;
        }
        in_blocks(n - 1, [&, x = x + 1, y = y + 1](int64_t begin, int64_t end) {
          Acc so_far = total;  // in a register: what is stored might be `total`
          for (int64_t i = begin; i < end; ++i) y[i] = T(so_far = step(so_far, Acc(x[i])));
          total = so_far;
        });
      });
  });
  put_back(out, result, axis);
}
void cumsum(const Tensor& out, const Tensor& self, int64_t dim, std::optional<DType>) {
  scan("cumsum", out, self, dim, []<class T>(T a, T b) { return T(a + b); });
}
void cumprod(const Tensor& out, const Tensor& self, int64_t dim, std::optional<DType>) {
  scan("cumprod", out, self, dim, []<class T>(T a, T b) { return times(a, b); });
}
template <class T>
T log_sum_exp(T a, T b) {
  const T high = a > b || a != a ? a : b, low = a > b || a != a ? b : a;
  return std::isinf(high) && high == low ? high : high + std::log1p(std::exp(low - high));
}
/// The one with the larger real part is taken out, so that nothing overflows.
Complex128 log_sum_exp(Complex128 a, Complex128 b) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (std::isnan(a.real()) || std::isnan(b.real())) return {nan, nan};
  const Complex128 high = a.real() > b.real() ? a : b, low = a.real() > b.real() ? b : a;
  if (std::isinf(high.real()) && high.real() == low.real())  // of nothing the angle is unknown
    return high.real() < 0 ? high : std::log(std::exp(low) + std::exp(high));
  const Complex128 z = std::exp(low - high);
  const double beyond = z.real() * (2 + z.real()) + z.imag() * z.imag();
  return high + Complex128(0.5 * std::log1p(beyond), std::atan2(z.imag(), 1 + z.real()));
}
void logcumsumexp(const Tensor& out, const Tensor& self, int64_t dim) {
  scan("logcumsumexp", out, self, dim, []<class T>(T a, T b) {
    if constexpr (std::is_floating_point_v<T> || is_complex_v<T>) return log_sum_exp(a, b);
    else return a;
  });
}
template <bool Largest, class T>
inline bool takes_over(T x, T best) {
  return x != x || (Largest ? x >= best : x <= best);
}
template <bool Largest, class T>
void extremum_side_by_side(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t axis) {
  const Tensor in = row_major(self, self.dtype()), result = row_major_for(values), index = row_major_for(indices);
  for_lanes(in, axis, [&](int64_t at, int64_t lanes, int64_t apart) {
    Reader<T> reader(in);
    Writer<T> writer(result);
    T best[kLanes];
    int64_t where[kLanes];
    Patience patience;
    for (int64_t i = 0, steps = in.size(axis); i < steps; ++i, at += apart) {
      patience();
      const T* const x = reader.at(at, lanes);
      T* const y = writer.at(at, lanes);
      int64_t* const places = index.data<int64_t>() + at;
      each_lane(lanes, [&](int64_t j) {
        const bool takes = i == 0 || takes_over<Largest>(x[j], best[j]);
        best[j] = takes ? x[j] : best[j];
        where[j] = takes ? i : where[j];
        y[j] = best[j];
        places[j] = where[j];
      });
      writer.done();
    }
  });
  if (!result.same(values)) copy_elements(values, result);
  if (!index.same(indices)) copy_elements(indices, index);
}
template <bool Largest>
void cumulative_extremum(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim) {
  if (values.numel() == 0) return;
  const int64_t axis = infer::axis_of(dim, self.dim());
  const DType d = compute_dtype(self.dtype());
  if (side_by_side(self, axis))
    return visit_dtype(d, [&]<class T>() {
      if constexpr (!is_half_v<T> && !is_complex_v<T>) extremum_side_by_side<Largest, T>(values, indices, self, axis);
    });
  const Tensor in = rows_of(self, axis);
  const Tensor result = rows_for(values, in, self, axis), index = rows_for(indices, in, self, axis);
  visit_dtype(d, [&]<class T>() {
    if constexpr (!is_half_v<T> && !is_complex_v<T>)
      for_rows<T>(in, result, [&](const T* x, T* y, int64_t first, int64_t n) {
        int64_t* const places = index.data<int64_t>() + first;
        T best = x[0];
        int64_t where = 0;
        for (int64_t i = 0; i < n; ++i) {
          if (takes_over<Largest>(x[i], best)) {
            best = x[i];
            where = i;
          }
          y[i] = best;
          places[i] = where;
        }
      });
  });
  put_back(values, result, axis);
  put_back(indices, index, axis);
}

const bool registered = [] {
  kernel<op::cummax>(kCPU, cumulative_extremum<true>);
  kernel<op::cummin>(kCPU, cumulative_extremum<false>);
  kernel<op::cumprod>(kCPU, cumprod);
  kernel<op::cumsum>(kCPU, cumsum);
  kernel<op::logcumsumexp>(kCPU, logcumsumexp);
  return true;
}();

}  // namespace
}  // namespace taeda::cpu
