// Shape operators written in terms of views and copies.
#include "taeda/ops/shape.h"

#include <algorithm>
#include <limits>

#include "composite/host.h"
#include "infer/numbers.h"
#include "taeda/checked.h"
#include "taeda/dims.h"
#include "taeda/ops/cast.h"
#include "taeda/ops/creation.h"
#include "taeda/wrappers.h"

namespace taeda::impl {
namespace {

std::vector<Tensor> map(TensorList tensors, Tensor (*fn)(const Tensor&)) {
  std::vector<Tensor> out;
  out.reserve(tensors.size());
  for (const Tensor& t : tensors) out.push_back(fn(t));
  return out;
}

}  // namespace

Tensor atleast_1d(const Tensor& self) { return self.dim() ? self : ops::reshape(self, Shape{1}); }
Tensor atleast_2d(const Tensor& self) {
  if (self.dim() >= 2) return self;
  return self.dim() == 1 ? ops::unsqueeze(self, 0) : ops::reshape(self, Shape{1, 1});
}
Tensor atleast_3d(const Tensor& self) {
  if (self.dim() >= 3) return self;
  if (self.dim() == 2) return ops::unsqueeze(self, -1);
  return self.dim() == 1 ? ops::unsqueeze(ops::unsqueeze(self, 0), -1) : ops::reshape(self, Shape{1, 1, 1});
}
std::vector<Tensor> atleast_1d_list(TensorList tensors) { return map(tensors, ops::atleast_1d); }
std::vector<Tensor> atleast_2d_list(TensorList tensors) { return map(tensors, ops::atleast_2d); }
std::vector<Tensor> atleast_3d_list(TensorList tensors) { return map(tensors, ops::atleast_3d); }

Tensor broadcast_to(const Tensor& self, IntSpan size) { return ops::expand(self, size); }
Tensor expand_as(const Tensor& self, const Tensor& other) { return ops::expand(self, other.sizes()); }
std::vector<Tensor> broadcast_tensors(TensorList tensors) {
  Shape common;
  for (const Tensor& t : tensors) common = broadcast_shapes(common, t.sizes(), "broadcast_tensors");
  std::vector<Tensor> out;
  for (const Tensor& t : tensors) out.push_back(std::ranges::equal(t.sizes(), common) ? t : ops::expand(t, common));
  return out;
}

Tensor narrow(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  check(self.dim() > 0, ErrorKind::Runtime, "narrow: argument 'self' is 0-dimensional");
  dim = wrap_dim(dim, self.dim(), "narrow");
  const int64_t size = self.size(dim);
  const int64_t first = start < 0 ? start + size : start;
  check(start >= -size && first <= size, ErrorKind::Index, "narrow: argument 'start' is ", start,
        ", out of range for dimension ", dim, " of size ", size);
  check(length >= 0 && length <= size - first, ErrorKind::Runtime, "narrow: start (", start, ") + length (", length,
        ") exceeds the size ", size, " of dimension ", dim);
  return ops::slice(self, dim, first, first + length, 1);
}

std::vector<Tensor> split_sizes(const Tensor& self, IntSpan split_sizes, int64_t dim) {
  dim = wrap_dim(dim, self.dim(), "split");
  Count total = 0;
  for (int64_t size : split_sizes) {
    check(size >= 0, ErrorKind::Runtime, "split: argument 'split_sizes' must not be negative, got ",
          shape_text(split_sizes));
    total += size;
  }
  const int64_t sum = total.of("split", "the sum of argument 'split_sizes'");
  check(self.dim() > 0 && sum == self.size(dim), ErrorKind::Runtime, "split: argument 'split_sizes' ",
        shape_text(split_sizes), " sums up to ", sum, ", expected the size of dimension ", dim,
        " of a tensor of shape ", shape_text(self.sizes()));
  std::vector<Tensor> out;
  int64_t start = 0;
  for (int64_t size : split_sizes) {
    out.push_back(ops::slice(self, dim, start, start + size, 1));
    start += size;
  }
  return out;
}
std::vector<Tensor> split(const Tensor& self, int64_t split_size, int64_t dim) {
  check(self.dim() > 0, ErrorKind::Runtime, "split: argument 'self' is 0-dimensional");
  dim = wrap_dim(dim, self.dim(), "split");
  const int64_t size = self.size(dim);
  check(split_size > 0 || (split_size == 0 && size == 0), ErrorKind::Runtime,
        "split: argument 'split_size' must be positive, got ", split_size);
  std::vector<Tensor> out;
  if (size == 0) return {ops::slice(self, dim, 0, 0, 1)};
  const int64_t step = std::min(split_size, size);  // larger ones give one part as well, and could not be added to
  out.reserve(size_t(size / step + (size % step != 0)));
  for (int64_t start = 0; start < size; start += step)
    out.push_back(ops::slice(self, dim, start, std::min(size, start + step), 1));
  return out;
}
namespace {
/// Parts without elements cost memory too.
void check_parts(const char* op, const char* argument, int64_t parts) {
  check(parts <= int64_t(1) << 24, ErrorKind::Memory, op, ": argument '", argument, "' is ", parts,
        ", more tensors than fit in memory");
}
}  // namespace

std::vector<Tensor> chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  check(self.dim() > 0, ErrorKind::Runtime, "chunk: argument 'self' is 0-dimensional");
  check(chunks > 0, ErrorKind::Runtime, "chunk: argument 'chunks' must be positive, got ", chunks);
  dim = wrap_dim(dim, self.dim(), "chunk");
  const int64_t size = self.size(dim);
  if (size > 0) return split(self, size / chunks + (size % chunks != 0), dim);
  check_parts("chunk", "chunks", chunks);
  return split_sizes(self, Shape(size_t(chunks), 0), dim);
}
std::vector<Tensor> tensor_split(const Tensor& self, int64_t sections, int64_t dim) {
  check(self.dim() > 0, ErrorKind::Runtime, "tensor_split: argument 'self' is 0-dimensional");
  check(sections > 0, ErrorKind::Runtime, "tensor_split: argument 'sections' must be positive, got ", sections);
  dim = wrap_dim(dim, self.dim(), "tensor_split");
  const int64_t size = self.size(dim);
  check_parts("tensor_split", "sections", sections);
  Shape parts;
  for (int64_t i = 0; i < sections; ++i) parts.push_back(size / sections + (i < size % sections));
  return split_sizes(self, parts, dim);
}
std::vector<Tensor> tensor_split_indices(const Tensor& self, IntSpan indices, int64_t dim) {
  check(self.dim() > 0, ErrorKind::Runtime, "tensor_split: argument 'self' is 0-dimensional");
  dim = wrap_dim(dim, self.dim(), "tensor_split");
  std::vector<Tensor> out;
  int64_t start = 0;
  for (int64_t stop : indices) {
    out.push_back(ops::slice(self, dim, start, stop, 1));
    start = stop;
  }
  out.push_back(ops::slice(self, dim, start, std::nullopt, 1));
  return out;
}
std::vector<Tensor> tensor_split_Tensor(const Tensor& self, const Tensor& tensor_indices_or_sections, int64_t dim) {
  if (tensor_indices_or_sections.dtype() != DType::Int64 || tensor_indices_or_sections.dim() > 1) [[unlikely]]
    fail(ErrorKind::Runtime,
         "tensor_split: argument 'tensor_indices_or_sections' must be an int64 tensor of at most one dimension, got ",
         describe(tensor_indices_or_sections));
  if (tensor_indices_or_sections.dim() == 0 && is_wrapper(tensor_indices_or_sections))
    return tensor_split(self, int64_t(number_of(tensor_indices_or_sections)), dim);
  const Tensor host = on_host(tensor_indices_or_sections);
  if (host.dim() == 0) return tensor_split(self, *host.data<int64_t>(), dim);
  return tensor_split_indices(self, Shape(IntSpan(host.data<int64_t>(), size_t(host.numel()))), dim);
}
std::vector<Tensor> unbind(const Tensor& self, int64_t dim) {
  check(self.dim() > 0, ErrorKind::Index, "unbind: argument 'self' is 0-dimensional");
  dim = wrap_dim(dim, self.dim(), "unbind");
  std::vector<Tensor> out;
  out.reserve(size_t(self.size(dim)));
  for (int64_t i = 0; i < self.size(dim); ++i) out.push_back(ops::select(self, dim, i));
  return out;
}

