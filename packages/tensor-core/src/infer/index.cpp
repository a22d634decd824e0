// Inference of the index family.
#include "taeda/ops/index.h"

#include <algorithm>

#include "infer/dtypes.h"
#include "infer/index.h"

#include "taeda/spec.h"

namespace taeda::infer {
namespace {

void check_index_dtype(const char* op, const Tensor& index) {
  check(is_integral(index.dtype()) && index.dtype() != DType::Bool, ErrorKind::Index, op,
        ": argument 'index' must have an integer dtype, got ", name(index.dtype()));
}

Spec like(const Tensor& self) { return spec(self.sizes(), self.dtype()); }

}  // namespace

Spec gather(const Tensor& self, int64_t dim, const Tensor& index, bool) {
  if (index.numel() > 0) check_index_dtype("gather", index);
  const int64_t d = wrap_dim(dim, self.dim(), "gather");
  if (index.numel() == 0) return spec(index.sizes(), self.dtype());
  check(index.dim() == self.dim() || (self.dim() == 0 && index.dim() <= 1) || (index.dim() == 0 && self.dim() <= 1),
        ErrorKind::Runtime, "gather: argument 'index' has shape ", shape_text(index.sizes()),
        ", expected as many dimensions as 'self' of shape ", shape_text(self.sizes()));
  for (int64_t k = 0; k < std::min(index.dim(), self.dim()); ++k)
    check(k == d || index.size(k) <= self.size(k), ErrorKind::Runtime, "gather: argument 'index' of shape ",
          shape_text(index.sizes()), " is larger than 'self' of shape ", shape_text(self.sizes()), " at dimension ", k);
  return spec(index.sizes(), self.dtype());
}

/// A 0-dimensional tensor scatters and is scattered into like one of a single element in one dimension.
static int64_t rank(const Tensor& t) { return std::max<int64_t>(t.dim(), 1); }
static int64_t extent(const Tensor& t, int64_t dim) { return t.dim() ? t.size(dim) : 1; }

/// A dimension of size 0 has no place for an index; kernels do not even look at a result without elements.
static void has_places(const char* op, const Tensor& self, int64_t dim, const Tensor& index) {
  if (extent(self, dim) == 0 && index.numel() != 0) [[unlikely]]
    fail(ErrorKind::Index, op, ": argument 'index': every index is out of bounds for dimension ", dim, " with size 0");
}

Spec index_into(const char* op, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  check_index_dtype(op, index);
  const int64_t d = wrap_dim(dim, self.dim(), op);
  check(index.dim() <= 1, ErrorKind::Runtime, op, ": argument 'index' must be 1-dimensional, got shape ",
        shape_text(index.sizes()));
  has_places(op, self, d, index);
  expect_dtype(op, "source", source, self.dtype(), "self");
  Shape expected(self.sizes());
  if (self.dim()) expected[d] = index.numel();
  const bool single = self.dim() <= 1 && source.dim() == 0 && index.numel() == 1;  // a number for a number
  const bool fits = self.dim() ? single || std::ranges::equal(source.sizes(), IntSpan(expected))
                               : source.dim() <= 1 && source.numel() == index.numel();
  check(fits, ErrorKind::Runtime, op, ": argument 'source' has shape ", shape_text(source.sizes()), ", expected ",
        shape_text(expected), " for 'index' of ", index.numel(), " elements");
  return like(self);
}

Spec index_fill(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  check_index_dtype("index_fill", index);
  has_places("index_fill", self, wrap_dim(dim, self.dim(), "index_fill"), index);
  check(index.dim() <= 1, ErrorKind::Runtime, "index_fill: argument 'index' must be 1-dimensional, got shape ",
        shape_text(index.sizes()));
  check(value.dim() == 0, ErrorKind::Runtime, "index_fill: argument 'value' must be 0-dimensional, got shape ",
        shape_text(value.sizes()));
  if (is_complex(value.dtype()) && !is_complex(self.dtype())) [[unlikely]]
    fail(ErrorKind::Runtime, "index_fill: argument 'value' of dtype ", name(value.dtype()),
         " cannot be stored into dtype ", name(self.dtype()));
  check_number("index_fill", "value", value, self.dtype());
  return like(self);
}

Spec index_select(const Tensor& self, int64_t dim, const Tensor& index) {
  check_index_dtype("index_select", index);
  const int64_t d = wrap_dim(dim, self.dim(), "index_select");
  check(index.dim() <= 1, ErrorKind::Index, "index_select: argument 'index' must be 1-dimensional, got shape ",
        shape_text(index.sizes()));
  check(self.dim() || index.numel() == 1, ErrorKind::Index, "index_select: argument 'index' has ", index.numel(),
        " elements, expected 1 for a 0-dimensional tensor");
  Spec out = like(self);
  if (self.dim()) out.sizes[d] = index.numel();
  return out;
}

Spec scatter_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,
                    bool) {
  const auto known = {"sum", "prod", "mean", "amax", "max", "amin", "min"};
  check(std::ranges::find(known, reduce) != known.end(), ErrorKind::Runtime,
        "scatter_reduce: argument 'reduce' must be 'sum', 'prod', 'mean', 'amax' or 'amin', got '", reduce, "'");
  check(!is_complex(self.dtype()) || !(reduce.ends_with("max") || reduce.ends_with("min")), ErrorKind::NotImplemented,
        "scatter_reduce: 'amax' and 'amin' are not defined for complex numbers");
  return scatter_into("scatter_reduce", self, dim, index, src);
}

