// CPU kernels of the image family: windows as columns, and images sampled at points.
#include "taeda/ops/image.h"

#include <algorithm>
#include <vector>

#include "cpu/blas.h"
#include "cpu/loops/spatial.h"
#include "cpu/patches.h"
#include "cpu/prepare.h"
#include "cpu/transposed.h"
#include "infer/image.h"
#include "infer/windows.h"
#include "taeda/elementwise.h"
#include "taeda/interrupt.h"
#include "taeda/parallel.h"

namespace taeda {
namespace {

using cpu::ConvPlan;
using cpu::row_major;

/// Channels of a piece: enough windows to be worth a thread.
int64_t channels_of_piece(const ConvPlan& s) {
  return std::max<int64_t>(1, 32768 / std::max<int64_t>(1, s.kernel() * s.out_pixels()));
}
/// One channel, whose window rows follow each other in the columns.
ConvPlan one_channel(ConvPlan s) {
  s.n = s.c = 1;
  return s;
}

void im2col_kernel(const Tensor& out, const Tensor& input, IntSpan kernel_size, IntSpan dilation, IntSpan padding,
                   IntSpan stride) {
  const Tensor images = infer::batched(input);
  const int64_t size[] = {input.size(-2), input.size(-1)};
  const ConvPlan s = infer::patch_plan(images, size, kernel_size, dilation, padding, stride, images.size(1)),
                 each = one_channel(s);
  const Tensor x = row_major(input);
  const cpu::Target target(out);
  const int64_t column = s.kernel() * s.out_pixels();
  {
    const Unlocked unlocked(out.numel() > 32768);
    const auto run = [&]<class T>() {
      const T* const from = x.data<T>();
      T* const to = target.data<T>();
      parallel_for(s.n * s.c, channels_of_piece(s), [&](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; ++c) cpu::unfold_patches(each, from + c * s.pixels(), to + c * column);
      });
    };
    // Elements are moved, whatever they are.
    switch (input.item_bytes()) {
      case 1: run.operator()<uint8_t>(); break;
      case 2: run.operator()<int16_t>(); break;
      case 4: run.operator()<float>(); break;
      case 8: run.operator()<double>(); break;
      default: run.operator()<Complex128>();
    }
  }
  target.finish();
}

void col2im_kernel(const Tensor& out, const Tensor& input, IntSpan output_size, IntSpan kernel_size, IntSpan dilation,
                   IntSpan padding, IntSpan stride) {
  const Tensor images = infer::batched(out);
  const ConvPlan s = infer::patch_plan(images, output_size, kernel_size, dilation, padding, stride, images.size(1)),
                 each = one_channel(s);
  const DType dtype = compute_dtype(out.dtype());
  const Tensor columns = row_major(input, dtype);
  const cpu::Target target(out, dtype);
  const int64_t column = s.kernel() * s.out_pixels();
  {
    const Unlocked unlocked(input.numel() > 32768);
    blas::visit_numeric("col2im", dtype, [&]<class T>() {
      const T* const from = columns.data<T>();
      T* const to = target.data<T>();
      parallel_for(s.n * s.c, channels_of_piece(s), [&](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; ++c) {
          std::fill_n(to + c * s.pixels(), s.pixels(), T(0));
          cpu::fold_patches(each, from + c * column, to + c * s.pixels());
        }
      });
    });
  }
  target.finish();
}

using loops::kPoints;
using loops::PointPlan;

/// The taps of a block of points, tap by tap; with derivatives, those by each coordinate.
template <class T>
struct Taps {
  const PointPlan& plan;
  int64_t taps, points = 0;
  std::vector<int32_t> offsets;
  std::vector<T> weights, slopes[3];
  Taps(const PointPlan& p, bool with_slopes) : plan(p), taps(p.taps()) {
    offsets.resize(size_t(taps * kPoints));
    weights.resize(size_t(taps * kPoints));
    for (int64_t d = 0; with_slopes && d < plan.rank; ++d) slopes[d].resize(size_t(taps * kPoints));
  }
  /// Of `count` points of a row-major grid.
  void fill(const T* grid, int64_t count) {
    points = count;
    T* const by[] = {slopes[0].data(), slopes[1].data(), slopes[2].data()};
    loops::spatial_loops<T>().fill_taps(grid, count, plan, offsets.data(), weights.data(),
                                        slopes[0].empty() ? nullptr : by);
  }
  loops::PointTaps<T> view() const { return {points, taps, offsets.data(), weights.data()}; }
};

