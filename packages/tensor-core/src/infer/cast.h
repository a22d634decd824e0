// What the cast family asks before dispatch.
#pragma once
#include "infer/numbers.h"  // IWYU pragma: export
#include "taeda/infer.h"

namespace taeda::infer {

[[noreturn]] void fill_refused(const Tensor& value);
inline void fill(const Tensor& self, const Tensor& value) {
  if (value.dim() != 0) [[unlikely]]
    fill_refused(value);
  check_number("fill_", "value", value, self.dtype());
}

void copy_broadcast(const Tensor& self, const Tensor& src);
inline void copy_same(const Tensor& self, const Tensor& src) {
  if (!same_shape(self, src)) copy_broadcast(self, src);
}

}  // namespace taeda::infer
