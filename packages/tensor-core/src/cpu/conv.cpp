// CPU kernels of the conv family: oneDNN on channels-last tensors, or im2col and matrix products.
#include "taeda/ops/conv.h"

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <optional>

#include "core/runtime.h"
#include "cpu/blas.h"
#include "cpu/column_sums.h"
#include "cpu/depthwise.h"
#include "cpu/onednn/conv.h"
#include "cpu/onednn/geometry.h"
#include "cpu/onednn/matmul.h"
#include "cpu/onednn/quantized.h"
#include "cpu/patches.h"
#include "cpu/prepare.h"
#include "infer/conv.h"
#include "infer/memory_format.h"
#include "infer/windows.h"
#include "taeda/checked.h"
#include "taeda/elementwise.h"
#include "taeda/generator_state.h"
#include "taeda/image_layout.h"
#include "taeda/interrupt.h"
#include "taeda/ops/arith.h"
#include "taeda/ops/shape.h"
#include "taeda/parallel.h"

namespace taeda {
namespace {

using cpu::channels_last;
using cpu::fold_patches;
using cpu::row_major;
using cpu::unfold_patches;
using infer::batched;
using infer::ConvPlan;

/// Sizes of the matrices of one group.
struct Group {
  int64_t channels, outputs, patch, pixels;
  const char* name;
  explicit Group(const ConvPlan& s)
      : channels(s.in_group(s.c)),
        outputs(s.in_group(s.o)),
        patch(channels * s.kernel()),
        pixels(s.out_pixels()),
        name(s.deep() ? "conv3d" : "conv2d") {}
  /// Room for the patches of one image.
  template <class T>
  std::unique_ptr<T[]> columns() const {
    return std::make_unique_for_overwrite<T[]>(size_t((Count(patch) * pixels).of(name, "the matrix of patches")));
  }
};

/// Whether windows are single elements, each in its place: the channels of an image are the matrix of its patches.
bool is_pointwise(const ConvPlan& s) {
  return s.kernel() == 1 && s.sd == 1 && s.sh == 1 && s.sw == 1 && s.pd == 0 && s.ph == 0 && s.pw == 0;
}
/// The patches of images one after the other.
template <class T>
class Patches {
 public:
  Patches(const ConvPlan& s, const Group& g) : s_(s), room_(is_pointwise(s) ? nullptr : g.columns<T>()) {}
  const T* of(const T* image) const {
    if (!room_) return image;
    unfold_patches(s_, image, room_.get());
    return room_.get();
  }
  /// Where the gradient of the patches is to be made, and what brings it into that of the image.
  T* place(T* image) const { return room_ ? room_.get() : image; }
  void fold(T* image) const {
    if (!room_) return;
    std::fill_n(image, s_.in_group(s_.c) * s_.pixels(), T(0));
    fold_patches(s_, room_.get(), image);
  }

