// What goes by tensor cores where a device has them.
#pragma once
#include "kernels/matrix.h"
#include "ops/call.h"

namespace taeda::cuda {

/// Whether the device has the products that the kernels are written with: those of 2020 and later.
bool has_tensor_cores(int device);
/// A batch of products of halves; false, with nothing done, where they or the device are others.
bool multiply_by_tensor_cores(const Call& call, Product3 product, int64_t batch);

}  // namespace taeda::cuda
