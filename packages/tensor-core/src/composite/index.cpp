// Index-family operators in terms of others.
#include "taeda/ops/index.h"

#include <algorithm>
#include <span>

#include "composite/host.h"
#include "infer/index.h"
#include "infer/numbers.h"
#include "taeda/checked.h"
#include "taeda/interrupt.h"
#include "taeda/ops/arith.h"
#include "taeda/ops/cast.h"
#include "taeda/ops/compare.h"
#include "taeda/ops/creation.h"
#include "taeda/ops/reduce.h"
#include "taeda/ops/shape.h"
#include "taeda/wrappers.h"

namespace taeda::impl {

Tensor argwhere(const Tensor& self) { return ops::nonzero(self); }

Tensor masked_select(const Tensor& self, const Tensor& mask) {
  check(mask.dtype() == DType::Bool, ErrorKind::Runtime, "masked_select: argument 'mask' must be bool, got ",
        name(mask.dtype()));
  const Shape sizes = broadcast_shapes(self.sizes(), mask.sizes(), "masked_select");
  const Tensor shown = ops::expand(self, sizes), chosen = ops::expand(mask, sizes);
  if (sizes.empty()) {
    const Tensor indices[] = {ops::reshape(chosen, Shape{1})};
    return ops::index(ops::reshape(shown, Shape{1}), indices);
  }
  const Tensor indices[] = {chosen};
  return ops::index(shown, indices);
}

Tensor masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source) {
  check(mask.dtype() == DType::Bool, ErrorKind::Runtime, "masked_scatter: argument 'mask' must be bool, got ",
        name(mask.dtype()));
  check(source.dtype() == self.dtype(), ErrorKind::Runtime, "masked_scatter: argument 'source' has dtype ",
        name(source.dtype()), ", expected ", name(self.dtype()));
  const Shape sizes = broadcast_shapes(self.sizes(), mask.sizes(), "masked_scatter");
  if (is_shape_alone(mask)) return taeda::empty(sizes, self.dtype(), self.device());
  const Tensor places = ops::nonzero(ops::reshape(ops::expand(mask, sizes), Shape{-1}));
  const int64_t count = places.size(0);
  check(source.numel() >= count, ErrorKind::Runtime, "masked_scatter: argument 'source' has ", source.numel(),
        " elements, expected at least ", count, " as many as True in 'mask'");
  const Tensor flat = ops::reshape(ops::expand(self, sizes), Shape{-1});
  const Tensor values = ops::slice(ops::reshape(source, Shape{-1}), 0, 0, count, 1);
  return ops::reshape(ops::index_copy(flat, 0, ops::select(places, 1, 0), values), sizes);
}

Tensor index_put(const Tensor& self, TensorList indices, const Tensor& values, bool accumulate) {
  const Tensor out = ops::clone(self);
  ops::index_put_(out, indices, values, accumulate);
  return out;
}

/// The number of classes, when every class of the int64 elements is in range; the error of one_hot otherwise.
static int64_t checked_classes(const Tensor& classes, int64_t num_classes) {
  if (classes.numel() == 0) {
    check(num_classes > 0, ErrorKind::Runtime, "one_hot: argument 'num_classes' is needed for an empty tensor");
    return num_classes;
  }
  int64_t highest = 0;
  for (const int64_t v : std::span(classes.data<int64_t>(), size_t(classes.numel()))) {
    check(v >= 0, ErrorKind::Runtime, "one_hot: argument 'tensor' must hold class numbers >= 0, found ", v);
    highest = std::max(highest, v);
  }
  if (num_classes == -1) return (Count(highest) + 1).of("one_hot", "the number of classes up to ", highest);
  check(highest < num_classes, ErrorKind::Runtime,
        "one_hot: Class values must be smaller than num_classes: argument 'tensor' has class ", highest,
        ", expected less than ", num_classes);
  return num_classes;
}

