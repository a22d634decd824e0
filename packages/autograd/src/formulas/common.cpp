// Helpers that formulas of all families share.
#include "taeda/autograd/formulas.h"
#include "taeda/wrappers.h"

namespace taeda::formulas {

Tensor memory_like(const Tensor& grad, IntSpan sizes, IntSpan strides, DType dtype) {
  if (sizes.size() != 4 || sizes[1] == 1 || strides[1] != 1) return ops::new_empty(grad, sizes, dtype);
  const Tensor last = ops::new_empty(grad, Shape{sizes[0], sizes[2], sizes[3], sizes[1]}, dtype);
  return ops::permute(last, Shape{0, 3, 1, 2});
}

Tensor sum_to(const Tensor& grad, IntSpan sizes) {
  const int64_t lead = grad.dim() - int64_t(sizes.size());
  Shape dims;
  for (int64_t d = 0; d < grad.dim(); ++d)
    if (d < lead || (sizes[size_t(d - lead)] == 1 && grad.size(d) != 1)) dims.push_back(d);
  Tensor sums = dims.empty() ? grad : ops::sum(grad, IntSpan(dims), true);
  return lead > 0 ? ops::reshape(sums, sizes) : sums;
}

namespace {

/// Bit d: dimension d is reduced. No list or an empty one means all.
uint64_t reduced(size_t ndim, const Dims& dim) {
  if (!dim || dim->empty()) return ~uint64_t(0);
  uint64_t bits = 0;
  for (int64_t d : *dim) bits |= uint64_t(1) << wrap_dim(d, int64_t(ndim), "gradient of a reduction");
  return bits;
}

}  // namespace

Tensor restore_dims(const Tensor& t, size_t ndim, const Dims& dim, bool keepdim) {
  if (keepdim || ndim == 0) return t;
  const uint64_t bits = reduced(ndim, dim);
  Shape sizes(ndim, 1);
  for (size_t d = 0, from = 0; d < ndim; ++d)
    if (!(bits >> d & 1)) sizes[d] = t.size(int64_t(from++));
  return ops::reshape(t, sizes);
}

int64_t count_of(IntSpan sizes, const Dims& dim) {
  const uint64_t bits = reduced(sizes.size(), dim);
  int64_t count = 1;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (bits >> d & 1) count *= sizes[d];
  return count;
}

Tensor with_history(const Tensor& saved, const Tensor& computed) {
  // What is added is 0; the difference of infinities would not be.
  return ops::where(ops::isfinite(saved), saved + (computed - ops::detach(computed)), saved);
}

bool truth_of(const Tensor& t) {
  if (is_wrapper(t) && wrapper_api.item) return wrapper_api.item(t).to<bool>();
  const Tensor host = t.device().backend == kCPU ? t : ops::to_device(t, Device{});
  return *host.data<bool>();
}

}  // namespace taeda::formulas