static void mask_fits(const char* op, const Tensor& self, int64_t dim, const Tensor& mask) {
  check(dim + mask.dim() <= self.dim(), ErrorKind::Index, op, ": too many indices: a mask of shape ",
        shape_text(mask.sizes()), " at dimension ", dim, " of a tensor of shape ", shape_text(self.sizes()));
  for (int64_t k = 0; k < mask.dim(); ++k)
    check(mask.size(k) == self.size(dim + k), ErrorKind::Index, op, ": the mask of shape ", shape_text(mask.sizes()),
          " does not match the tensor of shape ", shape_text(self.sizes()), " at dimension ", dim + k);
}

void index_tensors(const char* op, const Tensor& self, TensorList indices) {
  int64_t dim = 0;
  Shape common;
  for (size_t i = 0; i < indices.size(); ++i) {
    const Tensor& index = indices[i];
    if (index.defined() && is_mask(index)) {
      mask_fits(op, self, dim, index);
      dim += index.dim();
      continue;
    }
    check(dim < self.dim(), ErrorKind::Index, op, ": too many indices for a tensor of shape ",
          shape_text(self.sizes()));
    ++dim;
    if (!index.defined()) continue;
    if (!is_integral(index.dtype())) [[unlikely]]
      fail(ErrorKind::Index, op, ": index tensors must be of integer or bool dtype, found ", describe(index),
           " at position ", i);
    common = index_shapes(common, index.sizes(), op);
  }
}

Shape index_shapes(IntSpan a, IntSpan b, const char* op) {
  try {
    return broadcast_shapes(a, b, op);
  } catch (const Error& error) {
    throw Error(ErrorKind::Index, error.what());
  }
}

void index_values_dtype(const char* op, const Tensor& self, TensorList indices, const Tensor& values) {
  if (values.dtype() == self.dtype() || values.is_wrapped_number()) return;
  int64_t given = 0;
  bool masks = true;
  for (const Tensor& index : indices) {
    if (!index.defined()) continue;
    ++given;
    masks = masks && is_mask(index);
  }
  const bool filled = values.numel() == 1 && given == 1 && masks;
  check(filled && (!is_complex(values.dtype()) || is_complex(self.dtype())), ErrorKind::Runtime, op,
        ": argument 'values' has dtype ", name(values.dtype()), ", expected ", name(self.dtype()),
        ", the dtype of the tensor that is written to");
}

void index_values(const char* op, IntSpan indexed, const Tensor& values) {
  const Shape fitted = broadcast_shapes(indexed, values.sizes(), op);
  check(std::ranges::equal(fitted, indexed), ErrorKind::Runtime, op, ": argument 'values' has shape ",
        shape_text(values.sizes()), ", which cannot be broadcast to the indexed shape ", shape_text(indexed));
}

void check_places(const char* op, const Tensor& index) {
  check(index.numel() == 0 || (is_integral(index.dtype()) && index.dtype() != DType::Bool), ErrorKind::Runtime, op,
        ": argument 'index' must have dtype int64 or another of integers, found ", name(index.dtype()));
}

