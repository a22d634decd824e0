// Inner loops of variance for one instruction set; see Note [Variance].
#include "cpu/loops/moments.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace taeda::loops::TAEDA_ISA {
namespace {

/// Sums of deviations from a shift, and of their squares.
struct Deviations {
  double sum = 0, squares = 0;
};

void join_one(Moments& to, const Moments& from) {
  if (from.count == 0) return;
  if (to.count == 0) {
    to = from;
    return;
  }
  const double count = to.count + from.count, gap = from.mean - to.mean;
  to.mean += gap * (from.count / count);
  to.squares += from.squares + gap * gap * (to.count * (from.count / count));
  to.count = count;
}

/// Of a block summed as deviations from `shift`.
Moments of_block(double count, double shift, double sum, double squares) {
  const double rest = sum / count;
  return {count, shift + rest, std::max(0.0, squares - rest * sum)};
}

constexpr int64_t kLanes = 32;
constexpr int64_t kGroups = 8;  // additions in T before a lane goes into its double: their rounding has no room to grow

/// One by one in double.
template <class T>
Deviations few_deviations(const T* x, T shift, int64_t n) {
  Deviations found;
  for (int64_t i = 0; i < n; ++i) {
    const double d = double(x[i]) - double(shift);
    found.sum += d;
    found.squares += d * d;
  }
  return found;
}
/// Whole groups of lanes; the rest one by one.
template <class T>
Deviations deviations_of(const T* x, T shift, int64_t n) {
  if (n < 2 * kLanes) return few_deviations(x, shift, n);
  alignas(64) double sum[kLanes] = {}, squares[kLanes] = {};
  int64_t i = 0;
  while (i + kLanes <= n) {
    alignas(64) T first[kLanes] = {}, second[kLanes] = {};
    const int64_t end = std::min(i + kLanes * kGroups, n - n % kLanes);
    for (; i < end; i += kLanes)
      for (int64_t j = 0; j < kLanes; ++j) {
        const T d = x[i + j] - shift;
        first[j] += d;
        second[j] += d * d;
      }
    for (int64_t j = 0; j < kLanes; ++j) {
      sum[j] += double(first[j]);
      squares[j] += double(second[j]);
    }
  }
  for (int64_t step = kLanes / 2; step; step /= 2)
    for (int64_t j = 0; j < step; ++j) {
      sum[j] += sum[j + step];
      squares[j] += squares[j + step];
    }
  const Deviations rest = few_deviations(x + i, shift, n - i);
  return {sum[0] + rest.sum, squares[0] + rest.squares};
}

/// A number near the mean.
template <class T>
T near_mean(const T* x, int64_t n) {
  T total(0);
  int64_t i = 0;
  if (n >= 2 * kLanes) {
    alignas(64) T lanes[kLanes] = {};
    for (; i + kLanes <= n; i += kLanes)
      for (int64_t j = 0; j < kLanes; ++j) lanes[j] += x[i + j];
    for (int64_t step = kLanes / 2; step; step /= 2)
      for (int64_t j = 0; j < step; ++j) lanes[j] += lanes[j + step];
    total = lanes[0];
  }
  for (; i < n; ++i) total += x[i];
  return total / T(n);
}

/// Where T overflowed though the numbers are finite, and where they are not.
template <class T>
Moments in_double(const char* x, int64_t stride, int64_t n) {
  const auto at = [=](int64_t i) { return double(*reinterpret_cast<const T*>(x + i * stride)); };
  double shift = 0;
  for (int64_t i = 0; i < n; ++i) shift += at(i) / double(n);
  Deviations d;
  for (int64_t i = 0; i < n; ++i) {
    d.sum += at(i) - shift;
    d.squares += (at(i) - shift) * (at(i) - shift);
  }
  const Moments found = of_block(double(n), shift, d.sum, d.squares);
  // max() has dropped a NaN.
  return std::isfinite(shift) ? found : Moments{double(n), shift, std::numeric_limits<double>::quiet_NaN()};
}

constexpr int64_t kBlock = 2048;

template <class T>
void row(void* acc, const char* in, int64_t stride, int64_t n) {
  Moments& total = *static_cast<Moments*>(acc);
  alignas(64) T gathered[kBlock];
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t m = std::min(kBlock, n - i);
    const T* x = reinterpret_cast<const T*>(in + i * stride);
    if (stride != sizeof(T)) {
      for (int64_t k = 0; k < m; ++k) gathered[k] = *reinterpret_cast<const T*>(in + (i + k) * stride);
      x = gathered;
    }
    const T shift = total.count > 0 ? T(total.mean) : near_mean(x, m);
    const Deviations d = deviations_of(x, shift, m);
    join_one(total, std::isfinite(d.squares) ? of_block(double(m), double(shift), d.sum, d.squares)
                                             : in_double<T>(reinterpret_cast<const char*>(x), sizeof(T), m));
  }
}