Tensor stack(TensorList tensors, int64_t dim) {
  check(!tensors.empty(), ErrorKind::Runtime, "stack: argument 'tensors' is empty, expected at least one tensor");
  dim = wrap_dim(dim, tensors[0].dim() + 1, "stack");
  std::vector<Tensor> parts;
  parts.reserve(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    check(std::ranges::equal(tensors[i].sizes(), tensors[0].sizes()), ErrorKind::Runtime,
          "stack: argument 'tensors' must have equal shapes, found ", shape_text(tensors[0].sizes()), " at 0 and ",
          shape_text(tensors[i].sizes()), " at ", i, ": stack expects each tensor to be equal size");
    parts.push_back(ops::unsqueeze(tensors[i], dim));
  }
  return ops::cat(parts, dim);
}
static void expect_some(const char* op, TensorList tensors) {
  check(!tensors.empty(), ErrorKind::Runtime, op, ": argument 'tensors' is empty, expected at least one tensor");
}
Tensor hstack(TensorList tensors) {
  expect_some("hstack", tensors);
  const auto parts = map(tensors, ops::atleast_1d);
  return ops::cat(parts, parts[0].dim() > 1 ? 1 : 0);
}
Tensor vstack(TensorList tensors) {
  expect_some("vstack", tensors);
  return ops::cat(map(tensors, ops::atleast_2d), 0);
}
Tensor dstack(TensorList tensors) {
  expect_some("dstack", tensors);
  return ops::cat(map(tensors, ops::atleast_3d), 2);
}
Tensor column_stack(TensorList tensors) {
  expect_some("column_stack", tensors);
  std::vector<Tensor> parts;
  for (const Tensor& t : tensors) parts.push_back(t.dim() <= 1 ? ops::reshape(t, Shape{t.numel(), 1}) : t);
  return ops::cat(parts, 1);
}

