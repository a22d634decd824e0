// Products of matrices, as operators and as parts of others.
#pragma once
#include "ops/call.h"

namespace taeda::cuda {

/// out = a @ b for three dimensions each (a batch, rows, columns), of whatever strides; of `a` and `b` a batch of one
/// stands for all. The result of halves may be float32. With `base`, alpha times that and beta times `base`.
void multiply(const Call& call, const Tensor& out, const Tensor& a, const Tensor& b, const Tensor* base = nullptr,
              const Number& alpha = {1, 0, 1}, const Number& beta = {});

}  // namespace taeda::cuda
