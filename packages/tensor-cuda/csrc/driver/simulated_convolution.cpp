// Convolutions by their definition, product by product.
#include "driver/simulated_convolution.h"

#include <vector>

#include "kernels/base.h"
#include "taeda/abi.h"

namespace taeda::cuda {
namespace {

using Place = Convolution::Places;

int64_t offset(const Convolution::Operand& operand, const Place& place, int dims) {
  int64_t found = 0;
  for (int d = 0; d < dims; ++d) found += place[size_t(d)] * operand.strides[size_t(d)];
  return found;
}
int64_t count(const Convolution::Operand& operand, int dims) {
  int64_t found = 1;
  for (int d = 0; d < dims; ++d) found *= operand.sizes[size_t(d)];
  return found;
}
Place place_of(int64_t item, const Convolution::Operand& operand, int dims) {
  Place place{};
  for (int d = dims; d-- > 0; item /= operand.sizes[size_t(d)]) place[size_t(d)] = item % operand.sizes[size_t(d)];
  return place;
}
int64_t reach(const Convolution& c, int d) {
  const size_t at = size_t(d);
  return (c.x.sizes[2 + at] + 2 * c.padding[at] - c.dilation[at] * (c.w.sizes[2 + at] - 1) - 1) / c.stride[at] + 1;
}

}  // namespace

bool convolves_on_host(const Convolution& c) { return c.dtype >= TAEDA_FLOAT16 && c.dtype <= TAEDA_FLOAT64; }
bool is_valid(const Convolution& c) {
  if (c.spatial < 2 || c.spatial > 3 || c.w.sizes[1] < 1 || c.x.sizes[1] % c.w.sizes[1] != 0) return false;
  if (c.y.sizes[0] != c.x.sizes[0] || c.y.sizes[1] != c.w.sizes[0] || c.w.sizes[0] % c.groups() != 0) return false;
  for (int d = 0; d < c.spatial; ++d)
    if (c.stride[size_t(d)] < 1 || c.dilation[size_t(d)] < 1 || c.padding[size_t(d)] < 0 ||
        c.y.sizes[2 + size_t(d)] != reach(c, d))
      return false;
  for (const Convolution::Operand* operand : {&c.x, &c.w, &c.y})
    for (int d = 0; d < c.spatial + 2; ++d)
      if (operand->sizes[size_t(d)] < 1 || operand->strides[size_t(d)] < 1) return false;
  for (const Convolution::Operand* operand : {&c.x, &c.w, &c.y})
    if (operand->alignment < 1 || operand->data % uint64_t(operand->alignment) != 0) return false;
  return true;
}
void convolve_on_host(const Convolution& c, uint64_t shift) {
  simulated_shift = shift;
  const int dims = c.spatial + 2;
  const Convolution::Operand& made = c.kind == Convolved::Result ? c.y : c.kind == Convolved::InputGradient ? c.x : c.w;
  const auto array = [&](const Convolution::Operand& operand) { return Array{operand.data, c.dtype, 0}; };
  std::vector<double> sums(size_t(count(made, dims)));
  const int64_t filters = c.w.sizes[0] / c.groups(), window = count(c.w, dims) / c.w.sizes[0];
  for (int64_t result = 0; result < count(c.y, dims); ++result) {
    const Place y = place_of(result, c.y, dims);
    for (int64_t part = 0; part < window; ++part) {
      Place w = place_of(y[1] * window + part, c.w, dims), x{y[0], y[1] / filters * c.w.sizes[1] + w[1]};
      bool inside = true;
      for (int d = 0; d < c.spatial; ++d) {
        const size_t at = size_t(d);
        x[2 + at] = y[2 + at] * c.stride[at] - c.padding[at] + w[2 + at] * c.dilation[at];
        inside = inside && x[2 + at] >= 0 && x[2 + at] < c.x.sizes[2 + at];
      }
      if (!inside) continue;
      const auto number = [&](const Convolution::Operand& operand, const Place& place) {
        return load<double>(array(operand), offset(operand, place, dims));
      };
      const auto sum = [&](const Place& place) -> double& {
        int64_t at = 0;
        for (int d = 0; d < dims; ++d) at = at * made.sizes[size_t(d)] + place[size_t(d)];
        return sums[size_t(at)];
      };
      switch (c.kind) {
        case Convolved::Result: sum(y) += number(c.x, x) * number(c.w, w); break;
        case Convolved::InputGradient: sum(x) += number(c.y, y) * number(c.w, w); break;
        case Convolved::WeightGradient: sum(w) += number(c.y, y) * number(c.x, x); break;
      }
    }
  }
  for (int64_t item = 0; item < count(made, dims); ++item)
    store<double>(array(made), offset(made, place_of(item, made, dims), dims), sums[size_t(item)]);
  simulated_shift = 0;
}

}  // namespace taeda::cuda
