// Inference that operators of the index family share.
#pragma once
#include "infer/numbers.h"
#include "taeda/spec.h"

namespace taeda::infer {

/// take, put: places told by integers.
void check_places(const char* op, const Tensor& index);
/// index_add, index_copy: a 1-d integer index and a source with one slice for each entry.
Spec index_into(const char* op, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source);
/// scatter forms: an index of the rank of `self`, inside `src`.
Spec scatter_into(const char* op, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src);
Spec scatter_number(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value);

/// Whether an index tensor chooses elements and does not count them: bytes do so as booleans do, which they were before
/// there were any.
inline bool is_mask(const Tensor& index) { return index.dtype() == DType::Bool || index.dtype() == DType::UInt8; }
/// index, index_put_: integer tensors and masks that fit the dimensions of `self` and each other; values are looked at
/// later.
void index_tensors(const char* op, const Tensor& self, TensorList indices);
/// The common shape of index tensors; an IndexError where there is none: the mistake is in the index, not in operands.
Shape index_shapes(IntSpan a, IntSpan b, const char* op);
/// index_put_: values are of the dtype of `self`. Numbers are given it, and so is what one mask gets a single one of.
void index_values_dtype(const char* op, const Tensor& self, TensorList indices, const Tensor& values);
/// index_put_: values that can be broadcast to the shape of self[indices].
void index_values(const char* op, IntSpan indexed, const Tensor& values);

}  // namespace taeda::infer
