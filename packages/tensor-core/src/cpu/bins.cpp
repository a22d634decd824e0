// CPU kernels that count elements in bins, and find the bins.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "cpu/order.h"
#include "infer/sort.h"
#include "taeda/interrupt.h"
#include "taeda/ops/cast.h"
#include "taeda/ops/reduce.h"
#include "taeda/ops/shape.h"
#include "taeda/ops/sort.h"
#include "taeda/parallel.h"

namespace taeda {
namespace {

using cpu::before;
using cpu::visit_ordered;

/// As many bins as the numbers of `index` need, at least `bins`.
template <class T>
int64_t bins_for(const Tensor& index, int64_t bins) {
  if (index.numel() == 0) return bins;
  const T least = *ops::amin(index).data<T>(), most = *ops::amax(index).data<T>();
  // Natural numbers beyond int64 count as negative ones.
  return infer::bincount_size(std::min(int64_t(least), int64_t(most)), int64_t(most), bins);
}

constexpr int64_t kFewBins = 512;

/// One bin's size for each number, or the sums of weights there.
template <class T>
Tensor counted(const Tensor& index, const double* weights, int64_t bins) {
  const T* const numbers = index.data<T>();
  const int64_t n = index.numel();
  const Tensor sums = empty(Shape{bins_for<T>(index, bins)}, weights ? DType::Float64 : DType::Int64);
  std::memset(sums.bytes(), 0, size_t(sums.numel() * 8));
  const Unlocked unlocked(n > 32768);
  if (weights) {
    double* const of = sums.data<double>();
    in_blocks(n, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) of[int64_t(numbers[i])] += weights[i];
    });
  } else {
    int64_t* const of = sums.data<int64_t>();
    const int64_t count = sums.numel();
    if (count > kFewBins) {
      in_blocks(n, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++of[int64_t(numbers[i])];
      });
      return sums;
    }
    // Four of each bin, as adding to one again has to wait for the sum before.
    int64_t parts[4][kFewBins] = {};
    in_blocks(n, [&](int64_t begin, int64_t end) {
      int64_t i = begin;
      for (; i + 4 <= end; i += 4)
        for (int k = 0; k < 4; ++k) ++parts[k][int64_t(numbers[i + k])];
      for (; i < end; ++i) ++parts[0][int64_t(numbers[i])];
    });
    for (int64_t bin = 0; bin < count; ++bin) of[bin] = parts[0][bin] + parts[1][bin] + parts[2][bin] + parts[3][bin];
  }
  return sums;
}

Tensor bincount_kernel(const Tensor& self, const Tensor& weights, int64_t minlength) {
  const Tensor index = ops::contiguous(self.dtype() == DType::Bool ? ops::to_dtype(self, DType::UInt8) : self);
  const Tensor w = weights.defined() ? ops::contiguous(ops::to_dtype(weights, DType::Float64)) : Tensor();
  Tensor sums;
  visit_ordered(index.dtype(), "bincount", [&]<class T>() {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      sums = counted<T>(index, w.defined() ? w.data<double>() : nullptr, minlength);
  });
  return ops::to_dtype(sums, infer::bincount_dtype(self, weights));
}

Tensor histc_kernel(const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max) {
  const Tensor values = ops::contiguous(self.dtype() == DType::Float32 ? self : ops::to_dtype(self, DType::Float64));
  const int64_t n = values.numel();
  double low = min.to_double(), high = max.to_double();
  if (low == high && n > 0) {
    const auto number = [](const Tensor& t) { return *ops::to_dtype(t, DType::Float64).data<double>(); };
    low = number(ops::amin(values));
    high = number(ops::amax(values));
  }
  infer::histogram_range(low, high);
  const Tensor counts = empty(Shape{bins}, DType::Float64);
  std::memset(counts.bytes(), 0, size_t(bins) * 8);
  {
    const Unlocked unlocked(n > 32768);
    // Multiplied before it is divided, in the elements' dtype, so that whole numbers fall into bins of their own.
    const auto count = [&]<class T>(const T* data) {
      const T first = T(low), last = T(high), width = last - first, parts = T(bins);
      const auto place = [&](T x) {
        const T at = (x - first) * parts / width;
        if (std::isfinite(width) && at <= parts) return int64_t(at);
        return int64_t((double(x) - low) / (high - low) * double(bins));  // the product is too large
      };
      in_blocks(n, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          if (const T x = data[i]; x >= first && x <= last) counts.data<double>()[std::min(bins - 1, place(x))] += 1;
      });
    };
    if (values.dtype() == DType::Float32) count(values.data<float>());
    else count(values.data<double>());
  }
  return ops::to_dtype(counts, self.dtype());
}

/// How many elements at the beginning `hold`, which no element behind them does; without a branch that depends on one.
template <class T, class Holds>
int64_t leading(const T* row, int64_t length, const Holds& holds) {
  if (length == 0) return 0;
  const T* first = row;
  while (length > 1) {
    const int64_t half = length / 2;
    first += half & -int64_t(holds(first[half - 1]));
    length -= half;
  }
  return first - row + int64_t(holds(*first));
}

/// How many elements of an ascending row, NaN last, are less than `v`; on the `right` also those that are equal.
template <class T>
int64_t place_of(const T* row, int64_t length, T v, bool right) {
  if constexpr (cpu::is_half<T>) {
    return right ? leading(row, length, [v](T edge) { return !before(v, edge); })
                 : leading(row, length, [v](T edge) { return before(edge, v); });
  } else {
    if (v != v) return right ? length : leading(row, length, [](T edge) { return edge == edge; });
    return right ? leading(row, length, [v](T edge) { return edge <= v; })
                 : leading(row, length, [v](T edge) { return edge < v; });
  }
}

Tensor searchsorted_kernel(const Tensor& sorted_sequence, const Tensor& self, bool right) {
  const DType dtype = promote(sorted_sequence.dtype(),
                              self.is_wrapped_number() && !is_integral(self.dtype()) ? default_dtype() : self.dtype());
  const Tensor edges = ops::contiguous(ops::to_dtype(sorted_sequence, dtype)),
               wanted = ops::contiguous(ops::to_dtype(self, dtype));
  const bool shared = edges.dim() == 1;
  const Tensor out = empty(wanted.sizes(), DType::Int64);
  const int64_t length = edges.size(-1), per_row = shared ? wanted.numel() : wanted.size(-1);
  visit_ordered(dtype, "searchsorted", [&]<class T>() {
    const Unlocked unlocked(wanted.numel() > 32768);
    parallel_for(wanted.numel(), 32768, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* row = edges.data<T>() + (shared ? 0 : i / per_row * length);
        const T v = wanted.data<T>()[i];
        out.data<int64_t>()[i] = place_of(row, length, v, right);
      }
    });
  });
  return out;
}

const bool registered = [] {
  kernel<op::bincount>(kCPU, bincount_kernel);
  kernel<op::histc>(kCPU, histc_kernel);
  kernel<op::searchsorted>(kCPU, searchsorted_kernel);
  return true;
}();

}  // namespace
}  // namespace taeda