/// What forward and backward share.
struct Sampling {
  int64_t n, c, elements = 1, points = 1;
  PointPlan plan{};
  Sampling(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding, bool align_corners)
      : n(input.size(0)), c(input.size(1)) {
    plan.rank = input.dim() - 2;
    plan.align_corners = align_corners;
    plan.how = loops::Sampled(mode);
    plan.outside = loops::Outside(padding);
    for (int64_t d = 0; d < plan.rank; ++d) {  // in the order of coordinates: x, y, z
      plan.size[d] = input.size(-1 - d);
      plan.step[d] = elements;
      elements *= input.size(-1 - d);
      points *= grid.size(1 + d);
    }
  }
  int64_t pieces() const { return (points + kPoints - 1) / kPoints; }
  int64_t width(int64_t piece) const { return std::min(kPoints, points - piece * kPoints); }
};

template <class T>
void sample(const Sampling& s, const T* x, const T* grid, T* out) {
  parallel_for(s.n * s.pieces(), 8, [&](int64_t begin, int64_t end) {
    Taps<T> taps(s.plan, false);
    for (int64_t p = begin; p < end; ++p) {
      poll_signals();
      const int64_t image = p / s.pieces(), piece = p % s.pieces(), first = piece * kPoints;
      taps.fill(grid + (image * s.points + first) * s.plan.rank, s.width(piece));
      for (int64_t c = image * s.c; c < (image + 1) * s.c; ++c)
        loops::spatial_loops<T>().sample(x + c * s.elements, taps.view(), out + c * s.points + first);
    }
  });
}

/// Whether channels are sampled together, as rows of an image in channels-last order: that is there, or worth making.
bool by_rows(const Sampling& s, const Tensor& input) {
  constexpr int64_t several = 8;
  if (input.dim() != 4 || s.c < several) return false;
  return input.channels_last() ? !input.contiguous()
                               : s.c >= loops::spatial_table().many_channels && 2 * s.points >= s.elements;
}

/// `x` is in channels-last order.
template <class T>
void sample_by_rows(const Sampling& s, const T* x, const T* grid, T* out) {
  constexpr int64_t kRoom = 16384;  // numbers of a block of results, before their turn
  const int64_t block = std::clamp<int64_t>(kRoom / s.c, 16, kPoints);
  parallel_for(s.n * s.pieces(), 8, [&](int64_t begin, int64_t end) {
    Taps<T> taps(s.plan, false);
    const std::vector<T> zeros(size_t(s.c), T(0));
    std::vector<T> rows(size_t(s.c * block));
    for (int64_t p = begin; p < end; ++p) {
      poll_signals();
      const int64_t image = p / s.pieces(), first = p % s.pieces() * kPoints, width = s.width(p % s.pieces());
      taps.fill(grid + (image * s.points + first) * s.plan.rank, width);
      for (int64_t from = 0; from < width; from += block) {
        const int64_t count = std::min(block, width - from);
        loops::spatial_loops<T>().sample_rows(x + image * s.c * s.elements, s.c, zeros.data(), taps.view(), from,
                                              from + count, rows.data());
        cpu::copy_transposed(out + image * s.c * s.points + first + from, rows.data(), s.c, count, s.points, s.c,
                             sizeof(T));
      }
    }
  });
}

template <class T>
void sample_grad_input(const Sampling& s, const T* grad, const T* grid, T* grad_x) {
  // Channels of one image share the taps; a channel is written by one thread, point after point.
  const int64_t group = std::clamp<int64_t>(s.c / 4, 1, 16), groups = (s.c + group - 1) / group;
  parallel_for(s.n * groups, 1, [&](int64_t begin, int64_t end) {
    Taps<T> taps(s.plan, false);
    for (int64_t at = begin; at < end; ++at) {
      const int64_t image = at / groups, first_channel = at % groups * group,
                    last_channel = std::min(s.c, first_channel + group);
      std::fill_n(grad_x + (image * s.c + first_channel) * s.elements, (last_channel - first_channel) * s.elements,
                  T(0));
      for (int64_t piece = 0; piece < s.pieces(); ++piece) {
        poll_signals();
        const int64_t first = piece * kPoints, width = s.width(piece);
        taps.fill(grid + (image * s.points + first) * s.plan.rank, width);
        for (int64_t c = image * s.c + first_channel; c < image * s.c + last_channel; ++c)
          loops::spatial_loops<T>().scatter(grad + c * s.points + first, taps.view(), grad_x + c * s.elements);
      }
    }
  });
}

