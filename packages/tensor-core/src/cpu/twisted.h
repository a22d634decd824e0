// Random numbers of a Mersenne twister, word for word as PyTorch's cpu draws them.
#pragma once
#include "taeda/generator.h"
#include "taeda/tensor.h"

namespace taeda::cpu::twisted {

void uniform(const Tensor& self, double low, double high, const Generator& generator);
void normal(const Tensor& self, double mean, double std, const Generator& generator);
void exponential(const Tensor& self, double rate, const Generator& generator);
void bernoulli(const Tensor& self, double p, const Generator& generator);
void geometric(const Tensor& self, double p, const Generator& generator);
void cauchy(const Tensor& self, double median, double sigma, const Generator& generator);
/// Integers of `count` values from `first` on; 0 stands for 2^64 values.
void integers(const Tensor& self, int64_t first, uint64_t count, const Generator& generator);
/// Integers from 0 on, as many as the dtype of `self` tells apart.
void natural(const Tensor& self, uint64_t count, const Generator& generator);
/// Indices drawn by checked weights, float32 or float64 in rows of `n`, as `multinomial` gives them.
void draw(const Tensor& weights, int64_t rows, int64_t n, int64_t samples, bool replacement, int64_t* out,
          const Generator& generator);

/// Uniform numbers of [0, 1) one after another, of 53 bits.
class Stream {
 public:
  explicit Stream(const Generator& generator) : generator_(generator) {}
  double next();

 private:
  const Generator& generator_;
};

}  // namespace taeda::cpu::twisted
