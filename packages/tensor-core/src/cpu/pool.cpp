// CPU kernels of the pool family: channels-last or row-major loops over the windows that inference worked out.
#include "taeda/ops/pool.h"

#include <algorithm>
#include <array>

#include "cpu/loops/layers.h"
#include "cpu/prepare.h"
#include "infer/pool.h"
#include "taeda/elementwise.h"
#include "taeda/ops/cast.h"
#include "taeda/parallel.h"
#include "taeda/small_vec.h"

namespace taeda {
namespace {

using cpu::visit_float;
using infer::Pair;
using infer::PoolPlan;
using infer::Ranges;
using infer::Window;
using loops::layers;
using loops::Windows;

using Divisors = SmallVec<double, 64>;

/// Both dimensions, and the view of them that loops take.
struct Geometry {
  Ranges rows, columns;
  Windows windows{};
  Geometry(const Geometry&) = delete;
  Geometry(const PoolPlan& s, const Window& w, bool count_padding = false)
      : rows(infer::window_ranges(s.h, s.oh, w, 0, count_padding)),
        columns(infer::window_ranges(s.w, s.ow, w, 1, count_padding)) {
    view(s);
    windows.row_step = w.dilation[0], windows.column_step = w.dilation[1], windows.kernel_w = w.kernel[1];
  }
  /// Adaptive windows.
  explicit Geometry(const PoolPlan& s)
      : rows(infer::adaptive_ranges(s.h, s.oh)), columns(infer::adaptive_ranges(s.w, s.ow)) {
    view(s);
  }
  void view(const PoolPlan& s) {
    windows.n = s.n, windows.c = s.c, windows.h = s.h, windows.w = s.w, windows.oh = s.oh, windows.ow = s.ow;
    windows.row_begin = rows.begin().data(), windows.row_end = rows.end().data();
    windows.column_begin = columns.begin().data(), windows.column_end = columns.end().data();
    windows.row_first = rows.first().data(), windows.column_first = columns.first().data();
  }
  /// By what each window's sum is divided.
  Divisors divisors(std::optional<int64_t> divisor = {}) const {
    Divisors out;
    for (int32_t a : rows.length())
      for (int32_t b : columns.length()) out.push_back(divisor ? double(*divisor) : double(a) * double(b));
    return out;
  }
  int64_t outputs() const { return windows.n * windows.c * windows.oh * windows.ow; }
  /// Multiply-adds, roughly: what decides on threads and on giving up the host lock.
  int64_t work() const {
    int64_t a = 0, b = 0;
    for (size_t i = 0; i < rows.begin().size(); ++i) a += rows.end()[i] - rows.begin()[i];
    for (size_t i = 0; i < columns.begin().size(); ++i) b += columns.end()[i] - columns.begin()[i];
    return windows.n * windows.c * a * b;
  }
};

Geometry window_geometry(const Tensor& input, IntSpan kernel_size, IntSpan stride, IntSpan padding, IntSpan dilation,
                         bool ceil_mode, bool count_padding = false) {
  const Window window(kernel_size, stride, padding, dilation);
  return Geometry(infer::pool_plan(input, window, ceil_mode), window, count_padding);
}
Geometry adaptive_geometry(const Tensor& input, const Pair& out) { return Geometry(infer::adaptive_plan(input, out)); }

/// Input and output in one layout that the loops know: planes, or channels last for floating dtypes.
struct Layout {
  bool channels_last;
  Tensor x;
  DType dtype;
  Layout(const Tensor& input, const Tensor& out) : dtype(compute_dtype(input.dtype())) {
    // Images of one channel lie in both ways, and rows are longer than channels.
    const bool last = input.channels_last() && !input.contiguous();
    channels_last = is_floating(dtype) && out.dim() == 4 && out.channels_last() && (last || !out.contiguous());
    x = channels_last ? cpu::channels_last(input, dtype) : cpu::row_major(input, dtype);
  }
  /// `out` itself or a temporary of this layout.
  Tensor place(const Tensor& out, DType as) const {
    if (out.dtype() == as && (channels_last ? out.channels_last() : out.contiguous())) return out;
    return channels_last ? empty_strided(out.sizes(), channels_last_strides(out.sizes()), as) : empty(out.sizes(), as);
  }
};
void bring_back(const Tensor& out, const Tensor& place) {
  if (!place.same(out)) ops::copy_(out, place);
}

int64_t row_grain(const Geometry& g) {
  return std::max<int64_t>(1, g.windows.n * g.windows.oh * 16384 / std::max<int64_t>(1, g.work()));
}
int64_t plane_grain(const Geometry& g) {
  return std::max<int64_t>(1, g.windows.n * g.windows.c * 16384 / std::max<int64_t>(1, g.work()));
}

void max_pool(const Geometry& g, const Tensor& out, const Tensor& codes, const Tensor& input) {
  const Layout layout(input, out);
  const Tensor y = layout.place(out, layout.dtype), c = layout.place(codes, codes.dtype());
  uint8_t* const offsets = codes.dtype() == DType::UInt8 ? c.data<uint8_t>() : nullptr;
  int64_t* const positions = offsets ? nullptr : c.data<int64_t>();
  {
    const Unlocked unlocked(g.work() > 32768);
    const Windows& w = g.windows;
    const void* const x = layout.x.bytes();
    void* const to = y.bytes();
    const auto planes = [&](auto loop) {
      parallel_for(w.n * w.c, plane_grain(g), [&](int64_t b, int64_t e) { loop(w, x, to, offsets, positions, b, e); });
    };
    if (is_integral(layout.dtype))
      visit_dtype(layout.dtype, [&]<class T>() {
        if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) planes(loops::base::max_pool_planes<T>);
      });
    else
      visit_float(layout.dtype, [&]<class T>() {
        if (!layout.channels_last) return planes(layers<T>().max_pool_planes);
        parallel_for(w.n * w.oh, row_grain(g),
                     [&](int64_t b, int64_t e) { layers<T>().max_pool(w, x, to, offsets, positions, b, e); });
      });
  }
  bring_back(out, y);
  bring_back(codes, c);
}

void max_pool2d_with_indices_kernel(const Tensor& result, const Tensor& indices, const Tensor& input,
                                    IntSpan kernel_size, IntSpan stride, IntSpan padding, IntSpan dilation,
                                    bool ceil_mode) {
  max_pool(window_geometry(input, kernel_size, stride, padding, dilation, ceil_mode), result, indices, input);
}
void max_pool2d_with_offsets_kernel(const Tensor& result, const Tensor& offsets, const Tensor& input,
                                    IntSpan kernel_size, IntSpan stride, IntSpan padding, IntSpan dilation,
                                    bool ceil_mode) {
  max_pool(window_geometry(input, kernel_size, stride, padding, dilation, ceil_mode), result, offsets, input);
}
void adaptive_max_pool2d_kernel(const Tensor& result, const Tensor& indices, const Tensor& input, IntSpan output_size) {
  max_pool(adaptive_geometry(input, infer::both(output_size)), result, indices, input);
}

void avg_pool(const Geometry& g, const Divisors& divisors, const Tensor& out, const Tensor& input) {
  const Layout layout(input, out);
  const Tensor y = layout.place(out, layout.dtype);
  {
    const Unlocked unlocked(g.work() > 32768);
    visit_float(layout.dtype, [&]<class T>() {
      const Windows& w = g.windows;
      const T* const x = layout.x.data<T>();
      T* const to = y.data<T>();
      if (layout.channels_last)
        parallel_for(w.n * w.oh, row_grain(g),
                     [&](int64_t b, int64_t e) { layers<T>().avg_pool(w, x, to, divisors.data(), b, e); });
      else
        parallel_for(w.n * w.c, plane_grain(g),
                     [&](int64_t b, int64_t e) { layers<T>().avg_pool_planes(w, x, to, divisors.data(), b, e); });
    });
  }
  bring_back(out, y);
}

void avg_pool2d_kernel(const Tensor& out, const Tensor& input, IntSpan kernel_size, IntSpan stride, IntSpan padding,
                       bool ceil_mode, bool count_include_pad, std::optional<int64_t> divisor_override) {
  if (input.dtype() == DType::Int64) {
    const Tensor mean = empty(out.sizes(), DType::Float64);
    avg_pool2d_kernel(mean, ops::cast(input, DType::Float64), kernel_size, stride, padding, ceil_mode,
                      count_include_pad, divisor_override);
    const Pair kernel = infer::both(kernel_size);
    return copy_elements(out, infer::whole_means(mean, divisor_override.value_or(kernel[0] * kernel[1])));
  }
  const Geometry g = window_geometry(input, kernel_size, stride, padding, {}, ceil_mode, count_include_pad);
  avg_pool(g, g.divisors(divisor_override), out, input);
}
void adaptive_avg_pool2d_kernel(const Tensor& out, const Tensor& input, IntSpan output_size) {
  const Geometry g = adaptive_geometry(input, infer::both(output_size));
  avg_pool(g, g.divisors(), out, input);
}

/// Pieces of gradients: images times blocks of channels, each written by one thread alone.
template <class Body>
void over_channel_blocks(const Windows& w, const Body& body) {
  constexpr int64_t block = 64;
  const int64_t blocks = (w.c + block - 1) / block;
  // Whole pixels at once use the caches best: blocks only where the batch alone cannot feed the threads.
  if (w.n >= 16)
    return parallel_for(w.n, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) body(i, int64_t(0), w.c);
    });
  parallel_for(w.n * blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) body(p / blocks, p % blocks * block, std::min(w.c, (p % blocks + 1) * block));
  });
}

