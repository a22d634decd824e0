// CPU kernels of the spectra family.
#include "cpu/matrices.h"
#include "infer/matrices.h"
#include "taeda/dispatch.h"
#include "taeda/ops/spectra.h"

namespace taeda {
namespace {

using namespace cpu;
using infer::batch_of;

/// What a spectrum that was not found is told by; infinities and NaN are kept from LAPACK, some of whose iterations
/// they never end.
constexpr int kNotFinite = -1;

std::string not_found(int info, const char* values) {
  if (info == kNotFinite)
    return "The algorithm failed to converge because the input matrix contained non-finite values.";
  return std::string(
             "The algorithm failed to converge because the input matrix is ill-conditioned or has too many "
             "repeated ") +
         values + " (error code: " + std::to_string(info) + ").";
}

void eigh_kernel(const Tensor& values, const Tensor& vectors, const Tensor& A, std::string_view UPLO, bool compute_v) {
  const char* const op = "_linalg_eigh";
  lapack::expect_routines(op);
  expect_countable(op, A);
  const Target found(values);
  const bool upper = UPLO == "U" || UPLO == "u";
  const int64_t n = A.size(-1), count = product(batch_of(A));
  std::vector<int> infos(static_cast<size_t>(count));
  visit_exact(A.dtype(), [&]<class T>() {
    const Stack<T> from(A), to(compute_v ? vectors : A);
    each_matrix(count, 8 * double(n) * double(n) * double(n), [&](int64_t begin, int64_t end) {
      Rooms<T> rooms;
      for (int64_t i = begin; i < end; ++i) {
        const Strided<T> source = from[i];
        const Columns<T> work(compute_v ? to[i] : Strided<T>{rooms.more.get(n * n), n, n, 1, n}, rooms.more);
        copy_elements(source, work.matrix());
        for (int64_t j = 0; j < n; ++j) {  // the triangle that is not read may hold anything
          if (upper) std::fill_n(&work.at(0, j) + j + 1, n - j - 1, T(0));
          else std::fill_n(&work.at(0, j), j, T(0));
        }
        infos[size_t(i)] = !all_finite(work.matrix()) ? kNotFinite
                                                      : lapack::syevd(compute_v, upper, int(n), work.data(), work.ld(),
                                                                      found.data<Real<T>>() + i * n, rooms);
        if (compute_v) work.store();
      }
    });
  });
  check_infos(op, infos.data(), count, A.dim() == 2, [](int info) { return not_found(info, "eigenvalues"); });
  found.finish();
}

void eig_kernel(const Tensor& values, const Tensor& vectors, const Tensor& self, bool with_vectors) {
  const char* const op = "_linalg_eig";
  lapack::expect_routines(op);
  expect_countable(op, self);
  const Target found(values);
  const int64_t n = self.size(-1), count = product(batch_of(self));
  std::vector<int> infos(static_cast<size_t>(count));
  visit_exact(self.dtype(), [&]<class T>() {
    using C = std::complex<Real<T>>;
    const Stack<T> from(self);
    const Tensor& shown = with_vectors ? vectors : values;
    const Stack<C> to(shown, with_vectors ? 2 : 1);
    each_matrix(count, 20 * double(n) * double(n) * double(n), [&](int64_t begin, int64_t end) {
      Rooms<T> rooms;
      lapack::Room<T> room;
      lapack::Room<C> vectors_room;
      for (int64_t i = begin; i < end; ++i) {
        const Strided<T> work{room.get(n * n), n, n, 1, n};
        copy_elements(from[i], work);
        if (!all_finite(work)) {
          infos[size_t(i)] = kNotFinite;
          continue;
        }
        C* const at = found.data<C>() + i * n;
        if (with_vectors) {
          const Columns<C> target(to[i], vectors_room);
          infos[size_t(i)] = lapack::geev(int(n), work.data, int(n), at, target.data(), target.ld(), rooms);
          target.store();
        } else {
          infos[size_t(i)] = lapack::geev<T>(int(n), work.data, int(n), at, nullptr, int(n), rooms);
        }
      }
    });
  });
  for (const int info : infos)
    check(info != kNotFinite, ErrorKind::Runtime, op,
          ": argument 'self' contains infinities or NaN, expected finite "
          "numbers");
  check_infos(op, infos.data(), count, self.dim() == 2, [](int info) { return not_found(info, "eigenvalues"); });
  found.finish();
}

void svd_kernel(const Tensor& U, const Tensor& S, const Tensor& Vh, const Tensor& A, bool full_matrices,
                bool compute_uv, std::optional<std::string_view>) {
  const char* const op = "_linalg_svd";
  lapack::expect_routines(op);
  expect_countable(op, A);
  const Target found(S);
  const int64_t m = A.size(-2), n = A.size(-1), k = std::min(m, n), count = product(batch_of(A));
  const char job = !compute_uv ? 'N' : full_matrices ? 'A' : 'S';
  std::vector<int> infos(static_cast<size_t>(count));
  visit_exact(A.dtype(), [&]<class T>() {
    const Stack<T> from(A), left(compute_uv ? U : A), right(compute_uv ? Vh : A);
    each_matrix(count, 10 * double(m) * double(n) * double(k), [&](int64_t begin, int64_t end) {
      Rooms<T> rooms;
      lapack::Room<T> room, u_room, v_room;
      for (int64_t i = begin; i < end; ++i) {
        if (k == 0) {  // vectors of nothing: the identity
          for (const Strided<T>& q : {left[i], right[i]})
            for (int64_t j = 0; compute_uv && j < q.columns; ++j)
              for (int64_t row = 0; row < q.rows; ++row) q.at(row, j) = T(row == j);
          continue;
        }
        const Strided<T> work{room.get(m * n), m, n, 1, m};
        copy_elements(from[i], work);
        if (!all_finite(work)) {
          infos[size_t(i)] = kNotFinite;
          continue;
        }
        Real<T>* const s = found.data<Real<T>>() + i * k;
        if (!compute_uv) {
          infos[size_t(i)] = lapack::gesdd<T>(job, int(m), int(n), work.data, int(m), s, nullptr, 1, nullptr, 1, rooms);
          continue;
        }
        const Columns<T> u(left[i], u_room), v(right[i], v_room);
        infos[size_t(i)] =
            lapack::gesdd(job, int(m), int(n), work.data, int(m), s, u.data(), u.ld(), v.data(), v.ld(), rooms);
        u.store();
        v.store();
      }
    });
  });
  check_infos(op, infos.data(), count, A.dim() == 2, [](int info) { return not_found(info, "singular values"); });
  found.finish();
}

const bool registered = [] {
  kernel<op::_linalg_eigh>(kCPU, eigh_kernel);
  kernel<op::_linalg_eig>(kCPU, eig_kernel);
  kernel<op::_linalg_svd>(kCPU, svd_kernel);
  return true;
}();

}  // namespace
}  // namespace taeda
