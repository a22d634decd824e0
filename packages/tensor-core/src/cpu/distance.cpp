// CPU kernels of the distance family.
#include "taeda/ops/distance.h"

#include <algorithm>
#include <cmath>

#include "cpu/loops/distance.h"
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
using loops::Norm;

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

/// Distances of rows of `x` from rows of `others`, (batch, rows, n) each, of one dtype: of short rows the others are
/// turned, so that pairs fill vectors.
class Distances {
 public:
  Distances(const Tensor& x, const Tensor& others, DType dtype, double p)
      : loops_(loops::distance_table().by_norm[int(norm_of(p))][dtype == DType::Float64]),
        n_(others.size(2)),
        count_(others.size(1)),
        turned_(n_ <= kShort),
        p_(p),
        x_(row_major(x, dtype)),
        others_(row_major(turned_ ? ops::transpose(others, 1, 2) : others, dtype)),
        item_(others_.item_bytes()) {}
  /// Of row `row` of all from `count` rows of image `batch`, from `first` on.
  void operator()(int64_t row, int64_t batch, int64_t first, int64_t count, void* out) const {
    const char *const own = x_.bytes() + row * n_ * item_, *const whole = others_.bytes() + batch * count_ * n_ * item_;
    if (turned_) loops_.from_turned(own, whole + first * item_, count_, count, n_, p_, out);
    else loops_.from_row(own, whole + first * n_ * item_, count, n_, p_, out);
  }

 private:
  static constexpr int64_t kShort = 64;
  const loops::DistanceLoops& loops_;
  int64_t n_, count_;
  bool turned_;
  double p_;
  Tensor x_, others_;
  int64_t item_;
};

void cdist_forward_kernel(const Tensor& out, const Tensor& x1, const Tensor& x2, double p) {
  const DType dtype = compute_dtype(out.dtype());
  const cpu::Target target(out, dtype);
  const int64_t rows = x1.size(1), others = x2.size(1), n = x1.size(2);
  {
    const Distances distances(x1, x2, dtype, p);
    const Unlocked unlocked(out.numel() * n > 32768);
    char* const result = target.tensor().bytes();
    const int64_t line = others * target.tensor().item_bytes();
    parallel_for(x1.size(0) * rows, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, others * n)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     poll_signals();
                     distances(i, i / rows, 0, others, result + i * line);
                   }
                 });
  }
  target.finish();
}

void pdist_forward_kernel(const Tensor& out, const Tensor& input, double p) {
  const DType dtype = compute_dtype(out.dtype());
  const cpu::Target target(out, dtype);
  const int64_t rows = input.size(0), n = input.size(1);
  {
    const Tensor x = ops::unsqueeze(input, 0);
    const Distances distances(x, x, dtype, p);
    const Unlocked unlocked(out.numel() * n > 32768);
    char* const result = target.tensor().bytes();
    const int64_t bytes = target.tensor().item_bytes();
    const auto row = [&](int64_t i) {
      poll_signals();
      distances(i, 0, i + 1, rows - 1 - i, result + i * (2 * rows - i - 1) / 2 * bytes);
    };
    // A long row and a short one together, so that all pieces have as many pairs.
    parallel_for((rows + 1) / 2, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, rows * n)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     row(i);
                     if (rows - 1 - i != i) row(rows - 1 - i);
                   }
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
