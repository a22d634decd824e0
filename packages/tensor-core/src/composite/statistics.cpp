// Statistics of samples in terms of sorting, searching and adding up.
#include "taeda/ops/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "composite/host.h"
#include "taeda/arithmetic.h"
#include "taeda/checked.h"
#include "taeda/dims.h"
#include "taeda/ops/cast.h"
#include "taeda/ops/creation.h"
#include "taeda/ops/index.h"
#include "taeda/ops/reduce.h"
#include "taeda/ops/sort.h"
#include "taeda/wrappers.h"

namespace taeda::impl {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Ranks between elements that a quantile asks for: as they are, or moved to an element.
Tensor moved_ranks(const char* op, const Tensor& ranks, std::string_view interpolation) {
  if (interpolation == "lower") return ops::floor(ranks);
  if (interpolation == "higher") return ops::ceil(ranks);
  if (interpolation == "nearest") return ops::round(ranks);
  check(interpolation == "linear" || interpolation == "midpoint", ErrorKind::Runtime, op,
        ": argument 'interpolation' is '", interpolation,
        "', expected 'linear', 'lower', 'higher', 'midpoint' or 'nearest'");
  return ranks;
}

void check_chances(const char* op, const Tensor& q) {
  if (!at_hand(q)) return;
  const double least = number_of(ops::amin(q)), most = number_of(ops::amax(q));
  check(least >= 0 && most <= 1, ErrorKind::Runtime, op, ": argument 'q' must lie between 0 and 1, found ",
        least >= 0 ? most : least);
}

/// (..., n) rows, of which the ranks (..., k) are asked: which between two elements lie between their values.
Tensor at_ranks(const Tensor& sorted, const Tensor& ranks, bool midpoint) {
  const Tensor below = ops::to_dtype(ops::detach(ranks), DType::Int64);
  const Tensor above = ops::to_dtype(ops::ceil(ops::detach(ranks)), DType::Int64);
  const Tensor low = ops::gather(sorted, -1, below), high = ops::gather(sorted, -1, above);
  const Tensor between = ranks - ops::to_dtype(below, ranks.dtype());
  return ops::lerp(low, high,
                   midpoint ? ops::masked_fill(between, ops::ne(between, Tensor(0.0)), Tensor(0.5)) : between);
}

Tensor quantile_of(const char* op, const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                   std::string_view interpolation, bool without_nan) {
  check(self.dtype() == DType::Float32 || self.dtype() == DType::Float64, ErrorKind::Runtime, op,
        ": argument 'self' has dtype ", name(self.dtype()), ", expected float32 or float64");
  check(q.dim() <= 1, ErrorKind::Runtime, op, ": argument 'q' has shape ", shape_text(q.sizes()),
        ", expected a number or a vector");
  check(q.is_wrapped_number() || q.dtype() == self.dtype(), ErrorKind::Runtime, op, ": argument 'q' has dtype ",
        name(q.dtype()), ", expected that of 'self', ", name(self.dtype()));
  check(self.numel() > 0, ErrorKind::Runtime, op, ": argument 'self' is empty, expected at least one element");
  if (!(q.is_wrapped_number() || q.device() == self.device())) [[unlikely]]
    fail(ErrorKind::Runtime, op, ": arguments 'self' and 'q' must be on the same device, found ", describe(self),
         " and ", describe(q));
  check_chances(op, q);
  const int64_t d = dim ? wrap_dim(*dim, self.dim(), op) : 0;
  const Tensor rows = dim && self.dim() ? ops::movedim(self, Shape{d}, Shape{-1}) : ops::reshape(self, Shape{-1});
  const Tensor sorted = std::get<0>(ops::sort(rows, -1));
  const Tensor chances = ops::reshape(ops::to_device(ops::to_dtype(q, self.dtype()), stated_device(self)), Shape{-1});
  const Tensor nan = ops::isnan(rows);
  const int64_t last = rows.size(-1) - 1;
  Tensor ranks;
  if (without_nan) {
    const Tensor numbers = ops::sum(ops::logical_not(nan), Shape{-1}, true);
    ranks = chances * ops::to_dtype(ops::clamp_min(numbers - Tensor(1), Tensor(0)), self.dtype());
  } else {  // NaN stands last
    ranks = ops::where(ops::any(nan, Shape{-1}, true), Tensor(double(last)), chances * Tensor(double(last)));
  }
  ranks = ops::to_dtype(moved_ranks(op, ranks, interpolation), self.dtype());
  Tensor found = at_ranks(sorted, ranks, interpolation == "midpoint");  // (..., k)
  found = q.dim() ? ops::movedim(found, Shape{-1}, Shape{0}) : ops::squeeze_dims(found, Shape{-1});
  if (!keepdim || self.dim() == 0) return found;
  if (dim) return ops::unsqueeze(found, d + q.dim());
  Shape kept(size_t(self.dim()), 1);
  if (q.dim()) kept.insert(0, q.numel());
  return ops::reshape(found, kept);
}

}  // namespace

