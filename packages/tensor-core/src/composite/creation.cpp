// Tensors from sizes and numbers, in terms of empty tensors and fills.
#include "taeda/ops/creation.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "composite/made.h"
#include "infer/memory_format.h"
#include "infer/random.h"
#include "infer/numbers.h"
#include "taeda/checked.h"
#include "taeda/deterministic.h"
#include "taeda/ops/cast.h"
#include "taeda/ops/shape.h"
#include "taeda/wrappers.h"

namespace taeda::impl {
namespace {

/// Names the operator that was called, not the allocation under it.
void check_sizes(const char* op, IntSpan size) {
  for (const int64_t n : size)
    if (n < 0) [[unlikely]]
      fail(ErrorKind::Runtime, op, ": argument 'size' must not be negative, got ", shape_text(size));
}

/// Whether all bytes of the number are zero in every dtype, which those of -0.0 are not.
bool is_blank(const Scalar& value) {
  return value.equal(0.0) && !std::signbit(value.to_double()) && !std::signbit(value.imag());
}

Tensor fill_with(Tensor made, const Scalar& value) {
  if (made.device().backend == kCPU && made.dense() && is_blank(value))
    std::memset(made.bytes(), 0, size_t(made.numel() * made.item_bytes()));
  else ops::fill_(made, value);
  return made;
}

/// What nobody has written is NaN, or the largest number, where every run is to be the same.
Tensor unwritten(Tensor made) {
  const DType type = made.dtype();
  if (!fills_unwritten() || is_custom(type)) [[likely]]
    return made;
  if (!is_integral(type)) ops::fill_(made, std::numeric_limits<double>::quiet_NaN());
  else if (type == DType::UInt64) ops::fill_(made, Tensor(Scalar(std::numeric_limits<uint64_t>::max())));
  else ops::fill_(made, infer::largest_integer(type));
  return made;
}

/// The layout of `self`, without gaps.
Tensor empty_as(const Tensor& self, std::optional<DType> dtype, std::optional<Device> device) {
  const DType type = dtype.value_or(self.dtype());
  const Device place = device.value_or(stated_device(self));
  if (self.contiguous() && (!self.numel() || infer::stands_in_rows(self))) return empty(self.sizes(), type, place);
  if (self.dense()) return empty_strided(self.sizes(), self.strides(), type, place);
  const Tensor* const only[] = {&self};
  const Shape strides = infer::closed_strides(self.sizes(), only);
  return strides.empty() ? empty(self.sizes(), type, place) : empty_strided(self.sizes(), strides, type, place);
}

DType dtype_of_value(const Scalar& value) { return value.dtype() == DType::UInt64 ? DType::UInt64 : value.dtype(); }

}  // namespace

Tensor empty(IntSpan size, std::optional<DType> dtype, std::optional<Device> device, bool requires_grad) {
  return as_made(unwritten(taeda::empty(size, dtype.value_or(default_dtype()), device.value_or(Device{}))),
                 requires_grad);
}
Tensor empty_strided(IntSpan size, IntSpan stride, std::optional<DType> dtype, std::optional<Device> device,
                     bool requires_grad) {
  check(size.size() == stride.size(), ErrorKind::Runtime, "empty_strided: argument 'stride' has ", stride.size(),
        " items, expected ", size.size());
  for (int64_t step : stride)
    check(step >= 0, ErrorKind::Value, "empty_strided: argument 'stride' must not be negative, got ",
          shape_text(stride));
  return as_made(
      unwritten(taeda::empty_strided(size, stride, dtype.value_or(default_dtype()), device.value_or(Device{}))),
      requires_grad);
}
Tensor empty_permuted(IntSpan size, IntSpan physical_layout, std::optional<DType> dtype, std::optional<Device> device,
                      bool requires_grad) {
  check(size.size() == physical_layout.size(), ErrorKind::Runtime, "empty_permuted: argument 'physical_layout' has ",
        physical_layout.size(), " items, expected ", size.size());
  check_sizes("empty_permuted", size);
  Shape outermost_first, back(size.size(), -1);
  for (size_t place = 0; place < size.size(); ++place) {
    const int64_t d = physical_layout[place];
    check(d >= 0 && d < int64_t(size.size()) && back[size_t(d)] < 0, ErrorKind::Runtime,
          "empty_permuted: argument 'physical_layout' is ", shape_text(physical_layout),
          ", expected each dimension once");
    back[size_t(d)] = int64_t(place);
    outermost_first.push_back(size[size_t(d)]);
  }
  return as_made(ops::permute(empty(outermost_first, dtype, device, false), back), requires_grad);
}
Tensor full(IntSpan size, const Scalar& fill_value, std::optional<DType> dtype, std::optional<Device> device,
            bool requires_grad) {
  const DType type = dtype.value_or(dtype_of_value(fill_value));
  check_sizes("full", size);
  infer::check_number("full", "fill_value", fill_value, type);
  return as_made(fill_with(taeda::empty(size, type, device.value_or(Device{})), fill_value), requires_grad);
}
Tensor zeros(IntSpan size, std::optional<DType> dtype, std::optional<Device> device, bool requires_grad) {
  check_sizes("zeros", size);
  return full(size, 0, dtype.value_or(default_dtype()), device, requires_grad);
}
Tensor ones(IntSpan size, std::optional<DType> dtype, std::optional<Device> device, bool requires_grad) {
  check_sizes("ones", size);
  return full(size, 1, dtype.value_or(default_dtype()), device, requires_grad);
}
Tensor empty_like(const Tensor& self, std::optional<DType> dtype, std::optional<Device> device, bool requires_grad) {
  return as_made(unwritten(empty_as(self, dtype, device)), requires_grad);
}
Tensor full_like(const Tensor& self, const Scalar& fill_value, std::optional<DType> dtype, std::optional<Device> device,
                 bool requires_grad) {
  infer::check_number("full_like", "fill_value", fill_value, dtype.value_or(self.dtype()));
  return as_made(fill_with(empty_as(self, dtype, device), fill_value), requires_grad);
}
Tensor zeros_like(const Tensor& self, std::optional<DType> dtype, std::optional<Device> device, bool requires_grad) {
  return full_like(self, 0, dtype, device, requires_grad);
}
Tensor ones_like(const Tensor& self, std::optional<DType> dtype, std::optional<Device> device, bool requires_grad) {
  return full_like(self, 1, dtype, device, requires_grad);
}
Tensor new_empty(const Tensor& self, IntSpan size, std::optional<DType> dtype, std::optional<Device> device,
                 bool requires_grad) {
  return empty(size, dtype.value_or(self.dtype()), device.value_or(stated_device(self)), requires_grad);
}
Tensor new_full(const Tensor& self, IntSpan size, const Scalar& fill_value, std::optional<DType> dtype,
                std::optional<Device> device, bool requires_grad) {
  check_sizes("new_full", size);
  infer::check_number("new_full", "fill_value", fill_value, dtype.value_or(self.dtype()));
  return full(size, fill_value, dtype.value_or(self.dtype()), device.value_or(stated_device(self)), requires_grad);
}
Tensor new_zeros(const Tensor& self, IntSpan size, std::optional<DType> dtype, std::optional<Device> device,
                 bool requires_grad) {
  check_sizes("new_zeros", size);
  return new_full(self, size, 0, dtype, device, requires_grad);
}
Tensor new_ones(const Tensor& self, IntSpan size, std::optional<DType> dtype, std::optional<Device> device,
                bool requires_grad) {
  check_sizes("new_ones", size);
  return new_full(self, size, 1, dtype, device, requires_grad);
}
Tensor scalar_tensor(const Scalar& s, std::optional<DType> dtype, std::optional<Device> device, bool requires_grad) {
  // Unlike `full`, it does not take the dtype from the number.
  return full({}, s, dtype || s.is_complex() ? dtype : default_dtype(), device, requires_grad);
}

namespace {
/// An integer modulo 2**64.
uint64_t bits_of(const Scalar& number) { return uint64_t(number.to<int64_t>()); }

/// How many steps lead from a to before b, which may be 2**64 apart, as a step may be long.
int64_t whole_steps(const Scalar& a, const Scalar& b, const Scalar& step) {
  const bool up = step.to_double() > 0;
  const uint64_t distance = up ? bits_of(b) - bits_of(a) : bits_of(a) - bits_of(b);
  const uint64_t width = up ? bits_of(step) : -bits_of(step);
  const uint64_t count = distance / width + (distance % width != 0);
  check(count <= uint64_t(kMostElements), ErrorKind::Memory, "arange: ", count, " elements are too many");
  return int64_t(count);
}

/// How many integers from `first` lie before `last`.
int64_t steps_between(const Scalar& first, const Scalar& last, const Scalar& step) {
  const bool beyond = first.kind() == Scalar::Kind::UInt || last.kind() == Scalar::Kind::UInt;
  check(!beyond || (first.to_double() >= 0 && last.to_double() >= 0), ErrorKind::Value, "arange: start ",
        first.to_double(), " and end ", last.to_double(), " do not fit one integer dtype");
  return whole_steps(first, last, step);
}

/// RuntimeError if the first or the last of `count` integers is above those of int64.
void check_below_int64(const Scalar& first, const Scalar& last, const Scalar& step, int64_t count) {
  const bool beyond = first.kind() == Scalar::Kind::UInt || last.kind() == Scalar::Kind::UInt;
  if (!beyond || count == 0) return;
  const uint64_t most = std::numeric_limits<int64_t>::max();
  const uint64_t final = bits_of(first) + uint64_t(count - 1) * bits_of(step);
  check(bits_of(first) <= most && final <= most, ErrorKind::Runtime, "arange: integers from ", first.to_double(),
        " to ", last.to_double(), " do not fit into int64");
}

void check_ascent(double first, double last, double width) {
  const double span = last - first;
  check(width != 0, ErrorKind::Runtime, "arange: argument 'step' must not be 0");
  check(std::isfinite(span) && std::isfinite(width), ErrorKind::Runtime, "arange: arguments must be finite, got start ",
        first, ", end ", last, ", step ", width);
  check(span == 0 || (span > 0) == (width > 0), ErrorKind::Runtime, "arange: argument 'step' is ", width,
        ", which does not lead from start ", first, " to end ", last);
}

/// What a number is as a bound of integers.
Scalar whole(const Scalar& number) {
  return number.is_integral() ? number : Scalar(int64_t(std::trunc(number.to_double())));
}
}  // namespace

Tensor arange(const Scalar& start, const std::optional<Scalar>& end, const Scalar& step, std::optional<DType> dtype,
              std::optional<Device> device, bool requires_grad) {
  Scalar first = end ? start : Scalar(0), last = end ? *end : start, width = step;
  check(!first.is_complex() && !last.is_complex() && !width.is_complex(), ErrorKind::Type,
        "arange: arguments must be real numbers");
  const bool given_whole = first.is_integral() && last.is_integral() && width.is_integral();
  const DType type = dtype.value_or(given_whole ? DType::Int64 : default_dtype());
  check_ascent(first.to_double(), last.to_double(), width.to_double());
  const double exact = std::ceil((last.to_double() - first.to_double()) / width.to_double());
  if (is_integral(type) && !given_whole) {  // the numbers are whole; shorter integers keep the count of the others
    first = whole(first), width = whole(width);
    if (type == DType::Int64) last = whole(last);
    check_ascent(first.to_double(), type == DType::Int64 ? last.to_double() : first.to_double(), width.to_double());
  }
  int64_t count;
  if (given_whole || type == DType::Int64) {
    count = steps_between(first, last, width);
    if (type == DType::Int64) check_below_int64(first, last, width, count);
  } else {
    check(exact < 9e15, ErrorKind::Memory, "arange: ", exact, " elements are too many");
    count = int64_t(exact);
  }
  const Tensor out = taeda::empty(Shape{count}, type, device.value_or(Device{}));
  if (count > 0) ops::arange_fill_(out, first, width);
  return as_made(out, requires_grad);
}

namespace {
/// x * y + z with one rounding.
template <class T>
T fused(T x, T y, T z) {
  if constexpr (std::is_same_v<T, float>) return float(double(x) * double(y) + double(z));  // the product is exact
  else if constexpr (std::is_same_v<T, double>) return std::fma(x, y, z);
  else return x * y + z;
}

/// Computed in T, the width of a step too, whose rounding shows in the elements.
template <class T>
Tensor spaced(const Scalar& start, const Scalar& end, int64_t steps, DType dtype) {
  const Tensor out = taeda::empty(Shape{steps}, dtype, Device{});
  const T a = start.to<T>(), b = end.to<T>(), width = steps > 1 ? (b - a) / T(double(steps - 1)) : T(0);
  // From both ends, so that the last element is `end` itself and the row is symmetric.
  const int64_t half = std::min(steps, std::max<int64_t>(steps / 2, 1));
  T* const to = out.data<T>();
  const auto fill = [&]<class Int>(Int first, Int last) {  // 32 bits become doubles in vectors
    for (Int i = 0; i < first; ++i) to[i] = fused(width, T(double(i)), a);
    for (Int i = first; i <= last; ++i) to[i] = fused(-width, T(double(last - i)), b);
  };
  if (steps <= INT32_MAX) fill(int32_t(half), int32_t(steps - 1));
  else fill(half, steps - 1);
  return out;
}
}  // namespace

Tensor linspace(const Scalar& start, const Scalar& end, int64_t steps, std::optional<DType> dtype,
                std::optional<Device> device, bool requires_grad) {
  check(steps >= 0, ErrorKind::Runtime, "linspace: argument 'steps' must not be negative, got ", steps);
  const bool complex = start.is_complex() || end.is_complex();
  const DType type = dtype.value_or(complex ? complex_of(default_dtype()) : default_dtype());
  check(!complex || is_complex(type), ErrorKind::Runtime, "linspace: argument 'dtype' is ", name(type),
        ", expected a complex one for complex ends");
  infer::check_number("linspace", "start", start, type);
  infer::check_number("linspace", "end", end, type);
  const bool integral = is_integral(type);
  const Scalar first = integral ? whole(start) : start, last = integral ? whole(end) : end;
  const Tensor exact = complex                  ? spaced<std::complex<double>>(first, last, steps, DType::Complex128)
                       : type == DType::Float32 ? spaced<float>(first, last, steps, type)
                                                : spaced<double>(first, last, steps, DType::Float64);
  if (exact.dtype() == type && device.value_or(Device{}).backend == kCPU) return as_made(exact, requires_grad);
  const Tensor out = taeda::empty(Shape{steps}, type, device.value_or(Device{}));
  if (steps > 0) ops::copy_(out, exact);
  return as_made(out, requires_grad);
}

Tensor logspace(const Scalar& start, const Scalar& end, int64_t steps, double base, std::optional<DType> dtype,
                std::optional<Device> device, bool requires_grad) {
  const bool integral = is_integral(dtype.value_or(default_dtype()));
  const Tensor exact = linspace(integral ? whole(start) : start, integral ? whole(end) : end, steps, DType::Float64,
                                std::nullopt, false);
  for (int64_t i = 0; i < steps; ++i) exact.data<double>()[i] = std::pow(base, exact.data<double>()[i]);
  const Tensor out = taeda::empty(Shape{steps}, dtype.value_or(default_dtype()), device.value_or(Device{}));
  if (steps > 0) ops::copy_(out, exact);
  return as_made(out, requires_grad);
}

Tensor eye(int64_t n, std::optional<int64_t> m, std::optional<DType> dtype, std::optional<Device> device,
           bool requires_grad) {
  const int64_t columns = m.value_or(n);
  check(n >= 0 && columns >= 0, ErrorKind::Runtime, "eye: arguments 'n' and 'm' must not be negative, got ", n, " and ",
        columns);
  const Tensor out = zeros(Shape{n, columns}, dtype, device, false);
  ops::fill_(ops::diagonal(out, 0, 0, 1), 1);
  return as_made(out, requires_grad);
}

namespace {
Tensor triangle_indices(const char* op, int64_t row, int64_t col, int64_t offset, bool lower,
                        std::optional<DType> dtype, std::optional<Device> device) {
  check(row >= 0 && col >= 0, ErrorKind::Runtime, op, ": arguments 'row' and 'col' must not be negative, got ", row,
        " and ", col);
  const Count places = Count(row) * col;
  check(places.fits() && places.of(op) < int64_t(1) << 40, ErrorKind::Memory, op,
        ": the indices of a matrix of shape (", row, ", ", col, ") do not fit in memory");
  if (places.of(op) == 0) row = col = 0;  // a side without the other may be of any length
  // Of row i the columns [begin, end).
  const int64_t shift = std::clamp<int64_t>(offset, -row - 1, col + 1) + int64_t(lower);
  const auto part = [=](int64_t i) {
    const int64_t edge = std::clamp<int64_t>(i + shift, 0, col);
    return std::pair<int64_t, int64_t>(lower ? 0 : edge, lower ? edge : col);
  };
  // Below the diagonal rows are empty before `first`, grow by one until `full`, and then have all columns.
  const int64_t first = std::clamp<int64_t>(-shift, 0, row), full = std::clamp<int64_t>(col - shift, first, row);
  const int64_t below = (full - first) * (first + full - 1 + 2 * shift) / 2 + (row - full) * col;
  const int64_t count = lower ? below : row * col - below;
  const Tensor both = taeda::empty(Shape{2, count}, DType::Int64, Device{});
  int64_t *rows = both.data<int64_t>(), *columns = rows + count;
  for (int64_t i = lower ? first : 0; i < (lower ? row : full); ++i) {
    const auto [begin, end] = part(i);
    rows = std::fill_n(rows, end - begin, i);
    for (int64_t j = begin; j < end; ++j) columns[j - begin] = j;
    columns += end - begin;
  }
  if (dtype.value_or(DType::Int64) == DType::Int64 && device.value_or(Device{}).backend == kCPU) return both;
  const Tensor out = taeda::empty(Shape{2, count}, dtype.value_or(DType::Int64), device.value_or(Device{}));
  if (count) ops::copy_(out, both);
  return out;
}
}  // namespace

Tensor tril_indices(int64_t row, int64_t col, int64_t offset, std::optional<DType> dtype, std::optional<Device> device,
                    bool requires_grad) {
  return as_made(triangle_indices("tril_indices", row, col, offset, true, dtype, device), requires_grad);
}
Tensor triu_indices(int64_t row, int64_t col, int64_t offset, std::optional<DType> dtype, std::optional<Device> device,
                    bool requires_grad) {
  return as_made(triangle_indices("triu_indices", row, col, offset, false, dtype, device), requires_grad);
}

Tensor complex(const Tensor& real, const Tensor& imag) {
  check(real.dtype() == imag.dtype() && is_floating(real.dtype()), ErrorKind::Runtime,
        "complex: arguments 'real' and 'imag' must have one floating dtype, got ", name(real.dtype()), " and ",
        name(imag.dtype()));
  const Shape sizes = broadcast_shapes(real.sizes(), imag.sizes(), "complex");
  const DType part = real.dtype() == DType::Float64 ? DType::Float64 : DType::Float32;
  // Interleaves the parts: a complex number is a pair in memory.
  const Tensor halves[] = {ops::to_dtype(ops::expand(real, sizes), part),
                           ops::to_dtype(ops::expand(imag, sizes), part)};
  const Tensor pairs = ops::contiguous(ops::stack(halves, -1));
  return ops::reshape(ops::view_dtype(pairs, complex_of(part)), sizes);
}

}  // namespace taeda::impl
