// Comparisons of whole tensors.
#include "taeda/ops/compare.h"

#include "infer/compare.h"
#include "taeda/backend.h"
#include "taeda/levels.h"
#include "taeda/ops/creation.h"
#include "taeda/ops/index.h"
#include "taeda/ops/reduce.h"
#include "taeda/ops/shape.h"
#include "taeda/ops/unary.h"

namespace taeda::impl {
namespace {

/// The value of a 0-d bool tensor on any device.
bool truth_of(const Tensor& t) {
  bool value = false;
  check_has_memory(t, "equal");
  backend(t.device().backend).copy_to_host(&value, t.device(), t.bytes(), sizeof value);
  return value;
}

/// A leading part of at most `most` elements.
Tensor beginning(Tensor t, int64_t most) {
  while (t.numel() > most) {
    const int64_t keep = std::max<int64_t>(1, most / (t.numel() / t.size(0)));
    t = keep > 1 ? ops::slice(t, 0, 0, keep, 1) : ops::select(t, 0, 0);
  }
  return t;
}

}  // namespace

std::vector<Tensor> where_condition(const Tensor& condition) {
  const Tensor places = ops::nonzero(condition.dim() ? condition : ops::reshape(condition, Shape{1}));
  return ops::unbind(places, 1);
}

bool allclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  infer::close("allclose", self, other, rtol, atol);
  return truth_of(ops::all(ops::isclose(self, other, rtol, atol, equal_nan)));
}

bool equal(const Tensor& self, const Tensor& other) {
  if (!infer::same_shape(self, other)) return false;
  if (self.numel() == 0) return true;
  static constexpr int64_t few = 4096;  // elements that tell most tensors apart
  if (self.numel() > few && !truth_of(ops::all(ops::eq(beginning(self, few), beginning(other, few))))) return false;
  return truth_of(ops::all(ops::eq(self, other)));
}

Tensor isreal(const Tensor& self) {
  if (!is_complex(self.dtype())) return ops::full_like(self, true, DType::Bool);
  return ops::eq(ops::imag(self), Tensor(0));
}

}  // namespace taeda::impl