Tensor quantile(const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                std::string_view interpolation) {
  return quantile_of("quantile", self, q, dim, keepdim, interpolation, false);
}
Tensor nanquantile(const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                   std::string_view interpolation) {
  return quantile_of("nanquantile", self, q, dim, keepdim, interpolation, true);
}

Tensor renorm(const Tensor& self, const Scalar& p, int64_t dim, const Scalar& maxnorm) {
  check(is_differentiable(self.dtype()), ErrorKind::Runtime, "renorm: argument 'self' has dtype ", name(self.dtype()),
        ", expected a floating-point or complex dtype");
  check(!p.is_complex() && p.to_double() > 0, ErrorKind::Runtime, "renorm: argument 'p' must be a positive number");
  check(!maxnorm.is_complex() && maxnorm.to_double() >= 0, ErrorKind::Runtime,
        "renorm: argument 'maxnorm' must be a number that is not negative");
  check(self.dim() > 1, ErrorKind::Runtime, "renorm: argument 'self' must have at least 2 dimensions, found shape ",
        shape_text(self.sizes()));
  const int64_t d = wrap_dim(dim, self.dim(), "renorm");
  Shape others;
  for (int64_t i = 0; i < self.dim(); ++i)
    if (i != d) others.push_back(i);
  constexpr double kTiny = 1e-7;  // a slice scaled down stays within the norm after rounding
  const Tensor norm = ops::vector_norm(self, p, IntSpan(others), true), most(maxnorm.to_double());
  const Tensor scale = ops::where(ops::gt(norm, most), most / (norm + Tensor(kTiny)), Tensor(1.0));
  return self * scale;
}

namespace {

/// r times the ways to take r of n, in as few factors as r or what is left of all have, without leaving 64 bits.
double numbers_of_choices(int64_t n, int64_t r, bool again) {
  const double all = again ? double(n) + double(r) - 1 : double(n);
  const int64_t factors = std::min(r, again ? n - 1 : n - r);
  double count = 1;
  for (int64_t i = 0; i < factors && count < 1e16; ++i) count *= (all - double(i)) / double(i + 1);
  check(count * double(r) < double(int64_t(1) << 40), ErrorKind::Memory, "combinations: ", r, " out of ", n,
        " elements are more combinations than fit in memory");
  return std::max(0.0, std::round(count * double(r)));
}
/// Places of all ways to take `r` of `n`, one row after the other.
Tensor choices(int64_t n, int64_t r, bool again) {
  if (n == 0 || (!again && r > n)) return taeda::empty(Shape{0}, DType::Int64);
  std::vector<int64_t> rows;
  rows.reserve(size_t(numbers_of_choices(n, r, again)));
  std::vector<int64_t> at(static_cast<size_t>(r), 0);
  for (int64_t i = 0; i < r && !again; ++i) at[size_t(i)] = i;
  const auto most = [&](int64_t i) { return again ? n - 1 : n - r + i; };
  for (bool more = true; more;) {
    rows.insert(rows.end(), at.begin(), at.end());
    int64_t i = r - 1;
    while (i >= 0 && at[size_t(i)] == most(i)) --i;
    more = i >= 0;
    if (!more) break;
    ++at[size_t(i)];
    for (int64_t k = i + 1; k < r; ++k) at[size_t(k)] = at[size_t(k - 1)] + !again;
  }
  const Tensor places = taeda::empty(Shape{int64_t(rows.size())}, DType::Int64);
  if (!rows.empty()) std::memcpy(places.bytes(), rows.data(), rows.size() * sizeof(int64_t));
  return places;
}

}  // namespace

