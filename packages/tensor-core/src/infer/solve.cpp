// Inference of the solve family.
#include "infer/solve.h"

#include <algorithm>

#include "taeda/ops/solve.h"

namespace taeda::infer {
namespace {

Spec info_of(const Tensor& t) { return spec(batch_of(t), DType::Int32); }
Spec pivots_of(const Tensor& t) { return spec(with_tail(batch_of(t), {t.size(-1)}), DType::Int32); }

/// The right side of systems with square matrices: its rows, without `left` its columns, fit them.
Shape system_sizes(const char* op, const char* a_name, const Tensor& a, const Tensor& B, bool left) {
  expect_matrices(op, "B", B);
  const int64_t n = a.size(-1);
  check(B.size(left ? -2 : -1) == n, ErrorKind::Runtime, op, ": argument 'B' has shape ", shape_text(B.sizes()),
        ", expected ", n, left ? " rows" : " columns", " to fit '", a_name, "' of shape ", shape_text(a.sizes()));
  return with_tail(broadcast_shapes(batch_of(a), batch_of(B), op), {B.size(-2), B.size(-1)});
}

void expect_pivots(const char* op, const Tensor& factors, const Tensor& pivots) {
  check(pivots.dtype() == DType::Int32, ErrorKind::Runtime, op, ": argument 'pivots' has dtype ", name(pivots.dtype()),
        ", expected int32");
  check(std::ranges::equal(pivots.sizes(), factors.sizes().first(size_t(factors.dim() - 1))), ErrorKind::Runtime, op,
        ": argument 'pivots' has shape ", shape_text(pivots.sizes()), ", expected ",
        shape_text(factors.sizes().first(size_t(factors.dim() - 1))), " to fit the factors of shape ",
        shape_text(factors.sizes()));
}

}  // namespace

std::array<Spec, 4> _linalg_solve_ex(const Tensor& A, const Tensor& B, bool left, bool) {
  const char* const op = "_linalg_solve_ex";
  expect_square(op, "A", A);
  expect_exact(op, "A", A);
  expect_like(op, "B", B, "A", A);
  check(B.dim() >= 1, ErrorKind::Runtime, op, ": argument 'B' has no dimension, expected at least 1");
  const bool vector = is_vector_side(A, B);
  check(left || !vector, ErrorKind::Runtime, op, ": argument 'left' is False, but 'B' of shape ", shape_text(B.sizes()),
        " is a vector for each matrix, expected matrices");
  Spec result;
  if (vector) {
    check(B.size(-1) == A.size(-1), ErrorKind::Runtime, op, ": argument 'B' has shape ", shape_text(B.sizes()),
          ", expected ", A.size(-1), " elements to fit 'A' of shape ", shape_text(A.sizes()));
    result = spec(with_tail(batch_of(A), {A.size(-1)}), A.dtype());
  } else {
    result = columns(system_sizes(op, "A", A, B, left), A.dtype());
  }
  return {result, columns(Shape(A.sizes()), A.dtype()), pivots_of(A), info_of(A)};
}

Spec linalg_lu_solve(const Tensor& LU, const Tensor& pivots, const Tensor& B, bool left, bool) {
  const char* const op = "linalg_lu_solve";
  expect_square(op, "LU", LU);
  expect_exact(op, "LU", LU);
  expect_like(op, "B", B, "LU", LU);
  expect_pivots(op, LU, pivots);
  return columns(system_sizes(op, "LU", LU, B, left), LU.dtype());
}

Spec linalg_ldl_solve(const Tensor& LD, const Tensor& pivots, const Tensor& B, bool) {
  const char* const op = "linalg_ldl_solve";
  expect_square(op, "LD", LD);
  expect_exact(op, "LD", LD);
  expect_like(op, "B", B, "LD", LD);
  expect_pivots(op, LD, pivots);
  return columns(system_sizes(op, "LD", LD, B, true), LD.dtype());
}

Spec linalg_solve_triangular(const Tensor& self, const Tensor& B, bool, bool left, bool) {
  const char* const op = "linalg_solve_triangular";
  expect_square(op, "self", self);
  expect_exact(op, "self", self);  // B is taken in its dtype
  return columns(system_sizes(op, "self", self, B, left), self.dtype());
}

std::array<Spec, 2> linalg_inv_ex(const Tensor& A, bool) {
  expect_square("linalg_inv_ex", "A", A);
  expect_exact("linalg_inv_ex", "A", A);
  return {columns(Shape(A.sizes()), A.dtype()), info_of(A)};
}

std::array<Spec, 3> _linalg_det(const Tensor& A) {
  expect_square("_linalg_det", "A", A);
  expect_exact("_linalg_det", "A", A);
  return {spec(batch_of(A), A.dtype()), columns(Shape(A.sizes()), A.dtype()), pivots_of(A)};
}

std::array<Spec, 4> _linalg_slogdet(const Tensor& A) {
  expect_square("_linalg_slogdet", "A", A);
  expect_exact("_linalg_slogdet", "A", A);
  return {spec(batch_of(A), A.dtype()), spec(batch_of(A), real_of(A.dtype())), columns(Shape(A.sizes()), A.dtype()),
          pivots_of(A)};
}

Spec _linalg_pinv(const Tensor& self, const Tensor& atol, const Tensor& rtol, bool hermitian) {
  const char* const op = "_linalg_pinv";
  if (hermitian) expect_square(op, "self", self);
  else expect_matrices(op, "self", self);
  expect_exact(op, "self", self);
  for (const auto& [argument, bound] : {std::pair("atol", &atol), std::pair("rtol", &rtol)})
    check(!bound->defined() || !is_complex(bound->dtype()), ErrorKind::Runtime, op, ": argument '", argument,
          "' has a complex dtype, expected real numbers");
  Shape batch(batch_of(self));
  for (const Tensor* bound : {&atol, &rtol})
    if (bound->defined()) batch = broadcast_shapes(batch, bound->sizes(), op);
  return columns(with_tail(batch, {self.size(-1), self.size(-2)}), self.dtype());
}

void linalg_lstsq(const Tensor& self, const Tensor& b, std::optional<double>, std::optional<std::string_view> driver) {
  const char* const op = "linalg_lstsq";
  expect_matrices(op, "self", self);
  expect_exact(op, "self", self);
  check(b.dim() >= 1, ErrorKind::Runtime, op, ": argument 'b' has no dimension, expected at least 1");
  expect_like(op, "b", b, "self", self);
  const bool vector = is_vector_side(self, b);
  const int64_t rows = vector ? -1 : -2;
  check(b.dim() >= -rows && b.size(rows) == self.size(-2), ErrorKind::Runtime, op, ": argument 'b' has shape ",
        shape_text(b.sizes()), ", expected ", self.size(-2), " rows to fit 'self' of shape ", shape_text(self.sizes()));
  broadcast_shapes(batch_of(self), batch_of(b, vector ? 1 : 2), op);
  check(!driver || *driver == "gels" || *driver == "gelsy" || *driver == "gelsd" || *driver == "gelss",
        ErrorKind::Runtime, op, ": argument 'driver' is '", driver.value_or(""),
        "', expected 'gels', 'gelsy', 'gelsd' or 'gelss'");
}
std::array<Spec, 4> lstsq_results(const Tensor& self, const Tensor& b, std::optional<std::string_view> driver) {
  const std::string_view routine = driver.value_or("gelsy");
  const bool vector = is_vector_side(self, b), values = routine == "gelsd" || routine == "gelss";
  const int64_t m = self.size(-2), n = self.size(-1), sides = vector ? 1 : b.size(-1);
  const Shape batch = broadcast_shapes(batch_of(self), batch_of(b, vector ? 1 : 2), "linalg_lstsq");
  const DType real = real_of(self.dtype());
  return {vector ? spec(with_tail(batch, {n}), self.dtype()) : columns(with_tail(batch, {n, sides}), self.dtype()),
          spec(m > n && routine != "gelsy" ? with_tail(batch, {sides}) : Shape{0}, real),
          spec(routine == "gels" ? Shape{0} : Shape(batch_of(self)), DType::Int64),
          spec(values ? with_tail(batch_of(self), {std::min(m, n)}) : Shape{0}, real)};
}

namespace {

std::tuple<Tensor, Tensor, Tensor, Tensor> lstsq_meta(const Tensor& self, const Tensor& b, std::optional<double>,
                                                      std::optional<std::string_view> driver) {
  const auto [solution, residuals, rank, values] = lstsq_results(self, b, driver);
  const auto made = [&](const Spec& s) {
    return s.strides.empty() ? empty(s.sizes, s.dtype, self.device())
                             : empty_strided(s.sizes, s.strides, s.dtype, self.device());
  };
  return {made(solution), made(residuals), made(rank), made(values)};
}
const bool registered = [] {
  kernel<op::linalg_lstsq>(kMeta, lstsq_meta);
  return true;
}();

}  // namespace

}  // namespace taeda::infer
