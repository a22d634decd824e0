// Random tensors made by filling new ones.
#include "taeda/ops/random.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "composite/host.h"
#include "composite/made.h"
#include "infer/random.h"
#include "taeda/interrupt.h"
#include "taeda/ops/arith.h"
#include "taeda/ops/cast.h"
#include "taeda/ops/compare.h"
#include "taeda/ops/creation.h"
#include "taeda/ops/index.h"
#include "taeda/ops/reduce.h"
#include "taeda/ops/shape.h"
#include "taeda/ops/unary.h"
#include "taeda/wrappers.h"

namespace taeda::impl {
namespace {

using OptionalDType = std::optional<DType>;
using OptionalDevice = std::optional<Device>;

Tensor fresh(IntSpan size, OptionalDType dtype, OptionalDevice device) {
  return taeda::empty(size, dtype.value_or(default_dtype()), device.value_or(Device{}));
}

/// One word of a twister for each element.
void draw_words_into(const Tensor& self, const Generator& generator) {
  std::array<uint32_t, 1024> words;
  int64_t* const out = self.data<int64_t>();
  for (int64_t i = 0; i < self.numel(); i += int64_t(words.size())) {
    const int64_t n = std::min(int64_t(words.size()), self.numel() - i);
    draw_words(generator, words.data(), n);
    std::copy_n(words.begin(), n, out + i);
  }
}

}  // namespace

Tensor rand(IntSpan size, const Generator& generator, OptionalDType dtype, OptionalDevice device, bool requires_grad) {
  const Tensor out = fresh(size, dtype, device);
  ops::uniform_(out, 0, 1, generator);
  return as_made(out, requires_grad);
}
Tensor randn(IntSpan size, const Generator& generator, OptionalDType dtype, OptionalDevice device, bool requires_grad) {
  const Tensor out = fresh(size, dtype, device);
  ops::normal_(out, 0, 1, generator);
  return as_made(out, requires_grad);
}
Tensor randint_low(int64_t low, int64_t high, IntSpan size, const Generator& generator, OptionalDType dtype,
                   OptionalDevice device, bool requires_grad) {
  const DType type = dtype.value_or(DType::Int64);
  infer::random_bounds("randint", type, low, high);
  const Tensor out = fresh(size, type, device);
  ops::random_(out, low, high, generator);
  return as_made(out, requires_grad);
}
Tensor randint(int64_t high, IntSpan size, const Generator& generator, OptionalDType dtype, OptionalDevice device,
               bool requires_grad) {
  return randint_low(0, high, size, generator, dtype, device, requires_grad);
}
Tensor rand_like(const Tensor& self, OptionalDType dtype, OptionalDevice device, bool requires_grad,
                 const Generator& generator) {
  const Tensor out = ops::empty_like(self, dtype, device);
  ops::uniform_(out, 0, 1, generator);
  return as_made(out, requires_grad);
}
Tensor randn_like(const Tensor& self, OptionalDType dtype, OptionalDevice device, bool requires_grad,
                  const Generator& generator) {
  const Tensor out = ops::empty_like(self, dtype, device);
  ops::normal_(out, 0, 1, generator);
  return as_made(out, requires_grad);
}
Tensor randint_like_low(const Tensor& self, int64_t low, int64_t high, OptionalDType dtype, OptionalDevice device,
                        bool requires_grad, const Generator& generator) {
  infer::random_bounds("randint_like", dtype.value_or(self.dtype()), low, high);
  const Tensor out = ops::empty_like(self, dtype, device);
  ops::random_(out, low, high, generator);
  return as_made(out, requires_grad);
}
Tensor randint_like(const Tensor& self, int64_t high, OptionalDType dtype, OptionalDevice device, bool requires_grad,
                    const Generator& generator) {
  return randint_like_low(self, 0, high, dtype, device, requires_grad, generator);
}

void random__from(const Tensor& self, int64_t low, std::optional<int64_t> high, const Generator& generator) {
  if (high) infer::random_bounds("random_", self.dtype(), low, high);
  else infer::random_start("random_", self.dtype(), low);
  ops::random_(self, low, high ? *high : int64_t(infer::natural_count(self.dtype())), generator);
}

Tensor randperm(int64_t n, const Generator& generator, OptionalDType dtype, OptionalDevice device, bool requires_grad) {
  check(n >= 0, ErrorKind::Runtime, "randperm: argument 'n' must not be negative, got ", n);
  const DType type = dtype.value_or(DType::Int64);
  check(type != DType::Float16 || n <= 2049, ErrorKind::Runtime, "randperm: argument 'n' is ", n,
        ", expected at most 2049: float16 does not tell larger numbers apart");
  check(n - 1 <= infer::largest_integer(type), ErrorKind::Runtime, "randperm: argument 'n' is ", n, ", expected that ",
        name(type), " holds the numbers below it, which it does up to ", infer::largest_integer(type));
  const Tensor draws = taeda::empty(Shape{n}, DType::Int64), order = taeda::empty(Shape{n}, DType::Int64);
  int64_t* p = order.data<int64_t>();
  if (is_twister(generator)) {
    // A word for each place but the last, as PyTorch takes them; two where a word would favour some places.
    const Tensor places = ops::narrow(draws, 0, 0, std::max<int64_t>(n - 1, 0));
    const bool small = n < int64_t(std::numeric_limits<uint32_t>::max() / 20);
    if (small) draw_words_into(places, generator);
    else ops::random_(places, {}, {}, generator);
  } else {
    ops::random_(draws, 0, std::numeric_limits<int64_t>::max(), generator);
  }
  in_blocks(n, [&](int64_t begin, int64_t end) { std::iota(p + begin, p + end, begin); });
  // Fisher and Yates: each element trades places with one at or after it.
  in_blocks(n - 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) std::swap(p[i], p[i + draws.data<int64_t>()[i] % (n - i)]);
  });
  const Device place = device.value_or(Device{});
  if (type == DType::Int64 && place == Device{}) return as_made(order, requires_grad);
  const Tensor out = taeda::empty(Shape{n}, type, place);
  ops::copy_(out, order);
  return as_made(out, requires_grad);
}

