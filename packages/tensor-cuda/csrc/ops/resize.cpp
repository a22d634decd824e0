// Images and volumes of another size: from calls to launches, in either layout.
#include "kernels/resize.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "ops/elementwise.h"
#include "ops/layout.h"

namespace taeda::cuda {
namespace {

using loops::Filter;

constexpr int kDimensions = 3;
using All = Resampled[kDimensions];

Filter filter_of(std::string_view mode) {
  constexpr std::string_view names[] = {"nearest", "nearest-exact", "linear", "cubic", "lanczos"};
  return Filter(std::ranges::find(names, mode) - std::begin(names));
}
/// Of the arguments from the mode on: the last dimensions of an input and a result; those before stay as they are.
void resampled(const Call& call, int first, const Tensor& input, const Tensor& result, All& to) {
  const Filter filter = filter_of(call.text(first));
  const std::vector<double> scales = call.reals(first + 3);
  const int rank = input.ndim() - 2;
  for (int d = 0; d < kDimensions; ++d) {
    const int own = d - (kDimensions - rank);
    if (own < 0) to[d] = {Filter::Nearest, false, false, 0, 1, 1};
    else
      to[d] = {filter,
               call.flag(first + 1),
               call.flag(first + 2),
               scales.empty() ? 0 : scales[size_t(own)],
               input.size(2 + own),
               result.size(2 + own)};
  }
}
int64_t most_of(const Resampled& r, bool single) {
  return single ? loops::TAEDA_ISA::most_taps<float>(r) : loops::TAEDA_ISA::most_taps<double>(r);
}
/// What weights of bytes are whole numbers of: as many bits as leave every one of them 16, sign included.
double unit_of(const Resampled& r) {
  std::vector<double> weights(size_t(most_of(r, false)));
  double largest = 0;
  for (int64_t i = 0; i < r.out; ++i) {
    const loops::TAEDA_ISA::TapsOf<double, double> taps(r, i, weights.data());
    for (int64_t k = 0; k < taps.count; ++k) largest = std::max(largest, weights[size_t(k)]);
  }
  int bits = 1;
  while (bits < 22 && int64_t(0.5 + largest * double(int64_t(1) << (bits + 1))) < (1 << 15)) ++bits;
  return double(int64_t(1) << bits);
}
/// Tables in memory of the call.
struct Tables {
  TapTable of[kDimensions];
  double units[kDimensions] = {};
  Tensor memory;
  Tables(const Call& call, const All& by, bool single, bool bytes) {
    const int64_t size = single ? 4 : 8;
    int64_t places[kDimensions], end = 0, results = 0;
    for (int d = 0; d < kDimensions; ++d) {
      of[d].by = by[d], of[d].most = most_of(by[d], single);
      if (bytes && by[d].filter > Filter::NearestExact) units[d] = unit_of(by[d]);
      places[d] = end;
      end += by[d].out * (size * of[d].most + 8);
      results += by[d].out;
    }
    memory = call.empty({end}, TAEDA_UINT8);
    for (int d = 0; d < kDimensions; ++d) {
      of[d].weights = memory.address() + uint64_t(places[d]);
      of[d].first = of[d].weights + uint64_t(size * of[d].most * by[d].out);
      of[d].count = of[d].first + uint64_t(4 * by[d].out);
    }
    if (single) call.launch(write<float>(), results);
    else call.launch(write<double>(), results);
  }