Tensor one_hot(const Tensor& tensor, int64_t num_classes) {
  check(tensor.dtype() == DType::Int64, ErrorKind::Runtime, "one_hot: argument 'tensor' must be int64, got ",
        name(tensor.dtype()));
  if (num_classes > 0 && !readable(tensor)) {
    const Tensor all = ops::arange(Scalar(0), Scalar(num_classes), Scalar(1), DType::Int64, stated_device(tensor));
    return ops::to_dtype(ops::eq(ops::unsqueeze(tensor, -1), all), DType::Int64);
  }
  const Tensor flat = on_host(tensor);
  const int64_t classes = checked_classes(flat, num_classes);
  Shape sizes(tensor.sizes());
  sizes.push_back(classes);
  const Tensor out = ops::zeros(sizes, DType::Int64, Device{});
  const auto mark = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out.data<int64_t>()[i * classes + flat.data<int64_t>()[i]] = 1;
  };
  in_blocks(flat.numel(), mark, (int64_t(1) << 18) / std::min<int64_t>(classes, 1 << 10));
  return ops::to_device(out, stated_device(tensor));
}

namespace {
/// Indices from the end on, which the kernels do not know, as ones from the start.
Tensor wrapped(const Tensor& index, int64_t size) {
  if (!is_signed(index.dtype()) || !is_integral(index.dtype())) return index;
  const Tensor places = ops::to_dtype(index, DType::Int64);
  const Tensor from_end = ops::logical_and(ops::lt(places, Tensor(0)), ops::ge(places, Tensor(-size)));
  return ops::where(from_end, ops::add(places, Tensor(size)), places);
}
/// Shapes of `self` and `indices` broadcast against each other everywhere but in `dim`.
std::pair<Tensor, Tensor> aligned(const char* op, const Tensor& self, const Tensor& indices, int64_t d) {
  check(self.dim() == indices.dim(), ErrorKind::Runtime, op, ": argument 'indices' has ", indices.dim(),
        " dimensions, expected ", self.dim());
  Shape a(self.sizes()), b(indices.sizes());
  for (int64_t k = 0; k < self.dim(); ++k) {
    if (k == d) continue;
    const Shape common = broadcast_shapes(Shape{a[k]}, Shape{b[k]}, op);
    a[k] = b[k] = common[0];
  }
  return {ops::expand(self, a), ops::expand(indices, b)};
}
}  // namespace

namespace {
/// Whether all are readable numbers in [0, count).
bool lie_within(const Tensor& places, int64_t count) {
  if (places.dtype() != DType::Int64 || places.device().backend != kCPU || !readable(places) || !places.contiguous())
    return false;
  const std::span<const int64_t> all(places.data<int64_t>(), size_t(places.numel()));
  return std::ranges::all_of(all, [=](int64_t place) { return place >= 0 && place < count; });
}
}  // namespace

Tensor take(const Tensor& self, const Tensor& index) {
  infer::check_places("take", index);
  // Few elements are found where they lie: a flat copy of the whole would take longer.
  if (!self.contiguous() && index.numel() < self.numel() / 4 && lie_within(index, self.numel()))
    return ops::index(self, ops::unravel_index(index, self.sizes()));
  const Tensor indices[] = {index.dtype() == DType::Int64 ? index : ops::to_dtype(index, DType::Int64)};
  return ops::index(ops::reshape(self, Shape{-1}), indices);
}

Tensor take_along_dim(const Tensor& self, const Tensor& indices, std::optional<int64_t> dim) {
  if (!dim)
    return ops::gather(ops::reshape(self, Shape{-1}), 0, wrapped(ops::reshape(indices, Shape{-1}), self.numel()));
  const int64_t d = wrap_dim(*dim, self.dim(), "take_along_dim");
  const auto [from, places] = aligned("take_along_dim", self, indices, d);
  return ops::gather(from, d, wrapped(places, from.dim() ? from.size(d) : 1));
}

