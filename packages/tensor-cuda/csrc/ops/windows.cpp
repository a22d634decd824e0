// Convolutions, as products of unfolded images, and pooling.
#include "kernels/windows.h"

#include <array>

#include "ops/elementwise.h"
#include "ops/matrix.h"

namespace taeda::cuda {
namespace {

using Three = std::array<int64_t, 3>;

/// Of an argument that is given for both dimensions or for each.
int64_t part(const std::vector<int64_t>& of, int d) { return of[of.size() > 1 ? size_t(d) : 0]; }

/// A convolution's shapes; `first` is the argument behind which stride, padding, dilation and groups come.
struct Convolution {
  int64_t images, groups, channels, filters, depth, places;  // channels and filters of a group
  Columns columns;
};
Convolution convolution(const Call& call, const Tensor& input, const Tensor& weight, const Tensor& result, int first) {
  Convolution c{};
  const int from = input.ndim() - 3;
  const auto stride = call.integers(first), padding = call.integers(first + 1), dilation = call.integers(first + 2);
  c.groups = call.integer(first + 3);
  c.images = from ? input.size(0) : 1;
  c.channels = input.size(from) / c.groups;
  c.filters = weight.size(0) / c.groups;
  Columns& k = c.columns;
  k.images = c.images;
  k.channels = input.size(from);
  for (int d = 0; d < 2; ++d) {
    k.size[d] = input.size(from + 1 + d);
    k.kernel[d] = weight.size(2 + d);
    k.out[d] = result.size(from + 1 + d);
    k.stride[d] = part(stride, d);
    k.padding[d] = part(padding, d);
    k.dilation[d] = part(dilation, d);
  }
  k.item = input.item_size();
  c.depth = c.channels * k.kernel[0] * k.kernel[1];
  c.places = k.out[0] * k.out[1];
  return c;
}
/// Unfolds all channels, into columns of which those of an image, or of a depth, are so far apart.
Tensor unfolded(const Call& call, Convolution& c, const Tensor& image, bool depth_first) {
  const int64_t depth = c.groups * c.depth;
  Tensor columns = call.empty({c.images * depth * c.places}, image.dtype());
  c.columns.step_image = depth_first ? c.places : depth * c.places;
  c.columns.step_depth = depth_first ? c.images * c.places : c.places;
  c.columns.image = image.array();
  c.columns.columns = columns.array();
  call.launch(Unfold{c.columns}, c.images * depth * c.places);
  return columns;
}
void fold_into(const Call& call, Columns columns, const Tensor& image) {
  columns.image = image.array();
  switch (class_for(image.dtype())) {
    case Class::Float: return call.launch(FoldColumns<float>{columns}, image.numel());
    case Class::Complex: return call.launch(FoldColumns<Complex128>{columns}, image.numel());
    default: return call.launch(FoldColumns<double>{columns}, image.numel());
  }
}

void conv2d(const Call& call) {
  const Tensor out = call.output(0), input = call.rows(call.tensor(0)), weight = call.rows(call.tensor(1));
  const Tensor bias = call.tensor(2);
  if (out.numel() == 0) return;
  Convolution c = convolution(call, input, weight, out, 3);
  const Target to(call, out);
  const Tensor columns = unfolded(call, c, input, false);
  const int64_t all = c.groups * c.filters;
  for (int64_t g = 0; g < c.groups; ++g) {
    const Tensor w = call.view(weight, Three{1, c.filters, c.depth}, Three{0, c.depth, 1}, g * c.filters * c.depth);
    const Tensor x = call.view(columns, Three{c.images, c.depth, c.places},
                               Three{c.groups * c.depth * c.places, c.places, 1}, g * c.depth * c.places);
    const Tensor y = call.view(to.tensor(), Three{c.images, c.filters, c.places}, Three{all * c.places, c.places, 1},
                               g * c.filters * c.places);
    if (bias) {
      const Tensor base = call.view(bias, Three{c.images, c.filters, c.places}, Three{0, bias.stride(0), 0},
                                    g * c.filters * bias.stride(0));
      multiply(call, y, w, x, &base, {1, 0, 1}, {1, 0, 1});
    } else {
      multiply(call, y, w, x);
    }
  }
  to.done();
}
void conv2d_backward(const Call& call) {
  const Tensor grad = call.rows(call.tensor(0)), given = call.tensor(1), given_weight = call.tensor(2);
  const int64_t mask = call.integer(7);
  Convolution c = convolution(call, given, given_weight, grad, 3);
  const int64_t all = c.groups * c.filters, depth = c.groups * c.depth;
  if (mask & 1) {
    Tensor made = call.empty(given.sizes(), given.dtype());
    const Tensor weight = call.rows(given_weight);
    const Tensor columns = call.empty({c.images * depth * c.places}, given.dtype());
    for (int64_t g = 0; g < c.groups; ++g) {
      const Tensor w = call.view(weight, Three{1, c.depth, c.filters}, Three{0, 1, c.depth}, g * c.filters * c.depth);
      const Tensor y = call.view(grad, Three{c.images, c.filters, c.places}, Three{all * c.places, c.places, 1},
                                 g * c.filters * c.places);
      multiply(call,
               call.view(columns, Three{c.images, c.depth, c.places}, Three{depth * c.places, c.places, 1},
                         g * c.depth * c.places),
               w, y);
    }
    Columns back = c.columns;
    back.step_image = depth * c.places;
    back.step_depth = c.places;
    back.columns = columns.array();
    fold_into(call, back, made);
    call.result(0, std::move(made));
  }
  if (mask & 2) {
    // Over all images at once: filters by (image, place), and (image, place) by depth.
    Tensor made = call.empty(given_weight.sizes(), given_weight.dtype());
    const Tensor input = call.rows(given), columns = unfolded(call, c, input, true);
    const Tensor turned =
        call.rows(call.view(grad, Three{all, c.images, c.places}, Three{c.places, all * c.places, 1}));
    const int64_t both = c.images * c.places;
    for (int64_t g = 0; g < c.groups; ++g) {
      const Tensor y = call.view(turned, Three{1, c.filters, both}, Three{0, both, 1}, g * c.filters * both);
      const Tensor x = call.view(columns, Three{1, both, c.depth}, Three{0, 1, both}, g * c.depth * both);
      multiply(call, call.view(made, Three{1, c.filters, c.depth}, Three{0, c.depth, 1}, g * c.filters * c.depth), y,
               x);
    }
    call.result(1, std::move(made));
  }
  if (mask & 4) {
    Tensor made = call.empty({all}, grad.dtype());
    sum_into(call, made, call.view(grad, Three{c.images, all, c.places}, Three{all * c.places, c.places, 1}), 0b101);
    call.result(2, std::move(made));
  }
}

/// im2col and col2im: the arguments behind the tensor and, of col2im, its output's size.
Columns columns_of(const Call& call, const Tensor& image, int first) {
  Columns c{};
  const auto kernel = call.integers(first), dilation = call.integers(first + 1), padding = call.integers(first + 2),
             stride = call.integers(first + 3);
  const int from = image.ndim() - 3;
  c.images = from ? image.size(0) : 1;
  c.channels = image.size(from);
  for (int d = 0; d < 2; ++d) {
    c.size[d] = image.size(from + 1 + d);
    c.kernel[d] = part(kernel, d);
    c.dilation[d] = part(dilation, d);
    c.padding[d] = part(padding, d);
    c.stride[d] = part(stride, d);
    c.out[d] = (c.size[d] + 2 * c.padding[d] - c.dilation[d] * (c.kernel[d] - 1) - 1) / c.stride[d] + 1;
  }
  c.step_depth = c.out[0] * c.out[1];
  c.step_image = c.channels * c.kernel[0] * c.kernel[1] * c.step_depth;
  c.item = image.item_size();
  return c;
}
void im2col(const Call& call) {
  const Tensor out = call.output(0), input = call.rows(call.tensor(0));
  if (out.numel() == 0) return;
  const Target to(call, out);
  Columns c = columns_of(call, input, 1);
  c.image = input.array();
  c.columns = to.array();
  call.launch(Unfold{c}, out.numel());
  to.done();
}
void col2im(const Call& call) {
  const Tensor out = call.output(0), input = call.rows(call.tensor(0));
  if (out.numel() == 0) return;
  const Target to(call, out);
  Columns c = columns_of(call, out, 2);
  c.columns = input.array();
  fold_into(call, c, to.tensor());
  to.done();
}

// --- pooling ---

/// Windows of given sizes, whose arguments begin at `first`: kernel, stride, padding and, of maxima, dilation.
Pool pool(const Call& call, const Tensor& image, const Tensor& result, int first, bool dilated) {
  Pool p{};
  const auto kernel = call.integers(first), padding = call.integers(first + 2);
  const auto stride = call.integers(first + 1).empty() ? kernel : call.integers(first + 1);
  const auto dilation = dilated ? call.integers(first + 3) : std::vector<int64_t>{1};
  for (int d = 0; d < 2; ++d)
    p.windows[d] = {image.size(d - 2), result.size(d - 2), part(kernel, d),
                    part(stride, d),   part(padding, d),   part(dilation, d)};
  return p;
}
Pool adaptive(const Tensor& image, const Tensor& result) {
  Pool p{};
  for (int d = 0; d < 2; ++d) p.windows[d] = {image.size(d - 2), result.size(d - 2), 0, 1, 0, 1};
  return p;
}
/// Fills the result from the image.
template <class Body>
void pool_forward(const Call& call, Pool p, const Tensor& input) {
  const Tensor out = call.output(0);
  if (out.numel() == 0) return;
  const Tensor image = call.rows(input);
  const Target to(call, out);
  p.image = image.array();
  p.result = to.array();
  call.launch(Body{p}, out.numel());
  to.done();
}
void max_forward(const Call& call, Pool p) {
  const Tensor out = call.output(0), places = call.output(1), image = call.rows(call.tensor(0));
  if (out.numel() == 0) return;
  const Target to(call, out), to_places(call, places);
  p.image = image.array();
  p.result = to.array();
  p.places = to_places.array();
  if (is_whole_type(out.dtype())) call.launch(MaxPool<int64_t>{p}, out.numel());
  else call.launch(MaxPool<double>{p}, out.numel());
  to.done();
  to_places.done();
}
/// Fills the image's gradient from the result's.
template <class Body>
void pool_backward(const Call& call, Pool p, const Tensor* places = nullptr) {
  const Tensor out = call.output(0), grad = call.rows(call.tensor(0));
  if (out.numel() == 0) return;
  const Tensor indices = places ? call.rows(*places) : Tensor();
  const Target to(call, out);
  p.image = to.array();
  p.result = grad.array();
  if (places) p.places = indices.array();
  call.launch(Body{p}, out.numel());
  to.done();
}
Pool means(const Call& call, const Tensor& image, const Tensor& result, int first) {
  Pool p = pool(call, image, result, first, false);
  p.with_padding = call.flag(first + 4);
  p.divisor = call.given(first + 5) ? call.integer(first + 5) : 0;
  return p;
}

void avg_pool2d(const Call& call) {
  pool_forward<MeanPool>(call, means(call, call.tensor(0), call.output(0), 1), call.tensor(0));
}
void avg_pool2d_backward(const Call& call) {
  pool_backward<MeanPoolBackward>(call, means(call, call.tensor(1), call.tensor(0), 2));
}
void adaptive_avg_pool2d(const Call& call) {
  pool_forward<MeanPool>(call, adaptive(call.tensor(0), call.output(0)), call.tensor(0));
}
void adaptive_avg_pool2d_backward(const Call& call) {
  pool_backward<MeanPoolBackward>(call, adaptive(call.tensor(1), call.tensor(0)));
}
void max_pool2d_with_indices(const Call& call) {
  max_forward(call, pool(call, call.tensor(0), call.output(0), 1, true));
}
void max_pool2d_with_indices_backward(const Call& call) {
  const Tensor indices = call.tensor(7);
  pool_backward<MaxPoolBackward>(call, pool(call, call.tensor(1), call.tensor(0), 2, true), &indices);
}
void adaptive_max_pool2d(const Call& call) { max_forward(call, adaptive(call.tensor(0), call.output(0))); }
void adaptive_max_pool2d_backward(const Call& call) {
  const Tensor indices = call.tensor(2);
  pool_backward<MaxPoolBackward>(call, adaptive(call.tensor(1), call.tensor(0)), &indices);
}

}  // namespace

const std::vector<Operation>& window_operations() {
  static const std::vector<Operation> operations{
      {"adaptive_avg_pool2d", adaptive_avg_pool2d},
      {"adaptive_avg_pool2d_backward", adaptive_avg_pool2d_backward},
      {"adaptive_max_pool2d", adaptive_max_pool2d},
      {"adaptive_max_pool2d_backward", adaptive_max_pool2d_backward},
      {"avg_pool2d", avg_pool2d},
      {"avg_pool2d_backward", avg_pool2d_backward},
      {"col2im", col2im},
      {"conv2d", conv2d},
      {"conv2d_backward", conv2d_backward},
      {"im2col", im2col},
      {"max_pool2d_with_indices", max_pool2d_with_indices},
      {"max_pool2d_with_indices_backward", max_pool2d_with_indices_backward},
  };
  return operations;
}

}  // namespace taeda::cuda
