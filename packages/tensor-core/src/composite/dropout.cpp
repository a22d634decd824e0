// Dropout of whole channels, and the one that keeps mean and variance.
#include <cmath>

#include "taeda/arithmetic.h"
#include "taeda/half.h"
#include "taeda/ops/activation.h"
#include "taeda/ops/cast.h"
#include "taeda/ops/creation.h"
#include "taeda/ops/random.h"
#include "taeda/ops/shape.h"
#include "taeda/wrappers.h"

namespace taeda::impl {
namespace {

/// Whether anything is dropped at all.
bool drops(const char* op, const Tensor& input, double p, bool train) {
  check(p >= 0 && p <= 1, ErrorKind::Value, op, ": argument 'p' must lie between 0 and 1, got ", p);
  if (!train || p == 0) return false;
  check(is_differentiable(input.dtype()), ErrorKind::NotImplemented, op, ": not implemented for dtype ",
        name(input.dtype()));
  return true;
}
/// (N, C, 1, ...): one number for each channel.
Shape by_feature(const char* op, const Tensor& input) {
  check(input.dim() >= 2, ErrorKind::Runtime, op, ": argument 'input' has shape ", shape_text(input.sizes()),
        ", expected (N, C, ...)");
  Shape sizes(size_t(input.dim()), 1);
  sizes[0] = input.size(0);
  sizes[1] = input.size(1);
  return sizes;
}
/// Fills `mask` by 1 with probability 1 - p, else by 0: the draws of `dropout`.
Tensor drawn(const Tensor& mask, double p) {
  ops::bernoulli_(mask, 1 - p, Generator());
  return mask;
}
Tensor drawn_by_feature(const char* op, const Tensor& input, double p) {
  return drawn(taeda::empty(by_feature(op, input), input.dtype(), stated_device(input)), p);
}
/// `mask_of` draws for the input.
template <class Mask>
Tensor keeping_moments(const Tensor& given, double p, Mask mask_of) {
  if (p == 1) return given * Tensor(0);
  constexpr double kLowest = -1.7580993408473766;  // what SELU approaches at minus infinity
  const Tensor input = in_float32(given), mask = mask_of(input);
  const double a = 1 / std::sqrt((kLowest * kLowest * p + 1) * (1 - p)), dropped = kLowest * a;
  const Tensor shift = (Tensor(1) - mask) * Tensor(dropped) - Tensor(dropped * p);
  const Tensor result = input * (mask * Tensor(a)) + shift;
  return is_half(given) ? from_float32(result, given.dtype()) : result;
}

}  // namespace

Tensor feature_dropout(const Tensor& input, double p, bool train) {
  if (!drops("feature_dropout", input, p, train)) return input;
  const Tensor mask = drawn_by_feature("feature_dropout", input, p);
  return input * (p == 1 ? mask : mask / Tensor(1 - p));
}
Tensor alpha_dropout(const Tensor& input, double p, bool train) {
  if (!drops("alpha_dropout", input, p, train)) return input;
  return keeping_moments(input, p, [p](const Tensor& t) { return drawn(ops::empty_like(t), p); });
}
Tensor feature_alpha_dropout(const Tensor& input, double p, bool train) {
  if (!drops("feature_alpha_dropout", input, p, train)) return input;
  return keeping_moments(input, p, [p](const Tensor& t) { return drawn_by_feature("feature_alpha_dropout", t, p); });
}

}  // namespace taeda::impl
