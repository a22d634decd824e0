// Memory formats by name.
#include "infer/memory_format.h"

#include <algorithm>
#include <cstdlib>

#include "taeda/error.h"

namespace taeda::infer {
namespace {

/// Dimensions of volumes from the innermost outwards.
constexpr int64_t kVolumeOrder[] = {1, 4, 3, 2, 0};

bool lies_as_volumes(const Tensor& t) {
  if (t.dim() != 5) return false;
  int64_t expected = 1;
  for (const int64_t d : kVolumeOrder) {
    if (t.size(d) == 1) continue;
    if (t.stride(d) != expected) return t.numel() == 0;
    expected *= t.size(d);
  }
  return true;
}

/// Strides without gaps; `order` has the dimensions from the innermost outwards.
Shape strides_in(IntSpan sizes, IntSpan order) {
  Shape strides(sizes);
  int64_t step = 1;
  for (const int64_t d : order) {
    strides[size_t(d)] = step;
    step *= std::max<int64_t>(sizes[size_t(d)], 1);
  }
  return strides;
}

}  // namespace

Shape closed_strides(IntSpan sizes, std::span<const Tensor* const> operands) {
  // Mostly the first operand alone tells, its steps growing outwards.
  if (const Tensor& t = *operands[0]; std::ranges::equal(t.sizes(), sizes)) {
    int64_t inner = 0;
    bool row_major = true;
    for (size_t d = sizes.size(); d-- > 0;) {
      const int64_t step = std::abs(t.strides()[d]);
      row_major &= step > inner;
      inner = step;
    }
    if (row_major) return {};
  }
  // Whether `outer` has shorter steps than `inner`, in the first operand that can tell: 1, and -1 where they are
  // longer.
  const auto shorter = [&](int64_t outer, int64_t inner) {
    for (const Tensor* t : operands) {
      const int64_t first = int64_t(sizes.size()) - t->dim();
      const auto step = [&](int64_t d) {
        return d >= first && t->size(d - first) == sizes[size_t(d)] ? std::abs(t->stride(d - first)) : 0;
      };
      const int64_t a = step(outer), b = step(inner);
      if (a == 0 || b == 0) continue;
      if (a != b) return a < b ? 1 : -1;
      if (sizes[size_t(outer)] < sizes[size_t(inner)]) return 1;
    }
    return 0;
  };
  // Sorted by insertion from the innermost outwards: dimensions that nothing tells apart keep their order.
  Shape order;
  bool row_major = true;
  for (int64_t d = int64_t(sizes.size()) - 1; d >= 0; --d) {
    size_t at = order.size();
    order.push_back(d);
    for (size_t k = at; k-- > 0;) {
      const int found = shorter(d, order[k]);
      if (found < 0) break;
      if (found == 0) continue;
      std::swap(order[k], order[at]);
      at = k;
      row_major = false;
    }
  }
  return row_major ? Shape() : strides_in(sizes, order);
}

bool lies_as(const char* op, const Tensor& t, std::string_view format) {
  if (format == "contiguous_format") return t.contiguous();
  if (format == "channels_last") return t.channels_last();
  check(format == "channels_last_3d", ErrorKind::Value, op, ": argument 'memory_format' is '", format,
        "', expected 'contiguous_format', 'channels_last' or 'channels_last_3d'");
  return lies_as_volumes(t);
}

bool channels_stand_last(const Tensor& t) {
  int64_t least = 0;
  for (int64_t k = 0; k < t.dim(); ++k) {
    const int64_t d = k == 0 ? 1 : k + 1 == t.dim() ? 0 : t.dim() - k;
    if (t.size(d) == 0 || t.stride(d) < least || (d == 0 && least == t.stride(1))) return false;
    least = t.stride(d) * std::max<int64_t>(t.size(d), 1);
  }
  return true;
}

bool stands_in_rows(const Tensor& t) {
  int64_t step = 1;
  for (int64_t d = t.dim() - 1; d >= 0; --d) {
    if (t.stride(d) != step) return false;
    step *= std::max<int64_t>(t.size(d), 1);
  }
  return true;
}

bool channels_come_last(const Tensor& t) {
  return (t.dim() == 4 || t.dim() == 5) && t.stride(1) != 0 && channels_stand_last(t);
}

Shape image_strides(const Tensor& like, IntSpan sizes) {
  if (!channels_come_last(like)) return {};
  return like.dim() == 4 ? channels_last_strides(sizes) : strides_in(sizes, kVolumeOrder);
}

Shape format_strides(const char* op, std::string_view format, IntSpan sizes) {
  const bool volumes = format == "channels_last_3d";
  check(volumes || format == "channels_last", ErrorKind::Value, op, ": argument 'memory_format' is '", format,
        "', expected 'preserve_format', 'contiguous_format', 'channels_last' or 'channels_last_3d'");
  const size_t dims = volumes ? 5 : 4;
  if (sizes.size() != dims) [[unlikely]]
    fail(ErrorKind::Runtime, op, ": ", format, " needs a ", dims, "-dimensional tensor, got shape ", shape_text(sizes));
  return volumes ? strides_in(sizes, kVolumeOrder) : channels_last_strides(sizes);
}

}  // namespace taeda::infer