Tensor combinations(const Tensor& self, int64_t r, bool with_replacement) {
  check(self.dim() == 1, ErrorKind::Runtime, "combinations: argument 'self' has shape ", shape_text(self.sizes()),
        ", expected a vector");
  check(r >= 0, ErrorKind::Runtime, "combinations: argument 'r' must not be negative, got ", r);
  if (r == 0) return taeda::empty(Shape{0}, self.dtype(), self.device());
  const Tensor places = ops::to_device(choices(self.numel(), r, with_replacement), stated_device(self));
  return ops::reshape(ops::index_select(self, 0, places), Shape{places.numel() / r, r});
}

Tensor nonzero_static(const Tensor& self, int64_t size, int64_t fill_value) {
  check(size >= 0, ErrorKind::Runtime, "nonzero_static: argument 'size' must not be negative, got ", size);
  if (is_shape_alone(self)) return taeda::empty(Shape{size, self.dim()}, DType::Int64, self.device());
  const Tensor found = ops::nonzero(self);
  const Tensor out = ops::full(Shape{size, self.dim()}, Scalar(fill_value), DType::Int64, stated_device(self));
  const int64_t rows = std::min(size, found.size(0));
  ops::copy_(ops::narrow(out, 0, 0, rows), ops::narrow(found, 0, 0, rows));
  return out;
}

namespace {

/// Element i of `self` along `dim`, kept; from the end where negative.
Tensor at(const Tensor& self, int64_t dim, int64_t i) {
  return ops::narrow(self, dim, i < 0 ? self.size(dim) + i : i, 1);
}
/// Weights of three neighbours in a difference of second order, by the distances to the left and to the right.
struct Weights {
  Tensor left, middle, right;
  Tensor of(const Tensor& a, const Tensor& b, const Tensor& c) const { return left * a + middle * b + right * c; }
};
Weights inside(const Tensor& l, const Tensor& r) { return {-r / (l * (l + r)), (r - l) / (l * r), l / (r * (l + r))}; }
Weights at_start(const Tensor& l, const Tensor& r) {
  return {-(Tensor(2) * l + r) / (l * (l + r)), (l + r) / (l * r), -l / (r * (l + r))};
}
Weights at_end(const Tensor& l, const Tensor& r) {
  return {r / (l * (l + r)), -(l + r) / (l * r), (l + Tensor(2) * r) / (r * (l + r))};
}

/// The derivative along one dimension, `steps` (n - 1) the distances of its samples, broadcast.
Tensor derivative(const Tensor& f, const Tensor& steps, int64_t dim, int64_t edge_order) {
  const int64_t n = f.size(dim);
  const auto step = [&](int64_t i) { return steps.dim() ? at(steps, dim, i) : steps; };
  Tensor first, last;
  if (edge_order == 1) {
    first = (at(f, dim, 1) - at(f, dim, 0)) / step(0);
    last = (at(f, dim, -1) - at(f, dim, -2)) / step(-1);
  } else {
    first = at_start(step(0), step(1)).of(at(f, dim, 0), at(f, dim, 1), at(f, dim, 2));
    last = at_end(step(-2), step(-1)).of(at(f, dim, -3), at(f, dim, -2), at(f, dim, -1));
  }
  if (n == 2) {
    const Tensor ends[] = {first, last};
    return ops::cat(ends, dim);
  }
  const Tensor before = ops::narrow(f, dim, 0, n - 2), here = ops::narrow(f, dim, 1, n - 2),
               after = ops::narrow(f, dim, 2, n - 2);
  const Tensor middle =
      steps.dim() == 0
          ? (after - before) / (Tensor(2) * steps)
          : inside(ops::narrow(steps, dim, 0, n - 2), ops::narrow(steps, dim, 1, n - 2)).of(before, here, after);
  const Tensor parts[] = {first, middle, last};
  return ops::cat(parts, dim);
}

/// The dimensions that are asked for, each of enough samples.
Shape gradient_dims(const Tensor& self, std::optional<IntSpan> dim, int64_t edge_order) {
  check(edge_order == 1 || edge_order == 2, ErrorKind::Runtime, "gradient: argument 'edge_order' must be 1 or 2, got ",
        edge_order);
  Shape dims;
  uint64_t seen = 0;
  if (dim)
    for (const int64_t d : *dim) dims.push_back(wrap_dim(d, self.dim(), "gradient"));
  else
    for (int64_t d = 0; d < self.dim(); ++d) dims.push_back(d);
  for (const int64_t d : dims) {
    check(!(seen >> d & 1), ErrorKind::Runtime, "gradient: argument 'dim' names dimension ", d, " twice");
    seen |= uint64_t(1) << d;
    check((self.dim() ? self.size(d) : 1) >= edge_order + 1, ErrorKind::Runtime, "gradient: dimension ", d,
          " of shape ", shape_text(self.sizes()), " has fewer than edge_order + 1 = ", edge_order + 1, " samples");
  }
  return dims;
}
/// What is differenced: integers as numbers of the default dtype, halves in float32.
Tensor samples_of(const Tensor& self) {
  check(self.dtype() != DType::UInt8, ErrorKind::Runtime,
        "gradient: argument 'self' has dtype uint8, which has no "
        "negative differences");
  if (is_integral(self.dtype())) return ops::to_dtype(self, default_dtype());
  return item_size(self.dtype()) == 2 ? ops::to_dtype(self, DType::Float32) : self;
}
/// In the dtype of the samples.
Tensor rounded(const Tensor& found, const Tensor& self) {
  return is_integral(self.dtype()) ? found : ops::to_dtype(found, self.dtype());
}
std::vector<Tensor> with_steps(const Tensor& self, const Shape& dims, std::span<const double> steps,
                               int64_t edge_order) {
  const Tensor f = samples_of(self);
  std::vector<Tensor> out;
  for (size_t i = 0; i < dims.size(); ++i) {
    const Tensor step = ops::full(Shape{}, steps[i], real_of(f.dtype()), stated_device(f));
    out.push_back(rounded(derivative(f, step, dims[i], edge_order), self));
  }
  return out;
}

}  // namespace

