// Factors of matrices by plain algorithms in complex numbers of float64.
#include "driver/simulated_factoring.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numeric>
#include <vector>

#include "kernels/base.h"
#include "taeda/abi.h"

namespace taeda::cuda {
namespace {

using Complex = std::complex<double>;
constexpr int kSweeps = 60;

/// A matrix in memory of its own.
struct Plain {
  int64_t rows, columns;
  std::vector<Complex> elements;
  Plain(int64_t rows, int64_t columns) : rows(rows), columns(columns), elements(size_t(rows * columns)) {}
  Complex& operator()(int64_t i, int64_t j) { return elements[size_t(i + j * rows)]; }
  const Complex& operator()(int64_t i, int64_t j) const { return elements[size_t(i + j * rows)]; }
};
Plain identity(int64_t rows, int64_t columns) {
  Plain made(rows, columns);
  for (int64_t i = 0; i < std::min(rows, columns); ++i) made(i, i) = 1;
  return made;
}
/// The inner product of two columns.
Complex inner(const Plain& a, int64_t i, int64_t j) {
  Complex sum = 0;
  for (int64_t row = 0; row < a.rows; ++row) sum += std::conj(a(row, i)) * a(row, j);
  return sum;
}

/// L of L L^H in the lower triangle, or U of U^H U, which is L^H, in the upper one; the order of the minor that is not
/// positive-definite.
int cholesky(Plain& a, bool upper) {
  const auto at = [&](int64_t i, int64_t j) -> Complex& { return upper ? a(j, i) : a(i, j); };
  for (int64_t j = 0; j < a.rows; ++j) {
    double left = at(j, j).real();
    for (int64_t k = 0; k < j; ++k) left -= std::norm(at(j, k));
    if (!(left > 0)) return int(j + 1);
    at(j, j) = std::sqrt(left);
    for (int64_t i = j + 1; i < a.rows; ++i) {
      for (int64_t k = 0; k < j; ++k) at(i, j) -= at(i, k) * std::conj(at(j, k));
      at(i, j) /= at(j, j);
    }
  }
  return 0;
}
/// L and U with the exchanges of rows, counted from 1; the first zero of U's diagonal.
int lu(Plain& a, std::vector<int64_t>& pivots) {
  const auto size = [&](int64_t i, int64_t j) { return std::abs(a(i, j).real()) + std::abs(a(i, j).imag()); };
  int info = 0;
  for (int64_t j = 0; j < int64_t(pivots.size()); ++j) {
    int64_t best = j;
    for (int64_t i = j + 1; i < a.rows; ++i)
      if (size(i, j) > size(best, j)) best = i;
    pivots[size_t(j)] = best + 1;
    for (int64_t k = 0; k < a.columns; ++k) std::swap(a(j, k), a(best, k));
    if (a(j, j) == Complex(0)) {
      if (!info) info = int(j + 1);
      continue;
    }
    for (int64_t i = j + 1; i < a.rows; ++i) {
      a(i, j) /= a(j, j);
      for (int64_t k = j + 1; k < a.columns; ++k) a(i, k) -= a(i, j) * a(j, k);
    }
  }
  return info;
}
void lu_solve(const Plain& a, const std::vector<int64_t>& pivots, Plain& b, Taken taken) {
  const int64_t n = a.rows;
  const auto exchange = [&](int64_t i) {
    for (int64_t k = 0; k < b.columns; ++k) std::swap(b(i, k), b(pivots[size_t(i)] - 1, k));
  };
  /// Elements of L or U as they are taken.
  const auto at = [&](int64_t i, int64_t j) {
    return taken == Taken::AsTheyAre ? a(i, j) : taken == Taken::Turned ? a(j, i) : std::conj(a(j, i));
  };
  const auto forward = [&](bool one) {
    for (int64_t i = 0; i < n; ++i)
      for (int64_t k = 0; k < b.columns; ++k) {
        for (int64_t j = 0; j < i; ++j) b(i, k) -= at(i, j) * b(j, k);
        if (!one) b(i, k) /= at(i, i);
      }
  };
  const auto backward = [&](bool one) {
    for (int64_t i = n; i-- > 0;)
      for (int64_t k = 0; k < b.columns; ++k) {
        for (int64_t j = i + 1; j < n; ++j) b(i, k) -= at(i, j) * b(j, k);
        if (!one) b(i, k) /= at(i, i);
      }
  };
  if (taken == Taken::AsTheyAre) {
    for (int64_t i = 0; i < n; ++i) exchange(i);
    forward(true), backward(false);
  } else {  // A^T = U^T L^T P
    forward(false), backward(true);
    for (int64_t i = n; i-- > 0;) exchange(i);
  }
}
/// Reflectors I - tau v v^H below R, as LAPACK's geqrf makes them.
void reflect(Plain& a, std::vector<Complex>& taus) {
  for (int64_t j = 0; j < int64_t(taus.size()); ++j) {
    double below = 0;
    for (int64_t i = j + 1; i < a.rows; ++i) below += std::norm(a(i, j));
    const Complex alpha = a(j, j);
    if (below == 0 && alpha.imag() == 0) continue;  // tau is 0
    const double beta = -std::copysign(std::sqrt(std::norm(alpha) + below), alpha.real());
    const Complex tau = (beta - alpha) / beta;
    taus[size_t(j)] = tau;
    for (int64_t i = j + 1; i < a.rows; ++i) a(i, j) /= alpha - beta;
    a(j, j) = beta;
    for (int64_t k = j + 1; k < a.columns; ++k) {  // by the adjoint
      Complex sum = a(j, k);
      for (int64_t i = j + 1; i < a.rows; ++i) sum += std::conj(a(i, j)) * a(i, k);
      sum *= std::conj(tau);
      a(j, k) -= sum;
      for (int64_t i = j + 1; i < a.rows; ++i) a(i, k) -= a(i, j) * sum;
    }
  }
}
/// The first columns of the product of all reflectors, in the place of what held them.
void orthogonal(Plain& a, const std::vector<Complex>& taus) {
  const Plain v = a;
  a = identity(a.rows, a.columns);
  for (int64_t j = int64_t(taus.size()); j-- > 0;)
    for (int64_t k = 0; k < a.columns; ++k) {
      Complex sum = a(j, k);
      for (int64_t i = j + 1; i < a.rows; ++i) sum += std::conj(v(i, j)) * a(i, k);
      sum *= taus[size_t(j)];
      a(j, k) -= sum;
      for (int64_t i = j + 1; i < a.rows; ++i) a(i, k) -= v(i, j) * sum;
    }
}
/// One-sided Jacobi: turns pairs of columns until all are orthogonal, and those of `v` with them. 0 when that is so.
int orthogonalize(Plain& a, Plain& v) {
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    bool turned = false;
    for (int64_t p = 0; p < a.columns; ++p)
      for (int64_t q = p + 1; q < a.columns; ++q) {
        const double x = inner(a, p, p).real(), y = inner(a, q, q).real();
        const Complex between = inner(a, p, q);
        if (std::abs(between) <= 1e-15 * std::sqrt(x * y)) continue;
        turned = true;
        const Complex phase = between / std::abs(between);
        const double zeta = (y - x) / (2 * std::abs(between));
        const double t = std::copysign(1.0, zeta) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta));
        const double c = 1 / std::sqrt(1 + t * t), s = c * t;
        for (Plain* m : {&a, &v})
          for (int64_t i = 0; i < m->rows; ++i) {
            const Complex l = (*m)(i, p), r = (*m)(i, q) * std::conj(phase);
            (*m)(i, p) = c * l - s * r;
            (*m)(i, q) = s * l + c * r;
          }
      }
    if (!turned) return 0;
  }
  return 1;
}
/// Columns from `first` on, orthogonal to those before: of unit vectors what is left without them.
void complete(Plain& u, int64_t first) {
  int64_t unit = 0;
  for (int64_t j = first; j < u.columns; ++j)
    for (bool found = false; !found && unit < u.rows; ++unit) {
      for (int64_t i = 0; i < u.rows; ++i) u(i, j) = i == unit;
      for (int again = 0; again < 2; ++again)
        for (int64_t k = 0; k < j; ++k) {
          const Complex part = inner(u, k, j);
          for (int64_t i = 0; i < u.rows; ++i) u(i, j) -= part * u(i, k);
        }
      const double length = std::sqrt(inner(u, j, j).real());
      found = length > 1e-3;
      for (int64_t i = 0; i < u.rows; ++i) u(i, j) /= found ? length : 1;
    }
}
int singular_values(Plain& a, Plain& u, std::vector<double>& s, Plain& vh) {
  Plain v = identity(a.columns, a.columns);
  const int info = orthogonalize(a, v);
  std::vector<int64_t> order(static_cast<size_t>(a.columns));
  std::vector<double> lengths;
  for (int64_t j = 0; j < a.columns; ++j) lengths.push_back(std::sqrt(inner(a, j, j).real()));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, std::greater<>(), [&](int64_t j) { return lengths[size_t(j)]; });
  int64_t whole = 0;  // columns that have a direction
  for (int64_t j = 0; j < a.columns; ++j) {
    const int64_t from = order[size_t(j)];
    s[size_t(j)] = lengths[size_t(from)];
    for (int64_t i = 0; i < vh.columns; ++i) vh(j, i) = std::conj(v(i, from));
    if (s[size_t(j)] > 1e-14 * s[0] && ++whole)
      for (int64_t i = 0; i < u.rows; ++i) u(i, j) = a(i, from) / s[size_t(j)];
  }
  complete(u, whole);
  return info;
}
/// Eigenvalues in rising order and vectors, by two-sided Jacobi.
int eigenvalues(Plain& a, bool upper, std::vector<double>& values) {
  const int64_t n = a.rows;
  for (int64_t j = 0; j < n; ++j) {
    a(j, j) = a(j, j).real();
    for (int64_t i = j + 1; i < n; ++i) (upper ? a(i, j) : a(j, i)) = std::conj(upper ? a(j, i) : a(i, j));
  }
  Plain v = identity(n, n);
  int info = 1;
  for (int sweep = 0; sweep < kSweeps && info; ++sweep) {
    info = 0;
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) {
        const Complex between = a(p, q);
        if (std::abs(between) <= 1e-16 * std::sqrt(std::abs(a(p, p) * a(q, q))) || std::abs(between) < 1e-150) continue;
        info = 1;
        const Complex phase = between / std::abs(between);
        const double zeta = (a(q, q) - a(p, p)).real() / (2 * std::abs(between));
        const double t = std::copysign(1.0, zeta) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta));
        const double c = 1 / std::sqrt(1 + t * t), s = c * t;
        for (Plain* m : {&a, &v})
          for (int64_t i = 0; i < n; ++i) {
            const Complex l = (*m)(i, p), r = (*m)(i, q) * std::conj(phase);
            (*m)(i, p) = c * l - s * r;
            (*m)(i, q) = s * l + c * r;
          }
        for (int64_t i = 0; i < n; ++i) {
          const Complex l = a(p, i), r = a(q, i) * phase;
          a(p, i) = c * l - s * r;
          a(q, i) = s * l + c * r;
        }
      }
  }
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::less<>(), [&](int64_t j) { return a(j, j).real(); });
  for (int64_t j = 0; j < n; ++j) values[size_t(j)] = a(order[size_t(j)], order[size_t(j)]).real();
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < n; ++i) a(i, j) = v(i, order[size_t(j)]);
  return info;
}

