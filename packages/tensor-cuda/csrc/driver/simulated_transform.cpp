// Fourier transforms by their definition, dimension after dimension.
#include "driver/simulated_transform.h"

#include <cmath>
#include <complex>
#include <limits>
#include <numbers>
#include <vector>

#include "kernels/base.h"
#include "taeda/abi.h"

namespace taeda::cuda {
namespace {

using Complex = std::complex<double>;

/// One item of a batch: all points of a side, row by row.
template <class Visit>
void each_point(const Transform& t, bool of_from, int64_t item, const Visit& visit) {
  const Transform::Side& side = of_from ? t.from : t.to;
  int64_t count = 1;
  for (int d = 0; d < t.rank; ++d) count *= t.points(of_from, d);
  for (int64_t number = 0; number < count; ++number) {
    int64_t left = number, distance = side.step, at = item * side.between;
    for (int d = t.rank; d-- > 0; distance *= side.room[size_t(d)]) {
      at += left % t.points(of_from, d) * distance;
      left /= t.points(of_from, d);
    }
    visit(number, at);
  }
}
/// y[k] = sum over j of x[j] exp(+-2 pi i j k / n), over dimension d of row-major `sizes`.
void transform_dimension(std::vector<Complex>& x, const Transform& t, int d) {
  const int64_t n = t.sizes[size_t(d)];
  int64_t inner = 1;
  for (int e = d + 1; e < t.rank; ++e) inner *= t.sizes[size_t(e)];
  const double turn = (t.forward ? -2 : 2) * std::numbers::pi / double(n);
  std::vector<Complex> roots(static_cast<size_t>(n)), line(static_cast<size_t>(n));
  for (int64_t k = 0; k < n; ++k) roots[size_t(k)] = std::polar(1.0, turn * double(k));
  for (int64_t first = 0; first < int64_t(x.size()); ++first) {
    if (first / inner % n != 0) continue;
    for (int64_t j = 0; j < n; ++j) line[size_t(j)] = x[size_t(first + j * inner)];
    for (int64_t k = 0; k < n; ++k) {
      Complex sum = 0;
      for (int64_t j = 0; j < n; ++j) sum += line[size_t(j)] * roots[size_t(j * k % n)];
      x[size_t(first + k * inner)] = sum;
    }
  }
}
int64_t product(const Transform& t) {
  int64_t found = 1;
  for (int d = 0; d < t.rank; ++d) found *= t.sizes[size_t(d)];
  return found;
}
/// From the half that is kept of the last dimension to all of it: what is missing has the conjugate of the point that
/// lies opposite in every dimension. The library does not read the imaginary parts that vanish.
std::vector<Complex> whole_spectrum(const Transform& t, const std::vector<Complex>& half) {
  const int last = t.rank - 1;
  const int64_t n = t.sizes[size_t(last)], kept = n / 2 + 1;
  std::vector<Complex> lines = half;
  // The other dimensions first: each line of the last one is then that of real numbers.
  Transform others = t;
  others.sizes[size_t(last)] = kept;
  for (int d = 0; d < last; ++d) transform_dimension(lines, others, d);
  std::vector<Complex> all(size_t(product(t)));
  for (size_t line = 0; line < all.size() / size_t(n); ++line)
    for (int64_t k = 0; k < n; ++k) {
      const Complex found = lines[line * size_t(kept) + size_t(k < kept ? k : n - k)];
      all[line * size_t(n) + size_t(k)] = k == 0 || 2 * k == n ? Complex(found.real())
                                          : k < kept           ? found
                                                               : std::conj(found);
    }
  return all;
}

}  // namespace

bool is_valid(const Transform& t) {
  if (t.rank < 1 || t.rank > Transform::kMost || t.batch < 1) return false;
  if (t.kind != Transformed::Complex && t.forward != (t.kind == Transformed::FromReal)) return false;
  const uint64_t complex_item = t.wide ? 16 : 8;
  for (const bool of_from : {true, false}) {
    const Transform::Side& side = of_from ? t.from : t.to;
    if (side.step < 1 || side.between < 1 || side.data % complex_item != 0) return false;
    for (int d = 0; d < t.rank; ++d)
      if (t.sizes[size_t(d)] < 1 || side.room[size_t(d)] < t.points(of_from, d)) return false;
  }
  return t.from.data != t.to.data || (t.kind == Transformed::Complex && t.from == t.to);
}
bool wants_workspace(const Transform& t) { return t.rank > 1 || t.kind != Transformed::Complex; }
void transform_on_host(const Transform& t, uint64_t shift) {
  simulated_shift = shift;
  const auto array = [&](bool of_from) {
    const int dtype = t.is_real(of_from) ? t.wide ? TAEDA_FLOAT64 : TAEDA_FLOAT32
                      : t.wide           ? TAEDA_COMPLEX128
                                         : TAEDA_COMPLEX64;
    return Array{of_from ? t.from.data : t.to.data, dtype, 0};
  };
  const Array from = array(true), to = array(false);
  for (int64_t item = 0; item < t.batch; ++item) {
    std::vector<Complex> points;
    each_point(t, true, item, [&](int64_t, int64_t at) {
      const Complex128 found = load<Complex128>(from, at);
      points.emplace_back(found.re, found.im);
      if (t.kind != Transformed::ToReal) return;
      constexpr double lost = std::numeric_limits<double>::quiet_NaN();
      store<Complex128>(from, at, Complex128(lost, lost));
    });
    if (t.kind == Transformed::ToReal) {
      points = whole_spectrum(t, points);
      transform_dimension(points, t, t.rank - 1);
    } else {
      for (int d = 0; d < t.rank; ++d) transform_dimension(points, t, d);
    }
    const int64_t n = t.sizes[size_t(t.rank - 1)], kept = t.points(false, t.rank - 1);
    each_point(t, false, item, [&](int64_t number, int64_t at) {
      const Complex& found = points[size_t(number / kept * n + number % kept)];
      if (t.is_real(false)) store<double>(to, at, found.real());
      else store<Complex128>(to, at, Complex128(found.real(), found.imag()));
    });
  }
  simulated_shift = 0;
}

}  // namespace taeda::cuda
