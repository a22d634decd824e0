// Inference of the shape family.
#include <algorithm>

#include "infer/memory_format.h"
#include "taeda/checked.h"
#include "taeda/ops/shape.h"
#include "taeda/spec.h"

namespace taeda::infer {
namespace {

/// NumPy's predecessor of cat let 1-d empty tensors join anything; programs still rely on it.
bool skipped(const Tensor& t) { return t.dim() == 1 && t.numel() == 0; }

Spec triangle(const char* op, const Tensor& self) {
  if (self.dim() < 2) [[unlikely]]
    fail(ErrorKind::Runtime, op, ": argument 'self' has shape ", shape_text(self.sizes()),
         ", expected at least 2 dimensions");
  return spec(self.sizes(), self.dtype());
}

}  // namespace

namespace {
/// In PyTorch's words at the end: programs look for them.
[[noreturn, gnu::cold]] void refuse_part(const Tensor& first, const Tensor& part, size_t at, int64_t dim) {
  std::string known =
      detail::concat("Tensors must have same number of dimensions: got ", first.dim(), " and ", part.dim());
  for (int64_t k = 0; part.dim() == first.dim() && k < part.dim(); ++k) {
    if (k == dim || part.size(k) == first.size(k)) continue;
    known = detail::concat("Sizes of tensors must match except in dimension ", dim, ". Expected size ", first.size(k),
                           " but got size ", part.size(k), " for tensor number ", at, " in the list.");
    break;
  }
  fail(ErrorKind::Runtime, "cat: argument 'tensors' must have the same shape except in dimension ", dim, ", found ",
       shape_text(first.sizes()), " and, at position ", at, ", ", shape_text(part.sizes()), ": ", known);
}
}  // namespace

Spec cat(TensorList tensors, int64_t dim) {
  check(!tensors.empty(), ErrorKind::Value, "cat: argument 'tensors' is empty, expected at least one tensor");
  const Tensor* first = nullptr;
  for (const Tensor& t : tensors) {
    check(t.dim() > 0, ErrorKind::Runtime,
          "cat: argument 'tensors' has a 0-dimensional tensor, which cannot be joined");
    if (!first && !skipped(t)) first = &t;
  }
  if (!first) first = &tensors[0];
  const int64_t d = wrap_dim(dim, first->dim(), "cat");
  Spec out = spec_like(first->sizes(), result_type(tensors), *first);
  out.sizes[d] = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    if (skipped(t)) continue;
    bool fits = t.dim() == first->dim();
    for (int64_t k = 0; fits && k < t.dim(); ++k) fits = k == d || t.size(k) == first->size(k);
    if (!fits) [[unlikely]]
      refuse_part(*first, t, i, d);
    out.sizes[d] = (Count(out.sizes[d]) + t.size(d)).of("cat", "the size of dimension ", d, " of the result");
  }
  out.strides = {};
  if (first->dim() != 4 && first->dim() != 5) return out;
  const bool all = std::ranges::all_of(tensors, [](const Tensor& t) { return skipped(t) || channels_stand_last(t); });
  if (all) out.strides = format_strides("cat", first->dim() == 4 ? "channels_last" : "channels_last_3d", out.sizes);
  return out;
}

Spec tril(const Tensor& self, int64_t) { return triangle("tril", self); }
Spec triu(const Tensor& self, int64_t) { return triangle("triu", self); }

}  // namespace taeda::infer