/// What lies at the device, read and written.
class Memory {
 public:
  explicit Memory(const Factoring& t) : t_(t) {}
  Plain read(const Factoring::Matrix& m, int64_t i) const {
    Plain made(m.rows, m.columns);
    for (size_t k = 0; k < made.elements.size(); ++k) {
      const Complex128 found = load<Complex128>(Array{m.data, t_.dtype, 0}, i * m.step + int64_t(k));
      made.elements[k] = {found.re, found.im};
    }
    return made;
  }
  void write(const Factoring::Matrix& m, int64_t i, const Plain& from) const {
    for (size_t k = 0; k < from.elements.size(); ++k)
      store<Complex128>(Array{m.data, t_.dtype, 0}, i * m.step + int64_t(k),
                        Complex128(from.elements[k].real(), from.elements[k].imag()));
  }
  Array beside(int dtype) const { return {t_.beside, dtype, 0}; }
  int real() const { return t_.dtype == TAEDA_FLOAT64 || t_.dtype == TAEDA_COMPLEX128 ? TAEDA_FLOAT64 : TAEDA_FLOAT32; }

 private:
  const Factoring& t_;
};

int64_t item_size(int dtype) { return dtype == TAEDA_FLOAT32 ? 4 : dtype == TAEDA_COMPLEX128 ? 16 : 8; }

