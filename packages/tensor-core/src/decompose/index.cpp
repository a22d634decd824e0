// Advanced indexing, joining, distinct elements and drawing by weight.
#include "infer/index.h"
#include "taeda/texts.h"
#include "taeda/wrappers.h"

#include <algorithm>

#include "composite/host.h"
#include "core/decompose.h"
#include "decompose/common.h"
#include "infer/sort.h"

namespace taeda::decompose {
namespace {

/// `self[indices]` as rows of a matrix: the indexed dimensions together name the row, the others lie along it.
struct Rows {
  Shape order, common, rest;  // order: self's dimensions, the indexed ones first
  int64_t front = 0;          // where the indices' common dimensions stand in the result
  int64_t count = 1, width = 1;
  Tensor at;  // int64, one row number for each common place

  Rows(const char* op, const Tensor& self, TensorList indices) {
    std::vector<Tensor> places;
    const Shape dims = listed(indices, places);
    for (const Tensor& p : places) common = infer::index_shapes(common, p.sizes(), op);
    Tensor row = ops::zeros(common, DType::Int64);
    for (size_t i = 0; i < places.size(); ++i) {
      const int64_t size = self.size(dims[i]);
      check_range(op, places[i], dims[i], size);
      row = row * Tensor(size) + ops::where(ops::lt(places[i], Tensor(0)), places[i] + Tensor(size), places[i]);
      count *= size;
      order.push_back(dims[i]);
    }
    front = dims.empty() ? 0 : dims[0];
    for (size_t i = 1; i < dims.size(); ++i)
      if (dims[i] != dims[i - 1] + 1) front = 0;  // not side by side: they come first
    for (int64_t d = 0; d < self.dim(); ++d) {
      if (std::ranges::find(dims, d) != dims.end()) continue;
      order.push_back(d);
      rest.push_back(self.size(d));
      width *= self.size(d);
    }
    at = ops::to_device(ops::reshape(row, Shape{row.numel()}), stated_device(self));
  }
  Tensor matrix(const Tensor& self) const { return ops::reshape(ops::permute(self, order), Shape{count, width}); }
  /// Dimensions of the result when the common ones come first, and the order that brings them to their place.
  Shape common_first() const {
    Shape sizes(common);
    for (int64_t s : rest) sizes.push_back(s);
    return sizes;
  }
  Shape in_place() const {
    const int64_t c = int64_t(common.size()), n = c + int64_t(rest.size());
    Shape out;
    for (int64_t d = 0; d < n; ++d) out.push_back(d < front ? c + d : d < front + c ? d - front : d);
    return out;
  }

