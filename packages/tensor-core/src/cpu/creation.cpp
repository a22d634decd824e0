// CPU kernels of the creation family.
#include "taeda/ops/creation.h"

#include <bit>
#include <cmath>

namespace taeda {
namespace {

/// Numbers a + s * i in vectors of 32 bytes, two at a time: the first of each is rounded to T, and the others are
/// counted from there, as PyTorch's kernel does; those that fill no pair of vectors are computed one by one.
template <class T>
void fill_steps(T* out, int64_t count, double a, double s) {
  constexpr int64_t kLane = 32 / sizeof(T);
  // One rounding where terms cancel too. For floats the step in two parts, whose multiples are exact, does without the
  // function call that a fused multiplication is on the least processor; twice and once a step are exact.
  const double high = std::bit_cast<double>(std::bit_cast<uint64_t>(s) & ~((uint64_t(1) << 27) - 1)), low = s - high;
  const auto at = [=](double first, double i) {
    if constexpr (std::is_same_v<T, float>) return T((first + high * i) + low * i);
    else return i < 3 ? first + s * i : std::fma(s, i, first);
  };
  const int64_t whole = count - count % (2 * kLane);
  for (int64_t i = 0; i < whole; i += kLane) {
    const double base = double(at(a, double(i)));
    for (int32_t k = 0; k < int32_t(kLane); ++k) out[i + k] = at(base, double(k));
  }
  for (int64_t i = whole; i < count; ++i) out[i] = at(a, double(i));
}

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
      if (stride == 1) return fill_steps(out, count, a, s);
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
