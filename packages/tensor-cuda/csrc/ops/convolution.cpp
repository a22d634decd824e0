// Convolutions of images and volumes: by NVIDIA's library where it is there, else as products of unfolded images.
#include <algorithm>
#include <array>

#include "backend/graphs.h"
#include "driver/cudnn.h"
#include "ops/elementwise.h"
#include "ops/layout.h"
#include "ops/matrix.h"
#include "ops/windows.h"

namespace taeda::cuda {
namespace {

using Three = std::array<int64_t, 3>;

/// Of a weight: how many dimensions the convolution goes over.
int spatial_of(const Tensor& weight) { return weight.ndim() - 2; }

// --- by products of unfolded images ---

/// A convolution's shapes; `first` is the argument behind which stride, padding, dilation and groups come.
struct Unfolding {
  int64_t images, groups, channels, filters, depth, places;  // channels and filters of a group
  Columns columns;
};
Unfolding unfolding(const Call& call, const Tensor& input, const Tensor& weight, const Tensor& result, int first) {
  Unfolding c{};
  const int spatial = spatial_of(weight), from = input.ndim() - spatial - 1;
  const auto stride = call.integers(first), padding = call.integers(first + 1), dilation = call.integers(first + 2);
  c.groups = call.integer(first + 3);
  c.images = from ? input.size(0) : 1;
  c.channels = input.size(from) / c.groups;
  c.filters = weight.size(0) / c.groups;
  Columns& k = c.columns = one_place_each(spatial);
  k.images = c.images;
  k.channels = input.size(from);
  for (int i = 0; i < spatial; ++i) {
    const int d = Columns::kDimensions - spatial + i;
    k.size[d] = input.size(from + 1 + i);
    k.kernel[d] = weight.size(2 + i);
    k.out[d] = result.size(from + 1 + i);
    k.stride[d] = part(stride, i);
    k.padding[d] = part(padding, i);
    k.dilation[d] = part(dilation, i);
  }
  k.item = input.item_size();
  c.depth = c.channels * Columns::product(k.kernel);
  c.places = Columns::product(k.out);
  return c;
}
/// Unfolds all channels, into columns of which those of an image, or of a depth, are so far apart.
Tensor unfolded(const Call& call, Unfolding& c, const Tensor& image, bool depth_first) {
  const int64_t depth = c.groups * c.depth;
  Tensor columns = call.empty({c.images * depth * c.places}, image.dtype());
  c.columns.step_image = depth_first ? c.places : depth * c.places;
  c.columns.step_depth = depth_first ? c.images * c.places : c.places;
  c.columns.image = image.array();
  c.columns.columns = columns.array();
  call.launch(Unfold{c.columns}, c.images * depth * c.places);
  return columns;
}
void unfold_and_multiply(const Call& call) {
  const Tensor out = call.output(0), input = call.rows(call.tensor(0)), weight = call.rows(call.tensor(1));
  const Tensor bias = call.tensor(2);
  if (out.numel() == 0) return;
  Unfolding c = unfolding(call, input, weight, out, 3);
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
void gradients_by_unfolding(const Call& call, int64_t mask) {
  const Tensor grad = call.rows(call.tensor(0)), given = call.tensor(1), given_weight = call.tensor(2);
  Unfolding c = unfolding(call, given, given_weight, grad, 3);
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
}

// --- by NVIDIA's library ---

/// What has no batch as a batch of one.
Tensor batched(const Call& call, const Tensor& t, int spatial) {
  if (t.ndim() == spatial + 2) return Tensor(t.handle());
  std::vector<int64_t> sizes{1}, strides{t.numel()};
  sizes.insert(sizes.end(), t.sizes().begin(), t.sizes().end());
  strides.insert(strides.end(), t.strides().begin(), t.strides().end());
  return call.view(t, sizes, strides);
}
Convolution::Operand operand_of(Layout layout, const Tensor& t) {
  constexpr uint64_t kMost = 16;
  Convolution::Operand operand;
  const auto strides = strides_in(layout, t.sizes());
  std::ranges::copy(t.sizes(), operand.sizes.begin());
  std::ranges::copy(strides, operand.strides.begin());
  operand.data = t.address();
  operand.alignment = int32_t(std::min(kMost, operand.data & (~operand.data + 1)));
  return operand;
}
/// A convolution's window: the arguments from `first` on.
Convolution window_of(const Call& call, Convolved kind, int dtype, int spatial, int first) {
  Convolution c;
  c.spatial = spatial;
  c.kind = kind;
  c.dtype = dtype;
  c.tf32 = dtype == TAEDA_FLOAT32 && cudnn_tf32_allowed;
  c.deterministic = cudnn_deterministic || !cudnn_benchmark;
  const auto stride = call.integers(first), padding = call.integers(first + 1), dilation = call.integers(first + 2);
  for (int d = 0; d < c.spatial; ++d) {
    c.stride[size_t(d)] = part(stride, d);
    c.padding[size_t(d)] = part(padding, d);
    c.dilation[size_t(d)] = part(dilation, d);
  }
  return c;
}
/// Puts it into the stream; false, with nothing done, where the library has no way.
bool convolve(const Call& call, const Convolution& c) {
  Driver& driver = own_machine()->driver();
  const int device = call.device().index;
  const bool trying = cudnn_benchmark && !own_machine()->graphs().of(device, call.stream());
  const ConvolutionPlan* const plan = driver.plan(device, c, call.stream(), trying);
  if (!plan) return false;
  const Tensor workspace = plan->workspace ? call.empty({int64_t(plan->workspace)}, TAEDA_UINT8) : Tensor();
  call.done(driver.convolve(device, *plan, c, workspace ? workspace.address() : 0, call.stream()), "convolution");
  return true;
}
bool meets_library(std::initializer_list<const Tensor*> operands) {
  const int dtype = (*operands.begin())->dtype();
  return cudnn_enabled && is_float_type(dtype) &&
         std::ranges::all_of(operands, [&](const Tensor* t) { return t->dtype() == dtype && t->numel() > 0; });
}
bool result_by_library(const Call& call) {
  const Tensor weight = call.tensor(1);
  const int spatial = spatial_of(weight);
  const Tensor out = batched(call, call.output(0), spatial), input = batched(call, call.tensor(0), spatial);
  if (!meets_library({&out, &input, &weight})) return false;
  const Layout layout = layout_of({&out, &input});
  const bool fits = lies(out, layout);
  const Tensor made = fits ? Tensor() : empty_in(call, layout, out.sizes(), out.dtype());
  const Tensor x = laid(call, layout, input), w = laid(call, layout, weight);
  const Tensor& y = fits ? out : made;
  Convolution c = window_of(call, Convolved::Result, out.dtype(), spatial, 3);
  c.x = operand_of(layout, x), c.w = operand_of(layout, w), c.y = operand_of(layout, y);
  if (!convolve(call, c)) return false;
  if (const Tensor bias = call.tensor(2)) {
    static const Row& add = line("add");
    std::vector<int64_t> sizes(size_t(spatial) + 1, 1), strides(size_t(spatial) + 1, 0);
    sizes[0] = bias.size(0), strides[0] = bias.stride(0);
    const Tensor base = call.view(bias, sizes, strides);
    run_line(call, add, out.dtype(), out, {&y, &base});
  } else if (!fits) {
    call.copy(out, made);
  }
  return true;
}
/// The gradients of input and weight that the mask asks for and the library computes; gives back the mask of the
/// others.
int64_t gradients_by_library(const Call& call, int64_t mask) {
  const Tensor weight = call.tensor(2);
  const int spatial = spatial_of(weight);
  const Tensor grad = batched(call, call.tensor(0), spatial), input = batched(call, call.tensor(1), spatial);
  if (!meets_library({&grad, &input, &weight})) return mask;
  const Layout layout = layout_of({&grad, &input});
  const Tensor y = laid(call, layout, grad);
  if (mask & 1) {
    const Tensor made = empty_in(call, layout, input.sizes(), input.dtype()), w = laid(call, layout, weight);
    Convolution c = window_of(call, Convolved::InputGradient, input.dtype(), spatial, 3);
    c.x = operand_of(layout, made), c.w = operand_of(layout, w), c.y = operand_of(layout, y);
    if (convolve(call, c)) {
      const std::span strides = made.strides();
      const int from = call.tensor(1).ndim() == spatial + 2 ? 0 : 1;
      call.result(0, call.view(made, made.sizes().subspan(size_t(from)), strides.subspan(size_t(from))));
      mask &= ~int64_t(1);
    }
  }
  if (mask & 2) {
    const Tensor x = laid(call, layout, input);
    Tensor made = empty_in(call, layout, weight.sizes(), weight.dtype());
    Convolution c = window_of(call, Convolved::WeightGradient, weight.dtype(), spatial, 3);
    c.x = operand_of(layout, x), c.w = operand_of(layout, made), c.y = operand_of(layout, y);
    if (convolve(call, c)) {
      const bool rows = weight.contiguous() && !made.contiguous();
      call.result(1, rows ? call.rows(made) : std::move(made));
      mask &= ~int64_t(2);
    }
  }
  return mask;
}

void convolution(const Call& call) {
  if (call.output(0).numel() > 0 && !result_by_library(call)) unfold_and_multiply(call);
}
void convolution_backward(const Call& call) {
  const Tensor grad = call.tensor(0), weight = call.tensor(2);
  const int64_t mask = gradients_by_library(call, call.integer(7));
  if (mask & 3) gradients_by_unfolding(call, mask & 3);
  if (!(mask & 4)) return;
  const int channel = grad.ndim() - spatial_of(weight) - 1;
  const uint64_t all = (uint64_t(1) << grad.ndim()) - 1;
  Tensor made = call.empty({weight.size(0)}, grad.dtype());
  sum_into(call, made, grad, all & ~(uint64_t(1) << channel));
  call.result(2, std::move(made));
}

}  // namespace

const std::vector<Operation>& convolution_operations() {
  static const std::vector<Operation> operations{
      {"conv2d", convolution},
      {"conv2d_backward", convolution_backward},
      {"conv3d", convolution},
      {"conv3d_backward", convolution_backward},
  };
  return operations;
}

}  // namespace taeda::cuda
