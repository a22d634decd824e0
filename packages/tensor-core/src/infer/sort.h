// Arguments of the sort family that are refused on every device alike.
#pragma once
#include "taeda/spec.h"

namespace taeda::infer {

void bincount(const Tensor& self, const Tensor& weights, int64_t minlength);
void histc(const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max);
/// The range of a histogram, opened where it is a single value; finite and in order.
void histogram_range(double& low, double& high);

void searchsorted(const Tensor& sorted_sequence, const Tensor& self);

}  // namespace taeda::infer