/// A channels-last gradient is computed in place; another layout goes through a channels-last temporary.
template <class Run>
void through_channels_last(const Tensor& grad_x, DType dtype, const Run& run) {
  const Tensor out = infer::batched(grad_x);
  if (out.channels_last() && out.dtype() == dtype) return run(out);
  const Tensor temporary = empty_strided(out.sizes(), channels_last_strides(out.sizes()), dtype);
  run(temporary);
  ops::copy_(out, temporary);
}

/// What Windows::apart holds; `elements` is set.
std::array<int64_t, 256> places_apart(Windows& w, const Pair& kernel) {
  std::array<int64_t, 256> apart;
  apart.fill(-(int64_t(1) << 40));
  w.elements = std::min<int64_t>(kernel[0] * kernel[1], int64_t(apart.size()));
  for (int64_t number = 0; number < w.elements; ++number)
    apart[size_t(number)] = number / w.kernel_w * w.row_step * w.w + number % w.kernel_w * w.column_step;
  return apart;
}
/// Row-major planes: each gradient goes to the one place that its window's number names.
void max_pool_backward_planes(const Windows& w, const Tensor& grad_x, const Tensor& grad, const Tensor& offsets) {
  const DType dtype = compute_dtype(grad.dtype());
  const cpu::Target target(grad_x, dtype);
  const Tensor from = cpu::row_major(grad, dtype), codes = cpu::row_major(offsets, DType::UInt8);
  const int64_t pixels = w.h * w.w, outputs = w.oh * w.ow;
  const Unlocked unlocked(grad_x.numel() > 32768);
  visit_float(dtype, [&]<class T>() {
    parallel_for(w.n * w.c, std::max<int64_t>(1, 16384 / pixels), [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        T* const to = target.data<T>() + plane * pixels;
        std::fill_n(to, pixels, T(0));
        const T* gradient = from.data<T>() + plane * outputs;
        const uint8_t* number = codes.data<uint8_t>() + plane * outputs;
        for (int64_t y = 0; y < w.oh; ++y)
          for (int64_t xo = 0; xo < w.ow; ++xo, ++gradient, ++number) {
            const int64_t place = w.row_first[y] * w.w + w.column_first[xo] + w.apart[*number];
            if (uint64_t(place) < uint64_t(pixels)) [[likely]]  // whoever calls may have made numbers of his own
              to[place] += *gradient;
          }
      }
    });
  });
  target.finish();
}
void max_pool2d_backward_kernel(const Tensor& grad_x, const Tensor& grad, const Tensor& input, IntSpan kernel_size,
                                IntSpan stride, IntSpan padding, IntSpan dilation, bool ceil_mode,
                                const Tensor& offsets) {
  Geometry g = window_geometry(input, kernel_size, stride, padding, dilation, ceil_mode);
  const auto apart = places_apart(g.windows, infer::both(kernel_size));
  g.windows.apart = apart.data();
  if (grad_x.contiguous()) return max_pool_backward_planes(g.windows, grad_x, grad, offsets);
  const DType dtype = compute_dtype(grad.dtype());
  const Tensor from = cpu::channels_last(infer::batched(grad), dtype),
               codes = cpu::channels_last(infer::batched(offsets), DType::UInt8);
  through_channels_last(grad_x, dtype, [&](const Tensor& to) {
    const Unlocked unlocked(to.numel() > 32768);
    visit_float(dtype, [&]<class T>() {
      over_channel_blocks(g.windows, [&](int64_t image, int64_t c0, int64_t c1) {
        layers<T>().max_pool_backward(g.windows, from.data<T>(), codes.data<uint8_t>(), to.data<T>(), image, c0, c1);
      });
    });
  });
}

