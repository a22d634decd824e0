// Random numbers of a Mersenne twister. What each takes from the stream, and in which order, is PyTorch's: one word for
// a float32 number or a small integer, two for a float64 number or a large one, in the order of memory.
#include "cpu/twisted.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cpu/by_way_of.h"
#include "cpu/kernel.h"
#include "cpu/loops/random.h"
#include "taeda/elementwise.h"
#include "taeda/half.h"
#include "taeda/interrupt.h"
#include "taeda/parallel.h"

namespace taeda::cpu::twisted {
namespace {

constexpr double kTwoPi = 6.283185307179586476925286766559;

uint64_t joined(const uint32_t* words) { return uint64_t(words[0]) << 32 | words[1]; }
double unit(const uint32_t* words) { return double(joined(words) & ((uint64_t(1) << 53) - 1)) * 0x1p-53; }
float unit_float(uint32_t word) { return float(word & 0xffffff) * 0x1p-24f; }

/// `self` with its dimensions from the widest stride to the narrowest.
Tensor in_order_of_memory(const Tensor& self) {
  if (self.contiguous()) return self;
  std::vector<int64_t> dims(size_t(self.dim()));
  std::iota(dims.begin(), dims.end(), 0);
  std::stable_sort(dims.begin(), dims.end(), [&](int64_t a, int64_t b) { return self.stride(a) > self.stride(b); });
  Shape sizes, strides;
  for (const int64_t dim : dims) {
    sizes.push_back(self.size(dim));
    strides.push_back(self.stride(dim));
  }
  TensorImpl* const impl = self.impl();
  return from_storage(impl->storage, sizes, strides, impl->data - static_cast<char*>(impl->storage->data), impl->dtype);
}

/// Fills `self` by way of contiguous numbers of type T: fill(T* out, int64_t count).
template <class T, class F>
void through(const Tensor& self, const F& fill) {
  if (self.numel() == 0) return;
  const Tensor place = in_order_of_memory(self);
  const auto fill_plain = [&](const Tensor& plain) {
    const Unlocked unlocked(plain.numel() > 32768);
    fill(plain.data<T>(), plain.numel());
  };
  if (place.contiguous() && place.dtype() == dtype_of<T>) fill_plain(place);
  else by_way_of(dtype_of<T>, place, fill_plain);
}
/// Each number from `Words` words of the stream.
template <class T, int Words, class F>
void draw_each(T* out, int64_t count, const Generator& generator, const F& number) {
  constexpr int64_t piece = 512;
  uint32_t words[piece * Words];
  for (int64_t i = 0; i < count; i += piece) {
    const int64_t n = std::min(piece, count - i);
    draw_words(generator, words, n * Words);
    for (int64_t j = 0; j < n; ++j) out[i + j] = number(words + j * Words);
  }
}
template <class T>
void draw_units(T* out, int64_t count, const Generator& generator) {
  if constexpr (std::is_same_v<T, float>)
    draw_each<float, 1>(out, count, generator, [](const uint32_t* w) { return unit_float(*w); });
  else draw_each<double, 2>(out, count, generator, unit);
}

/// Numbers of [low, high): what `Stored` rounds up to the upper end is the lower one, as in PyTorch.
template <class T, class Stored>
void uniform_as(const Tensor& self, double low, double high, const Generator& generator) {
  const T first = T(low), width = T(high) - first, end = T(Stored(T(high)));
  through<T>(self, [&](T* out, int64_t count) {
    draw_units(out, count, generator);
    for (int64_t i = 0; i < count; ++i) {
      const T number = std::fma(out[i], width, first);
      out[i] = T(Stored(number)) >= end ? first : number;
    }
  });
}

template <class T>
void normal_by_sixteens(T* out, int64_t count, double mean, double std, bool half, const Generator& generator) {
  draw_units(out, half ? count / 16 * 16 : count, generator);
  const SixteensFn transform =
      std::is_same_v<T, float> ? random_table().float_sixteens : random_table().double_sixteens;
  parallel_for(count / 16, 512,
               [&](int64_t begin, int64_t end) { transform(out + begin * 16, end - begin, mean, std); });
  if (count % 16 == 0) return;
  // The last sixteen are drawn anew, whatever part of them was there; of float16 and bfloat16 nothing was.
  draw_units(out + count - 16, 16, generator);
  transform(out + count - 16, 1, mean, std);
}
double one_normal(const Generator& generator) {
  if (const std::optional<double> spare = exchange_spare(generator, {})) return *spare;
  uint32_t words[4];
  draw_words(generator, words, 4);
  const double radius = std::sqrt(-2 * std::log1p(-unit(words + 2))), angle = kTwoPi * unit(words);
  exchange_spare(generator, radius * std::sin(angle));
  return radius * std::cos(angle);
}

/// Float64 numbers, of two words each.
template <class F>
void transformed(const Tensor& self, const Generator& generator, const F& f) {
  through<double>(self, [&](double* out, int64_t count) {
    draw_each<double, 2>(out, count, generator, [&](const uint32_t* words) { return f(unit(words)); });
  });
}

/// Weights over exponential times: the largest come first.
template <class T>
void draw_distinct(const T* w, size_t n, int64_t samples, int64_t* out, const Generator& generator) {
  std::vector<T> scores(n, T(0));
  draw_each<T, 2>(scores.data(), int64_t(n), generator,
                  [](const uint32_t* words) { return T(-std::log1p(-unit(words))); });
  for (size_t i = 0; i < n; ++i) scores[i] = w[i] / scores[i];
  std::vector<int64_t> order(n, int64_t(0));
  std::iota(order.begin(), order.end(), 0);
  Patience patience;
  std::partial_sort(order.begin(), order.begin() + samples, order.end(), [&](int64_t a, int64_t b) {
    patience();
    return scores[size_t(a)] != scores[size_t(b)] ? scores[size_t(a)] > scores[size_t(b)] : a < b;
  });
  std::copy_n(order.begin(), samples, out);
}
template <class T>
void draw_again(const T* w, size_t n, int64_t samples, int64_t* out, Stream stream) {
  std::vector<T> sums(n, T(0));
  std::partial_sum(w, w + n, sums.begin());
  const T total = sums.back();
  for (T& sum : sums) sum /= total;
  sums.back() = 1;
  Patience patience;
  for (int64_t s = 0; s < samples; ++s) {
    patience();
    const double place = stream.next();
    out[s] = std::lower_bound(sums.begin(), sums.end(), place, [](T sum, double u) { return double(sum) < u; }) -
             sums.begin();
  }
}

}  // namespace

double Stream::next() {
  uint32_t words[2];
  draw_words(generator_, words, 2);
  return unit(words);
}

void uniform(const Tensor& self, double low, double high, const Generator& generator) {
  if (self.dtype() == DType::Float64) uniform_as<double, double>(self, low, high, generator);
  else if (self.dtype() == DType::Float16) uniform_as<float, Half>(self, low, high, generator);
  else if (self.dtype() == DType::BFloat16) uniform_as<float, BFloat16>(self, low, high, generator);
  else uniform_as<float, float>(self, low, high, generator);
}
void normal(const Tensor& self, double mean, double std, const Generator& generator) {
  const bool by_sixteens = self.numel() >= 16 && self.contiguous();
  const auto fill = [&]<class T>(T* out, int64_t count) {
    if (by_sixteens) return normal_by_sixteens(out, count, mean, std, is_half(self), generator);
    for (int64_t i = 0; i < count; ++i) out[i] = T(one_normal(generator) * std + mean);
  };
  if (self.dtype() == DType::Float64) through<double>(self, fill);
  else through<float>(self, fill);
}
void exponential(const Tensor& self, double rate, const Generator& generator) {
  transformed(self, generator, [=](double u) { return -1 / rate * std::log1p(-u); });
}
void bernoulli(const Tensor& self, double p, const Generator& generator) {
  through<bool>(self, [&](bool* out, int64_t count) {
    draw_each<bool, 2>(out, count, generator, [&](const uint32_t* words) { return unit(words) < p; });
  });
}
void geometric(const Tensor& self, double p, const Generator& generator) {
  transformed(self, generator, [=](double u) { return std::ceil(std::log(u) / std::log1p(-p)); });
}
void cauchy(const Tensor& self, double median, double sigma, const Generator& generator) {
  transformed(self, generator, [=](double u) { return median + sigma * std::tan(kTwoPi / 2 * (u - 0.5)); });
}
void integers(const Tensor& self, int64_t first, uint64_t count, const Generator& generator) {
  through<int64_t>(self, [&](int64_t* out, int64_t n) {
    if (count && count < uint64_t(1) << 28)
      draw_each<int64_t, 1>(out, n, generator, [&](const uint32_t* w) { return int64_t(*w % count) + first; });
    else
      draw_each<int64_t, 2>(out, n, generator, [&](const uint32_t* w) {
        return int64_t(count ? joined(w) % count + uint64_t(first) : joined(w));  // all there are, from nowhere on
      });
  });
}
void natural(const Tensor& self, uint64_t count, const Generator& generator) {
  const bool wide = self.dtype() == DType::Float64 || self.dtype() == DType::Int64 || self.dtype() == DType::UInt64;
  through<int64_t>(self, [&](int64_t* out, int64_t n) {
    if (!wide) draw_each<int64_t, 1>(out, n, generator, [&](const uint32_t* w) { return int64_t(*w % count); });
    else
      draw_each<int64_t, 2>(out, n, generator,
                            [&](const uint32_t* w) { return int64_t(count ? joined(w) % count : joined(w)); });
  });
}

void draw(const Tensor& weights, int64_t rows, int64_t n, int64_t samples, bool replacement, int64_t* out,
          const Generator& generator) {
  const auto by_rows = [&]<class T>(const T* w) {
    for (int64_t r = 0; r < rows; ++r, w += n, out += samples) {
      poll_signals();
      if (replacement && samples > 1) draw_again(w, size_t(n), samples, out, Stream(generator));
      else draw_distinct(w, size_t(n), samples, out, generator);
    }
  };
  if (weights.dtype() == DType::Float64) by_rows(weights.data<double>());
  else by_rows(weights.data<float>());
}

}  // namespace taeda::cpu::twisted
