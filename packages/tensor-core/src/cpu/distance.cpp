// CPU kernels of the distance family.
#include "taeda/ops/distance.h"

#include <algorithm>
#include <cmath>

#include "cpu/prepare.h"
#include "taeda/arithmetic.h"
#include "taeda/elementwise.h"
#include "taeda/interrupt.h"
#include "taeda/ops/linalg.h"
#include "taeda/ops/reduce.h"
#include "taeda/ops/shape.h"
#include "taeda/parallel.h"

namespace taeda {
namespace {

using cpu::row_major;

enum class Norm : uint8_t { Zero, One, Two, Infinite, Any };
Norm norm_of(double p) {
  return p == 0 ? Norm::Zero : p == 1 ? Norm::One : p == 2 ? Norm::Two : std::isinf(p) ? Norm::Infinite : Norm::Any;
}

/// Runs `body(T, norm as a constant)`.
template <class Body>
void visit_norm(DType dtype, double p, const Body& body) {
  const auto by_type = [&]<Norm kNorm>() {
    if (dtype == DType::Float64) body.template operator()<double, kNorm>();
    else body.template operator()<float, kNorm>();
  };
  switch (norm_of(p)) {
    case Norm::Zero: return by_type.template operator()<Norm::Zero>();
    case Norm::One: return by_type.template operator()<Norm::One>();
    case Norm::Two: return by_type.template operator()<Norm::Two>();
    case Norm::Infinite: return by_type.template operator()<Norm::Infinite>();
    default: return by_type.template operator()<Norm::Any>();
  }
}

constexpr int64_t kLanes = 16;

/// One term of the norm of a difference.
template <class T, Norm kNorm>
T term(T a, T b, T p) {
  const T d = std::abs(a - b);
  if constexpr (kNorm == Norm::Zero) return d == 0 ? T(0) : std::isnan(d) ? d : T(1);
  else if constexpr (kNorm == Norm::Two) return d * d;
  else if constexpr (kNorm == Norm::Any) return std::pow(d, p);
  else return d;
}
template <class T, Norm kNorm>
T joined(T a, T b) {
  if constexpr (kNorm == Norm::Infinite) return b > a || b != b ? b : a;
  else return a + b;
}
/// In a fixed number of lanes, so that loops vectorise and the order of terms follows from the length alone.
template <class T, Norm kNorm>
T distance(const T* a, const T* b, int64_t n, T p) {
  T lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int64_t k = 0; k < kLanes; ++k) lanes[k] = joined<T, kNorm>(lanes[k], term<T, kNorm>(a[i + k], b[i + k], p));
  for (int64_t k = 0; i + k < n; ++k) lanes[k] = joined<T, kNorm>(lanes[k], term<T, kNorm>(a[i + k], b[i + k], p));
  for (int64_t step = kLanes / 2; step; step /= 2)
    for (int64_t k = 0; k < step; ++k) lanes[k] = joined<T, kNorm>(lanes[k], lanes[k + step]);
  if constexpr (kNorm == Norm::Two) return std::sqrt(lanes[0]);
  else if constexpr (kNorm == Norm::Any) return std::pow(lanes[0], 1 / p);
  else return lanes[0];
}

void cdist_forward_kernel(const Tensor& out, const Tensor& x1, const Tensor& x2, double p) {
  const DType dtype = compute_dtype(out.dtype());
  const Tensor a = row_major(x1, dtype), b = row_major(x2, dtype);
  const cpu::Target target(out, dtype);
  const int64_t rows = x1.size(1), others = x2.size(1), n = x1.size(2);
  {
    const Unlocked unlocked(out.numel() * n > 32768);
    visit_norm(dtype, p, [&]<class T, Norm kNorm>() {
      const T *const from = a.data<T>(), *const to = b.data<T>();
      T* const result = target.data<T>();
      parallel_for(x1.size(0) * rows, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, others * n)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       poll_signals();
                       for (int64_t j = 0; j < others; ++j)
                         result[i * others + j] =
                             distance<T, kNorm>(from + i * n, to + (i / rows * others + j) * n, n, T(p));
                     }
                   });
    });
  }
  target.finish();
}

