// Inference that operators of the index family share.
#pragma once
#include "infer/numbers.h"
#include "taeda/spec.h"

namespace taeda::infer {

/// index_add, index_copy: a 1-d integer index and a source with one slice for each entry.
Spec index_into(const char* op, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source);
/// scatter forms: an index of the rank of `self`, inside `src`.
Spec scatter_into(const char* op, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src);
Spec scatter_number(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value);

}  // namespace taeda::infer
