// Parts of tensors and tensors made of parts: splits by axis, copies with a part replaced, block matrices.
#include <algorithm>

#include "taeda/ops/cast.h"
#include "taeda/ops/creation.h"
#include "taeda/ops/reduce.h"
#include "taeda/ops/shape.h"
#include "taeda/ops/unary.h"
#include "taeda/wrappers.h"

namespace taeda::impl {
namespace {

void need_dims(const char* op, const Tensor& self, int64_t least) {
  check(self.dim() >= least, ErrorKind::Runtime, op, ": argument 'input' has shape ", shape_text(self.sizes()),
        ", expected at least ", least, " dimensions");
}

/// Equal pieces along `dim`.
std::vector<Tensor> pieces(const char* op, const Tensor& self, int64_t sections, int64_t dim) {
  const int64_t size = self.size(dim);
  check(sections > 0 && size % sections == 0, ErrorKind::Runtime, op, ": argument 'indices_or_sections' is ", sections,
        ", which does not divide size ", size, " of dimension ", dim, " of shape ", shape_text(self.sizes()));
  return ops::tensor_split(self, sections, dim);
}

/// The axis that hsplit cuts.
int64_t columns(const Tensor& self) {
  need_dims("hsplit", self, 1);
  return self.dim() == 1 ? 0 : 1;
}

/// Stores `src` into `place`, which is a part of `made`.
Tensor written(const char* op, const Tensor& place, const Tensor& src, const Tensor& made) {
  check(std::ranges::equal(place.sizes(), src.sizes()), ErrorKind::Runtime, op, ": argument 'src' has shape ",
        shape_text(src.sizes()), ", expected ", shape_text(place.sizes()), " as the place");
  ops::copy_(place, src, false);
  return made;
}

}  // namespace

std::vector<Tensor> hsplit(const Tensor& self, int64_t sections) {
  return pieces("hsplit", self, sections, columns(self));
}
std::vector<Tensor> hsplit_indices(const Tensor& self, IntSpan indices) {
  return ops::tensor_split_indices(self, indices, columns(self));
}
std::vector<Tensor> vsplit(const Tensor& self, int64_t sections) {
  need_dims("vsplit", self, 2);
  return pieces("vsplit", self, sections, 0);
}
std::vector<Tensor> vsplit_indices(const Tensor& self, IntSpan indices) {
  need_dims("vsplit", self, 2);
  return ops::tensor_split_indices(self, indices, 0);
}
std::vector<Tensor> dsplit(const Tensor& self, int64_t sections) {
  need_dims("dsplit", self, 3);
  return pieces("dsplit", self, sections, 2);
}
std::vector<Tensor> dsplit_indices(const Tensor& self, IntSpan indices) {
  need_dims("dsplit", self, 3);
  return ops::tensor_split_indices(self, indices, 2);
}

Tensor adjoint(const Tensor& self) {
  need_dims("adjoint", self, 2);
  const Tensor turned = ops::transpose(self, -2, -1);
  return is_complex(self.dtype()) ? ops::conj(turned) : turned;
}

Tensor narrow_copy(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  return ops::clone(ops::narrow(self, dim, start, length));
}

Tensor slice_scatter(const Tensor& self, const Tensor& src, int64_t dim, std::optional<int64_t> start,
                     std::optional<int64_t> end, int64_t step) {
  dim = wrap_dim(dim, self.dim(), "slice_scatter");
  check(step > 0, ErrorKind::Value, "slice_scatter: argument 'step' is ", step, ", expected at least 1");
  const Tensor made = ops::clone(self);
  return written("slice_scatter", ops::slice(made, dim, start, end, step), src, made);
}
Tensor select_scatter(const Tensor& self, const Tensor& src, int64_t dim, int64_t index) {
  const Tensor made = ops::clone(self);
  return written("select_scatter", ops::select(made, dim, index), src, made);
}
Tensor diagonal_scatter(const Tensor& self, const Tensor& src, int64_t offset, int64_t dim1, int64_t dim2) {
  const Tensor made = ops::clone(self);
  return written("diagonal_scatter", ops::diagonal(made, offset, dim1, dim2), src, made);
}

Tensor diagflat(const Tensor& self, int64_t offset) { return ops::diag(ops::reshape(self, Shape{-1}), offset); }

Tensor block_diag(TensorList tensors) {
  if (tensors.empty()) return ops::zeros(Shape{1, 0}, std::nullopt, std::nullopt);
  std::vector<Tensor> parts;
  int64_t rows = 0, width = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    check(tensors[i].dim() <= 2, ErrorKind::Value, "block_diag: argument ", i, " has shape ",
          shape_text(tensors[i].sizes()), ", expected at most 2 dimensions");
    parts.push_back(ops::atleast_2d(tensors[i]));
    rows += parts.back().size(0);
    width += parts.back().size(1);
  }
  const Tensor made = ops::zeros(Shape{rows, width}, result_type(parts), stated_device(parts[0]));
  int64_t row = 0, column = 0;
  for (const Tensor& part : parts) {
    const int64_t height = part.size(0), length = part.size(1);
    ops::copy_(ops::narrow(ops::narrow(made, 0, row, height), 1, column, length), part, false);
    row += height;
    column += length;
  }
  return made;
}

Tensor cartesian_prod(TensorList tensors) {
  check(!tensors.empty(), ErrorKind::Runtime, "cartesian_prod: expected at least one tensor");
  for (size_t i = 0; i < tensors.size(); ++i)
    check(tensors[i].dim() == 1, ErrorKind::Runtime, "cartesian_prod: argument ", i, " has shape ",
          shape_text(tensors[i].sizes()), ", expected 1 dimension");
  if (tensors.size() == 1) return tensors[0];
  std::vector<Tensor> grids = ops::meshgrid(tensors, "ij");
  for (Tensor& grid : grids) grid = ops::reshape(grid, Shape{-1});
  return ops::stack(grids, 1);
}

Tensor sum_to_size(const Tensor& self, IntSpan size) {
  const int64_t lead = self.dim() - int64_t(size.size());
  bool fits = lead >= 0;
  Shape dims;
  for (int64_t d = 0; fits && d < self.dim(); ++d) {
    const int64_t wanted = d < lead ? 1 : size[size_t(d - lead)];
    fits = d < lead || wanted == 1 || wanted == self.size(d);
    if (d < lead || (wanted == 1 && self.size(d) != 1)) dims.push_back(d);
  }
  check(fits, ErrorKind::Runtime, "sum_to_size: shape ", shape_text(self.sizes()), " was not broadcast from ",
        shape_text(size));
  if (size.empty()) return ops::sum(self);
  return dims.empty() ? self : ops::reshape(ops::sum(self, IntSpan(dims), true), size);
}

}  // namespace taeda::impl