std::vector<Tensor> gradient(const Tensor& self, const std::optional<Scalar>& spacing, std::optional<IntSpan> dim,
                             int64_t edge_order) {
  const Shape dims = gradient_dims(self, dim, edge_order);
  const std::vector<double> steps(dims.size(), spacing ? spacing->to_double() : 1.0);
  return with_steps(self, dims, steps, edge_order);
}
std::vector<Tensor> gradient_steps(const Tensor& self, std::span<const double> spacing, std::optional<IntSpan> dim,
                                   int64_t edge_order) {
  const Shape dims = gradient_dims(self, dim, edge_order);
  check(spacing.size() == dims.size(), ErrorKind::Runtime, "gradient: argument 'spacing' has ", spacing.size(),
        " numbers, expected one for each of the ", dims.size(), " dimensions");
  return with_steps(self, dims, spacing, edge_order);
}
std::vector<Tensor> gradient_coordinates(const Tensor& self, TensorList spacing, std::optional<IntSpan> dim,
                                         int64_t edge_order) {
  const Shape dims = gradient_dims(self, dim, edge_order);
  check(spacing.size() == dims.size(), ErrorKind::Runtime, "gradient: argument 'spacing' has ", spacing.size(),
        " tensors, expected one for each of the ", dims.size(), " dimensions");
  const Tensor f = samples_of(self);
  std::vector<Tensor> out;
  for (size_t i = 0; i < dims.size(); ++i) {
    const Tensor& x = spacing[i];
    check(x.dim() == 1 && x.numel() == f.size(dims[i]), ErrorKind::Runtime, "gradient: argument 'spacing' has shape ",
          shape_text(x.sizes()), " at ", i, ", expected the coordinates of ", f.size(dims[i]), " samples");
    Shape along(size_t(f.dim()), 1);
    along[size_t(dims[i])] = x.numel() - 1;
    out.push_back(rounded(derivative(f, ops::reshape(ops::diff(x), along), dims[i], edge_order), self));
  }
  return out;
}

