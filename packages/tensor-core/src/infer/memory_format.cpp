// Memory formats by name.
#include "infer/memory_format.h"

#include <algorithm>

#include "taeda/error.h"
#include "taeda/spec.h"

namespace taeda::infer {
namespace {

/// Dimensions of volumes from the innermost outwards.
constexpr int kVolumeOrder[] = {1, 4, 3, 2, 0};

bool lies_as_volumes(const Tensor& t) {
  if (t.dim() != 5) return false;
  int64_t expected = 1;
  for (const int d : kVolumeOrder) {
    if (t.size(d) == 1) continue;
    if (t.stride(d) != expected) return t.numel() == 0;
    expected *= t.size(d);
  }
  return true;
}

Shape volume_strides(IntSpan sizes) {
  Shape strides(sizes);
  int64_t step = 1;
  for (const int d : kVolumeOrder) {
    strides[size_t(d)] = step;
    step *= std::max<int64_t>(sizes[size_t(d)], 1);
  }
  return strides;
}

}  // namespace

bool lies_with_gaps(const Tensor& t) noexcept {
  if ((t.dim() != 4 && t.dim() != 5) || t.size(1) < 2 || t.stride(1) < 1) return false;
  int64_t inner = t.stride(1) * (t.size(1) - 1) + 1;
  for (int d = t.dim() - 1; d >= 0; --d) {
    if (d == 1 || t.size(d) == 1) continue;
    if (t.stride(d) < inner) return false;
    inner = t.stride(d) * (t.size(d) - 1) + inner;
  }
  return true;
}

Shape closed_strides(const Tensor& t) {
  return t.dim() == 4 ? channels_last_strides(t.sizes()) : volume_strides(t.sizes());
}

bool lies_as(const char* op, const Tensor& t, std::string_view format) {
  if (format == "contiguous_format") return t.contiguous();
  if (format == "channels_last") return t.channels_last();
  check(format == "channels_last_3d", ErrorKind::Value, op, ": argument 'memory_format' is '", format,
        "', expected 'contiguous_format', 'channels_last' or 'channels_last_3d'");
  return lies_as_volumes(t);
}

Shape format_strides(const char* op, std::string_view format, IntSpan sizes) {
  const bool volumes = format == "channels_last_3d";
  check(volumes || format == "channels_last", ErrorKind::Value, op, ": argument 'memory_format' is '", format,
        "', expected 'preserve_format', 'contiguous_format', 'channels_last' or 'channels_last_3d'");
  const size_t dims = volumes ? 5 : 4;
  if (sizes.size() != dims) [[unlikely]]
    fail(ErrorKind::Runtime, op, ": ", format, " needs a ", dims, "-dimensional tensor, got shape ", shape_text(sizes));
  return volumes ? volume_strides(sizes) : channels_last_strides(sizes);
}

}  // namespace taeda::infer