void max_pool2d_pick_kernel(const Tensor& out, const Tensor& input, IntSpan kernel_size, IntSpan stride,
                            IntSpan padding, IntSpan dilation, bool ceil_mode, const Tensor& offsets) {
  const Geometry g = window_geometry(input, kernel_size, stride, padding, dilation, ceil_mode);
  const DType dtype = compute_dtype(out.dtype());
  const cpu::Target target(out, dtype);
  const Tensor x = cpu::row_major(input, dtype), codes = cpu::row_major(offsets, DType::UInt8);
  const Windows& w = g.windows;
  visit_float(dtype, [&]<class T>() {
    int64_t at = 0;
    for (int64_t plane = 0; plane < w.n * w.c; ++plane)
      for (int64_t y = 0; y < w.oh; ++y)
        for (int64_t xo = 0; xo < w.ow; ++xo, ++at) {
          const int64_t number = codes.data<uint8_t>()[at];
          const int64_t row = w.row_first[y] + number / w.kernel_w * w.row_step,
                        column = w.column_first[xo] + number % w.kernel_w * w.column_step;
          check(row >= 0 && row < w.h && column >= 0 && column < w.w, ErrorKind::Index,
                "max_pool2d_pick: argument 'offsets' has ", number, ", which lies outside of 'input'");
          target.data<T>()[at] = x.data<T>()[(plane * w.h + row) * w.w + column];
        }
  });
  target.finish();
}

