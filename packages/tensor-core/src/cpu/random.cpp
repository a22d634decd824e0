// CPU kernels of the random family.
#include "taeda/ops/random.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cpu/by_way_of.h"
#include "cpu/kernel.h"
#include "cpu/loops/random.h"
#include "cpu/twisted.h"
#include "infer/random.h"
#include "taeda/half.h"
#include "taeda/interrupt.h"
#include "taeda/ops/arith.h"
#include "taeda/parallel.h"

namespace taeda::cpu {
namespace {

const RandomTable& table() {
  static const RandomTable& picked = random_table();
  return picked;
}

/// Numbers in a group of the distribution.
constexpr int group_size(Distribution d) {
  return d == kUniformFloat || d == kNormalFloat || d == kBernoulliByte || d == kExponentialFloat ? 4 * kGroupBlocks
                                                                                                  : 2 * kGroupBlocks;
}

/// Fills a contiguous run of `count` numbers of `item` bytes.
void fill_run(Distribution kind, char* out, int64_t count, int64_t item, const LoopParams& p,
              const Generator& generator) {
  const int64_t size = group_size(kind), groups = (count + size - 1) / size;
  const PhiloxRange range = reserve(generator, uint64_t(groups) * kGroupBlocks);
  const GroupFn fill = table().fill[kind];
  const Unlocked unlocked(count > 32768);
  parallel_for(groups, 32768 / size, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) {
      const uint64_t offset = range.offset + uint64_t(g) * kGroupBlocks;
      if ((g + 1) * size <= count) {
        fill(out + g * size * item, range.seed, offset, p, size);
      } else {
        alignas(64) char rest[4 * kGroupBlocks * 8];
        fill(rest, range.seed, offset, p, count - g * size);
        std::memcpy(out + g * size * item, rest, size_t((count - g * size) * item));
      }
    }
  });
}
/// Fills `self`, of any layout and dtype, from a distribution whose numbers are of dtype `made`.
void fill(Distribution kind, DType made, const Tensor& self, const LoopParams& p, const Generator& generator) {
  if (self.numel() == 0) return;
  if (self.contiguous() && self.dtype() == made)
    return fill_run(kind, self.bytes(), self.numel(), self.item_bytes(), p, generator);
  by_way_of(made, self, [&](const Tensor& plain) {
    fill_run(kind, plain.bytes(), plain.numel(), plain.item_bytes(), p, generator);
  });
}
/// The neighbour of a finite number on the way to minus infinity.
template <class T>
T before(T x) {
  using Bits = std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;
  constexpr Bits sign = Bits(Bits(1) << (sizeof(T) * 8 - 1));
  Bits bits = std::bit_cast<Bits>(x);
  if (Bits(bits << 1) == 0) bits = Bits(sign | 1);  // either zero
  else bits = bits & sign ? Bits(bits + 1) : Bits(bits - 1);
  return std::bit_cast<T>(bits);
}
/// Fills `self` with numbers below `end`: those that the dtype of `self` rounds up to it take the neighbour below.
void fill_below(Distribution kind, DType made, const Tensor& self, const LoopParams& p, const Generator& generator,
                double end) {
  const Tensor place = self.contiguous() ? self : empty(self.sizes(), self.dtype());
  fill(kind, made, place, p, generator);
  visit_dtype(self.dtype(), [&]<class T>() {
    if constexpr (is_floating(dtype_of<T>)) {
      T last = T(end);
      while (double(last) >= end) last = before(last);
      for (int64_t i = 0; i < place.numel(); ++i)
        if (double(place.data<T>()[i]) >= end) place.data<T>()[i] = last;
    }
  });
  if (!place.same(self)) copy_elements(self, place);
}
void fill_floating(Distribution single, const Tensor& self, const LoopParams& p, const Generator& generator) {
  const bool wide = self.dtype() == DType::Float64;
  fill(wide ? Distribution(single + 1) : single, wide ? DType::Float64 : DType::Float32, self, p, generator);
}
/// A complex tensor as real pairs, sharing memory; only for contiguous ones.
Tensor pairs(const Tensor& self) {
  const Tensor halves = bare_alias(self);
  TensorImpl* impl = halves.impl();
  impl->dtype = real_of(self.dtype());
  Shape sizes{self.numel() * 2}, strides{1};
  return from_storage(impl->storage, sizes, strides, impl->data - static_cast<char*>(impl->storage->data), impl->dtype);
}