Tensor movedim(const Tensor& self, IntSpan source, IntSpan destination) {
  check(source.size() == destination.size(), ErrorKind::Runtime, "movedim: arguments 'source' ", shape_text(source),
        " and 'destination' ", shape_text(destination), " must have the same length");
  Shape order(size_t(std::max<int64_t>(self.dim(), 1)), -1);  // 0-dimensional tensors have a dimension 0 too
  uint64_t moved = 0;
  for (size_t i = 0; i < source.size(); ++i) {
    const int64_t from = wrap_dim(source[i], self.dim(), "movedim", "source"),
                  to = wrap_dim(destination[i], self.dim(), "movedim", "destination");
    check(order[to] < 0 && !(moved >> from & 1), ErrorKind::Runtime, "movedim: 'source' ", shape_text(source),
          " or 'destination' ", shape_text(destination), " repeats a dimension");
    order[to] = from;
    moved |= uint64_t(1) << from;
  }
  int64_t next = 0;
  for (int64_t& d : order) {
    if (d >= 0) continue;
    while (moved >> next & 1) ++next;
    d = next++;
  }
  if (self.dim() == 0) order.clear();
  return ops::permute(self, order);
}
Tensor swapaxes(const Tensor& self, int64_t axis0, int64_t axis1) {
  return ops::transpose(self, wrap_dim(axis0, self.dim(), "swapaxes", "axis0"),
                        wrap_dim(axis1, self.dim(), "swapaxes", "axis1"));
}
Tensor t(const Tensor& self) {
  check(self.dim() <= 2, ErrorKind::Runtime, "t: argument 'self' has shape ", shape_text(self.sizes()),
        ", expected at most 2 dimensions");
  return ops::transpose(self, 0, self.dim() < 2 ? 0 : 1);
}

