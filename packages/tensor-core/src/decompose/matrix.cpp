// Functions of matrices by products of them.
#include <cmath>

#include "decompose/common.h"
#include "taeda/wrappers.h"

namespace taeda::decompose {
namespace {

/// exp(A) by Taylor's polynomial of degree 16 of A / 2^s, squared s times. Up to the bound its relative error is below
/// the dtype's precision (Al-Mohy and Higham, "Computing the Action of the Matrix Exponential", 2011, table 3.1).
Tensor linalg_matrix_exp(const Tensor& self) {
  if (self.numel() == 0) return ops::clone(self);
  const bool single = self.dtype() == DType::Float32 || self.dtype() == DType::Complex64;
  const Tensor norm = ops::amax(ops::sum(ops::abs(self), Shape{-2}), Shape{-1}, false);
  const Tensor wanted = ops::clamp_min(ops::ceil(ops::log2(norm / Tensor(single ? 2.0 : 0.6))), Tensor(0.0));
  // Numbers that are none stay so without it.
  const Tensor times = ops::where(ops::isfinite(norm), wanted, Tensor(0.0));
  const Tensor most = ops::to_device(ops::to_dtype(ops::amax(times, Shape{}, false), DType::Float64), Device{});
  const Tensor shrink = ops::exp2(-times);
  const Tensor a = self * ops::unsqueeze(ops::unsqueeze(shrink, -1), -1);
  const Tensor a2 = ops::matmul(a, a), a3 = ops::matmul(a2, a), a4 = ops::matmul(a2, a2);
  const Tensor one = ops::eye(self.size(-1), std::nullopt, self.dtype(), stated_device(self));
  double factors[17] = {1};
  for (int k = 1; k < 17; ++k) factors[k] = factors[k - 1] / k;
  const auto part = [&](int k) {
    return one * Tensor(factors[k]) + a * Tensor(factors[k + 1]) + a2 * Tensor(factors[k + 2]) +
           a3 * Tensor(factors[k + 3]);
  };
  Tensor sum = part(12) + a4 * Tensor(factors[16]);
  for (int k = 8; k >= 0; k -= 4) sum = part(k) + ops::matmul(a4, sum);
  const Tensor turns = ops::unsqueeze(ops::unsqueeze(times, -1), -1);
  for (double k = 0; k < most.data<double>()[0]; ++k)
    sum = ops::where(ops::gt(turns, Tensor(k)), ops::matmul(sum, sum), sum);
  return sum;
}
DECOMPOSE(linalg_matrix_exp)

}  // namespace
}  // namespace taeda::decompose
