// Padding, and channels that become finer places.
#include <algorithm>
#include <vector>

#include "infer/memory_format.h"
#include "infer/numbers.h"
#include "taeda/arithmetic.h"
#include "taeda/checked.h"
#include "taeda/levels.h"
#include "taeda/ops/arith.h"
#include "taeda/ops/cast.h"
#include "taeda/ops/creation.h"
#include "taeda/ops/index.h"
#include "taeda/ops/shape.h"
#include "taeda/wrappers.h"

namespace taeda::impl {

namespace {
/// Whether results are laid out as images or volumes whose channels stand last.
bool has_channels_last(const Tensor& input) { return !is_carrier(input) && infer::channels_come_last(input); }
Tensor room_for(const Tensor& input, const Shape& sizes) {
  if (!has_channels_last(input)) return ops::empty(sizes, input.dtype(), stated_device(input));
  return ops::empty_strided(sizes, infer::image_strides(input, sizes), input.dtype(), stated_device(input));
}
Tensor filled(const Tensor& input, const Shape& sizes, const Scalar& value) {
  if (!has_channels_last(input)) return ops::new_full(input, sizes, value);
  const Tensor out = room_for(input, sizes);
  ops::fill_(out, Tensor(value));
  return out;
}
}  // namespace

Tensor constant_pad_nd(const Tensor& self, IntSpan pad, const Scalar& given) {
  const bool pads = std::ranges::any_of(pad, [](int64_t amount) { return amount > 0; });
  const Scalar value = pads ? given : Scalar(int64_t(0));  // is in no result
  infer::check_number("constant_pad_nd", "value", value, self.dtype());
  check(pad.size() % 2 == 0 && int64_t(pad.size()) <= 2 * self.dim(), ErrorKind::Runtime,
        "constant_pad_nd: argument 'pad' ", shape_text(pad),
        " needs an even number of amounts, at most two for each of the ", self.dim(), " dimensions");
  Shape sizes(self.sizes());
  Tensor inside = self;
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    const int64_t d = self.dim() - 1 - int64_t(i);
    const auto padded = [&](Count size) {
      return size.of("constant_pad_nd", "the size of dimension ", d, " with argument 'pad' ", shape_text(pad));
    };
    for (const int64_t amount : pad.subspan(2 * i, 2)) padded(Count(self.size(d)) - amount);  // may be cut off as well
    sizes[d] = padded(Count(sizes[d]) + pad[2 * i] + pad[2 * i + 1]);
    check(sizes[d] >= 0, ErrorKind::Runtime, "constant_pad_nd: argument 'pad' ", shape_text(pad), " makes dimension ",
          d, " of shape ", shape_text(self.sizes()), " negative");
    if (pad[2 * i] < 0 || pad[2 * i + 1] < 0)
      inside = ops::slice(inside, d, std::max<int64_t>(0, -pad[2 * i]),
                          self.size(d) - std::max<int64_t>(0, -pad[2 * i + 1]), 1);
  }
  const Tensor out = filled(self, sizes, value);
  Tensor window = out;
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    const int64_t d = self.dim() - 1 - int64_t(i);
    const int64_t before = std::max<int64_t>(0, pad[2 * i]);
    if (window.size(d) != inside.size(d)) window = ops::slice(window, d, before, before + inside.size(d), 1);
  }
  ops::copy_(window, inside);
  return out;
}

