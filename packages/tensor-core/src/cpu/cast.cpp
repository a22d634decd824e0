// CPU kernels of the cast family: copies, conversions, fills.
#include "taeda/ops/cast.h"

#include "cpu/kernel.h"
#include "taeda/parallel.h"
#include "taeda/warn.h"

namespace taeda::cpu {
namespace {

/// Whoever means it says `.real`.
void warn_of_lost_parts(DType to, DType from) {
  if (is_complex(from) && !is_complex(to) && to != DType::Bool)
    warn("Casting complex values to real discards the imaginary part: ", name(from), " to ", name(to),
         "; take .real where that is meant");
}
void cast_kernel(const Tensor& out, const Tensor& self, DType) {
  warn_of_lost_parts(out.dtype(), self.dtype());
  copy_elements(out, self);
}
void clone_kernel(const Tensor& out, const Tensor& self, std::optional<std::string_view>) { copy_elements(out, self); }

void copy_kernel(const Tensor& self, const Tensor& src) {
  if (self.bytes() == src.bytes() && same_place(self, src)) return;
  warn_of_lost_parts(self.dtype(), src.dtype());
  copy_elements(self, src);
}

/// Whether the number's bytes are zero, as those of 0 are in every dtype.
bool all_zero(const Tensor& number) {
  uint64_t words[2] = {};
  const char* const from = number.bytes();
  switch (number.item_bytes()) {
    case 1: std::memcpy(words, from, 1); break;
    case 2: std::memcpy(words, from, 2); break;
    case 4: std::memcpy(words, from, 4); break;
    case 8: std::memcpy(words, from, 8); break;
    default: std::memcpy(words, from, 16);
  }
  return (words[0] | words[1]) == 0;
}
void fill_kernel(const Tensor& self, const Tensor& value) {
  if (self.numel() == 0) return;
  if (!value.is_wrapped_number()) warn_of_lost_parts(self.dtype(), value.dtype());
  if (self.dense() && all_zero(value)) {
    const int64_t total = self.numel() * self.item_bytes();
    const Unlocked unlocked(self.numel() > kLoopGrain);
    parallel_for(total, 1 << 20,
                 [&](int64_t begin, int64_t end) { std::memset(self.bytes() + begin, 0, size_t(end - begin)); });
    return;
  }
  copy_elements(self, value);
}

const bool registered = [] {
  kernel<op::cast>(kCPU, cast_kernel);
  kernel<op::clone>(kCPU, clone_kernel);
  kernel<op::copy_same_>(kCPU, copy_kernel);
  kernel<op::fill_>(kCPU, fill_kernel);
  return true;
}();

}  // namespace
}  // namespace taeda::cpu
