// Grids of affine maps, shuffled channels, and poolings whose windows or places are given as tensors.
#include "taeda/ops/image.h"

#include <algorithm>

#include "infer/memory_format.h"
#include "infer/windows.h"
#include "taeda/arithmetic.h"
#include "taeda/checked.h"
#include "taeda/ops.h"
#include "taeda/wrappers.h"

namespace taeda::impl {
namespace {

/// The coordinates of the centres of `size` pixels between -1 and 1: those of corners, moved inwards.
Tensor centres(int64_t size, bool align_corners, const Tensor& like) {
  if (size <= 1) return ops::zeros(Shape{size}, like.dtype(), stated_device(like));
  const Tensor corners = ops::linspace(Scalar(-1.0), Scalar(1.0), size, like.dtype(), stated_device(like));
  return align_corners ? corners : ops::div(ops::mul(corners, Scalar(size - 1)), Scalar(size));
}
/// `rank` dimensions behind batch and channels, or behind channels alone.
void expect_images(const char* op, const char* argument, const Tensor& t, int64_t rank) {
  check(t.dim() == rank + 1 || t.dim() == rank + 2, ErrorKind::Runtime, op, ": argument '", argument, "' has shape ",
        shape_text(t.sizes()), ", expected ", rank + 1, " or ", rank + 2, " dimensions");
  for (int64_t d = t.dim() == rank + 2; d < t.dim(); ++d)
    check(t.size(d) > 0, ErrorKind::Runtime, op, ": argument '", argument, "' has shape ", shape_text(t.sizes()),
          ", expected no empty dimension but the batch");
}
/// The last `rank` sizes replaced.
Shape with_sizes(const Tensor& t, IntSpan sizes) {
  Shape out(t.sizes().first(size_t(t.dim()) - sizes.size()));
  for (const int64_t size : sizes) out.push_back(size);
  return out;
}

}  // namespace

Tensor affine_grid_generator(const Tensor& theta, IntSpan size, bool align_corners) {
  const char* const op = "affine_grid_generator";
  check(size.size() == 4 || size.size() == 5, ErrorKind::Runtime, op, ": argument 'size' is ", shape_text(size),
        ", expected (N, C, H, W) or (N, C, D, H, W)");
  check(is_floating(theta.dtype()), ErrorKind::NotImplemented, op, ": not implemented for dtype ", name(theta.dtype()));
  const auto rank = int64_t(size.size()) - 2;
  check(std::ranges::equal(theta.sizes(), Shape{size[0], rank, rank + 1}), ErrorKind::Runtime, op,
        ": argument 'theta' has shape ", shape_text(theta.sizes()), ", expected (", size[0], ", ", rank, ", ", rank + 1,
        ") for size ", shape_text(size));
  const IntSpan space = size.subspan(2);
  // Rows (x, y, 1), or (x, y, z, 1): one for each pixel.
  std::vector<Tensor> columns;
  for (int64_t d = rank; d-- > 0;) {
    Shape along(space.size(), 1);
    along[size_t(d)] = space[size_t(d)];
    columns.push_back(ops::expand(ops::reshape(centres(space[size_t(d)], align_corners, theta), along), space));
  }
  columns.push_back(ops::ones(space, theta.dtype(), stated_device(theta)));
  const Tensor points = ops::reshape(ops::stack(columns, -1), Shape{1, -1, rank + 1});
  const Tensor mapped = ops::matmul(ops::expand(points, Shape{size[0], -1, -1}), ops::transpose(theta, 1, 2));
  Shape sizes{size[0]};
  for (const int64_t s : space) sizes.push_back(s);
  sizes.push_back(rank);
  return ops::reshape(mapped, sizes);
}

Tensor channel_shuffle(const Tensor& input, int64_t groups) {
  check(input.dim() > 2, ErrorKind::Runtime, "channel_shuffle: argument 'input' has shape ", shape_text(input.sizes()),
        ", expected more than 2 dimensions");
  check(groups > 0, ErrorKind::Runtime, "channel_shuffle: argument 'groups' must be positive, got ", groups);
  const int64_t channels = input.size(1);
  check(channels % groups == 0, ErrorKind::Runtime, "channel_shuffle: argument 'input' has shape ",
        shape_text(input.sizes()), ", expected channels divisible by 'groups' ", groups);
  if (input.numel() == 0) return ops::view(input, input.sizes());
  if (infer::channels_come_last(input)) {
    const Tensor places = ops::movedim(input, Shape{1}, Shape{-1});
    const Tensor split = ops::unflatten(places, -1, Shape{groups, channels / groups});
    const Tensor turned = ops::clone(ops::transpose(split, -1, -2), "contiguous_format");
    return ops::movedim(ops::flatten(turned, -2, -1), Shape{-1}, Shape{1});
  }
  const Tensor split = ops::reshape(input, Shape{input.size(0), groups, channels / groups, -1});
  return ops::reshape(ops::clone(ops::transpose(split, 1, 2), "contiguous_format"), input.sizes());
}

namespace {

/// Flattened behind the channels.
Tensor flat_planes(const Tensor& t, int64_t rank) { return ops::flatten(t, -rank, -1); }
Tensor unpooled(const char* op, const Tensor& self, const Tensor& indices, IntSpan output_size, int64_t rank) {
  check(int64_t(output_size.size()) == rank, ErrorKind::Runtime, op, ": argument 'output_size' has ",
        output_size.size(), " numbers, expected ", rank);
  expect_images(op, "self", self, rank);
  check(self.dtype() != DType::Bool && !is_complex(self.dtype()), ErrorKind::NotImplemented, op,
        ": not implemented for dtype ", name(self.dtype()));
  check(indices.dtype() == DType::Int64, ErrorKind::Runtime, op, ": argument 'indices' has dtype ",
        name(indices.dtype()), ", expected int64");
  check(std::ranges::equal(indices.sizes(), self.sizes()), ErrorKind::Runtime, op, ": argument 'indices' has shape ",
        shape_text(indices.sizes()), ", expected that of 'self', ", shape_text(self.sizes()));
  for (const int64_t size : output_size)
    check(size >= 0, ErrorKind::Runtime, op, ": argument 'output_size' must not be negative, got ",
          shape_text(output_size));
  const Shape sizes = with_sizes(self, output_size);
  const Tensor zeros = ops::zeros(sizes, self.dtype(), stated_device(self));
  return ops::reshape(ops::scatter(flat_planes(zeros, rank), -1, flat_planes(indices, rank), flat_planes(self, rank)),
                      sizes);
}

}  // namespace

Tensor max_unpool2d(const Tensor& self, const Tensor& indices, IntSpan output_size) {
  return unpooled("max_unpool2d", self, indices, output_size, 2);
}
Tensor max_unpool3d(const Tensor& self, const Tensor& indices, IntSpan output_size, IntSpan stride, IntSpan padding) {
  for (const auto& [argument, list] : {std::pair<const char*, IntSpan>{"stride", stride}, {"padding", padding}})
    check(list.size() == 3, ErrorKind::Runtime, "max_unpool3d: argument '", argument, "' has ", list.size(),
          " numbers, expected 3");
  for (const int64_t step : stride)
    check(step > 0, ErrorKind::Runtime, "max_unpool3d: argument 'stride' must be positive, got ", shape_text(stride));
  return unpooled("max_unpool3d", self, indices, output_size, 3);
}

namespace {

/// The first elements of `out` windows of `kernel` elements in `size`, for each channel: (N, C, out), int64.
Tensor window_starts(const Tensor& samples, int64_t size, int64_t out, int64_t kernel) {
  const Tensor draws = ops::unsqueeze(samples, -1);
  const Tensor last = ops::full(draws.sizes(), Scalar(size - kernel), DType::Int64, stated_device(draws));
  if (out <= 1) return last;
  const Tensor step = Tensor(double(size - kernel) / double(out - 1));
  const Tensor places =
      ops::arange(Scalar(int64_t(0)), Scalar(out - 1), Scalar(int64_t(1)), samples.dtype(), stated_device(samples));
  const Tensor starts =
      ops::to_dtype((places + draws) * step, DType::Int64) - ops::to_dtype(draws * step, DType::Int64);
  const Tensor both[] = {starts, last};
  return ops::cat(both, -1);
}

/// Windows at the places that `samples` choose; those of a plane are (N, C, elements of the window, positions).
template <size_t N>
std::tuple<Tensor, Tensor> fractional(const char* op, const Tensor& input, IntSpan kernel_size, IntSpan output_size,
                                      const Tensor& samples) {
  constexpr auto rank = int64_t(N);
  expect_images(op, "input", input, rank);
  check(is_floating(input.dtype()), ErrorKind::NotImplemented, op, ": not implemented for dtype ", name(input.dtype()));
  const auto kernel = infer::several<N>(op, "kernel_size", kernel_size, 1),
             out = infer::several<N>(op, "output_size", output_size, 1);
  const bool single = input.dim() == rank + 1;
  const Tensor batch = single ? ops::unsqueeze(input, 0) : input;
  const int64_t n = batch.size(0), c = batch.size(1);
  check(samples.dtype() == input.dtype(), ErrorKind::Runtime, op, ": argument 'random_samples' has dtype ",
        name(samples.dtype()), ", expected ", name(input.dtype()), ", the dtype of 'input'");
  check(samples.dim() == 3 && samples.size(0) >= n && samples.size(1) == c && samples.size(2) == rank,
        ErrorKind::Runtime, op, ": argument 'random_samples' has shape ", shape_text(samples.sizes()), ", expected (",
        n, " or more, ", c, ", ", rank, ")");
  const Tensor drawn = ops::narrow(samples, 0, 0, n);
  Tensor at;  // (N, C, the window, the positions), dimension by dimension
  for (size_t d = 0; d < N; ++d) {
    const int64_t size = batch.size(int64_t(d) + 2);
    check(out[d] + kernel[d] - 1 <= size, ErrorKind::Runtime, op, ": argument 'kernel_size' ", shape_text(kernel),
          " and output_size ", shape_text(out), " are too large for 'input' of shape ", shape_text(input.sizes()));
    // Along images the first sample is for the width.
    const int64_t sample = N == 2 ? 1 - int64_t(d) : int64_t(d);
    const Tensor starts = window_starts(ops::select(drawn, -1, sample), size, out[d], kernel[d]);
    Shape of_starts(2 * N + 2, 1), of_window(2 * N + 2, 1);
    of_starts[0] = n, of_starts[1] = c, of_starts[2 + N + d] = out[d], of_window[2 + d] = kernel[d];
    const Tensor inside =
        ops::arange(Scalar(int64_t(0)), Scalar(kernel[d]), Scalar(int64_t(1)), DType::Int64, stated_device(input));
    const Tensor own = ops::reshape(starts, of_starts) + ops::reshape(inside, of_window);
    at = at.defined() ? at * Tensor(size) + own : own;
  }
  int64_t window = 1, positions = 1;
  for (size_t d = 0; d < N; ++d) window *= kernel[d], positions *= out[d];
  const Tensor places = ops::reshape(at, Shape{n, c, window, positions});
  const Tensor elements =
      ops::reshape(ops::gather(flat_planes(batch, rank), 2, ops::reshape(places, Shape{n, c, window * positions})),
                   Shape{n, c, window, positions});
  const auto [values, chosen] = ops::max_dim(elements, 2, false);
  const Tensor indices = ops::squeeze_dims(ops::gather(places, 2, ops::unsqueeze(chosen, 2)), Shape{2});
  const Shape sizes = with_sizes(input, out);
  return {ops::reshape(values, sizes), ops::reshape(indices, sizes)};
}

}  // namespace

std::tuple<Tensor, Tensor> fractional_max_pool2d(const Tensor& input, IntSpan kernel_size, IntSpan output_size,
                                                 const Tensor& random_samples) {
  return fractional<2>("fractional_max_pool2d", input, kernel_size, output_size, random_samples);
}
std::tuple<Tensor, Tensor> fractional_max_pool3d(const Tensor& input, IntSpan kernel_size, IntSpan output_size,
                                                 const Tensor& random_samples) {
  return fractional<3>("fractional_max_pool3d", input, kernel_size, output_size, random_samples);
}

Tensor grid_sampler_2d(const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode,
                       bool align_corners) {
  check(input.dim() == 4, ErrorKind::Runtime, "grid_sampler_2d: argument 'input' has shape ", shape_text(input.sizes()),
        ", expected 4 dimensions");
  return ops::grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners);
}
Tensor grid_sampler_3d(const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode,
                       bool align_corners) {
  check(input.dim() == 5, ErrorKind::Runtime, "grid_sampler_3d: argument 'input' has shape ", shape_text(input.sizes()),
        ", expected 5 dimensions");
  return ops::grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners);
}

}  // namespace taeda::impl
