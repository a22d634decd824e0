// Fourier transforms over dimensions: line after line, by blocks that threads share.
#include "taeda/ops/fft.h"

#include <algorithm>
#include <cmath>

#include "cpu/kernel.h"
#include "cpu/loops/fft.h"
#include "infer/dims.h"
#include "taeda/interrupt.h"
#include "taeda/parallel.h"

namespace taeda::cpu {
namespace {

/// Lines that one call of a loop gets.
constexpr int64_t kBlock = 64;
/// Points that are worth a thread.
constexpr int64_t kGrain = int64_t(1) << 15;

/// Where the lines of two tensors of one shape, the transformed axis apart, begin.
struct LineWalk {
  int ndim = 0;
  int64_t sizes[kMaxDims], in_steps[kMaxDims], out_steps[kMaxDims];  // innermost first
  int64_t lines = 1;

  LineWalk(const Tensor& out, const Tensor& in, int64_t axis) {
    for (int64_t d = out.dim() - 1; d >= 0; --d) {
      lines *= d == axis ? 1 : out.size(d);
      if (d == axis || out.size(d) == 1) continue;
      int at = ndim++;
      // Neighbours in memory side by side, wherever the dimension stands.
      for (; at > 0 && std::abs(out.stride(d)) < std::abs(out_steps[at - 1]); --at) {
        sizes[at] = sizes[at - 1];
        in_steps[at] = in_steps[at - 1];
        out_steps[at] = out_steps[at - 1];
      }
      sizes[at] = out.size(d);
      in_steps[at] = in.stride(d);
      out_steps[at] = out.stride(d);
    }
  }

  /// The places of lines [first, first + count).
  void places(int64_t first, int64_t count, int64_t* in_at, int64_t* out_at) const {
    int64_t index[kMaxDims], in = 0, out = 0;
    for (int d = 0; d < ndim; ++d) {
      index[d] = first % sizes[d];
      first /= sizes[d];
      in += index[d] * in_steps[d];
      out += index[d] * out_steps[d];
    }
    for (int64_t k = 0; k < count; ++k) {
      in_at[k] = in;
      out_at[k] = out;
      for (int d = 0; d < ndim; ++d) {
        in += in_steps[d];
        out += out_steps[d];
        if (++index[d] < sizes[d]) break;
        in -= sizes[d] * in_steps[d];
        out -= sizes[d] * out_steps[d];
        index[d] = 0;
      }
    }
  }
};

struct Direction {
  bool forward = true, full = false;
};

/// One axis of `n` points, with the loops of the tensors' precision.
void transform(const FftFn (&loops)[2], const Tensor& out, const Tensor& in, int64_t axis, int64_t n, double scale,
               Direction way) {
  const FftFn loop = loops[real_of(in.dtype()) == DType::Float64];
  const LineWalk walk(out, in, axis);
  const int64_t in_step = in.stride(axis), out_step = out.stride(axis);
  const int64_t grain = std::max<int64_t>(1, kGrain / (n * kBlock)) * kBlock;
  const Unlocked unlocked(walk.lines * n > kGrain / 4);
  parallel_for(walk.lines, grain, [&](int64_t begin, int64_t end) {
    int64_t in_at[kBlock], out_at[kBlock];
    for (int64_t k = begin; k < end; k += kBlock) {
      const int64_t count = std::min(kBlock, end - k);
      walk.places(k, count, in_at, out_at);
      loop({in.bytes(), out.bytes(), in_at, out_at, count, in_step, out_step, n, way.forward, way.full, scale});
      if (k + kBlock < end) poll_signals();
    }
  });
}

/// What the last axis's numbers are multiplied by.
double factor_of(IntSpan sizes, IntSpan dim, int64_t normalization) {
  double points = 1;
  for (const int64_t d : dim) points *= double(sizes[size_t(infer::axis_of(d, int64_t(sizes.size())))]);
  return normalization == 0 ? 1 : normalization == 1 ? 1 / std::sqrt(points) : 1 / points;
}

/// The complex axes `dim`; the first reads `in`, the others go on in `out`.
void transform_axes(const Tensor& out, const Tensor& in, IntSpan dim, double scale, bool forward) {
  for (size_t k = 0; k < dim.size(); ++k) {
    const int64_t axis = infer::axis_of(dim[k], out.dim());
    transform(fft_table().c2c, out, k ? out : in, axis, out.size(axis), k + 1 == dim.size() ? scale : 1, {forward});
  }
}

void c2c_kernel(const Tensor& out, const Tensor& self, IntSpan dim, int64_t normalization, bool forward) {
  if (dim.empty()) return copy_elements(out, self);
  transform_axes(out, self, dim, factor_of(self.sizes(), dim, normalization), forward);
}

void r2c_kernel(const Tensor& out, const Tensor& self, IntSpan dim, int64_t normalization, bool onesided) {
  const double scale = factor_of(self.sizes(), dim, normalization);
  const int64_t axis = infer::axis_of(dim.back(), self.dim());
  const IntSpan others = dim.first(dim.size() - 1);
  transform(fft_table().r2c, out, self, axis, self.size(axis), others.empty() ? scale : 1, {true, !onesided});
  transform_axes(out, out, others, scale, true);
}

void c2r_kernel(const Tensor& out, const Tensor& self, IntSpan dim, int64_t normalization, int64_t last_dim_size) {
  const double scale = factor_of(out.sizes(), dim, normalization);
  const int64_t axis = infer::axis_of(dim.back(), self.dim());
  const IntSpan others = dim.first(dim.size() - 1);
  Tensor from = self;
  if (!others.empty()) {
    from = taeda::empty(self.sizes(), self.dtype(), self.device());
    transform_axes(from, self, others, 1, false);
  }
  transform(fft_table().c2r, out, from, axis, last_dim_size, scale, {});
}

const bool registered = [] {
  kernel<op::_fft_c2c>(kCPU, c2c_kernel);
  kernel<op::_fft_c2r>(kCPU, c2r_kernel);
  kernel<op::_fft_r2c>(kCPU, r2c_kernel);
  return true;
}();

}  // namespace
}  // namespace taeda::cpu
