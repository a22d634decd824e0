// Slices along one dimension, written where an index says.
#pragma once
#include "ops/call.h"

namespace taeda::cuda {

/// What a scattering writes or adds where its index is the same for all lines along `dim`: whole slices then. False,
/// with nothing done, where it is not.
bool put_rows(const Call& call, const Tensor& to, int dim, const Tensor& index, const Tensor& source, bool adds);

}  // namespace taeda::cuda
