// The view operators: every one ends in one call of alias().
#include <algorithm>
#include <numeric>

#include "taeda/checked.h"
#include "taeda/dims.h"
#include "taeda/dispatch.h"
#include "taeda/reach.h"
#include "taeda/ops/cast.h"
#include "taeda/ops/shape.h"
#include "taeda/texts.h"

namespace taeda {
namespace {

/// Strides that show `self` under `sizes` without copying; false when there are none.
bool view_strides(IntSpan from, IntSpan from_strides, IntSpan sizes, Shape& strides) {
  strides.resize(sizes.size());
  // Walks groups of old dimensions that are mergeable in memory and cuts each into new dimensions.
  int64_t to = int64_t(sizes.size()) - 1;
  int64_t chunk_stride = from_strides[from.size() - 1];
  int64_t old_count = 1, new_count = 1;
  for (int64_t d = int64_t(from.size()) - 1; d >= 0; --d) {
    old_count *= from[d];
    const bool ends = d == 0 || (from[d - 1] != 1 && from_strides[d - 1] != old_count * chunk_stride);
    if (!ends) continue;
    while (to >= 0 && (new_count < old_count || sizes[to] == 1)) {
      strides[to] = new_count * chunk_stride;
      new_count *= sizes[to--];
    }
    if (new_count != old_count) return false;
    if (d > 0) {
      chunk_stride = from_strides[d - 1];
      old_count = new_count = 1;
    }
  }
  return to == -1;
}
bool view_strides(const Tensor& self, IntSpan sizes, Shape& strides) {
  if (self.numel() && !self.contiguous()) return view_strides(self.sizes(), self.strides(), sizes, strides);
  strides = contiguous_strides(sizes);
  return true;
}

/// Replaces one -1 and checks the number of elements.
Shape resolve_shape(const char* op, IntSpan wanted, int64_t numel, IntSpan from) {
  Shape sizes(wanted);
  Count counted = 1;
  int64_t hole = -1;
  bool none = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == -1 && hole < 0) {
      hole = int64_t(d);
      continue;
    }
    if (sizes[d] < 0) [[unlikely]]
      fail(ErrorKind::Runtime, op, ": argument 'shape' is ", shape_text(wanted),
           ", expected sizes >= 0 and at most one -1", sizes[d] == -1 ? ": only one dimension can be inferred" : "");
    none |= sizes[d] == 0;
    counted *= sizes[d];
  }
  if (!counted.fits() && !none) [[unlikely]]
    fail(ErrorKind::Runtime, op, ": argument 'shape' ", shape_text(wanted),
         " has more elements than can be counted, expected ", numel, " as in the tensor of shape ", shape_text(from));
  const int64_t known = none ? 0 : counted.of(op);
  if (hole >= 0) {
    if (known == 0 || numel % known != 0) [[unlikely]]
      fail(ErrorKind::Runtime, op, ": argument 'shape' ", shape_text(wanted), " cannot hold the ", numel,
           " elements of a tensor of shape ", shape_text(from), ": shape '", bracketed(wanted),
           "' is invalid for input of size ", numel);
    sizes[hole] = numel / known;
  } else {
    if (known != numel) [[unlikely]]
      fail(ErrorKind::Runtime, op, ": argument 'shape' ", shape_text(wanted), " has ", known, " elements, expected ",
           numel, " as in the tensor of shape ", shape_text(from), ": shape '", bracketed(wanted),
           "' is invalid for input of size ", numel);
  }
  return sizes;
}

/// Note [Layout and view]
/// Convolutions return channels-last strides that programs do not ask for, so `x.view(n, -1)` must work as in the
/// row-major layout, and so it does for sequences and volumes, for what other layers make of them, for parts of them
/// (`chunk`) and where the channels became several dimensions. A dense tensor that alone holds its storage is re-laid
/// row-major in place; one whose storage has other holders is viewed through a row-major copy (values as expected;
/// writes through the view do not reach it).

