// Images sampled at points, and the gradients of both: from calls to launches.
#include "kernels/points.h"

#include "ops/order.h"
#include "ops/read.h"

namespace taeda::cuda {
namespace {

/// Of the arguments from `first` on: image, grid, and how it is sampled.
Points points_of(const Call& call, int first, const Tensor& grid) {
  const Tensor image = call.tensor(first);
  Points p{};
  p.rank = image.ndim() - 2;
  p.how = loops::Sampled(call.integer(first + 2));
  p.outside = loops::Outside(call.integer(first + 3));
  p.align_corners = call.flag(first + 4);
  p.channels = image.size(1), p.points = 1;
  p.image = image.array(), p.grid = grid.array();
  p.step_image = image.stride(0), p.step_channel = image.stride(1);
  for (int d = 0; d < p.rank; ++d) {
    p.size[d] = image.size(-1 - d), p.step[d] = image.stride(-1 - d);
    p.points *= grid.size(1 + d);
  }
  return p;
}
void grid_sampler(const Call& call) {
  const Tensor out = call.output(0), grid = call.rows(call.tensor(1));
  if (out.numel() == 0) return;
  const Target to(call, out);
  const Points p = points_of(call, 0, grid);
  launch_in<SamplePoints>(call, out.dtype(), out.size(0) * groups_of(p.channels) * p.points, p, to.array());
  to.done();
}

template <class C>
void into_image(const Call& call, Points p, int64_t images, const Array& grad, const Tensor& to) {
  int64_t elements = 1;
  for (int d = 0; d < p.rank; ++d) {
    p.step[d] = elements;
    elements *= p.size[d];
  }
  const int64_t all = images * elements, count = images * p.points * p.taps();
  const Tensor keys = call.empty({count}, TAEDA_INT64), weights = call.empty({count * int64_t(sizeof(C))}, TAEDA_UINT8),
               begins = call.empty({all + 1}, TAEDA_INT64);
  call.launch(NameTaps<C>{p, elements, all, keys.address(), weights.address()}, images * p.points);
  const Tensor order = count > 0 ? order_of(call, keys, count, all + 1) : Tensor();
  const Address placed = order ? order.address() : 0;
  call.launch(TapBegins{keys.address(), placed, begins.address(), count}, all + 1);
  call.launch(SampleImageGradient<C>{p.channels, p.points, elements, p.taps(), 0, placed, begins.address(),
                                     weights.address(), grad, to.array()},
              images * groups_of(p.channels) * elements);
}
void grid_sampler_backward(const Call& call) {
  const Tensor grad = call.rows(call.tensor(0)), image = call.tensor(1), grid = call.rows(call.tensor(2));
  const Points p = points_of(call, 1, grid);
  const int64_t wanted = call.integer(6), images = image.size(0);
  const int dtype = grad.dtype();
  if (wanted & 1) {
    Tensor made = call.empty(image.sizes(), dtype);
    if (dtype == TAEDA_FLOAT64) into_image<double>(call, p, images, grad.array(), made);
    else into_image<float>(call, p, images, grad.array(), made);
    call.result(0, std::move(made));
  }
  if (wanted & 2) {
    Tensor made = call.empty(grid.sizes(), dtype);
    launch_in<SampleGridGradient>(call, dtype, images * p.points, p, grad.array(), made.array());
    call.result(1, std::move(made));
  }
}

}  // namespace

const std::vector<Operation>& point_operations() {
  static const std::vector<Operation> operations{
      {"grid_sampler", grid_sampler},
      {"grid_sampler_backward", grid_sampler_backward},
  };
  return operations;
}

}  // namespace taeda::cuda