namespace {

/// Two bounds that differ, of the elements where none are given.
std::array<double, 2> bounds_of(const char* op, const Tensor& x, std::span<const double> range) {
  std::array<double, 2> found = {0, 1};
  if (!range.empty()) {
    found = {range[0], range[1]};
  } else if (x.numel() > 0) {
    found = {number_of(ops::amin(x)), number_of(ops::amax(x))};
  }
  check(std::isfinite(found[0]) && std::isfinite(found[1]), ErrorKind::Runtime, op, ": the range from ", found[0],
        " to ", found[1], " is not finite");
  check(found[0] <= found[1], ErrorKind::Runtime, op, ": argument 'range' must ascend, got ", found[0], " and ",
        found[1]);
  if (found[0] == found[1]) found = {found[0] - 0.5, found[1] + 0.5};
  return found;
}

void check_edges(const char* op, const Tensor& self, const Tensor& edges) {
  check(edges.dim() == 1 && edges.numel() > 0, ErrorKind::Runtime, op, ": argument 'bins' has shape ",
        shape_text(edges.sizes()), ", expected a vector of bounds");
  check(edges.dtype() == self.dtype(), ErrorKind::Runtime, op, ": argument 'bins' has dtype ", name(edges.dtype()),
        ", expected that of 'self', ", name(self.dtype()));
}

/// Sums of weights of points (n, D) between bounds, and bounds.
std::tuple<Tensor, std::vector<Tensor>> counted(const char* op, const Tensor& self, std::vector<Tensor> edges,
                                                const Tensor& weight, bool density) {
  const int64_t points = self.size(0), axes = self.size(1);
  Tensor place, inside;
  Shape sizes;
  Count cells = 1;
  for (int64_t d = 0; d < axes; ++d) {
    const int64_t bins = edges[size_t(d)].numel() - 1;
    const Tensor x = ops::contiguous(ops::select(self, 1, d));
    sizes.push_back(bins);
    cells *= Count(bins);
    if (points == 0 || bins == 0) continue;
    const Tensor last = at(edges[size_t(d)], 0, -1);
    const Tensor found = ops::searchsorted(edges[size_t(d)], x, true) - Tensor(1);
    // The last interval has its upper bound.
    const Tensor bin = ops::where(ops::eq(x, last), Tensor(bins - 1), found);
    const Tensor within = ops::logical_and(ops::ge(x, at(edges[size_t(d)], 0, 0)), ops::le(x, last));
    inside = inside.defined() ? ops::logical_and(inside, within) : within;
    place = place.defined() ? place * Tensor(bins) + bin : bin;
  }
  const int64_t count = cells.of(op, "the number of bins");
  Tensor hist = ops::zeros(Shape{count + 1}, self.dtype(), stated_device(self));
  if (points > 0 && count > 0) {
    const Tensor weights = weight.defined() ? ops::reshape(weight, Shape{-1})
                                            : ops::ones(Shape{points}, self.dtype(), stated_device(self));
    // What lies nowhere goes to one place more.
    hist = ops::index_add(hist, 0, ops::where(inside, place, Tensor(count)), weights);
  }
  hist = ops::reshape(ops::narrow(hist, 0, 0, count), sizes);
  if (density) {
    hist = hist / ops::sum(hist);
    for (int64_t d = 0; d < axes; ++d) {
      Shape along(size_t(axes), 1);
      along[size_t(d)] = sizes[size_t(d)];
      hist = hist / ops::reshape(ops::diff(edges[size_t(d)]), along);
    }
  }
  return {ops::contiguous(hist), std::move(edges)};
}

void check_histogram(const char* op, const Tensor& self, const Tensor& weight, IntSpan shape) {
  check(is_floating(self.dtype()), ErrorKind::NotImplemented, op, ": not implemented for dtype ", name(self.dtype()));
  if (!weight.defined()) return;
  check(weight.dtype() == self.dtype(), ErrorKind::Runtime, op, ": argument 'weight' has dtype ", name(weight.dtype()),
        ", expected that of 'self', ", name(self.dtype()));
  check(std::ranges::equal(weight.sizes(), shape), ErrorKind::Runtime, op, ": argument 'weight' has shape ",
        shape_text(weight.sizes()), ", expected ", shape_text(shape));
}
Tensor even_edges(const char* op, const Tensor& x, int64_t bins, std::span<const double> range) {
  check(bins > 0, ErrorKind::Runtime, op, ": argument 'bins' must be positive, got ", bins);
  const auto [low, high] = bounds_of(op, x, range);
  return ops::linspace(low, high, bins + 1, x.dtype(), stated_device(x));
}

}  // namespace