static void places_fit(const char* op, const Tensor& self, int64_t dim, const Tensor& index) {
  check(index.numel() == 0 || (is_integral(index.dtype()) && index.dtype() != DType::Bool), ErrorKind::Index, op,
        ": argument 'index' must have an integer dtype, got ", name(index.dtype()));
  const int64_t d = wrap_dim(dim, self.dim(), op);
  if (index.numel() == 0) return;
  check(rank(index) == rank(self), ErrorKind::Runtime, op, ": argument 'index' has shape ", shape_text(index.sizes()),
        ", expected as many dimensions as 'self' of shape ", shape_text(self.sizes()));
  has_places(op, self, d, index);
  for (int64_t k = 0; k < rank(index); ++k)
    check(k == d || extent(index, k) <= extent(self, k), ErrorKind::Runtime, op, ": argument 'index' of shape ",
          shape_text(index.sizes()), " is larger than 'self' ", shape_text(self.sizes()), " at dimension ", k);
}

Spec scatter_into(const char* op, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  expect_dtype(op, "src", src, self.dtype(), "self");
  places_fit(op, self, dim, index);
  if (index.numel() == 0) return like(self);
  check(rank(index) == rank(src), ErrorKind::Runtime, op, ": argument 'index' has shape ", shape_text(index.sizes()),
        ", expected as many dimensions as 'src' of shape ", shape_text(src.sizes()));
  for (int64_t k = 0; k < rank(index); ++k)
    check(extent(index, k) <= extent(src, k), ErrorKind::Runtime, op, ": argument 'index' of shape ",
          shape_text(index.sizes()), " is larger than 'src' ", shape_text(src.sizes()), " at dimension ", k);
  return like(self);
}

Spec scatter_number(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  check_number("scatter", "value", value, self.dtype());
  places_fit("scatter", self, dim, index);
  return like(self);
}

namespace {

/// Shape of self[indices]; NumPy's rule: index tensors side by side keep their place, separated ones move to the front.
Shape indexed_shape(const char* op, const Tensor& self, TensorList indices) {
  Shape before, after, picked;
  int64_t dim = 0, first = -1, last = -1;
  for (const Tensor& index : indices) {
    if (!index.defined()) {
      ++dim;
      continue;
    }
    check(!is_mask(index), ErrorKind::NotImplemented, op, ": a mask of dtype ", name(index.dtype()),
          " picks as many elements as it holds true, which is not known on meta; use integer "
          "indices");
    if (!is_integral(index.dtype())) [[unlikely]]
      fail(ErrorKind::Index, op, ": index tensors must be of integer or bool dtype, found ", describe(index));
    check(dim < self.dim(), ErrorKind::Index, op, ": too many indices for a tensor of shape ",
          shape_text(self.sizes()));
    picked = broadcast_shapes(picked, index.sizes(), op);
    if (first < 0) first = dim;
    last = dim++;
  }
  int64_t count = 0;
  for (size_t i = 0; i < indices.size(); ++i) count += indices[i].defined();
  const bool adjacent = count > 0 && last - first + 1 == count;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d < int64_t(indices.size()) && indices[size_t(d)].defined()) continue;
    (adjacent && d < first ? before : after).push_back(self.size(d));
  }
  for (const Shape* part : {&picked, &after})
    for (const int64_t size : *part) before.push_back(size);
  return before;
}

Tensor index_meta(const Tensor& self, TensorList indices) {
  return empty(indexed_shape("index", self, indices), self.dtype(), self.device());
}
void index_put_meta(const Tensor& self, TensorList indices, const Tensor& values, bool) {
  for (const Tensor& index : indices)  // how many elements a mask picks is not known, and no result has that shape
    if (index.defined() && is_mask(index)) return;
  const Shape place = indexed_shape("index_put_", self, indices);
  check(broadcast_shapes(place, values.sizes(), "index_put_") == place, ErrorKind::Runtime,
        "index_put_: argument 'values' has shape ", shape_text(values.sizes()),
        ", which cannot be broadcast to the indexed shape ", shape_text(place));
}
const bool registered = [] {
  kernel<op::index>(kMeta, index_meta);
  kernel<op::index_put_>(kMeta, index_put_meta);
  return true;
}();

}  // namespace

}  // namespace taeda::infer
