// How images lie: row by row, or with their channels beside each other.
#pragma once
#include <vector>

#include "ops/call.h"

namespace taeda::cuda {

enum class Layout { Rows, ChannelsLast };

/// Of (images, channels, places...), packed.
inline std::vector<int64_t> strides_in(Layout layout, std::span<const int64_t> sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  int64_t behind = layout == Layout::Rows ? 1 : sizes[1];
  for (size_t d = sizes.size(); d-- > 0;) {
    if (layout == Layout::ChannelsLast && d == 1) continue;
    strides[d] = behind;
    behind *= sizes[d];
  }
  return strides;
}
inline bool lies(const Tensor& t, Layout layout) {
  if (layout == Layout::ChannelsLast && t.ndim() < 3) return false;
  const auto strides = strides_in(layout, t.sizes());
  for (int d = 0; d < t.ndim(); ++d)
    if (t.size(d) != 1 && t.stride(d) != strides[size_t(d)]) return false;
  return true;
}
/// Whether one of them has channels beside each other and is not row-major as well; else row-major.
inline Layout layout_of(std::initializer_list<const Tensor*> tensors) {
  for (const Tensor* t : tensors)
    if (!lies(*t, Layout::Rows) && lies(*t, Layout::ChannelsLast)) return Layout::ChannelsLast;
  return Layout::Rows;
}
inline Tensor empty_in(const Call& call, Layout layout, std::span<const int64_t> sizes, int dtype) {
  Tensor memory = call.empty(sizes, dtype);
  if (layout == Layout::Rows) return memory;
  return call.view(memory, sizes, strides_in(layout, sizes));
}
/// The tensor itself where it lies so and has the dtype (-1: its own), else a copy.
inline Tensor laid(const Call& call, Layout layout, const Tensor& t, int dtype = -1) {
  if (dtype < 0) dtype = t.dtype();
  if (lies(t, layout) && t.dtype() == dtype && !t.on_host()) return Tensor(t.handle());
  Tensor made = empty_in(call, layout, t.sizes(), dtype);
  call.copy(made, t);
  return made;
}
/// An output to be filled in a layout: the tensor itself, or memory that is copied to it at the end.
class LaidTarget {
 public:
  LaidTarget(const Call& call, Layout layout, const Tensor& to)
      : call_(call), to_(to), made_(lies(to, layout) ? Tensor() : empty_in(call, layout, to.sizes(), to.dtype())) {}
  const Tensor& tensor() const { return made_ ? made_ : to_; }
  Array array() const { return tensor().array(); }
  void done() const {
    if (made_) call_.copy(to_, made_);
  }

 private:
  const Call& call_;
  const Tensor& to_;
  Tensor made_;
};

}  // namespace taeda::cuda