std::tuple<Tensor, Tensor> histogram(const Tensor& self, int64_t bins, std::span<const double> range,
                                     const Tensor& weight, bool density) {
  check_histogram("histogram", self, weight, self.sizes());
  check(range.empty() || range.size() == 2, ErrorKind::Runtime, "histogram: argument 'range' has ", range.size(),
        " numbers, expected 2");
  const Tensor x = ops::reshape(ops::detach(self), Shape{-1, 1});
  auto [hist, edges] = counted("histogram", x, {even_edges("histogram", x, bins, range)}, weight, density);
  return {hist, edges[0]};
}
std::tuple<Tensor, Tensor> histogram_edges(const Tensor& self, const Tensor& bins, const Tensor& weight, bool density) {
  check_histogram("histogram", self, weight, self.sizes());
  check_edges("histogram", self, bins);
  const Tensor x = ops::reshape(ops::detach(self), Shape{-1, 1});
  auto [hist, edges] = counted("histogram", x, {ops::clone(bins)}, weight, density);
  return {hist, edges[0]};
}

namespace {
/// (..., D) as rows of points.
Tensor points_of(const Tensor& self, const Tensor& weight) {
  check(self.dim() >= 2, ErrorKind::Runtime, "histogramdd: argument 'self' has shape ", shape_text(self.sizes()),
        ", expected at least 2 dimensions");
  check_histogram("histogramdd", self, weight, self.sizes().first(size_t(self.dim() - 1)));
  return ops::reshape(ops::detach(self), Shape{self.size(-1) ? self.numel() / self.size(-1) : 0, self.size(-1)});
}
/// One list of both.
std::vector<Tensor> joined(std::tuple<Tensor, std::vector<Tensor>> found) {
  auto& [hist, edges] = found;
  edges.insert(edges.begin(), hist);
  return std::move(edges);
}
}  // namespace

std::vector<Tensor> histogramdd(const Tensor& self, IntSpan bins, std::span<const double> range, const Tensor& weight,
                                bool density) {
  const Tensor points = points_of(self, weight);
  const size_t axes = size_t(points.size(1));
  check(bins.size() == axes || bins.size() == 1, ErrorKind::Runtime, "histogramdd: argument 'bins' has ", bins.size(),
        " numbers, expected one for each of the ", axes, " coordinates");
  check(range.empty() || range.size() == 2 * axes, ErrorKind::Runtime, "histogramdd: argument 'range' has ",
        range.size(), " numbers, expected 2 for each of the ", axes, " coordinates");
  std::vector<Tensor> edges;
  for (size_t d = 0; d < axes; ++d)
    edges.push_back(even_edges("histogramdd", ops::select(points, 1, int64_t(d)), bins[bins.size() == 1 ? 0 : d],
                               range.empty() ? range : range.subspan(2 * d, 2)));
  return joined(counted("histogramdd", points, std::move(edges), weight, density));
}
std::vector<Tensor> histogramdd_edges(const Tensor& self, TensorList bins, const Tensor& weight, bool density) {
  const Tensor points = points_of(self, weight);
  check(int64_t(bins.size()) == points.size(1), ErrorKind::Runtime, "histogramdd: argument 'bins' has ", bins.size(),
        " tensors, expected one for each of the ", points.size(1), " coordinates");
  std::vector<Tensor> edges;
  for (const Tensor& b : bins) {
    check_edges("histogramdd", self, b);
    edges.push_back(ops::clone(b));
  }
  return joined(counted("histogramdd", points, std::move(edges), weight, density));
}

