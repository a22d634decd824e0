// CPU kernels of the resize family: lines resampled once, then blended row by row.
#include "taeda/ops/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "cpu/loops/spatial.h"
#include "cpu/prepare.h"
#include "infer/resize.h"
#include "taeda/elementwise.h"
#include "taeda/interrupt.h"
#include "taeda/parallel.h"

namespace taeda {
namespace {

using infer::Filter;
using infer::Resampled;
using infer::Taps;
using loops::LineTaps;

/// float32 and float64 have weights of their own type.
template <class T> using WeightOf = std::conditional_t<std::is_same_v<T, uint8_t>, int32_t, T>;

/// The taps of one dimension, as loops take them.
template <class T>
struct Dimension {
  using Weight = WeightOf<T>;
  Taps taps;
  std::vector<Weight> weights, by_tap;
  int64_t in, begin = 0, end = 0;
  int shift = 0;
  bool identity;
  Dimension(Taps given, int64_t size) : taps(std::move(given)), in(size), identity(taps.identity(size)) {
    end = out();
    while (begin < end && taps.count[size_t(begin)] < taps.most) ++begin;
    while (begin < end && taps.count[size_t(end - 1)] < taps.most) --end;
    if (!std::all_of(taps.count.begin() + begin, taps.count.begin() + end,
                     [&](int32_t count) { return count == taps.most; }))
      end = begin;
    double scale = 1;
    if constexpr (std::is_same_v<T, uint8_t>) scale = double(1 << (shift = infer::fixed_point_bits(taps)));
    weights.reserve(taps.weights.size());
    for (const double weight : taps.weights)
      weights.push_back(scale == 1 ? Weight(weight) : Weight(std::lround(weight * scale)));
    if (taps.most != 2 && taps.most != 4) return;
    by_tap.resize(size_t(taps.most * out()));
    for (int64_t i = 0; i < out(); ++i)
      for (int64_t k = 0; k < taps.most; ++k) by_tap[size_t(k * out() + i)] = of(i)[k];
  }
  int64_t out() const { return taps.size(); }
  const Weight* of(int64_t i) const { return weights.data() + i * taps.most; }
  int64_t first(int64_t i) const { return taps.first[size_t(i)]; }
  int64_t count(int64_t i) const { return taps.count[size_t(i)]; }
  LineTaps<Weight> line() const {
    return {out(), taps.most, begin, end, taps.first.data(), taps.count.data(), weights.data(), by_tap.data(), shift};
  }
};

template <class T>
void run_line(const T* x, const Dimension<T>& columns, int64_t inner, T* out) {
  if constexpr (std::is_same_v<T, uint8_t>) loops::spatial_table().of_byte.line(x, columns.line(), inner, out);
  else loops::spatial_loops<T>().line(x, columns.line(), inner, out);
}
template <class T>
void run_blend(const T* const* rows, const Dimension<T>& by, int64_t i, int64_t n, T* out) {
  if constexpr (std::is_same_v<T, uint8_t>)
    loops::spatial_table().of_byte.blend(rows, by.of(i), by.count(i), n, by.shift, out);
  else loops::spatial_loops<T>().blend(rows, by.of(i), by.count(i), n, out);
}

/// Rows of one plane, their lines resampled when they are first asked for and kept while a blend may need them.
template <class T>
class Rows {
 public:
  Rows(const T* plane, const Dimension<T>& rows, const Dimension<T>& columns, int64_t inner)
      : plane_(plane),
        columns_(columns),
        inner_(inner),
        width_(columns.out() * inner),
        kept_(size_t(std::max<int64_t>(1, rows.taps.most)), -1),
        room_(columns.identity ? nullptr : std::make_unique_for_overwrite<T[]>(kept_.size() * size_t(width_))) {}
  const T* operator[](int64_t row) {
    const T* const from = plane_ + row * columns_.in * inner_;
    if (columns_.identity) return from;
    const size_t slot = size_t(row) % kept_.size();
    T* const place = room_.get() + slot * size_t(width_);
    if (kept_[slot] != row) {
      run_line(from, columns_, inner_, place);
      kept_[slot] = row;
    }
    return place;
  }