/// Adds grad to the positions h * w that `indices` name, plane by plane.
void scatter_positions(const char* op, const Tensor& grad_x, const Tensor& grad, const Tensor& indices) {
  const DType dtype = compute_dtype(grad.dtype());
  const cpu::Target target(grad_x, dtype);
  const Tensor from = cpu::row_major(grad, dtype), places = cpu::row_major(indices, DType::Int64);
  const int64_t pixels = grad_x.size(-1) * grad_x.size(-2), outputs = grad.size(-1) * grad.size(-2);
  const Unlocked unlocked(grad_x.numel() > 32768);
  visit_float(dtype, [&]<class T>() {
    parallel_for(grad_x.numel() / pixels, std::max<int64_t>(1, 16384 / pixels), [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        T* const to = target.data<T>() + plane * pixels;
        const T* const gradient = from.data<T>() + plane * outputs;
        const int64_t* const place = places.data<int64_t>() + plane * outputs;
        std::fill_n(to, pixels, T(0));
        for (int64_t i = 0; i < outputs; ++i) {
          if (uint64_t(place[i]) >= uint64_t(pixels)) [[unlikely]]
            fail(ErrorKind::Index, op, ": argument 'indices' has ", place[i], ", expected 0 to ", pixels - 1);
          to[place[i]] += gradient[i];
        }
      }
    });
  });
  target.finish();
}
void max_pool2d_with_indices_backward_kernel(const Tensor& grad_x, const Tensor& grad, const Tensor&, IntSpan, IntSpan,
                                             IntSpan, IntSpan, bool, const Tensor& indices) {
  scatter_positions("max_pool2d_with_indices_backward", grad_x, grad, indices);
}
void adaptive_max_pool2d_backward_kernel(const Tensor& grad_x, const Tensor& grad, const Tensor&,
                                         const Tensor& indices) {
  scatter_positions("adaptive_max_pool2d_backward", grad_x, grad, indices);
}

