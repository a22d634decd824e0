// CPU kernels of the matrix family: cross products and exponentials.
#include <cmath>

#include "cpu/matrices.h"
#include "taeda/elementwise.h"
#include "taeda/ops/matrix.h"
#include "taeda/ops/shape.h"

namespace taeda {
namespace {

using namespace cpu;

/// a x b of lines of vectors whose elements lie `step` apart; lines are of `step` vectors side by side.
template <class T>
void cross_lines(T* out, const T* a, const T* b, int64_t step) {
  for (int64_t i = 0; i < step; ++i) {
    const T a0 = a[i], a1 = a[i + step], a2 = a[i + 2 * step], b0 = b[i], b1 = b[i + step], b2 = b[i + 2 * step];
    out[i] = T(a1 * b2 - a2 * b1);
    out[i + step] = T(a2 * b0 - a0 * b2);
    out[i + 2 * step] = T(a0 * b1 - a1 * b0);
  }
}

void cross_kernel(const Tensor& out, const Tensor& self, const Tensor& other, int64_t dim) {
  const DType dtype = compute_dtype(out.dtype());
  const Target target(out, dtype);
  const Tensor a = row_major(ops::expand(self, out.sizes()), dtype),
               b = row_major(ops::expand(other, out.sizes()), dtype);
  const int64_t d = dim < 0 ? dim + out.dim() : dim, step = product(out.sizes().subspan(size_t(d) + 1)),
                lines = out.numel() / (3 * step);
  const Unlocked unlocked(out.numel() > blas::kUnlockFlops);
  blas::visit_numeric("linalg_cross", dtype, [&]<class T>() {
    parallel_for(lines, std::max<int64_t>(1, 32768 / step), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = 3 * step * i;
        cross_lines(target.data<T>() + at, a.data<T>() + at, b.data<T>() + at, step);
      }
    });
  });
  target.finish();
}

// Note [Matrix exponential]
// exp(A) = (p(B) / p(-B))^(2^s) with B = A / 2^s and p the numerator of the Pade approximant of degree 3 to 13, the
// lowest whose error is below the dtype's rounding for B's 1-norm (Higham 2005, table 2.3; for float32 table A.1 of
// Higham, "Functions of Matrices", 2008).

template <class T> struct Degrees;  // of the approximants, and the norms up to which they serve
template <> struct Degrees<double> {
  static constexpr int count = 5;
  static constexpr int degree[] = {3, 5, 7, 9, 13};
  static constexpr double bound[] = {1.495585217958292e-2, 2.539398330063230e-1, 9.504178996162932e-1,
                                     2.097847961257068, 5.371920351148152};
};
template <> struct Degrees<float> {
  static constexpr int count = 3;
  static constexpr int degree[] = {3, 5, 7};
  static constexpr double bound[] = {4.258730016922831e-1, 1.880152677804762, 3.925724783138660};
};

/// Coefficient of x^k in p of degree m, with 1 for x^m: (2m - k)! / (k! (m - k)!) = those below, exact in double.
double coefficient(int m, int k) {
  double value = 1;  // prod over j in (k, m] of (j) (2m - j + 1) / (m - j + 1), from the highest power down
  for (int j = m; j > k; --j) value = value * double(j) * double(2 * m - j + 1) / double(m - j + 1);
  return value;
}

/// Works on n by n matrices stored by rows, one after the other in a block of memory.
template <class T>
class Exponential {
 public:
  explicit Exponential(int64_t n) : n_(n), size_(n * n), memory_(size_t(9 * n * n)), pivots_(size_t(n)) {}

  void operator()(const Strided<T>& from, const Strided<T>& to) {
    T* const a = slot(0);
    copy_elements(from, matrix(a));
    const double norm = norm_of(a);
    if (!std::isfinite(norm)) {
      std::fill_n(a, size_, T(std::numeric_limits<Real<T>>::quiet_NaN()));
    } else {
      using D = Degrees<Real<T>>;
      int choice = 0, squarings = 0;
      while (choice < D::count - 1 && norm > D::bound[choice]) ++choice;
      if (norm > D::bound[choice]) squarings = std::max(0, int(std::ceil(std::log2(norm / D::bound[choice]))));
      for (int64_t i = 0; i < size_; ++i) a[i] *= Real<T>(std::ldexp(1.0, -squarings));
      approximate(D::degree[choice]);
      for (int s = 0; s < squarings; ++s) {
        poll_signals();
        multiply(a, a, slot(1));
        std::copy_n(slot(1), size_, a);
      }
    }
    copy_elements(matrix(a), to);
  }