 private:
  const T* plane_;
  const Dimension<T>& columns_;
  int64_t inner_, width_;
  std::vector<int64_t> kept_;
  std::unique_ptr<T[]> room_;
};

/// Rows of results for each piece: enough to be worth a thread, and many beside those that are resampled twice.
int64_t rows_of_piece(int64_t rows, int64_t width, int64_t most) {
  return std::clamp<int64_t>(131072 / std::max<int64_t>(1, width), std::min(rows, 8 * most), rows);
}

/// Planes (rows.in, columns.in, inner) to (rows.out(), columns.out(), inner).
template <class T>
void resample_planes(const T* x, int64_t planes, const Dimension<T>& rows, const Dimension<T>& columns, int64_t inner,
                     T* out) {
  const int64_t width = columns.out() * inner, piece = rows_of_piece(rows.out(), width, rows.taps.most);
  const int64_t pieces = (rows.out() + piece - 1) / piece;
  parallel_for(planes * pieces, std::max<int64_t>(1, 32768 / (piece * width)), [&](int64_t begin, int64_t end) {
    std::vector<const T*> window(size_t(std::max<int64_t>(1, rows.taps.most)));
    for (int64_t p = begin; p < end; ++p) {
      poll_signals();
      const int64_t plane = p / pieces, first = p % pieces * piece, last = std::min(rows.out(), first + piece);
      Rows<T> lines(x + plane * rows.in * columns.in * inner, rows, columns, inner);
      for (int64_t i = first; i < last; ++i) {
        T* const to = out + (plane * rows.out() + i) * width;
        if (rows.identity && !columns.identity) {
          run_line(x + (plane * rows.in + i) * columns.in * inner, columns, inner, to);
          continue;
        }
        if (rows.identity) {
          std::memcpy(to, lines[i], size_t(width) * sizeof(T));
          continue;
        }
        for (int64_t k = 0; k < rows.count(i); ++k) window[size_t(k)] = lines[rows.first(i) + k];
        run_blend(window.data(), rows, i, width, to);
      }
    }
  });
}

/// Blocks (depth.in, area) to (depth.out(), area).
template <class T>
void resample_depth(const T* x, int64_t blocks, const Dimension<T>& depth, int64_t area, T* out) {
  constexpr int64_t strip = 8192;
  const int64_t strips = (area + strip - 1) / strip;
  parallel_for(blocks * strips, std::max<int64_t>(1, 32768 / (depth.out() * std::min(strip, area))),
               [&](int64_t begin, int64_t end) {
                 std::vector<const T*> window(size_t(std::max<int64_t>(1, depth.taps.most)));
                 for (int64_t p = begin; p < end; ++p) {
                   poll_signals();
                   const int64_t block = p / strips, at = p % strips * strip, width = std::min(strip, area - at);
                   for (int64_t i = 0; i < depth.out(); ++i) {
                     for (int64_t k = 0; k < depth.count(i); ++k)
                       window[size_t(k)] = x + (block * depth.in + depth.first(i) + k) * area + at;
                     run_blend(window.data(), depth, i, width, out + (block * depth.out() + i) * area + at);
                   }
                 }
               });
}

/// Planes of elements that are copied as they are: `size` bytes each.
template <class T>
void copy_line(const T* x, const Taps& columns, T* out) {
  for (int64_t i = 0; i < columns.size(); ++i) out[i] = x[columns.first[size_t(i)]];
}
void copy_groups(const char* x, const Taps& columns, size_t size, char* out) {
  switch (size) {
    case 1: return copy_line(reinterpret_cast<const uint8_t*>(x), columns, reinterpret_cast<uint8_t*>(out));
    case 2: return copy_line(reinterpret_cast<const uint16_t*>(x), columns, reinterpret_cast<uint16_t*>(out));
    case 4: return copy_line(reinterpret_cast<const uint32_t*>(x), columns, reinterpret_cast<uint32_t*>(out));
    case 8: return copy_line(reinterpret_cast<const uint64_t*>(x), columns, reinterpret_cast<uint64_t*>(out));
    default:
      for (int64_t i = 0; i < columns.size(); ++i)
        std::memcpy(out + size_t(i) * size, x + size_t(columns.first[size_t(i)]) * size, size);
  }
}

/// What a call resamples: the last dimension, the one before, and of volumes the first; `inner` elements stay together.
struct Geometry {
  bool channels_last;
  int64_t planes, inner;
  std::vector<Resampled> dimensions;  // depth, rows, columns
  Geometry(const Tensor& x, IntSpan in, IntSpan out, std::string_view mode, bool align_corners, bool antialias,
           std::span<const double> scales) {
    channels_last = x.dim() == 4 && x.channels_last() && !x.contiguous();
    planes = channels_last ? x.size(0) : x.size(0) * x.size(1);
    inner = channels_last ? x.size(1) : 1;
    const Filter filter = infer::filter_of("resample", mode);
    for (size_t d = in.size(); d < 3; ++d) dimensions.push_back({Filter::Nearest, false, false, 0, 1, 1});
    for (size_t d = 0; d < in.size(); ++d)
      dimensions.push_back({filter, align_corners, antialias, scales.empty() ? 0 : scales[d], in[d], out[d]});
  }
  int64_t volume(int64_t Resampled::* side) const {
    int64_t product = planes * inner;
    for (const Resampled& d : dimensions) product *= d.*side;
    return product;
  }
};

/// In the layout of the geometry, converted where need be.
Tensor arranged(const Geometry& g, const Tensor& t, DType dtype) {
  return g.channels_last ? cpu::channels_last(t, dtype) : cpu::row_major(t, dtype);
}
/// `out`, or a place of the geometry's layout that is copied to it afterwards.
Tensor place_for(const Geometry& g, const Tensor& out, DType dtype) {
  if (out.dtype() == dtype && (g.channels_last ? out.channels_last() : out.contiguous())) return out;
  return g.channels_last ? empty_strided(out.sizes(), channels_last_strides(out.sizes()), dtype)
                         : empty(out.sizes(), dtype);
}

template <class T>
void resample_as(const Geometry& g, const Tensor& x, const Tensor& out, bool backward) {
  const auto dimension = [&](size_t d) {
    const Resampled& r = g.dimensions[d];
    Taps taps = infer::resample_taps(r, std::is_same_v<T, float>);
    return backward ? Dimension<T>(infer::transposed(taps, r.in), r.out) : Dimension<T>(std::move(taps), r.in);
  };
  const Dimension<T> depth = dimension(0), rows = dimension(1), columns = dimension(2);
  const T* const from = x.data<T>();
  T* const to = out.data<T>();
  if (depth.identity) return resample_planes(from, g.planes * depth.in, rows, columns, g.inner, to);
  // The side with fewer elements stands in between.
  const int64_t area = rows.out() * columns.out(), given = rows.in * columns.in;
  if (depth.in * area <= depth.out() * given) {
    const Tensor between = empty(Shape{g.planes, depth.in, area}, out.dtype());
    resample_planes(from, g.planes * depth.in, rows, columns, int64_t(1), between.data<T>());
    resample_depth(static_cast<const T*>(between.data<T>()), g.planes, depth, area, to);
  } else {
    const Tensor between = empty(Shape{g.planes, depth.out(), given}, out.dtype());
    resample_depth(from, g.planes, depth, given, between.data<T>());
    resample_planes(static_cast<const T*>(between.data<T>()), g.planes * depth.out(), rows, columns, int64_t(1), to);
  }
}

void copy_nearest(const Geometry& g, const Tensor& x, const Tensor& out) {
  const auto taps = [&](size_t d) { return infer::resample_taps(g.dimensions[d], true); };
  const Taps depth = taps(0), rows = taps(1), columns = taps(2);
  const size_t size = size_t(g.inner * x.item_bytes()), width = size_t(columns.size()) * size;
  const int64_t in_rows = g.dimensions[1].in, in_depth = g.dimensions[0].in;
  const size_t in_width = size_t(g.dimensions[2].in) * size;
  const bool whole = columns.identity(g.dimensions[2].in);
  parallel_for(g.planes * depth.size(), std::max<int64_t>(1, 65536 / (rows.size() * int64_t(width))),
               [&](int64_t begin, int64_t end) {
                 for (int64_t p = begin; p < end; ++p) {
                   const int64_t plane = p / depth.size() * in_depth + depth.first[size_t(p % depth.size())];
                   const char* const from = x.bytes() + size_t(plane * in_rows) * in_width;
                   char* to = out.bytes() + size_t(p * rows.size()) * width;
                   for (int64_t i = 0; i < rows.size(); ++i, to += width) {
                     const int64_t row = rows.first[size_t(i)];
                     if (whole) std::memcpy(to, from + size_t(row) * in_width, width);
                     else if (i && rows.first[size_t(i - 1)] == row) std::memcpy(to, to - width, width);
                     else copy_groups(from + size_t(row) * in_width, columns, size, to);
                   }
                 }
               });
}

void resample_kernel(const Tensor& out, const Tensor& input, IntSpan output_size, std::string_view mode,
                     bool align_corners, bool antialias, std::span<const double> scales) {
  const Geometry g(input, input.sizes().subspan(2), output_size, mode, align_corners, antialias, scales);
  const bool copies = g.dimensions.back().filter <= Filter::NearestExact;
  const DType dtype = copies ? input.dtype() : compute_dtype(input.dtype());
  const Tensor x = arranged(g, input, dtype), to = place_for(g, out, dtype);
  {
    const Unlocked unlocked(g.volume(&Resampled::out) > 32768);
    if (copies) copy_nearest(g, x, to);
    else if (dtype == DType::UInt8) resample_as<uint8_t>(g, x, to, false);
    else if (dtype == DType::Float64) resample_as<double>(g, x, to, false);
    else resample_as<float>(g, x, to, false);
  }
  if (!to.same(out)) ops::copy_(out, to);
}

void resample_backward_kernel(const Tensor& grad_x, const Tensor& grad, IntSpan input_size, std::string_view mode,
                              bool align_corners, bool antialias, std::span<const double> scales) {
  const Geometry g(grad, input_size, grad.sizes().subspan(2), mode, align_corners, antialias, scales);
  const DType dtype = compute_dtype(grad.dtype());
  const Tensor from = arranged(g, grad, dtype), to = place_for(g, grad_x, dtype);
  {
    const Unlocked unlocked(g.volume(&Resampled::out) > 32768);
    if (dtype == DType::Float64) resample_as<double>(g, from, to, true);
    else resample_as<float>(g, from, to, true);
  }
  if (!to.same(grad_x)) ops::copy_(grad_x, to);
}

const bool registered = [] {
  kernel<op::resample>(kCPU, resample_kernel);
  kernel<op::resample_backward>(kCPU, resample_backward_kernel);
  return true;
}();

}  // namespace
}  // namespace taeda