constexpr int64_t kTile = 256, kBand = 64;

/// Adds `Rows` rows, taken together in `D`, to the sums of `m` columns.
template <int64_t Rows, class D, class T>
void add_rows(const char* in, int64_t row_stride, int64_t m, const T* shift, double* __restrict sum,
              double* __restrict squares) {
#pragma GCC ivdep
  for (int64_t j = 0; j < m; ++j) {
    D first(0), second(0);
    for (int64_t r = 0; r < Rows; ++r) {
      const D d = D(reinterpret_cast<const T*>(in + r * row_stride)[j]) - D(shift[j]);
      first += d;
      second += d * d;
    }
    sum[j] += double(first);
    squares[j] += double(second);
  }
}
/// `D` is double for few numbers, whose rounding would not average out.
template <class D, class T>
void add_band(const char* in, int64_t row_stride, int64_t rows, int64_t m, const T* shift, double* sum,
              double* squares) {
  int64_t r = 0;
  for (; r + kGroups <= rows; r += kGroups)
    add_rows<kGroups, D>(in + r * row_stride, row_stride, m, shift, sum, squares);
  for (; r < rows; ++r) add_rows<1, double>(in + r * row_stride, row_stride, m, shift, sum, squares);
}

/// Columns of at most kBand rows and kTile columns.
template <class T>
void band(Moments* acc, const char* in, int64_t row_stride, int64_t rows, int64_t m) {
  alignas(64) T shift[kTile];
  alignas(64) double sum[kTile] = {}, squares[kTile] = {};
  if (acc[0].count > 0) {
    for (int64_t j = 0; j < m; ++j) shift[j] = T(acc[j].mean);
  } else {
    std::fill_n(shift, m, T(0));
    for (int64_t r = 0; r < rows; ++r) {
      const T* const x = reinterpret_cast<const T*>(in + r * row_stride);
      for (int64_t j = 0; j < m; ++j) shift[j] += x[j];
    }
    for (int64_t j = 0; j < m; ++j) shift[j] /= T(rows);
  }
  if (rows < kBand) add_band<double>(in, row_stride, rows, m, shift, sum, squares);
  else add_band<T>(in, row_stride, rows, m, shift, sum, squares);
  for (int64_t j = 0; j < m; ++j)
    join_one(acc[j], std::isfinite(squares[j]) ? of_block(double(rows), double(shift[j]), sum[j], squares[j])
                                               : in_double<T>(in + j * int64_t(sizeof(T)), row_stride, rows));
}

template <class T>
void columns(void* acc, const char* in, int64_t row_stride, int64_t rows, int64_t count) {
  for (int64_t c = 0; c < count; c += kTile)
    for (int64_t r = 0; r < rows; r += kBand)
      band<T>(static_cast<Moments*>(acc) + c, in + r * row_stride + c * int64_t(sizeof(T)), row_stride,
              std::min(kBand, rows - r), std::min(kTile, count - c));
}

void start(void* acc, int64_t n) { std::fill_n(static_cast<Moments*>(acc), n, Moments{0, 0, 0}); }
void join(void* acc, const void* other, int64_t n) {
  for (int64_t i = 0; i < n; ++i) join_one(static_cast<Moments*>(acc)[i], static_cast<const Moments*>(other)[i]);
}

template <class T>
constexpr Reducer reducer() {
  return {DType::Float64, start, row<T>, columns<T>, join, rows_one_by_one<row<T>, Moments, sizeof(T)>};
}

}  // namespace

constinit const MomentTable moments = {{reducer<float>(), reducer<double>()}};

}  // namespace taeda::loops::TAEDA_ISA
