// CPU kernels of the creation family.
#include "taeda/ops/creation.h"

namespace taeda {
namespace {

void arange_fill(const Tensor& self, const Scalar& start, const Scalar& step) {
  const int64_t count = self.numel(), stride = self.dim() ? self.stride(0) : 1;
  visit_dtype(self.dtype(), [&]<class T>() {
    T* out = self.data<T>();
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      if (start.is_integral() && step.is_integral()) {
        // Unsigned arithmetic wraps where signed would be undefined.
        const uint64_t a = uint64_t(start.to<int64_t>()), s = uint64_t(step.to<int64_t>());
        for (int64_t i = 0; i < count; ++i) out[i * stride] = T(a + s * uint64_t(i));
        return;
      }
    }
    const double a = start.to_double(), s = step.to_double();
    if constexpr (std::is_floating_point_v<T>) {
      if (stride == 1 && count <= INT32_MAX) {  // 32 bits become doubles in vectors
        for (int32_t i = 0; i < int32_t(count); ++i) out[i] = T(a + s * double(i));
        return;
      }
    }
    for (int64_t i = 0; i < count; ++i) out[i * stride] = Scalar(a + s * double(i)).to<T>();
  });
}

const bool registered = [] {
  kernel<op::arange_fill_>(kCPU, arange_fill);
  return true;
}();

}  // namespace
}  // namespace taeda
