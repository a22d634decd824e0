// What PyTorch has under this name: checks of arguments that name them.
#pragma once
#include "taeda/torch_names/names.h"

namespace taeda {

/// Who checks, for messages.
using CheckedFrom = const char*;
/// An argument with its name and its place, counted from 1.
struct TensorArg {
  Tensor tensor;
  const char* name;
  int pos;
  TensorArg(Tensor given, const char* named, int place) : tensor(std::move(given)), name(named), pos(place) {}
  const Tensor* operator->() const { return &tensor; }
  const Tensor& operator*() const { return tensor; }
};

inline void checkSameType(CheckedFrom from, const TensorArg& a, const TensorArg& b) {
  TAEDA_CHECK(a->scalar_type() == b->scalar_type(), from, ": argument #", a.pos, " '", a.name, "' has elements of ",
              a->scalar_type(), ", argument #", b.pos, " '", b.name, "' of ", b->scalar_type());
}
inline void checkSameGPU(CheckedFrom from, const TensorArg& a, const TensorArg& b) {
  TAEDA_CHECK(!a->is_cpu() && a->device() == b->device(), from, ": argument #", a.pos, " '", a.name, "' is on device '",
              a->device(), "', argument #", b.pos, " '", b.name, "' on '", b->device(), "'");
}
inline void checkSameSize(CheckedFrom from, const TensorArg& a, const TensorArg& b) {
  TAEDA_CHECK(a->sizes() == b->sizes(), from, ": argument #", a.pos, " '", a.name, "' has sizes ", a->sizes(),
              ", argument #", b.pos, " '", b.name, "' ", b->sizes());
}
inline void checkDim(CheckedFrom from, const TensorArg& a, int64_t dim) {
  TAEDA_CHECK(a->dim() == dim, from, ": argument #", a.pos, " '", a.name, "' has ", a->dim(), " dimensions, not ", dim);
}
inline void checkContiguous(CheckedFrom from, const TensorArg& a) {
  TAEDA_CHECK(a->is_contiguous(), from, ": argument #", a.pos, " '", a.name, "' is not contiguous");
}
inline void checkAllSameType(CheckedFrom from, ArrayRef<TensorArg> all) {
  for (const TensorArg& one : all) checkSameType(from, all[0], one);
}
inline void checkAllSameGPU(CheckedFrom from, ArrayRef<TensorArg> all) {
  for (const TensorArg& one : all) checkSameGPU(from, all[0], one);
}

}  // namespace taeda