 private:
  const ConvPlan& s_;
  const std::unique_ptr<T[]> room_;
};

template <class T>
void plain_forward(const ConvPlan& s, const T* x, const T* weight, const T* bias, T* y) {
  const Group g(s);
  parallel_for(s.n, 1, [&](int64_t begin, int64_t end) {
    const Patches<T> patches(s, g);
    for (int64_t n = begin; n < end; ++n)
      for (int64_t group = 0; group < s.groups; ++group) {
        if (n > begin || group > 0) poll_signals();
        T* const to = y + (n * s.o + group * g.outputs) * g.pixels;
        for (int64_t o = 0; bias && o < g.outputs; ++o)
          std::fill_n(to + o * g.pixels, g.pixels, bias[group * g.outputs + o]);
        const T* const columns = patches.of(x + (n * s.c + group * g.channels) * s.pixels());
        blas::gemm<T>(g.outputs, g.pixels, g.patch, T(1), {weight + group * g.outputs * g.patch, g.patch},
                      {columns, g.pixels}, bias ? T(1) : T(0), to, g.pixels);
      }
  });
}
template <class T>
void plain_backward_data(const ConvPlan& s, const T* grad, const T* weight, T* grad_x) {
  const Group g(s);
  parallel_for(s.n, 1, [&](int64_t begin, int64_t end) {
    const Patches<T> patches(s, g);
    for (int64_t n = begin; n < end; ++n)
      for (int64_t group = 0; group < s.groups; ++group) {
        if (n > begin || group > 0) poll_signals();
        const T* const from = grad + (n * s.o + group * g.outputs) * g.pixels;
        T* const image = grad_x + (n * s.c + group * g.channels) * s.pixels();
        blas::gemm<T>(g.patch, g.pixels, g.outputs, T(1), {weight + group * g.outputs * g.patch, g.patch, true},
                      {from, g.pixels}, T(0), patches.place(image), g.pixels);
        patches.fold(image);
      }
  });
}
template <class T>
void plain_backward_weights(const ConvPlan& s, const T* x, const T* grad, T* grad_weight) {
  const Group g(s);
  std::fill_n(grad_weight, s.o * g.patch, T(0));
  const Patches<T> patches(s, g);
  for (int64_t n = 0; n < s.n; ++n)
    for (int64_t group = 0; group < s.groups; ++group) {
      if (n > 0 || group > 0) poll_signals();
      const T* const from = grad + (n * s.o + group * g.outputs) * g.pixels;
      const T* const columns = patches.of(x + (n * s.c + group * g.channels) * s.pixels());
      blas::gemm<T>(g.outputs, g.patch, g.pixels, T(1), {from, g.pixels}, {columns, g.pixels, true}, T(1),
                    grad_weight + group * g.outputs * g.patch, g.patch);
    }
}
/// Sums over everything but dimension 1 of a row-major (n, o, pixels).
template <class T>
void plain_backward_bias(const ConvPlan& s, const T* grad, T* grad_bias) {
  const int64_t pixels = s.out_pixels();
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

/// The dimensions of `t` in another order.
Tensor permuted(const Tensor& t, std::initializer_list<int64_t> order) {
  Shape sizes, strides;
  for (const int64_t d : order) sizes.push_back(t.size(d)), strides.push_back(t.stride(d));
  return alias(t, sizes, strides, 0);
}

template <class T>
const T* data_or_null(const Tensor& t) {
  return t.defined() ? t.data<T>() : nullptr;
}

/// Too little work to pay for a vendor library's call: row-major tensors take the plain path.
bool is_tiny(double patches, int64_t outputs, int64_t groups) {
  return patches <= 4096 && patches / double(groups) * double(outputs) <= 128 * 1024;
}
bool is_tiny(const ConvPlan& s) { return is_tiny(double(s.n * s.out_pixels() * s.kernel() * s.c), s.o, s.groups); }
/// Products of row-major images by a weight of single elements, which are quicker than oneDNN after the images were
/// turned, unless the results are so many that the next layer would have to turn more, or the images very small.
bool by_products(DType dtype, int64_t channels, int64_t outputs, int64_t pixels) {
  constexpr int64_t small = 64;
  return dtype == DType::Float32 && outputs <= channels && pixels >= small;
}
/// Whether row-major tensors of all kinds take the plain path.
bool is_plain(const ConvPlan& s, DType dtype) {
  return is_tiny(s) || (is_pointwise(s) && s.groups == 1 && by_products(dtype, s.c, s.o, s.pixels()));
}

/// Small enough for a plain path to be quicker than giving up the host lock.
bool large(const ConvPlan& s) { return s.work() > blas::kUnlockFlops; }

/// Activations as oneDNN takes them, dense with the channels last: (N, C, H, W) of such strides, or a volume
/// (N, D, H, W, C).
Tensor packed(const Tensor& t, int64_t rank, DType dtype) {
  const Tensor batch = batched(t, rank);
  if (rank == 2) return channels_last(batch, dtype);
  const Tensor last = permuted(batch, {0, 2, 3, 4, 1});
  return row_major(last, dtype);
}
/// Room for a result of these sizes (N, C, ...), in that order, and its view in the order of the sizes.
struct Packed {
  Tensor memory, view;
  Packed(IntSpan sizes, DType dtype) {
    if (sizes.size() == 4) {
      memory = view = empty_strided(sizes, channels_last_strides(sizes), dtype);
    } else {
      memory = empty(Shape{sizes[0], sizes[2], sizes[3], sizes[4], sizes[1]}, dtype);
      view = permuted(memory, {0, 4, 1, 2, 3});
    }
  }
};

/// Weights (c, 1, kd, kh, kw) of depthwise convolutions as rows of channels.
Tensor rows_of_channels(const Tensor& weight, DType dtype) {
  const Tensor w = row_major(weight, dtype);
  const int64_t c = w.size(0), taps = c > 0 ? w.numel() / c : 0;
  return row_major(alias(w, Shape{taps, c}, Shape{1, taps}, 0));
}

bool by_windows(const ConvPlan& s, DType dtype) {
  return cpu::is_depthwise(s) && (dtype == DType::Float32 || dtype == DType::Float64);
}

/// Whether images or volumes lie as oneDNN computes them.
bool lies_packed(const Tensor& batch) {
  return infer::lies_as("conv", batch, batch.dim() == 4 ? "channels_last" : "channels_last_3d");
}

template <class T>
void depthwise(const Tensor& out, const ConvPlan& s, const Tensor& input, const Tensor& weight, const Tensor& bias) {
  const int64_t rank = weight.dim() - 2;
  const Tensor x = packed(input, rank, dtype_of<T>), w = rows_of_channels(weight, dtype_of<T>),
               b = cpu::row_major_or_none(bias, dtype_of<T>), to = batched(out, rank);
  const bool direct = lies_packed(to) && to.dtype() == dtype_of<T>;
  std::optional<Packed> y;
  if (!direct) y.emplace(to.sizes(), dtype_of<T>);
  {
    const Unlocked unlocked(large(s));
    cpu::depthwise_forward<T>(s, x.data<T>(), w.data<T>(), data_or_null<T>(b),
                              direct ? to.data<T>() : y->memory.data<T>());
  }
  if (!direct) ops::copy_(to, y->view);
}

/// Whether activations are bfloat16 and stay so, as the processor multiplies them faster than float32. Not those of one
/// channel to a group: gradients of such weights were NaN, and crashed, in oneDNN 3.2, and there is little to win.
bool in_halves(const ConvPlan& s, const Tensor& a, const Tensor& b) {
  return a.dtype() == DType::BFloat16 && b.dtype() == DType::BFloat16 && onednn::has_bfloat16() &&
         (s.groups == 1 || (s.in_group(s.c) > 1 && s.in_group(s.o) > 1)) &&
         onednn::is_right_on_tiles(s, s.deep() ? onednn::Borders::Half : onednn::Borders::Whole);
}

template <class T>
bool fast_forward_typed(const Tensor& out, const ConvPlan& s, const Tensor& input, const Tensor& weight,
                        const Tensor& bias) {
  const int64_t rank = weight.dim() - 2;
  const Tensor x = packed(input, rank, dtype_of<T>), b = cpu::row_major_or_none(bias, DType::Float32);
  onednn::Weights w(weight, !(thread_state.grad_enabled && weight.requires_grad()));
  const Tensor to = batched(out, rank);
  const bool direct = lies_packed(to) && to.dtype() == dtype_of<T>;
  std::optional<Packed> y;
  if (!direct) y.emplace(to.sizes(), dtype_of<T>);
  {
    const Unlocked unlocked(large(s));
    T* const place = direct ? to.data<T>() : y->memory.data<T>();
    if (!onednn::conv_forward<T>(s, x.data<T>(), w, data_or_null<float>(b), place)) return false;
  }
  w.keep();
  if (!direct) ops::copy_(to, y->view);
  return true;
}

bool fast_forward(const Tensor& out, const ConvPlan& s, const Tensor& input, const Tensor& weight, const Tensor& bias) {
  if (compute_dtype(out.dtype()) != DType::Float32) return false;
  if (in_halves(s, input, weight) && fast_forward_typed<BFloat16>(out, s, input, weight, bias)) return true;
  return fast_forward_typed<float>(out, s, input, weight, bias);
}

/// Groups of one channel with a few results each: depthwise, too, where each channel stands once for each of them.
bool of_repeated_channels(const ConvPlan& s, DType dtype) {
  constexpr int64_t few = 4;
  ConvPlan repeated = s;
  repeated.c = repeated.groups = s.o;
  return s.groups == s.c && s.o > s.c && s.o <= few * s.c && by_windows(repeated, dtype);
}
/// (n, c * times, ...) as (n, c, times, ...).
Tensor parted(const Tensor& t, int64_t times) {
  Shape sizes{t.size(0), t.size(1) / times, times}, strides{t.stride(0), t.stride(1) * times, t.stride(1)};
  for (int64_t d = 2; d < t.dim(); ++d) sizes.push_back(t.size(d)), strides.push_back(t.stride(d));
  return alias(t, sizes, strides, 0);
}
/// Without the elements where only its shape is asked for.
Tensor with_repeated_channels(const Tensor& x, int64_t times, bool filled = true) {
  Shape sizes{x.size(0), x.size(1) * times}, spread{x.size(0), x.size(1), times}, strides{x.stride(0), x.stride(1), 0};
  for (int64_t d = 2; d < x.dim(); ++d) {
    sizes.push_back(x.size(d)), spread.push_back(x.size(d));
    strides.push_back(x.stride(d));
  }
  const Tensor out =
      empty_strided(sizes, x.channels_last() ? channels_last_strides(sizes) : contiguous_strides(sizes), x.dtype());
  if (filled) ops::copy_(parted(out, times), alias(x, spread, strides, 0));
  return out;
}

/// Its gradient: sums of the channels that were one.
Tensor sum_of_repeated(const Tensor& grad, int64_t times) {
  const Tensor parts = parted(grad, times);
  Tensor sum = ops::select(parts, 2, 0);
  for (int64_t k = 1; k < times; ++k) sum = ops::add(sum, ops::select(parts, 2, k));
  return sum;
}

/// Windows that lie side by side and fill images, as where those are cut into patches: each is a pixel whose channels
/// are all that it holds, and the convolution is one by a weight of single elements.
class Cut {
 public:
  Cut(const ConvPlan& s) : s_(s) {}

  /// Whether a plan is of this kind, and better computed so: see onednn::is_right_on_tiles().
  static bool fits(const ConvPlan& s, const Tensor& input, const Tensor& weight) {
    return s.groups == 1 && !s.deep() && s.kw > 1 && s.kh == s.sh && s.kw == s.sw && s.ph == 0 && s.pw == 0 &&
           (s.dh == 1 || s.kh == 1) && s.dw == 1 && s.oh * s.kh == s.h && s.ow * s.kw == s.w &&
           input.dtype() == DType::BFloat16 && weight.dtype() == DType::BFloat16 && onednn::has_bfloat16();
  }
  /// (n, c, h, w) as (n, kh * kw * c, oh, ow), the channels last.
  Tensor pixels(const Tensor& images) const {
    const Tensor made = empty(Shape{s_.n, s_.oh, s_.ow, s_.kh, s_.kw, s_.c}, images.dtype());
    ops::copy_(made, windows(images));
    const Shape sizes{s_.n, s_.c * s_.kernel(), s_.oh, s_.ow};
    return alias(made, sizes, channels_last_strides(sizes), 0);
  }
  /// The way back, into images.
  void put(const Tensor& images, const Tensor& pixels) const {
    const Tensor dense = channels_last(pixels, pixels.dtype());
    const Shape sizes{s_.n, s_.oh, s_.ow, s_.kh, s_.kw, s_.c};
    ops::copy_(windows(images), alias(dense, sizes, contiguous_strides(sizes), 0));
  }
  /// (o, c, kh, kw) as (o, kh * kw * c, 1, 1), and back.
  Tensor rows(const Tensor& weight) const {
    const Tensor last = row_major(permuted(weight, {0, 2, 3, 1}));
    const Shape sizes{s_.o, s_.c * s_.kernel(), 1, 1};
    return alias(last, sizes, contiguous_strides(sizes), 0);
  }
  Tensor weight(const Tensor& rows) const {
    const Tensor dense = row_major(rows);
    const Shape sizes{s_.o, s_.kh, s_.kw, s_.c};
    return row_major(permuted(alias(dense, sizes, contiguous_strides(sizes), 0), {0, 3, 1, 2}));
  }

 private:
  /// (n, oh, ow, kh, kw, c)
  Tensor windows(const Tensor& images) const {
    const int64_t h = images.stride(2), w = images.stride(3);
    return alias(images, Shape{s_.n, s_.oh, s_.ow, s_.kh, s_.kw, s_.c},
                 Shape{images.stride(0), h * s_.kh, w * s_.kw, h, w, images.stride(1)}, 0);
  }
  const ConvPlan& s_;
};
const int64_t kOnes[] = {1, 1}, kNone[] = {0, 0};

void conv_kernel(const Tensor& out, const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride,
                 IntSpan padding, IntSpan dilation, int64_t groups) {
  const ConvPlan s = infer::conv_plan(input, weight, stride, padding, dilation, groups);
  const bool plain = is_plain(s, out.dtype()) && out.contiguous() && input.contiguous();
  const DType dtype = compute_dtype(out.dtype());
  if (s.c > 0 && !plain && Cut::fits(s, input, weight)) {
    const Cut cut(s);
    return conv_kernel(batched(out, 2), cut.pixels(batched(input, 2)), cut.rows(weight), bias, kOnes, kNone, kOnes, 1);
  }
  if (!plain && of_repeated_channels(s, dtype))
    return conv_kernel(out, with_repeated_channels(batched(input, weight.dim() - 2), s.o / s.c), weight, bias, stride,
                       padding, dilation, s.o);
  if (s.c > 0 && !plain) {
    if (fast_forward(out, s, input, weight, bias)) return;
    if (by_windows(s, dtype))
      return cpu::visit_float(dtype, [&]<class T>() { depthwise<T>(out, s, input, weight, bias); });
  }
  const cpu::Target target(out, dtype);
  const Tensor x = row_major(input, dtype), w = row_major(weight, dtype), b = cpu::row_major_or_none(bias, dtype);
  const Unlocked unlocked(large(s));
  blas::visit_numeric(weight.dim() == 4 ? "conv2d" : "conv3d", dtype, [&]<class T>() {
    plain_forward<T>(s, x.data<T>(), w.data<T>(), data_or_null<T>(b), target.data<T>());
  });
  target.finish();
}

struct Gradients {
  Tensor input, weight, bias;
};

/// Fills what is wanted by `mask`, is not there yet, and has a fast routine of oneDNN's.
template <class T>
void fast_backward_typed(Gradients& out, const ConvPlan& s, const Tensor& grad, const Tensor& input,
                         const Tensor& weight, int64_t mask) {
  const bool input_is_missing = mask & 1 && !out.input.defined(), weight_is_missing = mask & 6 && !out.weight.defined();
  if (!input_is_missing && !weight_is_missing) return;
  const int64_t rank = weight.dim() - 2;
  const Tensor g = packed(grad, rank, dtype_of<T>);
  if (input_is_missing) {
    onednn::Weights w(weight, !weight.requires_grad());
    const Packed x(batched(input, rank).sizes(), dtype_of<T>);
    {
      const Unlocked unlocked(large(s));
      if (onednn::conv_backward_data<T>(s, g.data<T>(), w, x.memory.data<T>())) out.input = x.view;
    }
    w.keep();
    const bool as_drawn = default_engine() == Engine::Twister && !batched(grad, rank).channels_last();
    if ((rank == 3 || as_drawn) && out.input.defined()) out.input = row_major(out.input);
  }
  if (weight_is_missing) {
    const Tensor x = packed(input, rank, dtype_of<T>);
    out.weight = empty(weight.sizes(), DType::Float32);
    if (mask & 4) out.bias = empty(weight.sizes().first(1), DType::Float32);
    const Unlocked unlocked(large(s));
    if (!onednn::conv_backward_weights<T>(s, x.data<T>(), g.data<T>(), out.weight.data<float>(),
                                          out.bias.defined() ? out.bias.data<float>() : nullptr))
      out.weight = out.bias = Tensor();
  }
}

/// Fills what is wanted and not there yet.
template <class T>
void depthwise_backward(Gradients& out, const ConvPlan& s, const Tensor& grad, const Tensor& input,
                        const Tensor& weight, int64_t mask) {
  const int64_t rank = weight.dim() - 2;
  const Tensor g = packed(grad, rank, dtype_of<T>);
  if (mask & 1 && !out.input.defined()) {
    const Tensor w = rows_of_channels(weight, dtype_of<T>);
    const Packed x(batched(input, rank).sizes(), dtype_of<T>);
    {
      const Unlocked unlocked(large(s));
      cpu::depthwise_backward_data<T>(s, g.data<T>(), w.data<T>(), x.memory.data<T>());
    }
    out.input = x.view;
    const bool as_drawn = default_engine() == Engine::Twister && !batched(grad, rank).channels_last();
    if (rank == 3 || as_drawn) out.input = row_major(out.input);
  }
  if (mask & 2 && !out.weight.defined()) {
    const Tensor x = packed(input, rank, dtype_of<T>);
    const int64_t taps = s.kernel();
    const Tensor rows = empty(Shape{taps, s.c}, dtype_of<T>);
    {
      const Unlocked unlocked(large(s));
      cpu::depthwise_backward_weights<T>(s, x.data<T>(), g.data<T>(), rows.data<T>());
    }
    const Tensor turned = row_major(alias(rows, Shape{s.c, taps}, Shape{1, s.c}, 0));
    out.weight = alias(turned, weight.sizes(), contiguous_strides(weight.sizes()), 0);
  }
  if (mask & 4 && !out.bias.defined()) {
    out.bias = empty(Shape{s.c}, dtype_of<T>);
    cpu::column_sums(out.bias.data<T>(), g.data<T>(), s.n * s.out_pixels(), s.c);
  }
}

/// Fills what oneDNN has fast routines for; leaves the rest undefined.
void fast_backward(Gradients& out, const ConvPlan& s, const Tensor& grad, const Tensor& input, const Tensor& weight,
                   int64_t mask) {
  if (compute_dtype(grad.dtype()) != DType::Float32) return;
  if (in_halves(s, input, weight) && grad.dtype() == DType::BFloat16)
    fast_backward_typed<BFloat16>(out, s, grad, input, weight, mask);
  fast_backward_typed<float>(out, s, grad, input, weight, mask);
}

void plain_backward(Gradients& out, const ConvPlan& s, const Tensor& grad, const Tensor& input, const Tensor& weight,
                    int64_t mask) {
  const DType dtype = compute_dtype(grad.dtype());
  const Tensor g = row_major(grad, dtype);
  blas::visit_numeric(weight.dim() == 4 ? "conv2d_backward" : "conv3d_backward", dtype, [&]<class T>() {
    if (mask & 1) {
      const Tensor w = row_major(weight, dtype);
      out.input = empty(batched(input, weight.dim() - 2).sizes(), dtype);
      const Unlocked unlocked(large(s));
      plain_backward_data<T>(s, g.data<T>(), w.data<T>(), out.input.data<T>());
    }
    if (mask & 2) {
      const Tensor x = row_major(input, dtype);
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

std::tuple<Tensor, Tensor, Tensor> conv_backward_kernel(const Tensor& grad, const Tensor& input, const Tensor& weight,
                                                        IntSpan stride, IntSpan padding, IntSpan dilation,
                                                        int64_t groups, int64_t output_mask) {
  const ConvPlan s = infer::conv_plan(input, weight, stride, padding, dilation, groups);
  Gradients out;
  const DType dtype = compute_dtype(grad.dtype());
  const bool plain = is_plain(s, grad.dtype()) && grad.contiguous() && input.contiguous();
  if (s.n > 0 && !plain && of_repeated_channels(s, dtype)) {
    const int64_t rank = weight.dim() - 2, times = s.o / s.c;
    const Tensor repeated = with_repeated_channels(batched(input, rank), times, output_mask & 2);
    auto [x, w, b] =
        conv_backward_kernel(batched(grad, rank), repeated, weight, stride, padding, dilation, s.o, output_mask);
    if (x.defined()) x = sum_of_repeated(x, times);
    if (x.defined() && input.dim() < weight.dim()) x = alias(x, input.sizes(), x.strides().subspan(1), 0);
    return {x, w, b};
  }
  if (s.n > 0 && s.c > 0 && s.o > 0 && !plain && Cut::fits(s, input, weight)) {
    const Cut cut(s);
    const Tensor images = batched(input, 2);
    auto [x, w, b] = conv_backward_kernel(batched(grad, 2), cut.pixels(images), cut.rows(weight), kOnes, kNone, kOnes,
                                          1, output_mask);
    if (x.defined()) {
      const Tensor whole = empty_strided(
          images.sizes(),
          images.channels_last() ? channels_last_strides(images.sizes()) : contiguous_strides(images.sizes()),
          x.dtype());
      cut.put(whole, x);
      x = input.dim() < 4 ? alias(whole, input.sizes(), whole.strides().subspan(1), 0) : whole;
    }
    if (w.defined()) w = cut.weight(w);
    return {x, w, b};
  }
  if (s.n > 0 && s.c > 0 && s.o > 0 && !plain) {
    fast_backward(out, s, grad, input, weight, output_mask);
    if (by_windows(s, dtype))
      cpu::visit_float(dtype, [&]<class T>() { depthwise_backward<T>(out, s, grad, input, weight, output_mask); });
  }
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
  if (out.input.defined() && input.dim() < weight.dim())
    out.input =
        from_storage(out.input.impl()->storage, input.sizes(), out.input.strides().subspan(1), 0, out.input.dtype());
  return {output_mask & 1 ? back(out.input) : Tensor(), output_mask & 2 ? back(out.weight) : Tensor(),
          output_mask & 4 ? back(out.bias) : Tensor()};
}

}  // namespace

bool detail::cpu_wants_channels_last(const ImageResult& r) {
  if (std::string_view(r.op) == "quantized_conv2d") return onednn::has_int8() || lies_as_input(r);
  if (std::string_view(r.op) != "conv2d") return lies_as_input(r);
  // What is drawn in the order of memory is PyTorch's where the layouts are, too.
  if (default_engine() == Engine::Twister) return lies_as_input(r);
  if (!onednn::available() || compute_dtype(r.dtype) != DType::Float32) return lies_as_input(r);
  const double patches =
      double(r.sizes[0]) * double(r.sizes[2] * r.sizes[3]) * double(r.kernel[0] * r.kernel[1]) * double(r.input[1]);
  const bool pointwise = r.kernel[0] * r.kernel[1] == 1 && r.groups == 1 &&
                         std::ranges::equal(r.sizes.subspan(2), r.input.subspan(2)) &&
                         by_products(r.dtype, r.input[1], r.sizes[1], r.sizes[2] * r.sizes[3]);
  return !((pointwise || is_tiny(patches, r.sizes[1], r.groups)) && r.input_layout == ImageLayout::RowMajor);
}

namespace {

const bool registered = [] {
  kernel<op::conv2d>(kCPU, conv_kernel);
  kernel<op::conv2d_backward>(kCPU, conv_backward_kernel);
  kernel<op::conv3d>(kCPU, conv_kernel);
  kernel<op::conv3d_backward>(kCPU, conv_backward_kernel);
  return true;
}();

}  // namespace
}  // namespace taeda
