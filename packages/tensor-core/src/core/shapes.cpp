// Helpers on shapes, dimensions and dtypes of operands; texts for messages.
#include <algorithm>
#include <optional>

#include "taeda/checked.h"
#include "taeda/dims.h"
#include "taeda/spec.h"
#include "taeda/tensor.h"

namespace taeda {

int64_t wrap_dim(int64_t dim, int64_t ndim, const char* op) { return wrap_dim(dim, ndim, op, "dim"); }
int64_t wrap_dim(int64_t dim, int64_t ndim, const char* op, const char* argument) {
  const int64_t range = std::max<int64_t>(ndim, 1);
  if (dim < -range || dim >= range) [[unlikely]]
    fail(ErrorKind::Index, op, ": argument '", argument, "' is out of range (expected ", -range, " to ", range - 1,
         " for a ", ndim, "-dimensional tensor, got ", dim, ")");
  return dim < 0 ? dim + range : dim;
}

std::string describe(const Tensor& tensor) {
  if (!tensor.defined()) return "None";
  std::string text(name(tensor.dtype()));
  text += "[";
  for (int64_t d = 0; d < tensor.dim(); ++d) text += (d ? ", " : "") + std::to_string(tensor.size(d));
  return text + "] on " + to_string(tensor.device());
}

int64_t product(IntSpan sizes) {
  Count total = 1;
  for (int64_t size : sizes) total *= size;
  if (!total.fits() && std::ranges::find(sizes, 0) != sizes.end()) return 0;
  return total.of("product", "the elements of shape ", shape_text(sizes));
}

int64_t count_of(IntSpan sizes, const char* op) {
  int64_t most = 1;
  bool counted = true, none = false;
  for (int64_t size : sizes) {
    if (size < 0) [[unlikely]]
      fail(ErrorKind::Runtime, op, ": sizes must not be negative, got ", shape_text(sizes));
    counted &= !__builtin_mul_overflow(most, size ? size : 1, &most);
    none |= size == 0;
  }
  if (!(counted && most <= kMostElements)) [[unlikely]]
    fail(ErrorKind::Memory, op, ": a tensor of shape ", shape_text(sizes), " has more elements than can be counted");
  return none ? 0 : most;
}

Shape contiguous_strides(IntSpan sizes) {
  Shape strides(sizes.size());
  int64_t step = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = step;
    step *= std::max<int64_t>(sizes[d], 1);
  }
  return strides;
}

Shape channels_last_strides(IntSpan sizes) {
  if (sizes.size() != 4) return contiguous_strides(sizes);
  Shape strides(4);
  int64_t step = 1;
  for (int d : {1, 3, 2, 0}) {
    strides[d] = step;
    step *= std::max<int64_t>(sizes[d], 1);
  }
  return strides;
}

Shape broadcast_shapes(IntSpan a, IntSpan b, const char* op) {
  if (a.size() < b.size()) std::swap(a, b);
  Shape out(a);
  const size_t lead = a.size() - b.size();
  for (size_t d = 0; d < b.size(); ++d) {
    const int64_t x = a[lead + d], y = b[d];
    if (x == y) continue;
    if (!(x == 1 || y == 1)) [[unlikely]]
      fail(ErrorKind::Runtime, op, ": shapes ", shape_text(a), " and ", shape_text(b),
           " cannot be broadcast together: sizes ", x, " and ", y, " at dimension ", lead + d,
           " differ and neither is 1");
    out[lead + d] = x == 1 ? y : x;
  }
  return out;
}

DType result_type(TensorList operands) {
  // Three ranks: tensors with dimensions, 0-d tensors, Python numbers. A lower rank counts only by its category.
  std::optional<DType> ranks[3];
  for (const Tensor& t : operands) {
    if (!t.defined()) continue;
    const bool wrapped = t.is_wrapped_number();
    DType dtype = t.dtype();
    if (wrapped) {
      if (is_complex(dtype)) dtype = complex_of(default_dtype());
      else if (is_floating(dtype)) dtype = default_dtype();
    }
    std::optional<DType>& slot = ranks[wrapped ? 2 : t.dim() == 0 ? 1 : 0];
    slot = slot ? promote(*slot, dtype) : dtype;
  }
  std::optional<DType> result;
  for (const auto& rank : ranks) {
    if (!rank) continue;
    if (!result) result = rank;
    else if (category(*rank) > category(*result))
      result = is_complex(*rank) && is_floating(*result)
                   ? complex_of(*result == DType::Float64 ? DType::Float64 : DType::Float32)
                   : promote(*result, *rank);
  }
  return result.value_or(default_dtype());
}

Spec spec_like(IntSpan sizes, DType dtype, const Tensor& like) {
  Spec out{Shape(sizes), dtype, {}};
  if (sizes.size() == 4 && like.dim() == 4 && like.channels_last() && !like.contiguous())
    out.strides = channels_last_strides(sizes);
  return out;
}

}  // namespace taeda
