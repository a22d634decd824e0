// CPU kernels of the unary family; those of plain lines follow from scalar/unary.inc.
#include "taeda/ops/unary.h"

#include <cmath>

#include "infer/dtypes.h"

#define TAEDA_FAMILY Unary
#define TAEDA_LINES "scalar/unary.inc"
#define TAEDA_ROWS unary_rows
#include "cpu/family.h"

namespace taeda::cpu {
namespace {

/// floor, ceil, trunc, round: integers stay as they are.
template <class Op, Unary Line>
void rounding(const Tensor& out, const Tensor& self) {
  if (is_integral(self.dtype())) return copy_elements(out, self);
  run_line(row(Line), Op::entry.name, compute_dtype(self.dtype()), out, self);
}
void round_kernel(const Tensor& out, const Tensor& self, int64_t decimals) {
  if (decimals == 0) return rounding<op::round, Unary::round>(out, self);
  const LoopParams p{Scalar(std::pow(10.0, std::abs(double(decimals)))), Scalar(decimals < 0)};
  run_line(row(Unary::round_decimals), "round", compute_dtype(self.dtype()), out, self, &p);
}
void conj_kernel(const Tensor& out, const Tensor& self) {
  if (!is_complex(self.dtype())) return copy_elements(out, self);
  run_line(row(Unary::conj), "conj", self.dtype(), out, self);
}
void logit_kernel(const Tensor& out, const Tensor& self, std::optional<double> eps) {
  const LoopParams p{Scalar(eps.value_or(-1.0))};
  run_line(row(Unary::logit), "logit", dtype_for(row(Unary::logit), Operands::AsFloat, self.dtype()), out, self, &p);
}
void nan_to_num_kernel(const Tensor& out, const Tensor& self, std::optional<double> nan, std::optional<double> posinf,
                       std::optional<double> neginf) {
  if (is_integral(self.dtype())) return copy_elements(out, self);
  const DType d = compute_dtype(self.dtype());
  const double largest = infer::largest_number(self.dtype());
  const LoopParams p{Scalar(nan.value_or(0)), Scalar(posinf.value_or(largest)), Scalar(neginf.value_or(-largest))};
  run_line(row(Unary::nan_to_num), "nan_to_num", d, out, self, &p);
}

const bool registered = [] {
#include "cpu/register_lines.h"
  kernel<op::ceil>(kCPU, rounding<op::ceil, Unary::ceil>);
  kernel<op::conj>(kCPU, conj_kernel);
  kernel<op::floor>(kCPU, rounding<op::floor, Unary::floor>);
  kernel<op::logit>(kCPU, logit_kernel);
  kernel<op::nan_to_num>(kCPU, nan_to_num_kernel);
  kernel<op::round>(kCPU, round_kernel);
  kernel<op::trunc>(kCPU, rounding<op::trunc, Unary::trunc>);
  return true;
}();

}  // namespace
}  // namespace taeda::cpu
