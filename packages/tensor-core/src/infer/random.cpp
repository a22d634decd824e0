// Arguments of distributions: bounds, rates, chances and dtypes.
#include "infer/random.h"

#include <cmath>
#include <limits>
#include <utility>

#include "infer/dtypes.h"
#include "taeda/ops/random.h"

namespace taeda::infer {
namespace {

void check_dtype(bool has_entry, const char* op, DType dtype) {
  check(has_entry, ErrorKind::NotImplemented, op, ": not implemented for dtype ", name(dtype));
}
void check_floating(const char* op, const Tensor& self) { check_dtype(is_floating(self.dtype()), op, self.dtype()); }
void check_differentiable(const char* op, const Tensor& self) {
  check_dtype(is_differentiable(self.dtype()), op, self.dtype());
}

int64_t smallest_integer(DType dtype) {
  if (dtype == DType::Float16) return -largest_integer(dtype);
  if (is_floating(dtype)) return std::numeric_limits<int64_t>::min();
  return is_signed(dtype) ? -largest_integer(dtype) - 1 : 0;
}

}  // namespace

int64_t largest_integer(DType dtype) {
  if (dtype == DType::Bool) return 1;
  if (dtype == DType::Float16) return int64_t(largest_number(dtype));
  const int64_t bits = item_size(dtype) * 8 - (is_signed(dtype) ? 1 : 0);
  return is_floating(dtype) || bits >= 63 ? std::numeric_limits<int64_t>::max() : (int64_t(1) << bits) - 1;
}

uint64_t natural_count(DType dtype) {
  switch (dtype) {
    case DType::Bool: return 2;
    case DType::Float16: return (1 << 11) + 1;
    case DType::BFloat16: return (1 << 8) + 1;
    case DType::Float32: return (1 << 24) + 1;
    case DType::Float64: return (uint64_t(1) << 53) + 1;
    case DType::UInt64: return 0;
    default: return uint64_t(1) << (item_size(dtype) * 8 - (is_signed(dtype) ? 1 : 0));
  }
}

void bernoulli_chance(const char* op, double p) {
  check(p >= 0 && p <= 1, ErrorKind::Runtime, op, ": argument 'p' must lie between 0 and 1, got ", p);
}
void cauchy_scale(const char* op, const Tensor& self, double sigma) {
  check_floating(op, self);
  check(sigma > 0, ErrorKind::Runtime, op, ": argument 'sigma' must be positive, got ", sigma);
}
void exponential_rate(const char* op, const Tensor& self, double lambd) {
  check_floating(op, self);
  check(lambd > 0, ErrorKind::Runtime, op, ": argument 'lambd' must be positive, got ", lambd);
}
void geometric_chance(const char* op, const Tensor& self, double p) {
  check_dtype(!is_complex(self.dtype()), op, self.dtype());
  check(p > 0 && p < 1, ErrorKind::Runtime, op, ": argument 'p' must lie between 0 and 1, got ", p);
}
void multinomial_draws(const Tensor& self, int64_t num_samples, bool replacement) {
  check(self.dim() == 1 || self.dim() == 2, ErrorKind::Runtime, "multinomial: argument 'self' has shape ",
        shape_text(self.sizes()), ", expected 1 or 2 dimensions");
  check(is_floating(self.dtype()), ErrorKind::Runtime, "multinomial: argument 'self' has dtype ", name(self.dtype()),
        ", expected a floating-point dtype");
  check(num_samples > 0, ErrorKind::Runtime, "multinomial: argument 'num_samples' must be positive, got ", num_samples);
  check(replacement || num_samples <= self.size(-1), ErrorKind::Runtime, "multinomial: cannot draw ", num_samples,
        " samples without replacement from ", self.size(-1), " categories");
  check(self.size(-1) > 0 || (self.dim() == 2 && self.size(0) == 0), ErrorKind::Runtime,
        "multinomial: argument 'self' has a row whose weights sum up to 0");
}
void normal_spread(const char* op, const Tensor& self, double std) {
  check_differentiable(op, self);
  check(std >= 0, ErrorKind::Runtime, op, ": argument 'std' must not be negative, got ", std);
}
void poisson_rates(const Tensor& self) { check_floating("poisson", self); }

void random_range(DType dtype, std::optional<int64_t> low, std::optional<int64_t> high) {
  const bool to_the_end = low && high && *high <= 0 && uint64_t(*high) == natural_count(dtype);
  if (to_the_end) random_start("random_", dtype, *low);
  else random_bounds("random_", dtype, low, high);
}
void random_start(const char* op, DType dtype, int64_t low) {
  check_dtype(!is_complex(dtype), op, dtype);
  const int64_t least = smallest_integer(dtype);
  const uint64_t most = natural_count(dtype) - 1;
  check(low >= least && (low < 0 || uint64_t(low) <= most), ErrorKind::Runtime, op, ": argument 'low' is ", low,
        ", expected a number that ", name(dtype), " holds, ", least, " to ", most);
}
void random_bounds(const char* op, DType dtype, std::optional<int64_t> low, std::optional<int64_t> high) {
  check_dtype(!is_complex(dtype), op, dtype);
  if (low && !high) std::swap(low, high);
  const int64_t first = low.value_or(0), least = smallest_integer(dtype), most = largest_integer(dtype);
  check(first >= least && first <= most, ErrorKind::Runtime, op, ": argument 'low' is ", first,
        ", expected a number that ", name(dtype), " holds, ", least, " to ", most);
  if (!high) return;
  check(first < *high, ErrorKind::Runtime, op, ": argument 'low' (", first, ") must be less than 'high' (", *high, ")");
  check(*high - 1 <= most, ErrorKind::Runtime, op, ": argument 'high' is ", *high, ", expected that ", name(dtype),
        " holds the numbers below it, which it does up to ", most);
}

void uniform_bounds(const char* op, const Tensor& self, double low, double high, const char* a, const char* b) {
  check_differentiable(op, self);
  check(low <= high, ErrorKind::Runtime, op, ": argument '", a, "' (", low, ") must not exceed '", b, "' (", high, ")");
  check(high - low <= largest_number(self.dtype()), ErrorKind::Runtime, op, ": arguments '", a, "' (", low, ") and '",
        b, "' (", high, ") are further apart than the largest number of ", name(self.dtype()));
}

namespace {

Tensor poisson_meta(const Tensor& self, const Generator&) { return empty(self.sizes(), self.dtype(), self.device()); }
Tensor multinomial_meta(const Tensor& self, int64_t num_samples, bool, const Generator&) {
  Shape sizes(self.sizes());
  sizes.back() = num_samples;
  return empty(sizes, DType::Int64, self.device());
}
const bool registered = [] {
  kernel<op::multinomial>(kMeta, multinomial_meta);
  kernel<op::poisson>(kMeta, poisson_meta);
  return true;
}();

}  // namespace

}  // namespace taeda::infer
