// How far layouts reach.
#include "taeda/reach.h"

#include "taeda/checked.h"
#include "taeda/tensor.h"

namespace taeda {

Reach reach_of(const char* op, IntSpan sizes, IntSpan strides, int64_t item) {
  for (int64_t size : sizes)
    if (size == 0) return {};
  Count low = 0, high = item;
  for (size_t d = 0; d < sizes.size(); ++d) (strides[d] < 0 ? low : high) += Count(sizes[d] - 1) * strides[d] * item;
  check(low.fits() && high.fits(), ErrorKind::Overflow, op, ": size ", shape_text(sizes), " with stride ",
        shape_text(strides), " reaches beyond 64 bits");
  return {low.of(op), high.of(op)};
}

Shape settled_strides(IntSpan sizes, IntSpan strides) {
  constexpr int64_t kLargest = int64_t(1) << 48;  // bytes that any machine can address
  bool none = false;
  for (int64_t size : sizes) none = none || size == 0;
  Shape settled(strides);
  for (size_t d = 0; d < sizes.size(); ++d)
    if ((none || sizes[d] == 1) && (strides[d] > kLargest || strides[d] < -kLargest)) settled[d] = 1;
  return settled;
}

}  // namespace taeda
