// Inference of the distance family.
#include <algorithm>

#include "taeda/checked.h"
#include "taeda/ops/distance.h"
#include "infer/dtypes.h"

namespace taeda::infer {
namespace {

/// Without halves where what is greatest would be lost in their rounding.
void expect_float(const char* op, const Tensor& t, bool halves) {
  const bool known = t.dtype() == DType::Float32 || t.dtype() == DType::Float64 ||
                     (halves && (t.dtype() == DType::Float16 || t.dtype() == DType::BFloat16));
  check(known, ErrorKind::NotImplemented, op, ": not implemented for dtype ", name(t.dtype()));
}
void expect_wide(const char* op, const Tensor& t) { expect_float(op, t, false); }
Shape distance_sizes(const char* op, const Tensor& x1, const Tensor& x2) {
  for (const auto& [argument, t] : {std::pair<const char*, const Tensor&>{"x1", x1}, {"x2", x2}})
    check(t.dim() == 3, ErrorKind::Runtime, op, ": argument '", argument, "' has shape ", shape_text(t.sizes()),
          ", expected (B, rows, M)");
  expect_dtype(op, "x2", x2, x1.dtype(), "x1");
  check(x1.size(0) == x2.size(0) && x1.size(2) == x2.size(2), ErrorKind::Runtime, op, ": argument 'x2' has shape ",
        shape_text(x2.sizes()), ", expected the batch and the length of rows of 'x1' ", shape_text(x1.sizes()));
  return {x1.size(0), x1.size(1), x2.size(1)};
}
void expect_power(const char* op, double p) {
  check(p >= 0, ErrorKind::Runtime, op, ": argument 'p' must not be negative, got ", p);
}

}  // namespace

Spec cdist_forward(const Tensor& x1, const Tensor& x2, double p) {
  expect_power("cdist_forward", p);
  expect_wide("cdist_forward", x1);
  return spec(distance_sizes("cdist_forward", x1, x2), x1.dtype());
}
Spec pdist_forward(const Tensor& input, double p) {
  expect_power("pdist_forward", p);
  check(input.dim() == 2, ErrorKind::Runtime, "pdist_forward: argument 'input' has shape ", shape_text(input.sizes()),
        ", expected (N, M)");
  expect_wide("pdist_forward", input);
  const int64_t n = input.size(0);
  return spec(Shape{(Count(n) * (n - 1)).of("pdist_forward", "the pairs of 'input'") / 2}, input.dtype());
}
Spec euclidean_dist(const Tensor& x1, const Tensor& x2) {
  expect_float("euclidean_dist", x1, true);
  return spec(distance_sizes("euclidean_dist", x1, x2), x1.dtype());
}
Spec cdist_backward(const Tensor& grad, const Tensor& x1, const Tensor& x2, double p, const Tensor& distances) {
  const char* const op = "cdist_backward";
  expect_power(op, p);
  expect_wide(op, x1);
  const Shape expected = distance_sizes(op, x1, x2);
  for (const auto& [argument, t] : {std::pair<const char*, const Tensor&>{"grad", grad}, {"distances", distances}}) {
    check(std::ranges::equal(t.sizes(), IntSpan(expected)), ErrorKind::Runtime, op, ": argument '", argument,
          "' has shape ", shape_text(t.sizes()), ", expected ", shape_text(expected));
    expect_dtype(op, argument, t, x1.dtype(), "x1");
  }
  return spec(x1.sizes(), x1.dtype());
}

}  // namespace taeda::infer