namespace {

enum class Mode { Reflect, Replicate, Circular };
Mode mode_of(std::string_view mode) {
  if (mode == "reflect") return Mode::Reflect;
  if (mode == "replicate") return Mode::Replicate;
  check(mode == "circular", ErrorKind::NotImplemented,
        "pad: argument 'mode' must be 'constant', 'reflect', 'replicate' or 'circular', got '", mode, "'");
  return Mode::Circular;
}

/// What the amounts make of a dimension: `left` elements from `first` on are left by negative ones, and places go from
/// -before to `end`.
struct Padded {
  int64_t first, left, end;
};
Padded padded_dimension(const Tensor& self, int64_t dim, int64_t before, int64_t after, Mode mode) {
  const int64_t size = self.size(dim), last = size - 1;
  const auto counted = [&](Count count) { return count.of("pad", "the size of dimension ", dim); };
  const int64_t first = before < 0 ? counted(Count(0) - before) : 0;
  const int64_t left = counted(Count(size) - first + std::min<int64_t>(after, 0));
  const int64_t end = counted(Count(size) + after);
  const int64_t limit = mode == Mode::Reflect ? last : mode == Mode::Circular ? left : kMostElements;
  check(size > 0 && left >= 0 && before <= limit && after <= limit, ErrorKind::Runtime, "pad: argument 'pad' has (",
        before, ", ", after, ") for dimension ", dim, " of size ", size, ", too much for a ",
        mode == Mode::Reflect    ? "reflection"
        : mode == Mode::Circular ? "circular pad"
                                 : "replication");
  return {first, left, end};
}
/// Which element of a dimension without negative amounts stands in a place of the padded one.
int64_t source_of(int64_t place, int64_t size, Mode mode) {
  const int64_t last = size - 1;
  switch (mode) {
    case Mode::Replicate: return std::clamp<int64_t>(place, 0, last);
    case Mode::Circular: return place < 0 ? place + size : place > last ? place - size : place;
    default: return last - std::abs(last - std::abs(place));
  }
}
/// Which elements of a dimension stand in each place of the padded one.
Tensor places_of(const Tensor& self, int64_t dim, int64_t before, int64_t after, Mode mode) {
  const int64_t last = self.size(dim) - 1;
  const auto [first, left, end] = padded_dimension(self, dim, before, after, mode);
  const Tensor place = ops::arange(Scalar(-before), Scalar(end), Scalar(int64_t(1)), DType::Int64, stated_device(self));
  const auto whole = [](int64_t value) { return Tensor(value); };
  switch (mode) {
    case Mode::Replicate: return ops::clamp(place, Scalar(int64_t(0)), Scalar(last));
    case Mode::Circular: return left ? ops::remainder(place - whole(first), whole(left)) + whole(first) : place;
    default: return whole(last) - ops::abs(whole(last) - ops::abs(place));
  }
}

/// Elements from which on a copy and its borders take less time than a pass for each dimension.
constexpr int64_t kManyElements = 1 << 12, kWidestBorder = 16;
bool fills_borders(const Tensor& input, IntSpan pad) {
  return input.numel() >= kManyElements && !is_carrier(input) &&
         std::ranges::all_of(pad, [](int64_t amount) { return amount >= 0 && amount <= kWidestBorder; });
}
/// The dimensions that get borders, from the first to the last one.
class Borders {
 public:
  Borders(const char* op, int64_t rank, IntSpan pad, std::string_view mode)
      : rank_(rank), pad_(pad), mode_(mode_of(mode)) {
    check(pad.size() % 2 == 0 && int64_t(pad.size()) <= 2 * rank &&
              std::ranges::all_of(pad, [](int64_t amount) { return amount >= 0; }),
          ErrorKind::Runtime, op, ": argument 'pad' ", shape_text(pad),
          " needs pairs of amounts of at least 0, at most one for each of the ", rank, " dimensions");
  }
  Mode mode() const { return mode_; }
  int64_t first() const { return rank_ - int64_t(pad_.size() / 2); }
  int64_t before(int64_t d) const { return pad_[2 * size_t(rank_ - 1 - d)]; }
  int64_t after(int64_t d) const { return pad_[2 * size_t(rank_ - 1 - d) + 1]; }
  /// `padded` without the borders of the dimensions before `end`.
  Tensor within(Tensor padded, int64_t end) const {
    for (int64_t d = first(); d < end; ++d)
      padded = ops::narrow(padded, d, before(d), padded.size(d) - before(d) - after(d));
    return padded;
  }
  /// Calls `body(place of a border, place that it shows)` with both as parts of `padded`, along dimension d.
  template <class Body>
  void each(const Tensor& padded, int64_t d, const Body& body) const {
    const Tensor known = within(padded, d);
    const int64_t begin = before(d), size = known.size(d) - begin - after(d);
    const auto one = [&](int64_t place) {
      body(ops::narrow(known, d, place, 1), ops::narrow(known, d, begin + source_of(place - begin, size, mode_), 1));
    };
    for (int64_t place = 0; place < begin; ++place) one(place);
    for (int64_t place = begin + size; place < known.size(d); ++place) one(place);
  }

 private:
  int64_t rank_;
  IntSpan pad_;
  Mode mode_;
};

}  // namespace

/// The input in the middle; around it, dimension by dimension, what is there already.
Tensor pad_borders(const Tensor& self, IntSpan pad, std::string_view mode) {
  const Borders borders("pad_borders", self.dim(), pad, mode);
  const Mode known = borders.mode();
  Shape sizes(self.sizes());
  for (int64_t d = borders.first(); d < self.dim(); ++d)
    sizes[size_t(d)] = padded_dimension(self, d, borders.before(d), borders.after(d), known).end + borders.before(d);
  const Tensor out =
      known == Mode::Circular ? ops::empty(sizes, self.dtype(), stated_device(self)) : room_for(self, sizes);
  ops::copy_(borders.within(out, self.dim()), self);
  for (int64_t d = self.dim() - 1; d >= borders.first(); --d)
    borders.each(out, d, [](const Tensor& place, const Tensor& source) { ops::copy_(place, source); });
  return out;
}
/// The other way round: what stands in a border is added to what it shows.
Tensor pad_borders_backward(const Tensor& grad, IntSpan pad, std::string_view mode) {
  const Borders borders("pad_borders_backward", grad.dim(), pad, mode);
  for (int64_t d = borders.first(); d < grad.dim(); ++d)
    padded_dimension(ops::narrow(grad, d, 0, std::max<int64_t>(0, grad.size(d) - borders.before(d) - borders.after(d))),
                     d, borders.before(d), borders.after(d), borders.mode());
  const Tensor sums =
      grad.dtype() == compute_dtype(grad.dtype()) ? ops::clone(grad) : ops::to_dtype(grad, compute_dtype(grad.dtype()));
  for (int64_t d = borders.first(); d < grad.dim(); ++d)
    borders.each(sums, d, [](const Tensor& place, const Tensor& source) { ops::add_(source, place); });
  const Tensor middle = borders.within(sums, grad.dim());
  const Tensor out = room_for(grad, Shape(middle.sizes()));
  ops::copy_(out, middle);
  return out;
}

