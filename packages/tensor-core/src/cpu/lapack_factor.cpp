// CPU kernels of the factor family.
#include "cpu/matrices.h"
#include "taeda/dispatch.h"
#include "taeda/ops/factor.h"

namespace taeda {
namespace {

using namespace cpu;

/// The number of matrices that an output (..., m, n) or (..., n) holds.
int64_t count_of(const Tensor& t, int64_t tail) { return product(t.sizes().first(size_t(t.dim() - tail))); }

void cholesky_kernel(const Tensor& L, const Tensor& info, const Tensor& self, bool upper, bool check_errors) {
  const char* const op = "linalg_cholesky_ex";
  expect_countable(op, self);
  const Target infos(info);
  const int64_t n = self.size(-1), count = count_of(self, 2);
  visit_exact(self.dtype(), [&]<class T>() {
    const Stack<T> from(self), to(L);
    each_matrix(count, double(n) * double(n) * double(n) / 3, [&](int64_t begin, int64_t end) {
      lapack::Room<T> room;
      for (int64_t i = begin; i < end; ++i) {
        const Columns<T> factor(to[i], room);
        const Strided<T> source = from[i];
        copy_elements(source, factor.matrix());
        for (int64_t j = 0; j < n; ++j) {
          if (upper) std::fill_n(&factor.at(0, j) + j + 1, n - j - 1, T(0));
          else std::fill_n(&factor.at(0, j), j, T(0));
        }
        infos.data<int>()[i] = lapack::potrf(upper, int(n), factor.data(), factor.ld());
        factor.store();
      }
    });
  });
  if (check_errors)
    check_infos(op, infos.data<int>(), count, self.dim() == 2, [](int order) {
      return "The factorization could not be completed because the input is not positive-definite (the leading minor "
             "of order " +
             std::to_string(order) + " is not positive-definite).";
    });
  infos.finish();
}

void lu_kernel(const Tensor& LU, const Tensor& pivots, const Tensor& info, const Tensor& A, bool, bool check_errors) {
  const char* const op = "linalg_lu_factor_ex";
  expect_countable(op, A);
  const Target infos(info), exchanges(pivots);
  const int64_t m = A.size(-2), n = A.size(-1), k = std::min(m, n), count = count_of(A, 2);
  visit_exact(A.dtype(), [&]<class T>() {
    const Stack<T> from(A), to(LU);
    each_matrix(count, double(m) * double(n) * double(k), [&](int64_t begin, int64_t end) {
      lapack::Room<T> room;
      for (int64_t i = begin; i < end; ++i) {
        const Columns<T> factors(to[i], room);
        copy_elements(from[i], factors.matrix());
        infos.data<int>()[i] =
            lapack::getrf(int(m), int(n), factors.data(), factors.ld(), exchanges.data<int>() + i * k);
        factors.store();
      }
    });
  });
  if (check_errors)
    check_infos(op, infos.data<int>(), count, A.dim() == 2, [](int at) {
      const std::string place = std::to_string(at);
      return "U[" + place + "," + place + "] is zero and using it on lu_solve would result in a division by zero. If " +
             "you still want to perform the factorization, consider calling linalg.lu(A, pivot) or " +
             "linalg.lu_factor_ex(A, pivot)";
    });
  exchanges.finish();
  infos.finish();
}

void ldl_kernel(const Tensor& LD, const Tensor& pivots, const Tensor& info, const Tensor& self, bool hermitian,
                bool check_errors) {
  const char* const op = "linalg_ldl_factor_ex";
  lapack::expect_routines(op);
  expect_countable(op, self);
  const Target infos(info), exchanges(pivots);
  const int64_t n = self.size(-1), count = count_of(self, 2);
  visit_exact(self.dtype(), [&]<class T>() {
    const Stack<T> from(self), to(LD);
    each_matrix(count, double(n) * double(n) * double(n) / 3, [&](int64_t begin, int64_t end) {
      Rooms<T> rooms;
      for (int64_t i = begin; i < end; ++i) {
        const Columns<T> factors(to[i], rooms.more);
        copy_elements(from[i], factors.matrix());
        for (int64_t j = 0; j < n; ++j) std::fill_n(&factors.at(0, j), j, T(0));
        infos.data<int>()[i] = n == 0 ? 0
                                      : lapack::sytrf(hermitian, int(n), factors.data(), factors.ld(),
                                                      exchanges.data<int>() + i * n, rooms);
        factors.store();
      }
    });
  });
  if (check_errors)
    check_infos(op, infos.data<int>(), count, self.dim() == 2, [](int at) {
      return "D[" + std::to_string(at) + "," + std::to_string(at) + "] of the factors is zero: the matrix is singular";
    });
  exchanges.finish();
  infos.finish();
}

void geqrf_kernel(const Tensor& a, const Tensor& tau, const Tensor& self) {
  expect_countable("geqrf", self);
  const Target factors_of(tau);
  const int64_t m = self.size(-2), n = self.size(-1), k = std::min(m, n);
  visit_exact(self.dtype(), [&]<class T>() {
    const Stack<T> from(self), to(a);
    each_matrix(count_of(self, 2), 2.0 * double(m) * double(n) * double(k), [&](int64_t begin, int64_t end) {
      Rooms<T> rooms;
      for (int64_t i = begin; i < end; ++i) {
        const Columns<T> reflectors(to[i], rooms.more);
        copy_elements(from[i], reflectors.matrix());
        lapack::geqrf(int(m), int(n), reflectors.data(), reflectors.ld(), factors_of.data<T>() + i * k, rooms);
        reflectors.store();
      }
    });
  });
  factors_of.finish();
}

/// Q (absent for mode "r") and R of one matrix.
template <class T>
void qr_of(const Strided<T>& from, const Strided<T>* q, const Strided<T>& r, Rooms<T>& rooms, lapack::Room<T>& tau,
           lapack::Room<T>& wide) {
  const int64_t m = from.rows, n = from.columns, k = std::min(m, n), width = q ? std::max(q->columns, n) : n;
  T* const factors = tau.get(std::max<int64_t>(1, k));
  // Where Q has room for all columns, it is made in its place.
  const bool in_place = q && q->columns == width && q->by_columns();
  const Strided<T> all{in_place ? q->data : wide.get(std::max<int64_t>(1, m * width)), m, width, 1,
                       in_place ? q->leading() : std::max<int64_t>(1, m)};
  copy_elements(from, {all.data, m, n, 1, all.across});
  lapack::geqrf(int(m), int(n), all.data, int(all.across), factors, rooms);
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < r.rows; ++i) r.at(i, j) = i <= j && i < k ? all.at(i, j) : T(0);
  if (!q) return;
  lapack::orgqr(int(m), int(q->columns), int(k), all.data, int(all.across), factors, rooms);
  if (!in_place) copy_elements({all.data, m, q->columns, 1, all.across}, *q);
}

void qr_kernel(const Tensor& Q, const Tensor& R, const Tensor& A, std::string_view mode) {
  expect_countable("linalg_qr", A);
  const int64_t m = A.size(-2), n = A.size(-1), k = std::min(m, n);
  const bool with_q = mode != "r";
  visit_exact(A.dtype(), [&]<class T>() {
    const Stack<T> from(A), right(R);
    const Stack<T> left(with_q ? Q : R);
    each_matrix(count_of(A, 2), 4.0 * double(m) * double(n) * double(k), [&](int64_t begin, int64_t end) {
      Rooms<T> rooms;
      lapack::Room<T> tau, wide;
      for (int64_t i = begin; i < end; ++i) {
        const Strided<T> q = left[i];
        qr_of(from[i], with_q ? &q : nullptr, right[i], rooms, tau, wide);
      }
    });
  });
}

void permutation_kernel(const Tensor& out, const Tensor& pivots, int64_t n) {
  const Target target(out);
  const Tensor exchanges = row_major(pivots);
  const int64_t k = pivots.size(-1);
  for (int64_t b = 0; b < count_of(out, 1); ++b) {
    int64_t* const rows = target.data<int64_t>() + b * n;
    const int* const with = exchanges.data<int>() + b * k;
    for (int64_t i = 0; i < n; ++i) rows[i] = i;
    for (int64_t i = 0; i < k; ++i) {
      check(with[i] >= 1 && with[i] <= n, ErrorKind::Runtime, "_pivots_to_permutation: argument 'pivots' has ", with[i],
            ", expected numbers from 1 to ", n);
      std::swap(rows[i], rows[with[i] - 1]);
    }
  }
  target.finish();
}

const bool registered = [] {
  kernel<op::linalg_cholesky_ex>(kCPU, cholesky_kernel);
  kernel<op::linalg_lu_factor_ex>(kCPU, lu_kernel);
  kernel<op::linalg_ldl_factor_ex>(kCPU, ldl_kernel);
  kernel<op::geqrf>(kCPU, geqrf_kernel);
  kernel<op::linalg_qr>(kCPU, qr_kernel);
  kernel<op::_pivots_to_permutation>(kCPU, permutation_kernel);
  return true;
}();

}  // namespace
}  // namespace taeda