 private:
  template <class C>
  WriteTaps<C> write() const {
    WriteTaps<C> body{};
    std::ranges::copy(of, body.tables);
    std::ranges::copy(units, body.units);
    return body;
  }
};
Resizing resizing(const Tensor& input, const All& by, Layout layout) {
  Resizing r{};
  r.channels = input.size(1), r.channels_last = layout == Layout::ChannelsLast;
  r.strides[0] = input.stride(0), r.strides[1] = input.stride(1);
  for (int d = 0; d < kDimensions; ++d) {
    const int own = d - (kDimensions + 2 - input.ndim());
    r.out[d] = by[d].out, r.strides[2 + d] = own < 0 ? 0 : input.stride(2 + own);
  }
  return r;
}
Layout image_layout_of(const Tensor& t) { return t.ndim() == 4 ? layout_of({&t}) : Layout::Rows; }
bool stays(const Resampled& r) {
  return r.in == r.out && (r.filter == Filter::Nearest || (r.filter == Filter::Linear && !r.antialias && r.scale == 0));
}

/// One dimension after the other, the last first; between them in what kernels compute in, bytes as bytes.
template <class C>
void by_lines(const Call& call, const All& by, const Tables& tables, const Tensor& given, const Tensor& out,
              Layout layout, bool turned) {
  const bool bytes = out.dtype() == TAEDA_UINT8;
  const int between = bytes ? TAEDA_UINT8 : std::is_same_v<C, double> ? TAEDA_FLOAT64 : TAEDA_FLOAT32;
  const auto from = [&](int d) { return turned ? by[d].out : by[d].in; };
  const auto to = [&](int d) { return turned ? by[d].in : by[d].out; };
  const int64_t planes = given.size(0) * (layout == Layout::Rows ? given.size(1) : 1);
  int64_t inner = layout == Layout::Rows ? 1 : given.size(1);
  Tensor current(given.handle());
  int left = 0;
  for (int d = 0; d < kDimensions; ++d) left += !stays(by[d]);
  if (left == 0) return call.copy(out, given);
  for (int d = kDimensions - 1; d >= 0; inner *= to(d), --d) {
    if (stays(by[d])) continue;
    int64_t outer = planes;
    for (int before = 0; before < d; ++before) outer *= from(before);
    const int64_t items = outer * to(d) * inner;
    Tensor made = --left ? call.empty({items}, between) : Tensor(out.handle());
    call.launch(ResizeLines<C>{tables.of[d], inner, current.array(), made.array(), tables.units[d], turned, 0}, items);
    current = std::move(made);
  }
}
template <class C>
void sums(const Call& call, const All& by, const Tensor& input, const Tensor& out, Layout layout) {
  constexpr int64_t kFew = 64;
  const bool bytes = out.dtype() == TAEDA_UINT8;
  const Tables tables(call, by, std::is_same_v<C, float>, bytes);
  int64_t taps = 1;
  for (const TapTable& table : tables.of) taps *= table.most;
  if (bytes || by[kDimensions - 1].antialias || taps > kFew)
    return by_lines<C>(call, by, tables, laid(call, layout, input), out, layout, false);
  Resize<C> body{resizing(input, by, layout), {}, input.array(), out.array()};
  std::ranges::copy(tables.of, body.tables);
  call.launch(body, out.numel());
}

void resample(const Call& call) {
  const Tensor out = call.output(0), input = call.tensor(0);
  if (out.numel() == 0) return;
  All by;
  resampled(call, 2, input, out, by);
  const Layout layout = image_layout_of(out);
  const LaidTarget to(call, layout, out);
  if (by[kDimensions - 1].filter <= Filter::NearestExact) {
    ResizeNearest body{resizing(input, by, layout), {}, input.array(), to.array(), input.item_size(), 0};
    std::ranges::copy(by, body.by);
    call.launch(body, out.numel());
  } else if (out.dtype() == TAEDA_FLOAT64 || out.dtype() == TAEDA_UINT8) {
    sums<double>(call, by, input, to.tensor(), layout);
  } else {
    sums<float>(call, by, input, to.tensor(), layout);
  }
  to.done();
}
void resample_backward(const Call& call) {
  const Tensor out = call.output(0), grad = call.tensor(0);
  if (out.numel() == 0) return;
  All by;
  resampled(call, 2, out, grad, by);
  const Layout layout = image_layout_of(out);
  const LaidTarget to(call, layout, out);
  const Tensor given = laid(call, layout, grad);
  const bool single = out.dtype() != TAEDA_FLOAT64;
  const Tables tables(call, by, single, false);
  if (single) by_lines<float>(call, by, tables, given, to.tensor(), layout, true);
  else by_lines<double>(call, by, tables, given, to.tensor(), layout, true);
  to.done();
}

}  // namespace

const std::vector<Operation>& resize_operations() {
  static const std::vector<Operation> operations{
      {"resample", resample},
      {"resample_backward", resample_backward},
  };
  return operations;
}

}  // namespace taeda::cuda
