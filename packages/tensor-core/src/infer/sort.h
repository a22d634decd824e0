// Arguments of the sort family that are refused on every device alike.
#pragma once
#include "taeda/spec.h"

namespace taeda::infer {

void bincount(const Tensor& self, const Tensor& weights, int64_t minlength);
/// That of the sums: of weights float32 or float64; int64 where there are none, or nothing is counted.
DType bincount_dtype(const Tensor& self, const Tensor& weights);
/// How many bins numbers from `least` to `most` need, at least `bins`. Refuses those below 0, and more than there can
/// be.
int64_t bincount_size(int64_t least, int64_t most, int64_t bins);
/// Of a list's distinct elements in order.
void unique_all(const Tensor& self);
void histc(const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max);
/// The range of a histogram, opened where it is a single value; finite and in order.
void histogram_range(double& low, double& high);

void searchsorted(const Tensor& sorted_sequence, const Tensor& self);

}  // namespace taeda::infer