void uniform(const Tensor& self, double low, double high, const Generator& generator) {
  if (is_complex(self.dtype()) && self.contiguous()) return uniform(pairs(self), low, high, generator);
  if (is_twister(generator)) return twisted::uniform(self, low, high, generator);
  const LoopParams p{Scalar(low), Scalar(high)};
  if (is_half(self) && high > low && self.numel())
    return fill_below(kUniformFloat, DType::Float32, self, p, generator, high);
  fill_floating(kUniformFloat, self, p, generator);
}
void normal(const Tensor& self, double mean, double std, const Generator& generator) {
  // A complex normal number has half the variance in each part.
  if (is_complex(self.dtype()) && self.contiguous())
    return normal(pairs(self), mean, std * 0.70710678118654752440, generator);
  if (is_twister(generator)) return twisted::normal(self, mean, std, generator);
  fill_floating(kNormalFloat, self, {Scalar(mean), Scalar(std)}, generator);
}
void exponential(const Tensor& self, double rate, const Generator& generator) {
  if (is_twister(generator)) return twisted::exponential(self, rate, generator);
  fill_floating(kExponentialFloat, self, {Scalar(rate)}, generator);
  if (self.dtype() == DType::Float16) ops::clamp_min_(self, Tensor(0x1p-24));  // never 0, as in the wider dtypes
}
void bernoulli(const Tensor& self, double p, const Generator& generator) {
  if (is_twister(generator)) return twisted::bernoulli(self, p, generator);
  if (self.dtype() == DType::Bool && self.contiguous() && self.numel())
    return fill_run(kBernoulliByte, self.bytes(), self.numel(), 1, {Scalar(p)}, generator);
  fill(kBernoulliByte, DType::UInt8, self, {Scalar(p)}, generator);
}

/// Applies `f` to uniform doubles and stores the results.
template <class F>
void transformed(const Tensor& self, const Generator& generator, const F& f) {
  if (self.numel() == 0) return;
  by_way_of(DType::Float64, self, [&](const Tensor& plain) {
    fill_run(kUniformDouble, plain.bytes(), plain.numel(), 8, {Scalar(0.0), Scalar(1.0)}, generator);
    double* x = plain.data<double>();
    const Unlocked unlocked(plain.numel() > 32768);
    parallel_for(plain.numel(), 32768, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) x[i] = f(x[i]);
    });
  });
}
void geometric(const Tensor& self, double p, const Generator& generator) {
  if (is_twister(generator)) return twisted::geometric(self, p, generator);
  const double scale = 1 / std::log1p(-p);
  transformed(self, generator, [=](double u) { return std::max(1.0, std::ceil(std::log1p(-u) * scale)); });
}
void cauchy(const Tensor& self, double median, double sigma, const Generator& generator) {
  if (is_twister(generator)) return twisted::cauchy(self, median, sigma, generator);
  transformed(self, generator, [=](double u) { return median + sigma * std::tan(3.14159265358979323846 * (u - 0.5)); });
}

void random(const Tensor& self, std::optional<int64_t> low, std::optional<int64_t> high, const Generator& generator) {
  if (low && !high) std::swap(low, high);
  const int64_t first = low.value_or(0);
  if (is_twister(generator)) {
    if (!low && !high) return twisted::natural(self, infer::natural_count(self.dtype()), generator);
    const uint64_t end = high ? uint64_t(*high) : infer::natural_count(self.dtype());
    return twisted::integers(self, first, end - uint64_t(first), generator);
  }
  LoopParams p;
  p.integer[0] = first;
  p.integer[1] = int64_t(high ? uint64_t(*high) - uint64_t(first) : infer::natural_count(self.dtype()));
  // Whole numbers that the dtype does not tell apart may be rounded up to `high`.
  if (is_floating(self.dtype()) && high && self.numel())
    return fill_below(kInteger64, DType::Int64, self, p, generator, double(*high));
  fill(kInteger64, DType::Int64, self, p, generator);
}

/// Uniform numbers one after another, for algorithms that take an unknown count: stream `i` of a reserved range.
class Stream {
 public:
  Stream(PhiloxRange range, uint64_t i) : range_(range), index_(i) {}
  double next() {
    if (used_ == 4) {
      words_ = philox(range_.seed, range_.offset + count_++, index_ + 1);
      used_ = 0;
    }
    const uint64_t bits = uint64_t(words_[used_]) << 32 | words_[used_ + 1];
    used_ += 2;
    return (double(bits >> 11) + 0.5) * 0x1p-53;
  }

 private:
  PhiloxRange range_;
  uint64_t index_, count_ = 0;
  std::array<uint32_t, 4> words_{};
  int used_ = 4;
};

