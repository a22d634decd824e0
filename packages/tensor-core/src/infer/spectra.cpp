// Inference of the spectra family.
#include <algorithm>

#include "infer/matrices.h"
#include "taeda/ops/spectra.h"

namespace taeda::infer {

std::array<Spec, 2> _linalg_eig(const Tensor& self, bool vectors) {
  expect_square("_linalg_eig", "self", self);
  expect_exact("_linalg_eig", "self", self);
  const DType dtype = complex_of(self.dtype());
  return {spec(self.sizes().first(size_t(self.dim() - 1)), dtype),
          vectors ? columns(Shape(self.sizes()), dtype) : spec(Shape{0}, dtype)};
}

std::array<Spec, 2> _linalg_eigh(const Tensor& A, std::string_view UPLO, bool compute_v) {
  expect_square("_linalg_eigh", "A", A);
  expect_exact("_linalg_eigh", "A", A);
  check(UPLO == "L" || UPLO == "U" || UPLO == "l" || UPLO == "u", ErrorKind::Runtime,
        "_linalg_eigh: argument 'UPLO' is '", UPLO, "', expected 'L' or 'U'");
  return {spec(A.sizes().first(size_t(A.dim() - 1)), real_of(A.dtype())),
          compute_v ? columns(Shape(A.sizes()), A.dtype()) : spec(Shape{0}, A.dtype())};
}

std::array<Spec, 3> _linalg_svd(const Tensor& A, bool full_matrices, bool compute_uv,
                                std::optional<std::string_view> driver) {
  expect_matrices("_linalg_svd", "A", A);
  expect_exact("_linalg_svd", "A", A);
  check(!driver || A.device().backend != kCPU, ErrorKind::Runtime, "_linalg_svd: argument 'driver' is '",
        driver.value_or(""), "', expected None on the cpu, which has no choice");
  const int64_t m = A.size(-2), n = A.size(-1), k = std::min(m, n);
  const IntSpan batch = batch_of(A);
  const Spec none = spec(Shape{0}, A.dtype());
  return {compute_uv ? columns(with_tail(batch, {m, full_matrices ? m : k}), A.dtype()) : none,
          spec(with_tail(batch, {k}), real_of(A.dtype())),
          compute_uv ? columns(with_tail(batch, {full_matrices ? n : k, n}), A.dtype()) : none};
}

}  // namespace taeda::infer
