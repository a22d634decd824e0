// Arguments of distributions, refused before any backend's kernel; `op` is the operator that was called.
#pragma once
#include "taeda/spec.h"

namespace taeda::infer {

void bernoulli_chance(const char* op, double p);
void cauchy_scale(const char* op, const Tensor& self, double sigma);
void exponential_rate(const char* op, const Tensor& self, double lambd);
void geometric_chance(const char* op, const Tensor& self, double p);
void multinomial_draws(const Tensor& self, int64_t num_samples, bool replacement);
void normal_spread(const char* op, const Tensor& self, double std);
void poisson_rates(const Tensor& self);
/// A range of integers that is not empty and that the dtype holds; one bound alone is `high`.
void random_bounds(const char* op, DType dtype, std::optional<int64_t> low, std::optional<int64_t> high);
/// The same of `random_`, where `high` beside `low` may be `natural_count` modulo 2^64: no int64 says the end of the
/// widest integers.
void random_range(DType dtype, std::optional<int64_t> low, std::optional<int64_t> high);
/// One past the largest integer that all smaller ones are exact below; 0 stands for 2^64.
uint64_t natural_count(DType dtype);
/// A number that the dtype holds along with all from there to the last of the natural ones.
void random_start(const char* op, DType dtype, int64_t low);
/// Bounds in order whose distance the dtype holds; `a` and `b` are what the operator calls them.
void uniform_bounds(const char* op, const Tensor& self, double low, double high, const char* a = "a",
                    const char* b = "b");
/// The largest integer that fits, as far as int64 goes.
int64_t largest_integer(DType dtype);

}  // namespace taeda::infer
