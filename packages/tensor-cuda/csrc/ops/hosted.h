// Operators for which there is no way on the device: computed on the host, by what the core has there.
#pragma once
#include "ops/call.h"

namespace taeda::cuda {

/// Copies the operands to the host, computes there, and fills the call's outputs, of which there are so many. Errors
/// are those of the host. It is not told of an argument that only devices take, if there is one.
void compute_on_host(const Call& call, int outputs, int left_out = -1);

}  // namespace taeda::cuda