 private:
  T* slot(int i) { return memory_.data() + i * size_; }
  Strided<T> matrix(T* at) const { return {at, n_, n_, n_, 1}; }
  void multiply(const T* x, const T* y, T* out) const {
    blas::gemm<T>(n_, n_, n_, T(1), {x, n_}, {y, n_}, T(0), out, n_);
  }
  double norm_of(const T* a) const {
    double largest = 0;
    for (int64_t j = 0; j < n_; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < n_; ++i) sum += std::abs(a[i * n_ + j]);
      if (!(sum <= largest)) largest = sum;  // NaN stays
      if (std::isnan(largest)) return largest;
    }
    return largest;
  }
  void add(Real<T> factor, const T* x, T* out) const {
    for (int64_t i = 0; i < size_; ++i) out[i] += factor * x[i];
  }
  void start(double diagonal, T* out) const {
    std::fill_n(out, size_, T(0));
    for (int64_t i = 0; i < n_; ++i) out[i * n_ + i] = T(Real<T>(diagonal));
  }

  /// slot(0) becomes p(B) / p(-B) = (V - U)^-1 (V + U), U of the odd powers and V of the even ones.
  void approximate(int m) {
    T *const a = slot(0), *const inner = slot(5), *const u = slot(6), *const v = slot(7), *const room = slot(8);
    T* const powers[] = {nullptr, slot(1), slot(2), slot(3), slot(4)};  // B^2, B^4, B^6, B^8
    const auto b = [m](int k) { return Real<T>(coefficient(m, k)); };
    multiply(a, a, powers[1]);
    const int highest = m == 13 ? 3 : m / 2;
    for (int p = 2; p <= highest; ++p) multiply(powers[1], powers[p - 1], powers[p]);
    start(b(1), inner);
    start(b(0), v);
    for (int p = 1; p <= highest; ++p) {
      add(b(2 * p + 1), powers[p], inner);
      add(b(2 * p), powers[p], v);
    }
    if (m == 13) {  // the powers above 6 as products with B^6
      for (const bool odd : {true, false}) {
        start(0, u);
        for (int p = 1; p <= 3; ++p) add(b(6 + 2 * p + (odd ? 1 : 0)), powers[p], u);
        multiply(powers[3], u, room);
        add(1, room, odd ? inner : v);
      }
    }
    multiply(a, inner, u);
    // By columns a row-major matrix is its transpose: (V - U)^T from the right, so the equations are those of 'T'.
    for (int64_t i = 0; i < size_; ++i) room[i] = v[i] - u[i];
    for (int64_t i = 0; i < size_; ++i) v[i] += u[i];
    solve(room, v, a);
  }

  /// x = q^-1 p.
  void solve(T* q, const T* p, T* x) {
    const int n = int(n_);
    lapack::getrf(n, n, q, n, pivots_.data());  // of q^T
    T* const columns = slot(1);
    const Strided<T> by_columns{columns, n_, n_, 1, n_};
    copy_elements(Strided<T>{const_cast<T*>(p), n_, n_, n_, 1}, by_columns);
    lapack::getrs('T', n, n, q, n, pivots_.data(), columns, n);
    copy_elements(by_columns, matrix(x));
  }

  int64_t n_, size_;
  std::vector<T> memory_;
  std::vector<int> pivots_;
};

void matrix_exp_kernel(const Tensor& out, const Tensor& self) {
  expect_countable("linalg_matrix_exp", self);
  const int64_t n = self.size(-1);
  visit_exact(self.dtype(), [&]<class T>() {
    const Stack<T> from(self), to(out);
    each_matrix(
        product(self.sizes().first(size_t(self.dim() - 2))), 8 * double(n) * double(n) * double(n),
        [&](int64_t begin, int64_t end) {
          Exponential<T> exponential(n);
          for (int64_t i = begin; i < end; ++i) exponential(from[i], to[i]);
        },
        false);
  });
}

const bool registered = [] {
  kernel<op::linalg_cross>(kCPU, cross_kernel);
  kernel<op::linalg_matrix_exp>(kCPU, matrix_exp_kernel);
  return true;
}();

}  // namespace
}  // namespace taeda