int factor_one(const Factoring& t, int64_t i) {
  const Memory memory(t);
  const int64_t first = i * t.beside_step, least = std::min(t.a.rows, t.a.columns);
  Plain a = memory.read(t.a, i);
  int info = 0;
  switch (t.kind) {
    case Factored::Cholesky:
      if (t.batch > 1 &&
          load<int64_t>(Array{t.pointers, TAEDA_INT64, 0}, i) != int64_t(t.a.data) + i * t.a.step * item_size(t.dtype))
        return -1;
      info = cholesky(a, t.upper);
      break;
    case Factored::Lu: {
      std::vector<int64_t> pivots(static_cast<size_t>(least));
      info = lu(a, pivots);
      for (int64_t k = 0; k < least; ++k) store<int64_t>(memory.beside(TAEDA_INT64), first + k, pivots[size_t(k)]);
      break;
    }
    case Factored::LuSolution: {
      std::vector<int64_t> pivots;
      for (int64_t k = 0; k < t.a.rows; ++k) pivots.push_back(load<int64_t>(memory.beside(TAEDA_INT64), first + k));
      Plain b = memory.read(t.b, i);
      lu_solve(a, pivots, b, t.taken);
      memory.write(t.b, i, b);
      return 0;
    }
    case Factored::Reflectors: {
      std::vector<Complex> taus(static_cast<size_t>(least));
      reflect(a, taus);
      for (int64_t k = 0; k < least; ++k)
        store<Complex128>(memory.beside(t.dtype), first + k,
                          Complex128(taus[size_t(k)].real(), taus[size_t(k)].imag()));
      break;
    }
    case Factored::Orthogonal: {
      std::vector<Complex> taus;
      for (int64_t k = 0; k < t.reflectors; ++k) {
        const Complex128 tau = load<Complex128>(memory.beside(t.dtype), first + k);
        taus.emplace_back(tau.re, tau.im);
      }
      orthogonal(a, taus);
      break;
    }
    case Factored::Eigenvalues: {
      std::vector<double> values(static_cast<size_t>(t.a.rows));
      info = eigenvalues(a, t.upper, values);
      for (int64_t k = 0; k < t.a.rows; ++k) store<double>(memory.beside(memory.real()), first + k, values[size_t(k)]);
      if (!t.vectors) std::ranges::fill(a.elements, Complex(std::nan(""), std::nan("")));  // what was there is lost
      break;
    }
    case Factored::SingularValues: {
      std::vector<double> values(static_cast<size_t>(least));
      Plain u(t.a.rows, t.vectors ? t.b.columns : least), vh(least, t.a.columns);
      info = singular_values(a, u, values, vh);
      for (int64_t k = 0; k < least; ++k) store<double>(memory.beside(memory.real()), first + k, values[size_t(k)]);
      if (t.vectors) memory.write(t.b, i, u), memory.write(t.c, i, vh);
      std::ranges::fill(a.elements, Complex(std::nan(""), std::nan("")));
      break;
    }
  }
  memory.write(t.a, i, a);
  return info;
}

}  // namespace