/// How many channels a tensor has that is no view and lies as (N, ..., C), without gaps; 0 for others. The channels may
/// be several dimensions, as a view of a convolution's result or what is computed from such a view has them.
int64_t channels_inside(const Tensor& t) {
  const int64_t n = t.dim();
  if (n < 3 || t.impl()->base || t.contiguous()) return 0;
  int64_t last = 1, channels = t.size(1);
  while (last < n - 2 && t.stride(last) != 1 && t.stride(last) == t.stride(last + 1) * t.size(last + 1))
    channels *= t.size(++last);
  if (t.stride(last) != 1 || n - last > 4) return 0;
  int64_t step = channels;
  for (int64_t k = n - 1; k >= last; --k) {
    const int64_t d = k == last ? 0 : k;  // after the channels the places from the last on, then N
    if (t.size(d) != 1 && t.stride(d) != step) return 0;
    step *= t.size(d);
  }
  return channels;
}
/// Whether these sizes would be a view of the tensor if what it is a part of were laid row-major.
bool viewable_in_rows(const Tensor& self, IntSpan sizes) {
  if (channels_inside(self)) return true;
  if (!self.impl()->base) return false;
  const Tensor root(self.impl()->base);
  const int64_t channels = channels_inside(root);
  if (!channels || !root.numel()) return false;
  const int64_t example = root.numel() / root.size(0), places = example / channels;
  Shape rows(self.strides());
  for (int64_t d = 0; d < self.dim(); ++d) {
    const int64_t step = rows[d];
    if (self.size(d) == 1 || step % example == 0) continue;
    if (step % channels == 0) rows[d] = step / channels;
    else if (step > 0 && step < channels) rows[d] = step * places;
    else return false;
  }
  Shape strides;
  return view_strides(self.sizes(), rows, sizes, strides);
}
bool relay(const Tensor& self) {
  if (!channels_inside(self) || self.impl()->storage->use_count() != 1) return false;
  Below autograd(Layer::Autograd);
  const Tensor row_major = empty(self.sizes(), self.dtype(), self.device());
  ops::copy_(row_major, self);
  const uint32_t version = self.version();
  assign_storage(self, row_major);
  self.impl()->storage->version = version;
  return true;
}

}  // namespace

