// What the Fourier family's inference and composites share.
#pragma once
#include "taeda/tensor.h"

namespace taeda::infer {

/// A dimension to transform, counted from the front; a number has none.
int64_t fft_dim(const char* op, int64_t dim, int64_t ndim);

}  // namespace taeda::infer
