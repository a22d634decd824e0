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

  /// shape(x) of angles x = turn k / n for k = 0, ..., n, of which a periodic window leaves out the last; it may write
  /// to them. The second half is the first one backwards.
  template <class Shape_>
  Tensor made(double turn, const Shape_& shape) const {
    const DType type = dtype.value_or(default_dtype());
    check(is_floating(type), ErrorKind::Runtime, op, ": argument 'dtype' is ", name(type),
          ", expected a floating-point one");
    check(length >= 0, ErrorKind::Runtime, op, ": argument 'window_length' must not be negative, got ", length);
    const Tensor out = ops::empty(Shape{length}, type, device, requires_grad), values = ops::detach(out);
    const double n = double(periodic ? length : length - 1);
    if (length == 1) ops::fill_(values, Tensor(1));
    if (length < 2) return out;
    const int64_t half = int64_t(n) / 2 + 1, rest = length - half;
    const Scalar step = turn / n, end = turn / n * (double(half) - 0.5);
    ops::copy_(ops::narrow(values, 0, 0, half), shape(ops::arange(0, end, step, DType::Float64, device)));
    if (rest > 0)
      ops::copy_(ops::narrow(values, 0, half, rest),
                 ops::flip(ops::narrow(values, 0, int64_t(periodic), rest), Shape{0}));
    return out;
  }
};
constexpr double kTurn = 2 * std::numbers::pi;
/// a + b cos(x), in the place of x.
Tensor raised(const Tensor& x, double a, double b) {
  ops::cos_(x);
  ops::mul_(x, Tensor(b));
  ops::add_(x, Tensor(a));
  return x;
}

}  // namespace

Tensor bartlett_window(int64_t window_length, bool periodic, std::optional<DType> dtype, std::optional<Device> device,
                       bool requires_grad) {
  return Window{"bartlett_window", window_length, periodic, dtype, device, requires_grad}.made(
      2, [](const Tensor& x) { return x; });
}
Tensor blackman_window(int64_t window_length, bool periodic, std::optional<DType> dtype, std::optional<Device> device,
                       bool requires_grad) {
  return Window{"blackman_window", window_length, periodic, dtype, device, requires_grad}.made(
      kTurn, [](const Tensor& x) {
        ops::cos_(x);  // cos(2 x) is 2 cos(x)**2 - 1
        return (x * Tensor(0.16) - Tensor(0.5)) * x + Tensor(0.34);
      });
}
Tensor hamming_window(int64_t window_length, bool periodic, double alpha, double beta, std::optional<DType> dtype,
                      std::optional<Device> device, bool requires_grad) {
  return Window{"hamming_window", window_length, periodic, dtype, device, requires_grad}.made(
      kTurn, [=](const Tensor& x) { return raised(x, alpha, -beta); });
}
Tensor hann_window(int64_t window_length, bool periodic, std::optional<DType> dtype, std::optional<Device> device,
                   bool requires_grad) {
  return Window{"hann_window", window_length, periodic, dtype, device, requires_grad}.made(
      kTurn, [](const Tensor& x) { return raised(x, 0.5, -0.5); });
}
Tensor kaiser_window(int64_t window_length, bool periodic, double beta, std::optional<DType> dtype,
                     std::optional<Device> device, bool requires_grad) {
  return Window{"kaiser_window", window_length, periodic, dtype, device, requires_grad}.made(2, [=](const Tensor& k) {
    const Tensor x = k - Tensor(1.0), root = ops::sqrt(ops::clamp(Tensor(1.0) - x * x, Scalar(0.0), std::nullopt));
    return ops::i0(root * Tensor(beta)) / ops::i0(Tensor(beta));
  });
}

}  // namespace taeda::impl