namespace impl {

Tensor detach(const Tensor& self) { return bare_alias(self); }

/// Of views without elements, which may begin anywhere: the offset stays countable in bytes.
constexpr int64_t kFarthestOffset = std::numeric_limits<int64_t>::max() / 64;

Tensor as_strided(const Tensor& self, IntSpan size, IntSpan stride, std::optional<int64_t> storage_offset) {
  check(size.size() == stride.size(), ErrorKind::Runtime, "as_strided: argument 'stride' has ", stride.size(),
        " items, expected one for each of the ", size.size(), " sizes");
  const int64_t offset = storage_offset.value_or(self.storage_offset());
  for (int64_t extent : size)
    check(extent >= 0, ErrorKind::Runtime, "as_strided: argument 'size' must not be negative, got ", shape_text(size));
  if (std::ranges::find(size, 0) != size.end()) {
    check(offset >= 0 && offset <= kFarthestOffset, ErrorKind::Runtime, "as_strided: argument 'storage_offset' is ",
          offset, ", expected 0 to ", kFarthestOffset);
    return alias(self, size, settled_strides(size, stride), offset - self.storage_offset());
  }
  const Reach reach = reach_of("as_strided", size, stride, 1);
  const int64_t capacity = int64_t(self.impl()->storage->nbytes) / self.item_bytes();
  const char* const reached = "what size, stride and storage_offset reach";
  const int64_t low = (Count(offset) + reach.low).of("as_strided", reached),
                end = (Count(offset) + reach.high).of("as_strided", reached);
  if (self.device().backend != kMeta && (low < 0 || end > capacity)) [[unlikely]]
    fail(ErrorKind::Runtime, "as_strided: size ", shape_text(size), ", stride ", shape_text(stride),
         " and storage_offset ", offset, " reach elements ", low, " to ", end - 1, " of a storage of ", capacity);
  return alias(self, size, settled_strides(size, stride), offset - self.storage_offset());
}

Tensor select(const Tensor& self, int64_t dim, int64_t index) {
  check(self.dim() > 0, ErrorKind::Index, "select: argument 'self' is 0-dimensional and cannot be indexed; use item()");
  dim = wrap_dim(dim, self.dim(), "select");
  const int64_t size = self.size(dim);
  if (index < -size || index >= size) [[unlikely]]
    fail(ErrorKind::Index, "select: argument 'index': index ", index, " out of range for tensor of size ",
         bracketed(self.sizes()), " at dimension ", dim);
  Shape sizes(self.sizes()), strides(self.strides());
  const int64_t offset = (index < 0 ? index + size : index) * strides[dim];
  sizes.erase(dim);
  strides.erase(dim);
  return alias(self, sizes, strides, offset);
}

Tensor slice(const Tensor& self, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> stop, int64_t step) {
  check(self.dim() > 0, ErrorKind::Index, "slice: argument 'self' is 0-dimensional and cannot be sliced");
  check(step != 0, ErrorKind::Value, "slice: argument 'step' must not be 0");
  dim = wrap_dim(dim, self.dim(), "slice");
  const int64_t size = self.size(dim);
  // Longer steps leave the dimension as well, but the strides they would give cannot be scaled to bytes.
  step = std::clamp(step, -std::max<int64_t>(size, 1), std::max<int64_t>(size, 1));
  // Python's rules: bounds are clamped to the range that the direction can reach.
  const int64_t low = step < 0 ? -1 : 0, high = step < 0 ? size - 1 : size;
  const auto bound = [&](std::optional<int64_t> value, int64_t missing) {
    if (!value) return missing;
    const int64_t v = *value < 0 ? *value + size : *value;
    return std::clamp(v, low, high);
  };
  const int64_t begin = bound(start, step < 0 ? high : low), end = bound(stop, step < 0 ? low : high);
  const int64_t length =
      step < 0 ? (begin > end ? (begin - end - 1) / -step + 1 : 0) : (end > begin ? (end - begin - 1) / step + 1 : 0);
  Shape sizes(self.sizes()), strides(self.strides());
  const int64_t offset = length ? begin * strides[dim] : 0;
  sizes[dim] = length;
  strides[dim] *= step;
  return alias(self, sizes, strides, offset);
}

Tensor expand(const Tensor& self, IntSpan size, bool) {
  const int64_t lead = int64_t(size.size()) - self.dim();
  if (lead < 0) [[unlikely]]
    fail(ErrorKind::Runtime, "expand: argument 'size' ", shape_text(size),
         " has fewer dimensions than the tensor of shape ", shape_text(self.sizes()));
  Shape sizes(size), strides(size.size());
  for (int64_t d = int64_t(size.size()) - 1; d >= 0; --d) {
    const int64_t from = d - lead;
    if (from < 0) {
      if (size[d] < 0) [[unlikely]]
        fail(ErrorKind::Runtime, "expand: argument 'size' is ", shape_text(size),
             "; -1 is not allowed for a new dimension");
      // As `unsqueeze` has it: dimensions of size 1 fit those behind them.
      if (size[d] == 1 && self.dim() > 0) strides[d] = sizes[d + 1] * strides[d + 1];
      continue;
    }
    if (size[d] == -1 || size[d] == self.size(from)) {
      sizes[d] = self.size(from);
      strides[d] = self.stride(from);
    } else {
      if (self.size(from) != 1 || size[d] < 0) [[unlikely]]
        fail(ErrorKind::Runtime, "expand: argument 'size' ", shape_text(size), " does not match the tensor of shape ",
             shape_text(self.sizes()), ": The expanded size of the tensor (", size[d],
             ") must match the existing size (", self.size(from), ") at non-singleton dimension ", d,
             ".  Target sizes: ", bracketed(size), ".  Tensor sizes: ", bracketed(self.sizes()));
    }
  }
  return alias(self, sizes, strides, 0);
}

Tensor permute(const Tensor& self, IntSpan dims) {
  if (!(int64_t(dims.size()) == self.dim())) [[unlikely]]
    fail(ErrorKind::Runtime, "permute: argument 'dims' ", shape_text(dims), " must name each of the ", self.dim(),
         " dimensions of a tensor of shape ", shape_text(self.sizes()), " once");
  Shape sizes(dims.size()), strides(dims.size());
  uint64_t seen = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t d = wrap_dim(dims[i], self.dim(), "permute");
    if (seen >> d & 1) [[unlikely]]
      fail(ErrorKind::Runtime, "permute: argument 'dims' ", shape_text(dims), " repeats dimension ", d);
    seen |= uint64_t(1) << d;
    sizes[i] = self.size(d);
    strides[i] = self.stride(d);
  }
  return alias(self, sizes, strides, 0);
}

Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1) {
  const int64_t a = wrap_dim(dim0, self.dim(), "transpose"), b = wrap_dim(dim1, self.dim(), "transpose");
  Shape sizes(self.sizes()), strides(self.strides());
  if (self.dim() > 0) {
    std::swap(sizes[a], sizes[b]);
    std::swap(strides[a], strides[b]);
  }
  return alias(self, sizes, strides, 0);
}

namespace {
Tensor drop_unit_dims(const Tensor& self, uint64_t which) {
  Shape sizes, strides;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if ((which >> d & 1) && self.size(d) == 1) continue;
    sizes.push_back(self.size(d));
    strides.push_back(self.stride(d));
  }
  return alias(self, sizes, strides, 0);
}
}  // namespace

