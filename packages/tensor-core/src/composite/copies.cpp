// Views in memory of their own, and copies with a part replaced.
#include "taeda/ops/copies.h"

#include "taeda/dims.h"
#include "taeda/ops/cast.h"
#include "taeda/ops/shape.h"
#include "taeda/ops/unary.h"

namespace taeda::impl {
namespace {

/// Row-major memory of its own for what a view shows.
Tensor copied(const Tensor& shown) { return ops::clone(shown, "contiguous_format"); }

std::vector<Tensor> copied(std::vector<Tensor> shown) {
  for (Tensor& part : shown) part = copied(part);
  return shown;
}

}  // namespace

Tensor alias_copy(const Tensor& self) { return copied(self); }
Tensor as_strided_copy(const Tensor& self, IntSpan size, IntSpan stride, std::optional<int64_t> storage_offset) {
  return copied(ops::as_strided(self, size, stride, storage_offset));
}
Tensor detach_copy(const Tensor& self) { return copied(ops::detach(self)); }
Tensor diagonal_copy(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  return copied(ops::diagonal(self, offset, wrap_dim(dim1, self.dim(), "diagonal_copy", "dim1"),
                              wrap_dim(dim2, self.dim(), "diagonal_copy", "dim2")));
}
Tensor expand_copy(const Tensor& self, IntSpan size, bool implicit) {
  return copied(ops::expand(self, size, implicit));
}
Tensor permute_copy(const Tensor& self, IntSpan dims) { return copied(ops::permute(self, dims)); }
Tensor select_copy(const Tensor& self, int64_t dim, int64_t index) { return copied(ops::select(self, dim, index)); }
Tensor slice_copy(const Tensor& self, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
                  int64_t step) {
  return copied(ops::slice(self, dim, start, end, step));
}
std::vector<Tensor> split_copy(const Tensor& self, int64_t split_size, int64_t dim) {
  return copied(ops::split(self, split_size, dim));
}
std::vector<Tensor> split_with_sizes_copy(const Tensor& self, IntSpan split_sizes, int64_t dim) {
  return copied(ops::split_sizes(self, split_sizes, dim));
}
Tensor squeeze_copy(const Tensor& self) { return copied(ops::squeeze(self)); }
Tensor squeeze_copy_dims(const Tensor& self, IntSpan dim) { return copied(ops::squeeze_dims(self, dim)); }
Tensor t_copy(const Tensor& self) { return copied(ops::t(self)); }
Tensor transpose_copy(const Tensor& self, int64_t dim0, int64_t dim1) {
  return copied(ops::transpose(self, wrap_dim(dim0, self.dim(), "transpose_copy", "dim0"),
                               wrap_dim(dim1, self.dim(), "transpose_copy", "dim1")));
}
std::vector<Tensor> unbind_copy(const Tensor& self, int64_t dim) { return copied(ops::unbind(self, dim)); }
Tensor unfold_copy(const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  return copied(ops::unfold(self, dimension, size, step));
}
Tensor unsqueeze_copy(const Tensor& self, int64_t dim) { return copied(ops::unsqueeze(self, dim)); }
Tensor view_as_complex_copy(const Tensor& self) { return copied(ops::view_as_complex(self)); }
Tensor view_as_real_copy(const Tensor& self) { return copied(ops::view_as_real(self)); }
/// Of whatever strides: its memory is its own.
Tensor view_copy(const Tensor& self, IntSpan size) { return copied(ops::reshape(self, size)); }
Tensor view_copy_dtype(const Tensor& self, DType dtype) { return copied(ops::view_dtype(self, dtype)); }

std::vector<Tensor> unsafe_chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  return ops::chunk(self, chunks, dim);
}
std::vector<Tensor> unsafe_split(const Tensor& self, int64_t split_size, int64_t dim) {
  return ops::split(self, split_size, dim);
}
std::vector<Tensor> unsafe_split_with_sizes(const Tensor& self, IntSpan split_sizes, int64_t dim) {
  return ops::split_sizes(self, split_sizes, dim);
}

namespace {

/// A copy that lies at the same places of memory of its own, so that strides and offsets mean the same there.
Tensor laid_out_alike(const Tensor& self) {
  if (self.dense() && self.storage_offset() == 0) return ops::clone(self);
  const int64_t places = int64_t(self.impl()->storage->nbytes) / self.item_bytes();
  const Tensor whole = ops::clone(ops::as_strided(self, Shape{places}, Shape{1}, 0));
  return ops::as_strided(whole, self.sizes(), self.strides(), self.storage_offset());
}

}  // namespace

Tensor as_strided_scatter(const Tensor& self, const Tensor& src, IntSpan size, IntSpan stride,
                          std::optional<int64_t> storage_offset) {
  const Tensor out = laid_out_alike(self);
  const Tensor place = ops::as_strided(out, size, stride, storage_offset);
  check(std::ranges::equal(place.sizes(), src.sizes()), ErrorKind::Runtime,
        "as_strided_scatter: argument 'src' has shape ", shape_text(src.sizes()), ", expected that of the part, ",
        shape_text(place.sizes()));
  ops::copy_(place, src);
  return out;
}

}  // namespace taeda::impl