Tensor scatter_combined(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                        std::string_view reduce) {
  check(reduce == "add" || reduce == "multiply", ErrorKind::Runtime, "scatter: argument 'reduce' is '", reduce,
        "', expected 'add' or 'multiply'");
  if (reduce == "add") return ops::scatter_add(self, dim, index, src);
  return ops::scatter_reduce(self, dim, index, src, "prod", true);
}
Tensor scatter_value_combined(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value,
                              std::string_view reduce) {
  infer::check_number("scatter", "value", value, self.dtype());
  const Tensor same = ops::full(Shape{}, value, self.dtype(), stated_device(self));
  return scatter_combined(self, dim, index, ops::expand(same, index.sizes()), reduce);
}

namespace {
/// The size of a dimension whose elements are repeated, which the caller may have said beforehand.
int64_t repeated_size(Count sum, std::optional<int64_t> output_size) {
  const int64_t total = sum.of("repeat_interleave", "what argument 'repeats' adds up to");
  check(!output_size || *output_size == total, ErrorKind::Runtime, "repeat_interleave: argument 'output_size' is ",
        output_size.value_or(0), ", expected ", total);
  return total;
}
}  // namespace

Tensor repeat_interleave_counts(const Tensor& repeats, std::optional<int64_t> output_size) {
  if (!is_integral(repeats.dtype()) || repeats.dim() != 1) [[unlikely]]
    fail(ErrorKind::Runtime, "repeat_interleave: argument 'repeats' alone must be 1-dimensional integers, got ",
         describe(repeats));
  if (is_shape_alone(repeats) && output_size)
    return taeda::empty(Shape{*output_size}, DType::Int64, stated_device(repeats));
  const Tensor counts = on_host(ops::to_dtype(repeats, DType::Int64));
  Count sum = 0;
  for (int64_t i = 0; i < counts.numel(); ++i) {
    const int64_t n = counts.data<int64_t>()[i];
    check(n >= 0, ErrorKind::Runtime, "repeat_interleave: argument 'repeats' must not be negative, found ", n, " at ",
          i);
    sum += n;
  }
  const int64_t total = repeated_size(sum, output_size);
  const Tensor index = empty(Shape{total}, DType::Int64);
  int64_t* place = index.data<int64_t>();
  for (int64_t i = 0; i < counts.numel(); ++i) place = std::fill_n(place, counts.data<int64_t>()[i], i);
  return ops::to_device(index, stated_device(repeats));
}

Tensor repeat_interleave_Tensor(const Tensor& self, const Tensor& repeats, std::optional<int64_t> dim,
                                std::optional<int64_t> output_size) {
  const Tensor from = dim && self.dim() ? self : ops::reshape(self, Shape{-1});
  const int64_t d = wrap_dim(dim.value_or(0), from.dim(), "repeat_interleave"), size = from.size(d);
  if (!is_integral(repeats.dtype()) || repeats.dim() > 1 || (repeats.numel() != 1 && repeats.numel() != size))
      [[unlikely]]
    fail(ErrorKind::Runtime, "repeat_interleave: argument 'repeats' must be integers, one or one for each of the ",
         size, " elements, got ", describe(repeats));
  const Tensor each = ops::expand(ops::reshape(repeats, Shape{-1}), Shape{size});
  return ops::index_select(from, d,
                           ops::to_device(ops::repeat_interleave_counts(each, output_size), stated_device(self)));
}

Tensor repeat_interleave(const Tensor& self, int64_t repeats, std::optional<int64_t> dim,
                         std::optional<int64_t> output_size) {
  check(repeats >= 0, ErrorKind::Runtime, "repeat_interleave: argument 'repeats' must not be negative, got ", repeats);
  const Tensor from = dim && self.dim() ? self : ops::reshape(self, Shape{-1});
  const int64_t d = wrap_dim(dim.value_or(0), from.dim(), "repeat_interleave");
  const int64_t total = repeated_size(Count(from.size(d)) * repeats, output_size);
  Shape apart(from.sizes()), whole(from.sizes());
  apart.insert(d + 1, repeats);
  whole[d] = total;
  return ops::reshape(ops::clone(ops::expand(ops::unsqueeze(from, d + 1), apart), "contiguous_format"), whole);
}

}  // namespace taeda::impl