Tensor flip(const Tensor& self, IntSpan dims) {
  Tensor shown = self;
  uint64_t turned = 0;
  for (int64_t d : dims) {
    const uint64_t bit = uint64_t{1} << wrap_dim(d, self.dim(), "flip", "dims");
    check(!(turned & bit), ErrorKind::Runtime, "flip: argument 'dims' ", shape_text(dims), " names dimension ", d,
          " twice");
    turned |= bit;
    if (self.dim() > 0) shown = ops::slice(shown, d, std::nullopt, std::nullopt, -1);
  }
  return ops::clone(shown);
}
Tensor flipud(const Tensor& self) {
  check(self.dim() > 0, ErrorKind::Runtime, "flipud: argument 'self' must have at least 1 dimension, found shape ()");
  return ops::flip(self, Shape{0});
}
Tensor fliplr(const Tensor& self) {
  check(self.dim() > 1, ErrorKind::Runtime, "fliplr: argument 'self' must have at least 2 dimensions, found shape ",
        shape_text(self.sizes()));
  return ops::flip(self, Shape{1});
}
Tensor rot90(const Tensor& self, int64_t k, IntSpan dims) {
  check(dims.size() == 2, ErrorKind::Runtime, "rot90: argument 'dims' must name two dimensions, got ",
        shape_text(dims));
  check(self.dim() >= 2, ErrorKind::Runtime, "rot90: argument 'self' has shape ", shape_text(self.sizes()),
        ", expected at least 2 dimensions");
  check(wrap_dim(dims[0], self.dim(), "rot90", "dims") != wrap_dim(dims[1], self.dim(), "rot90", "dims"),
        ErrorKind::Runtime, "rot90: argument 'dims' ", shape_text(dims), " must name two different dimensions");
  switch (((k % 4) + 4) % 4) {
    case 1: return ops::transpose(ops::flip(self, Shape{dims[1]}), dims[0], dims[1]);
    case 2: return ops::flip(self, dims);
    case 3: return ops::flip(ops::transpose(self, dims[0], dims[1]), Shape{dims[1]});
    default: return ops::clone(self);
  }
}
Tensor roll(const Tensor& self, IntSpan shifts, IntSpan dims) {
  if (dims.empty()) {
    check(shifts.size() == 1, ErrorKind::Runtime, "roll: argument 'shifts' ", shape_text(shifts),
          " needs one dimension each in 'dims'");
    return ops::reshape(ops::roll(ops::ravel(self), shifts, Shape{0}), self.sizes());
  }
  check(shifts.size() == dims.size(), ErrorKind::Runtime, "roll: arguments 'shifts' ", shape_text(shifts),
        " and 'dims' ", shape_text(dims), " must have the same length");
  check(self.dim() > 0, ErrorKind::Index, "roll: argument 'dims' is ", shape_text(dims),
        ", but 'self' has no dimensions");
  Tensor out = self;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t d = wrap_dim(dims[i], self.dim(), "roll", "dims");
    check(shifts[i] != std::numeric_limits<int64_t>::min(), ErrorKind::Runtime, "roll: argument 'shifts' is ",
          shape_text(shifts), ", expected numbers whose negatives are integers of 64 bits too");
    const int64_t size = self.dim() ? self.size(d) : 0;
    if (size == 0) continue;
    const int64_t cut = ((-shifts[i] % size) + size) % size;
    if (cut == 0) continue;
    const Tensor parts[] = {ops::slice(out, d, cut, std::nullopt, 1), ops::slice(out, d, 0, cut, 1)};
    out = ops::cat(parts, d);
  }
  return out.same(self) ? ops::clone(self) : out;
}

