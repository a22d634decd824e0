// Pooling: from calls to launches, in either layout.
#include "kernels/pool.h"

#include <algorithm>

#include "ops/elementwise.h"
#include "ops/layout.h"
#include "ops/windows.h"

namespace taeda::cuda {
namespace {

/// Windows of given sizes, whose arguments begin at `first`: kernel, stride, padding and, of maxima, dilation.
Pool pool(const Call& call, const Tensor& image, const Tensor& result, int first, bool dilated) {
  Pool p{};
  const auto kernel = call.integers(first), padding = call.integers(first + 2);
  const auto stride = call.integers(first + 1).empty() ? kernel : call.integers(first + 1);
  const auto dilation = dilated ? call.integers(first + 3) : std::vector<int64_t>{1};
  for (int d = 0; d < 2; ++d)
    p.windows[d] = {int32_t(image.size(d - 2)), int32_t(result.size(d - 2)), int32_t(part(kernel, d)),
                    int32_t(part(stride, d)),   int32_t(part(padding, d)),   int32_t(part(dilation, d))};
  return p;
}
Pool adaptive(const Tensor& image, const Tensor& result) {
  Pool p{};
  for (int d = 0; d < 2; ++d) p.windows[d] = {int32_t(image.size(d - 2)), int32_t(result.size(d - 2)), 0, 1, 0, 1};
  return p;
}
Pool means(const Call& call, const Tensor& image, const Tensor& result, int first) {
  Pool p = pool(call, image, result, first, false);
  p.with_padding = call.flag(first + 4);
  p.divisor = call.given(first + 5) ? call.integer(first + 5) : 0;
  return p;
}
/// In which the kernels compute, where not in the image's own: small integers.
int computed_in(int dtype) {
  const bool narrow = is_whole_type(dtype) && dtype != TAEDA_INT32 && dtype != TAEDA_UINT8 && dtype != TAEDA_UINT64;
  return narrow ? int(TAEDA_INT64) : dtype;
}
/// Tells the kernel of the layout; gives back how many channels a thread takes.
int64_t lay(Pool& p, Layout layout, const Tensor& image, const Tensor& result) {
  constexpr int64_t kPack = 4;
  const bool last = layout == Layout::ChannelsLast;
  p.channels = last ? image.size(1) : 1;
  p.image = image.array();
  p.result = result.array();
  p.packed = last && p.channels % kPack == 0 && image.address() % uint64_t(kPack * image.item_size()) == 0 &&
             result.address() % uint64_t(kPack * result.item_size()) == 0;
  return p.packed ? kPack : 1;
}
Layout pool_layout(std::initializer_list<const Tensor*> tensors) {
  return (*tensors.begin())->ndim() == 4 ? layout_of(tensors) : Layout::Rows;
}
/// Fills the result from the image.
template <template <class> class Body>
void forward(const Call& call, Pool p) {
  const Tensor out = call.output(0), given = call.tensor(0);
  if (out.numel() == 0) return;
  const Layout layout = pool_layout({&out, &given});
  const int dtype = computed_in(out.dtype());
  const Tensor image = laid(call, layout, given, dtype);
  const Tensor made = dtype == out.dtype() && lies(out, layout) ? Tensor() : empty_in(call, layout, out.sizes(), dtype);
  const Tensor& to = made ? made : out;
  const Tensor places = call.output(1);
  std::optional<LaidTarget> to_places;
  if constexpr (requires { Body<int64_t>::kHasPlaces; }) {
    to_places.emplace(call, layout, places);
    p.places = to_places->array();
  }
  int64_t taken = lay(p, layout, image, to);
  if (p.places.data % uint64_t(taken * (places ? places.item_size() : 1)) != 0) p.packed = 0, taken = 1;
  const int64_t items = out.numel() / taken;
  if (dtype == TAEDA_FLOAT64) {
    call.launch(Body<double>{p}, items);
  } else if (!is_whole_type(dtype)) {
    call.launch(Body<float>{p}, items);
  } else if (dtype != TAEDA_UINT64) {
    call.launch(Body<int64_t>{p}, items);
  } else if constexpr (requires { Body<uint64_t>::kHasPlaces; }) {  // the only whole numbers with means are int64
    call.launch(Body<uint64_t>{p}, items);
  }
  if (made) call.copy(out, made);
  if (to_places) to_places->done();
}
/// Fills the image's gradient from the result's.
template <template <class> class Body>
void backward(const Call& call, Pool p, const Tensor* given_places = nullptr) {
  const Tensor out = call.output(0), given = call.tensor(0);
  if (out.numel() == 0) return;
  const Layout layout = pool_layout({&out, &given});
  const Tensor grad = laid(call, layout, given, out.dtype());
  const Tensor places = given_places ? laid(call, layout, *given_places) : Tensor();
  const LaidTarget to(call, layout, out);
  if (places) p.places = places.array();
  int64_t taken = lay(p, layout, to.tensor(), grad);
  if (places && places.address() % uint64_t(taken * places.item_size()) != 0) p.packed = 0, taken = 1;
  const int64_t items = out.numel() / taken;
  if (out.dtype() == TAEDA_FLOAT64) {
    call.launch(Body<double>{p}, items);
  } else if constexpr (requires { typename Body<float>::Cells; }) {
    using Cells = typename Body<float>::Cells;
    const auto fits = [](const Windows& w) { return w.kernel > 0 && w.stride <= Cells::kMost; };
    if (fits(p.windows[0]) && fits(p.windows[1]) && p.windows[0].stride * p.windows[1].stride > 1)
      call.launch(Cells{p}, Cells{p}.items(out.numel(), int(taken)));
    else call.launch(Body<float>{p}, items);
  } else {
    call.launch(Body<float>{p}, items);
  }
  to.done();
}

void avg_pool2d(const Call& call) { forward<MeanPool>(call, means(call, call.tensor(0), call.output(0), 1)); }
void avg_pool2d_backward(const Call& call) {
  backward<MeanPoolBackward>(call, means(call, call.tensor(1), call.tensor(0), 2));
}
void adaptive_avg_pool2d(const Call& call) {
  const Tensor out = call.output(0), image = call.tensor(0);
  const int h = image.ndim() - 2;
  // One window over everything is a mean over both dimensions, which many threads share.
  if (out.size(-1) == 1 && out.size(-2) == 1 && image.numel() > 0) return mean_into(call, out, image, uint64_t(3) << h);
  forward<MeanPool>(call, adaptive(image, out));
}
void adaptive_avg_pool2d_backward(const Call& call) {
  backward<MeanPoolBackward>(call, adaptive(call.tensor(1), call.tensor(0)));
}
template <template <class> class Body>
void max_pool2d(const Call& call) {
  forward<Body>(call, pool(call, call.tensor(0), call.output(0), 1, true));
}
template <template <class> class Body>
void max_pool2d_backward(const Call& call) {
  const Tensor places = call.tensor(7);
  backward<Body>(call, pool(call, call.tensor(1), call.tensor(0), 2, true), &places);
}
void adaptive_max_pool2d(const Call& call) { forward<MaxPoolPlaces>(call, adaptive(call.tensor(0), call.output(0))); }
void adaptive_max_pool2d_backward(const Call& call) {
  const Tensor indices = call.tensor(2);
  backward<MaxPoolPlacesBackward>(call, adaptive(call.tensor(1), call.tensor(0)), &indices);
}

}  // namespace

const std::vector<Operation>& pool_operations() {
  static const std::vector<Operation> operations{
      {"adaptive_avg_pool2d", adaptive_avg_pool2d},
      {"adaptive_avg_pool2d_backward", adaptive_avg_pool2d_backward},
      {"adaptive_max_pool2d", adaptive_max_pool2d},
      {"adaptive_max_pool2d_backward", adaptive_max_pool2d_backward},
      {"avg_pool2d", avg_pool2d},
      {"avg_pool2d_backward", avg_pool2d_backward},
      {"max_pool2d_backward", max_pool2d_backward<MaxPoolOffsetsBackward>},
      {"max_pool2d_with_indices", max_pool2d<MaxPoolPlaces>},
      {"max_pool2d_with_indices_backward", max_pool2d_backward<MaxPoolPlacesBackward>},
      {"max_pool2d_with_offsets", max_pool2d<MaxPoolOffsets>},
  };
  return operations;
}

}  // namespace taeda::cuda