 private:
  /// Integer places on the host and the dimension of each; masks become the places of their true elements.
  static Shape listed(TensorList indices, std::vector<Tensor>& places) {
    Shape dims;
    int64_t dim = 0;
    for (const Tensor& index : indices) {
      if (!index.defined()) {
        ++dim;
      } else if (!infer::is_mask(index)) {
        places.push_back(on_host(ops::to_dtype(index, DType::Int64)));
        dims.push_back(dim++);
      } else {
        const Tensor found = ops::nonzero(on_host(index));
        for (int64_t d = 0; d < index.dim(); ++d, ++dim) {
          places.push_back(ops::select(found, 1, d));
          dims.push_back(dim);
        }
      }
    }
    return dims;
  }
  static void check_range(const char* op, const Tensor& places, int64_t dim, int64_t size) {
    const Tensor plain = ops::contiguous(places);
    for (int64_t i = 0; i < plain.numel(); ++i) {
      const int64_t v = plain.data<int64_t>()[i];
      if (v < -size || v >= size) [[unlikely]]
        fail(ErrorKind::Index, op, ": ", out_of_bounds(v, dim, size));
    }
  }
};

Tensor index(const Tensor& self, TensorList indices) {
  const Rows rows("index", self, indices);
  return ops::permute(ops::reshape(ops::index_select(rows.matrix(self), 0, rows.at), rows.common_first()),
                      rows.in_place());
}

Shape inverse_of(const Shape& order) {
  Shape out(order.size(), 0);
  for (size_t i = 0; i < order.size(); ++i) out[size_t(order[i])] = int64_t(i);
  return out;
}
void index_put_(const Tensor& self, TensorList indices, const Tensor& values, bool accumulate) {
  const Rows rows("index_put_", self, indices);
  const Shape first = rows.common_first(), places = rows.in_place();
  Shape result;
  for (int64_t d : places) result.push_back(first[size_t(d)]);
  infer::index_values("index_put_", result, values);
  const Tensor given =
      ops::to_device(ops::to_dtype(values, self.dtype()), stated_device(self));  // a number lies on the cpu
  const Tensor spread = ops::permute(ops::expand(given, result), inverse_of(places));
  const Tensor source = ops::reshape(spread, Shape{rows.at.numel(), rows.width}), old = rows.matrix(self);
  const Tensor changed =
      accumulate ? ops::index_add(old, 0, rows.at, source) : ops::index_copy(old, 0, rows.at, source);
  Shape moved;
  for (int64_t d : rows.order) moved.push_back(self.size(d));
  ops::copy_(self, ops::permute(ops::reshape(changed, moved), inverse_of(rows.order)));
}

Tensor cat(TensorList tensors, int64_t dim) {
  const auto skipped = [&](const Tensor& t) { return t.dim() == 1 && t.numel() == 0; };
  const auto like = std::ranges::find_if_not(tensors, skipped);
  const Tensor& first = like == tensors.end() ? tensors[0] : *like;
  const int64_t d = dim < 0 ? dim + first.dim() : dim;
  Shape sizes(first.sizes());
  sizes[size_t(d)] = 0;
  for (const Tensor& t : tensors) sizes[size_t(d)] += skipped(t) ? 0 : t.size(d);
  const Tensor out = empty(sizes, result_type(tensors), stated_device(first));
  int64_t begin = 0;
  for (const Tensor& t : tensors) {
    if (t.numel() == 0) continue;
    ops::copy_(ops::narrow(out, d, begin, t.size(d)), t);
    begin += t.size(d);
  }
  return out;
}

/// Runs of equal elements in sorted order; each NaN is a run.
std::tuple<Tensor, Tensor, Tensor, Tensor> unique_all(const Tensor& self) {
  const int64_t n = self.numel();
  const Device device = stated_device(self);
  const Tensor flat = ops::reshape(self, Shape{n}), none = ops::zeros(Shape{0}, DType::Int64, device);
  if (n == 0) return {flat, none, ops::zeros(self.sizes(), DType::Int64, device), none};
  const auto [sorted, order] = ops::sort(flat, 0, false, true);
  const std::vector<Tensor> marks{ops::ones(Shape{1}, DType::Bool, device),
                                  ops::ne(ops::narrow(sorted, 0, 1, n - 1), ops::narrow(sorted, 0, 0, n - 1))};
  const Tensor starts = ops::cat(marks, 0), at = ops::select(ops::nonzero(starts), 1, 0);
  const Tensor group = ops::cumsum(starts, 0) - Tensor(1), zero = ops::zeros(Shape{n}, DType::Int64, device);
  const std::vector<Tensor> ends{ops::narrow(at, 0, 1, at.numel() - 1), ops::full(Shape{1}, n, DType::Int64, device)};
  return {ops::index_select(sorted, 0, at), ops::index_select(order, 0, at),
          ops::reshape(ops::scatter(zero, 0, order, group), self.sizes()), ops::cat(ends, 0) - at};
}

/// Runs of equal elements as they stand.
Three unique_consecutive_all(const Tensor& self) {
  const int64_t n = self.numel();
  const Device device = stated_device(self);
  const Tensor flat = ops::reshape(self, Shape{n});
  if (n == 0) return {flat, ops::zeros(self.sizes(), DType::Int64, device), ops::zeros(Shape{0}, DType::Int64, device)};
  const std::vector<Tensor> marks{ops::ones(Shape{1}, DType::Bool, device),
                                  ops::ne(ops::narrow(flat, 0, 1, n - 1), ops::narrow(flat, 0, 0, n - 1))};
  const Tensor starts = ops::cat(marks, 0), at = ops::select(ops::nonzero(starts), 1, 0);
  const std::vector<Tensor> ends{ops::narrow(at, 0, 1, at.numel() - 1), ops::full(Shape{1}, n, DType::Int64, device)};
  return {ops::index_select(flat, 0, at), ops::reshape(ops::cumsum(starts, 0) - Tensor(1), self.sizes()),
          ops::cat(ends, 0) - at};
}

Tensor histc(const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max) {
  const DType dtype = self.dtype() == DType::Float32 ? DType::Float32 : DType::Float64;
  const Tensor x = ops::to_dtype(ops::reshape(self, Shape{self.numel()}), dtype);
  double low = min.to_double(), high = max.to_double();
  if (low == high && self.numel()) low = number_of(ops::amin(x)), high = number_of(ops::amax(x));
  infer::histogram_range(low, high);
  const Tensor inside = ops::logical_and(ops::ge(x, Tensor(low)), ops::le(x, Tensor(high)));
  const Tensor ahead = ops::where(inside, x, Tensor(low)) - Tensor(low), parts = Tensor(double(bins)),
               width = Tensor(high - low), whole = ahead * parts / width,
               share = ops::where(ops::isfinite(whole), whole, ahead / width * parts);
  const Tensor bin =
      ops::clamp_max(ops::to_dtype(share, DType::Int64), Tensor(bins - 1));  // the upper bound is in the last bin
  const Tensor none = ops::zeros(Shape{bins}, DType::Float64, stated_device(self));
  return ops::to_dtype(ops::index_add(none, 0, bin, ops::to_dtype(inside, DType::Float64)), self.dtype());
}

/// One value after another along `dim`: within a step no place is met twice.
template <class Combine>
Tensor in_steps(Tensor into, int64_t dim, const Tensor& index, const Tensor& src, const Combine& combine) {
  for (int64_t i = 0; i < index.size(dim); ++i) {
    const Tensor at = ops::narrow(index, dim, i, 1);
    into = ops::scatter(into, dim, at, combine(ops::gather(into, dim, at), ops::narrow(src, dim, i, 1)));
  }
  return into;
}
Tensor scatter_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,
                      bool include_self) {
  if (index.numel() == 0) return ops::clone(self);
  const auto line = [](const Tensor& t) { return t.dim() ? t : ops::reshape(t, Shape{1}); };
  const Tensor at = line(index), start = line(self);
  Tensor values = line(src);
  const int64_t d = dim < 0 ? dim + start.dim() : dim;
  for (int64_t k = 0; k < at.dim(); ++k) values = ops::narrow(values, k, 0, at.size(k));
  const Tensor none = ops::zeros(start.sizes(), DType::Int64, stated_device(self));
  const Tensor met = ops::scatter_add(none, d, at, ops::ones(at.sizes(), DType::Int64, stated_device(self))),
               touched = ops::gt(met, Tensor(0));
  const auto neutral = [&](int64_t value) {
    return include_self ? start : ops::where(touched, ops::full_like(start, value), start);
  };
  const auto kept = [&] {
    return include_self ? start : ops::scatter(start, d, at, values);
  };  // any of them: it is met again
  Tensor out;
  if (reduce == "sum" || reduce == "mean") out = ops::scatter_add(neutral(0), d, at, values);
  if (reduce == "prod") out = in_steps(neutral(1), d, at, values, ops::mul);
  if (reduce.ends_with("max")) out = in_steps(kept(), d, at, values, ops::maximum);
  if (reduce.ends_with("min")) out = in_steps(kept(), d, at, values, ops::minimum);
  if (reduce == "mean") {
    const Tensor count = ops::maximum(include_self ? met + Tensor(1) : met, Tensor(1));
    out = is_integral(self.dtype())
              ? ops::to_dtype(ops::floor_divide(out, ops::to_dtype(count, self.dtype())), self.dtype())
              : out / count;
  }
  return ops::reshape(out, self.sizes());
}

/// The race of exponential clocks: an element is the first to ring with a chance that is its share of the weights.
Tensor multinomial(const Tensor& self, int64_t count, bool replacement, const Generator& generator) {
  const Tensor usable = ops::logical_and(ops::ge(self, Tensor(0.0)), ops::isfinite(self));
  check(number_of(ops::all(usable)) != 0, ErrorKind::Runtime,
        "multinomial: argument 'self' must hold finite, non-negative weights");
  if (self.numel()) {
    const bool drawable = number_of(ops::all(ops::any(ops::gt(self, Tensor(0.0)), Shape{-1}))) != 0;
    check(drawable, ErrorKind::Runtime, "multinomial: argument 'self' has a row whose weights sum up to 0");
  }
  Shape sizes(self.sizes());
  if (replacement) sizes[sizes.size() - 1] = count, sizes.push_back(self.size(-1));
  const Tensor clocks = empty(sizes, self.dtype(), stated_device(self));
  ops::exponential_(clocks, 1, generator);
  const Tensor late = ops::clamp_min(clocks, Tensor(1e-30));  // 0 / 0 would win
  if (replacement) return ops::argmax(ops::unsqueeze(self, -2) / late, -1);
  return std::get<1>(ops::topk(self / late, count));
}

Tensor bincount(const Tensor& self, const Tensor& weights, int64_t minlength) {
  const Tensor at = ops::to_dtype(self, DType::Int64);
  int64_t size = minlength;
  if (at.numel()) {
    const auto [least, most] = ops::aminmax(at);
    const Tensor ends = on_host(ops::stack(std::array{least, most}));
    const int64_t* const end = ends.data<int64_t>();
    size = infer::bincount_size(end[0], end[1], size);
  }
  const DType dtype = infer::bincount_dtype(self, weights);
  const Tensor each =
      weights.defined() ? ops::to_dtype(weights, dtype) : ops::ones(self.sizes(), dtype, stated_device(self));
  return ops::index_add(ops::zeros(Shape{size}, dtype, stated_device(self)), 0, at, each);
}

/// Bisection of all rows at once.
Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& self, bool right) {
  const Tensor& edges = sorted_sequence;
  const Tensor wanted = ops::to_device(self, stated_device(edges));
  const bool shared = edges.dim() == 1;
  const auto before = [](const Tensor& a, const Tensor& b) {  // NaN is last
    return ops::logical_or(ops::lt(a, b), ops::logical_and(ops::ne(b, b), ops::eq(a, a)));
  };
  const int64_t length = edges.size(-1);
  Tensor low = ops::zeros(wanted.sizes(), DType::Int64, stated_device(edges)), high = ops::full_like(low, length);
  for (int64_t left = length; left > 0; left /= 2) {
    const Tensor middle = ops::trunc_divide(low + high, Tensor(2)), place = ops::minimum(middle, Tensor(length - 1));
    const Tensor edge =
        shared ? ops::reshape(ops::index_select(edges, 0, ops::reshape(place, Shape{place.numel()})), wanted.sizes())
               : ops::gather(edges, -1, place);
    const Tensor above = right ? ops::logical_not(before(wanted, edge)) : before(edge, wanted),
                 open = ops::lt(low, high);
    low = ops::where(ops::logical_and(open, above), middle + Tensor(1), low);
    high = ops::where(ops::logical_and(open, ops::logical_not(above)), middle, high);
  }
  return low;
}

DECOMPOSE(bincount)
static const bool bincount_noted = (note_as_given("bincount"), true);
DECOMPOSE(histc)
DECOMPOSE(scatter_reduce)
DECOMPOSE(searchsorted)
DECOMPOSE(index)
DECOMPOSE(index_put_)
DECOMPOSE(cat)
DECOMPOSE(unique_all)
DECOMPOSE(unique_consecutive_all)
DECOMPOSE(multinomial)

}  // namespace
}  // namespace taeda::decompose