Tensor repeat(const Tensor& self, IntSpan repeats) {
  const int64_t lead = int64_t(repeats.size()) - self.dim();
  check(lead >= 0, ErrorKind::Runtime, "repeat: argument 'repeats' ", shape_text(repeats),
        " needs at least one number for each of the ", self.dim(), " dimensions");
  Shape split, wide, out;
  for (size_t d = 0; d < repeats.size(); ++d) {
    check(repeats[d] >= 0, ErrorKind::Runtime, "repeat: argument 'repeats' must not be negative, got ",
          shape_text(repeats));
    const int64_t size = int64_t(d) < lead ? 1 : self.size(int64_t(d) - lead);
    split.push_back(1);
    split.push_back(size);
    wide.push_back(repeats[d]);
    wide.push_back(size);
    out.push_back((Count(repeats[d]) * size).of("repeat", "the size of dimension ", d, " of the result"));
  }
  return ops::reshape(ops::clone(ops::expand(ops::reshape(self, split), wide), "contiguous_format"), out);
}
Tensor tile(const Tensor& self, IntSpan dims) {
  Shape repeats(dims);
  while (int64_t(repeats.size()) < self.dim()) repeats.insert(0, 1);
  return ops::repeat(self, repeats);
}

std::vector<Tensor> meshgrid(TensorList tensors, std::string_view indexing) {
  check(indexing == "ij" || indexing == "xy", ErrorKind::Runtime,
        "meshgrid: argument 'indexing' must be 'ij' or 'xy', got '", indexing, "'");
  const size_t n = tensors.size();
  check(n > 0, ErrorKind::Runtime, "meshgrid: argument 'tensors' is empty, expected at least one tensor");
  for (const Tensor& t : tensors)
    if (t.dtype() != tensors[0].dtype() || stated_device(t) != stated_device(tensors[0])) [[unlikely]]
      fail(ErrorKind::Runtime, "meshgrid: argument 'tensors' has ", describe(tensors[0]), " and ", describe(t),
           ", expected one dtype and one device");
  const bool swap = indexing == "xy" && n >= 2;
  Shape sizes;
  for (const Tensor& t : tensors) {
    check(t.dim() <= 1, ErrorKind::Runtime, "meshgrid: argument 'tensors' must be 0-d or 1-d, found shape ",
          shape_text(t.sizes()));
    sizes.push_back(t.numel());
  }
  std::vector<Tensor> out;
  for (size_t i = 0; i < n; ++i) {
    Shape shape(n, 1);
    shape[i] = tensors[i].numel();
    const Tensor grid = ops::expand(ops::reshape(tensors[i], shape), sizes);
    out.push_back(swap ? ops::transpose(grid, 0, 1) : grid);
  }
  if (swap)  // row and column coordinates trade places
    for (size_t i = 0; i < n; ++i) {
      Shape shape(n, 1), wide(sizes);
      std::swap(wide[0], wide[1]);
      shape[i == 0 ? 1 : i == 1 ? 0 : i] = tensors[i].numel();
      out[i] = ops::expand(ops::reshape(tensors[i], shape), wide);
    }
  return out;
}

Tensor diag_embed(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  const int64_t ndim = self.dim() + 1;
  const int64_t a = wrap_dim(dim1, ndim, "diag_embed", "dim1"), b = wrap_dim(dim2, ndim, "diag_embed", "dim2");
  check(a != b && self.dim() > 0, ErrorKind::Runtime,
        "diag_embed: 'dim1' and 'dim2' must differ and 'self' must have a dimension; got shape ",
        shape_text(self.sizes()));
  const int64_t side = (offset < 0 ? Count(self.size(-1)) - offset : Count(self.size(-1)) + offset)
                           .of("diag_embed", "the side for argument 'offset' ", offset);
  Shape sizes(self.sizes());
  sizes.pop_back();
  sizes.insert(std::min(a, b), side);
  sizes.insert(std::max(a, b), side);
  const Tensor out = ops::zeros(sizes, self.dtype(), stated_device(self));
  ops::copy_(ops::diagonal(out, offset, a, b), self);
  return out;
}
Tensor diag(const Tensor& self, int64_t diagonal) {
  check(self.dim() == 1 || self.dim() == 2, ErrorKind::Runtime, "diag: argument 'self' has shape ",
        shape_text(self.sizes()), ", expected 1 or 2 dimensions");
  return self.dim() == 1 ? ops::diag_embed(self, diagonal, 0, 1) : ops::clone(ops::diagonal(self, diagonal, 0, 1));
}

}  // namespace taeda::impl
