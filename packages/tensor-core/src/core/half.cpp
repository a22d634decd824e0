// Operators of several steps on half precision: computed in float32 and rounded once, at the end.
#include "taeda/half.h"

#include "taeda/ops/cast.h"

namespace taeda {

Tensor in_float32(const Tensor& t) { return is_half(t) ? ops::to_dtype(t, DType::Float32) : t; }
std::vector<Tensor> in_float32(TensorList list) {
  std::vector<Tensor> out;
  out.reserve(list.size());
  for (const Tensor& t : list) out.push_back(in_float32(t));
  return out;
}

Tensor like_operand(const Tensor& result, const Tensor& operand) {
  const DType dtype = operand.dtype();
  if (result.dtype() == dtype || !is_differentiable(dtype)) return result;
  return ops::to_dtype(result, dtype);
}

DType joint_dtype(std::initializer_list<TensorList> operands) {
  std::vector<Tensor> floating;
  for (TensorList list : operands)
    for (const Tensor& t : list)
      if (t.defined() && is_differentiable(t.dtype())) floating.push_back(t);
  return result_type(floating);
}

Tensor from_float32(const Tensor& result, DType dtype) {
  return result.defined() && result.dtype() == DType::Float32 ? ops::to_dtype(result, dtype) : result;
}

}  // namespace taeda