template <class Stream>
double poisson_number(double rate, Stream& stream) {
  if (rate < 10) {
    double product = stream.next();
    const double limit = std::exp(-rate);
    int64_t k = 0;
    for (; product > limit; ++k) product *= stream.next();
    return double(k);
  }
  // Transformed rejection with squeeze (Hoermann 1993).
  const double b = 0.931 + 2.53 * std::sqrt(rate), a = -0.059 + 0.02483 * b, alpha = 1.1239 + 1.1328 / (b - 3.4),
               v_r = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double u = stream.next() - 0.5, v = stream.next(), us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    int sign;
    if (std::log(v * alpha / (a / (us * us) + b)) <= k * std::log(rate) - rate - lgamma_r(k + 1, &sign)) return k;
  }
}
Tensor poisson(const Tensor& self, const Generator& generator) {
  const Tensor rates = empty(self.sizes(), DType::Float64), out = empty(self.sizes(), self.dtype());
  copy_elements(rates, self);
  double* x = rates.data<double>();
  for (int64_t i = 0; i < rates.numel(); ++i)
    check(x[i] >= 0, ErrorKind::Runtime, "poisson: argument 'self' must not be negative, found ", x[i]);
  if (is_twister(generator)) {
    twisted::Stream stream(generator);
    for (int64_t i = 0; i < rates.numel(); ++i) x[i] = x[i] == 0 ? 0 : poisson_number(x[i], stream);
    copy_elements(out, rates);
    return out;
  }
  const PhiloxRange range = reserve(generator, 1 << 20);
  const Unlocked unlocked(rates.numel() > 8192);
  parallel_for(rates.numel(), 1024, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Stream stream(range, uint64_t(i));
      x[i] = x[i] == 0 ? 0 : poisson_number(x[i], stream);
    }
  });
  copy_elements(out, rates);
  return out;
}

void check_weights(const double* w, int64_t n) {
  double total = 0;
  for (int64_t i = 0; i < n; ++i) {
    check(std::isfinite(w[i]) && w[i] >= 0, ErrorKind::Runtime,
          "multinomial: argument 'self' must hold finite, non-negative weights, found ", w[i],
          ": probability tensor contains either `inf`, `nan` or element < 0");
    total += w[i];
  }
  check(total > 0, ErrorKind::Runtime, "multinomial: argument 'self' has a row whose weights sum up to 0");
}
void draw_with_replacement(const double* w, int64_t n, int64_t* out, int64_t samples, Stream stream) {
  std::vector<double> sums(size_t(n), 0.0);
  std::partial_sum(w, w + n, sums.begin());
  Patience patience;
  for (int64_t s = 0; s < samples; ++s) {
    patience();
    const auto at = std::upper_bound(sums.begin(), sums.end(), stream.next() * sums.back()) - sums.begin();
    out[s] = std::min<int64_t>(at, n - 1);
    while (w[out[s]] == 0) --out[s];  // rounding may point past the last weight
  }
}
/// The smallest of exponential times with the weights as rates come first; those of weights of 0 are the last.
void draw_without_replacement(const double* w, int64_t n, int64_t* out, int64_t samples, Stream stream) {
  std::vector<std::pair<double, int64_t>> times;
  times.reserve(size_t(n));
  Patience patience;
  for (int64_t i = 0; i < n; ++i) {
    patience();
    const double e = -std::log(stream.next());
    times.emplace_back(w[i] > 0 ? e / w[i] : std::numeric_limits<double>::infinity(), i);
  }
  std::partial_sort(times.begin(), times.begin() + samples, times.end(), [&](const auto& a, const auto& b) {
    patience();
    return a < b;
  });
  for (int64_t s = 0; s < samples; ++s) out[s] = times[size_t(s)].second;
}
Tensor multinomial(const Tensor& self, int64_t samples, bool replacement, const Generator& generator) {
  const int64_t n = self.size(-1), rows = self.dim() == 2 ? self.size(0) : 1;
  const Tensor weights = empty(self.sizes(), DType::Float64);
  copy_elements(weights, self);
  const Tensor out = empty(self.dim() == 2 ? Shape{rows, samples} : Shape{samples}, DType::Int64);
  if (is_twister(generator)) {
    for (int64_t r = 0; r < rows; ++r) check_weights(weights.data<double>() + r * n, n);
    const Tensor given = empty(self.sizes(), self.dtype() == DType::Float64 ? DType::Float64 : DType::Float32);
    copy_elements(given, self);
    twisted::draw(given, rows, n, samples, replacement, out.data<int64_t>(), generator);
    return out;
  }
  const PhiloxRange range = reserve(generator, uint64_t(std::max(samples, n)) / 2 + 1);
  const Unlocked unlocked(weights.numel() > 32768 || samples > 32768);
  for (int64_t r = 0; r < rows; ++r) {
    poll_signals();
    const double* w = weights.data<double>() + r * n;
    check_weights(w, n);
    (replacement ? draw_with_replacement : draw_without_replacement)(w, n, out.data<int64_t>() + r * samples, samples,
                                                                     Stream(range, uint64_t(r)));
  }
  return out;
}

const bool registered = [] {
  kernel<op::bernoulli_>(kCPU, bernoulli);
  kernel<op::cauchy_>(kCPU, cauchy);
  kernel<op::exponential_>(kCPU, exponential);
  kernel<op::geometric_>(kCPU, geometric);
  kernel<op::multinomial>(kCPU, multinomial);
  kernel<op::normal_>(kCPU, normal);
  kernel<op::poisson>(kCPU, poisson);
  kernel<op::random_>(kCPU, random);
  kernel<op::uniform_>(kCPU, uniform);
  return true;
}();

}  // namespace
}  // namespace taeda::cpu