template <class T>
void sample_grad_grid(const Sampling& s, const T* grad, const T* x, const T* grid, T* grad_grid) {
  parallel_for(s.n * s.pieces(), 4, [&](int64_t begin, int64_t end) {
    Taps<T> taps(s.plan, true);
    std::vector<T> sums(size_t(taps.taps * kPoints));
    for (int64_t at = begin; at < end; ++at) {
      poll_signals();
      const int64_t image = at / s.pieces(), piece = at % s.pieces(), first = piece * kPoints, width = s.width(piece);
      taps.fill(grid + (image * s.points + first) * s.plan.rank, width);
      std::fill(sums.begin(), sums.end(), T(0));
      // Sums over channels of the gradient times the element of each tap, then over taps with their derivatives.
      for (int64_t c = image * s.c; c < (image + 1) * s.c; ++c)
        loops::spatial_loops<T>().gather_products(x + c * s.elements, taps.view(), grad + c * s.points + first,
                                                  sums.data());
      T* const to = grad_grid + (image * s.points + first) * s.plan.rank;
      for (int64_t p = 0; p < width; ++p)
        for (int64_t d = 0; d < s.plan.rank; ++d) {
          T sum(0);
          for (int64_t k = 0; k < taps.taps; ++k)
            sum += sums[size_t(k * width + p)] * taps.slopes[d][size_t(k * width + p)];
          to[p * s.plan.rank + d] = sum;
        }
    }
  });
}

/// Runs `body(T)` for float and double.
template <class Body>
void visit_sampled(DType dtype, const Body& body) {
  if (dtype == DType::Float64) body.template operator()<double>();
  else body.template operator()<float>();
}

void grid_sampler_kernel(const Tensor& out, const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                         bool align_corners) {
  const DType dtype = compute_dtype(out.dtype());
  const Sampling s(input, grid, mode, padding, align_corners);
  const bool rows = by_rows(s, input);
  const Tensor x = rows ? cpu::channels_last(input, dtype) : row_major(input, dtype), points = row_major(grid, dtype);
  const cpu::Target target(out, dtype);
  {
    const Unlocked unlocked(out.numel() > 8192);
    visit_sampled(dtype, [&]<class T>() {
      if (rows) sample_by_rows<T>(s, x.data<T>(), points.data<T>(), target.data<T>());
      else sample<T>(s, x.data<T>(), points.data<T>(), target.data<T>());
    });
  }
  target.finish();
}

std::tuple<Tensor, Tensor> grid_sampler_backward_kernel(const Tensor& grad, const Tensor& input, const Tensor& grid,
                                                        int64_t mode, int64_t padding, bool align_corners,
                                                        int64_t output_mask) {
  const DType dtype = compute_dtype(grad.dtype());
  const Tensor g = row_major(grad, dtype), x = row_major(input, dtype), points = row_major(grid, dtype);
  Tensor of_input, of_grid;
  if (output_mask & 1) of_input = empty(input.sizes(), dtype);
  if (output_mask & 2) of_grid = empty(grid.sizes(), dtype);
  {
    const Unlocked unlocked(grad.numel() > 8192);
    visit_sampled(dtype, [&]<class T>() {
      const Sampling s(input, grid, mode, padding, align_corners);
      if (of_input.defined()) sample_grad_input<T>(s, g.data<T>(), points.data<T>(), of_input.data<T>());
      if (of_grid.defined()) sample_grad_grid<T>(s, g.data<T>(), x.data<T>(), points.data<T>(), of_grid.data<T>());
    });
  }
  const auto back = [&](const Tensor& t) {
    return !t.defined() || t.dtype() == grad.dtype() ? t : row_major(t, grad.dtype());
  };
  return {back(of_input), back(of_grid)};
}

const bool registered = [] {
  kernel<op::im2col>(kCPU, im2col_kernel);
  kernel<op::col2im>(kCPU, col2im_kernel);
  kernel<op::grid_sampler>(kCPU, grid_sampler_kernel);
  kernel<op::grid_sampler_backward>(kCPU, grid_sampler_backward_kernel);
  return true;
}();

}  // namespace
}  // namespace taeda
