// Epilogues by their definition, element by element.
#include "driver/simulated_epilogue.h"

#include <cmath>

#include "kernels/base.h"
#include "taeda/abi.h"

namespace taeda::cuda {
namespace {

using enum Epilogue::Activation;
using Role = Epilogue::Vector;

constexpr uint64_t kKeptAlignment = 16;

double gelu(double x) { return 0.5 * x * (1 + std::tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x))); }
double gelu_slope(double x) {
  const double t = std::tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.79788456080286535588 * (1 + 3 * 0.044715 * x * x);
}
/// The byte that holds an element's bit, and the bit.
std::pair<uint8_t*, uint8_t> bit_at(const Epilogue& e, int64_t row, int64_t column) {
  const int64_t place = row + column * e.kept_ld;
  return {&at<uint8_t>(e.kept)[place / 8], uint8_t(1 << place % 8)};
}

}  // namespace

bool finishes_on_host(const BlasProduct& p) {
  const Epilogue& e = p.epilogue;
  if (p.dtype == TAEDA_COMPLEX64 || p.dtype == TAEDA_COMPLEX128) return false;
  if (p.dtype == TAEDA_FLOAT64 && (e.activation == Gelu || e.kept || e.role > Role::Bias)) return false;
  if (p.batch > 1 && (e.kept || e.role > Role::Bias)) return false;
  if (e.role == Role::SumsOfA || e.role == Role::SumsOfB) return e.activation == None;
  if (e.activation == None) return !e.backward && !e.kept && e.role == Role::Bias;
  return e.backward ? e.kept && (e.role == Role::None || e.role == Role::Sums) : e.role <= Role::Bias;
}
bool is_valid_epilogue(const BlasProduct& p) {
  const Epilogue& e = p.epilogue;
  if (!e) return true;
  if (!finishes_on_host(p) || (e.role != Role::None) != (e.vector != 0)) return false;
  const uint64_t item = p.result == TAEDA_FLOAT64 ? 8 : p.result == TAEDA_FLOAT32 ? 4 : 2;
  if (e.vector % item != 0 || e.kept % kKeptAlignment != 0) return false;
  return !e.kept || (e.kept_ld >= p.m && e.kept_ld % (e.activation == Relu ? 128 : 8) == 0);
}
double finished(const BlasProduct& p, int64_t row, int64_t column, double value) {
  const Epilogue& e = p.epilogue;
  if (e.role == Role::Bias) value += load<double>(Array{e.vector, p.result, 0}, row);
  if (e.activation == Relu && e.kept) {
    const auto [byte, bit] = bit_at(e, row, column);
    if (e.backward) return *byte & bit ? value : 0;
    *byte = uint8_t(value > 0 ? *byte | bit : *byte & ~bit);
  }
  if (e.activation == Gelu && e.kept) {
    const Array kept{e.kept, p.result, 0};
    const int64_t place = row + column * e.kept_ld;
    if (e.backward) return value * gelu_slope(load<double>(kept, place));
    store<double>(kept, place, value);
  }
  // A NaN stays one.
  return e.activation == Relu ? (value < 0 ? 0 : value) : e.activation == Gelu ? gelu(value) : value;
}
void sum_on_host(const BlasProduct& p) {
  const Epilogue& e = p.epilogue;
  if (e.role <= Role::Bias) return;
  const bool of_b = e.role == Role::SumsOfB, of_c = e.role == Role::Sums;
  const BlasProduct::Matrix& matrix = of_b ? p.b : of_c ? p.c : p.a;
  const int64_t count = of_b ? p.n : p.m, length = of_c ? p.n : p.k;
  // Along op(b)'s columns, along rows of the others.
  const bool beside = matrix.turned != of_b;
  for (int64_t i = 0; i < count; ++i) {
    double sum = 0;
    for (int64_t l = 0; l < length; ++l)
      sum += load<double>(Array{matrix.data, of_c ? p.result : p.dtype, 0},
                          beside ? l + i * matrix.ld : i + l * matrix.ld);
    store<double>(Array{e.vector, p.result, 0}, i, sum);
  }
}

}  // namespace taeda::cuda