bool factors_on_host(const Factoring& t) {
  return t.dtype == TAEDA_FLOAT32 || t.dtype == TAEDA_FLOAT64 || t.dtype == TAEDA_COMPLEX64 ||
         t.dtype == TAEDA_COMPLEX128;
}
bool is_valid(const Factoring& t) {
  const auto apart = [&](const Factoring::Matrix& m, bool shared) {
    return m.rows > 0 && m.columns > 0 && (m.step >= m.rows * m.columns || (shared && m.step == 0) || t.batch == 1);
  };
  if (t.batch < 1 || !apart(t.a, t.kind == Factored::LuSolution)) return false;
  const bool square = t.a.rows == t.a.columns;
  switch (t.kind) {
    case Factored::Cholesky:
    case Factored::Eigenvalues: return square;
    case Factored::Lu:
    case Factored::Reflectors: return t.beside_step >= std::min(t.a.rows, t.a.columns) || t.batch == 1;
    case Factored::LuSolution: return square && apart(t.b, false) && t.b.rows == t.a.rows;
    case Factored::Orthogonal: return t.a.rows >= t.a.columns && t.reflectors <= t.a.columns && t.reflectors >= 0;
    case Factored::SingularValues: {
      const int64_t n = t.a.columns;
      if (t.a.rows < n) return false;
      if (!t.vectors) return true;
      return apart(t.b, false) && apart(t.c, false) && t.b.rows == t.a.rows && t.c.rows == n && t.c.columns == n &&
             (t.b.columns == n || t.b.columns == t.a.rows);
    }
  }
  return false;
}
void factor_on_host(const Factoring& t, uint64_t shift) {
  simulated_shift = shift;
  for (int64_t i = 0; i < t.batch; ++i) store<int64_t>(Array{t.infos, TAEDA_INT32, 0}, i, factor_one(t, i));
  simulated_shift = 0;
}

}  // namespace taeda::cuda