namespace {

/// What an empty segment gives.
double start_of(std::string_view reduce, const std::optional<Scalar>& initial) {
  if (initial) return initial->to_double();
  constexpr double inf = std::numeric_limits<double>::infinity();
  return reduce.ends_with("max") ? -inf : reduce.ends_with("min") ? inf : reduce == "prod" ? 1 : 0;
}

/// For each place along `axis` the number of its segment: int64 of the shape of data up to the axis.
Tensor segments_of(const Tensor& data, const Tensor& lengths, int64_t axis, bool unsafe) {
  const IntSpan places = data.sizes().first(size_t(axis + 1));
  if (is_shape_alone(lengths)) return taeda::empty(places, DType::Int64, data.device());
  const Tensor host = on_host(ops::to_dtype(lengths, DType::Int64));
  const int64_t n = data.size(axis), count = lengths.size(-1), rows = n ? product(places) / n : 0;
  const Tensor numbers = taeda::empty(places, DType::Int64);
  int64_t* out = numbers.data<int64_t>();
  for (int64_t row = 0; row < rows; ++row) {
    Count sum = 0;
    int64_t* const end = out + n;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t length = host.data<int64_t>()[row * count + i];
      check(length >= 0, ErrorKind::Runtime, "segment_reduce: argument 'lengths' must not be negative, found ", length);
      sum += length;
      check(sum.fits() && length <= end - out, ErrorKind::Runtime,
            "segment_reduce: the segments are longer than the size ", n, " of axis ", axis);
      out = std::fill_n(out, length, i);
    }
    check(unsafe || out == end, ErrorKind::Runtime, "segment_reduce: the segments do not cover the size ", n,
          " of axis ", axis);
    out = std::fill_n(out, end - out, count);  // belongs to none
  }
  return ops::to_device(numbers, stated_device(data));
}

}  // namespace

Tensor segment_reduce(const Tensor& data, std::string_view reduce, const Tensor& lengths, const Tensor& indices,
                      const Tensor& offsets, int64_t axis, bool unsafe, const std::optional<Scalar>& initial) {
  constexpr std::string_view known[] = {"sum", "mean", "max", "amax", "min", "amin", "prod"};
  check(std::ranges::find(known, reduce) != std::end(known), ErrorKind::Runtime,
        "segment_reduce: argument 'reduce' is '", reduce, "', expected 'sum', 'mean', 'max', 'min' or 'prod'");
  check(!indices.defined(), ErrorKind::NotImplemented,
        "segment_reduce: argument 'indices' is not supported; give "
        "'lengths' or 'offsets'");
  check(lengths.defined() != offsets.defined(), ErrorKind::Runtime,
        "segment_reduce: expected one of the arguments 'lengths' and 'offsets'");
  if (!(data.dim() > 0 && is_floating(data.dtype()))) [[unlikely]]
    fail(ErrorKind::Runtime, "segment_reduce: argument 'data' is ", describe(data),
         ", expected floating-point numbers of at least one dimension");
  const Tensor& given = lengths.defined() ? lengths : offsets;
  const int64_t d = wrap_dim(axis, data.dim(), "segment_reduce", "axis");
  if (!(given.dim() == d + 1 && is_integral(given.dtype()) &&
        std::ranges::equal(given.sizes().first(size_t(d)), data.sizes().first(size_t(d))))) [[unlikely]]
    fail(ErrorKind::Runtime, "segment_reduce: argument '", lengths.defined() ? "lengths" : "offsets", "' is ",
         describe(given), ", expected integers of the sizes of 'data' before axis ", d, " and one more dimension");
  check(lengths.defined() || given.size(-1) > 0, ErrorKind::Runtime, "segment_reduce: argument 'offsets' is empty");
  const Tensor sizes = ops::to_dtype(lengths.defined() ? lengths : ops::diff(offsets), DType::Int64);
  Tensor numbers = segments_of(data, sizes, d, unsafe), weights = sizes;
  Shape shape(data.sizes());
  shape[size_t(d)] = sizes.size(-1) + 1;
  for (int64_t i = d + 1; i < data.dim(); ++i) {
    numbers = ops::unsqueeze(numbers, -1);
    weights = ops::unsqueeze(weights, -1);
  }
  const Tensor base = ops::full(shape, start_of(reduce, initial), data.dtype(), stated_device(data));
  const std::string_view how = reduce == "mean" ? "sum" : reduce;
  // What stands for nothing takes no part of a gradient, though it may be as large as the elements.
  const bool begun = initial || how == "sum";
  const Tensor all = ops::scatter_reduce(base, d, ops::expand(numbers, data.sizes()), data, how, begun);
  const Tensor out = ops::narrow(all, d, 0, sizes.size(-1));
  if (reduce != "mean") return out;
  const Tensor none = ops::eq(weights, Tensor(0)),
               some = ops::to_dtype(ops::clamp_min(weights, Tensor(1)), data.dtype());
  const Tensor mean = out / some;
  return initial ? mean : ops::where(none, Tensor(kNaN), mean);
}

}  // namespace taeda::impl