Tensor squeeze(const Tensor& self) { return drop_unit_dims(self, ~uint64_t(0)); }
Tensor squeeze_dims(const Tensor& self, IntSpan dim) {
  uint64_t which = 0;
  for (int64_t d : dim) {
    const uint64_t bit = uint64_t(1) << wrap_dim(d, self.dim(), "squeeze");
    check(!(which & bit), ErrorKind::Runtime, "squeeze: argument 'dim' must not name a dimension twice, found ",
          shape_text(dim));
    which |= bit;
  }
  return drop_unit_dims(self, which);
}

Tensor unsqueeze(const Tensor& self, int64_t dim) {
  dim = wrap_dim(dim, self.dim() + 1, "unsqueeze");
  const int64_t ndim = self.dim();
  const IntSpan from = self.sizes(), steps = self.strides();
  Shape sizes(size_t(ndim + 1), 1), strides(size_t(ndim + 1), 1);
  for (int64_t d = 0; d < ndim; ++d) {
    sizes[d + (d >= dim)] = from[size_t(d)];
    strides[d + (d >= dim)] = steps[size_t(d)];
  }
  if (dim < ndim) strides[dim] = from[size_t(dim)] * steps[size_t(dim)];
  return alias(self, sizes, strides, 0);
}

Tensor diagonal(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  const int64_t a = wrap_dim(dim1, self.dim(), "diagonal"), b = wrap_dim(dim2, self.dim(), "diagonal");
  check(a != b, ErrorKind::Runtime, "diagonal: arguments 'dim1' and 'dim2' must differ, both are ", a);
  const int64_t rows = self.size(a), columns = self.size(b);
  const int64_t length =
      std::max<int64_t>(0, offset >= 0 ? std::min(rows, columns - offset) : std::min(rows + offset, columns));
  const int64_t start = length == 0 ? 0 : offset >= 0 ? offset * self.stride(b) : -offset * self.stride(a);
  const int64_t stride = self.stride(a) + self.stride(b);
  Shape sizes(self.sizes()), strides(self.strides());
  for (int64_t d : {std::max(a, b), std::min(a, b)}) {
    sizes.erase(d);
    strides.erase(d);
  }
  sizes.push_back(length);
  strides.push_back(stride);
  return alias(self, sizes, strides, start);
}

Tensor unfold(const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  const int64_t d = wrap_dim(dimension, self.dim(), "unfold");
  const int64_t extent = self.dim() ? self.size(d) : 1;
  check(size >= 0 && size <= extent, ErrorKind::Runtime, "unfold: argument 'size' is ", size, ", expected 0 to ",
        extent, ", the size of dimension ", d);
  check(step > 0, ErrorKind::Runtime, "unfold: argument 'step' must be positive, got ", step);
  step = std::min(step, extent + 1);  // there is one window then, and the stride stays in range
  Shape sizes(self.sizes()), strides(self.strides());
  const int64_t stride = self.dim() ? strides[d] : 1;
  if (self.dim()) {
    sizes[d] = (extent - size) / step + 1;
    strides[d] *= step;
  }
  sizes.push_back(size);
  strides.push_back(stride);
  return alias(self, sizes, strides, 0);
}

Tensor view(const Tensor& self, IntSpan size) {
  const Shape sizes = resolve_shape("view", size, self.numel(), self.sizes());
  Shape strides;
  if (view_strides(self, sizes, strides)) return alias(self, sizes, strides, 0);
  if (relay(self)) return alias(self, sizes, contiguous_strides(sizes), 0);
  if (self.channels_last() || viewable_in_rows(self, sizes)) {
    const Tensor copy = empty(self.sizes(), self.dtype(), self.device());
    ops::copy_(copy, self);
    return alias(copy, sizes, contiguous_strides(sizes), 0);
  }
  fail(ErrorKind::Runtime, "view: argument 'size' ", shape_text(sizes), " cannot show a tensor of shape ",
       shape_text(self.sizes()), " and strides ", shape_text(self.strides()),
       ": view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
       "contiguous subspaces). Use .reshape(...) instead.");
}

Tensor view_dtype(const Tensor& self, DType dtype) {
  Shape sizes(self.sizes()), strides(self.strides());
  const int64_t from = self.item_bytes(), to = item_size(dtype);
  if (from != to) {
    if (self.dim() == 0 || self.stride(-1) != 1) [[unlikely]]
      fail(ErrorKind::Runtime, "view: to read ", name(self.dtype()), " as ", name(dtype),
           " the last dimension must exist and have stride 1; got shape ", shape_text(sizes), " and strides ",
           shape_text(strides));
    const auto scale = [&](int64_t value, const char* what) {
      check(value * from % to == 0, ErrorKind::Runtime, "view: ", what, " ", value, " of ", name(self.dtype()),
            " is no whole number of ", name(dtype));
      return value * from / to;
    };
    sizes.back() = scale(sizes.back(), "last size");
    for (size_t d = 0; d + 1 < strides.size(); ++d) strides[d] = scale(strides[d], "stride");
    check(reinterpret_cast<uintptr_t>(self.bytes()) % uintptr_t(std::min<int64_t>(to, 8)) == 0, ErrorKind::Runtime,
          "view: the tensor's first byte is not aligned for ", name(dtype));
  }
  Tensor out = alias(self, self.sizes(), self.strides(), 0);
  TensorImpl* made = out.impl();
  set_dtype(made, dtype);
  std::copy(sizes.begin(), sizes.end(), made->dims);
  std::copy(strides.begin(), strides.end(), made->dims + sizes.size());
  refresh_layout(made);
  return out;
}

