// Windows of signals, computed in float64 whatever they are stored in.
#include "taeda/ops/window.h"

#include <cmath>
#include <numbers>

#include "taeda/arithmetic.h"
#include "taeda/checked.h"
#include "taeda/ops/arith.h"
#include "taeda/ops/cast.h"
#include "taeda/ops/creation.h"
#include "taeda/ops/shape.h"
#include "taeda/ops/unary.h"

namespace taeda::impl {
namespace {

struct Window {
  const char* op;
  int64_t length;
  bool periodic;
  std::optional<DType> dtype;
  std::optional<Device> device;
  bool requires_grad;

  /// shape(k, n) of the places k = 0, ..., n, of which a periodic window leaves out the last.
  template <class Shape_>
  Tensor made(const Shape_& shape) const {
    const DType type = dtype.value_or(default_dtype());
    check(is_floating(type), ErrorKind::Runtime, op, ": argument 'dtype' is ", name(type),
          ", expected a floating-point one");
    check(length >= 0, ErrorKind::Runtime, op, ": argument 'window_length' must not be negative, got ", length);
    const Tensor out = ops::empty(Shape{length}, type, device, requires_grad), values = ops::detach(out);
    const double n = double(periodic ? length : length - 1);
    if (length == 1) ops::fill_(values, Tensor(1));
    else if (length > 1) ops::copy_(values, shape(ops::arange(0, Scalar(length), 1, DType::Float64, device), n));
    return out;
  }
};
Tensor wave(const Tensor& k, double n, double turns) { return ops::cos(k * Tensor(2 * turns * std::numbers::pi / n)); }
/// From -1 at k = 0 to 1 at k = n.
Tensor centred(const Tensor& k, double n) { return k * Tensor(2 / n) - Tensor(1.0); }

}  // namespace

Tensor bartlett_window(int64_t window_length, bool periodic, std::optional<DType> dtype, std::optional<Device> device,
                       bool requires_grad) {
  return Window{"bartlett_window", window_length, periodic, dtype, device, requires_grad}.made(
      [](const Tensor& k, double n) { return Tensor(1.0) - ops::abs(centred(k, n)); });
}
Tensor blackman_window(int64_t window_length, bool periodic, std::optional<DType> dtype, std::optional<Device> device,
                       bool requires_grad) {
  return Window{"blackman_window", window_length, periodic, dtype, device, requires_grad}.made(
      [](const Tensor& k, double n) {
        return wave(k, n, 2) * Tensor(0.08) - wave(k, n, 1) * Tensor(0.5) + Tensor(0.42);
      });
}
Tensor hamming_window(int64_t window_length, bool periodic, double alpha, double beta, std::optional<DType> dtype,
                      std::optional<Device> device, bool requires_grad) {
  return Window{"hamming_window", window_length, periodic, dtype, device, requires_grad}.made(
      [=](const Tensor& k, double n) { return wave(k, n, 1) * Tensor(-beta) + Tensor(alpha); });
}
Tensor hann_window(int64_t window_length, bool periodic, std::optional<DType> dtype, std::optional<Device> device,
                   bool requires_grad) {
  return Window{"hann_window", window_length, periodic, dtype, device, requires_grad}.made(
      [](const Tensor& k, double n) { return wave(k, n, 1) * Tensor(-0.5) + Tensor(0.5); });
}
Tensor kaiser_window(int64_t window_length, bool periodic, double beta, std::optional<DType> dtype,
                     std::optional<Device> device, bool requires_grad) {
  return Window{"kaiser_window", window_length, periodic, dtype, device, requires_grad}.made(
      [=](const Tensor& k, double n) {
        const Tensor x = centred(k, n), root = ops::sqrt(ops::clamp(Tensor(1.0) - x * x, Scalar(0.0), std::nullopt));
        return ops::i0(root * Tensor(beta)) / ops::i0(Tensor(beta));
      });
}

}  // namespace taeda::impl
