// Helpers on shapes, dimensions and dtypes of operands; texts for messages.
#include <algorithm>
#include <optional>

#include "taeda/checked.h"
#include "taeda/dims.h"
#include "taeda/spec.h"
#include "taeda/tensor.h"
#include "taeda/texts.h"

namespace taeda {

int64_t wrap_dim(int64_t dim, int64_t ndim, const char* op) { return wrap_dim(dim, ndim, op, "dim"); }
int64_t wrap_dim(int64_t dim, int64_t ndim, const char* op, const char* argument) {
  const int64_t range = std::max<int64_t>(ndim, 1);
  if (dim < -range || dim >= range) [[unlikely]]
    fail(ErrorKind::Index, op, ": argument '", argument, "': Dimension out of range (expected to be in range of [",
         -range, ", ", range - 1, "], but got ", dim, ") for a ", ndim, "-dimensional tensor");
  return dim < 0 ? dim + range : dim;
}

std::string bracketed(IntSpan sizes) {
  std::string text = shape_text(sizes);
  text.front() = '[';
  if (sizes.size() == 1) text.pop_back();
  text.back() = ']';
  return text;
}
std::string out_of_bounds(int64_t index, int64_t dim, int64_t size) {
  return detail::concat("index ", index, " is out of bounds for dimension ", dim, " with size ", size);
}
std::string_view scalar_type_name(DType dtype) {
  switch (dtype) {
    case DType::Bool: return "Bool";
    case DType::UInt8: return "Byte";
    case DType::Int8: return "Char";
    case DType::Int16: return "Short";
    case DType::Int32: return "Int";
    case DType::Int64: return "Long";
    case DType::Float16: return "Half";
    case DType::BFloat16: return "BFloat16";
    case DType::Float32: return "Float";
    case DType::Float64: return "Double";
    case DType::Complex64: return "ComplexFloat";
    case DType::Complex128: return "ComplexDouble";
    default: return name(dtype);
  }
}

std::string cast_refusal(DType result, DType wanted) {
  return detail::concat("result type ", scalar_type_name(result), " can't be cast to the desired output type ",
                        scalar_type_name(wanted));
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
  // Where every size and every product but the last has 29 bits, nothing can overflow.
  uint64_t total = 1, bits = 0;
  for (int64_t size : sizes) {
    bits |= total | uint64_t(size);
    total *= uint64_t(size);
  }
  if (bits >> 29 == 0) [[likely]]
    return int64_t(total);
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

namespace {
/// The last dimension that does not fit is told in PyTorch's words, which programs look for.
[[noreturn, gnu::cold]] void refuse_shapes(IntSpan a, IntSpan b, const char* op) {
  const size_t n = std::max(a.size(), b.size());
  size_t d = n;
  int64_t x = 1, y = 1;
  while (d-- > 0) {
    x = d + a.size() < n ? 1 : a[d + a.size() - n];
    y = d + b.size() < n ? 1 : b[d + b.size() - n];
    if (x != y && x != 1 && y != 1) break;
  }
  fail(ErrorKind::Runtime, op, ": shapes ", shape_text(a), " and ", shape_text(b),
       " cannot be broadcast together: The size of tensor a (", x, ") must match the size of tensor b (", y,
       ") at non-singleton dimension ", d);
}
}  // namespace

Shape broadcast_shapes(IntSpan first, IntSpan second, const char* op) {
  const bool swapped = first.size() < second.size();
  const IntSpan a = swapped ? second : first, b = swapped ? first : second;
  Shape out(a);
  const size_t lead = a.size() - b.size();
  for (size_t d = 0; d < b.size(); ++d) {
    const int64_t x = a[lead + d], y = b[d];
    if (x == y) continue;
    if (!(x == 1 || y == 1)) [[unlikely]]
      refuse_shapes(first, second, op);
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
    slot = slot && *slot != dtype ? promote(*slot, dtype) : dtype;
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