// In-place forms change only how `self` shows its storage.
namespace {
void become(const Tensor& self, const Tensor& shown) {
  assign_storage(self, shown);
  refresh_layout(self.impl());
}
}  // namespace
void squeeze_(const Tensor& self) { become(self, squeeze(self)); }
void squeeze_dims_(const Tensor& self, IntSpan dim) { become(self, squeeze_dims(self, dim)); }
void unsqueeze_(const Tensor& self, int64_t dim) { become(self, unsqueeze(self, dim)); }
void transpose_(const Tensor& self, int64_t dim0, int64_t dim1) { become(self, transpose(self, dim0, dim1)); }
void t_(const Tensor& self) {
  check(self.dim() <= 2, ErrorKind::Runtime, "t_: expected at most 2 dimensions, found shape ",
        shape_text(self.sizes()));
  ops::transpose_(self, 0, self.dim() < 2 ? 0 : 1);
}
void swapaxes_(const Tensor& self, int64_t axis0, int64_t axis1) { ops::transpose_(self, axis0, axis1); }
void as_strided_(const Tensor& self, IntSpan size, IntSpan stride, std::optional<int64_t> storage_offset) {
  // Other views of the same tensor find their gradients through what it shows.
  if (self.requires_grad()) [[unlikely]]
    fail(ErrorKind::Runtime, "as_strided_: a tensor that requires grad cannot be given another layout in place, found ",
         describe(self));
  become(self, as_strided(self, size, stride, storage_offset));
}
void set_(const Tensor& self, const Tensor& source) {
  if (self.dtype() != source.dtype() || self.device() != source.device()) [[unlikely]]
    fail(ErrorKind::Runtime, "set_: expected a source like ", describe(self), ", found ", describe(source));
  assign_storage(self, source);
}

// Reshaping that may copy.
Tensor reshape(const Tensor& self, IntSpan shape) {
  const Shape sizes = resolve_shape("reshape", shape, self.numel(), self.sizes());
  Shape strides;
  if (view_strides(self, sizes, strides)) return ops::view(self, sizes);
  return ops::view(ops::contiguous(self), sizes);
}
Tensor reshape_as(const Tensor& self, const Tensor& other) { return ops::reshape(self, other.sizes()); }
Tensor view_as(const Tensor& self, const Tensor& other) { return ops::view(self, other.sizes()); }
Tensor ravel(const Tensor& self) { return ops::reshape(ops::contiguous(self), Shape{-1}); }

Tensor flatten(const Tensor& self, int64_t start_dim, int64_t end_dim) {
  const int64_t first = wrap_dim(start_dim, self.dim(), "flatten", "start_dim"),
                last = wrap_dim(end_dim, self.dim(), "flatten", "end_dim");
  check(first <= last, ErrorKind::Runtime, "flatten: argument 'start_dim' (", start_dim,
        ") must not come after 'end_dim' (", end_dim, ")");
  if (self.dim() == 0) return ops::reshape(self, Shape{1});
  if (first == last) return self;
  Shape sizes;
  int64_t joined = 1;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d >= first && d <= last) joined *= self.size(d);
    if (d < first || d > last) sizes.push_back(self.size(d));
    if (d == last) sizes.push_back(joined);
  }
  return ops::reshape(self, sizes);
}

Tensor unflatten(const Tensor& self, int64_t dim, IntSpan sizes) {
  check(self.dim() > 0, ErrorKind::Runtime, "unflatten: argument 'self' has no dimension, expected at least one");
  dim = wrap_dim(dim, self.dim(), "unflatten");
  const Shape parts = resolve_shape("unflatten", sizes, self.size(dim), Shape{self.size(dim)});
  Shape out;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d != dim) out.push_back(self.size(d));
    else
      for (int64_t part : parts) out.push_back(part);
  }
  return ops::reshape(self, out);
}

}  // namespace impl
}  // namespace taeda