Tensor normal(double mean, double std, IntSpan size, const Generator& generator, OptionalDType dtype,
              OptionalDevice device, bool requires_grad) {
  const Tensor out = fresh(size, dtype, device);
  infer::normal_spread("normal", out, std);
  ops::normal_(out, mean, std, generator);
  return as_made(out, requires_grad);
}
Tensor normal_Tensor(const Tensor& mean, const Tensor& std, const Generator& generator) {
  const Tensor both[] = {mean, std};
  DType dtype = is_integral(mean.dtype()) || mean.is_wrapped_number() ? result_type(both) : mean.dtype();
  if (is_integral(dtype)) dtype = default_dtype();
  check(!is_complex(std.dtype()), ErrorKind::Runtime, "normal: argument 'std' must not be complex, got ",
        name(std.dtype()));
  if (std.numel() && readable(std)) {
    const double least = number_of(ops::amin(std));
    check(least >= 0, ErrorKind::Runtime, "normal: argument 'std' must not be negative, found ", least);
  }
  const Tensor noise = taeda::empty(broadcast_shapes(mean.sizes(), std.sizes(), "normal"), dtype,
                                    stated_device(mean.dim() ? mean : std));
  ops::normal_(noise, 0, 1, generator);
  return ops::to_dtype(ops::add(ops::mul(noise, std), mean), dtype);
}
void log_normal_(const Tensor& self, double mean, double std, const Generator& generator) {
  infer::normal_spread("log_normal_", self, std);
  check(std > 0, ErrorKind::Runtime, "log_normal_: argument 'std' must be positive, got ", std);
  ops::normal_(self, mean, std, generator);
  ops::exp_(self);
}

namespace {

/// Only where the values are at hand: to read them from another device would wait for it.
void check_chances(const char* op, const char* argument, const Tensor& p) {
  if (!at_hand(p)) return;
  const Tensor outside = ops::logical_not(ops::logical_and(ops::ge(p, Tensor(0.0)), ops::le(p, Tensor(1.0))));
  if (!*ops::any(outside).data<bool>()) return;
  const double found = number_of(ops::select(ops::masked_select(p, outside), 0, 0));
  fail(ErrorKind::Runtime, op, ": argument '", argument, "' must lie between 0 and 1, found ", found);
}
/// Where a draw falls within the chance.
Tensor drawn_by_chances(const Shape& sizes, Device device, const Tensor& p, const Generator& generator) {
  const Tensor draws = taeda::empty(sizes, p.dtype() == DType::Float64 ? DType::Float64 : DType::Float32, device);
  ops::uniform_(draws, 0, 1, generator);
  return ops::lt(draws, p);
}

}  // namespace

void bernoulli__Tensor(const Tensor& self, const Tensor& p, const Generator& generator) {
  check_chances("bernoulli_", "p", p);
  ops::copy_(self, drawn_by_chances(Shape(self.sizes()), self.device(), p, generator));
}
Tensor bernoulli(const Tensor& self, const Generator& generator) {
  check(is_floating(self.dtype()), ErrorKind::NotImplemented, "bernoulli: not implemented for dtype ",
        name(self.dtype()));
  const Tensor p = ops::detach(self);
  check_chances("bernoulli", "self", p);
  return ops::to_dtype(drawn_by_chances(Shape(self.sizes()), stated_device(self), p, generator), self.dtype());
}
Tensor bernoulli_p(const Tensor& self, double p, const Generator& generator) {
  infer::bernoulli_chance("bernoulli", p);
  const Tensor out = ops::empty_like(self);
  ops::bernoulli_(out, p, generator);
  return out;
}

}  // namespace taeda::impl
