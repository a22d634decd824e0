// CPU kernels of the conv family: oneDNN on channels-last tensors, or im2col and matrix products.
#include "taeda/ops/conv.h"

#include <algorithm>
#include <memory>

#include "core/runtime.h"
#include "cpu/blas.h"
#include "cpu/onednn/conv.h"
#include "cpu/prepare.h"
#include "infer/conv.h"
#include "infer/windows.h"
#include "taeda/checked.h"
#include "taeda/elementwise.h"
#include "taeda/image_layout.h"
#include "taeda/interrupt.h"
#include "taeda/parallel.h"

namespace taeda {
namespace {

using cpu::channels_last;
using cpu::row_major;
using infer::batched;
using infer::ConvPlan;

/// The output columns whose input column, for kernel column j, lies inside the image.
struct Columns {
  int64_t begin, end, first;  // of the output; the input column of output column 0
};
Columns columns_of(const ConvPlan& s, int64_t j) {
  const int64_t first = j * s.dw - s.pw;
  if (first >= 0 && first + (s.ow - 1) * s.sw < s.w) return {0, s.ow, first};  // all, without a division
  const int64_t begin = std::min(s.ow, first < 0 ? (-first + s.sw - 1) / s.sw : 0);
  return {begin, std::max(begin, std::min(s.ow, first < s.w ? (s.w - 1 - first) / s.sw + 1 : 0)), first};
}

/// Calls `body(columns, image row or null)` for every row of the patch matrix of one image's group.
template <class T, class Body>
void for_patch_rows(const ConvPlan& s, T* image, const Body& body) {
  for (int64_t c = 0, channels = s.in_group(s.c); c < channels; ++c)
    for (int64_t i = 0; i < s.kh; ++i)
      for (int64_t j = 0; j < s.kw; ++j) {
        const Columns inside = columns_of(s, j);
        int64_t at = i * s.dh - s.ph, place = (c * s.h + at) * s.w + inside.first;
        for (int64_t y = 0; y < s.oh; ++y, at += s.sh, place += s.sh * s.w)
          body(inside, at >= 0 && at < s.h ? image + place : nullptr);
      }
}
/// One image's patches as a matrix (c / groups * kh * kw, oh * ow) of one group.
template <class T>
void unfold_patches(const ConvPlan& s, const T* image, T* columns) {
  const int64_t n = s.ow;
  if (s.ph == 0 && s.pw == 0 && s.sw == 1) {  // nothing but runs of the image
    for (int64_t c = 0, channels = s.in_group(s.c); c < channels; ++c)
      for (int64_t i = 0; i < s.kh; ++i)
        for (int64_t j = 0; j < s.kw; ++j) {
          const T* from = image + (c * s.h + i * s.dh) * s.w + j * s.dw;
          for (int64_t y = 0; y < s.oh; ++y, from += s.sh * s.w, columns += n)
            for (int64_t x = 0; x < n; ++x) columns[x] = from[x];
        }
    return;
  }
  for_patch_rows(s, image, [&s, &columns, n](const Columns& inside, const T* from) {
    const int64_t begin = from ? inside.begin : n, end = from ? inside.end : n;
    for (int64_t x = 0; x < begin; ++x) columns[x] = T(0);
    for (int64_t x = begin; x < end; ++x) columns[x] = from[x * s.sw];
    for (int64_t x = end; x < n; ++x) columns[x] = T(0);
    columns += n;
  });
}
/// The adjoint: adds each patch back to its place.
template <class T>
void fold_patches(const ConvPlan& s, const T* columns, T* image) {
  for_patch_rows(s, image, [&s, &columns](const Columns& inside, T* to) {
    for (int64_t x = inside.begin; to && x < inside.end; ++x) to[x * s.sw] += columns[x];
    columns += s.ow;
  });
}

/// Sizes of the matrices of one group.
struct Group {
  int64_t channels, outputs, patch, pixels;
  explicit Group(const ConvPlan& s)
      : channels(s.in_group(s.c)), outputs(s.in_group(s.o)), patch(channels * s.kh * s.kw), pixels(s.oh * s.ow) {}
  /// Room for the patches of one image.
  template <class T>
  std::unique_ptr<T[]> columns() const {
    return std::make_unique_for_overwrite<T[]>(size_t((Count(patch) * pixels).of("conv2d", "the matrix of patches")));
  }
};

template <class T>
void plain_forward(const ConvPlan& s, const T* x, const T* weight, const T* bias, T* y) {
  const Group g(s);
  parallel_for(s.n, 1, [&](int64_t begin, int64_t end) {
    const auto columns = g.columns<T>();
    for (int64_t n = begin; n < end; ++n)
      for (int64_t group = 0; group < s.groups; ++group) {
        if (n > begin || group > 0) poll_signals();
        T* const to = y + (n * s.o + group * g.outputs) * g.pixels;
        for (int64_t o = 0; bias && o < g.outputs; ++o)
          std::fill_n(to + o * g.pixels, g.pixels, bias[group * g.outputs + o]);
        unfold_patches(s, x + (n * s.c + group * g.channels) * s.h * s.w, columns.get());
        blas::gemm<T>(g.outputs, g.pixels, g.patch, T(1), {weight + group * g.outputs * g.patch, g.patch},
                      {columns.get(), g.pixels}, bias ? T(1) : T(0), to, g.pixels);
      }
  });
}
template <class T>
void plain_backward_data(const ConvPlan& s, const T* grad, const T* weight, T* grad_x) {
  const Group g(s);
  std::fill_n(grad_x, s.n * s.c * s.h * s.w, T(0));
  parallel_for(s.n, 1, [&](int64_t begin, int64_t end) {
    const auto columns = g.columns<T>();
    for (int64_t n = begin; n < end; ++n)
      for (int64_t group = 0; group < s.groups; ++group) {
        if (n > begin || group > 0) poll_signals();
        const T* const from = grad + (n * s.o + group * g.outputs) * g.pixels;
        blas::gemm<T>(g.patch, g.pixels, g.outputs, T(1), {weight + group * g.outputs * g.patch, g.patch, true},
                      {from, g.pixels}, T(0), columns.get(), g.pixels);
        fold_patches(s, columns.get(), grad_x + (n * s.c + group * g.channels) * s.h * s.w);
      }
  });
}
template <class T>
void plain_backward_weights(const ConvPlan& s, const T* x, const T* grad, T* grad_weight) {
  const Group g(s);
  std::fill_n(grad_weight, s.o * g.patch, T(0));
  const auto columns = g.columns<T>();
  for (int64_t n = 0; n < s.n; ++n)
    for (int64_t group = 0; group < s.groups; ++group) {
      if (n > 0 || group > 0) poll_signals();
      const T* const from = grad + (n * s.o + group * g.outputs) * g.pixels;
      unfold_patches(s, x + (n * s.c + group * g.channels) * s.h * s.w, columns.get());
      blas::gemm<T>(g.outputs, g.patch, g.pixels, T(1), {from, g.pixels}, {columns.get(), g.pixels, true}, T(1),
                    grad_weight + group * g.outputs * g.patch, g.patch);
    }
}
/// Sums over everything but dimension 1 of a row-major (n, o, pixels).
template <class T>
void plain_backward_bias(const ConvPlan& s, const T* grad, T* grad_bias) {
  const int64_t pixels = s.oh * s.ow;
  for (int64_t o = 0; o < s.o; ++o) {
    T total(0);
    for (int64_t n = 0; n < s.n; ++n) {
      poll_signals();
      T sum(0);
      for (int64_t p = 0; p < pixels; ++p) sum += grad[(n * s.o + o) * pixels + p];
      total += sum;
    }
    grad_bias[o] = total;
  }
}

template <class T>
const T* data_or_null(const Tensor& t) {
  return t.defined() ? t.data<T>() : nullptr;
}

/// Too little work to pay for a vendor library's call: row-major tensors take the plain path.
bool is_tiny(double patches, int64_t outputs, int64_t groups) {
  return patches <= 4096 && patches / double(groups) * double(outputs) <= 128 * 1024;
}
bool is_tiny(const ConvPlan& s) { return is_tiny(double(s.n * s.oh * s.ow * s.kh * s.kw * s.c), s.o, s.groups); }

/// Small enough for a plain path to be quicker than giving up the host lock.
bool large(const ConvPlan& s) { return s.work() > blas::kUnlockFlops; }

bool fast_forward(const Tensor& out, const ConvPlan& s, const Tensor& input, const Tensor& weight, const Tensor& bias) {
  if (compute_dtype(out.dtype()) != DType::Float32) return false;
  const Tensor x = channels_last(batched(input), DType::Float32), b = cpu::row_major_or_none(bias, DType::Float32);
  onednn::Weights w(weight, !(thread_state.grad_enabled && weight.requires_grad()));
  const Tensor to = batched(out);
  const bool direct = to.channels_last() && to.dtype() == DType::Float32;
  const Tensor y = direct ? to : empty_strided(to.sizes(), channels_last_strides(to.sizes()), DType::Float32);
  {
    const Unlocked unlocked(large(s));
    if (!onednn::conv_forward(s, x.data<float>(), w, data_or_null<float>(b), y.data<float>())) return false;
  }
  w.keep();
  if (!direct) ops::copy_(to, y);
  return true;
}

void conv2d_kernel(const Tensor& out, const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride,
                   IntSpan padding, IntSpan dilation, int64_t groups) {
  const ConvPlan s = infer::conv_plan(input, weight, stride, padding, dilation, groups);
  const bool plain = is_tiny(s) && out.contiguous() && input.contiguous();
  if (s.c > 0 && !plain && fast_forward(out, s, input, weight, bias)) return;
  const DType dtype = compute_dtype(out.dtype());
  const cpu::Target target(out, dtype);
  const Tensor x = row_major(input, dtype), w = row_major(weight, dtype), b = cpu::row_major_or_none(bias, dtype);
  const Unlocked unlocked(large(s));
  blas::visit_numeric("conv2d", dtype, [&]<class T>() {
    plain_forward<T>(s, x.data<T>(), w.data<T>(), data_or_null<T>(b), target.data<T>());
  });
  target.finish();
}

struct Gradients {
  Tensor input, weight, bias;
};

/// Fills what oneDNN has fast routines for; leaves the rest undefined.
Gradients fast_backward(const ConvPlan& s, const Tensor& grad, const Tensor& input, const Tensor& weight,
                        int64_t mask) {
  Gradients out;
  if (compute_dtype(grad.dtype()) != DType::Float32) return out;
  const Tensor g = channels_last(batched(grad), DType::Float32);
  if (mask & 1) {
    const Shape sizes{s.n, s.c, s.h, s.w};
    onednn::Weights w(weight, !weight.requires_grad());
    out.input = empty_strided(sizes, channels_last_strides(sizes), DType::Float32);
    {
      const Unlocked unlocked(large(s));
      if (!onednn::conv_backward_data(s, g.data<float>(), w, out.input.data<float>())) out.input = Tensor();
    }
    w.keep();
  }
  if (mask & 6) {
    const Tensor x = channels_last(batched(input), DType::Float32);
    out.weight = empty(weight.sizes(), DType::Float32);
    if (mask & 4) out.bias = empty(weight.sizes().first(1), DType::Float32);
    const Unlocked unlocked(large(s));
    if (!onednn::conv_backward_weights(s, x.data<float>(), g.data<float>(), out.weight.data<float>(),
                                       out.bias.defined() ? out.bias.data<float>() : nullptr))
      out.weight = out.bias = Tensor();
  }
  return out;
}

void plain_backward(Gradients& out, const ConvPlan& s, const Tensor& grad, const Tensor& input, const Tensor& weight,
                    int64_t mask) {
  const DType dtype = compute_dtype(grad.dtype());
  const Tensor g = row_major(batched(grad), dtype);
  blas::visit_numeric("conv2d_backward", dtype, [&]<class T>() {
    if (mask & 1) {
      const Tensor w = row_major(weight, dtype);
      out.input = empty(Shape{s.n, s.c, s.h, s.w}, dtype);
      const Unlocked unlocked(large(s));
      plain_backward_data<T>(s, g.data<T>(), w.data<T>(), out.input.data<T>());
    }
    if (mask & 2) {
      const Tensor x = row_major(batched(input), dtype);
      out.weight = empty(weight.sizes(), dtype);
      const Unlocked unlocked(large(s));
      plain_backward_weights<T>(s, x.data<T>(), g.data<T>(), out.weight.data<T>());
    }
    if (mask & 4) {
      out.bias = empty(weight.sizes().first(1), dtype);
      plain_backward_bias<T>(s, g.data<T>(), out.bias.data<T>());
    }
  });
}

std::tuple<Tensor, Tensor, Tensor> conv2d_backward_kernel(const Tensor& grad, const Tensor& input, const Tensor& weight,
                                                          IntSpan stride, IntSpan padding, IntSpan dilation,
                                                          int64_t groups, int64_t output_mask) {
  const ConvPlan s = infer::conv_plan(input, weight, stride, padding, dilation, groups);
  Gradients out;
  const bool plain = is_tiny(s) && grad.contiguous() && input.contiguous();
  if (s.n > 0 && s.c > 0 && s.o > 0 && !plain) out = fast_backward(s, grad, input, weight, output_mask);
  const int64_t missing = (output_mask & 1 && !out.input.defined() ? 1 : 0) |
                          (output_mask & 2 && !out.weight.defined() ? 2 : 0) |
                          (output_mask & 4 && !out.bias.defined() ? 4 : 0);
  if (missing) plain_backward(out, s, grad, input, weight, missing);
  const auto back = [&](const Tensor& t) {
    if (!t.defined() || t.dtype() == grad.dtype()) return t;
    Tensor cast = empty_strided(t.sizes(), t.strides(), grad.dtype());
    ops::copy_(cast, t);
    return cast;
  };
  if (out.input.defined() && input.dim() == 3)
    out.input =
        from_storage(out.input.impl()->storage, input.sizes(), out.input.strides().subspan(1), 0, out.input.dtype());
  return {output_mask & 1 ? back(out.input) : Tensor(), output_mask & 2 ? back(out.weight) : Tensor(),
          output_mask & 4 ? back(out.bias) : Tensor()};
}

}  // namespace

bool detail::cpu_wants_channels_last(const ImageResult& r) {
  if (std::string_view(r.op) != "conv2d") return lies_as_input(r);
  if (!onednn::available() || compute_dtype(r.dtype) != DType::Float32) return false;
  const double patches =
      double(r.sizes[0]) * double(r.sizes[2] * r.sizes[3]) * double(r.kernel[0] * r.kernel[1]) * double(r.input[1]);
  return !(is_tiny(patches, r.sizes[1], r.groups) && r.input_layout == ImageLayout::RowMajor);
}

namespace {

const bool registered = [] {
  kernel<op::conv2d>(kCPU, conv2d_kernel);
  kernel<op::conv2d_backward>(kCPU, conv2d_backward_kernel);
  return true;
}();

}  // namespace
}  // namespace taeda
