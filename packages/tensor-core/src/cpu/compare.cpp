// CPU kernels of the compare family (comparison, logic, bits, choice); those of plain lines follow from
// scalar/compare.inc.
#include "taeda/ops/compare.h"

#include <bit>

#include "cpu/loops/select.h"

#define TAEDA_FAMILY Compare
#define TAEDA_LINES "scalar/compare.inc"
#define TAEDA_ROWS compare_rows
#include "cpu/family.h"

namespace taeda::cpu {
namespace {

/// Integers are finite numbers all.
template <class Op, Compare Line>
void predicate(const Tensor& out, const Tensor& self) {
  if (is_integral(self.dtype())) return copy_elements(out, Tensor(Scalar(Line == Compare::isfinite)));
  run_line(row(Line), Op::entry.name, compute_dtype(self.dtype()), out, self);
}
/// a > b is b < a.
template <class Op, Compare Line>
void swapped(const Tensor& out, const Tensor& a, const Tensor& b) {
  run_line(row(Line), Op::entry.name, operands_dtype(a, b), out, b, a);
}

Loop select_loop(DType d) {
  static const SelectTable& loops = select_table();
  return loops.by_size[std::countr_zero(uint64_t(item_size(d)))];
}
void where_kernel(const Tensor& out, const Tensor& condition, const Tensor& a, const Tensor& b) {
  const DType d = infer::common_dtype(a, b);
  run_loop(select_loop(d), nullptr, {{&out, d}, {&condition, DType::Bool}, {&a, d}, {&b, d}});
}
void masked_fill_kernel(const Tensor& out, const Tensor& self, const Tensor& mask, const Tensor& value) {
  const DType d = self.dtype();
  run_loop(select_loop(d), nullptr, {{&out, d}, {&mask, DType::Bool}, {&value, d}, {&self, d}});
}

const bool registered = [] {
#include "cpu/register_lines.h"
  kernel<op::ge>(kCPU, swapped<op::ge, Compare::le>);
  kernel<op::gt>(kCPU, swapped<op::gt, Compare::lt>);
  kernel<op::isfinite>(kCPU, predicate<op::isfinite, Compare::isfinite>);
  kernel<op::isinf>(kCPU, predicate<op::isinf, Compare::isinf>);
  kernel<op::isnan>(kCPU, predicate<op::isnan, Compare::isnan>);
  kernel<op::isneginf>(kCPU, predicate<op::isneginf, Compare::isneginf>);
  kernel<op::isposinf>(kCPU, predicate<op::isposinf, Compare::isposinf>);
  kernel<op::masked_fill>(kCPU, masked_fill_kernel);
  kernel<op::where>(kCPU, where_kernel);
  return true;
}();

}  // namespace
}  // namespace taeda::cpu