void pdist_forward_kernel(const Tensor& out, const Tensor& input, double p) {
  const DType dtype = compute_dtype(out.dtype());
  const Tensor x = row_major(input, dtype);
  const cpu::Target target(out, dtype);
  const int64_t rows = input.size(0), n = input.size(1);
  {
    const Unlocked unlocked(out.numel() * n > 32768);
    visit_norm(dtype, p, [&]<class T, Norm kNorm>() {
      const T* const from = x.data<T>();
      const auto row = [&](int64_t i) {
        poll_signals();
        T* const to = target.data<T>() + i * (2 * rows - i - 1) / 2 - i - 1;
        for (int64_t j = i + 1; j < rows; ++j) to[j] = distance<T, kNorm>(from + i * n, from + j * n, n, T(p));
      };
      // A long row and a short one together, so that all pieces have as many pairs.
      parallel_for((rows + 1) / 2, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, rows * n)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       row(i);
                       if (rows - 1 - i != i) row(rows - 1 - i);
                     }
                   });
    });
  }
  target.finish();
}

/// The derivative of a distance by one difference, times what comes from above.
template <class T, Norm kNorm>
T slope(T difference, T grad, T distance, T p) {
  const T sign = difference > 0 ? T(1) : difference < 0 ? T(-1) : T(0);
  if constexpr (kNorm == Norm::Zero) return T(0);
  else if constexpr (kNorm == Norm::One) return grad * sign;
  else if constexpr (kNorm == Norm::Infinite) return std::abs(difference) == distance ? grad * sign : T(0);
  else
    return distance == 0 || difference == 0
               ? T(0)
               : sign * grad * std::pow(std::abs(difference), p - 1) * std::pow(distance, 1 - p);
}

void cdist_backward_kernel(const Tensor& grad_x, const Tensor& grad, const Tensor& x1, const Tensor& x2, double p,
                           const Tensor& distances) {
  const DType dtype = compute_dtype(grad_x.dtype());
  const Tensor g = row_major(grad, dtype), a = row_major(x1, dtype), b = row_major(x2, dtype),
               d = row_major(distances, dtype);
  const cpu::Target target(grad_x, dtype);
  const int64_t rows = x1.size(1), others = x2.size(1), n = x1.size(2);
  {
    const Unlocked unlocked(grad_x.numel() * others > 32768);
    visit_norm(dtype, p, [&]<class T, Norm kNorm>() {
      parallel_for(x1.size(0) * rows, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, others * n)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       poll_signals();
                       const T* const own = a.data<T>() + i * n;
                       T* const to = target.data<T>() + i * n;
                       std::fill_n(to, n, T(0));
                       for (int64_t j = 0; j < others; ++j) {
                         const T above = g.data<T>()[i * others + j], far = d.data<T>()[i * others + j];
                         if (above == 0) continue;
                         const T* const other = b.data<T>() + (i / rows * others + j) * n;
                         if constexpr (kNorm == Norm::Two) {
                           const T by = far == 0 ? T(0) : above / far;
                           for (int64_t k = 0; k < n; ++k) to[k] += (own[k] - other[k]) * by;
                         } else {
                           for (int64_t k = 0; k < n; ++k)
                             to[k] += slope<T, kNorm>(own[k] - other[k], above, far, T(p));
                         }
                       }
                     }
                   });
    });
  }
  target.finish();
}

void euclidean_dist_kernel(const Tensor& out, const Tensor& x1, const Tensor& x2) {
  const DType dtype = compute_dtype(out.dtype());
  const auto squares = [](const Tensor& t) {
    const int64_t last = -1;
    return ops::sum(t * t, IntSpan(&last, 1), true);
  };
  const Tensor a = row_major(x1, dtype), b = row_major(x2, dtype);
  const Tensor products = ops::matmul(a * Tensor(-2), ops::transpose(b, 1, 2));
  const Tensor sums = products + squares(a) + ops::transpose(squares(b), 1, 2);
  ops::copy_(out, ops::sqrt(ops::clamp_min(sums, Tensor(0))));
}

const bool registered = [] {
  kernel<op::cdist_forward>(kCPU, cdist_forward_kernel);
  kernel<op::cdist_backward>(kCPU, cdist_backward_kernel);
  kernel<op::pdist_forward>(kCPU, pdist_forward_kernel);
  kernel<op::euclidean_dist>(kCPU, euclidean_dist_kernel);
  return true;
}();

}  // namespace
}  // namespace taeda