Tensor pad(const Tensor& input, IntSpan pad, std::string_view mode, std::optional<double> value) {
  const std::optional<Mode> known = mode == "constant" ? std::nullopt : std::optional(mode_of(mode));
  check(pad.size() % 2 == 0 && int64_t(pad.size()) <= 2 * input.dim(), ErrorKind::Runtime, "pad: argument 'pad' ",
        shape_text(pad), " needs an even number of amounts, at most ", 2 * input.dim(), " for shape ",
        shape_text(input.sizes()));
  if (!known) return ops::constant_pad_nd(input, pad, value ? Scalar(*value) : Scalar(int64_t(0)));
  check(!value || *value == 0, ErrorKind::Runtime, "pad: argument 'value' is for mode 'constant', got mode '", mode,
        "'");
  if (pad.empty()) return ops::clone(input);
  if (fills_borders(input, pad)) return ops::pad_borders(input, pad, mode);
  Tensor padded = input;
  for (size_t i = 0; i < pad.size(); i += 2) {
    const int64_t d = input.dim() - 1 - int64_t(i / 2);
    padded = ops::index_select(padded, d, places_of(padded, d, pad[i], pad[i + 1], *known));
  }
  if (known == Mode::Circular || !has_channels_last(input)) return padded;
  return ops::contiguous(padded, input.dim() == 4 ? "channels_last" : "channels_last_3d");
}

namespace {
/// A factor of an image (..., C, H, W), whose square fits into 64 bits.
int64_t area_of(const char* op, const char* argument, const Tensor& input, int64_t factor) {
  check(input.dim() >= 3, ErrorKind::Runtime, op, ": argument 'input' has shape ", shape_text(input.sizes()),
        ", expected (..., C, H, W)");
  check(factor > 0, ErrorKind::Runtime, op, ": argument '", argument, "' must be positive, got ", factor);
  return (Count(factor) * factor).of(op, "the square of argument '", argument, "'");
}
/// A copy, row by row, of the last dimensions, which are split, put into an order of their own and joined again; of
/// images whose channels come last with these last.
Tensor rearranged(const Tensor& input, const Shape& split, std::initializer_list<int64_t> order, const Shape& result,
                  size_t channel_parts) {
  const int64_t lead = input.dim() - 3;
  Shape wide(input.sizes().first(size_t(lead))), narrow(wide), dims;
  for (const int64_t size : split) wide.push_back(size);
  for (const int64_t size : result) narrow.push_back(size);
  for (int64_t d = 0; d < lead; ++d) dims.push_back(d);
  for (const int64_t d : order) dims.push_back(lead + d);
  if (input.dim() != 4 || !infer::channels_come_last(input))
    return ops::reshape(ops::clone(ops::permute(ops::reshape(input, wide), dims), "contiguous_format"), narrow);
  std::rotate(dims.begin() + lead, dims.begin() + lead + int64_t(channel_parts), dims.end());
  std::rotate(narrow.begin() + lead, narrow.begin() + lead + 1, narrow.end());
  const Tensor moved = ops::clone(ops::permute(ops::reshape(input, wide), dims), "contiguous_format");
  return ops::movedim(ops::reshape(moved, narrow), Shape{-1}, Shape{lead});
}
}  // namespace

Tensor pixel_shuffle(const Tensor& input, int64_t upscale_factor) {
  const int64_t r = upscale_factor, area = area_of("pixel_shuffle", "upscale_factor", input, r);
  const int64_t channels = input.size(-3), height = input.size(-2), width = input.size(-1);
  check(channels % area == 0, ErrorKind::Runtime, "pixel_shuffle: argument 'input' has shape ",
        shape_text(input.sizes()), ", expected channels divisible by the square of 'upscale_factor' ", r);
  return rearranged(input, {channels / area, r, r, height, width}, {0, 3, 1, 4, 2},
                    {channels / area, height * r, width * r}, 1);
}
Tensor pixel_unshuffle(const Tensor& input, int64_t downscale_factor) {
  const int64_t r = downscale_factor, area = area_of("pixel_unshuffle", "downscale_factor", input, r);
  const int64_t channels = input.size(-3), height = input.size(-2), width = input.size(-1);
  check(height % r == 0 && width % r == 0, ErrorKind::Runtime, "pixel_unshuffle: argument 'input' has shape ",
        shape_text(input.sizes()), ", expected height and width divisible by 'downscale_factor' ", r);
  return rearranged(input, {channels, height / r, r, width / r, r}, {0, 2, 4, 1, 3},
                    {(Count(channels) * area).of("pixel_unshuffle", "the channels"), height / r, width / r}, 3);
}

}  // namespace taeda::impl