/// Gradients of row-major planes, one after the other.
template <class T>
void avg_pool_backward_planes(const Geometry& g, const Divisors& divisors, const T* grad, T* grad_x) {
  const Windows& w = g.windows;
  parallel_for(w.n * w.c, plane_grain(g), [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      T* const to = grad_x + plane * w.h * w.w;
      std::fill_n(to, w.h * w.w, T(0));
      for (int64_t y = 0; y < w.oh; ++y)
        for (int64_t x = 0; x < w.ow; ++x) {
          const int64_t at = y * w.ow + x;
          const T value = grad[plane * w.oh * w.ow + at] / T(divisors.data()[at]);
          for (int64_t row = w.row_begin[y]; row < w.row_end[y]; ++row)
            for (int64_t column = w.column_begin[x]; column < w.column_end[x]; ++column)
              to[row * w.w + column] += value;
        }
    }
  });
}

void avg_pool_backward(const Geometry& g, const Divisors& divisors, const Tensor& grad_x, const Tensor& grad) {
  const DType dtype = compute_dtype(grad.dtype());
  if (grad_x.contiguous()) {
    const Tensor rows = cpu::row_major(grad, dtype);
    const cpu::Target target(grad_x, dtype);
    const Unlocked unlocked(grad_x.numel() > 32768);
    visit_float(dtype, [&]<class T>() { avg_pool_backward_planes<T>(g, divisors, rows.data<T>(), target.data<T>()); });
    return target.finish();
  }
  const Tensor from = cpu::channels_last(infer::batched(grad), dtype);
  through_channels_last(grad_x, dtype, [&](const Tensor& to) {
    const Unlocked unlocked(to.numel() > 32768);
    visit_float(dtype, [&]<class T>() {
      over_channel_blocks(g.windows, [&](int64_t image, int64_t c0, int64_t c1) {
        layers<T>().avg_pool_backward(g.windows, from.data<T>(), to.data<T>(), divisors.data(), image, c0, c1);
      });
    });
  });
}
void avg_pool2d_backward_kernel(const Tensor& grad_x, const Tensor& grad, const Tensor& input, IntSpan kernel_size,
                                IntSpan stride, IntSpan padding, bool ceil_mode, bool count_include_pad,
                                std::optional<int64_t> divisor_override) {
  const Geometry g = window_geometry(input, kernel_size, stride, padding, {}, ceil_mode, count_include_pad);
  avg_pool_backward(g, g.divisors(divisor_override), grad_x, grad);
}
void adaptive_avg_pool2d_backward_kernel(const Tensor& grad_x, const Tensor& grad, const Tensor& input) {
  // Without elements one of the sizes may be huge: no window of it is looked at.
  const bool empty = grad.numel() == 0;
  const Geometry g = adaptive_geometry(input, {empty ? 0 : grad.size(-2), empty ? 0 : grad.size(-1)});
  avg_pool_backward(g, g.divisors(), grad_x, grad);
}

const bool registered = [] {
  kernel<op::max_pool2d_with_indices>(kCPU, max_pool2d_with_indices_kernel);
  kernel<op::max_pool2d_with_indices_backward>(kCPU, max_pool2d_with_indices_backward_kernel);
  kernel<op::max_pool2d_with_offsets>(kCPU, max_pool2d_with_offsets_kernel);
  kernel<op::max_pool2d_backward>(kCPU, max_pool2d_backward_kernel);
  kernel<op::max_pool2d_pick>(kCPU, max_pool2d_pick_kernel);
  kernel<op::avg_pool2d>(kCPU, avg_pool2d_kernel);
  kernel<op::avg_pool2d_backward>(kCPU, avg_pool2d_backward_kernel);
  kernel<op::adaptive_avg_pool2d>(kCPU, adaptive_avg_pool2d_kernel);
  kernel<op::adaptive_avg_pool2d_backward>(kCPU, adaptive_avg_pool2d_backward_kernel);
  kernel<op::adaptive_max_pool2d>(kCPU, adaptive_max_pool2d_kernel);
  kernel<op::adaptive_max_pool2d_backward>(kCPU, adaptive_max_pool2d_backward_kernel);
  return true;
}();

}  // namespace
}  // namespace taeda
