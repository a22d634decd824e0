// CPU kernels of the cast family: copies, conversions, fills.
#include "taeda/ops/cast.h"

#include "cpu/kernel.h"
#include "taeda/parallel.h"

namespace taeda::cpu {
namespace {

void cast_kernel(const Tensor& out, const Tensor& self, DType) { copy_elements(out, self); }
void clone_kernel(const Tensor& out, const Tensor& self, std::optional<std::string_view>) { copy_elements(out, self); }

void copy_kernel(const Tensor& self, const Tensor& src) {
  if (self.bytes() == src.bytes() && same_place(self, src)) return;
  copy_elements(self, src);
}

void fill_kernel(const Tensor& self, const Tensor& value) {
  if (self.numel() == 0) return;
  constexpr char zero[16] = {};  // the bytes of zero in every dtype
  if (self.dense() && std::memcmp(zero, value.bytes(), size_t(value.item_bytes())) == 0) {
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
